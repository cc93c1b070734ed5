%% SPDX-License-Identifier: Apache-2.0
%% @doc Where the actors are: a table on each node, written by its manager when a diasca begins, and
%% so the same on all nodes while they act.
-module(weft_diasca_directory).

-export([new/0, update/3, find/2]).

%% @doc An empty table of the caller.
-spec new() -> ets:table().
new() ->
    Table = ets:new(?MODULE, [protected, {read_concurrency, true}]),
    true = ets:insert(Table, {last, 0}),
    Table.

%% @doc Adds those that were born, up to the last number, and removes those that are gone.
-spec update({Last :: weft_diasca_actor:id(), [{weft_diasca_actor:id(), pid()}]},
             [weft_diasca_actor:id()], ets:table()) -> ok.
update({Last, Born}, Gone, Table) ->
    true = ets:insert(Table, [{last, Last} | Born]),
    lists:foreach(fun(Id) -> ets:delete(Table, Id) end, Gone).

-spec find(weft_diasca_actor:id(), ets:table()) -> {ok, pid(), here | away} | gone | unknown.
find(Id, Table) ->
    case ets:lookup(Table, Id) of
        [{Id, Pid}] when node(Pid) =:= node() -> {ok, Pid, here};
        [{Id, Pid}] -> {ok, Pid, away};
        [] ->
            case ets:lookup(Table, last) of
                [{last, Last}] when Id > Last -> unknown;
                _ -> gone
            end
    end.

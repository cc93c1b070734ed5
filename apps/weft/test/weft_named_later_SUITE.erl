%% SPDX-License-Identifier: Apache-2.0
%% @doc A program that begins distribution by itself (`net_kernel:start'), after the application
%% weft: names, groups and locks go on, and other nodes see them.
-module(weft_named_later_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([what_was_there_stays_and_is_seen/1, distribution_ends_and_begins_again/1]).
%% Run on the nodes.
-export([holder/1, is_there/1, ended/1, lock/2]).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [what_was_there_stays_and_is_seen, distribution_ends_and_begins_again].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

what_was_there_stays_and_is_seen(Config) ->
    Other = started(other, Config),
    Node = started(none, Config),
    true = call(Node, ?MODULE, holder, [early]),
    Self = named(Node, late),
    ?assert(call(Node, ?MODULE, is_there, [early])),
    ?assertNot(lock(Node, early, [Self])),
    ?assert(lock(Node, new, [Self])),
    pong = call(Node, net_adm, ping, [name(Other)]),
    until(fun() -> [P || P <- call(Other, weft_pg, get_members, [early]), node(P) =:= Self] =/= []
          end),
    until(fun() -> is_pid(call(Other, weft_global, whereis_name, [early])) end),
    until(fun() -> lists:member(Self, call(Other, weft_global_late, lock_nodes, [])) end),
    ?assertNot(lock(Other, early, [Self, name(Other)])),
    true = call(Node, ?MODULE, holder, [late]),
    until(fun() -> call(Other, weft_global, whereis_name, [late]) =/= undefined end),
    [true = call(Node, ?MODULE, ended, [Name]) || Name <- [early, late]],
    [begin
         until(fun() -> call(Other, weft_global, whereis_name, [Name]) =:= undefined end),
         until(fun() -> call(Other, weft_pg, get_members, [Name]) =:= [] end)
     end || Name <- [early, late]],
    until(fun() -> lock(Other, early, [Self, name(Other)]) end).

distribution_ends_and_begins_again(Config) ->
    Node = started(none, Config),
    One = named(Node, one),
    true = call(Node, ?MODULE, holder, [kept]),
    ok = call(Node, net_kernel, stop, []),
    until(fun() -> call(Node, weft_global_late, lock_nodes, []) =:= [nonode@nohost] end),
    ?assert(lock(Node, alone, [nonode@nohost])),
    Two = named(Node, two),
    ?assertNotEqual(One, Two),
    ?assert(lock(Node, again, [Two])),
    ?assertNot(lock(Node, kept, [Two])),
    ?assert(call(Node, ?MODULE, is_there, [kept])).

%% --- small parts ------------------------------------------------------------------------------

started(Name, Config) ->
    Node = weft_test_nodes:start(Name, #{}, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

named(Node, Name) ->
    Self = node_name(Name),
    {ok, _} = call(Node, net_kernel, start, [[Self, shortnames]]),
    true = call(Node, erlang, set_cookie, [weft_test]),
    until(fun() -> call(Node, weft_global_late, lock_nodes, []) =:= [Self] end),
    Self.

%% @doc A process that is in a group, has a name and holds a lock, each of the same name.
holder(Name) ->
    Caller = self(),
    Pid = spawn(fun() ->
                        ok = weft_pg:join(Name, self()),
                        yes = weft_global:register_name(Name, self()),
                        true = weft_global:set_lock({Name, self()}),
                        true = register(Name, self()),
                        Caller ! {self(), ready},
                        receive the_end -> ok end
                end),
    receive {Pid, ready} -> is_there(Name) end.

is_there(Name) ->
    Pid = whereis(Name),
    {[Pid], Pid} =:= {weft_pg:get_members(Name), weft_global:whereis_name(Name)}.

ended(Name) -> exit(whereis(Name), kill).

lock(Node, Name, Nodes) -> call(Node, ?MODULE, lock, [Name, Nodes]).

%% @doc Whether somebody else would get the lock now.
lock(Name, Nodes) ->
    Id = {Name, self()},
    weft_global:set_lock(Id, Nodes, 0) andalso weft_global:del_lock(Id, Nodes).

call(Node, Module, Function, Args) -> weft_test_nodes:call(Node, Module, Function, Args).

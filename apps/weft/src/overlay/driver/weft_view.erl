%% SPDX-License-Identifier: Apache-2.0
%% @doc What the cores of this node know, for every process to read: members, neighbours, routes.
%% And what services have to know again when a process of theirs is restarted: the table outlives
%% all that write to it (`weft_sup' owns it).
%%
%% One named table with concurrent reads. The data path reads it in constant time and asks no
%% process. Drivers write the `{view, ..}' effects of their cores; other modules write their own
%% rows. Rows carry the name of the driver or module that wrote them, so that a restarted process
%% can find or remove those that it wrote before.
-module(weft_view).

-export([new/0, put/3, delete/2, clear/1, keys/1, lookup/1, all/0, all/1]).

%% @doc Creates the table, owned by the calling process, unless there is one.
-spec new() -> ok.
new() ->
    _ = ets:whereis(?MODULE) =/= undefined
        orelse ets:new(?MODULE, [named_table, public, set, {read_concurrency, true}]),
    ok.

%% @doc Writes one row in the name of Owner, a driver or a module.
-spec put(Owner :: atom(), Key :: term(), Value :: term()) -> ok.
put(Owner, Key, Value) ->
    true = ets:insert(?MODULE, {Key, Value, Owner}),
    ok.

%% @doc Removes one row.
-spec delete(Owner :: atom(), Key :: term()) -> ok.
delete(_Owner, Key) ->
    true = ets:delete(?MODULE, Key),
    ok.

%% @doc Removes all rows of Owner; without an overlay there are none.
-spec clear(Owner :: atom()) -> ok.
clear(Owner) ->
    _ = ets:whereis(?MODULE) =/= undefined andalso ets:match_delete(?MODULE, {'_', '_', Owner}),
    ok.

%% @doc The keys of all rows of Owner.
-spec keys(Owner :: atom()) -> [Key :: term()].
keys(Owner) ->
    ets:select(?MODULE, [{{'$1', '_', Owner}, [], ['$1']}]).

%% @doc The value of a key; `undefined' if there is none or no overlay runs.
-spec lookup(Key :: term()) -> term() | undefined.
lookup(Key) ->
    try ets:lookup(?MODULE, Key) of
        [{_, Value, _}] -> Value;
        [] -> undefined
    catch
        error:badarg -> undefined
    end.

%% @doc All rows, in term order; none if no overlay runs.
-spec all() -> [{Key :: term(), Value :: term()}].
all() ->
    select({'$1', '$2', '_'}, {{'$1', '$2'}}).

%% @doc The rows whose key is `{Kind, Name}', as pairs of name and value, in term order.
-spec all(Kind :: atom()) -> [{Name :: term(), Value :: term()}].
all(Kind) ->
    select({{Kind, '$1'}, '$2', '_'}, {{'$1', '$2'}}).

select(Head, Result) ->
    try ets:select(?MODULE, [{Head, [], [Result]}]) of
        Rows -> lists:sort(Rows)
    catch
        error:badarg -> []
    end.

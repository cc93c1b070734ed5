%% SPDX-License-Identifier: Apache-2.0
%% @doc The table of this node's lanes, and of where to reach other nodes: whom a message is for,
%% and whose queue to write to. Reads ask no process.
-module(weft_amqp_lanes).

-export([new/0, add/2, remove/2, lookup/1, count/0]).
-export([set_own/1, own/0, set_queue/2, delete_queue/1, queue/1]).
-export_type([own/0]).

-define(TABLE, weft_amqp_lanes).
-define(LANES_MAX, 65536).

%% How this node is at the broker: its queue, and who writes to those of others.
-type own() :: {up | blocked, #{own_queue := binary(), outbox := pid(),
                                part_bytes := pos_integer()}}
             | down.

%% @doc The table belongs to the caller.
-spec new() -> ok.
new() ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc Messages of lane Id are for Pid from now on. false: there is such a lane, or there are too
%% many.
-spec add(weft_amqp_message:id(), pid()) -> boolean().
add(Id, Pid) ->
    ets:info(?TABLE, size) < ?LANES_MAX andalso ets:insert_new(?TABLE, {{lane, Id}, Pid}).

%% @doc Messages of lane Id are for Pid no more. If they are for another process, it keeps them.
-spec remove(weft_amqp_message:id(), pid()) -> ok.
remove(Id, Pid) ->
    try ets:delete_object(?TABLE, {{lane, Id}, Pid}) of
        true -> ok
    catch
        %% The application has stopped first.
        error:badarg -> ok
    end.

-spec lookup(weft_amqp_message:id()) -> {ok, pid()} | error.
lookup(Id) -> value({lane, Id}).

-spec count() -> non_neg_integer().
count() -> ets:select_count(?TABLE, [{{{lane, '_'}, '_'}, [], [true]}]).

-spec set_own(own()) -> ok.
set_own(Own) -> write(own, Own).

-spec own() -> own().
own() ->
    case value(own) of
        {ok, Own} -> Own;
        error -> down
    end.

%% @doc By which queue a node is reached; `gone' if it has said that it stops.
-spec set_queue(node(), binary() | gone) -> ok.
set_queue(Node, Queue) -> write({queue, Node}, Queue).

-spec delete_queue(node()) -> ok.
delete_queue(Node) ->
    true = ets:delete(?TABLE, {queue, Node}),
    ok.

-spec queue(node()) -> {ok, binary() | gone} | error.
queue(Node) -> value({queue, Node}).

write(Key, Value) ->
    true = ets:insert(?TABLE, {Key, Value}),
    ok.

value(Key) ->
    try ets:lookup_element(?TABLE, Key, 2) of
        Value -> {ok, Value}
    catch
        error:badarg -> error
    end.

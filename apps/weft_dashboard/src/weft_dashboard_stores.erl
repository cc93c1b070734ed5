%% SPDX-License-Identifier: Apache-2.0
%% @doc What the ring and the store of keys and values do, on each node that runs them, and on all
%% of these together. The nodes are asked by `erpc', in bounded time, for what they also tell by
%% their metrics (`weft_ops_stores').
-module(weft_dashboard_stores).

-export([ask/1, answer/2]).
-export_type([row/0]).

%% Of the ring, if it runs: members, partitions and moving as this node knows them; owned,
%% handing_over, handed_over and handoffs_failed are its own. Of the store, if it runs: requests
%% that this node has made since it started (get, put, delete), what they took together (get_us,
%% put_us, delete_us), errors, running, and what its partitions have: hints (keys that wait here for
%% other nodes), objects, memory_bytes, file_bytes.
-type row() :: #{atom() => non_neg_integer()}.

-define(NODES_MAX, 200).
-define(CALL_MS, 3000).
-define(ALL_MS, 4000).
%% How long a request waits for its turn.
-define(TURN_MS, 4000).
%% Each node tells of the whole ring.
-define(OF_THE_RING, [members, partitions, moving]).
-define(OF_THE_STORE, [running, hints, objects, memory_bytes, file_bytes]).

%% @doc Asks these nodes, or the first of them if they are more than 200; `more': how many are left
%% out. `silent': those that do not answer.
-spec ask([node()]) -> weft_dashboard_api:answer().
ask(Nodes) ->
    weft_dashboard_look:in_time(?ALL_MS + ?TURN_MS, fun() -> asked(Nodes) end).

asked(Nodes) ->
    Asked = lists:sublist(Nodes, ?NODES_MAX),
    {Said, Silent} = weft_ask:all(Asked,
                                  fun(Node) ->
                                      erpc:call(Node, weft_ops_stores, all, [], ?CALL_MS)
                                  end, ?ALL_MS),
    {200, (answer(Said, erlang:system_time(millisecond)))#{silent => Silent,
                                                           more => length(Nodes) - length(Asked)}}.

%% @doc What is made of the answers, which came at that system time.
-spec answer([{node(), weft_ops_stores:stores()}], AtMs :: integer()) ->
          #{at_ms := integer(), nodes := [#{node := node(), has := row()}], together := row()}.
answer(Said, AtMs) ->
    Rows = [{Node, Row} || {Node, Stores} <- Said, Row <- [row(Stores)], Row =/= #{}],
    #{at_ms => AtMs, nodes => [#{node => Node, has => Row} || {Node, Row} <- Rows],
      together => lists:foldl(fun({_, Row}, All) -> together(Row, All) end, #{}, Rows)}.

together(Row, All) ->
    maps:fold(fun(Key, Value, Sums) ->
                  maps:update_with(Key, fun(Sum) -> combined(Key, Value, Sum) end, Value, Sums)
              end, All, Row).

combined(Key, Value, Most) ->
    case lists:member(Key, ?OF_THE_RING) of
        true -> max(Value, Most);
        false -> Value + Most
    end.

row(Stores) ->
    maps:merge(ring(Stores), store(Stores)).

ring(#{ring := #{members := Members, owned := Owned, partitions := Partitions, moving := Moving,
                 handoffs := Handoffs}}) ->
    #{members => maps:get(member, Members, 0), owned => Owned, partitions => Partitions,
      moving => Moving, handing_over => maps:get(running, Handoffs, 0),
      handed_over => maps:get(done, Handoffs, 0),
      handoffs_failed => maps:get(failed, Handoffs, 0)};
ring(_None) ->
    #{}.

store(#{kv := #{requests := Requests, request_us := Us, errors := Errors} = Kv}) ->
    maps:merge((maps:with(?OF_THE_STORE, Kv))#{errors => lists:sum(maps:values(Errors))},
               maps:from_list(lists:append([[{Kind, Count}, {us(Kind), maps:get(Kind, Us)}]
                                            || {Kind, Count} <- maps:to_list(Requests),
                                               us(Kind) =/= none])));
store(_None) ->
    #{}.

us(get) -> get_us;
us(put) -> put_us;
us(delete) -> delete_us;
us(_Later) -> none.

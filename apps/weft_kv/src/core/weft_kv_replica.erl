%% SPDX-License-Identifier: Apache-2.0
%% @doc What a replica makes of a request for one key, and when an object can be forgotten. Pure.
%% Who is asked and how many have to answer is decided by `weft_kv_coordinator_core'.
-module(weft_kv_replica).

-export([requested/4, is_crowding/4, grace_ms/4, is_waste/3, can_end/1]).

%% So long a cache remembers a deletion. What others have read or begun to write before it may be on
%% its way for as long as a request takes.
-define(CACHE_GRACE_MS, 10000).

%% @doc The object that the replica has from then on, which is also its answer.
-spec requested(weft_kv_coordinator_core:request(), weft_kv_object:writer(), Siblings :: boolean(),
                weft_kv_object:object()) -> weft_kv_object:object().
requested(read, _Actor, _Siblings, Object) ->
    Object;
requested({write, Value, Seen}, Actor, true, Object) ->
    weft_kv_object:put(Value, Seen, Actor, Object);
requested({write, Value, Seen}, Actor, false, Object) ->
    weft_kv_object:latest(weft_kv_object:put(Value, Seen, Actor, Object));
requested({merge, Other}, _Actor, Siblings, Object) ->
    weft_kv_object:merge(Other, Object, Siblings).

%% @doc Would a write add one to more siblings than there may be? One that replaces as many as it
%% adds, and what replicas bring each other, is always taken: that was acknowledged.
-spec is_crowding(weft_kv_coordinator_core:request(), Max :: pos_integer() | infinity,
                  Before :: weft_kv_object:object(), After :: weft_kv_object:object()) -> boolean().
is_crowding({write, _, _}, Max, Before, After) when is_integer(Max) ->
    weft_kv_object:count(After) > max(Max, weft_kv_object:count(Before));
is_crowding(_, _, _, _) ->
    false.

%% @doc How long it is remembered that something was deleted or is over. A cache forgets what is
%% over at once, but not a deletion of which others have yet to hear.
-spec grace_ms(weft_kv_object:object(), weft_kv_table:kind(), IsHint :: boolean(),
               GraceMs :: non_neg_integer()) -> non_neg_integer().
grace_ms(Object, #{evict := true}, IsHint, Ms) ->
    case {[deleted || #{value := deleted} <- weft_kv_object:siblings(Object)], IsHint} of
        {[], _} -> 0;
        {[_ | _], true} -> Ms;
        {[_ | _], false} -> min(Ms, ?CACHE_GRACE_MS)
    end;
grace_ms(_, _, _, Ms) -> Ms.

%% @doc Was everything deleted, or over, for so long that the object can be forgotten? A replica
%% that was away for longer brings old values back. (Deletions of earlier versions may have a time
%% when they are over, and are kept until then.)
-spec is_waste(NowMs :: integer(), GraceMs :: non_neg_integer(), weft_kv_object:object()) ->
          boolean().
is_waste(NowMs, GraceMs, Object) ->
    lists:all(fun(#{value := deleted, expires_ms := never, written_ms := Ms}) ->
                      Ms + GraceMs =< NowMs;
                 (#{expires_ms := never}) -> false;
                 (#{expires_ms := Ms}) -> Ms + GraceMs =< NowMs
              end, weft_kv_object:siblings(Object)).

%% @doc Can it be forgotten at some time, if nobody writes it again?
-spec can_end(weft_kv_object:object()) -> boolean().
can_end(Object) ->
    lists:all(fun(#{value := deleted}) -> true;
                 (#{expires_ms := Ms}) -> Ms =/= never
              end, weft_kv_object:siblings(Object)).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Which numbers of a label were given to which queue of a channel. A part of `weft_causal'.
%%
%% A queue is a process that sends (`weft_channel_sender'). When it ends, what it was given may be
%% lost, in the queue or on its way, and nobody else knows what that was. So each queue is monitored
%% from the first number on; its end comes as `{weft_queue_ended, reference(), process, pid(),
%% term()}'.
%%
%% Numbers are kept in runs, the newest first. There are several if a label uses several queues for
%% a participant. Over a bound the older half becomes one run. Then it has numbers of other queues
%% as well; these were given long before.
-module(weft_causal_given).

-export([new/0, add/4, is_open/2, ended/2, forget/2, except/2]).
-export_type([given/0, runs/0]).

-define(RUNS_MAX, 64).

-type runs() :: [{First :: pos_integer(), Last :: pos_integer()}].
-opaque given() :: #{Queue :: pid() => #{weft_causal_core:participant() => runs()}}.

-spec new() -> given().
new() -> #{}.

%% @doc A queue has got the message with that number for a participant.
-spec add(Queue :: pid(), weft_causal_core:participant(), pos_integer(), given()) -> given().
add(Queue, To, Number, Given) ->
    case Given of
        #{Queue := #{To := Runs} = All} -> Given#{Queue := All#{To := bounded(add(Number, Runs))}};
        #{Queue := All} -> Given#{Queue := All#{To => [{Number, Number}]}};
        #{} ->
            _ = monitor(process, Queue, [{tag, weft_queue_ended}]),
            Given#{Queue => #{To => [{Number, Number}]}}
    end.

add(Number, [{First, Last} | Runs]) when Number =:= Last + 1 -> [{First, Number} | Runs];
add(Number, [{_, Last} | _] = Runs) when Number > Last -> [{Number, Number} | Runs];
add(Number, [{First, _} | _] = Runs) when Number >= First -> Runs;
add(Number, [Run | Runs]) -> [Run | add(Number, Runs)];
add(Number, []) -> [{Number, Number}].

bounded(Runs) when length(Runs) =< ?RUNS_MAX ->
    Runs;
bounded(Runs) ->
    {Newer, [{_, Last} | _] = Older} = lists:split(?RUNS_MAX div 2, Runs),
    {First, _} = lists:last(Older),
    Newer ++ [{First, Last}].

%% @doc Has the queue got a number, and not ended?
-spec is_open(Queue :: pid() | none, given()) -> boolean().
is_open(Queue, Given) -> is_map_key(Queue, Given).

%% @doc The queue has ended: what it had got, for each participant.
-spec ended(Queue :: pid(), given()) -> {[{weft_causal_core:participant(), runs()}], given()}.
ended(Queue, Given) ->
    {All, Left} = maps:take(Queue, Given),
    {maps:to_list(All), Left}.

%% @doc A participant has ended, and waits for nothing.
-spec forget(weft_causal_core:participant(), given()) -> given().
forget(To, Given) -> maps:map(fun(_Queue, All) -> maps:remove(To, All) end, Given).

%% @doc Without these numbers.
-spec except([pos_integer()], runs()) -> runs().
except(Numbers, Runs) -> cut(lists:reverse(lists:sort(Numbers)), Runs).

%% Both from the highest number down.
cut([], Runs) -> Runs;
cut(_Numbers, []) -> [];
cut([Number | Lower], [{_, Last} | _] = Runs) when Number > Last -> cut(Lower, Runs);
cut([Number | _] = Numbers, [{First, _} = Run | Runs]) when Number < First ->
    [Run | cut(Numbers, Runs)];
cut([Number | Lower], [{First, Last} | Runs]) ->
    [{Number + 1, Last} || Number < Last]
        ++ cut(Lower, [{First, Number - 1} || First < Number] ++ Runs).

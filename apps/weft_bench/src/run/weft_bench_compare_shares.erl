%% SPDX-License-Identifier: Apache-2.0
%% @doc Compares what two runs have counted once, by its share: operations that failed, of all
%% operations, and the time that stalled, of the time that was measured. Of both a longer run has
%% more.
%%
%% If operations fail as often as before, each failure is one of the new run with the same
%% probability: the part that the new run has of all operations. Of that probability the failures
%% themselves tell an interval (that of Wilson, which contains it in 95 of 100 cases), which is here
%% turned into one of the change. So nine failures after none are worse, and one is noise. Failures
%% that have a common cause are more often far apart than it says.
%%
%% What waits for less than a second is no stall, and one that is a little longer counts in full. So
%% less than a second is noise.
-module(weft_bench_compare_shares).

-export([compared/3]).
-export_type([compared/0]).

%% Less than 1 is worse; none where there is nothing to divide by.
-type compared() :: {Change :: float() | none, weft_report_interval:interval(),
                     IsNoise :: boolean()}.

%% Of a normal distribution, 95 of 100 are not farther off.
-define(DEVIATIONS, 1.96).
-define(STALL_S, 1).

%% @doc None for other metrics, for runs that have not recorded of how much it is a share, and where
%% both have several repetitions, which tell more.
-spec compared(weft_report_results:key(), Old :: weft_report_results:results(),
               New :: weft_report_results:results()) -> compared() | none.
compared({_, _, Metric} = Key, Old, New) ->
    case {part(Key, Old), part(Key, New)} of
        {none, _} -> none;
        {_, none} -> none;
        {{Before, _, _}, {Now, _, _}} when Before > 1, Now > 1 -> none;
        {{_, Was, OfOld}, {_, Is, OfNew}} -> change(Metric, {Was, OfOld}, {Is, OfNew})
    end.

%% Of how many repetitions, how much that is, and of how much.
part({Cell, Variant, Metric}, Results) ->
    case {weft_report_results:measured(Cell, Variant, Metric, Results),
          weft_report_results:measured(Cell, Variant, whole(Metric), Results)} of
        {{ok, #{count := Count, sum := Failed}}, {ok, #{sum := Done}}}
          when Metric =:= <<"failed_operations">> ->
            {Count, Failed, Done + Failed};
        {{ok, #{count := Count, sum := StalledS}}, {ok, #{sum := AllS}}} when AllS > 0 ->
            {Count, StalledS, AllS};
        _ ->
            none
    end.

whole(<<"failed_operations">>) -> <<"calls">>;
whole(<<"stalled_s">>) -> <<"measured_s">>;
whole(_Other) -> <<>>.

change(<<"failed_operations">>, {Was, _}, {Is, _}) when Was + Is == 0 ->
    {none, none, false};
change(<<"failed_operations">>, {Was, OfOld}, {Is, OfNew}) ->
    {Low, High} = wilson(Is, Was + Is),
    Equal = OfNew / (OfOld + OfNew),
    IsNoise = Low =< Equal andalso Equal =< High,
    case Was > 0 andalso Is > 0 of
        true ->
            Turned = fun(OfFailures) -> (1 - OfFailures) / OfFailures * OfNew / OfOld end,
            {Turned(Is / (Was + Is)), {Turned(High), Turned(Low)}, IsNoise};
        false ->
            {none, none, IsNoise}
    end;
change(<<"stalled_s">>, {Was, OfOld}, {Is, OfNew}) ->
    IsNoise = abs(Is - Was * OfNew / OfOld) < ?STALL_S,
    case Was > 0 andalso Is > 0 of
        true -> {Was / OfOld / (Is / OfNew), none, IsNoise};
        false -> {none, none, IsNoise}
    end.

%% The interval of a probability, of which so many of all are known.
wilson(Some, All) ->
    Share = Some / All,
    Square = ?DEVIATIONS * ?DEVIATIONS / All,
    Half = math:sqrt(Square * (Share * (1 - Share) + Square / 4)),
    {(Share + Square / 2 - Half) / (1 + Square), (Share + Square / 2 + Half) / (1 + Square)}.

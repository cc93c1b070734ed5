%% SPDX-License-Identifier: Apache-2.0
%% @doc When is throughput back after a fault? Pure, over what was done in each second. A fault that
%% throughput does not notice took no time.
-module(weft_store_timeline).

-export([recovery/3, longest/3]).

%% As much as before, within this.
-define(BACK, 0.95).
%% For so many seconds on average; one second is often slower on a machine that is shared.
-define(SECONDS, 3).

%% @doc Seconds from the second Begin until throughput is at least 95 % of that before, on average
%% of three seconds. None if these are not before End.
-spec recovery(Done :: [non_neg_integer()], {Begin :: non_neg_integer(), End :: pos_integer()},
               Before :: number()) -> {ok, non_neg_integer()} | none.
recovery(Done, {Begin, End}, Before) ->
    back(lists:sublist(lists:nthtail(Begin, Done), End - Begin), ?BACK * Before, 0).

%% @doc The longest recovery of several faults, each in its own time. None if there is none after
%% one of them.
-spec longest(Done :: [non_neg_integer()],
              [{Begin :: non_neg_integer(), End :: pos_integer()}, ...], Before :: number()) ->
          {ok, non_neg_integer()} | none.
longest(Done, Times, Before) ->
    All = [recovery(Done, Time, Before) || Time <- Times],
    case lists:member(none, All) of
        true -> none;
        false -> lists:max(All)
    end.

back(Done, _Wanted, _Second) when length(Done) < ?SECONDS ->
    none;
back([_ | Later] = Done, Wanted, Second) ->
    case lists:sum(lists:sublist(Done, ?SECONDS)) / ?SECONDS >= Wanted of
        true -> {ok, Second};
        false -> back(Later, Wanted, Second + 1)
    end.

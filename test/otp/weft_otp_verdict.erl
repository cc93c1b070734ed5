%% SPDX-License-Identifier: Apache-2.0
%% @doc Compares what became of the cases of OTP's suites on stock distribution and in a variant
%% with weft, and the differences with the list of accepted ones. Pure.
%%
%% A difference is a case that passes on stock and does anything else in the variant. An accepted
%% one is `{accepted, Suite, Case, Variants, Reason}'. A listed case that passes is a problem too,
%% so the list can only shrink. What fails on stock is nothing to compare with.
-module(weft_otp_verdict).

-export([differences/3, judge/3, accepted/1, counts/1, again/1]).
-export_type([difference/0, accepted/0, verdict/0]).

-type difference() :: #{'case' := atom(), status := failed | skipped | not_run, reason := string(),
                        groups := [atom()]}.
-type accepted() :: {accepted, Suite :: atom(), Case :: atom(), [weft_otp_run:variant()],
                     Reason :: string()}.
%% Entries of the list that say nothing any more are `stale'.
-type verdict() :: #{accepted := [{difference(), Reason :: string()}],
                     unexpected := [difference()], stale := [atom()]}.

%% What prepares or ends a suite or a group is no case.
-define(FRAMES, [init_per_suite, end_per_suite, init_per_group, end_per_group]).

%% @doc Exit tells why cases may be missing. Sorted by name.
-spec differences(Stock :: weft_otp_run:results(), Variant :: weft_otp_run:results(),
                  Exit :: done | string()) -> [difference()].
differences(Stock, Variant, Exit) ->
    [Difference || {Case, #{status := passed, groups := Groups}} <- lists:sort(maps:to_list(Stock)),
                   Difference <- difference(Case, Groups, Variant, Exit)].

difference(Case, Groups, Variant, Exit) ->
    case Variant of
        #{Case := #{status := passed}} ->
            [];
        #{Case := #{status := Status, reason := Reason, groups := Here}} ->
            [#{'case' => Case, status => Status, reason => Reason, groups => Here}];
        #{} ->
            [#{'case' => Case, status => not_run, reason => why_missing(Exit), groups => Groups}]
    end.

why_missing(done) -> "the suite came to its end without it";
why_missing(Exit) -> Exit.

%% @doc Accepted holds the entries for this suite and variant, see accepted/1. Only a case that is
%% in Variant can make an entry stale: parts of a suite can be run.
-spec judge([difference()], Variant :: weft_otp_run:results(), #{atom() => string()}) -> verdict().
judge(Differences, Variant, Accepted) ->
    #{accepted => [{Difference, maps:get(Case, Accepted)}
                   || #{'case' := Case} = Difference <- Differences, is_map_key(Case, Accepted)],
      unexpected => [Difference || #{'case' := Case} = Difference <- Differences,
                                   not is_map_key(Case, Accepted)],
      stale => [Case || Case <- lists:sort(maps:keys(Accepted)), passed(Case, Variant)]}.

passed(Case, Results) ->
    case Results of
        #{Case := #{status := passed}} -> true;
        #{} -> false
    end.

%% @doc The list, by suite and variant: what is accepted there, with its reason. A list with the
%% same entry twice, or an entry without a reason, is an error.
-spec accepted([accepted()]) -> #{{atom(), weft_otp_run:variant()} => #{atom() => string()}}.
accepted(Entries) ->
    lists:foldl(fun accept/2, #{}, [{{Suite, Variant}, Case, Reason}
                                    || {accepted, Suite, Case, Variants, [_ | _] = Reason} = Entry
                                           <- checked(Entries),
                                       Variant <- variants(Variants, Entry)]).

checked(Entries) ->
    [checked_entry(Entry) || Entry <- Entries].

checked_entry({accepted, _, _, [_ | _], [_ | _]} = Entry) -> Entry;
checked_entry(Entry) -> error({no_accepted_difference, Entry}).

variants(Variants, Entry) ->
    Variants -- [weft, from_weft, to_weft, migrated] =:= [] orelse error({unknown_variant, Entry}),
    Variants.

accept({Key, Case, Reason}, Accepted) ->
    Cases = maps:get(Key, Accepted, #{}),
    is_map_key(Case, Cases) andalso error({listed_twice, Key, Case}),
    Accepted#{Key => Cases#{Case => Reason}}.

%% @doc How many passed, failed and were skipped.
-spec counts(weft_otp_run:results()) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
counts(Results) ->
    All = [Status || {Case, #{status := Status}} <- maps:to_list(Results),
                     not lists:member(Case, ?FRAMES)],
    {count(passed, All), count(failed, All), count(skipped, All)}.

count(Status, All) ->
    length([S || S <- All, S =:= Status]).

%% @doc What to run to see differences once more, as `cases' of weft_otp_run.
-spec again([difference()]) -> [{atom(), [atom()]}].
again(Differences) ->
    Pairs = [{Group, Case} || #{'case' := Case, groups := Groups} <- Differences, Group <- Groups],
    [{Group, lists:usort([Case || {G, Case} <- Pairs, G =:= Group])}
     || Group <- lists:usort([G || {G, _} <- Pairs])].

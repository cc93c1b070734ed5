%% SPDX-License-Identifier: Apache-2.0
%% @doc A page of the keys of one partition: which replicas are asked for it, when those that have
%% answered are enough, and what they have together. Pure.
%%
%% It is as with a read of a key (`weft_kv_coordinator_core'): `r' replicas have to answer, `pr' of
%% them as owners. One that may have forgotten some of its keys (`weft_kv_recall') says so. What it
%% has is in the page, but the next replica is asked, too; and if there are not enough that count,
%% there is no page, but an error. So no key is left out without a word, unless an owner is away
%% that alone still has it, and all that are there have answered (docs/guide/kv.md).
%%
%% Replicas are asked one after the other (`in_turn'), owners first, until there are enough, or all
%% of them at once (`at_once'). Who is to have each write that was acknowledged, wherever `w'
%% replicas have it, needs so many `owners' that they meet (`meeting/1'). As for `r', those that
%% lack something count for that once all that are there have answered: a read finds no more then.
%% In turn, nobody is asked any more once those that are left can not make it enough. One that is
%% asked leaves time for those that could answer in its place, if there are any (`are_needed/1').
%%
%% Not here: who asks them (`weft_kv_fold').
-module(weft_kv_coverage).

-export([new/4, meeting/1, command/4, next/1, are_needed/1, heard/3, page/2]).
-export_type([state/0, page/0, needed/0]).

-type place() :: weft_kv_coordinator_core:place().
-type needed() :: #{r := pos_integer(), pr := non_neg_integer(), owners => pos_integer()}.
-type page() :: {[{binary(), weft_kv_object:object()}], IsLast :: boolean()}.

-record(coverage, {how :: in_turn | at_once,
                   n :: pos_integer(),
                   needed :: needed(),
                   places :: [place()],
                   %% Those that were not asked yet.
                   left :: [place()],
                   answered = [] :: [{place(), page()}],
                   incomplete = [] :: [place()],
                   failed = [] :: [{place(), term()}]}).
-opaque state() :: #coverage{}.

%% @doc Nobody was asked yet.
-spec new(in_turn | at_once, needed(), N :: pos_integer(), [place()]) -> state().
new(How, Needed, N, Places) ->
    {Owners, Others} = lists:partition(fun is_owner/1, Places),
    #coverage{how = How, n = N, needed = maps:with([r, pr, owners], Needed), places = Places,
              left = Owners ++ Others}.

is_owner({_, _, Role}) -> Role =:= primary.

%% @doc So many owners meet each write of the bucket that was acknowledged.
-spec meeting(weft_kv_bucket:options()) -> needed().
meeting(#{n := N, r := R, w := W, pr := PR}) ->
    Owners = max(R, N - W + 1),
    #{r => Owners, pr => PR, owners => Owners}.

%% @doc What a replica is asked for the keys behind this one. Whether it may have forgotten some is
%% asked only where it gets them back (`IsCompared'), and of owners. (An earlier version knows only
%% the second form.)
-spec command(place(), After :: binary(), weft_kv_bucket:options(), IsCompared :: boolean()) ->
          {page, binary(), pos_integer()} | {page, binary()}.
command({_, _, primary}, After, #{n := N, evict := false}, true) -> {page, After, N};
command(_, After, _, _) -> {page, After}.

%% @doc What comes next.
-spec next(state()) -> {ask, [place(), ...], state()} | ok | {error, term()}.
next(#coverage{left = []} = State) ->
    case is_enough(State) of
        true -> ok;
        false -> {error, too_few(State)}
    end;
next(#coverage{how = at_once, left = Places} = State) ->
    {ask, Places, State#coverage{left = []}};
next(#coverage{how = in_turn, left = [Place | Left]} = State) ->
    case {is_enough(State), may_be_enough(State)} of
        {true, _} -> ok;
        {false, true} -> {ask, [Place], State#coverage{left = Left}};
        {false, false} -> {error, too_few(State)}
    end.

%% @doc Is there no page without those that are asked now, whoever else answers?
-spec are_needed(state()) -> boolean().
are_needed(State) -> not may_be_enough(State).

%% If all that are left answer, and lack nothing.
may_be_enough(#coverage{left = Left, answered = Answered} = State) ->
    is_enough(State#coverage{answered = [{Place, {[], true}} || Place <- Left] ++ Answered}).

is_enough(#coverage{needed = #{r := R, pr := PR} = Needed} = State) ->
    {Answers, Owners} = counting(State),
    length(Answers) >= R andalso primaries(Owners) >= PR
        andalso primaries(Answers) >= maps:get(owners, Needed, 0).

primaries(Places) -> length(lists:filter(fun is_owner/1, Places)).

counting(#coverage{places = Places, n = N, answered = Answered, incomplete = Incomplete}) ->
    weft_kv_recall:counting([Place || {Place, _} <- Answered], Incomplete, Places, N).

too_few(#coverage{needed = Needed, failed = Failed, incomplete = Incomplete} = State) ->
    {Answers, _} = counting(State),
    {too_few, #{needed => Needed, answered => length(Answers),
                failed => [{Node, Reason} || {{_, Node, _}, Reason} <- lists:reverse(Failed)]
                    ++ [{Node, incomplete} || {_, Node, _} <- lists:reverse(Incomplete)]}}.

%% @doc What a replica has answered.
-spec heard(place(), {ok, {ok | incomplete, page()} | page() | {error, term()}} | {error, term()},
            state()) -> state().
heard(Place, {ok, {error, Reason}}, State) ->
    heard(Place, {error, Reason}, State);
heard(Place, {ok, {ok, Page}}, State) ->
    heard(Place, {ok, Page}, State);
heard(Place, {ok, {incomplete, Page}}, #coverage{incomplete = Incomplete} = State) ->
    heard(Place, {ok, Page}, State#coverage{incomplete = [Place | Incomplete]});
heard(Place, {ok, {Items, IsLast}}, #coverage{answered = Answered} = State) when is_list(Items) ->
    State#coverage{answered = [{Place, {Items, IsLast}} | Answered]};
heard(Place, {error, Reason}, #coverage{failed = Failed} = State) ->
    State#coverage{failed = [{Place, Reason} | Failed]}.

%% @doc What those that have answered have together, in the order of the keys, and up to which key
%% that is all.
-spec page(Siblings :: boolean(), state()) ->
          {[{binary(), weft_kv_object:object()}], all | (Last :: binary())}.
page(Siblings, #coverage{answered = Answered}) ->
    Pages = [Page || {_, Page} <- Answered],
    Until = until(Pages),
    {merged(Until, Siblings, Pages), Until}.

%% Up to here all pages go.
until(Pages) ->
    case [element(1, lists:last(Items)) || {Items, false} <- Pages] of
        [] -> all;
        Lasts -> lists:min(Lasts)
    end.

merged(Until, Siblings, Pages) ->
    Objects = [Item || {Items, _} <- Pages, {Key, _} = Item <- Items,
                       Until =:= all orelse Key =< Until],
    lists:sort(maps:to_list(lists:foldl(fun({Key, Object}, All) ->
                                            maps:update_with(Key, fun(Other) ->
                                                weft_kv_object:merge(Object, Other, Siblings)
                                            end, Object, All)
                                        end, #{}, Objects))).

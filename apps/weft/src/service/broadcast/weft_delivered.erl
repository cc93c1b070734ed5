%% SPDX-License-Identifier: Apache-2.0
%% @doc Which messages of each origin were delivered, kept as ranges of their numbers: this takes
%% little memory, and nothing is forgotten while it could come again.
%%
%% Pure part of `weft_plumtree_core'. An origin is one start of a node; it numbers its messages 1,
%% 2, 3 ... Numbers below the first one heard are open: such a message may still come, or may be
%% from before this node started. A gap above it is a missed message. Once a gap is older than
%% `give_up_ms' it is reported and closed, because no node keeps the message any more. An origin
%% that was silent for `forget_ms' is forgotten.
-module(weft_delivered).

-export([new/1, is_new/2, add/3, give_up/2, in_ranges/2, to_ranges/1]).
-export_type([delivered/0, origin/0, id/0, range/0]).

-type origin() :: {weft_core:node_id(), Incarnation :: non_neg_integer()}.
-type id() :: {origin(), Number :: pos_integer()}.
-type range() :: {From :: pos_integer(), To :: pos_integer()}.

-record(delivered, {
    %% Ranges are disjoint, do not touch, and the highest is first.
    origins = #{} :: #{origin() => {[range()], LastMs :: integer(), GapMs :: integer() | none}},
    ranges_max :: pos_integer(),
    origins_max :: pos_integer(),
    give_up_ms :: pos_integer(),
    forget_ms :: pos_integer()}).

-opaque delivered() :: #delivered{}.

%% @doc Nothing delivered yet. Options: `give_up_ms', `forget_ms' (longer than any node keeps a
%% message), `ranges_max' (64) for an origin, and `origins_max' (20000): beyond it the one that was
%% silent for longest is forgotten.
-spec new(#{give_up_ms := pos_integer(), forget_ms := pos_integer(), atom() => term()}) ->
          delivered().
new(#{give_up_ms := GiveUpMs, forget_ms := ForgetMs} = Options) ->
    #delivered{ranges_max = maps:get(ranges_max, Options, 64), give_up_ms = GiveUpMs,
               origins_max = maps:get(origins_max, Options, 20000), forget_ms = ForgetMs}.

%% @doc Whether the message was not delivered yet.
-spec is_new(id(), delivered()) -> boolean().
is_new({Origin, Number}, #delivered{origins = Origins}) ->
    case Origins of
        #{Origin := {Ranges, _, _}} -> not in_ranges(Number, Ranges);
        #{} -> true
    end.

%% @doc The message is delivered now.
-spec add(id(), NowMs :: integer(), delivered()) -> delivered().
add({Origin, Number}, NowMs, #delivered{origins = Origins0, ranges_max = Max} = Delivered) ->
    {Ranges0, _, GapMs} = maps:get(Origin, Origins0, {[], NowMs, none}),
    Ranges = bound(Max, insert(Number, Ranges0)),
    Entry = {Ranges, NowMs, case Ranges of
                                [_] -> none;
                                _ when GapMs =:= none -> NowMs;
                                _ -> GapMs
                            end},
    Delivered#delivered{origins = bound_origins(Delivered#delivered.origins_max,
                                                Origins0#{Origin => Entry})}.

insert(N, [{From, To} | Rest]) when N =:= To + 1 -> [{From, N} | Rest];
insert(N, [{_, To} | _] = Ranges) when N > To -> [{N, N} | Ranges];
insert(N, [{From, _} | _] = Ranges) when N >= From -> Ranges;
insert(N, [{From, To} | Rest]) when N =:= From - 1 -> join({N, To}, Rest);
insert(N, [Range | Rest]) -> join(Range, insert(N, Rest));
insert(N, []) -> [{N, N}].

join({From, To}, [{Lower, Below} | Rest]) when Below =:= From - 1 -> [{Lower, To} | Rest];
join(Range, Rest) -> [Range | Rest].

%% Too many gaps: the lowest one counts as delivered.
bound(Max, Ranges) when length(Ranges) =< Max -> Ranges;
bound(Max, Ranges) ->
    {High, [{_, To}, {From, _}]} = lists:split(Max - 1, Ranges),
    High ++ [{From, To}].

bound_origins(Max, Origins) when map_size(Origins) =< Max -> Origins;
bound_origins(_Max, Origins) ->
    {_, Oldest} = lists:min([{LastMs, Origin}
                             || {Origin, {_, LastMs, _}} <- maps:to_list(Origins)]),
    maps:remove(Oldest, Origins).

%% @doc Closes old gaps and forgets silent origins. The result names the numbers given up.
-spec give_up(NowMs :: integer(), delivered()) -> {[{origin(), [range()]}], delivered()}.
give_up(NowMs, #delivered{origins = Origins, give_up_ms = GiveUpMs, forget_ms = ForgetMs} = D) ->
    Kept = maps:filter(fun(_, {_, LastMs, _}) -> NowMs - LastMs < ForgetMs end, Origins),
    Old = [{Origin, Ranges} || {Origin, {Ranges, _, GapMs}} <- lists:sort(maps:to_list(Kept)),
                               GapMs =/= none, NowMs - GapMs >= GiveUpMs],
    Closed = lists:foldl(fun({Origin, Ranges}, Acc) -> close(Origin, Ranges, Acc) end, Kept, Old),
    {[{Origin, gaps(Ranges)} || {Origin, Ranges} <- Old], D#delivered{origins = Closed}}.

close(Origin, Ranges, Origins) ->
    #{Origin := {_, LastMs, _}} = Origins,
    {From, _} = lists:last(Ranges),
    {_, To} = hd(Ranges),
    Origins#{Origin := {[{From, To}], LastMs, none}}.

gaps([{From, _}, {_, To} = Lower | Rest]) -> [{To + 1, From - 1} | gaps([Lower | Rest])];
gaps([_Lowest]) -> [].

%% @doc Whether a number is in one of the ranges.
-spec in_ranges(pos_integer(), [range()]) -> boolean().
in_ranges(N, Ranges) ->
    lists:any(fun({From, To}) -> N >= From andalso N =< To end, Ranges).

%% @doc Numbers as ranges, the highest first.
-spec to_ranges([pos_integer()]) -> [range()].
to_ranges(Numbers) ->
    lists:foldl(fun insert/2, [], lists:sort(Numbers)).

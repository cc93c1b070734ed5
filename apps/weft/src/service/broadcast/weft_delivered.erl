%% SPDX-License-Identifier: Apache-2.0
%% @doc Which messages of each origin were delivered, kept as ranges of their numbers: this takes
%% little memory, and nothing is forgotten while it could come again.
%%
%% Pure part of `weft_plumtree_core'. An origin is one start of a node; it numbers its messages 1,
%% 2, 3 ... Numbers below the first one heard are open: such a message may still come, or may be
%% from before this node started. A gap above it is a missed message. Once a gap is older than
%% `give_up_ms', and before it is twice as old, it is closed, because no node keeps the message any
%% more. If there are too many gaps, the lowest one is closed at once. How much was given up is
%% reported. An origin that was silent for `forget_ms' and has no gap is forgotten.
-module(weft_delivered).

-export([new/1, is_new/2, add/3, give_up/2, in_ranges/2, to_ranges/1]).
-export_type([delivered/0, origin/0, id/0, range/0]).

-type origin() :: {weft_core:node_id(), Incarnation :: non_neg_integer()}.
-type id() :: {origin(), Number :: pos_integer()}.
-type range() :: {From :: pos_integer(), To :: pos_integer()}.

-record(heard, {
    %% Disjoint, they do not touch, and the highest is first.
    ranges = [] :: [range()],
    last_ms :: integer(),
    %% The gaps within the range are there since then, or longer.
    gaps = none :: none | {SinceMs :: integer(), range()},
    %% So many messages are given up, and not reported yet.
    lost = 0 :: non_neg_integer()}).

%% Of earlier code, whose state may be here still when this one is loaded.
-type former() :: {[range()], LastMs :: integer(), GapMs :: integer() | none}.

-record(delivered, {
    origins = #{} :: #{origin() => #heard{} | former()},
    ranges_max :: pos_integer(),
    origins_max :: pos_integer(),
    give_up_ms :: pos_integer(),
    forget_ms :: pos_integer()}).

-opaque delivered() :: #delivered{}.

%% @doc Nothing delivered yet. Options: `give_up_ms', `forget_ms' (longer than any node keeps a
%% message), `ranges_max' (256) for an origin, and `origins_max' (20000): beyond it the one that was
%% silent for longest is forgotten.
-spec new(#{give_up_ms := pos_integer(), forget_ms := pos_integer(), atom() => term()}) ->
          delivered().
new(#{give_up_ms := GiveUpMs, forget_ms := ForgetMs} = Options) ->
    #delivered{ranges_max = maps:get(ranges_max, Options, 256), give_up_ms = GiveUpMs,
               origins_max = maps:get(origins_max, Options, 20000), forget_ms = ForgetMs}.

%% @doc Whether the message was not delivered yet.
-spec is_new(id(), delivered()) -> boolean().
is_new({Origin, Number}, #delivered{origins = Origins}) ->
    case Origins of
        #{Origin := Entry} -> not in_ranges(Number, (heard(Entry))#heard.ranges);
        #{} -> true
    end.

heard(#heard{} = Heard) -> Heard;
heard({Ranges, LastMs, none}) -> #heard{ranges = Ranges, last_ms = LastMs};
heard({Ranges, LastMs, GapMs}) ->
    #heard{ranges = Ranges, last_ms = LastMs, gaps = {GapMs, span(Ranges)}}.

%% @doc The message is delivered now.
-spec add(id(), NowMs :: integer(), delivered()) -> delivered().
add({Origin, Number}, NowMs, #delivered{origins = Origins0, ranges_max = Max} = Delivered) ->
    Entry = maps:get(Origin, Origins0, #heard{last_ms = NowMs}),
    #heard{ranges = Ranges0} = Heard0 = heard(Entry),
    Heard = bound(Max, Heard0#heard{ranges = insert(Number, Ranges0), last_ms = NowMs}),
    Delivered#delivered{origins = bound_origins(Delivered#delivered.origins_max,
                                                Origins0#{Origin => with_gaps(NowMs, Heard)})}.

insert(N, [{From, To} | Rest]) when N =:= To + 1 -> [{From, N} | Rest];
insert(N, [{_, To} | _] = Ranges) when N > To -> [{N, N} | Ranges];
insert(N, [{From, _} | _] = Ranges) when N >= From -> Ranges;
insert(N, [{From, To} | Rest]) when N =:= From - 1 -> join({N, To}, Rest);
insert(N, [Range | Rest]) -> join(Range, insert(N, Rest));
insert(N, []) -> [{N, N}].

join({From, To}, [{Lower, Below} | Rest]) when Below =:= From - 1 -> [{Lower, To} | Rest];
join(Range, Rest) -> [Range | Rest].

%% Too many gaps: the lowest one counts as delivered.
bound(Max, #heard{ranges = Ranges} = Heard) when length(Ranges) =< Max -> Heard;
bound(Max, #heard{ranges = Ranges, lost = Lost} = Heard) ->
    {High, Lowest} = lists:split(Max - 1, Ranges),
    Heard#heard{ranges = High ++ [span(Lowest)], lost = Lost + lacking(Lowest)}.

%% Which gaps there are now, unless older ones are known.
with_gaps(_NowMs, #heard{ranges = [_]} = Heard) -> Heard#heard{gaps = none};
with_gaps(NowMs, #heard{ranges = Ranges, gaps = none} = Heard) ->
    Heard#heard{gaps = {NowMs, span(Ranges)}};
with_gaps(_NowMs, Heard) -> Heard.

span([{_, To} | _] = Ranges) ->
    {From, _} = lists:last(Ranges),
    {From, To}.

%% How many numbers are in the gaps between the ranges.
lacking([{From, _}, {_, To} = Lower | Rest]) -> From - To - 1 + lacking([Lower | Rest]);
lacking([_Lowest]) -> 0.

bound_origins(Max, Origins) when map_size(Origins) =< Max -> Origins;
bound_origins(_Max, Origins) ->
    {_, Oldest} = lists:min([{(heard(Entry))#heard.last_ms, Origin}
                             || {Origin, Entry} <- maps:to_list(Origins)]),
    maps:remove(Oldest, Origins).

%% @doc Closes old gaps and forgets silent origins. The result says of which origins messages were
%% given up since the last call, and how many.
-spec give_up(NowMs :: integer(), delivered()) ->
          {[{origin(), Lost :: pos_integer()}], delivered()}.
give_up(NowMs, #delivered{origins = Origins, give_up_ms = GiveUpMs, forget_ms = ForgetMs} = D) ->
    Closed = maps:map(fun(_, Entry) -> close(NowMs, NowMs - GiveUpMs, heard(Entry)) end, Origins),
    Kept = maps:filter(fun(_, #heard{last_ms = LastMs, gaps = Gaps}) ->
                           Gaps =/= none orelse NowMs - LastMs < ForgetMs
                       end, Closed),
    {[{Origin, Lost} || {Origin, #heard{lost = Lost}} <- lists:sort(maps:to_list(Closed)),
                        Lost > 0],
     D#delivered{origins = maps:map(fun(_, Heard) -> Heard#heard{lost = 0} end, Kept)}}.

%% Gaps that came above or below meanwhile are newer.
close(NowMs, OldMs, #heard{gaps = {SinceMs, {Low, High}}} = Heard) when SinceMs =< OldMs ->
    #heard{ranges = Ranges, lost = Lost} = Heard,
    {Above, Others} = lists:splitwith(fun({From, _}) -> From > High end, Ranges),
    {Within, Below} = lists:splitwith(fun({_, To}) -> To >= Low end, Others),
    with_gaps(NowMs, Heard#heard{ranges = Above ++ [span(Within) | Below], gaps = none,
                                 lost = Lost + lacking(Within)});
close(_NowMs, _OldMs, Heard) ->
    Heard.

%% @doc Whether a number is in one of the ranges.
-spec in_ranges(pos_integer(), [range()]) -> boolean().
in_ranges(N, Ranges) ->
    lists:any(fun({From, To}) -> N >= From andalso N =< To end, Ranges).

%% @doc Numbers as ranges, the highest first.
-spec to_ranges([pos_integer()]) -> [range()].
to_ranges(Numbers) ->
    lists:foldl(fun insert/2, [], lists:sort(Numbers)).

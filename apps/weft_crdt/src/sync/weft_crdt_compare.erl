%% SPDX-License-Identifier: Apache-2.0
%% @doc One step of the comparison of two stores. Each message answers itself: neither side
%% remembers where it is, so a message that is lost ends the comparison, and the next one begins
%% anew.
%%
%% `{ranges, [{From, Until, Count, Fingerprint}]}': of each range that is not equal here, either the
%% fingerprints of its parts go back, or, if there are few keys, `{items, [{From, Until, [{Key,
%% Hash}]}]}'. Who gets items sends the states of keys that are not among them, asks for those that
%% it lacks (`{wants, [Key]}'), and sends digests of those that differ. Who gets `{digests, IsFirst,
%% [{Key, Type, Digest}]}' sends what its own states add to them, and its own digests if it was
%% asked first. States and differences go by the buffer of the neighbour.
%%
%% Ranges of a message that overlap are malformed: they would have the same keys sent many times.
-module(weft_crdt_compare).

-export([root/1, ranges/2, items/2]).

%% How many keys are listed instead of split further, and how many ranges one message may have.
-define(FEW, 16).
-define(PARTS_MAX, 16).
-define(RANGES_MAX, 2048).

-type ranges_message() :: {ranges, [{non_neg_integer(), pos_integer(), non_neg_integer(),
                                     non_neg_integer()}]}.
-type items_message() :: {items, [{non_neg_integer(), pos_integer(), [{term(), term()}]}]}.

%% @doc The first message of a comparison.
-spec root(weft_crdt_ranges:ranges()) -> ranges_message().
root(Ranges) ->
    {ranges, [summed(weft_crdt_ranges:whole(), Ranges)]}.

summed({From, Until} = Range, Ranges) ->
    {Count, Fingerprint} = weft_crdt_ranges:sum(Range, Ranges),
    {From, Until, Count, Fingerprint}.

%% @doc The answers to a list of ranges, and the keys whose states the sender lacks for sure.
-spec ranges(term(), weft_crdt_ranges:ranges()) ->
          {ok, [ranges_message() | items_message()], Missing :: [term()]} | error.
ranges(Given, Ranges) ->
    case first(?RANGES_MAX, Given, []) of
        error -> error;
        List ->
            case lists:all(fun is_range/1, List) andalso are_apart(List) of
                true -> answers(List, Ranges);
                false -> error
            end
    end.

%% No more of them than the limit; the rest comes by the next comparison.
first(0, _, Taken) -> lists:reverse(Taken);
first(_, [], Taken) -> lists:reverse(Taken);
first(N, [One | Rest], Taken) -> first(N - 1, Rest, [One | Taken]);
first(_, _, _) -> error.

is_range({From, Until, Count, Fingerprint}) ->
    weft_crdt_ranges:is_range({From, Until}) andalso is_integer(Count)
        andalso is_integer(Fingerprint);
is_range(_) -> false.

%% Ranges are the first two elements of these tuples.
are_apart(List) ->
    are_apart(0, lists:sort([{element(1, One), element(2, One)} || One <- List])).

are_apart(After, [{From, Until} | Rest]) -> From >= After andalso are_apart(Until, Rest);
are_apart(_, []) -> true.

answers(List, Ranges) ->
    {Parts, Items, Missing} =
        lists:foldl(fun({From, Until, Count, Fingerprint}, Acc) ->
                        Here = weft_crdt_ranges:sum({From, Until}, Ranges),
                        case Here of
                            {Count, Fingerprint} -> Acc;
                            _ -> answer({From, Until}, element(1, Here), Count, Ranges, Acc)
                        end
                    end, {[], [], []}, List),
    {ok, [{ranges, Parts} || Parts =/= []] ++ [{items, Items} || Items =/= []],
     lists:append(Missing)}.

answer(Range, _, 0, Ranges, {Parts, Items, Missing}) ->
    {Parts, Items, [[Key || {Key, _} <- weft_crdt_ranges:keys(Range, Ranges)] | Missing]};
answer({From, Until} = Range, Here, _, Ranges, {Parts, Items, Missing})
  when Here =< ?FEW; Until - From =:= 1 ->
    {Parts, [{From, Until, weft_crdt_ranges:keys(Range, Ranges)} | Items], Missing};
answer(Range, Here, _, Ranges, {Parts, Items, Missing}) ->
    Count = min(?PARTS_MAX, max(2, 2 * Here div ?FEW)),
    {[summed(Part, Ranges) || Part <- weft_crdt_ranges:split(Count, Range)] ++ Parts, Items,
     Missing}.

%% @doc Of the keys in these ranges: those that the sender lacks, those that differ, and those that
%% this store lacks.
-spec items(term(), weft_crdt_ranges:ranges()) ->
          {ok, Missing :: [term()], Different :: [term()], Wanted :: [term()]} | error.
items(Given, Ranges) ->
    case first(?RANGES_MAX, Given, []) of
        error -> error;
        List ->
            case lists:all(fun is_listing/1, List) andalso are_apart(List) of
                true -> items(List, Ranges, {[], [], []});
                false -> error
            end
    end.

is_listing({From, Until, _}) -> weft_crdt_ranges:is_range({From, Until});
is_listing(_) -> false.

items([], _, {Missing, Different, Wanted}) ->
    {ok, lists:append(Missing), lists:append(Different), lists:append(Wanted)};
items([{From, Until, Items} | Rest], Ranges, {Missing, Different, Wanted}) ->
    case pairs(Items, #{}) of
        #{} = There ->
            Here = maps:from_list(weft_crdt_ranges:keys({From, Until}, Ranges)),
            items(Rest, Ranges,
                  {[maps:keys(maps:without(maps:keys(There), Here)) | Missing],
                   [[Key || {Key, Hash} <- maps:to_list(Here), is_map_key(Key, There),
                            map_get(Key, There) =/= Hash] | Different],
                   [maps:keys(maps:without(maps:keys(Here), There)) | Wanted]});
        false -> error
    end.

pairs([{Key, Hash} | Rest], Pairs) -> pairs(Rest, Pairs#{Key => Hash});
pairs([], Pairs) -> Pairs;
pairs(_, _) -> false.

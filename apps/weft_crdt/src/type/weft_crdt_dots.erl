%% SPDX-License-Identifier: Apache-2.0
%% @doc What all types with causality are made of: dots that live, and which dots were ever seen.
%%
%% A *dot* is an operation: the Nth of an actor. Each that has an effect carries a payload (the
%% element that was added, the value that was set). To undo it is to drop its payload but to
%% remember the dot. Of two copies that are merged, a dot lives on if it lives in both, or if it
%% lives in one and the other has never seen it. So what was added concurrently to a removal stays,
%% and nothing is left of what was removed but a number in an interval: no tombstones
%% (Bieniusa et al. 2012; Almeida, Shoker, Baquero 2018).
%%
%% A delta names exactly the dots that it is about, so deltas need not arrive in order.
%%
%% Types that look up dots by their payload give a function that finds the *place* of a payload; the
%% index from places to dots is part of the state, but not of what is sent. Merging costs what the
%% smaller state costs.
-module(weft_crdt_dots).

-export([new/0, change/5, merge/3, difference/3, at/2, places/1, live/1, payloads/2,
         pack/1, unpack/3, digest/1, difference_to_digest/3]).
-export_type([dots/0, dot/0, place_of/0]).

-type dot() :: {weft_crdt_type:actor(), pos_integer()}.
-type live() :: #{pos_integer() => Payload :: term()}.
-type actors() :: #{weft_crdt_type:actor() => {Seen :: weft_crdt_intervals:intervals(), live()}}.
-type index() :: #{Place :: term() => #{dot() => []}}.
-type dots() :: {actors(), index()}.
-type place_of() :: none | fun((Payload :: term()) -> Place :: term()).

%% @doc No dots.
-spec new() -> dots().
new() -> {#{}, #{}}.

%% @doc The delta that makes a new dot of the actor for each of the payloads and undoes dots.
-spec change(weft_crdt_type:actor(), Payloads :: [term()], Undone :: [dot()], place_of(),
             dots()) -> dots().
change(Actor, Payloads, Undone, PlaceOf, {Actors, _}) ->
    {Seen, _} = maps:get(Actor, Actors, {[], #{}}),
    Next = weft_crdt_intervals:last(Seen) + 1,
    Numbered = lists:zip(lists:seq(Next, Next + length(Payloads) - 1), Payloads),
    Numbers = maps:groups_from_list(fun({A, _}) -> A end, fun({_, N}) -> N end,
                                    Undone ++ [{Actor, N} || {N, _} <- Numbered]),
    indexed(maps:map(fun(A, Ns) ->
                         {weft_crdt_intervals:from_list(Ns),
                          case A of
                              Actor -> maps:from_list(Numbered);
                              _ -> #{}
                          end}
                     end, Numbers), PlaceOf).

%% @doc The dots with a payload of that place.
-spec at(Place :: term(), dots()) -> [dot()].
at(Place, {_, Index}) -> maps:keys(maps:get(Place, Index, #{})).

%% @doc All places of dots that live.
-spec places(dots()) -> [term()].
places({_, Index}) -> maps:keys(Index).

%% @doc All dots that live, with their payloads.
-spec live(dots()) -> [{dot(), Payload :: term()}].
live({Actors, _}) ->
    [{{Actor, N}, Payload} || {Actor, {_, Live}} <- maps:to_list(Actors),
                              {N, Payload} <- maps:to_list(Live)].

%% @doc The payloads of dots that live.
-spec payloads([dot()], dots()) -> [{dot(), Payload :: term()}].
payloads(Which, {Actors, _}) ->
    [{Dot, map_get(N, element(2, map_get(Actor, Actors)))} || {Actor, N} = Dot <- Which].

%% @doc The least state that has what both have.
-spec merge(dots(), dots(), place_of()) -> dots().
merge(A, B, PlaceOf) ->
    case weight(A) < weight(B) of
        true -> merge_into(B, A, PlaceOf);
        false -> merge_into(A, B, PlaceOf)
    end.

weight({Actors, _}) ->
    maps:fold(fun(_, {_, Live}, Sum) -> Sum + map_size(Live) + 1 end, 0, Actors).

merge_into({Actors0, Index0}, {Others, _}, PlaceOf) ->
    maps:fold(fun(Actor, {Seen, Live}, {Actors, Index}) ->
                  {Seen0, Live0} = maps:get(Actor, Actors, {[], #{}}),
                  Added = unseen(Live, Seen0),
                  Undone = undone(Live0, Seen, Live),
                  Union = {weft_crdt_intervals:union(Seen0, Seen),
                           maps:merge(maps:without(Undone, Live0), Added)},
                  Without = unindex(Actor, maps:with(Undone, Live0), PlaceOf, Index),
                  {Actors#{Actor => Union}, index(Actor, Added, PlaceOf, Without)}
              end, {Actors0, Index0}, Others).

unseen(Live, []) -> Live;
unseen(Live, Seen) ->
    maps:filter(fun(N, _) -> not weft_crdt_intervals:is_member(N, Seen) end, Live).

%% The numbers that live here while there they are seen and do not live. As few as possible are
%% looked at.
undone(Here, SeenThere, There) ->
    case weft_crdt_intervals:count(SeenThere) < map_size(Here) of
        true ->
            weft_crdt_intervals:fold(
              fun(N, Ns) when is_map_key(N, Here), not is_map_key(N, There) -> [N | Ns];
                 (_, Ns) -> Ns
              end, [], SeenThere);
        false ->
            [N || N <- maps:keys(Here), not is_map_key(N, There),
                  weft_crdt_intervals:is_member(N, SeenThere)]
    end.

%% @doc What the first one adds to the second one.
-spec difference(dots(), dots(), place_of()) -> dots().
difference({Actors, _}, {Others, _}, PlaceOf) ->
    different(fun(Actor, Seen, Live) ->
                  {SeenThere, There} = maps:get(Actor, Others, {[], #{}}),
                  Undone = undone(There, Seen, Live),
                  {SeenThere, weft_crdt_intervals:from_list(Undone)}
              end, Actors, PlaceOf).

%% `Known' tells what was seen there, and which of the numbers that live there are undone here.
different(Known, Actors, PlaceOf) ->
    Adds = maps:fold(fun(Actor, {Seen, Live}, Acc) ->
                         {SeenThere, Undone} = Known(Actor, Seen, Live),
                         New = weft_crdt_intervals:subtract(Seen, SeenThere),
                         case weft_crdt_intervals:union(New, Undone) of
                             [] -> Acc;
                             About -> Acc#{Actor => {About, unseen(Live, SeenThere)}}
                         end
                     end, #{}, Actors),
    indexed(Adds, PlaceOf).

%% @doc For each actor what was seen, and what of it lives.
-spec digest(dots()) -> #{weft_crdt_type:actor() => {weft_crdt_intervals:intervals(),
                                                     weft_crdt_intervals:intervals()}}.
digest({Actors, _}) ->
    maps:map(fun(_, {Seen, Live}) ->
                 {Seen, weft_crdt_intervals:from_list(maps:keys(Live))}
             end, Actors).

%% @doc What the state adds to the one that the digest is of.
-spec difference_to_digest(dots(), term(), place_of()) -> {ok, dots()} | error.
difference_to_digest({Actors, _}, Digest, PlaceOf) ->
    case is_digest(Digest) of
        true ->
            {ok, different(fun(Actor, Seen, Live) ->
                               {SeenThere, There} = maps:get(Actor, Digest, {[], []}),
                               Both = weft_crdt_intervals:intersect(There, Seen),
                               Here = weft_crdt_intervals:from_list(maps:keys(Live)),
                               {SeenThere, weft_crdt_intervals:subtract(Both, Here)}
                           end, Actors, PlaceOf)};
        false -> error
    end.

is_digest(Digest) ->
    is_map(Digest) andalso lists:all(fun({Seen, Live}) ->
                                         weft_crdt_intervals:is_valid(Seen)
                                             andalso weft_crdt_intervals:is_valid(Live);
                                        (_) -> false
                                     end, maps:values(Digest)).

%% @doc What is sent of a state.
-spec pack(dots()) -> actors().
pack({Actors, _}) -> Actors.

%% @doc The state that was sent, if it is one and all its payloads are valid.
-spec unpack(term(), place_of(), fun((Payload :: term()) -> boolean())) -> {ok, dots()} | error.
unpack(Packed, PlaceOf, IsValid) ->
    case is_map(Packed) andalso lists:all(fun(Actor) -> is_actor(Actor, IsValid) end,
                                          maps:values(Packed)) of
        true -> {ok, indexed(Packed, PlaceOf)};
        false -> error
    end.

is_actor({[_ | _] = Seen, Live}, IsValid) when is_map(Live) ->
    weft_crdt_intervals:is_valid(Seen)
        andalso lists:all(fun({N, Payload}) ->
                              is_integer(N) andalso weft_crdt_intervals:is_member(N, Seen)
                                  andalso IsValid(Payload)
                          end, maps:to_list(Live));
is_actor(_, _) -> false.

%% --- the index --------------------------------------------------------------------------------

indexed(Actors, PlaceOf) ->
    {Actors, maps:fold(fun(Actor, {_, Live}, Index) -> index(Actor, Live, PlaceOf, Index) end,
                       #{}, Actors)}.

index(_, _, none, Index) -> Index;
index(Actor, Live, PlaceOf, Index0) ->
    maps:fold(fun(N, Payload, Index) ->
                  Place = PlaceOf(Payload),
                  Index#{Place => (maps:get(Place, Index, #{}))#{{Actor, N} => []}}
              end, Index0, Live).

unindex(_, _, none, Index) -> Index;
unindex(Actor, Live, PlaceOf, Index0) ->
    maps:fold(fun(N, Payload, Index) ->
                  Place = PlaceOf(Payload),
                  case maps:remove({Actor, N}, map_get(Place, Index)) of
                      Left when map_size(Left) =:= 0 -> maps:remove(Place, Index);
                      Left -> Index#{Place := Left}
                  end
              end, Index0, Live).

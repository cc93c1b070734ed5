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
%% A state with a tag (`weft_crdt_retired') has seen all dots of all retired actors. So of these
%% only those with dots that live are in it; what of them is not in it was undone.
%%
%% Types that look up dots by their payload give a function that finds the *place* of a payload; the
%% index from places to dots is part of the state, but not of what is sent. Merging costs what the
%% smaller state costs.
-module(weft_crdt_dots).

-export([new/0, change/5, merge/3, difference/3, at/2, places/1, live/1, payloads/2,
         pack/1, unpack/4, digest/1, difference_to_digest/4, retire/2, ended/2, actors/1, tag/1]).
-export_type([dots/0, dot/0, place_of/0]).

%% Small integers of the VM end here, and no actor comes so far.
-define(ALL, [{1, 16#7FFFFFFFFFFFFFF}]).

-type dot() :: {weft_crdt_type:actor(), pos_integer()}.
-type live() :: #{pos_integer() => Payload :: term()}.
-type actors() :: #{weft_crdt_type:actor() => {Seen :: weft_crdt_intervals:intervals(), live()}}.
-type index() :: #{Place :: term() => #{dot() => []}}.
-type dots() :: {actors(), index(), weft_crdt_retired:tag()}.
-type place_of() :: none | fun((Payload :: term()) -> Place :: term()).

%% @doc No dots.
-spec new() -> dots().
new() -> {#{}, #{}, none}.

%% @doc The delta that makes a new dot of the actor for each of the payloads and undoes dots.
-spec change(weft_crdt_type:actor(), Payloads :: [term()], Undone :: [dot()], place_of(),
             dots()) -> dots().
change(Actor, Payloads, Undone, PlaceOf, {Actors, _, _}) ->
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
                     end, Numbers), PlaceOf, none).

%% @doc The dots with a payload of that place.
-spec at(Place :: term(), dots()) -> [dot()].
at(Place, {_, Index, _}) -> maps:keys(maps:get(Place, Index, #{})).

%% @doc All places of dots that live.
-spec places(dots()) -> [term()].
places({_, Index, _}) -> maps:keys(Index).

%% @doc All dots that live, with their payloads.
-spec live(dots()) -> [{dot(), Payload :: term()}].
live({Actors, _, _}) ->
    [{{Actor, N}, Payload} || {Actor, {_, Live}} <- maps:to_list(Actors),
                              {N, Payload} <- maps:to_list(Live)].

%% @doc The payloads of dots that live.
-spec payloads([dot()], dots()) -> [{dot(), Payload :: term()}].
payloads(Which, {Actors, _, _}) ->
    [{Dot, map_get(N, element(2, map_get(Actor, Actors)))} || {Actor, N} = Dot <- Which].

%% @doc The least state that has what both have.
-spec merge(dots(), dots(), place_of()) -> dots().
merge(A, B, PlaceOf) ->
    case is_lighter(A, B) of
        true -> merge_into(B, A, PlaceOf);
        false -> merge_into(A, B, PlaceOf)
    end.

%% Only the one with fewer actors is looked through: the other one up to as much.
is_lighter({A, _, _}, {B, _, _}) when map_size(A) =< map_size(B) ->
    weighs_more(maps:iterator(B), weight(A));
is_lighter({A, _, _}, {B, _, _}) ->
    not weighs_more(maps:iterator(A), weight(B)).

weight(Actors) ->
    maps:fold(fun(_, {_, Live}, Sum) -> Sum + map_size(Live) + 1 end, 0, Actors).

weighs_more(_, Weight) when Weight < 0 -> true;
weighs_more(Iterator, Weight) ->
    case maps:next(Iterator) of
        {_, {_, Live}, Rest} -> weighs_more(Rest, Weight - map_size(Live) - 1);
        none -> false
    end.

merge_into({Actors0, Index0, Tag0}, {Others, _, Tag1}, PlaceOf) ->
    Tag = weft_crdt_retired:later(Tag0, Tag1),
    {Actors, Index} =
        maps:fold(fun(Actor, {Seen, Live}, {Acc, Index1}) ->
                      {Seen0, Live0} = known(Actor, Actors0, Tag0),
                      Added = unseen(Live, Seen0),
                      Undone = undone(Live0, Seen, Live),
                      Union = {weft_crdt_intervals:union(Seen0, Seen),
                               maps:merge(maps:without(Undone, Live0), Added)},
                      Without = unindex(Actor, maps:with(Undone, Live0), PlaceOf, Index1),
                      {put_actor(Actor, Union, Tag, Acc), index(Actor, Added, PlaceOf, Without)}
                  end, without_undone(Tag1, Others, PlaceOf, Actors0, Index0), Others),
    {Actors, Index, Tag}.

%% What a state knows of an actor. Of one that is retired it has seen all.
known(Actor, Actors, Tag) ->
    case Actors of
        #{Actor := Known} -> Known;
        #{} ->
            case weft_crdt_retired:is_retired(Actor, Tag) of
                true -> {?ALL, #{}};
                false -> {[], #{}}
            end
    end.

put_actor(Actor, {_, Live} = Known, Tag, Actors) ->
    case map_size(Live) =:= 0 andalso weft_crdt_retired:is_retired(Actor, Tag) of
        true -> maps:remove(Actor, Actors);
        false -> Actors#{Actor => Known}
    end.

%% Without the retired actors of which the other state has no dots any more.
without_undone(none, _, _, Actors, Index) -> {Actors, Index};
without_undone(Tag, Others, PlaceOf, Actors0, Index0) ->
    maps:fold(fun(Actor, {_, Live}, {Actors, Index}) ->
                  case not is_map_key(Actor, Others)
                      andalso weft_crdt_retired:is_retired(Actor, Tag) of
                      true -> {maps:remove(Actor, Actors), unindex(Actor, Live, PlaceOf, Index)};
                      false -> {Actors, Index}
                  end
              end, {Actors0, Index0}, Actors0).

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
difference(State, {Others, _, TagThere}, PlaceOf) ->
    different(fun(Actor, Seen, Live) ->
                  {SeenThere, There} = known(Actor, Others, TagThere),
                  {SeenThere, weft_crdt_intervals:from_list(undone(There, Seen, Live))}
              end, fun(Actor) -> numbers(element(2, map_get(Actor, Others))) end,
              {Others, TagThere}, State, PlaceOf).

numbers(Live) -> weft_crdt_intervals:from_list(maps:keys(Live)).

%% `Known' tells what was seen there, and which of the numbers that live there are undone here;
%% `LiveThere' which numbers of an actor live there. A tag that is new there has all that lives with
%% it. What is there may be much more than what is here: it is not looked through for a state
%% without a tag, which deltas are.
different(Known, LiveThere, {Others, TagThere}, {Actors, _, Tag}, PlaceOf) ->
    IsNew = weft_crdt_retired:epoch(Tag) > weft_crdt_retired:epoch(TagThere),
    Adds = maps:fold(fun(Actor, {Seen, Live} = Whole, Acc) ->
                         case IsNew andalso weft_crdt_retired:is_retired(Actor, Tag) of
                             true -> Acc#{Actor => Whole};
                             false -> added(Actor, Seen, Live, Known(Actor, Seen, Live), Acc)
                         end
                     end, #{}, Actors),
    case IsNew of
        true -> indexed(Adds, PlaceOf, Tag);
        false when Tag =:= none -> indexed(Adds, PlaceOf, none);
        false ->
            Undone = undone_of_retired(Tag, Actors, maps:keys(Others), LiveThere),
            indexed(maps:merge(Adds, Undone), PlaceOf, none)
    end.

added(Actor, Seen, Live, {SeenThere, Undone}, Acc) ->
    New = weft_crdt_intervals:subtract(Seen, SeenThere),
    case weft_crdt_intervals:union(New, Undone) of
        [] -> Acc;
        About -> Acc#{Actor => {About, unseen(Live, SeenThere)}}
    end.

%% What lives there of retired actors of which nothing lives here.
undone_of_retired(Tag, Actors, Others, LiveThere) ->
    maps:from_list([{Actor, {Numbers, #{}}}
                    || Actor <- Others, not is_map_key(Actor, Actors),
                       weft_crdt_retired:is_retired(Actor, Tag),
                       [_ | _] = Numbers <- [LiveThere(Actor)]]).

%% @doc For each actor what was seen, and what of it lives.
-spec digest(dots()) -> term().
digest({Actors, _, Tag}) ->
    tagged(maps:map(fun(_, {Seen, Live}) -> {Seen, numbers(Live)} end, Actors), Tag).

tagged(Term, none) -> Term;
tagged(Term, Table) -> {weft_crdt_retired:epoch(Table), Term}.

%% A tag of another table than this one is none: it says nothing that could be told here.
untagged({Epoch, Term}, Table) when is_integer(Epoch), Epoch > 0 ->
    {Term, case weft_crdt_retired:epoch(Table) of Epoch -> Table; _ -> none end};
untagged(Term, _) -> {Term, none}.

%% @doc What the state adds to the one that the digest is of.
-spec difference_to_digest(dots(), term(), place_of(), weft_crdt_retired:table()) ->
          {ok, dots()} | error.
difference_to_digest(State, Term, PlaceOf, Table) ->
    {Digest, TagThere} = untagged(Term, Table),
    case is_digest(Digest) of
        true ->
            {ok, different(fun(Actor, Seen, Live) ->
                               {SeenThere, There} = known_by(Digest, Actor, TagThere),
                               Both = weft_crdt_intervals:intersect(There, Seen),
                               {SeenThere, weft_crdt_intervals:subtract(Both, numbers(Live))}
                           end, fun(Actor) -> element(2, map_get(Actor, Digest)) end,
                           {Digest, TagThere}, State, PlaceOf)};
        false -> error
    end.

known_by(Digest, Actor, TagThere) ->
    case known(Actor, Digest, TagThere) of
        {Seen, #{}} -> {Seen, []};
        Known -> Known
    end.

is_digest(Digest) ->
    is_map(Digest) andalso lists:all(fun({Seen, Live}) ->
                                         weft_crdt_intervals:is_valid(Seen)
                                             andalso weft_crdt_intervals:is_valid(Live);
                                        (_) -> false
                                     end, maps:values(Digest)).

%% @doc What is sent of a state.
-spec pack(dots()) -> term().
pack({Actors, _, Tag}) -> tagged(Actors, Tag).

%% @doc The state that was sent, if it is one and all its payloads are valid.
-spec unpack(term(), place_of(), fun((Payload :: term()) -> boolean()),
             weft_crdt_retired:table()) -> {ok, dots()} | error.
unpack(Term, PlaceOf, IsValid, Table) ->
    {Packed, Tag} = untagged(Term, Table),
    case is_map(Packed) andalso lists:all(fun(Actor) -> is_actor(Actor, IsValid) end,
                                          maps:values(Packed)) of
        true when Tag =:= none -> {ok, indexed(Packed, PlaceOf, none)};
        true -> {ok, indexed(all_seen(Packed, Tag), PlaceOf, Tag)};
        false -> error
    end.

is_actor({[_ | _] = Seen, Live}, IsValid) when is_map(Live) ->
    weft_crdt_intervals:is_valid(Seen)
        andalso lists:all(fun({N, Payload}) ->
                              is_integer(N) andalso weft_crdt_intervals:is_member(N, Seen)
                                  andalso IsValid(Payload)
                          end, maps:to_list(Live));
is_actor(_, _) -> false.

%% --- retired actors ---------------------------------------------------------------------------

%% @doc Drops what was seen of retired actors, and those without dots that live. Only of a state
%% that has seen all that they did.
-spec retire(weft_crdt_retired:table(), dots()) -> dots().
retire(Table, {Actors, Index, Tag} = State) ->
    case Tag =:= none andalso not lists:any(fun(A) -> weft_crdt_retired:is_retired(A, Table) end,
                                            maps:keys(Actors)) of
        true -> State;
        false -> {all_seen(Actors, Table), Index, Table}
    end.

all_seen(Actors, Table) ->
    maps:fold(fun(Actor, {_, Live}, Acc) ->
                  case weft_crdt_retired:is_retired(Actor, Table) of
                      true -> put_actor(Actor, {?ALL, Live}, Table, Acc);
                      false -> Acc
                  end
              end, Actors, Actors).

%% @doc What the state has seen of actors that are retired in this table and were not before. What
%% of it lives may still change.
-spec ended(weft_crdt_retired:table(), dots()) -> none | term().
ended(Table, {Actors, _, Tag}) ->
    case maps:filtermap(fun(Actor, {Seen, _}) ->
                            weft_crdt_retired:is_retired(Actor, Table)
                                andalso not weft_crdt_retired:is_retired(Actor, Tag)
                                andalso {true, Seen}
                        end, Actors) of
        Ended when map_size(Ended) =:= 0, Tag =:= none -> none;
        Ended -> {weft_crdt_retired:epoch(Tag), Ended}
    end.

-spec actors(dots()) -> [weft_crdt_type:actor()].
actors({Actors, _, _}) -> maps:keys(Actors).

%% @doc The table of the retired actors of which all was seen.
-spec tag(dots()) -> weft_crdt_retired:tag().
tag({_, _, Tag}) -> Tag.

%% --- the index --------------------------------------------------------------------------------

indexed(Actors, PlaceOf, Tag) ->
    {Actors, maps:fold(fun(Actor, {_, Live}, Index) -> index(Actor, Live, PlaceOf, Index) end,
                       #{}, Actors), Tag}.

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

%% SPDX-License-Identifier: Apache-2.0
%% @doc States of which retired actors were folded: each has the value of a *twin* that went through
%% the same and never folded anything. And what is saved.
%%
%% A history is a list of steps of three replicas. One makes an operation, takes over what another
%% one has, or what that one had some time ago, or begins a new run. `retire' first lets all have
%% the same of all runs that have ended (as a strict view demands), and of nothing else; then each
%% folds when it likes (`fold'), so that replicas of different epochs merge.
-module(weft_crdt_retired_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(REPLICAS, [a, b, c]).
-define(TYPES, [gcounter, pncounter, orset, mv_register, ew_flag, dw_flag, ormap, lww_register]).

-record(replica, {state, twin, run = 1,
                  %% The table that it may fold with, and the table of its store.
                  due = none, table = weft_crdt_retired:new(),
                  %% States of before.
                  past = []}).

retired_actors_test_() ->
    [{atom_to_list(Type) ++ " " ++ Name,
      {timeout, 1200, ?_assert(proper:quickcheck(Property(Type), [{numtests, count()}, quiet]))}}
     || Type <- ?TYPES,
        {Name, Property} <- [{"has the value of one that folds nothing", fun twins/1},
                             {"merges in any order, whoever has folded", fun laws/1},
                             {"has differences, also from what was folded", fun differences/1},
                             {"is sent and taken apart", fun packed/1}]].

count() ->
    case os:getenv("FULL") of false -> 100; _ -> 5000 end.

%% --- properties -------------------------------------------------------------------------------

twins(Type) ->
    M = module(Type),
    ?FORALL(Steps, steps(Type),
            begin
                Wrong = [R || All <- runs(Type, Steps), R <- maps:values(All),
                              M:value(R#replica.state) =/= M:value(R#replica.twin)],
                ?WHENFAIL(io:format("~p~n~p~n", [Steps, Wrong]), Wrong =:= [])
            end).

%% With states of now and of before.
laws(Type) ->
    M = module(Type),
    ?FORALL(Steps, steps(Type),
            begin
                #{a := A0, b := B0, c := #replica{state = C}} = run(Type, Steps),
                [A, B | Past] = [A0#replica.state, B0#replica.state
                                 | lists:sublist(A0#replica.past, 3)],
                AB = M:merge(A, B),
                AB =:= M:merge(B, A) andalso M:merge(AB, C) =:= M:merge(A, M:merge(B, C))
                    andalso M:merge(A, A) =:= A andalso M:merge(AB, B) =:= AB
                    andalso lists:all(fun(P) ->
                                          M:merge(AB, P) =:= M:merge(P, AB)
                                              andalso M:merge(A, P) =:= A
                                      end, Past)
            end).

differences(Type) ->
    M = module(Type),
    ?FORALL(Steps, steps(Type),
            begin
                #{a := #replica{state = A, table = Table}, b := #replica{state = B}} =
                    run(Type, Steps),
                Lacking = M:difference(A, B),
                {ok, Digested} = M:difference_to_digest(A, M:digest(B), Table),
                M:merge(B, Lacking) =:= M:merge(A, B)
                    andalso M:difference(Lacking, M:merge(A, B)) =:= M:new()
                    andalso M:value(M:merge(B, Digested)) =:= M:value(M:merge(A, B))
                    andalso M:difference(A, A) =:= M:new()
                    andalso {ok, M:new()} =:= M:difference_to_digest(A, M:digest(A), tag(M, A))
            end).

packed(Type) ->
    M = module(Type),
    ?FORALL({Steps, Bad}, {steps(Type), weft_crdt_world:bad()},
            begin
                #{a := #replica{state = A}} = run(Type, Steps),
                Taken = [M:unpack(Term, tag(M, A)) || Term <- [Bad, damaged(M:pack(A), Bad)]],
                _ = [M:value(M:merge(A, B)) || {ok, B} <- Taken],
                {ok, A} =:= M:unpack(M:pack(A), tag(M, A))
            end).

damaged({Epoch, Actors}, Bad) -> {Epoch, Actors#{{a, 0} => Bad}};
damaged(#{retired := {Epoch, _}} = Counts, Bad) -> Counts#{retired := {Epoch, Bad}};
damaged(_, Bad) -> {1, Bad}.

tag(M, State) ->
    case M:tag(State) of
        none -> weft_crdt_retired:new();
        Table -> Table
    end.

%% --- histories --------------------------------------------------------------------------------

steps(Type) -> ?SIZED(Size, resize(2 * Size, list(step(Type)))).

step(Type) ->
    Replica = oneof(?REPLICAS),
    frequency([{6, {do, Replica, operation(Type)}}, {4, {take, Replica, Replica}},
               {2, {take_past, Replica, Replica, range(1, 5)}}, {2, {restart, Replica}},
               {1, retire}, {2, {fold, Replica}}]).

operation(gcounter) -> {increment, range(1, 5)};
operation(pncounter) -> {oneof([increment, decrement]), range(1, 5)};
operation(orset) -> {oneof([add, remove]), range(1, 4)};
operation(Register) when Register =:= lww_register; Register =:= mv_register -> {set, range(1, 9)};
operation(Flag) when Flag =:= ew_flag; Flag =:= dw_flag -> oneof([enable, disable]);
operation(ormap) ->
    oneof([{update, tags, orset, operation(orset)}, {update, name, mv_register, {set, range(1, 9)}},
           {update, n, pncounter, operation(pncounter)}, {remove, oneof([tags, name, n])}]).

run(Type, Steps) -> hd(runs(Type, Steps)).

%% The replicas after each step, the last first.
runs(Type, Steps) ->
    M = module(Type),
    Empty = maps:from_keys(?REPLICAS, #replica{state = M:new(), twin = M:new()}),
    lists:foldl(fun({Us, Step}, [Before | _] = All) -> [step(Step, Us, M, Before) | All] end,
                [Empty], lists:zip(lists:seq(1, length(Steps)), Steps)).

step({do, Name, Operation}, Us, M, All) ->
    changed(Name, fun(#replica{state = State, twin = Twin, run = Run} = R) ->
                      Who = {{Name, Run}, Us},
                      {ok, Delta} = M:mutate(Operation, Who, State),
                      {ok, Same} = M:mutate(Operation, Who, Twin),
                      R#replica{state = M:merge(State, Delta), twin = M:merge(Twin, Same)}
                  end, All);
step({take, Name, Other}, _, M, All) ->
    #replica{state = State, twin = Twin, table = Table} = map_get(Other, All),
    changed(Name, fun(R) -> taken(State, Twin, Table, M, R) end, All);
step({take_past, Name, Other, Nth}, _, M, All) ->
    case lists:nthtail(min(Nth, length((map_get(Other, All))#replica.past)),
                       (map_get(Other, All))#replica.past) of
        [] -> All;
        %% What was sent is read as it comes.
        [State | _] ->
            changed(Name, fun(#replica{table = Table} = R) ->
                              {ok, Sent} = M:unpack(M:pack(State), Table),
                              R#replica{state = M:merge(R#replica.state, Sent)}
                          end, step({take, Name, Other}, 0, M, All))
    end;
step({restart, Name}, _, _, All) ->
    changed(Name, fun(#replica{run = Run} = R) -> R#replica{run = Run + 1} end, All);
step({fold, Name}, _, M, All) ->
    changed(Name, fun(#replica{due = none} = R) -> R;
                     (#replica{due = Table, state = State} = R) ->
                          R#replica{due = none, table = Table, state = M:retire(Table, State)}
                  end, All);
step(retire, _, M, All0) ->
    %% All have folded with the table before: else they could not promise.
    All1 = lists:foldl(fun(Name, All) -> step({fold, Name}, 0, M, All) end, All0, ?REPLICAS),
    #{a := #replica{table = Before}} = All1,
    Former = maps:map(fun(_, #replica{run = Run}) -> Run - 1 end, All1),
    {ok, Table} = weft_crdt_retired:next(Former, [], Before),
    Ended = [ended(Before, Table, M, R) || R <- maps:values(All1)],
    All = maps:map(fun(_, R) ->
                       lists:foldl(fun({S, Twin}, Acc) -> taken(S, Twin, Before, M, Acc) end, R,
                                   Ended)
                   end, All1),
    ?assertMatch([_], lists:usort([M:ended(Table, State) || #replica{state = State}
                                                                <- maps:values(All)])),
    maps:map(fun(_, R) -> R#replica{due = Table} end, All).

%% One that has folded makes the other one do so first, if it may.
taken(State, Twin, Table, M, #replica{due = Due} = R0) ->
    R = case weft_crdt_retired:epoch(Table) > weft_crdt_retired:epoch(R0#replica.table) of
            true -> R0#replica{due = none, table = Due};
            false -> R0
        end,
    R#replica{state = M:merge(R#replica.state, State), twin = M:merge(R#replica.twin, Twin)}.

%% What a replica has of actors that are retired by this table, and nothing else.
ended(Before, Table, M, #replica{state = State, twin = Twin}) ->
    Is = fun(Actor, _) ->
             weft_crdt_retired:is_retired(Actor, Table)
                 andalso not weft_crdt_retired:is_retired(Actor, Before)
         end,
    {only(Is, M, State), only(Is, M, Twin)}.

only(Is, M, State) ->
    case {M, M:pack(State)} of
        {weft_crdt_lww_register, Packed} -> Packed;
        {_, {_, Actors}} -> only_of(Is, M, Actors);
        {_, Counts} -> only_of(Is, M, maps:remove(retired, Counts))
    end.

only_of(Is, M, Actors) ->
    {ok, State} = M:unpack(maps:filter(Is, Actors), weft_crdt_retired:new()),
    State.

changed(Name, Fun, All) ->
    #replica{state = Before, past = Past} = R = map_get(Name, All),
    All#{Name := (Fun(R))#replica{past = [Before | Past]}}.

module(Type) ->
    {ok, M} = weft_crdt_type:module(Type),
    M.

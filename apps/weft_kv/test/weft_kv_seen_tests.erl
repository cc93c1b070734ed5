%% SPDX-License-Identifier: Apache-2.0
%% @doc Contexts that clients have made up, among those of honest ones.
-module(weft_kv_seen_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(MAX, 18446744073709551615).

%% --- what is asked ----------------------------------------------------------------------------

what_the_replica_knows_needs_no_further_request_test() ->
    One = put(<<"1">>, #{}, a, weft_kv_object:new()),
    Two = put(<<"2">>, #{<<"a">> => 1}, a, One),
    ?assertEqual({answer, {ok, Two}}, weft_kv_seen:handle({ok, Two}, seen(#{<<"a">> => 1}))).

%% The client has read from b, and a was away when that was written.
what_other_replicas_know_is_replaced_test() ->
    There = put(<<"1">>, #{}, b, weft_kv_object:new()),
    Here = put(deleted, #{<<"b">> => 1}, a, weft_kv_object:new()),
    ?assertEqual([<<"1">>], weft_kv_object:values(weft_kv_object:merge(Here, There))),
    {ask, read, configured, S1} = weft_kv_seen:handle({ok, Here}, seen(#{<<"b">> => 1})),
    {ask, {merge, More}, configured, S2} = weft_kv_seen:handle({ok, There}, S1),
    ?assertEqual({[], 1}, {weft_kv_object:values(weft_kv_object:merge(More, There)),
                           weft_kv_object:count(More)}),
    ?assertEqual({answer, {ok, More}}, weft_kv_seen:handle({ok, More}, S2)).

what_few_do_not_know_all_are_asked_for_test() ->
    There = put(<<"1">>, #{}, b, weft_kv_object:new()),
    Here = put(<<"2">>, #{}, a, weft_kv_object:new()),
    {ask, read, configured, S1} = weft_kv_seen:handle({ok, Here}, seen(#{<<"b">> => ?MAX})),
    {ask, read, all, S2} = weft_kv_seen:handle({ok, Here}, S1),
    %% Of what is made up, what was written counts.
    {ask, {merge, More}, configured, _} = weft_kv_seen:handle({ok, There}, S2),
    ?assertEqual({1, 1}, {weft_kv_object:last(<<"a">>, More), weft_kv_object:last(<<"b">>, More)}),
    %% Nobody knows any of it.
    ?assertEqual({answer, {ok, Here}}, weft_kv_seen:handle({ok, Here}, S2)),
    %% The write is there by then, so nobody says that nothing was done.
    [?assertEqual({answer, {error, Told}}, weft_kv_seen:handle({error, Reason}, S2))
     || {Reason, Told} <- [{timeout, timeout}, {{too_few, #{}}, {too_few, #{}}},
                           {overload, {unknown, overload}}]],
    ?assertEqual({answer, {error, overload}},
                 weft_kv_seen:handle({error, overload}, seen(#{<<"b">> => 1}))).

seen(Vector) -> weft_kv_seen:init({write, value(<<"any">>), Vector}).

%% --- later writes are not lost ----------------------------------------------------------------

%% The other replica has not heard of the write with the context that was made up when it takes one.
a_later_write_of_another_replica_stays_test_() ->
    [fun() ->
         Forged = put(Value, #{<<"a">> => ?MAX, <<"b">> => ?MAX}, a, weft_kv_object:new()),
         Later = put(<<"later">>, #{}, b, weft_kv_object:new()),
         ?assertEqual([<<"later">> | [Value || Value =/= deleted]],
                      lists:reverse(weft_kv_object:values(weft_kv_object:merge(Forged, Later))))
     end || Value <- [<<"a forger's">>, deleted]].

numbers_go_on_as_before_test() ->
    One = put(<<"1">>, #{<<"a">> => ?MAX}, a, weft_kv_object:new()),
    ?assertEqual(1, weft_kv_object:last(<<"a">>, One)),
    Five = weft_kv_object:put(value(<<"2">>), #{<<"a">> => ?MAX}, {<<"a">>, 4}, One),
    ?assertEqual({5, [<<"2">>]}, {weft_kv_object:last(<<"a">>, Five),
                                  weft_kv_object:values(Five)}).

%% --- any clients ------------------------------------------------------------------------------

%% Three replicas, two honest clients, and one that makes up contexts. Each write reaches the
%% replica that gives it its number, and then some of the others. At the end all have heard of each
%% other. An honest write is there then, unless a write has replaced it of a client that had read
%% it, or one that names it and came later. And what an honest client had read when it wrote is not.
honest_writes_stay_test_() ->
    {timeout, 60, fun() -> ?assert(proper:quickcheck(honest(), [{numtests, 1000},
                                                                {to_file, user}])) end}.

-record(world, {replicas :: #{a | b | c => {weft_kv_object:object(), Run :: non_neg_integer(),
                                            Last :: non_neg_integer()}},
                clients = #{} :: map(),
                %% Of each write its dot, whether it is honest, and which it has replaced.
                writes = [] :: [{pos_integer(), term(), boolean(), [pos_integer()]}]}).

honest() ->
    ?FORALL(Steps, ?SIZED(Size, resize(2 * Size, list(step()))),
            begin
                Start = #world{replicas = maps:from_keys([a, b, c], {weft_kv_object:new(), 0, 0})},
                #world{replicas = Replicas, writes = Writes} = World =
                    lists:foldl(fun step/2, Start, Steps),
                Left = [binary_to_integer(Value)
                        || Value <- weft_kv_object:values(together([a, b, c], World))],
                Replaced = lists:append([Of || {_, _, _, Of} <- Writes]),
                HonestlyReplaced = lists:append([Of || {_, _, true, Of} <- Writes]),
                ?WHENFAIL(io:format("~p~n~p~n~p~n", [Steps, Writes, Left]),
                          [Write || {Write, _, true, _} <- Writes, not lists:member(Write, Left),
                                    not lists:member(Write, Replaced)] =:= []
                              andalso Left -- HonestlyReplaced =:= Left
                              andalso lists:all(fun(Replica) -> is_given_out(Replica, World) end,
                                                maps:values(Replicas)))
            end).

step() ->
    Replica = oneof([a, b, c]),
    Others = list(Replica),
    oneof([{read, oneof([x, y]), [Replica, Replica]},
           {write, oneof([x, y]), Replica, Others},
           {write, none, Replica, Others},
           {forged, list({actor(), oneof([range(1, 5), ?MAX])}), Replica, Others},
           {merge, Replica, Replica},
           {restart, Replica}]).

actor() -> ?LET({Name, Run}, {oneof([a, b, c]), range(0, 1)}, actor(Name, Run)).

actor(Name, Run) -> iolist_to_binary([atom_to_binary(Name), integer_to_binary(Run)]).

step({read, Client, From}, #world{clients = Clients} = World) ->
    Object = together(From, World),
    Read = [binary_to_integer(Value) || Value <- weft_kv_object:values(Object)],
    World#world{clients = Clients#{Client => {vector(Object), Read}}};
step({write, Client, At, Others}, #world{clients = Clients} = World) ->
    {Seen, Read} = maps:get(Client, Clients, {#{}, []}),
    written(true, Seen, Read, At, Others, World);
step({forged, Claims, At, Others}, #world{writes = Writes} = World) ->
    Seen = maps:from_list(Claims),
    Named = [Write || {Write, {Actor, Number}, _, _} <- Writes,
                      Number =< maps:get(Actor, Seen, 0)],
    written(false, Seen, Named, At, Others, World);
step({merge, From, To}, World) ->
    merged(To, together([From], World), World);
step({restart, At}, #world{replicas = Replicas} = World) ->
    #{At := {Object, Run, _}} = Replicas,
    World#world{replicas = Replicas#{At := {Object, Run + 1, 0}}}.

written(IsHonest, Seen, Replaces, At, Others, #world{replicas = Replicas, writes = Writes} = W) ->
    #{At := {Object, Run, Last}} = Replicas,
    Actor = actor(At, Run),
    Write = length(Writes) + 1,
    Request = {write, value(integer_to_binary(Write)), Seen},
    New = weft_kv_replica:requested(Request, {Actor, Last}, true, Object),
    Number = weft_kv_object:last(Actor, New),
    Written = merged_at([At | Others], New,
                        W#world{replicas = Replicas#{At := {New, Run, Number}},
                                writes = [{Write, {Actor, Number}, IsHonest, Replaces} | Writes]}),
    asked(weft_kv_seen:handle({ok, New}, weft_kv_seen:init(Request)), [At | Others], Written).

asked({answer, {ok, _}}, _, World) ->
    World;
asked({ask, read, configured, State}, To, World) ->
    asked(weft_kv_seen:handle({ok, together(lists:sublist(To, 2), World)}, State), To, World);
asked({ask, read, all, State}, To, World) ->
    asked(weft_kv_seen:handle({ok, together([a, b, c], World)}, State), To, World);
asked({ask, {merge, Object}, configured, State}, To, World) ->
    asked(weft_kv_seen:handle({ok, Object}, State), To, merged_at(To, Object, World)).

merged_at(Names, Object, World) ->
    lists:foldl(fun(Name, W) -> merged(Name, Object, W) end, World, Names).

merged(Name, Object, #world{replicas = Replicas} = World) ->
    #{Name := {Mine, Run, Last}} = Replicas,
    New = weft_kv_replica:requested({merge, Object}, <<>>, true, Mine),
    World#world{replicas = Replicas#{Name := {New, Run, Last}}}.

together(Names, #world{replicas = Replicas}) ->
    lists:foldl(fun(Name, Sum) ->
                    weft_kv_object:merge(element(1, map_get(Name, Replicas)), Sum)
                end, weft_kv_object:new(), Names).

is_given_out({Object, _, _}, #world{writes = Writes}) ->
    maps:fold(fun(Actor, Number, Is) ->
                  Is andalso lists:keymember({Actor, Number}, 2, Writes)
              end, true, vector(Object)).

vector(Object) ->
    OfKey = {bucket, <<"key">>},
    {ok, Vector} = weft_kv_object:decode(OfKey, weft_kv_object:context(OfKey, Object)),
    Vector.

put(Value, Seen, Actor, Object) ->
    weft_kv_object:put(value(Value), Seen, atom_to_binary(Actor), Object).

value(Value) -> #{value => Value, written_ms => 0, expires_ms => never}.

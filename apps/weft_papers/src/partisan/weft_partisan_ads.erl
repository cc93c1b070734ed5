%% SPDX-License-Identifier: Apache-2.0
%% @doc The advertisement counter of C. Meiklejohn et al. ("Partisan", 2018, section 4.3.2), with
%% data of weft that merges: each node shows an advertisement over and over and counts that, until
%% it hears that the first node, the server, has removed it, because it was shown often enough. All
%% nodes have the counter and the set of advertisements. What is shown after that moment is too
%% much: nodes that have not heard of it go on.
%%
%% In the paper an impression is each 10 s, and states are sent each 5 s. Here changes are sent,
%% collected for as long, and all of it may be so many times as fast.
-module(weft_partisan_ads).

-export([begin_node/2, serve/1, state/0]).
-export([sizes/2, impression_ms/0, flush_ms/0]).

-define(IMPRESSION_MS, 10000).
-define(FLUSH_MS, 5000).
-define(AD, 1).

%% @doc On each node: what it has is there, and empty; it shows the advertisement as soon as it is
%% there, until it is gone. The seed spreads the nodes over the time.
-spec begin_node(Seed :: pos_integer(), Faster :: pos_integer()) -> ok.
begin_node(Seed, Faster) ->
    _ = application:load(weft_crdt),
    ok = application:set_env(weft_crdt, flush_ms, ?FLUSH_MS div Faster),
    {ok, _} = application:ensure_all_started(weft_crdt),
    ok = weft_crdt:declare(ads, orset),
    ok = weft_crdt:declare(impressions, gcounter),
    EachMs = ?IMPRESSION_MS div Faster,
    _ = spawn(fun() -> show(before, erlang:phash2(Seed, EachMs), EachMs) end),
    ok.

show(When, PauseMs, EachMs) ->
    receive after PauseMs -> ok end,
    case weft_crdt:value(ads) of
        {ok, [?AD]} ->
            ok = weft_crdt:update(impressions, increment),
            show(showing, EachMs, EachMs);
        {ok, []} when When =:= before -> show(before, EachMs, EachMs);
        {ok, []} -> ok
    end.

%% @doc On the server: there is an advertisement, until it was shown so many times.
-spec serve(Max :: pos_integer()) -> ok.
serve(Max) ->
    ok = weft_crdt_flow:invariant(impressions, {at_least, Max},
                                  fun(_) -> weft_crdt:update(ads, {remove, ?AD}) end),
    weft_crdt:update(ads, {add, ?AD}).

%% @doc On a node: how often it was shown, and whether it still is.
-spec state() -> {Impressions :: non_neg_integer(), Ads :: [pos_integer()]}.
state() ->
    {ok, Impressions} = weft_crdt:value(impressions),
    {ok, Ads} = weft_crdt:value(ads),
    {Impressions, Ads}.

%% @doc Bytes of a state and of the change that one more operation makes: of a counter with so many
%% actors, or of a set with so many elements. As they are sent, without what is around them.
-spec sizes(crdt_counter | crdt_set, Count :: pos_integer()) ->
          {State :: pos_integer(), Delta :: pos_integer()}.
sizes(crdt_counter, Actors) -> sizes(weft_crdt_gcounter, fun(_) -> increment end, Actors);
sizes(crdt_set, Elements) -> sizes(weft_crdt_orset, fun(Number) -> {add, Number} end, Elements).

sizes(Type, Operation, Count) ->
    State = lists:foldl(fun(Number, State) ->
                            Type:merge(delta(Type, Operation, Number, State), State)
                        end, Type:new(), lists:seq(1, Count)),
    {bytes(Type, State), bytes(Type, delta(Type, Operation, Count + 1, State))}.

%% Actors are nodes with their incarnation; a set is filled by eight of them.
delta(Type, Operation, Number, State) ->
    Actor = {case Type of
                 weft_crdt_gcounter -> <<"client", (integer_to_binary(Number))/binary, "@host">>;
                 weft_crdt_orset -> <<"client", (integer_to_binary(Number rem 8))/binary, "@host">>
             end, 1},
    {ok, Delta} = Type:mutate(Operation(Number), {Actor, 0}, State),
    Delta.

bytes(Type, State) -> erlang:external_size(Type:pack(State)).

%% @doc How long an advertisement is shown, in the paper.
-spec impression_ms() -> pos_integer().
impression_ms() -> ?IMPRESSION_MS.

%% @doc For how long changes are collected, as states are in the paper.
-spec flush_ms() -> pos_integer().
flush_ms() -> ?FLUSH_MS.

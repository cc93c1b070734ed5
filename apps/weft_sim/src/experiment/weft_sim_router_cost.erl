%% SPDX-License-Identifier: Apache-2.0
%% @doc What the router costs, measured: memory and traffic of one node in clusters of several
%% sizes.
%%
%% Two measurements. `table/2' gives one real router `Degree' neighbours that announce `NodeCount'
%% destinations, with names and seqnos of real length, and weighs its state, its views and the
%% messages it sends (external term format, without the few bytes of framing). `change/2' lets
%% a simulated cluster (random graph, about four links per node) converge, cuts one link after the
%% other and counts what all nodes send until it is quiet again. The figures in
%% docs/internals/router.md come from here: `print/0'.
-module(weft_sim_router_cost).

-export([print/0, table/2, change/2]).

-define(DIGEST_S, 30).

%% @doc Measures and prints the tables of docs/internals/router.md. Takes about a minute.
-spec print() -> ok.
print() ->
    io:format("One node with 6 neighbours~n~8s ~12s ~12s ~14s ~14s ~12s~n",
              ["nodes", "state kB", "views kB", "new link kB", "idle B/s", "take full ms"]),
    lists:foreach(fun(Count) -> print_table(Count, table(Count, 6)) end, [100, 1000, 10000]),
    io:format("~nSimulated cluster, about 4 links per node, mean of all nodes and 10 lost links~n"
              "~8s ~16s ~14s ~14s ~14s ~14s~n",
              ["nodes", "start kB/node", "cut msg/node", "cut kB/node", "heal msg/node",
               "heal kB/node"]),
    lists:foreach(fun(Count) -> print_change(Count, change(Count, 10)) end, [100, 300, 1000]).

print_table(Count, Row) ->
    #{state_bytes := State, view_bytes := Views, full_bytes := Full, digest_bytes := Digest,
      full_us := Us} = Row,
    io:format("~8b ~12.1f ~12.1f ~14.1f ~14.1f ~12.1f~n",
              [Count, State / 1000, Views / 1000, Full / 1000, 6 * Digest / ?DIGEST_S, Us / 1000]).

print_change(Count, #{start_bytes := Start, cut := {CutMsgs, CutBytes},
                      heal := {HealMsgs, HealBytes}}) ->
    io:format("~8b ~16.1f ~14.1f ~14.2f ~14.1f ~14.2f~n",
              [Count, Start / 1000, CutMsgs, CutBytes / 1000, HealMsgs, HealBytes / 1000]).

%% --- one router ---

%% @doc Weighs a router with Degree neighbours, each announcing NodeCount destinations.
-spec table(NodeCount :: pos_integer(), Degree :: pos_integer()) -> #{atom() => number()}.
table(NodeCount, Degree) ->
    [Self | Others] = names(NodeCount),
    Neighbours = lists:sublist(Others, Degree),
    {State0, _} = weft_router_core:init(Self, #{incarnation => seqno()}),
    {State1, Views1} = lists:foldl(fun(Neighbour, Acc) -> up(Neighbour, Others, Acc) end,
                                   {State0, []}, Neighbours),
    {FullUs, {State2, Views2}} =
        timer:tc(fun() -> lists:foldl(fun(Neighbour, Acc) -> full(Neighbour, Others, Acc) end,
                                      {State1, Views1}, Neighbours) end),
    {State, _} = weft_router_core:handle({timer, flush}, 0, State2),
    {_, UpEffects} = weft_router_core:handle({neighbour_up, 'new-neighbour@host'}, 0, State),
    {_, DigestEffects} = weft_router_core:handle({timer, digest}, 0, State),
    #{state_bytes => erts_debug:flat_size(State) * erlang:system_info(wordsize),
      view_bytes => view_bytes(Views2), full_bytes => sent_bytes(UpEffects),
      digest_bytes => sent_bytes(DigestEffects) div Degree, full_us => FullUs div Degree}.

up(Neighbour, _Others, Acc) ->
    handle({neighbour_up, Neighbour}, Acc).

%% Every destination at every neighbour, at some distance.
full(Neighbour, Others, Acc) ->
    Routes = [{Dest, seqno() + erlang:phash2(Dest, 1000),
               case Dest of Neighbour -> 0; _ -> 500 + erlang:phash2({Neighbour, Dest}, 5000) end,
               erlang:phash2({Neighbour, Dest}, 4)} || Dest <- Others],
    handle({message, Neighbour, {1, {full, 1, last, Routes}}}, Acc).

handle(Event, {State0, Views}) ->
    {State, Effects} = weft_router_core:handle(Event, 0, State0),
    {State, [{Key, Value} || {view, Key, Value} <- Effects] ++ Views}.

view_bytes(Views) ->
    Table = ets:new(views, [set, {read_concurrency, true}]),
    Empty = ets:info(Table, memory),
    true = ets:insert(Table, [{Key, Value, weft_router} || {Key, Value} <- Views]),
    Words = ets:info(Table, memory) - Empty,
    true = ets:delete(Table),
    Words * erlang:system_info(wordsize).

sent_bytes(Effects) ->
    lists:sum([erlang:external_size(Msg) || {send, _, Msg} <- Effects]).

%% As long as those of the carrier: microseconds since 1970, shifted by 8 bits.
seqno() ->
    1790000000000000 bsl 8.

names(Count) ->
    [list_to_atom(lists:flatten(io_lib:format("app-~5..0b@host-~4..0b.example.net", [N, N div 4])))
     || N <- lists:seq(1, Count)].

%% --- a cluster ---

%% @doc What a node of a cluster sends on average: until it knows all routes, when a link is cut,
%% and when it is healed.
-spec change(NodeCount :: pos_integer(), Cuts :: pos_integer()) -> #{atom() => term()}.
change(NodeCount, Cuts) ->
    Names = names(NodeCount),
    Links = weft_sim_scenario:random_links(Names, 1),
    Machines = [{topology, weft_static_core, #{links => Links}},
                {router, weft_router_core, #{digest_ms => 1000000000, hop_limit => 255}}],
    World0 = weft_sim_world:new(#{seed => 1, machines => fun(_Node) -> Machines end,
                                  detection_ms => {100, 200}}),
    World1 = lists:foldl(fun(Name, W) -> weft_sim_world:schedule(0, {start, Name}, W) end,
                         World0, Names),
    World = weft_sim_world:run_until(10000, World1),
    {Sums, _} = lists:foldl(fun cut_and_heal/2, {#{cut => {0, 0}, heal => {0, 0}}, World},
                            lists:sublist(every(length(Links) div Cuts, Links), Cuts)),
    Mean = fun({Messages, Bytes}) -> {Messages / Cuts / NodeCount, Bytes / Cuts / NodeCount} end,
    #{bytes := StartBytes} = weft_sim_world:counters(World),
    (maps:map(fun(_, Sum) -> Mean(Sum) end, Sums))#{start_bytes => StartBytes / NodeCount}.

%% The dialling of the cut link is part of it, but sends no messages.
cut_and_heal({A, B}, {#{cut := Cut0, heal := Heal0}, World0}) ->
    {Cut, World1} = sent_after({cut, A, B}, World0),
    {Heal, World2} = sent_after({heal, A, B}, World1),
    {#{cut => add(Cut, Cut0), heal => add(Heal, Heal0)}, World2}.

sent_after(Verb, World0) ->
    NowMs = weft_sim_world:now_ms(World0),
    World = weft_sim_world:run_until(NowMs + 10000, weft_sim_world:schedule(NowMs, Verb, World0)),
    #{messages := Messages0, bytes := Bytes0} = weft_sim_world:counters(World0),
    #{messages := Messages, bytes := Bytes} = weft_sim_world:counters(World),
    {{Messages - Messages0, Bytes - Bytes0}, World}.

add({A, B}, {C, D}) ->
    {A + C, B + D}.

every(Step, [First | _] = List) ->
    [First | case length(List) > Step of
                 true -> every(Step, lists:nthtail(Step, List));
                 false -> []
             end].

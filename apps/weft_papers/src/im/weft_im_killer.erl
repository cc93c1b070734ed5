%% SPDX-License-Identifier: Apache-2.0
%% @doc Kills processes of an Instant Messenger while it runs, as the module rhesus of the original
%% does: one in four times on a node of a router, else on one of a server; there a kind is drawn by
%% its weight, so that the many sessions and monitors of clients do not take all of it. Kind
%% `databases' kills nothing but these. Which kind is next, and where, follows from the seed.
-module(weft_im_killer).

-export([during/4, draw/3, victims/1]).
-export([kill_one/2]).
-export_type([what/0]).

-type what() :: all | databases.
-type kind() :: router | router_supervisor | server | notes | client_db | chat_db
              | client_monitor | chat_session.

-define(CALL_MS, 20000).
%% The weights of rhesus; those of routers are even.
-define(ON_SERVERS, [{notes, 12}, {chat_db, 12}, {client_db, 12}, {server, 12},
                     {client_monitor, 6}, {chat_session, 6}]).
-define(ON_ROUTERS, [{router, 1}, {router_supervisor, 1}]).
-define(DATABASES, [{chat_db, 1}, {client_db, 1}]).

%% @doc Does something, and kills a process every so many milliseconds as soon as there are
%% conversations; how many it were.
%% Of the nodes the first `routers' have routers, and the next have `servers' for each of them.
-spec during(weft_bench_nodes:nodes(), #{routers := pos_integer(), servers := pos_integer(),
                                         _ => _},
             #{period_ms := pos_integer(), what := what(), seed := integer()},
             fun(() -> Result)) -> {Result, Kills :: non_neg_integer()}.
during(Nodes, Size, #{seed := Seed} = How, Do) ->
    Rand = rand:seed_s(exsss, Seed),
    weft_papers_killer:during(fun() -> begun(Nodes, Size, How, Rand) end, Do).

%% Once people talk.
begun(Nodes, #{routers := Routers} = Size, #{period_ms := PeriodMs} = How, Rand) ->
    receive
        stop -> 0
    after PeriodMs ->
        case weft_bench_nodes:call(Nodes, {n, Routers + 1}, ?MODULE, victims,
                                   {[chat_session], ?CALL_MS}) of
            [] -> begun(Nodes, Size, How, Rand);
            _ -> killing(Nodes, Size, How, Rand, 0)
        end
    end.

killing(Nodes, Size, #{period_ms := PeriodMs, what := What} = How, Rand, Kills) ->
    receive
        stop -> Kills
    after PeriodMs ->
        {{Number, Kind, Choice}, Next} = draw(What, Size, Rand),
        Killed = weft_bench_nodes:call(Nodes, {n, Number}, ?MODULE, kill_one,
                                       {[Kind, Choice], ?CALL_MS}),
        killing(Nodes, Size, How, Next, Kills + Killed)
    end.

%% @doc The number of a node, the kind of process to be killed there, and a number to choose one.
-spec draw(what(), #{routers := pos_integer(), servers := pos_integer(), _ => _}, rand:state()) ->
          {{Node :: pos_integer(), kind(), pos_integer()}, rand:state()}.
draw(What, #{routers := Routers, servers := PerRouter}, Rand) ->
    {Quarter, Rand1} = rand:uniform_s(4, Rand),
    {First, Count, Weights} = case {What, Quarter} of
                                  {databases, _} -> {Routers, Routers * PerRouter, ?DATABASES};
                                  {all, 1} -> {0, Routers, ?ON_ROUTERS};
                                  {all, _} -> {Routers, Routers * PerRouter, ?ON_SERVERS}
                              end,
    {Node, Rand2} = rand:uniform_s(Count, Rand1),
    {Mark, Rand3} = rand:uniform_s(lists:sum([Weight || {_, Weight} <- Weights]), Rand2),
    {Choice, Rand4} = rand:uniform_s(1 bsl 20, Rand3),
    {{First + Node, at(Mark, Weights), Choice}, Rand4}.

at(Mark, [{Kind, Weight} | _]) when Mark =< Weight -> Kind;
at(Mark, [{_, Weight} | Rest]) -> at(Mark - Weight, Rest).

%% @doc On a node: kills one of its processes of a kind, if there is one. How many it were.
-spec kill_one(kind(), Choice :: pos_integer()) -> 0 | 1.
kill_one(Kind, Choice) ->
    case victims(Kind) of
        [] -> 0;
        Victims ->
            exit(lists:nth(1 + Choice rem length(Victims), Victims), kill),
            1
    end.

%% @doc The processes of a kind on this node.
-spec victims(kind()) -> [pid()].
victims(Kind) ->
    [Pid || Pid <- processes(), {dictionary, Dictionary} <- [process_info(Pid, dictionary)],
            lists:member({weft_im, Kind}, Dictionary)].

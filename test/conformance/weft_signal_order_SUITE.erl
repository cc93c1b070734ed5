%% SPDX-License-Identifier: Apache-2.0
%% @doc Property: two signals from one process to another never overtake each other, whatever
%% addresses they use. Random programs (weft_signal_program) are played on two nodes
%% (weft_signal_player), directly and over gateways with lanes, with FULL=1 on every carrier. The
%% seed of a failing program is printed;
%%
%%   WEFT_SEED=Seed WEFT_PROGRAMS=1 rebar3 ct --dir test/conformance
%%       --suite weft_signal_order_SUITE --group direct
%%
%% plays it alone; FULL=1 plays more of them. WEFT_CONFORMANCE_ARGS adds arguments of erl to the
%% weft nodes.
%%
%% In the groups `direct_hostile' and `gateway_hostile' the programs are played while packets are
%% delayed, links fail and processes are pinned (weft_signal_faults), from the same seed;
%% `gateway_hostile' has a direct link and a way around it, so that the session moves between them
%% while signals are under way. The rule is the same, nothing may be lost or doubled, and the
%% session must live to the end.
-module(weft_signal_order_SUITE).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([random_programs_keep_their_order/1, exchanged_signals_are_found/1,
         end_before_the_last_signal_is_found/1]).
-export([session_of_a_broken_link/1, session_that_begins_directly/1,
         session_that_begins_around/1]).
-export([play/3, session/1]).

%% Usually, and with FULL=1.
-define(PROGRAMS, {60, 250}).
-define(HOSTILE_PROGRAMS, {6, 20}).
%% No fault lasts longer than a part of a second; machines may be slow.
-define(HOSTILE_RESUME_MS, 30_000).
-define(CALL_MS, 180_000).

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [{group, Group} || Group <- carriers(os:getenv("FULL")) ++ [direct_hostile, gateway_hostile]].

carriers("1") -> weft_cluster:carriers();
carriers(_) -> [direct, gateway3].

%% That the checker finds violations is shown once.
groups() ->
    Property = [random_programs_keep_their_order],
    Checker = [exchanged_signals_are_found, end_before_the_last_signal_is_found],
    [{Carrier, [], case Carrier of direct -> Checker ++ Property; _ -> Property end}
     || Carrier <- weft_cluster:carriers()]
        ++ [{direct_hostile, [], [session_of_a_broken_link]},
            {gateway_hostile, [], [session_that_begins_directly || os:getenv("FULL") =:= "1"]
                                      ++ [session_that_begins_around]}].

init_per_suite(Config) ->
    [{epmd, weft_cluster:start_epmd()} | Config].

end_per_suite(Config) ->
    weft_cluster:stop_epmd(proplists:get_value(epmd, Config)).

init_per_group(direct_hostile, Config) ->
    start_hostile(direct, Config);
init_per_group(gateway_hostile, Config) ->
    start_hostile(triangle, Config);
init_per_group(Carrier, Config) ->
    [{cluster, weft_cluster:start(Carrier, #{}, place(Config))} | Config].

place(Config) ->
    #{epmd => proplists:get_value(epmd, Config), log_dir => proplists:get_value(priv_dir, Config)}.

end_per_group(_Carrier, Config) ->
    weft_cluster:stop(proplists:get_value(cluster, Config)).

random_programs_keep_their_order(Config) ->
    case played(right, seeds(?PROGRAMS), Config) of
        ok -> ok;
        {Failing, Violation} -> fail(Failing, Violation, Config)
    end.

seeds({Usual, Full}) ->
    Count = case os:getenv("FULL") of "1" -> Full; _ -> Usual end,
    First = number("WEFT_SEED", erlang:phash2(os:system_time())),
    Last = First + number("WEFT_PROGRAMS", Count) - 1,
    ct:pal("seeds ~b to ~b", [First, Last]),
    lists:seq(First, Last).

-spec fail(integer(), term(), list()) -> no_return().
fail(Seed, Violation, Config) ->
    Group = proplists:get_value(name, proplists:get_value(tc_group_properties, Config)),
    ct:fail("~0p~nagain: WEFT_SEED=~b WEFT_PROGRAMS=1 rebar3 ct --dir test/conformance "
            "--suite weft_signal_order_SUITE --group ~s", [Violation, Seed, Group]).

exchanged_signals_are_found(Config) ->
    {1, {violation, Found}} = played(exchanged, [1], Config),
    {overtaken, #{talker := 1, awaited := 2, came := 3}} = Found.

end_before_the_last_signal_is_found(Config) ->
    {1, {violation, Found}} = played(forgetful, [1], Config),
    {end_overtook, #{talker := 1}} = Found.

played(How, Seeds, Config) ->
    Cluster = proplists:get_value(cluster, Config),
    Nodes = maps:with([a, b], weft_cluster:context(Cluster)),
    weft_cluster:call(Cluster, ?MODULE, play, {[How, Seeds, Nodes], ?CALL_MS}).

%% ---- hostile networks ----

start_hostile(Carrier, Config) ->
    Options = #{resume_ms => ?HOSTILE_RESUME_MS,
                args => ["-weft", "lanes", "4", "-weft", "faults", "true"]},
    Cluster = weft_cluster:start(Carrier, Options, place(Config)),
    Nodes = maps:with([a, b, g1], weft_cluster:context(Cluster)),
    Hostile = [{cluster, Cluster} | Config],
    [ok = on(Name, weft_signal_faults, delay, [maps:values(maps:remove(Name, Nodes))], Hostile)
     || Name <- maps:keys(Nodes)],
    ok = weft_expect:until(fun() -> way(Hostile) =:= direct end),
    Hostile.

session_of_a_broken_link(Config) ->
    play_until(fun is_resumed_often/1, Config).

session_that_begins_directly(Config) ->
    play_until(fun took_both_ways/1, Config).

session_that_begins_around(Config) ->
    B = node_of(b, Config),
    ok = on(a, weft_fault, cut, [B], Config),
    true = on(a, erlang, disconnect_node, [B], Config),
    ok = weft_expect:until(fun() -> true =:= on(a, net_kernel, connect_node, [B], Config) end),
    around = way(Config),
    ok = on(a, weft_fault, heal, [B], Config),
    ok = on(a, weft_signal_faults, delay, [[B]], Config),
    play_until(fun took_both_ways/1, Config).

is_resumed_often(#{at_least := Programs, resumes := Resumes}) ->
    Resumes >= Programs div 2.

took_both_ways(#{at_least := 1}) ->
    true;
took_both_ways(#{bytes := Bytes, bytes_around := Around} = Run) ->
    is_resumed_often(Run) andalso Around > Bytes div 100 andalso Around < Bytes - Bytes div 100.

%% How often links fail while a program runs depends on how long it takes, and which way is taken
%% when is a matter of chance: more programs are played until it is enough. The time of the case is
%% the bound.
play_until(IsEnough, Config) ->
    Seeds = seeds(?HOSTILE_PROGRAMS),
    Start = #{session => session_to_b(Config), relayed => relayed_bytes(Config),
              at_least => length(Seeds)},
    Faults = [played_in_faults(Seed, Config) || Seed <- Seeds],
    play_on(lists:last(Seeds) + 1, Faults, IsEnough, Start, Config).

play_on(Seed, Faults, IsEnough, Start, Config) ->
    Run = so_far(Start, Config),
    case IsEnough(Run) of
        true -> ct:pal("~0p", [Run#{programs => length(Faults), faults => sums(Faults)}]);
        false ->
            More = [played_in_faults(Seed, Config) | Faults],
            play_on(Seed + 1, More, IsEnough, Start, Config)
    end.

%% How often the session was resumed, how many bytes a and b exchanged, and of them by way of g1.
so_far(#{session := Before, relayed := Relayed, at_least := Programs}, Config) ->
    #{pid := Session} = Before,
    After = #{pid := Session} = session_to_b(Config),
    [Resumes, In, Out] = [maps:get(Key, After) - maps:get(Key, Before)
                          || Key <- [resumes, bytes_in, bytes_out]],
    #{at_least => Programs, resumes => Resumes, bytes => In + Out,
      bytes_around => relayed_bytes(Config) - Relayed}.

%% The seed makes the program and the faults; not their times, so a run is repeated more or less.
played_in_faults(Seed, Config) ->
    Kinds = kinds(maps:with([a, b, g1], context(Config))),
    [ok = on(Name, weft_signal_faults, start, [erlang:phash2({Seed, Name}), Of], Config)
     || {Name, Of} <- maps:to_list(Kinds)],
    try played(right, [Seed], Config) of
        ok -> ok;
        {Seed, Violation} -> fail(Seed, Violation, Config)
    catch
        error:Reason -> fail(Seed, Reason, Config)
    end,
    [on(Name, weft_signal_faults, stop, [], Config) || Name <- maps:keys(Kinds)].

%% What each node does to its links. Those to the gateway lose single lanes only: while they are
%% made anew no route is known, and the session would hardly ever go around.
kinds(#{a := A, b := B, g1 := G1}) ->
    #{a => #{B => [cut, pin]},
      b => #{A => [break, fin, rst, pin], G1 => [fin, rst]},
      g1 => #{A => [fin, rst]}};
kinds(#{a := A, b := B}) ->
    #{a => #{B => [cut, break, fin, rst, pin, pin]}, b => #{A => [break, fin, rst, pin, pin]}}.

way(Config) ->
    maps:get(way, session_to_b(Config)).

session_to_b(Config) ->
    on(a, ?MODULE, session, [node_of(b, Config)], Config).

%% @private Runs on node `a': its session with B, and where that goes out.
session(B) ->
    [Info] = [Info#{pid => Pid} || Pid <- weft_sessions:list(),
                                   #{node := Node} = Info <- [weft_session:info(Pid)], Node =:= B],
    Info#{way => case {Info, weft_links:lookup(B)} of
                     {#{link := undefined}, _} -> none;
                     {#{link := Link}, {ok, Link}} -> direct;
                     {#{link := _}, _} -> around
                 end}.

relayed_bytes(Config) ->
    Links = case context(Config) of
                #{g1 := _} -> on(g1, weft_links, info, [], Config);
                #{} -> []
            end,
    lists:sum([Bytes || #{above := #{relayed_bytes := Bytes}} <- Links]).

%% Of faults by kind, over all links.
sums(Counts) ->
    Add = fun({{_, Kind}, N}, Sums) -> maps:update_with(Kind, fun(M) -> M + N end, N, Sums) end,
    lists:foldl(Add, #{}, lists:append([maps:to_list(Count) || Count <- lists:append(Counts)])).

on(Name, Module, Function, Arguments, Config) ->
    Cluster = proplists:get_value(cluster, Config),
    weft_cluster:call(Cluster, Name, Module, Function, {Arguments, ?CALL_MS}).

node_of(Name, Config) ->
    maps:get(Name, context(Config)).

context(Config) ->
    weft_cluster:context(proplists:get_value(cluster, Config)).

%% ---- programs ----

%% @private Runs on node `a'. Stops at the first violation.
play(_How, [], _Nodes) ->
    ok;
play(How, [Seed | Seeds], Nodes) ->
    case play_one(How, weft_signal_program:random(Seed), Nodes) of
        ok -> play(How, Seeds, Nodes);
        {violation, _} = Violation -> {Seed, Violation}
    end.

play_one(right, Program, Nodes) ->
    weft_signal_player:play(Program, Nodes);
play_one(exchanged, Program, Nodes) ->
    weft_signal_player:play(weft_signal_program:exchange(Program), Nodes);
play_one(forgetful, #{talkers := Talkers} = Program, Nodes) ->
    Scripts = Talkers#{1 := weft_signal_program:forget(Program)},
    weft_signal_player:play(Program, Scripts, Nodes).

number(Variable, Default) ->
    case os:getenv(Variable) of
        false -> Default;
        Text -> list_to_integer(Text)
    end.

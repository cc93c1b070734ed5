%% SPDX-License-Identifier: Apache-2.0
%% @doc Property: two signals from one process to another never overtake each other, whatever
%% addresses they use. Random programs (weft_signal_program) are played on two nodes
%% (weft_signal_player), on every carrier. The seed of a failing program is printed;
%%
%%   WEFT_SEED=Seed WEFT_PROGRAMS=1 rebar3 ct --dir test/conformance
%%       --suite weft_signal_order_SUITE --group direct
%%
%% plays it alone. WEFT_CONFORMANCE_ARGS adds arguments of erl to the weft nodes, for example
%% such as make the network hostile.
-module(weft_signal_order_SUITE).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([random_programs_keep_their_order/1, exchanged_signals_are_found/1,
         end_before_the_last_signal_is_found/1]).
-export([play/3]).

-define(PROGRAMS, 500).
-define(CALL_MS, 180_000).

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [{group, Carrier} || Carrier <- weft_cluster:carriers()].

%% That the checker finds violations is shown once, on a carrier that has none.
groups() ->
    Property = [random_programs_keep_their_order],
    Checker = [exchanged_signals_are_found, end_before_the_last_signal_is_found],
    [{Carrier, [], case Carrier of stock -> Checker ++ Property; _ -> Property end}
     || Carrier <- weft_cluster:carriers()].

init_per_suite(Config) ->
    [{epmd, weft_cluster:start_epmd()} | Config].

end_per_suite(Config) ->
    weft_cluster:stop_epmd(proplists:get_value(epmd, Config)).

init_per_group(Carrier, Config) ->
    Place = #{epmd => proplists:get_value(epmd, Config),
              log_dir => proplists:get_value(priv_dir, Config)},
    [{cluster, weft_cluster:start(Carrier, #{}, Place)} | Config].

end_per_group(_Carrier, Config) ->
    weft_cluster:stop(proplists:get_value(cluster, Config)).

random_programs_keep_their_order(Config) ->
    Seed = number("WEFT_SEED", erlang:phash2(os:system_time())),
    Programs = number("WEFT_PROGRAMS", ?PROGRAMS),
    ct:log("seeds ~b to ~b", [Seed, Seed + Programs - 1]),
    case played(right, lists:seq(Seed, Seed + Programs - 1), Config) of
        ok -> ok;
        {Failing, Violation} ->
            ct:fail("WEFT_SEED=~b WEFT_PROGRAMS=1 shows: ~0p", [Failing, Violation])
    end.

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

%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs every conformance case on every carrier: one group per carrier, the same body.
%% The cases are in weft_conformance and the modules it names; here is only plumbing.
%% A carrier's group has parts: `shared' (one pair of nodes for all cases), `visible' (one pair of
%% nodes that see each other in nodes()) and `own' (new nodes for each case, but for those that
%% leave their nodes whole). The direct link has all of them. Unless the environment variable
%% WEFT_CONFORMANCE_ALL is set, or FULL=1, it has no more of `shared' than is `quick', a gateway has
%% `visible' and those of `shared' that depend on the way (`crossing'), and that is all: the others
%% share the code of these (or, stock, show that the cases are right, which is not weft's to keep),
%% and it takes minutes.
%% Each topology has a suite of its own, and so has what becomes of nodes that die behind gateways.
%%
%%   rebar3 ct --dir test/conformance --suite weft_conformance_SUITE --group stock
-module(weft_conformance_SUITE).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2, init_per_testcase/2, end_per_testcase/2]).
-export(['$handle_undefined_function'/2]).

%% The others have to be asked for.
-define(USUAL, [direct, gateway1]).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [{group, Carrier} || Carrier <- carriers(), is_full() orelse lists:member(Carrier, ?USUAL)].

carriers() -> weft_cluster:carriers() ++ weft_cluster:topologies().

groups() ->
    [{Carrier, [], [{group, Kind} || Kind <- kinds(Carrier)]}
     || Carrier <- carriers()]
        ++ [{Kind, [], weft_conformance:cases(Kind)} || Kind <- [shared, quick, crossing, visible]]
        ++ [{own, [], lists:sort(fun is_before/2, weft_conformance:cases(own))}].

%% Those that can have the same nodes come one after the other, and last those that break them.
is_before(A, B) -> place_of(A) =< place_of(B).

place_of(Case) ->
    Needs = weft_conformance:needs(Case),
    {own_options(Needs), left(Needs)}.

%% What a case leaves of its nodes.
left(#{whole := true}) -> 1;
left(#{ends_b := true}) -> 2;
left(#{}) -> 3.

kinds(Carrier) ->
    case is_full() of
        true -> [shared, visible, own];
        false -> usual_kinds(Carrier)
    end.

is_full() ->
    os:getenv("WEFT_CONFORMANCE_ALL") =/= false orelse os:getenv("FULL") =:= "1".

usual_kinds(direct) -> [quick, visible, own];
usual_kinds(gateway1) -> [crossing, visible];
usual_kinds(_Other) -> [visible].

init_per_suite(Config) ->
    [{epmd, weft_cluster:start_epmd()} | Config].

end_per_suite(Config) ->
    weft_cluster:stop_epmd(proplists:get_value(epmd, Config)).

init_per_group(Shared, Config) when Shared =:= shared; Shared =:= quick; Shared =:= crossing ->
    [{cluster, start(Config, #{})} | Config];
init_per_group(visible, Config) ->
    [{cluster, start(Config, #{circuits => visible, third => true})} | Config];
init_per_group(own, Config) ->
    Config;
init_per_group(pubsub, Config) ->
    case weft_amqp_test_broker:is_installed() of
        true ->
            #{port := EpmdPort} = proplists:get_value(epmd, Config),
            Dir = filename:join(proplists:get_value(priv_dir, Config), "broker"),
            Keeper = weft_amqp_test_keeper:start([weft_amqp_test_broker:new(Dir, EpmdPort)]),
            [{carrier, pubsub}, {broker, Keeper} | Config];
        false ->
            {skip, "no RabbitMQ here (Debian package rabbitmq-server)"}
    end;
init_per_group(Carrier, Config) ->
    [{carrier, Carrier} | Config].

end_per_group(Kind, Config)
  when Kind =:= shared; Kind =:= quick; Kind =:= crossing; Kind =:= visible ->
    weft_cluster:stop(proplists:get_value(cluster, Config));
end_per_group(own, _Config) ->
    stop_kept();
end_per_group(pubsub, Config) ->
    weft_amqp_test_keeper:stop(proplists:get_value(broker, Config));
end_per_group(_, _) ->
    ok.

init_per_testcase(Case, Config) ->
    case {weft_conformance:not_given(proplists:get_value(carrier, Config), Case),
          weft_conformance:needs(Case)} of
        {{true, Reason}, _} -> {skip, Reason};
        {false, #{own := true} = Needs} -> [{cluster, own(own_options(Needs), Config)} | Config];
        {false, #{}} -> Config
    end.

end_per_testcase(Case, Config) ->
    Cluster = proplists:get_value(cluster, Config),
    case {weft_conformance:needs(Case), proplists:get_value(tc_status, Config)} of
        {#{own := true} = Needs, ok} -> keep(left(Needs), own_options(Needs), Cluster);
        {#{own := true}, _} -> weft_cluster:stop(Cluster);
        {#{}, _} -> ok
    end.

%% Each case is another process.
keep(1, Options, Cluster) -> persistent_term:put(?MODULE, {Options, whole, Cluster});
keep(2, Options, Cluster) -> persistent_term:put(?MODULE, {Options, without_b, Cluster});
keep(3, _Options, Cluster) -> weft_cluster:stop(Cluster).

own(Options, Config) ->
    case persistent_term:get(?MODULE, none) of
        {Options, Left, Cluster} ->
            true = persistent_term:erase(?MODULE),
            case Left of whole -> Cluster; without_b -> weft_cluster:start_again(b, Cluster) end;
        _ ->
            ok = stop_kept(),
            start(Config, Options)
    end.

stop_kept() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            ok;
        {_, _, Cluster} ->
            true = persistent_term:erase(?MODULE),
            weft_cluster:stop(Cluster)
    end.

%% Test cases are looked up as functions of this module; each of them is a case by that name.
%% Whatever else the framework looks for and may be missing is missing.
'$handle_undefined_function'(Case, [Config]) when is_list(Config) ->
    run(Case, Config);
'$handle_undefined_function'(Function, Arguments) ->
    error_handler:raise_undef_exception(?MODULE, Function, Arguments).

run(Case, Config) ->
    #{time_ms := TimeMs} = weft_conformance:needs(Case),
    Cluster = proplists:get_value(cluster, Config),
    Arguments = [Case, weft_cluster:context(Cluster)],
    case weft_cluster:call(Cluster, weft_conformance, run, {Arguments, TimeMs}) of
        passed -> ok;
        {failed, Text} -> ct:fail("~ts", [Text])
    end.

own_options(Needs) ->
    Visible = case Needs of
                  #{visible := true} -> #{circuits => visible};
                  #{} -> #{}
              end,
    maps:merge(Visible, maps:with([third, args], Needs)).

start(Config, Options) ->
    Place = #{epmd => proplists:get_value(epmd, Config),
              log_dir => proplists:get_value(priv_dir, Config)},
    weft_cluster:start(proplists:get_value(carrier, Config), Options, broker(Place, Config)).

broker(Place, Config) ->
    case proplists:get_value(broker, Config) of
        undefined -> Place;
        Keeper -> Place#{broker => weft_amqp_test_keeper:url(Keeper)}
    end.

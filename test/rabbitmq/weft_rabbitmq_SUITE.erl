%% SPDX-License-Identifier: Apache-2.0
%% @doc A real application, unchanged: a cluster of three RabbitMQ brokers with a quorum queue, on
%% the stock carrier and on weft.
%%
%% Publisher, consumer and the leader of the queue are at three different brokers, so every message
%% crosses the distribution. The second round cuts the network between the brokers for 3 s under
%% load (see weft_rabbitmq_cut). For weft it must go unnoticed but for the pause; with FULL=1 in
%% the environment, what happens to the stock carrier is measured and printed beside it, and not
%% judged.
%% Skipped where RabbitMQ is not installed.
-module(weft_rabbitmq_SUITE).

-include_lib("stdlib/include/assert.hrl").
-include_lib("common_test/include/ct.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([brokers_use_the_carrier/1, each_message_is_consumed_once/1, network_is_cut_for_3_s/1]).

-define(MESSAGES, 4000).
-define(WINDOW, 500).
-define(CUT_MS, 3000).
%% When nothing has come for so long, nothing is under way any more that was sent before the cut.
%% Where that takes longer, so does the cut.
-define(SETTLED_MS, 1000).
-define(SETTLING_MS, 10000).
-define(ROUND_MS, 60000).
-define(RECOVERY_MS, 30000).

suite() ->
    [{timetrap, {minutes, 6}}].

all() ->
    [{group, stock} || os:getenv("FULL") =:= "1"] ++ [{group, weft}].

groups() ->
    Cases = [brokers_use_the_carrier, each_message_is_consumed_once, network_is_cut_for_3_s],
    [{stock, [sequence], Cases}, {weft, [sequence], Cases}].

init_per_suite(Config) ->
    case weft_rabbitmq_brokers:installed() of
        true ->
            compile_load(),
            {ok, Started} = application:ensure_all_started(amqp_client),
            [{started, Started} | Config];
        false ->
            {skip, "no RabbitMQ here (Debian package rabbitmq-server)"}
    end.

end_per_suite(Config) ->
    lists:foreach(fun application:stop/1, lists:reverse(?config(started, Config))).

init_per_group(Carrier, Config) ->
    Dir = filename:join(?config(priv_dir, Config), Carrier),
    New = weft_rabbitmq_brokers:new(Carrier, Dir),
    Way = weft_rabbitmq_cut:way(New),
    [{brokers, weft_rabbitmq_brokers:start(New)}, {way, Way} | Config].

end_per_group(_Carrier, Config) ->
    weft_rabbitmq_brokers:stop(?config(brokers, Config)).

%% rabbitmqctl is on the stock carrier in both groups.
brokers_use_the_carrier(Config) ->
    #{carrier := Carrier} = Brokers = ?config(brokers, Config),
    All = weft_rabbitmq_brokers:all_nodes(Brokers),
    Connections = "[{Node, is_pid(Controller)} ||"
                  " {Node, Controller} <- erlang:system_info(dist_ctrl)].",
    Seen = weft_rabbitmq_brokers:eval_all(fun(_) -> Connections end, Brokers),
    [?assertEqual([{Other, Carrier =:= weft} || Other <- lists:sort(All -- [Node])],
                  lists:sort([C || {Other, _} = C <- Connected, lists:member(Other, All)]))
     || {Node, Connected} <- lists:zip(All, Seen)],
    ?assertEqual(#{running => All, partitions => []},
                 weft_rabbitmq_brokers:cluster_status(1, Brokers)).

each_message_is_consumed_once(Config) ->
    Load = start_load(<<"once">>, ?MESSAGES, Config),
    {Ms, ok} = timed(fun() -> wait_for_all(Load, ?ROUND_MS) end),
    Result = weft_rabbitmq_load:result(Load),
    ok = weft_rabbitmq_load:stop(Load),
    ct:pal("~b messages confirmed and consumed in ~b ms", [?MESSAGES, Ms]),
    ?assertEqual(#{published => ?MESSAGES, confirmed => ?MESSAGES, rejected => 0,
                   unconfirmed => 0, consumed => ?MESSAGES, doubled => [], unconsumed => [],
                   subscriptions => 1, publisher_failures => []}, Result).

network_is_cut_for_3_s(Config) ->
    #{carrier := Carrier} = Brokers = ?config(brokers, Config),
    ok = weft_rabbitmq_watch:start(Brokers),
    Load = start_load(<<"cut">>, infinity, Config),
    wait_for_more(confirmed, 3000, Load),
    ?assert(weft_rabbitmq_cut:connections(Brokers) >= 3),
    Cut = cut(?config(way, Config), Load, Brokers),
    Resumed = resumed(Load),
    ok = weft_rabbitmq_load:publish_no_more(Load),
    Complete = weft_rabbitmq_wait:within(fun() -> is_complete(Load) end, ?RECOVERY_MS),
    Findings = findings(Load, Brokers),
    ct:pal("~s, 3 s cut (~s), then~n~p~n~s",
           [Carrier, ?config(way, Config), maps:without([unconsumed, doubled], Findings),
            summary(Resumed, Findings)]),
    ok = weft_rabbitmq_load:stop(Load),
    %% It was a cut: no broker could confirm alone, and no connection outlived a firewall. (Inside,
    %% a connection may be there that the other side will refuse.)
    ?assertMatch(#{stalled := true}, Cut),
    ?assert(?config(way, Config) =:= inside orelse maps:get(connections, Cut) =:= 0),
    Carrier =:= weft andalso unnoticed(Complete, Findings, Brokers),
    {comment, summary(Resumed, Findings)}.

unnoticed(Complete, Findings, Brokers) ->
    All = weft_rabbitmq_brokers:all_nodes(Brokers),
    ?assertMatch(#{unconsumed := [], unconfirmed := 0, rejected := 0, publisher_failures := []},
                 Findings),
    ?assert(Complete),
    ?assertMatch(#{nodedowns := [], logged_node_down := 0, logged_partition := 0}, Findings),
    ?assertEqual([#{running => All, partitions => []} || _ <- All],
                 maps:get(cluster_status, Findings)).

%% Cuts, waits, heals, and tells how things stood at the end of the cut.
cut(Way, Load, Brokers) ->
    Cut = weft_rabbitmq_cut:cut(Way, Brokers),
    try
        _ = weft_rabbitmq_wait:within(fun() -> is_settled(Load) end, ?SETTLING_MS),
        Before = weft_rabbitmq_load:counts(Load),
        timer:sleep(?CUT_MS - ?SETTLED_MS), % pacing: the cut has a length
        #{stalled => Before =:= weft_rabbitmq_load:counts(Load),
          connections => weft_rabbitmq_cut:connections(Brokers)}
    after
        ok = weft_rabbitmq_cut:heal(Cut)
    end.

is_settled(Load) ->
    Before = weft_rabbitmq_load:counts(Load),
    timer:sleep(?SETTLED_MS), % pacing: what was under way arrives
    Before =:= weft_rabbitmq_load:counts(Load).

%% How long after the cut confirms went on, and 3,000 more were there (or never, in time).
resumed(Load) ->
    #{confirmed := Before} = weft_rabbitmq_load:counts(Load),
    Went = fun(Count) -> fun() -> confirmed(Load) >= Before + Count end end,
    {Ms, Resumed} = timed(fun() -> weft_rabbitmq_wait:within(Went(1), ?RECOVERY_MS) end),
    case Resumed andalso weft_rabbitmq_wait:within(Went(3000), ?RECOVERY_MS) of
        true -> Ms;
        false -> never
    end.

findings(Load, Brokers) ->
    Result = weft_rabbitmq_load:result(Load),
    Statuses = weft_rabbitmq_brokers:views(Brokers),
    Result#{cluster_status => Statuses,
            nodedowns => weft_rabbitmq_watch:nodedowns(Brokers),
            logged_node_down => weft_rabbitmq_brokers:log_lines("rabbit on node .* down", Brokers),
            logged_partition => weft_rabbitmq_brokers:log_lines(
                "Partial partition|inconsistent_database|running_partitioned_network", Brokers)}.

summary(Resumed, #{nodedowns := Downs, logged_node_down := Logged, logged_partition := Partitions,
                   unconsumed := Unconsumed, doubled := Doubled, cluster_status := Statuses}) ->
    Reporting = length([S || #{partitions := P} = S <- Statuses, P =/= []]),
    Text = io_lib:format("confirms again after ~p ms; ~b nodedowns (~b logged), "
                         "~b brokers report a partition (~b logged), "
                         "~b confirmed but not consumed in time, ~b doubled",
                         [Resumed, length(Downs), Logged, Reporting, Partitions, length(Unconsumed),
                          length(Doubled)]),
    lists:flatten(Text).

%% The queue is led by broker 3, published to at broker 1, consumed from at broker 2.
start_load(Queue, Messages, Config) ->
    [One, Two, Three] = [weft_rabbitmq_brokers:amqp_address(N, ?config(brokers, Config))
                         || N <- [1, 2, 3]],
    ok = weft_rabbitmq_load:declare(Three, Queue),
    weft_rabbitmq_load:start(#{publish_at => One, consume_at => Two, queue => Queue,
                               messages => Messages, window => ?WINDOW}).

wait_for_all(Load, TimeoutMs) ->
    All = fun() -> confirmed(Load) >= ?MESSAGES andalso is_complete(Load) end,
    weft_rabbitmq_wait:until(All, all_consumed, TimeoutMs).

wait_for_more(Key, Count, Load) ->
    Target = maps:get(Key, weft_rabbitmq_load:counts(Load)) + Count,
    More = fun() -> maps:get(Key, weft_rabbitmq_load:counts(Load)) >= Target end,
    weft_rabbitmq_wait:until(More, {Key, Target}, ?ROUND_MS).

confirmed(Load) ->
    maps:get(confirmed, weft_rabbitmq_load:counts(Load)).

%% All are answered, and what was confirmed is consumed.
is_complete(Load) ->
    #{unconfirmed := Open, unconsumed := Unconsumed} = weft_rabbitmq_load:result(Load),
    Open =:= 0 andalso Unconsumed =:= [].

timed(Fun) ->
    {Us, Value} = timer:tc(Fun),
    {Us div 1000, Value}.

%% The client's headers belong to the RabbitMQ that is installed.
compile_load() ->
    Here = filename:dirname(proplists:get_value(source, module_info(compile))),
    Source = filename:join(Here, "weft_rabbitmq_SUITE_data/weft_rabbitmq_load"),
    {ok, Module, Code} = compile:file(Source, [binary, report, debug_info]),
    {module, Module} = code:load_binary(Module, Source, Code),
    ok.

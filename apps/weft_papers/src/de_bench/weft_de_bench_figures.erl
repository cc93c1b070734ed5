%% SPDX-License-Identifier: Apache-2.0
%% @doc What A. Ghaffari says of distributed Erlang ("Investigating the Scalability Limits of
%% Distributed Erlang", Erlang Workshop 2014, section 3, and the talk "Scalable Persistent Storage
%% for Erlang", 2013), and what is measured here: Figs. 5 to 13, small. What is found in it, and by
%% which bounds, is in `weft_de_bench_findings'.
-module(weft_de_bench_figures).
-behaviour(weft_papers_figures).

-export([figures/0]).
%% For the same figures with quotas.
-export([figure/3]).

-define(FOUND, weft_de_bench_findings).
-define(TWO_CORES, "Two cores for all nodes, up to 24 of them (60 in Fig. 5, 100 in Fig. 6); the "
        "paper has a host with eight cores for each of up to 100 nodes, and five minutes where "
        "there are five seconds here. ").

%% @private
figures() ->
    global_figures() ++ [riak()] ++ peer_figures() ++ server_figures().

global_figures() ->
    [(figure("de_5", "Fig. 5: scalability and percentage of global commands", <<"de_global">>))#{
       claim => "The more global commands, the sooner more nodes do not do more: with 0.01 % "
       "beyond 60 nodes. Of weft: its names keep throughput flat, within 5 %.",
       bound => ?FOUND:behind(),
       findings => fun(Results) ->
                       ?FOUND:falls_behind(Results) ++ ?FOUND:falls_with_share(Results)
                   end,
       charts => fun(Results) ->
                     weft_report_de_bench:shares(<<"de_global">>, Results)
                         ++ weft_report_de_bench:throughput(<<"de_global">>, Results)
                 end,
       not_shown => ?TWO_CORES "So each node wants 50 commands per second, and what can be seen "
       "is what of that is done; it takes more global commands than in the paper until that is "
       "less. 0.01 % are a few names in all. 60 nodes are measured once; twice, and for a minute "
       "each, they would take half an hour more. " ++ weft_papers_remarks:names()},
     (figure("de_6", "Fig. 6: latency of commands", <<"de_global">>))#{
       claim => "The time of register and unregister grows dramatically with the nodes, to 20 s "
       "with 100 of them; spawn, rpc and whereis are negligible beside it.",
       bound => ?FOUND:slower_names(),
       cells := most_global(),
       findings => fun(Results) -> ?FOUND:names(<<"de_global">>, Results) end,
       charts => fun(Results) ->
                     [weft_report_chart:said("register, the paper's text",
                                             [{100, 20000000, "20 s with 100 nodes"}], Chart)
                      || Chart <- latencies(<<"de_global">>, last, commands() ++ peers(), Results)]
                 end,
       not_shown => ?TWO_CORES "100 nodes are measured once, for half a minute, and on "
       "stock alone: on weft so many were not up within the 20 s that a node has to start, while "
       "other programs used the cores, too. "
       "Operations that take longer than the measurement are not in the means, here and there. "
       ++ weft_papers_remarks:names()}].

riak() ->
    (figure("riak", "Riak talk 2013: latency of register, unregister, whereis", <<"de_names">>))#{
      where => "Riak talk 2013: latency of register, unregister, whereis",
      claim => "With 2 % of global updates the time of register and unregister grows with the "
      "nodes; that of spawn and whereis does not.",
      bound => ?FOUND:slower_names(),
      findings => fun(Results) -> ?FOUND:names(<<"de_names">>, Results) end,
      charts => fun(Results) ->
                    latencies(<<"de_names">>, last,
                              commands() ++ ["spawning", "local_register", "local_whereis"],
                              Results)
                end,
      not_shown => ?TWO_CORES "Riak itself, its throughput and its availability: another "
      "program. Where the peak is (50 nodes with 0.5 %, 30 with 1 %): see de_5. "
      ++ weft_papers_remarks:names()}.

peer_figures() ->
    [(figure("de_7", "Fig. 7: scalability and data size", <<"de_size">>))#{
       claim => "The larger the argument, the less is done: 10 B is best, 10 kB worst.",
       bound => ?FOUND:less(),
       findings => fun(Results) -> ?FOUND:less_with_more(<<"de_size">>, Results) end,
       charts => throughput(<<"de_size">>),
       not_shown => ?TWO_CORES "Scaling: throughput is what the cores carry, however many nodes."},
     (figure("de_8", "Fig. 8: scalability and computation time", <<"de_compute">>))#{
       claim => "The longer a command computes, the less is done.",
       bound => ?FOUND:less(),
       findings => fun(Results) -> ?FOUND:less_with_more(<<"de_compute">>, Results) end,
       charts => throughput(<<"de_compute">>),
       not_shown => ?TWO_CORES "Scaling, and computations of 100 ms and of one second: 10 ms "
       "instead, of which two cores do 200 in a second."},
     (figure("de_9", "Fig. 9: data size and computation time", <<"de_heavy">>))#{
       claim => "With 1,000 B, 1 ms and no global commands throughput grows linearly to 150 nodes.",
       bound => ?FOUND:linear(),
       findings => fun ?FOUND:linear/1, charts => throughput(<<"de_heavy">>),
       not_shown => ?TWO_CORES "150 nodes: each wants 30 commands per second, of which each "
       "computes for 1 ms. All of up to 24 nodes together can compute that; 150 would want 4.5 s "
       "of it in each second, of which two cores have two. (On stock so many start.) A third of "
       "the commands are \"rex calls\" (de_10), the others spawn and rpc, as there."},
     (figure("de_10", "Fig. 10: latency of spawn and rpc", <<"de_heavy">>))#{
       claim => "The time of rpc grows with the nodes, and that of spawn is much less.",
       bound => ?FOUND:slow_calls(),
       findings => fun(Results) -> ?FOUND:calls(<<"de_heavy">>, last, Results) end,
       charts => fun(Results) -> latencies(<<"de_heavy">>, last, calls(), Results) end,
       not_shown => ?TWO_CORES ++ rex()}].

server_figures() ->
    [(figure("de_11", "Fig. 11: scalability and server process calls", <<"de_server">>))#{
       claim => "The more of all commands are calls to server processes, the more is done.",
       bound => ?FOUND:more(), findings => fun ?FOUND:more_with_servers/1,
       charts => throughput(<<"de_server">>),
       not_shown => ?TWO_CORES "Scaling. What is no server call is spawn, rpc, or rex call."}
     | [(figure(Id, Title, <<"de_calls">>))#{
          claim => "Only the time of rpc grows with the nodes; server calls have the lowest.",
          bound => ?FOUND:slow_calls(),
          findings => fun(Results) -> ?FOUND:calls(<<"de_calls">>, {10, Percent}, Results) end,
          charts => fun(Results) ->
                        latencies(<<"de_calls">>, {10, Percent},
                                  calls() ++ ["gen_server_call", "fsm_server_call"], Results)
                    end,
          not_shown => ?TWO_CORES "Each node wants 250 commands per second: workers that are as "
          "fast as they can be would wait for the cores. " ++ rex()}
        || {Id, Percent, Title} <- [{"de_12", 1, "Fig. 12: latency with 1 % server calls"},
                                    {"de_13", 50, "Fig. 13: latency with 50 % server calls"}]]].

rex() ->
    "Since OTP 23 rpc makes a process for each call; \"rex call\" goes through one server process "
        "of the node, as rpc did when the paper was written.".

%% @private
-spec figure(Id :: string(), Title :: string(), Workload :: binary()) -> map().
figure(Id, Title, Workload) ->
    #{id => Id, where => "DE-Bench 2014, " ++ Title,
      cells => ["--suites", "de_bench", "--only", lists:flatten(chosen(Workload))]}.

%% A list of them is separated by commas.
chosen(<<"de_global">> = Workload) ->
    ["de_bench: ", weft_report_words:workload(Workload),
     " .* (2|3|6|8|24|60) nodes. (0.0|0.01|0.5|1.0|5.0) %"];
chosen(Workload) ->
    ["de_bench: ", weft_report_words:workload(Workload), " .* (2|4|8|16|24) nodes"].

%% With the largest share of them, on more nodes.
most_global() ->
    ["--suites", "de_bench", "--only",
     lists:flatten(["de_bench: ", weft_report_words:workload(<<"de_global">>),
                    " .* (2|3|6|8|24|60|100) nodes. 5.0 %"])].

throughput(Workload) ->
    fun(Results) -> weft_report_de_bench:throughput(Workload, Results) end.

latencies(Workload, last, Operations, Results) ->
    lists:append([latencies(Workload, Parameter, Operations, Results)
                  || Parameter <- last(weft_report_de_bench:parameters(Workload, Results))]);
latencies(Workload, Parameter, Operations, Results) ->
    weft_report_de_bench:latencies(Workload, Parameter, Operations, Results).

last([]) -> [];
last(Parameters) -> [lists:last(Parameters)].

commands() -> ["register", "unregister", "whereis"].
peers() -> ["spawning", "remote_call"].
calls() -> ["spawning", "remote_call", "rex_call"].

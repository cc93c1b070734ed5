%% SPDX-License-Identifier: Apache-2.0
%% @doc The program Instant Messenger: a chat service on many nodes that goes on when its processes
%% are killed (N. Chechina et al., "Evaluating Scalable Distributed Erlang for Scalability and
%% Reliability", IEEE TPDS 28(8), 2017, sections 4.3 and 5.4.1), and people who talk (M. Moro
%% Hernandez et al., "A Reliable Instant Messenger in Erlang", TR-2015-002, Glasgow 2015).
%%
%% RD-IM, reliable and distributed: everybody sends to everybody; names are of the whole cluster.
%% RSD-IM, reliable, scalable and distributed (`is_grouped'): names and connections are those of
%% groups, a router with its servers and clients; routers pass on what is for other groups.
%%
%% ```
%% weft_im_region              starts, asks and stops what belongs to a router
%%   weft_im_router_supervisor, weft_im_router      watch each other
%%     weft_im_server                               one for each server node
%%       weft_im_notes, weft_im_database            tables, and the copies of those of the next
%%       weft_im_monitor, weft_im_session           for each client, for each conversation
%%   weft_im_traffic, weft_im_client                people, and their end of the service
%% '''
%% The run is right if all that was said was heard once by whom it was for, is acknowledged, or its
%% sender was told that it was given up; if databases are equal to their copies in the end, and if
%% all names are registered. What was given up is lost, unless the server of one of the two who
%% talked was given up with its node, as it has to be.
-module(weft_im).
-behaviour(weft_bench_program).

-export([plan/2, start/1, run/1, check/1, stop/1]).
-export_type([settings/0]).

%% Those of a service (`weft_im_plan'), and: how many clients, for how long they talk before it
%% counts and then, how much faster than people, and the seed.
-type settings() :: #{count := pos_integer(), warm_up_ms := non_neg_integer(),
                      run_ms := pos_integer(), scale := number(), seed := integer(), _ => _}.

-record(state, {service :: weft_im_plan:service(), settings :: settings(),
                regions = [] :: [pid()], books = weft_im_traffic:empty() :: weft_im_traffic:books(),
                wrong = [] :: [iodata()]}).

-define(DEFAULTS, #{routers => 1, servers => 3, client_nodes => 1, count => 100, scale => 0.01,
                    seed => 1, warm_up_ms => 2000, run_ms => 10000}).
-define(ANSWER_MS, 120000).
-define(PERCENTS, [{latency_p50_us, 50}, {latency_p99_us, 99}]).

%% @private
plan(Options, Nodes) ->
    Settings = maps:merge(?DEFAULTS, Options),
    case bad(Settings) of
        [] -> planned(weft_im_plan:new(Settings#{run => erlang:unique_integer([positive])}, Nodes),
                      Settings);
        [Text | _] -> {error, Text}
    end.

bad(#{scale := Scale, client_nodes := ClientNodes, count := Count} = Settings) ->
    [io_lib:format("~s is ~0p: it must be a number above 0", [Key, Value])
     || Key <- [run_ms, client_nodes], Value <- [map_get(Key, Settings)],
        not is_integer(Value) orelse Value < 1]
        ++ [io_lib:format("scale is ~0p: it must be a number above 0, at most 1", [Scale])
            || not is_number(Scale) orelse Scale =< 0 orelse Scale > 1]
        ++ [io_lib:format("~0p clients: two at least talk, and one on each node", [Count])
            || not is_integer(Count) orelse Count < 2
                   orelse Count < ClientNodes * map_get(routers, Settings)].

planned({ok, Service}, Settings) -> {ok, {Service, Settings}};
planned({error, _} = Error, _Settings) -> Error.

%% @private
start({#{routers := Routers} = Service, Settings}) ->
    process_flag(trap_exit, true),
    Regions = [weft_im_region:start_link(Service, Router)
               || Router <- lists:seq(1, tuple_size(Routers))],
    State = #state{service = Service, settings = Settings, regions = Regions},
    ok = registered(lists:append(all({names, []}, State))),
    _ = all({people, Settings}, State),
    State.

%% On a machine with too much to do names may take longer than they get.
registered([]) -> ok;
registered(Missing) -> exit({names_not_registered, length(Missing), lists:sublist(Missing, 3)}).

all(Request, #state{regions = Regions}) ->
    ok = weft_im_region:ask(Regions, Request),
    weft_im_region:answers(Regions, ?ANSWER_MS).

%% @private
run(#state{settings = #{warm_up_ms := WarmUpMs, run_ms := RunMs}} = State) ->
    _ = all(talk, State),
    _ = watch(WarmUpMs, State),
    _ = all(mark, State),
    _ = watch(RunMs, State),
    Loud = lists:append(all(finish, State)),
    Books = lists:foldl(fun weft_im_traffic:add/2, weft_im_traffic:empty(),
                        lists:append(all(report, State))),
    State#state{books = Books, wrong = [io_lib:format("people on ~0p wait for answers", [Loud])
                                        || Loud =/= []]}.

%% Lets time pass; but if a region is lost this is the end.
watch(TimeMs, #state{regions = Regions}) ->
    receive
        {'EXIT', Pid, Why} ->
            lists:member(Pid, Regions) andalso weft_bench_program:lost(Pid, Why)
    after TimeMs -> ok
    end.

%% @private
check(#state{books = Books, wrong = Silence} = State) ->
    Lost = lists:append(all(lost, State)),
    Missing = lists:append(all({names, Lost}, State)),
    Different = lists:append(all({copies, Lost}, State)),
    case Silence ++ bookkeeping(Books)
        ++ [io_lib:format("no process has the names ~0p", [Missing]) || Missing =/= []]
        ++ [io_lib:format("databases ~0p differ from their copies", [Different])
            || Different =/= []] of
        [] -> {ok, (result(Books))#{servers_lost => Lost, lost_messages => lost(Books, Lost)}};
        Wrong -> {error, lists:join("; ", Wrong)}
    end.

bookkeeping(#{said := Said, heard := Heard, delivered := Delivered, given_up := GivenUp} = Books) ->
    [io_lib:format("~b messages ~s", [map_get(Key, Books), Text])
     || {Key, Text} <- [{doubled, "came twice"}, {wrong, "are not what was said"}],
        map_get(Key, Books) > 0]
        ++ [io_lib:format("~b messages were said, ~b acknowledged and ~b given up",
                          [Said, Delivered, GivenUp]) || Said =/= Delivered + GivenUp]
        ++ [io_lib:format("~b messages are acknowledged, and ~b were heard", [Delivered, Heard])
            || Heard < Delivered]
        ++ [io_lib:format("~b messages were said, and ~b heard", [Said, Heard]) || Heard > Said].

lost(#{unsaid := Unsaid}, LostServers) ->
    length([Servers || Servers <- Unsaid, Servers -- LostServers =:= Servers]).

result(#{heard_marked := Heard, marked_us := Us, latencies := Latencies, said := Said} = Books) ->
    Counts = maps:with([said, heard, delivered, given_up, conversations, logged_out], Books),
    maps:merge(Counts#{delivered_per_min => Heard * 6.0e7 / max(1, Us), program_messages => Said},
               maps:from_list([{Metric, weft_load_histogram:percentile(Percent, Latencies)}
                               || {Metric, Percent} <- ?PERCENTS,
                                  weft_load_histogram:count(Latencies) > 0])).

%% @private
stop(State) ->
    _ = all(stop, State),
    ok.

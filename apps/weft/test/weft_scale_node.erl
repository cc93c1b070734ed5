%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on each node of `weft_scale': somebody who talks to some others by ordinary
%% messages and monitors them, hears what is broadcast, and keeps account of all.
-module(weft_scale_node).

-export([start/0, talk/2, stop/0, account/0, info/0, until_routes/2]).

-define(EVERY_MS, 500).
-define(SCOPE, town).
-define(LOOK_MS, 50).

-record(talker, {partners = [] :: [node()],
                 %% Broadcasts that this node makes: one in so many rounds, none for 0.
                 news_every = 0 :: non_neg_integer(),
                 round = 0 :: non_neg_integer(),
                 is_talking = true :: boolean(),
                 %% The last number of each sender; messages that came out of turn.
                 heard = #{} :: #{{said | news, node()} => pos_integer()},
                 news = #{} :: #{node() => [pos_integer()]},
                 wrong = [] :: [term()],
                 downs = [] :: [{node(), term()}]}).

%% @doc Starts the talker of this node, who listens.
-spec start() -> ok.
start() ->
    Caller = self(),
    Pid = spawn(fun() ->
                        true = register(?MODULE, self()),
                        ok = weft:subscribe(?SCOPE),
                        Caller ! {self(), ready},
                        talk(#talker{})
                end),
    receive {Pid, ready} -> ok end.

%% @doc From now on it talks to the talkers of the partners, twice a second.
-spec talk([node()], NewsEvery :: non_neg_integer()) -> ok.
talk(Partners, NewsEvery) -> ask({talk, Partners, NewsEvery}).

%% @doc No more is said from here.
-spec stop() -> ok.
stop() -> ask(stop).

%% @doc `rounds' of messages that were sent, to each partner one; the last number `heard' of each
%% sender; `news' that came, of each sender; what was `wrong' with their order; partners that are
%% `down'.
-spec account() -> map().
account() -> ask(account).

ask(What) -> weft_test_nodes:ask(?MODULE, What).

talk(Talker) ->
    receive
        talk -> talk(said(Talker));
        {said, From, N} -> talk(heard({said, From}, N, Talker));
        {weft_broadcast, ?SCOPE, From, N} -> talk(news(From, N, Talker));
        {'DOWN', _, process, {_, Node}, Reason} ->
            talk(Talker#talker{downs = [{Node, Reason} | Talker#talker.downs]});
        {{talk, Partners, NewsEvery}, From, Ref} ->
            %% Of two that call each other one may be told that there is no connection.
            ok = weft_test_nodes:until(
                   fun() -> lists:all(fun net_kernel:connect_node/1, Partners) end),
            _ = [monitor(process, {?MODULE, Node}) || Node <- Partners],
            self() ! talk,
            From ! {Ref, ok},
            talk(Talker#talker{partners = Partners, news_every = NewsEvery});
        {stop, From, Ref} -> From ! {Ref, ok}, talk(Talker#talker{is_talking = false});
        {account, From, Ref} -> From ! {Ref, account(Talker)}, talk(Talker)
    end.

said(#talker{is_talking = false} = Talker) ->
    Talker;
said(#talker{partners = Partners, round = Round, news_every = Every} = Talker) ->
    _ = [{?MODULE, Node} ! {said, node(), Round + 1} || Node <- Partners],
    _ = [ok = weft:broadcast(?SCOPE, Round + 1) || Every > 0, (Round + 1) rem Every =:= 0],
    _ = erlang:send_after(?EVERY_MS, self(), talk),
    Talker#talker{round = Round + 1}.

heard(Sender, N, #talker{heard = Heard, wrong = Wrong} = Talker) ->
    case maps:get(Sender, Heard, 0) of
        Last when N =:= Last + 1 -> Talker#talker{heard = Heard#{Sender => N}};
        Last -> Talker#talker{heard = Heard#{Sender => N}, wrong = [{Sender, Last, N} | Wrong]}
    end.

news(From, N, #talker{news = News} = Talker) ->
    Talker#talker{news = News#{From => [N | maps:get(From, News, [])]}}.

account(#talker{round = Round, heard = Heard, news = News, wrong = Wrong, downs = Downs}) ->
    #{rounds => Round, heard => maps:from_list([{From, N} || {{said, From}, N} <-
                                                                 maps:to_list(Heard)]),
      news => News, wrong => Wrong, downs => Downs}.

%% @doc Returns when this node has routes to exactly these nodes; false after the time is over.
-spec until_routes([node()], TimeoutMs :: non_neg_integer()) -> boolean().
until_routes(Nodes, TimeoutMs) ->
    poll(lists:sort(Nodes), erlang:monotonic_time(millisecond) + TimeoutMs).

poll(Nodes, Deadline) ->
    case [Node || {Node, _} <- weft_overlay:routes()] of
        Nodes -> true;
        _ ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true -> receive after ?LOOK_MS -> poll(Nodes, Deadline) end; % pacing: of this loop
                false -> false
            end
    end.

%% @doc TCP connections to other nodes (not to epmd), neighbours, sessions, and memory: bytes of the
%% emulator, and kB of the process as the system sees it: its own, and with a share of what it has
%% in common with others.
-spec info() -> map().
info() ->
    #{connections => connections(), neighbours => length(weft_overlay:neighbours()),
      routes => length(weft_overlay:routes()), sessions => length(weft_sessions:list()),
      memory_bytes => erlang:memory(total), memory_kb => system_memory_kb()}.

connections() ->
    Epmd = list_to_integer(os:getenv("ERL_EPMD_PORT", "4369")),
    length([Port || Port <- erlang:ports(), {name, "tcp_inet"} =:= erlang:port_info(Port, name),
                    {ok, {_, Other}} <- [inet:peername(Port)], Other =/= Epmd]).

system_memory_kb() ->
    case file:read_file("/proc/self/smaps_rollup") of
        {ok, Text} -> maps:from_list([{Key, number(Name, Text)} || {Key, Name} <-
                                          [{own, "Private_Dirty"}, {with_share, "Pss"}]]);
        {error, _} -> #{}
    end.

number(Name, Text) ->
    {match, [Number]} = re:run(Text, "^" ++ Name ++ ": +(\\d+) kB",
                               [multiline, {capture, [1], list}]),
    list_to_integer(Number).

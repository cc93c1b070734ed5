%% SPDX-License-Identifier: Apache-2.0
%% @doc What the nodes of `weft_channel_SUITE' run: receivers that keep what comes, senders of
%% numbered messages, a server, and readings of memory. Loaded on the nodes by their code path.
-module(weft_channel_traffic).
-behaviour(gen_server).

-export([start/1, keeper/1, received/1, count/1, stop/1, send_numbered/5, wait_numbered/1, many/3,
         numbers/1, send_large/2, digests/1, start_server/1, memory/0, fill/4, relay/4,
         attach_telemetry/1, refuse_chunks/1, accept/5,
         hold/1, go_on/1, has/2, inject/3, exit_receivers/1]).
-export([init/1, handle_call/3, handle_cast/2]).

%% @doc Starts weft and what belongs to a test.
-spec start([atom()]) -> ok.
start(Names) ->
    {ok, _} = application:ensure_all_started(weft),
    lists:foreach(fun(Name) -> {ok, _} = keeper(Name) end, Names).

%% --- a process that keeps what it gets --------------------------------------------------------

%% @doc Keeps messages, newest first; registered under Name unless it is `none'.
-spec keeper(atom()) -> {ok, pid()}.
keeper(Name) ->
    Self = self(),
    Pid = spawn(fun() ->
                        _ = Name =:= none orelse register(Name, self()),
                        Self ! {self(), ready},
                        keep([])
                end),
    receive {Pid, ready} -> {ok, Pid} end.

keep(Kept) ->
    receive
        {'$kept', From, Ref} -> From ! {Ref, lists:reverse(Kept)}, keep(Kept);
        {'$count', From, Ref} -> From ! {Ref, length(Kept)}, keep(Kept);
        hold -> receive go_on -> keep(Kept) end;
        Message -> keep([Message | Kept])
    end.

%% @doc What a keeper has got, oldest first.
-spec received(pid() | atom()) -> [term()].
received(Keeper) -> ask('$kept', Keeper).

-spec count(pid() | atom()) -> non_neg_integer().
count(Keeper) -> ask('$count', Keeper).

ask(What, Keeper) ->
    Ref = make_ref(),
    Keeper ! {What, self(), Ref},
    receive {Ref, Answer} -> Answer after 20000 -> error({no_answer, Keeper}) end.

-spec stop(pid() | atom()) -> true.
stop(Name) when is_atom(Name) -> stop(whereis(Name));
stop(Pid) -> exit(Pid, kill).

%% @doc The keeper takes nothing from its mailbox until `go_on/1'.
-spec hold(atom()) -> hold.
hold(Keeper) -> Keeper ! hold.

-spec go_on(atom()) -> go_on.
go_on(Keeper) -> Keeper ! go_on.

%% @doc Has a process these bytes in its state, such as a message in a payload that waits?
-spec has(pid(), binary()) -> boolean().
has(Pid, Bytes) -> binary:match(term_to_binary(sys:get_state(Pid)), Bytes) =/= nomatch.

%% --- a node that is stopping its channels -----------------------------------------------------

%% @doc So many streams for chunks are refused from now on.
-spec refuse_chunks(pos_integer()) -> ok.
refuse_chunks(Count) ->
    Left = counters:new(1, []),
    ok = counters:add(Left, 1, Count),
    ok = persistent_term:put(?MODULE, Left),
    weft_sessions:accept_channels(?MODULE).

%% @doc As `weft_channel_receiver:accept/5'.
-spec accept(weft_sessions:id(), binary(), weft_stream:path(), binary(), byte()) ->
          {ok, pid()} | {error, {shutdown, taken} | refused}.
accept(Id, Peer, Path, Channel, Partition) ->
    Left = persistent_term:get(?MODULE),
    case weft_channels:is_stripe(Partition) andalso counters:get(Left, 1) > 0 of
        true -> counters:sub(Left, 1, 1), {error, refused};
        false -> weft_channel_receiver:accept(Id, Peer, Path, Channel, Partition)
    end.

%% @doc Ends the processes that receive streams here, but for one that has ended: how many.
-spec exit_receivers(Former :: pid()) -> non_neg_integer().
exit_receivers(Former) ->
    length([exit(Pid, shutdown) || {_, Pid} <- weft_channels:receivers(), Pid =/= Former]).

%% --- senders ----------------------------------------------------------------------------------

%% @doc A process on this node that sends {Tag, N, Payload} for N from 1 to Count; sizes differ, up
%% to BytesMax.
-spec send_numbered(weft_channel:dest(), term(), pos_integer(), pos_integer(),
                    weft_channel:options()) -> pid().
send_numbered(Dest, Tag, Count, BytesMax, Options) ->
    spawn(fun() -> numbered(Dest, Tag, 1, Count, BytesMax, Options), await_question() end).

numbered(_Dest, _Tag, N, Count, _BytesMax, _Options) when N > Count ->
    ok;
numbered(Dest, Tag, N, Count, BytesMax, Options) ->
    Size = (N * 7919) rem BytesMax,
    ok = weft:send(Dest, {Tag, N, binary:copy(<<(N rem 256)>>, Size)}, Options),
    numbered(Dest, Tag, N + 1, Count, BytesMax, Options).

await_question() ->
    receive {done, From, Ref} -> From ! {Ref, done} end.

%% @doc Waits until a sender has sent all.
-spec wait_numbered(pid()) -> done.
wait_numbered(Pid) ->
    Ref = monitor(process, Pid),
    Pid ! {done, self(), Ref},
    receive
        {Ref, done} -> demonitor(Ref, [flush]), done;
        {'DOWN', Ref, _, _, Reason} -> error({sender_ended, Reason})
    after 120000 -> error(sender_hangs)
    end.

%% @doc The last number of each tag, if a keeper got 1, 2, 3 ... of each, with what was sent.
-spec numbers(pid() | atom()) -> #{term() => pos_integer()} | {error, term()}.
numbers(Keeper) ->
    lists:foldl(fun(_, {error, _} = Error) -> Error;
                   ({Tag, N, Binary}, Last) -> number(Tag, N, Binary, maps:get(Tag, Last, 0), Last)
                end, #{}, received(Keeper)).

number(Tag, N, Binary, Before, Last) when N =:= Before + 1 ->
    case binary:copy(<<(N rem 256)>>, byte_size(Binary)) of
        Binary -> Last#{Tag => N};
        _ -> {error, {changed, Tag, N}}
    end;
number(Tag, N, _Binary, Before, _Last) ->
    {error, {Tag, N, comes_after, Before}}.

%% @doc Sends messages with large binaries in many places, and small ones between; to the receivers
%% in turn. Returns their digests, which `digests/1' gives for what a keeper has.
-spec send_large([weft_channel:dest()], weft_channel:options()) -> [binary()].
send_large(Tos, Channel) ->
    Binary = rand:bytes(20 * 1024 * 1024),
    Part = binary:part(Binary, 77, 70000),
    Messages = [{1, Channel, Binary}, {two, Channel},
                {3, Channel, [Part, #{k => Part}, "text" | Part], make_ref()},
                {'$gen_cast', {Part, {Part, {Part, {Part, Part}}}, Channel}},
                {[Part || _ <- lists:seq(1, 40)], Channel},
                list_to_tuple([Channel, lists:seq(1, 100000) | lists:duplicate(300, Part)]),
                {last, Channel}],
    Turns = lists:append(lists:duplicate(length(Messages), Tos)),
    [begin
         ok = weft:send(To, Message, Channel),
         digest(Message)
     end || {To, Message} <- lists:zip(lists:sublist(Turns, length(Messages)), Messages)].

-spec digests(pid() | atom()) -> [binary()].
digests(Keeper) -> [digest(Message) || Message <- received(Keeper)].

digest(Message) -> crypto:hash(sha256, term_to_binary(Message, [{minor_version, 2}])).

%% @doc Results of Count sends of one message.
-spec many(weft_channel:dest(), pos_integer(), weft_channel:options()) -> [term()].
many(Dest, Count, Options) ->
    [weft:send(Dest, {n, N}, Options) || N <- lists:seq(1, Count)].

%% @doc Sends binaries of Bytes until Deadline (milliseconds from now); returns how often each
%% result came.
-spec fill(weft_channel:dest(), pos_integer(), pos_integer(), weft_channel:options()) ->
          #{term() => pos_integer()}.
fill(Dest, Bytes, Ms, Options) ->
    fill(Dest, binary:copy(<<1>>, Bytes), erlang:monotonic_time(millisecond) + Ms, Options, #{}).

fill(Dest, Binary, Deadline, Options, Results) ->
    case erlang:monotonic_time(millisecond) < Deadline of
        true ->
            Result = weft:send(Dest, Binary, Options),
            fill(Dest, Binary, Deadline, Options,
                 maps:update_with(Result, fun(N) -> N + 1 end, 1, Results));
        false ->
            Results
    end.

%% @doc A registered process that answers {ping, N, To} by sending {pong, N} on, over a channel.
-spec relay(atom(), weft_channel:dest(), term(), weft_channel:options()) -> {ok, pid()}.
relay(Name, To, Tag, Options) ->
    Self = self(),
    Pid = spawn(fun() ->
                        register(Name, self()),
                        Self ! {self(), ready},
                        relay_loop(To, Tag, Options)
                end),
    receive {Pid, ready} -> {ok, Pid} end.

relay_loop(To, Tag, Options) ->
    receive
        {_, N} -> ok = weft:send(To, {Tag, N}, Options), relay_loop(To, Tag, Options)
    end.

%% --- a stock server ---------------------------------------------------------------------------

-spec start_server(atom()) -> {ok, pid()}.
start_server(Name) ->
    gen_server:start({local, Name}, ?MODULE, [], []).

%% @private
init([]) -> {ok, 0}.

%% @private
handle_call({add, N}, _From, Sum) -> {reply, Sum + N, Sum + N};
handle_call(stop, _From, Sum) -> {stop, stopped, Sum};
handle_call(never, _From, Sum) -> {noreply, Sum}.

%% @private
handle_cast({add, N}, Sum) -> {noreply, Sum + N}.

%% --- the node ---------------------------------------------------------------------------------

%% @doc Bytes of all processes and binaries, after a collection.
-spec memory() -> non_neg_integer().
memory() ->
    lists:foreach(fun(Pid) -> erlang:garbage_collect(Pid) end, processes()),
    erlang:memory(processes) + erlang:memory(binary).

%% @doc A module `telemetry' that sends its events to the process of that name.
-spec attach_telemetry(atom()) -> ok.
attach_telemetry(Name) ->
    Text = io_lib:format("-module(telemetry). -export([execute/3]). "
                         "execute(E, M, D) -> ~p ! {event, E, M, D}. ", [Name]),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    {ok, telemetry, Binary} = compile:forms(forms(Tokens, [])),
    {module, telemetry} = code:load_binary(telemetry, "telemetry", Binary),
    ok.

forms([], []) -> [];
forms([{dot, _} = Dot | Rest], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | forms(Rest, [])];
forms([Token | Rest], Form) -> forms(Rest, [Token | Form]).

%% @doc Opens a stream of a channel to a node and pushes payloads that no sender would: as a broken
%% or hostile peer. Returns what became of the stream.
-spec inject(node(), weft_channels:partition(), [binary()]) -> ended | timeout.
inject(Node, Partition, Payloads) ->
    Stream = weft_stream:initiator({channel, <<"default">>, Partition}, Node,
                                   weft_session_counters:new(), self()),
    inject_loop(weft_stream:connect(Stream), Payloads).

inject_loop(Stream0, Payloads) ->
    receive
        {weft_packet, _, Link, _, Label, {close, _, Reason}} ->
            self() ! {weft_path, closed, Link, Label, Reason},
            inject_loop(Stream0, Payloads);
        Message ->
            case weft_stream:handle(Message, Stream0) of
                {connected, Stream} ->
                    Push = fun(P, S) -> weft_stream:push(frames, P, byte_size(P), S) end,
                    inject_loop(lists:foldl(Push, Stream, Payloads), []);
                {ok, Stream} -> inject_loop(Stream, Payloads);
                {ended, _} -> ended;
                unknown -> inject_loop(Stream0, Payloads)
            end
    after 10000 -> timeout
    end.

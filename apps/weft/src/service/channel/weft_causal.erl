%% SPDX-License-Identifier: Apache-2.0
%% @doc This node's participant of a label: puts the messages of the label in order
%% (`weft_causal_core').
%%
%% A sending process asks it for a stamp before the message goes to a channel; receiving processes
%% pass it what has arrived. Only messages with the label pass through it. It monitors the
%% participants that messages depend on, so that none waits for a dead one.
%%
%% A message that was stamped and could not be sent is told to its receiver (`unsent/3'), or what
%% comes after it would wait for it. So is one whose sender is killed before a queue has it
%% (`weft_causal_open'). Who is killed in the moment between the two has sent it all the same; then
%% it counts twice at the receiver. While there are many labels, a participant that nobody has used
%% for some minutes ends. Its row goes first: what was on the way to it is delivered still.
-module(weft_causal).
-behaviour(gen_server).

-export([start_link/1, stamp/2, placed/2, unsent/3, arrived/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).

%% What waits for its causes, and the pairs of nodes that a label may know.
-define(WAITING_BYTES_MAX, 16777216).
-define(PAIRS_MAX, 4096).
%% One that was not used from one look to the next ends.
-define(LOOK_MS, 600000).
-define(LAST_MS, 5000).

-record(label, {label :: term(),
                is_used = true :: boolean(),
                causal :: weft_causal_core:state(),
                peers = #{} :: #{node() => pid()},
                watched = #{} :: #{pid() => reference()},
                counters :: weft_channel_counters:counters() | undefined,
                open = weft_causal_open:new() :: weft_causal_open:open()}).

-spec start_link(term()) -> {ok, pid()} | {error, term()}.
start_link(Label) ->
    case gen_server:start_link(?MODULE, Label, []) of
        ignore -> {error, already_started};
        Result -> Result
    end.

%% @doc The stamp for a message of a label that is sent to a node now. The caller says by `placed/2'
%% or `unsent/3' what has become of the message.
-spec stamp(term(), node()) -> {ok, weft_causal_core:stamp()} | {error, term()}.
stamp(Label, Node) ->
    case asked(Label, {stamp, Node}) of
        unknown_peer -> introduce(Label, Node);
        Result -> Result
    end.

introduce(Label, Node) ->
    case weft_channels:remote_label(Node, Label) of
        {ok, Peer} -> asked(Label, {stamp, Node, Peer});
        {error, Reason} -> {error, Reason}
    end.

asked(Label, Request) ->
    case weft_channels:label(Label) of
        {ok, Pid} ->
            try gen_server:call(Pid, Request, infinity)
            catch
                %% It has ended meanwhile, and this was not done.
                exit:{Reason, _} when Reason =:= noproc; Reason =:= normal ->
                    true = weft_channels:drop_label(Label, Pid),
                    asked(Label, Request)
            end;
        {error, Reason} -> {error, Reason}
    end.

%% @doc A queue has the caller's message with that stamp, for this node.
-spec placed(node(), weft_causal_core:stamp()) -> ok.
placed(Node, {Participant, Number, _}) when is_pid(Participant) ->
    gen_server:cast(Participant, {placed, self(), Node, Number}).

%% @doc A message with that stamp, for this node, was not sent and will not be.
-spec unsent(term(), node(), weft_causal_core:stamp()) -> ok.
unsent(Label, Node, Stamp) ->
    case weft_channels:label(Label) of
        {ok, Pid} -> gen_server:cast(Pid, {unsent, self(), Node, Stamp});
        {error, _} -> ok
    end.

%% @doc A message has arrived; it is delivered when its causes have been.
-spec arrived(term(), weft_causal_core:stamp() | term(),
              {pid() | atom(), term(), weft_channel_delivered:ack()},
              weft_channel_counters:counters()) -> ok.
arrived(Label, Stamp, Message, Counters) ->
    case weft_channels:label(Label) of
        {ok, Pid} ->
            Bytes = erlang:external_size(Message),
            gen_server:cast(Pid, {arrived, Stamp, Message, Bytes, Counters});
        {error, _} ->
            give(forced, Message, Counters)
    end.

%% If no order can be kept a message is delivered at once, and counted.
give(How, {To, Message, Ack}, Counters) ->
    _ = How =:= forced andalso weft_channel_counters:add(causal_forced, Counters),
    weft_channel_delivered:deliver(To, Message, Ack, Counters).

%% @private
init(Label) ->
    case weft_channels:add_label(Label, self()) of
        true ->
            Causal = weft_causal_core:new(self(), ?WAITING_BYTES_MAX, ?PAIRS_MAX),
            _ = weft_period:send(?LOOK_MS, look),
            {ok, #label{label = Label, causal = Causal}};
        false ->
            ignore
    end.

%% @private
handle_call({stamp, Node}, {Sender, _}, #label{peers = Peers} = Label) ->
    case Peers of
        #{Node := Peer} -> stamp_for(Peer, Node, Sender, Label#label{is_used = true});
        #{} -> {reply, unknown_peer, Label}
    end;
handle_call({stamp, Node, Peer}, {Sender, _}, #label{peers = Peers} = Label) ->
    stamp_for(Peer, Node, Sender,
              watch(Peer, Label#label{is_used = true, peers = Peers#{Node => Peer}}));
handle_call(Request, _From, Label) ->
    {reply, weft_stray:call(Request), Label}.

stamp_for(Peer, Node, Sender, #label{causal = Causal0, open = Open} = Label) ->
    case weft_causal_core:stamp(Peer, Causal0) of
        {ok, Stamp, Causal} ->
            {reply, {ok, Stamp},
             Label#label{causal = Causal,
                         open = weft_causal_open:opened(Sender, Node, Stamp, Open)}};
        {error, Reason} -> {reply, {error, Reason}, Label}
    end.

%% @private
handle_cast({arrived, Stamp, Message, Bytes, Counters}, Label) ->
    {noreply, taken(Stamp, Message, Bytes, Label#label{is_used = true, counters = Counters})};
handle_cast({placed, Sender, Node, Number}, Label) ->
    {noreply, settled(Sender, Node, Number, Label)};
handle_cast({unsent, Sender, Node, {_, Number, _} = Stamp}, Label) ->
    ok = tell_unsent(Node, Stamp, Label),
    {noreply, settled(Sender, Node, Number, Label)};
handle_cast({skipped, Stamp}, Label) ->
    {noreply, taken(Stamp, skipped, 0, Label#label{is_used = true})};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

settled(Sender, Node, Number, #label{open = Open} = Label) ->
    Label#label{open = weft_causal_open:settled(Sender, Node, Number, Open)}.

%% A node that is not connected waits for nothing of this one any more; no connection is made to
%% tell it.
tell_unsent(Node, Stamp, #label{peers = Peers}) ->
    _ = [gen_server:cast(Peer, {skipped, Stamp})
         || #{Node := Peer} <- [Peers], lists:member(Node, nodes(connected))],
    ok.

taken(Stamp, Message, Bytes, #label{causal = Causal0} = Label) ->
    case weft_causal_core:arrived(Stamp, Message, Bytes, Causal0) of
        {error, _MalformedOrTooMany} ->
            deliver([{forced, Message}], Label);
        {Out, Causal} ->
            deliver(Out, lists:foldl(fun watch/2, Label#label{causal = Causal},
                                     weft_causal_core:depends_on(Stamp, self())))
    end.

deliver(Out, #label{counters = Counters} = Label) ->
    _ = [give(How, Message, Counters) || {How, Message} <- Out, Message =/= skipped],
    Label.

%% @private
handle_info({'DOWN', _Ref, process, Pid, Reason},
            #label{causal = Causal0, watched = Watched, peers = Peers} = Label) ->
    How = case Reason of noconnection -> lost; _ -> gone end,
    {Out, Causal} = weft_causal_core:down(Pid, How, Causal0),
    {noreply, deliver(Out, Label#label{causal = Causal, watched = maps:remove(Pid, Watched),
                                       peers = maps:filter(fun(_, Peer) -> Peer =/= Pid end,
                                                           Peers)})};
handle_info({weft_sender_ended, _Ref, process, Pid, _Reason}, #label{open = Open0} = Label) ->
    {Unsent, Open} = weft_causal_open:ended(Pid, Open0),
    lists:foreach(fun({Node, Stamp}) -> ok = tell_unsent(Node, Stamp, Label) end, Unsent),
    {noreply, Label#label{open = Open}};
handle_info(look, #label{label = Name, causal = Causal, is_used = IsUsed} = Label) ->
    case IsUsed orelse weft_causal_core:waiting(Causal) > 0 orelse not weft_channels:are_many() of
        true ->
            _ = weft_period:send(?LOOK_MS, look),
            {noreply, Label#label{is_used = false}};
        false ->
            true = weft_channels:drop_label(Name, self()),
            _ = erlang:send_after(?LAST_MS, self(), leave),
            {noreply, Label}
    end;
handle_info(leave, Label) ->
    {stop, normal, Label};
handle_info(Message, Label) ->
    ok = weft_stray:message(Message),
    {noreply, Label}.

%% @private
%% One of earlier code does not know its label, and stays.
code_change(_Version, {label, Causal, Peers, Watched, Counters}, _Extra) ->
    {ok, #label{causal = Causal, peers = Peers, watched = Watched, counters = Counters}};
code_change(_Version, {label, Name, IsUsed, Causal, Peers, Watched, Counters}, _Extra) ->
    {ok, #label{label = Name, is_used = IsUsed, causal = Causal, peers = Peers, watched = Watched,
                counters = Counters}};
code_change(_Version, #label{} = Label, _Extra) ->
    {ok, Label}.

watch(Pid, #label{watched = Watched} = Label) when is_map_key(Pid, Watched) ->
    Label;
watch(Pid, #label{watched = Watched} = Label) ->
    Label#label{watched = Watched#{Pid => erlang:monitor(process, Pid)}}.

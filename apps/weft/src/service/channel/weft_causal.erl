%% SPDX-License-Identifier: Apache-2.0
%% @doc This node's participant of a label: puts the messages of the label in order
%% (`weft_causal_core').
%%
%% A sending process asks it for a stamp before the message goes to a channel; receiving processes
%% pass it what has arrived. Only messages with the label pass through it. It monitors the
%% participants that messages depend on, so that none waits for a dead one.
-module(weft_causal).
-behaviour(gen_server).

-export([start_link/1, stamp/2, arrived/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% What waits for its causes, and the pairs of nodes that a label may know.
-define(WAITING_BYTES_MAX, 16777216).
-define(PAIRS_MAX, 4096).

-record(label, {causal :: weft_causal_core:state(),
                peers = #{} :: #{node() => pid()},
                watched = #{} :: #{pid() => reference()},
                counters :: weft_channel_counters:counters() | undefined}).

-spec start_link(term()) -> {ok, pid()} | {error, term()}.
start_link(Label) ->
    case gen_server:start_link(?MODULE, Label, []) of
        ignore -> {error, already_started};
        Result -> Result
    end.

%% @doc The stamp for a message of a label that is sent to a node now.
-spec stamp(term(), node()) -> {ok, weft_causal_core:stamp()} | {error, term()}.
stamp(Label, Node) ->
    case weft_channels:label(Label) of
        {ok, Pid} ->
            case gen_server:call(Pid, {stamp, Node}, infinity) of
                unknown_peer -> introduce(Pid, Label, Node);
                Result -> Result
            end;
        {error, Reason} ->
            {error, Reason}
    end.

introduce(Pid, Label, Node) ->
    case weft_channels:remote_label(Node, Label) of
        {ok, Peer} -> gen_server:call(Pid, {stamp, Node, Peer}, infinity);
        {error, Reason} -> {error, Reason}
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
            {ok, #label{causal = Causal}};
        false ->
            ignore
    end.

%% @private
handle_call({stamp, Node}, _From, #label{peers = Peers} = Label) ->
    case Peers of
        #{Node := Peer} -> stamp_for(Peer, Label);
        #{} -> {reply, unknown_peer, Label}
    end;
handle_call({stamp, Node, Peer}, _From, #label{peers = Peers} = Label) ->
    stamp_for(Peer, watch(Peer, Label#label{peers = Peers#{Node => Peer}}));
handle_call(Request, _From, Label) ->
    {reply, weft_stray:call(Request), Label}.

stamp_for(Peer, #label{causal = Causal0} = Label) ->
    case weft_causal_core:stamp(Peer, Causal0) of
        {ok, Stamp, Causal} -> {reply, {ok, Stamp}, Label#label{causal = Causal}};
        {error, Reason} -> {reply, {error, Reason}, Label}
    end.

%% @private
handle_cast({arrived, Stamp, Message, Bytes, Counters}, #label{causal = Causal0} = Label0) ->
    case weft_causal_core:arrived(Stamp, Message, Bytes, Causal0) of
        {error, _MalformedOrTooMany} ->
            give(forced, Message, Counters),
            {noreply, Label0};
        {Out, Causal} ->
            Label = lists:foldl(fun watch/2, Label0#label{causal = Causal, counters = Counters},
                                weft_causal_core:depends_on(Stamp, self())),
            {noreply, deliver(Out, Label)}
    end;
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

deliver(Out, #label{counters = Counters} = Label) ->
    lists:foreach(fun({How, Message}) -> give(How, Message, Counters) end, Out),
    Label.

%% @private
handle_info({'DOWN', _Ref, process, Pid, Reason},
            #label{causal = Causal0, watched = Watched, peers = Peers} = Label) ->
    How = case Reason of noconnection -> lost; _ -> gone end,
    {Out, Causal} = weft_causal_core:down(Pid, How, Causal0),
    {noreply, deliver(Out, Label#label{causal = Causal, watched = maps:remove(Pid, Watched),
                                       peers = maps:filter(fun(_, Peer) -> Peer =/= Pid end,
                                                           Peers)})};
handle_info(Message, Label) ->
    ok = weft_stray:message(Message),
    {noreply, Label}.

watch(Pid, #label{watched = Watched} = Label) when is_map_key(Pid, Watched) ->
    Label;
watch(Pid, #label{watched = Watched} = Label) ->
    Label#label{watched = Watched#{Pid => erlang:monitor(process, Pid)}}.

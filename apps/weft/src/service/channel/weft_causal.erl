%% SPDX-License-Identifier: Apache-2.0
%% @doc This node's participant of a label: puts the messages of the label in order
%% (`weft_causal_core').
%%
%% It gives a message its number and puts it into the queue of a channel, for the process that
%% sends it; receiving processes pass it what has arrived. Only messages with the label pass through
%% it. It monitors the participants that messages depend on, so that none waits for a dead one.
%%
%% A message has a number if a queue has it, and only then, whenever its sender is killed. When the
%% process of a queue ends, what it was given may be lost: then the receiver is told that these
%% numbers are given up, which changes nothing for what has arrived. An acknowledged message is sent
%% again, and keeps its number until its sender has done with it or has ended (`weft_causal_open').
%% While there are many labels, a participant that nobody has used for some minutes ends. Its row
%% goes first: what was on the way to it is delivered still.
-module(weft_causal).
-behaviour(gen_server).

-export([start_link/1, put/3, put_again/2, settled/2, arrived/4]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, code_change/3]).
-export_type([gift/0, place/0]).

%% A message for a queue, which takes it while fewer than that many bytes wait there. The item has
%% the label, and `none' for its stamp until it has one.
-type gift() :: {weft_channel_entry:queue(), Limit :: pos_integer() | infinity,
                 Cost :: pos_integer(), weft_channel_wire:item()}.
%% What was given to an acknowledged message, and is kept when it is sent again.
-type place() :: {To :: pid(), weft_causal_core:stamp()}.

%% What waits for its causes, and the pairs of nodes that a label may know.
-define(WAITING_BYTES_MAX, 16777216).
-define(PAIRS_MAX, 4096).
%% One that was not used from one look to the next ends.
-define(LOOK_MS, 600000).
-define(LAST_MS, 5000).
%% Numbers that are given up come by the distribution; some of the messages may still be on their
%% way on a stream that has just ended.
-define(STILL_COMING_MS, 1000).

-record(label, {label :: term(),
                is_used = true :: boolean(),
                causal :: weft_causal_core:state(),
                peers = #{} :: #{node() => pid()},
                watched = #{} :: #{pid() => reference()},
                counters :: weft_channel_counters:counters() | undefined,
                open = weft_causal_open:new() :: weft_causal_open:open(),
                given = weft_causal_given:new() :: weft_causal_given:given()}).

-spec start_link(term()) -> {ok, pid()} | {error, term()}.
start_link(Label) ->
    case gen_server:start_link(?MODULE, Label, []) of
        ignore -> {error, already_started};
        Result -> Result
    end.

%% @doc Gives a message for a node its number, and puts it into a queue; or does neither. The place
%% of an acknowledged message is returned; the caller says at the end `settled/2'.
-spec put(term(), node(), gift()) -> {ok, place() | none} | full | closed | {error, term()}.
put(Label, Node, Gift) ->
    case asked(Label, {put, Node, Gift}) of
        unknown_peer -> introduce(Label, Node, Gift);
        Result -> Result
    end.

introduce(Label, Node, Gift) ->
    case weft_channels:remote_label(Node, Label) of
        {ok, Peer} -> asked(Label, {put, Node, Peer, Gift});
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

%% @doc Puts an acknowledged message into a queue that has got its place before. If its participant
%% has ended, nobody waits for its number.
-spec put_again(place(), gift()) -> ok | full | closed.
put_again({_To, {Participant, _, _}} = Place, {Queue, Limit, Cost, Item} = Gift)
  when is_pid(Participant) ->
    try gen_server:call(Participant, {put_again, Place, Gift}, infinity)
    catch
        exit:{Reason, _} when Reason =:= noproc; Reason =:= normal ->
            weft_channel_entry:give(Queue, Limit, Cost, Item)
    end.

%% @doc The caller does not send its message with that place again. It was `refused' if it has not
%% arrived, and will not, as far as the caller knows.
-spec settled(place(), sent | refused) -> ok.
settled({To, {Participant, Number, _}}, Became) when is_pid(Participant) ->
    gen_server:cast(Participant, {settled, self(), {To, Number}, Became}).

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
handle_call({put, Node, Gift}, {Sender, _}, #label{peers = Peers} = Label) ->
    case Peers of
        #{Node := Peer} -> put_in(Peer, Gift, Sender, Label#label{is_used = true});
        #{} -> {reply, unknown_peer, Label}
    end;
handle_call({put, Node, Peer, Gift}, {Sender, _}, Label) ->
    put_in(Peer, Gift, Sender, introduced(Node, Peer, Label#label{is_used = true}));
handle_call({put_again, Place, {Queue, Limit, Cost, Item}}, {Sender, _}, Label) ->
    Result = weft_channel_entry:give(Queue, Limit, Cost, Item),
    {reply, Result, case Result of
                        ok -> kept(Place, Queue, Sender, Label#label{is_used = true});
                        _FullOrClosed -> Label
                    end};
handle_call(Request, _From, Label) ->
    {reply, weft_stray:call(Request), Label}.

%% What was sent before its connection was lost does not come any more, but for what its senders
%% send again.
introduced(Node, Peer, #label{peers = Peers} = Label) when map_get(Node, Peers) =:= Peer ->
    Label;
introduced(Node, Peer, #label{peers = Peers, causal = Causal} = Label) ->
    ok = give_up(Peer, [{1, Last} || Last <- [weft_causal_core:sent(Peer, Causal)], Last > 0],
                 Label),
    watch(Peer, Label#label{peers = Peers#{Node => Peer}}).

%% The number is taken only if the queue takes the message.
put_in(Peer, {Queue, Limit, Cost, Item}, Sender, #label{causal = Causal0} = Label) ->
    case weft_causal_core:stamp(Peer, Causal0) of
        {ok, Stamp, Causal} ->
            {Kind, To, Content, Ack, {Name, none}} = Item,
            Stamped = {Kind, To, Content, Ack, {Name, Stamp}},
            case weft_channel_entry:give(Queue, Limit, Cost + erlang:external_size(Stamp),
                                         Stamped) of
                ok -> has_place(Ack, {Peer, Stamp}, Queue, Sender, Label#label{causal = Causal});
                FullOrClosed -> {reply, FullOrClosed, Label}
            end;
        {error, Reason} -> {reply, {error, Reason}, Label}
    end.

has_place(none, Place, Queue, _Sender, Label) ->
    {reply, {ok, none}, given(Place, Queue, Label)};
has_place(_Ack, Place, Queue, Sender, Label) ->
    {reply, {ok, Place}, kept(Place, Queue, Sender, Label)}.

given({Peer, {_, Number, _}}, {Queue, _}, #label{given = Given} = Label) ->
    Label#label{given = weft_causal_given:add(Queue, Peer, Number, Given)}.

kept({Peer, {_, Number, _}} = Place, {Pid, _} = Queue, Sender, #label{open = Open} = Label) ->
    given(Place, Queue,
          Label#label{open = weft_causal_open:opened(Sender, {Peer, Number}, Pid, Open)}).

%% @private
handle_cast({arrived, Stamp, Message, Bytes, Counters}, Label) ->
    {noreply, taken(Stamp, Message, Bytes, Label#label{is_used = true, counters = Counters})};
handle_cast({settled, Sender, Place, Became}, #label{open = Open0} = Label0) ->
    {Queue, Open} = weft_causal_open:settled(Sender, Place, Open0),
    Label = Label0#label{open = Open},
    ok = settled(Place, Queue, Became, Label),
    {noreply, Label};
handle_cast({skipped, {From, First, Last}}, Label) when is_pid(From), is_integer(Last) ->
    _ = erlang:send_after(?STILL_COMING_MS, self(), {given_up, From, First, Last}),
    {noreply, Label#label{is_used = true}};
%% From nodes of earlier code, which give up one message at a time.
handle_cast({skipped, Stamp}, Label) ->
    {noreply, taken(Stamp, skipped, 0, Label#label{is_used = true})};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% The process of a queue that has not ended yet may still have it.
settled({Peer, Number}, Queue, Became, #label{given = Given}) ->
    case Became =:= sent andalso weft_causal_given:is_open(Queue, Given) of
        true -> ok;
        false -> tell_given_up(Peer, [{Number, Number}])
    end.

%% All of these numbers but those that may come again.
give_up(Peer, Runs, #label{open = Open}) ->
    tell_given_up(Peer, weft_causal_given:except(weft_causal_open:numbers(Peer, Open), Runs)).

%% The peer shall not wait for these numbers. A node that is not connected waits for nothing of this
%% one any more; no connection is made to tell it. (Nodes of earlier code take this for a malformed
%% stamp, and go on.)
tell_given_up(Peer, Runs) ->
    _ = [gen_server:cast(Peer, {skipped, {self(), First, Last}})
         || Runs =/= [], is_connected(Peer), {First, Last} <- Runs],
    ok.

is_connected(Participant) -> lists:member(node(Participant), nodes([this, connected])).

taken(Stamp, Message, Bytes, #label{causal = Causal0} = Label) ->
    case weft_causal_core:arrived(Stamp, Message, Bytes, Causal0) of
        {error, _MalformedOrTooMany} ->
            deliver([{forced, Message} || Message =/= skipped], Label);
        {Out, Causal} ->
            deliver(Out, lists:foldl(fun watch/2, Label#label{causal = Causal},
                                     weft_causal_core:depends_on(Stamp, self())))
    end.

given_up(From, First, Last, #label{causal = Causal0} = Label) ->
    case weft_causal_core:given_up(From, First, Last, Causal0) of
        {error, _MalformedOrTooMany} -> Label;
        {Out, Causal} -> deliver(Out, watch(From, Label#label{causal = Causal}))
    end.

deliver(Out, #label{counters = Counters} = Label) ->
    _ = [give(How, Message, Counters) || {How, Message} <- Out],
    Label.

%% @private
handle_info({'DOWN', _Ref, process, Pid, Reason},
            #label{causal = Causal0, watched = Watched, peers = Peers, given = Given} = Label) ->
    How = case Reason of noconnection -> lost; _ -> gone end,
    {Out, Causal} = weft_causal_core:down(Pid, How, Causal0),
    {noreply, deliver(Out, Label#label{causal = Causal, watched = maps:remove(Pid, Watched),
                                       peers = maps:filter(fun(_, Peer) -> Peer =/= Pid end, Peers),
                                       given = case How of
                                                   lost -> Given;
                                                   gone -> weft_causal_given:forget(Pid, Given)
                                               end})};
handle_info({weft_queue_ended, _Ref, process, Queue, Reason}, #label{given = Given0} = Label0) ->
    {Had, Given} = weft_causal_given:ended(Queue, Given0),
    Label = Label0#label{given = Given},
    %% One that ends because it is not used has nothing that has not arrived.
    _ = [ok = give_up(Peer, Runs, Label) || Reason =/= normal, {Peer, Runs} <- Had],
    {noreply, Label};
handle_info({weft_sender_ended, _Ref, process, Pid, _Reason}, #label{open = Open0} = Label0) ->
    {Settled, Open} = weft_causal_open:ended(Pid, Open0),
    Label = Label0#label{open = Open},
    lists:foreach(fun({Place, Queue}) -> ok = settled(Place, Queue, sent, Label) end,
                  lists:sort(Settled)),
    {noreply, Label};
handle_info({given_up, From, First, Last}, Label) ->
    {noreply, case is_connected(From) of
                  true -> given_up(From, First, Last, Label);
                  false -> Label
              end};
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
%% Then a message had its number before it had room: who waits does not say what has become of it.
code_change(_Version, {label, Name, IsUsed, Causal, Peers, Watched, Counters, Open}, _Extra) ->
    _ = [ok = tell_given_up(Peer, [{Number, Number}])
         || {_Monitor, Stamps} <- maps:values(Open), {Node, Number} <- maps:keys(Stamps),
            #{Node := Peer} <- [Peers]],
    {ok, #label{label = Name, is_used = IsUsed, causal = Causal, peers = Peers, watched = Watched,
                counters = Counters}};
code_change(_Version, #label{} = Label, _Extra) ->
    {ok, Label}.

watch(Pid, #label{watched = Watched} = Label) when is_map_key(Pid, Watched) ->
    Label;
watch(Pid, #label{watched = Watched} = Label) ->
    Label#label{watched = Watched#{Pid => erlang:monitor(process, Pid)}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The tables of channels: which channels there are, and which processes serve them.
%%
%% A channel is found in a persistent term, its sending process for a peer and partition in a table:
%% both cost the same whatever the number of peers. Senders, receivers and labels register
%% themselves. This process only removes the rows of ended ones, and answers other nodes that ask
%% for the participant of a label, or whether there are channels here. The tables belong to its
%% supervisor.
-module(weft_channels).
-behaviour(gen_server).

-export([new_tables/0, start_link/0, find/1, names/0, sender/3, add_sender/4, drop_sender/2,
         senders/0, is_stripe/1, stripe/1, receiver/3, add_receiver/4, receivers/0, label/1,
         add_label/2, drop_label/2, are_many/0, remote_label/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export_type([channel/0, partition/0]).

%% The options of a channel (`weft_channel_options:channel()'), its name and its counters.
-type channel() :: #{name := atom(), counters := weft_channel_counters:counters(), _ => _}.
%% Up to 31 they carry messages in order, from 32 on chunks of large ones. Their numbers also name
%% TCP connections, of which a channel may have 63.
-type partition() :: 0..62.

-define(SENDERS, weft_channel_senders).
-define(RECEIVERS, weft_channel_receivers).
-define(LABELS, weft_channel_labels).
-define(STRIPES, 32).
-define(LABELS_MAX, 1000).
-define(REMOTE_MS, 5000).
-define(TELL_MS, 1000).
%% How often to look whether there is somebody to be told.
-define(LISTENS_MS, 5000).

%% @doc Makes the tables, which belong to the caller.
-spec new_tables() -> ok.
new_tables() ->
    ?SENDERS = ets:new(?SENDERS, [named_table, public, {read_concurrency, true}]),
    ?RECEIVERS = ets:new(?RECEIVERS, [named_table, public, {read_concurrency, true}]),
    ?LABELS = ets:new(?LABELS, [named_table, public, {read_concurrency, true}]),
    weft_channel_delivered:init().

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The channel of that name, if it exists on this node.
-spec find(atom()) -> channel() | undefined.
find(Name) -> persistent_term:get({?MODULE, Name}, undefined).

-spec names() -> [atom()].
names() -> persistent_term:get(?MODULE, []).

%% --- senders, receivers, labels ---------------------------------------------------------------

%% @doc The process that sends to a node on a partition of a channel, and the bytes it has to send.
-spec sender(node(), atom(), partition()) -> {pid(), atomics:atomics_ref()} | none.
sender(Node, Name, Partition) ->
    case ets:lookup(?SENDERS, {Node, Name, Partition}) of
        [{_, Pid, Bytes}] -> {Pid, Bytes};
        [] -> none
    end.

%% @doc Registers the calling process; false if there is one already.
-spec add_sender(node(), atom(), partition(), atomics:atomics_ref()) -> boolean().
add_sender(Node, Name, Partition, Bytes) ->
    Row = {{Node, Name, Partition}, self(), Bytes},
    ets:insert_new(?SENDERS, Row) andalso watch({sender, Row}).

%% @doc Is the partition one for chunks?
-spec is_stripe(partition()) -> boolean().
is_stripe(Partition) -> Partition >= ?STRIPES.

%% @doc The partition for chunks of that index.
-spec stripe(0..15) -> partition().
stripe(Index) -> ?STRIPES + Index.

%% @doc The calling process takes nothing more.
-spec drop_sender({node(), atom(), partition()}, atomics:atomics_ref()) -> true.
drop_sender(Key, Bytes) -> ets:delete_object(?SENDERS, {Key, self(), Bytes}).

-spec senders() -> [{{node(), atom(), partition()}, pid(), atomics:atomics_ref()}].
senders() -> ets:tab2list(?SENDERS).

%% @doc The process that takes what a peer sends on a partition of a channel.
-spec receiver(Peer :: binary(), Channel :: binary(), partition()) -> pid() | none.
receiver(Peer, Channel, Partition) ->
    case ets:lookup(?RECEIVERS, {Peer, Channel, Partition}) of
        [{_, Pid}] -> Pid;
        [] -> none
    end.

%% @doc Registers the calling process, in place of one whose stream has ended.
-spec add_receiver(Peer :: binary(), Channel :: binary(), partition(), pid()) -> true.
add_receiver(Peer, Channel, Partition, Pid) ->
    Row = {{Peer, Channel, Partition}, Pid},
    true = ets:insert(?RECEIVERS, Row),
    watch({receiver, Row}).

-spec receivers() -> [{{binary(), binary(), partition()}, pid()}].
receivers() -> ets:tab2list(?RECEIVERS).

%% @doc This node's participant of a label; started if need be.
-spec label(term()) -> {ok, pid()} | {error, term()}.
label(Label) ->
    case ets:lookup(?LABELS, Label) of
        [{_, Pid}] ->
            {ok, Pid};
        [] ->
            case ets:info(?LABELS, size) >= ?LABELS_MAX of
                true -> {error, {too_many_labels, ?LABELS_MAX}};
                false -> start_label(Label)
            end
    end.

start_label(Label) ->
    case weft_channel_workers:start(weft_causal, [Label]) of
        {ok, Pid} -> {ok, Pid};
        {error, already_started} -> label(Label);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Registers the calling process; false if there is one already.
-spec add_label(term(), pid()) -> boolean().
add_label(Label, Pid) ->
    ets:insert_new(?LABELS, {Label, Pid}) andalso watch({label, {Label, Pid}}).

%% @doc The process takes part no longer. The next message of the label starts another one.
-spec drop_label(term(), pid()) -> true.
drop_label(Label, Pid) -> ets:delete_object(?LABELS, {Label, Pid}).

%% @doc Are there more than half as many labels as there can be?
-spec are_many() -> boolean().
are_many() -> ets:info(?LABELS, size) > ?LABELS_MAX div 2.

%% @doc Another node's participant of a label.
-spec remote_label(node(), term()) -> {ok, pid()} | {error, term()}.
remote_label(Node, Label) ->
    try gen_server:call({?MODULE, Node}, {label, Label}, ?REMOTE_MS)
    catch
        exit:{noproc, _} -> {error, no_channels};
        exit:{{nodedown, _}, _} -> {error, nodedown};
        exit:{Reason, _} -> {error, Reason}
    end.

watch(What) ->
    gen_server:cast(?MODULE, {watch, self(), What}),
    true.

%% --- the process ------------------------------------------------------------------------------

%% @private
init([]) ->
    process_flag(trap_exit, true),
    _ = weft_period:send(weft_channel_delivered:sweep_ms(), sweep),
    Channels = weft_channel_options:all(weft_config:get(channels)),
    _ = maps:map(fun publish/2, Channels),
    persistent_term:put(?MODULE, lists:sort(maps:keys(Channels))),
    ok = weft_sessions:accept_channels(weft_channel_receiver),
    ok = tell_later(),
    {ok, maps:from_list([{erlang:monitor(process, element(2, Row)), {What, Row}}
                         || What <- [sender, receiver, label], Row <- ets:tab2list(table(What))])}.

%% A channel that runs already keeps its counters.
publish(Name, Options) ->
    Counters = case find(Name) of
                   undefined -> weft_channel_counters:new();
                   #{counters := Former} -> Former
               end,
    persistent_term:put({?MODULE, Name}, Options#{name => Name, counters => Counters}).

tell_later() ->
    _ = weft_period:send(case weft_channel_counters:is_heard() of
                             true -> ?TELL_MS;
                             false -> ?LISTENS_MS
                         end, tell),
    ok.

tell(Name, Told) ->
    #{counters := Counters} = find(Name),
    weft_channel_counters:tell(Name, Counters, maps:get(Name, Told, #{})).

%% @private
handle_call({label, Label}, _From, Watched) ->
    {reply, label(Label), Watched};
handle_call(is_here, _From, Watched) ->
    {reply, true, Watched};
handle_call(Request, _From, Watched) ->
    {reply, weft_stray:call(Request), Watched}.

%% @private
handle_cast({watch, Pid, What}, Watched) ->
    {noreply, Watched#{erlang:monitor(process, Pid) => What}};
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
handle_info(tell, Watched) ->
    ok = tell_later(),
    Told = maps:from_list([{Name, tell(Name, maps:get(told, Watched, #{}))} || Name <- names()]),
    {noreply, Watched#{told => Told}};
handle_info(sweep, Watched) ->
    weft_channel_delivered:sweep(),
    _ = weft_period:send(weft_channel_delivered:sweep_ms(), sweep),
    {noreply, Watched};
handle_info({'DOWN', Ref, process, _Pid, _Reason}, Watched) when is_map_key(Ref, Watched) ->
    {{What, Row}, Rest} = maps:take(Ref, Watched),
    true = ets:delete_object(table(What), Row),
    {noreply, Rest};
handle_info(Message, Watched) ->
    ok = weft_stray:message(Message),
    {noreply, Watched}.

%% @private
terminate(_Reason, _Watched) ->
    Names = names(),
    _ = persistent_term:erase(?MODULE),
    _ = [persistent_term:erase({?MODULE, Name}) || Name <- Names],
    ok.

table(sender) -> ?SENDERS;
table(receiver) -> ?RECEIVERS;
table(label) -> ?LABELS.

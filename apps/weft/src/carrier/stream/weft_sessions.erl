%% SPDX-License-Identifier: Apache-2.0
%% @doc The sessions of this node, found by their id when a peer wants to resume one.
%% This process tells them when the node of their peer is reported to have ended
%% (`weft_obituary_core').
%% The id is a secret of the two ends; together with the name of the peer it is the right to resume.
%%
%% The table outlives this process, which monitors the sessions in it.
%%
%% Sessions that have ended here, and of which their peers may not know, are remembered for a while
%% (`weft_ended_sessions').
%%
%% A session at rest says where ticks are to be written, and how many packets it has written. As
%% long as that number is right, whoever has a tick for it writes it there and wakes nobody.
-module(weft_sessions).
-behaviour(gen_server).

-export([new_table/0, start_link/0, add/5, find/1, with/1, of_distribution/1, distribution_peers/0,
         timed_out/1, lost/1, list/0, peers/1, accept_channels/1, accept_channel/5]).
-export([rest/2, at_rest/1, ticked/1, woken/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type id() :: <<_:128>>.
-export_type([id/0]).

-record(sessions, {ids = #{} :: #{Monitor :: reference() => id()},
                   ended :: weft_ended_sessions:ended()}).

%% @doc Makes the table, which belongs to the caller.
-spec new_table() -> ok.
new_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    ok.

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [],
                          [{spawn_opt, [{priority, weft_turn:priority(control)}]}]).

%% @doc Adds the calling session, until it ends. Peer is the name of the node at the other end; only
%% it may resume. A stream has one end here: a second one would not know what the first received.
-spec add(id(), weft_wire:stream_kind(), Session :: pid(), Input :: pid(), Peer :: binary()) ->
          ok | {error, taken}.
add(Id, Kind, Session, Input, Peer) when is_pid(Session), is_pid(Input) ->
    case ets:insert_new(?MODULE, {Id, Session, Input, Peer, Kind}) of
        true ->
            weft_counters:add(sessions_started),
            gen_server:cast(?MODULE, {watch, Id, Session});
        false -> {error, taken}
    end.

%% @doc What serves that stream here; `timed_out' if the kernel's ticks have ended it, and
%% `disconnected' if it has ended otherwise and is remembered.
-spec find(id()) ->
          {ok, Session :: pid(), Input :: pid(), Peer :: binary()}
        | timed_out | disconnected | error.
find(Id) ->
    case ets:lookup(?MODULE, Id) of
        [{_, Session, Input, Peer, _Kind}] -> {ok, Session, Input, Peer};
        [{_, timed_out, _Peer}] -> timed_out;
        [{_, disconnected, _Peer}] -> disconnected;
        [] -> error
    end.

%% @doc The sessions with the node of that name.
-spec with(Peer :: binary()) -> [pid()].
with(Peer) ->
    [Session || [Session] <- ets:match(?MODULE, {'_', '$1', '_', Peer, '_'})].

%% @doc The same, but only those under connections of the distribution.
-spec of_distribution(Peer :: binary()) -> [pid()].
of_distribution(Peer) ->
    [Session || [Session] <- ets:match(?MODULE, {'_', '$1', '_', Peer, distribution})].

%% @doc The nodes with which there are such sessions, also of connections that are still being made.
-spec distribution_peers() -> [binary()].
distribution_peers() ->
    [Peer || [Peer] <- ets:match(?MODULE, {'_', '_', '_', '$1', distribution})].

%% @doc With whom that process has a connection of the distribution.
-spec peers(pid()) -> [binary()].
peers(Session) ->
    [Peer || [Peer] <- ets:match(?MODULE, {'_', Session, '_', '$1', distribution})].

-spec list() -> [pid()].
list() ->
    [Session || {_, Session, _, _, _} <- ets:tab2list(?MODULE)].

%% @doc Module:accept(Id, Peer, Path, Channel, Partition) is called to start the receiver of a
%% stream that a peer opens for a channel.
-spec accept_channels(module()) -> ok.
accept_channels(Module) -> persistent_term:put({?MODULE, channels}, Module).

-spec accept_channel(id(), Peer :: binary(), weft_stream:path(), Channel :: binary(), byte()) ->
          {ok, Receiver :: pid()} | {error, {shutdown, taken} | refused}.
accept_channel(Id, Peer, Path, Channel, Partition) ->
    case persistent_term:get({?MODULE, channels}, undefined) of
        undefined -> {error, refused};
        Module -> Module:accept(Id, Peer, Path, Channel, Partition)
    end.

%% @doc Sessions with the node of that name which have ended here, and of which it may not know. It
%% is told what its own ticks would tell it later.
-spec timed_out(Peer :: binary()) -> [id()].
timed_out(Peer) ->
    weft_ended_sessions:told(Peer, ets:match_object(?MODULE, {'_', '_', Peer})).

%% @doc The calling session, which has that id, is about to exit with a reason by which it would not
%% be remembered, and the peer may not know that it has ended.
-spec lost(id()) -> ok.
lost(Id) -> gen_server:cast(?MODULE, {lost, Id}).

%% @doc The calling session is at rest. Ticks are written to that lane under that label, instead of
%% by it, until it is woken, or has written more packets than these and the ticks.
-spec rest({weft_lane:lane(), weft_wire:label()}, Written :: non_neg_integer()) -> ok.
rest({Lane, Label}, Written) ->
    true = ets:insert(?MODULE, {{at_rest, self()}, Lane, Label, Written}),
    ok.

-spec at_rest(Session :: pid()) ->
          {weft_lane:lane(), weft_wire:label(), Written :: non_neg_integer()} | none.
at_rest(Session) ->
    case ets:lookup(?MODULE, {at_rest, Session}) of
        [{_, Lane, Label, Written}] -> {Lane, Label, Written};
        [] -> none
    end.

%% @doc A tick was written instead of by that session, which may have been woken meanwhile.
-spec ticked(Session :: pid()) -> ok.
ticked(Session) ->
    try ets:update_counter(?MODULE, {at_rest, Session}, {4, 1}) of
        _Written -> ok
    catch error:badarg -> ok
    end.

%% @doc The calling session is not at rest any more. It may have been woken by the end of the
%% carrier, and the table has ended before it.
-spec woken() -> ok.
woken() ->
    try ets:delete(?MODULE, {at_rest, self()}) of
        true -> ok
    catch error:badarg -> ok
    end.

%% @private
init([]) ->
    Rows = ets:tab2list(?MODULE),
    {ok, #sessions{ids = maps:from_list([{monitor(process, Session), Id}
                                         || {Id, Session, _, _, _} <- Rows]),
                   ended = weft_ended_sessions:new([Row || {_Id, _How, _Peer} = Row <- Rows])}}.

%% @private
handle_call(Request, _From, Sessions) ->
    {reply, weft_stray:call(Request), Sessions}.

%% @private
handle_cast({watch, Id, Session}, #sessions{ids = Ids} = Sessions) ->
    {noreply, Sessions#sessions{ids = Ids#{erlang:monitor(process, Session) => Id}}};
%% What is remembered takes the place of the session, whose exit comes next.
handle_cast({lost, Id}, Sessions) ->
    Rows = [Row || {_Id, _Session, _Input, _Peer, _Kind} = Row <- ets:lookup(?MODULE, Id)],
    {noreply, ended(lost, Rows, Sessions)};
handle_cast(Request, Sessions) ->
    ok = weft_stray:message(Request),
    {noreply, Sessions}.

%% @private
handle_info({weft_notice, weft_obituary, News}, Sessions) ->
    _ = [Session ! {weft_stream, News} || Session <- with(atom_to_binary(element(2, News)))],
    {noreply, Sessions};
handle_info({'DOWN', Ref, process, Session, Reason}, #sessions{ids = Ids} = Sessions)
  when is_map_key(Ref, Ids) ->
    {Id, Rest} = maps:take(Ref, Ids),
    weft_counters:add(sessions_ended),
    true = ets:delete(?MODULE, {at_rest, Session}),
    Rows = ets:take(?MODULE, Id),
    {Ended, Others} = lists:partition(fun(Row) -> element(2, Row) =:= Session end, Rows),
    true = ets:insert(?MODULE, Others),
    {noreply, ended(Reason, Ended, Sessions#sessions{ids = Rest})};
handle_info(Message, Sessions) ->
    ok = weft_stray:message(Message),
    {noreply, Sessions}.

ended(How, [{Id, _, _, Peer, Kind}], #sessions{ended = Ended0} = Sessions) ->
    {Remembered, Forgotten, Ended} = weft_ended_sessions:ended(How, {Id, Kind, Peer}, Ended0),
    true = ets:insert(?MODULE, Remembered),
    _ = [ets:delete(?MODULE, Old) || Old <- Forgotten],
    Sessions#sessions{ended = Ended};
ended(_How, [], Sessions) ->
    Sessions.

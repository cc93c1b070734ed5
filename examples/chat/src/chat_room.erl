%% SPDX-License-Identifier: Apache-2.0
%% @doc A room: one process on its home node that passes what a member says to all members, the
%% speaker included.
%%
%% Members call {join, User} and get the room's process and how far each sender had come; they
%% cast {say, ..}; copies go out as plain messages {chat, Place, From, Seq, Text}. The room
%% monitors its members and forgets those that are gone. It never waits for a member.
%% It keeps no history and does not repeat what was lost.
-module(chat_room).
-behaviour(gen_server).

-export([start_link/1, join/2, say/4, members/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type from() :: {chat_ledger:sender(), chat_ledger:epoch()}.
-type marks() :: #{chat_ledger:sender() => {chat_ledger:epoch(), Seq :: pos_integer()}}.
-export_type([from/0, marks/0]).

-define(JOIN_TIMEOUT_MS, 15000).

-record(state, {room :: chat_address:name(),
                members = #{} :: #{pid() => chat_ledger:sender()},
                marks = #{} :: marks()}).

-spec start_link(chat_address:name()) -> gen_server:start_ret().
start_link(Room) ->
    {RegisteredName, _Node} = chat_address:room(Room, node()),
    gen_server:start_link({local, RegisteredName}, ?MODULE, Room, []).

%% @doc Makes the calling process a member under the name of `User'. Exits like gen_server:call/3.
-spec join(chat_address:address(), chat_ledger:sender()) -> {joined, pid(), marks()}.
join(Address, User) ->
    gen_server:call(Address, {join, User}, ?JOIN_TIMEOUT_MS).

%% @doc Says something to the room, as the calling process, without waiting.
-spec say(chat_address:address(), from(), pos_integer(), iodata()) -> ok.
say(Address, From, Seq, Text) ->
    gen_server:cast(Address, {say, self(), From, Seq, Text}).

-spec members(chat_address:address()) -> [{chat_ledger:sender(), pid()}].
members(Address) ->
    gen_server:call(Address, members).

init(Room) ->
    %% Members link to the room; their end must not be ours.
    process_flag(trap_exit, true),
    {ok, #state{room = Room}}.

handle_call({join, User}, {Pid, _Tag}, #state{members = Members, marks = Marks} = State) ->
    _ = is_map_key(Pid, Members) orelse monitor(process, Pid),
    {reply, {joined, self(), Marks}, State#state{members = Members#{Pid => User}}};
handle_call(members, _Caller, #state{members = Members} = State) ->
    {reply, lists:sort([{User, Pid} || {Pid, User} <- maps:to_list(Members)]), State}.

handle_cast({say, Pid, From, Seq, Text}, #state{members = Members} = State)
  when is_map_key(Pid, Members) ->
    Copy = {chat, {room, State#state.room}, From, Seq, Text},
    lists:foreach(fun(Member) -> Member ! Copy end, maps:keys(Members)),
    chat_tally:add(relayed, maps:size(Members)),
    {Sender, Epoch} = From,
    {noreply, State#state{marks = (State#state.marks)#{Sender => {Epoch, Seq}}}};
handle_cast({say, _Stranger, _From, _Seq, _Text}, State) ->
    chat_tally:add(refused),
    {noreply, State}.

handle_info({'DOWN', _Monitor, process, Pid, Reason}, #state{members = Members} = State) ->
    chat_tally:add(departures),
    _ = Reason =:= noconnection andalso chat_tally:add(nodedowns),
    {noreply, State#state{members = maps:remove(Pid, Members)}};
handle_info({'EXIT', _Member, _Reason}, State) ->
    %% The monitor of the same process tells it, once and with the membership.
    {noreply, State}.

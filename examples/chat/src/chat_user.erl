%% SPDX-License-Identifier: Apache-2.0
%% @doc A user: joins rooms (on any node), speaks there, writes to other users, and keeps account
%% of what it receives.
%%
%% It links to every room it joined. When a room is lost (it crashed, or its node is gone) the
%% user tries to join again until it succeeds. Direct messages leave by the user's courier and
%% arrive as a call {chat, direct, From, Seq, Text}, room copies as plain messages of that form.
-module(chat_user).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/2, join/3, say/3, tell/3, joined/1, history/1, ledger/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-define(REJOIN_AFTER_MS, 300).
-define(HISTORY, 50).

-type heard() :: {chat_ledger:place(), chat_ledger:sender(), Text :: iodata()}.
-type lost() :: away | returning.
-record(state, {me :: chat_ledger:sender(),
                epoch :: chat_ledger:epoch(),
                homes :: chat_address:rooms(),
                rooms = #{} :: #{chat_address:name() => pid() | lost()},
                seqs = #{} :: #{term() => pos_integer()},
                ledger = chat_ledger:new() :: chat_ledger:ledger(),
                history = [] :: [heard()],
                courier :: pid()}).

-spec start_link(chat_address:name(), chat_address:rooms()) -> gen_server:start_ret().
start_link(Name, Rooms) ->
    {RegisteredName, _Node} = chat_address:user(Name, node()),
    gen_server:start_link({local, RegisteredName}, ?MODULE, {Name, Rooms}, []).

%% @doc Joins one more room, which lives on `Home'.
-spec join(chat_address:address(), chat_address:name(), node()) -> ok.
join(User, Room, Home) ->
    gen_server:cast(User, {join, Room, Home}).

%% @doc Says `Text' in a room the user has been told to join.
-spec say(chat_address:address(), chat_address:name(), iodata()) -> ok.
say(User, Room, Text) ->
    gen_server:cast(User, {say, Room, Text}).

%% @doc Writes `Text' to another user.
-spec tell(chat_address:address(), chat_address:address(), iodata()) -> ok.
tell(User, To, Text) ->
    gen_server:cast(User, {tell, To, Text}).

%% @doc Whether the user is a member of all its rooms now.
-spec joined(chat_address:address() | pid()) -> boolean().
joined(User) ->
    gen_server:call(User, joined, infinity).

%% @doc The last messages received, newest first.
-spec history(chat_address:address()) -> [heard()].
history(User) ->
    gen_server:call(User, history).

-spec ledger(chat_address:address()) -> chat_ledger:ledger().
ledger(User) ->
    gen_server:call(User, ledger).

init({Name, Homes}) ->
    process_flag(trap_exit, true),
    {ok, Courier} = chat_courier:start_link(),
    State = #state{me = {Name, node()}, epoch = erlang:system_time(microsecond),
                   homes = Homes, courier = Courier},
    {ok, State, {continue, join_all}}.

handle_continue(join_all, #state{homes = Homes} = State) ->
    {noreply, lists:foldl(fun(Room, S) -> enter(Room, away, S) end, State, maps:keys(Homes))}.

handle_call({chat, direct, From, Seq, Text}, _Caller, State) ->
    {reply, received, heard(direct, From, Seq, Text, State)};
handle_call(joined, _Caller, #state{homes = Homes, rooms = Rooms} = State) ->
    Joined = [Room || {Room, Pid} <- maps:to_list(Rooms), is_pid(Pid)],
    {reply, length(Joined) =:= maps:size(Homes), State};
handle_call(history, _Caller, State) ->
    {reply, State#state.history, State};
handle_call(ledger, _Caller, State) ->
    {reply, State#state.ledger, State}.

handle_cast({say, Room, Text}, #state{homes = Homes} = State) when is_map_key(Room, Homes) ->
    {Seq, Next} = next_seq({room, Room}, State),
    Home = maps:get(Room, Homes),
    chat_tally:add(sent),
    ok = chat_room:say(chat_address:room(Room, Home), from(State), Seq, Text),
    {noreply, Next};
handle_cast({say, Room, _Text}, #state{homes = Homes} = State) ->
    ?LOG_WARNING("~p never joined the room ~p (but ~p): nothing said",
                 [element(1, State#state.me), Room, maps:keys(Homes)]),
    {noreply, State};
handle_cast({tell, To, Text}, #state{courier = Courier} = State) ->
    {Seq, Next} = next_seq({direct, To}, State),
    chat_tally:add(sent),
    ok = chat_courier:carry(Courier, To, {chat, direct, from(State), Seq, Text}),
    {noreply, Next};
handle_cast({join, Room, Home}, #state{homes = Homes} = State) ->
    {noreply, enter(Room, away, State#state{homes = Homes#{Room => Home}})}.

handle_info({chat, Place, From, Seq, Text}, State) ->
    {noreply, heard(Place, From, Seq, Text, State)};
handle_info({enter, Room, Was}, State) ->
    {noreply, enter(Room, Was, State)};
handle_info({'EXIT', Courier, Reason}, #state{courier = Courier} = State) ->
    {stop, Reason, State};
handle_info({'EXIT', Pid, Reason}, #state{rooms = Rooms} = State) ->
    case [Room || {Room, P} <- maps:to_list(Rooms), P =:= Pid] of
        [Room] ->
            chat_tally:add(rooms_lost),
            _ = Reason =:= noconnection andalso chat_tally:add(nodedowns),
            {noreply, later(Room, returning, State)};
        [] ->
            {noreply, State}
    end.

%% Becomes a member of Room, now or (when the room cannot be reached) by and by.
enter(Room, Was, #state{homes = Homes, rooms = Rooms} = State) ->
    try chat_room:join(chat_address:room(Room, maps:get(Room, Homes)), State#state.me) of
        {joined, Pid, Marks} ->
            link(Pid),
            _ = Was =:= returning andalso chat_tally:add(rejoins),
            Entered = State#state{rooms = Rooms#{Room => Pid}},
            maps:fold(fun(Sender, Mark, S) -> mark(Room, Sender, Mark, S) end, Entered, Marks)
    catch
        exit:{_Reason, _Call} -> later(Room, Was, State)
    end.

later(Room, Was, #state{rooms = Rooms} = State) ->
    _ = erlang:send_after(?REJOIN_AFTER_MS, self(), {enter, Room, Was}),
    State#state{rooms = Rooms#{Room => Was}}.

mark(Room, Sender, {Epoch, Seq}, #state{ledger = Ledger} = State) ->
    {Missed, Next} = chat_ledger:joined({Sender, Epoch}, {room, Room}, Seq, Ledger),
    chat_tally:add(gaps, Missed),
    State#state{ledger = Next}.

heard(Place, {Sender, _Epoch} = From, Seq, Text, #state{history = History} = State) ->
    {Verdict, Ledger} = chat_ledger:receive_one(From, Place, Seq, State#state.ledger),
    count(Verdict),
    State#state{ledger = Ledger,
                history = lists:sublist([{Place, Sender, Text} | History], ?HISTORY)}.

count(in_order) ->
    chat_tally:add(delivered);
count({gap, Missed}) ->
    chat_tally:add(gaps, Missed),
    chat_tally:add(delivered);
count(late) ->
    chat_tally:add(gaps, -1),
    chat_tally:add(out_of_order),
    chat_tally:add(delivered);
count(duplicate) ->
    chat_tally:add(duplicates).

next_seq(Stream, #state{seqs = Seqs} = State) ->
    Seq = maps:get(Stream, Seqs, 0) + 1,
    {Seq, State#state{seqs = Seqs#{Stream => Seq}}}.

from(#state{me = Me, epoch = Epoch}) ->
    {Me, Epoch}.

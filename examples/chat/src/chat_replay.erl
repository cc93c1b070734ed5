%% SPDX-License-Identifier: Apache-2.0
%% @doc Speaks the lines of the users of this node at their times. Every node of a conversation
%% runs its own player; nothing is sent between players.
-module(chat_replay).
-behaviour(gen_server).

-export([start_link/0, load/1, play/1, status/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-type target() :: {room, chat_address:name()} | {direct, chat_address:address()}.
%% Copies is the number of deliveries the line is due to cause.
-type cue() :: {AtMs :: non_neg_integer(), User :: chat_address:name(), target(),
                Text :: binary(), Copies :: non_neg_integer()}.
%% speed: 2.0 replays twice as fast (default 1.0). rounds: how often, one after the other
%% (default 1).
-type options() :: #{speed => number(), rounds => pos_integer()}.
-type status() :: #{planned := non_neg_integer(), spoken := non_neg_integer(),
                    playing := boolean()}.
-export_type([cue/0, target/0, options/0, status/0]).

%% A round ends this long after its last line.
-define(PAUSE_MS, 10).

-record(state, {cues = [] :: [cue()],
                length_ms = 0 :: non_neg_integer(),
                rest = [] :: [cue()],
                started_ms = 0 :: integer(),
                speed = 1.0 :: number(),
                rounds_left = 0 :: non_neg_integer(),
                planned = 0 :: non_neg_integer(),
                spoken = 0 :: non_neg_integer(),
                timer = none :: reference() | none}).

-spec start_link() -> gen_server:start_ret().
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Takes the cues of local users and the length of the whole conversation; stops what plays.
-spec load({LengthMs :: non_neg_integer(), [cue()]}) -> ok.
load(Cues) ->
    gen_server:call(?MODULE, {load, Cues}).

%% @doc Starts from the beginning.
-spec play(options()) -> ok.
play(Options) ->
    gen_server:call(?MODULE, {play, Options}).

-spec status() -> status().
status() ->
    gen_server:call(?MODULE, status).

init([]) ->
    {ok, #state{}}.

handle_call({load, {LengthMs, Cues}}, _Caller, State) ->
    _ = stop_timer(State),
    {reply, ok, #state{cues = Cues, length_ms = LengthMs + ?PAUSE_MS}};
handle_call({play, Options}, _Caller, #state{cues = Cues} = State) ->
    Rounds = maps:get(rounds, Options, 1),
    Stopped = stop_timer(State),
    Playing = Stopped#state{rest = Cues, started_ms = now_ms(), spoken = 0,
                            speed = maps:get(speed, Options, 1.0), rounds_left = Rounds - 1,
                            planned = Rounds * length(Cues)},
    {reply, ok, wait_for_cue(Playing)};
handle_call(status, _Caller, #state{planned = Planned, spoken = Spoken} = State) ->
    Status = #{planned => Planned, spoken => Spoken, playing => State#state.timer =/= none},
    {reply, Status, State}.

handle_cast(_Request, State) ->
    {noreply, State}.

handle_info({timeout, Timer, cue}, #state{timer = Timer} = State) ->
    {noreply, wait_for_cue(speak_due(now_ms(), State#state{timer = none}))};
handle_info(_StaleTimer, State) ->
    {noreply, State}.

wait_for_cue(#state{rest = [{AtMs, _, _, _, _} | _]} = State) ->
    Timer = erlang:start_timer(due_ms(AtMs, State), self(), cue, [{abs, true}]),
    State#state{timer = Timer};
wait_for_cue(#state{rest = [], rounds_left = 0} = State) ->
    State;
wait_for_cue(#state{cues = []} = State) ->
    State;
wait_for_cue(#state{cues = Cues, rounds_left = Rounds} = State) ->
    wait_for_cue(State#state{rest = Cues, rounds_left = Rounds - 1,
                             started_ms = due_ms(State#state.length_ms, State)}).

speak_due(NowMs, #state{rest = [{AtMs, User, Target, Text, Copies} | Rest]} = State) ->
    case due_ms(AtMs, State) =< NowMs of
        true ->
            ok = chat_tally:add(expected, Copies),
            speak(chat_address:user(User, node()), Target, Text),
            speak_due(NowMs, State#state{rest = Rest, spoken = State#state.spoken + 1});
        false ->
            State
    end;
speak_due(_NowMs, #state{rest = []} = State) ->
    State.

speak(User, {room, Room}, Text) ->
    chat_user:say(User, Room, Text);
speak(User, {direct, To}, Text) ->
    chat_user:tell(User, To, Text).

due_ms(AtMs, #state{started_ms = StartedMs, speed = Speed}) ->
    StartedMs + round(AtMs / Speed).

stop_timer(#state{timer = none} = State) ->
    State;
stop_timer(#state{timer = Timer} = State) ->
    _ = erlang:cancel_timer(Timer),
    State#state{timer = none}.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% SPDX-License-Identifier: Apache-2.0
%% @doc The end of a handoff that gets the data. Pure; `weft_ring_handoff_sender_core' describes the
%% protocol.
%%
%% Its mark is kept with the data: what is applied and the mark that says so are written both or not
%% at all. After a restart the mark is all that it needs.
%%
%% Events: `{message, Msg}'. Effects: `{clear, Mark}' (drop what an earlier handoff of the partition
%% has left), `{items, Items, Mark}' and `{update, Key, Op, Mark}' (apply, and keep the mark),
%% `{send, Msg}'. Option: `incarnation' (another one at each start).
-module(weft_ring_handoff_receiver_core).

-export([init/2, handle/2, refuse/2, has/2]).
-export_type([state/0, mark/0]).

-type mark() :: none | {weft_ring_handoff_sender_core:id(), weft_ring_handoff_sender_core:cursor(),
                        Number :: non_neg_integer()}.

-record(receiver, {mark :: mark(),
                   incarnation :: term(),
                   sessions = 0 :: non_neg_integer(),
                   %% What the session was the answer to.
                   request = none :: term(),
                   next = 1 :: pos_integer()}).

-opaque state() :: #receiver{}.

%% @doc Waits for a sender, with the mark that was kept.
-spec init(mark(), map()) -> state().
init(Mark, Options) ->
    #receiver{mark = Mark, incarnation = maps:get(incarnation, Options, 0)}.

%% @doc What to answer instead, if this node takes no handoff now.
-spec refuse(term(), Reason :: term()) -> [tuple()].
refuse({handoff, 1, {start, _, Request}}, Reason) ->
    [{send, {handoff, 1, {refuse, Request, Reason}}}];
refuse(_, _) ->
    [].

%% @doc Is the key among those up to the cursor?
-spec has(term(), weft_ring_handoff_sender_core:cursor()) -> boolean().
has(_Key, start) -> false;
has(_Key, done) -> true;
has(Key, {'after', Last}) -> Key =< Last.

%% @doc See above.
-spec handle({message, term()}, state()) -> {state(), [tuple()]}.
handle({message, {handoff, 1, {start, Id, Request}}}, State) ->
    start(Id, Request, State);
handle({message, {handoff, 1, {items, Session, N, Items, Cursor, Number}}}, State) ->
    in_turn(Session, N, fun({Id, _, _}) ->
                            Mark = {Id, Cursor, Number},
                            {Mark, {items, Items, Mark}}
                        end, State);
handle({message, {handoff, 1, {update, Session, N, Number, Key, Op}}}, State) ->
    in_turn(Session, N, fun({Id, Cursor, _}) ->
                            Mark = {Id, Cursor, Number},
                            {Mark, {update, Key, Op, Mark}}
                        end, State);
handle({message, _OfAnotherVersion}, State) ->
    {State, []}.

%% A late message of an earlier handoff must not drop what a later one has brought.
start(Id, Request, #receiver{mark = {Later, _, _}} = State) when Later > Id ->
    {State, [{send, {handoff, 1, {refuse, Request, {outdated, Later}}}}]};
%% Asked again before it had the answer: another session would make that answer worthless.
start(Id, Request, #receiver{mark = {Id, _, _}, request = Request, next = 1} = State) ->
    {State, [resume(State)]};
start(Id, Request, #receiver{mark = {Id, _, _}, request = Request} = State) ->
    {State, []};
start(Id, Request, #receiver{mark = {Id, _, _}, sessions = Sessions} = State0) ->
    State = State0#receiver{sessions = Sessions + 1, request = Request, next = 1},
    {State, [resume(State)]};
start(Id, Request, State0) ->
    Mark = {Id, start, 0},
    {State, Effects} = start(Id, Request, State0#receiver{mark = Mark}),
    {State, [{clear, Mark} | Effects]}.

resume(#receiver{mark = {_, Cursor, Number}, request = Request} = State) ->
    {send, {handoff, 1, {resume, Request, session(State), Cursor, Number}}}.

session(#receiver{incarnation = Incarnation, sessions = Sessions}) ->
    {Incarnation, Sessions}.

%% Once, and in the order of the session.
in_turn(Session, N, Apply, #receiver{mark = Mark0, next = Next} = State) ->
    case session(State) of
        Session when N =:= Next ->
            {{_, _, Number} = Mark, Effect} = Apply(Mark0),
            {State#receiver{mark = Mark, next = N + 1}, [Effect, ack(Session, N, Number)]};
        Session ->
            {_, _, Number} = Mark0,
            {State, [ack(Session, Next - 1, Number)]};
        _ ->
            {State, [{send, {handoff, 1, {stale, Session}}}]}
    end.

ack(Session, N, Number) ->
    {send, {handoff, 1, {ack, Session, N, Number}}}.

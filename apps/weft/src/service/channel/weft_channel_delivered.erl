%% SPDX-License-Identifier: Apache-2.0
%% @doc Which acknowledged messages have been delivered here, so that a repeated one is not
%% delivered again.
%%
%% A message is known by the reference of its attempt (`weft_delivery_core'), for as long as the
%% sender may repeat it. Any receiving process reads and writes the table; the owner of the tables
%% removes what is old. Bounded: over the bound acknowledged messages are refused, so that none is
%% delivered without being remembered.
-module(weft_channel_delivered).

-export([init/0, is_new/2, deliver/4, sweep/0, sweep_ms/0]).
-export_type([ack/0]).

%% The reference to answer, and how long a repeated message may come.
-type ack() :: none | {Answer :: reference(), RetainMs :: pos_integer()}.

-define(SIZE_MAX, 200000).
-define(SWEEP_MS, 10000).
%% No sender can ask for more.
-define(RETAIN_MS_MAX, 120000).

-spec init() -> ok.
init() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {write_concurrency, true}]),
    ok.

%% @doc Is it to be delivered, for the first time or `again', as its name had no process then? Of an
%% acknowledged message that came before the sender hears again what became of it.
-spec is_new(ack() | term(), weft_channel_counters:counters()) -> boolean() | again.
is_new(Ack, Counters) ->
    case first(Ack) of
        new -> true;
        pending -> false;
        absent -> again;
        done -> weft_channel_counters:add(repeated, Counters), answer(Ack, ok), false;
        full -> answer(Ack, overloaded), false
    end.

%% `pending': it came before, but is not delivered yet.
first(none) ->
    new;
first({Ref, RetainMs}) when is_reference(Ref), is_integer(RetainMs), RetainMs > 0 ->
    %% Twice the time that the sender counts, since the message was on its way for some of it.
    ExpiresMs = now_ms() + 2 * min(RetainMs, ?RETAIN_MS_MAX),
    IsFull = ets:info(?MODULE, size) >= ?SIZE_MAX,
    case (not IsFull) andalso ets:insert_new(?MODULE, {Ref, pending, ExpiresMs}) of
        true -> new;
        false -> known(Ref, IsFull)
    end;
first(_) ->
    throw(malformed).

known(Ref, IsFull) ->
    case ets:lookup(?MODULE, Ref) of
        [{_, State, _}] -> State;
        [] when IsFull -> full;
        [] -> new
    end.

%% @doc Puts a message into the mailbox of its receiver, and acknowledges it if asked to.
-spec deliver(pid() | atom(), term(), ack(), weft_channel_counters:counters()) -> ok.
deliver(To, Message, Ack, Counters) ->
    case receiver(To) of
        {ok, Pid} ->
            Pid ! Message,
            _ = is_tuple(Ack) andalso ets:update_element(?MODULE, element(1, Ack), {2, done}),
            answer(Ack, ok);
        none ->
            weft_channel_counters:add(undeliverable, Counters),
            %% A repeated one may find a process, and had its place in the order of its label.
            _ = is_tuple(Ack) andalso ets:update_element(?MODULE, element(1, Ack), {2, absent}),
            answer(Ack, noproc)
    end.

receiver(Name) when is_atom(Name) ->
    case whereis(Name) of
        undefined -> none;
        Pid -> {ok, Pid}
    end;
receiver(Pid) when node(Pid) =/= node() ->
    none;
receiver(Pid) ->
    case is_process_alive(Pid) of
        true -> {ok, Pid};
        false -> none
    end.

answer(none, _Result) -> ok;
answer({Ref, _}, Result) -> Ref ! {Ref, Result}, ok.

-spec sweep() -> non_neg_integer().
sweep() ->
    ets:select_delete(?MODULE, [{{'_', '_', '$1'}, [{'<', '$1', now_ms()}], [true]}]).

-spec sweep_ms() -> pos_integer().
sweep_ms() -> ?SWEEP_MS.

now_ms() -> erlang:monotonic_time(millisecond).

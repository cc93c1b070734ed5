%% SPDX-License-Identifier: Apache-2.0
%% @doc The processes of a simulated node that send over its session, and the VM's queue before it.
%%
%% Kinds of senders: `small' sends a small message every 20 ms, `flood' small ones without end,
%% `bulk' large ones without end, in fragments. Beside them come signals without a known sender.
%% Signals of a sender refer to atoms, some of which they define (`weft_sim_atoms').
%%
%% Like processes they send when they run: not while suspended by the fair queue, and none of them
%% while the VM's queue is long, until it is half of that. Each frame has a note for the receiving
%% end (`weft_sim_receipts'): {Session, Key, NumberOfTheFrameOfKey, DueMs, Before}. DueMs is when a
%% small message should have been sent; Before tells what a signal without sender comes after.
-module(weft_sim_senders).

-export([new/5, run/2, apply_effects/2, out/1, vm_max/1, counts/1]).
-export_type([senders/0, kind/0]).

-define(SMALL_EVERY_MS, 20).
-define(SMALL_BYTES, 200).
-define(FLOOD_FRAMES, 15).
-define(FLOOD_BYTES, 1000).
-define(FRAGMENT_BYTES, 65536).
-define(FRAGMENTS_MAX, 8).
%% As with +zdbbl: all senders wait.
-define(VM_BYTES, 1048576).
-define(UNKNOWN, unknown).

-type kind() :: small | flood | bulk.
-record(senders, {session :: term(),
                  until_ms :: non_neg_integer(),
                  ordered_until_ms :: non_neg_integer(),
                  kinds :: [{weft_frame:key(), kind()}],
                  due_ms = 0 :: non_neg_integer(),
                  suspended = #{} :: #{weft_frame:key() => []},
                  stopped = false :: boolean(),
                  queue = queue:new() :: queue:queue({Size :: pos_integer(), iodata()}),
                  bytes = 0 :: non_neg_integer(),
                  bytes_max = 0 :: non_neg_integer(),
                  %% Frames of each sender so far.
                  counts = #{} :: #{weft_frame:key() | ?UNKNOWN => pos_integer()},
                  atoms = #{} :: weft_sim_atoms:slots(),
                  sequence = 1 :: pos_integer(),
                  rand :: rand:state()}).
-opaque senders() :: #senders{}.

%% @doc Senders that send over that session until a time; signals that hold up all others only until
%% another.
-spec new(Session :: term(), [{weft_frame:key(), kind()}], UntilMs :: non_neg_integer(),
          OrderedUntilMs :: non_neg_integer(), rand:state()) -> senders().
new(Session, Kinds, UntilMs, OrderedUntilMs, Rand) ->
    #senders{session = Session, kinds = Kinds, until_ms = UntilMs,
             ordered_until_ms = OrderedUntilMs, rand = Rand}.

%% @doc All who may send do.
-spec run(NowMs :: non_neg_integer(), senders()) -> senders().
run(NowMs, #senders{until_ms = UntilMs, kinds = Kinds} = Senders)
  when NowMs >= UntilMs; Kinds =:= [] ->
    Senders;
run(NowMs, #senders{due_ms = 0} = Senders) ->
    run(NowMs, Senders#senders{due_ms = NowMs});
run(NowMs, #senders{kinds = Kinds} = Senders) ->
    lists:foldl(fun(Sender, S) -> run_one(Sender, NowMs, S) end, Senders,
                Kinds ++ [{?UNKNOWN, signal}]).

run_one(_Sender, _NowMs, #senders{stopped = true} = Senders) ->
    Senders;
run_one({Key, _Kind}, _NowMs, #senders{suspended = Suspended} = Senders)
  when is_map_key(Key, Suspended) ->
    Senders;
run_one({Key, small}, NowMs, #senders{due_ms = DueMs} = Senders) when DueMs =< NowMs ->
    Sent = whole(Key, DueMs, ?SMALL_BYTES, Senders#senders{due_ms = DueMs + ?SMALL_EVERY_MS}),
    run_one({Key, small}, NowMs, Sent);
run_one({Key, flood}, NowMs, Senders) ->
    lists:foldl(fun(_, S) -> whole(Key, NowMs, ?FLOOD_BYTES, S) end, Senders,
                lists:seq(1, ?FLOOD_FRAMES));
run_one({Key, bulk}, NowMs, Senders0) ->
    {Count, Senders} = draw(?FRAGMENTS_MAX, Senders0),
    fragments(Key, Count, NowMs, Senders);
run_one({?UNKNOWN, signal}, NowMs, #senders{ordered_until_ms = OrderedUntilMs} = Senders0) ->
    case draw(40, Senders0) of
        {1, Senders} -> signal(fun weft_sim_frames:last/1, at_least, NowMs, Senders);
        {2, Senders} when NowMs < OrderedUntilMs ->
            signal(fun weft_sim_frames:ordered/1, exactly, NowMs, Senders);
        {_, Senders} -> Senders
    end;
run_one(_NotDue, _NowMs, Senders) ->
    Senders.

whole(Key, DueMs, Bytes, Senders0) ->
    {Number, Senders1} = count(Key, Senders0),
    {Atoms, Senders} = refer(Number, Senders1),
    in(weft_sim_frames:whole(Key, Atoms, note(Key, Number, DueMs, none, Senders), Bytes), Senders).

fragments(Key, 1, NowMs, Senders) ->
    whole(Key, NowMs, ?FRAGMENT_BYTES, Senders);
fragments(Key, Count, NowMs, #senders{sequence = Sequence} = Senders0) ->
    {Numbers, Senders1} = lists:mapfoldl(fun(_, S) -> count(Key, S) end, Senders0,
                                         lists:seq(1, Count)),
    {Atoms, Senders} = refer(hd(Numbers), Senders1),
    [First | More] = [note(Key, Number, NowMs, none, Senders) || Number <- Numbers],
    Frames = weft_sim_frames:fragments(Key, Sequence, Atoms, First, More, ?FRAGMENT_BYTES),
    lists:foldl(fun in/2, Senders#senders{sequence = Sequence + 1}, Frames).

signal(Frame, How, NowMs, #senders{counts = Before} = Senders0) ->
    {Number, Senders} = count(?UNKNOWN, Senders0),
    in(Frame(note(?UNKNOWN, Number, NowMs, {How, Before}, Senders)), Senders).

note(Key, Number, DueMs, Before, #senders{session = Session}) ->
    {Session, Key, Number, DueMs, Before}.

refer(Number, #senders{atoms = Before} = Senders) ->
    {Atoms, Slots} = weft_sim_atoms:refer(Number, Before),
    {Atoms, Senders#senders{atoms = Slots}}.

count(Key, #senders{counts = Counts} = Senders) ->
    Number = maps:get(Key, Counts, 0) + 1,
    {Number, Senders#senders{counts = Counts#{Key => Number}}}.

draw(Max, #senders{rand = Rand0} = Senders) ->
    {N, Rand} = rand:uniform_s(Max, Rand0),
    {N, Senders#senders{rand = Rand}}.

%% --- the VM's queue ---------------------------------------------------------------------------

in(Frame, #senders{queue = Queue, bytes = Bytes0, bytes_max = Max} = Senders) ->
    Size = iolist_size(Frame),
    Bytes = Bytes0 + Size,
    Senders#senders{queue = queue:in({Size, Frame}, Queue), bytes = Bytes,
                    bytes_max = max(Max, Bytes), stopped = Bytes > ?VM_BYTES}.

%% @doc Takes the next frame, if there is one.
-spec out(senders()) -> {Size :: pos_integer(), iodata(), senders()} | none.
out(#senders{queue = Queue0, bytes = Bytes0, stopped = Stopped} = Senders) ->
    case queue:out(Queue0) of
        {{value, {Size, Frame}}, Queue} ->
            Bytes = Bytes0 - Size,
            {Size, Frame, Senders#senders{queue = Queue, bytes = Bytes,
                                          stopped = Stopped andalso Bytes > ?VM_BYTES div 2}};
        {empty, _} ->
            none
    end.

%% @doc What the fair queue wants to be done to senders.
-spec apply_effects([weft_outlet_core:effect()], senders()) -> senders().
apply_effects(Effects, Senders) ->
    lists:foldl(fun({suspend, Key}, #senders{suspended = Keys} = S) ->
                        S#senders{suspended = Keys#{Key => []}};
                   ({resume, Key}, #senders{suspended = Keys} = S) ->
                        S#senders{suspended = maps:remove(Key, Keys)}
                end, Senders, Effects).

%% @doc The most that the VM's queue held, in bytes.
-spec vm_max(senders()) -> non_neg_integer().
vm_max(#senders{bytes_max = Max}) -> Max.

%% @doc How many frames each has sent.
-spec counts(senders()) -> #{weft_frame:key() | unknown => pos_integer()}.
counts(#senders{counts = Counts}) -> Counts.

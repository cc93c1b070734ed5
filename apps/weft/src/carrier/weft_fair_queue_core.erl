%% SPDX-License-Identifier: Apache-2.0
%% @doc What to send next on a distribution connection: fair to senders, in order for each of them.
%%
%% The VM has one queue for all senders of a connection, and stops them all when it is long. So its
%% frames are fetched at once and wait here:
%%   express   one FIFO for small frames of senders that have nothing else waiting, joined to
%%             payloads. Served before all others, but payload by payload in turn with them.
%%   queues    one per sender with large frames, or with more small ones than its share while the
%%             express FIFO is long. Served by start-time fair queueing (Goyal, Vin, Cheng 1996):
%%             by bytes, weighted by the class of the sender. Senders in the middle of a signal
%%             go on first, for a while: signals half received take memory at the peer.
%%   apart     one FIFO per pinned sender (not of the class bulk) with little waiting, all of it
%%             small. Served in turn with express. The receiver need not wait for payloads of others
%%             before it gives out these (`weft_apart').
%% A sender whose queue is over its share is to be suspended, it alone, until half is left.
%%
%% Order. A queue that begins waits for the express payloads there are, which may hold earlier
%% frames of its sender; later frames of the sender join the queue until it is empty. Signals
%% without a known sender (see `weft_frame') wait until all queues have sent what they hold now;
%% then they go express. Behind an `ordered' one all later frames are held until it is out.
%%
%% While no sender has a queue, small frames may be joined without looking at them (`fast/1'). Then
%% only little is taken before `full/1': where all are small, the VM's own way to stop senders costs
%% less than looking at each frame. Bytes count with the size before each frame.
%%
%% Headers of frames that overtake what they rely on are mended as they go out (`weft_atom_cache').
-module(weft_fair_queue_core).

-export([new/1, fast/1, small_bytes/0, batch_bytes/0, add_batch/4, add/4, repinned/3, ready/2,
         take/3, effects/1, full/1, bytes/1, info/1]).
-export_type([state/0, class/0, classes/0, frame/0, room/0, order/0, effect/0]).

%% A frame of this size or more waits in the queue of its sender.
-define(SMALL_BYTES, 16384).
%% So much waits at most in the express FIFO while there is nothing else.
-define(EXPRESS_MAX_BYTES, 262144).
%% With so much in it beside queues, senders are watched: each may have its part of it.
-define(WATCH_BYTES, 131072).
-define(WATCHED_BYTES_MAX, 4096).
-define(WATCHED_MAX, 4096).
%% The share of a sender, before it is suspended.
-define(SHARE_MIN_BYTES, 131072).
-define(SHARE_MAX_BYTES, 1048576).
%% Payloads are full at these sizes; two fragments of the VM are a bit more than the latter.
-define(EXPRESS_BYTES, 66560).
-define(LARGE_BYTES, 131072).
%% Bytes of express and apart in a row while queues wait: within the window, and beyond.
-define(RUN_BYTES, 66560).
-define(RUN_BEYOND_BYTES, 1048576).
%% Payloads of several queues are joined up to this size.
-define(JOINED_BYTES, 32768).
-define(DEBTS_MAX, 1024).
%% Senders in the middle of a signal that are remembered.
-define(LINE_MAX, 8).

-type class() :: control | default | bulk.
%% Senders that are pinned.
-type classes() :: #{weft_frame:key() => class()}.
%% What may go out: all, only what is in a hurry, or only what travels apart.
-type room() :: all | express | apart.
%% How a payload travels: in order, and whether it changes the atoms that the peer knows; or apart.
-type order() :: frames | defines | {apart, weft_frame:key(), weft_apart:behind()}.
-type effect() :: {suspend | resume, weft_frame:key()}.
-type frame() :: {Size :: non_neg_integer(), iodata(), weft_frame:sender(), class() | none,
                  whole | middle | final, weft_atom_cache:stamp()}.

-record(queue, {fifo :: weft_payload_fifo:fifo(),
                class :: class() | none,
                tag :: non_neg_integer(),
                behind :: non_neg_integer(),
                suspended = false :: boolean()}).
-record(fair, {bytes_max :: pos_integer(),
               bytes = 0 :: non_neg_integer(),
               express = weft_payload_fifo:new(?EXPRESS_BYTES) :: weft_payload_fifo:fifo(),
               run_bytes = 0 :: non_neg_integer(),
               apart = weft_apart:new() :: weft_apart:apart(),
               apart_run_bytes = 0 :: non_neg_integer(),
               %% Nothing travels apart before so many express payloads are out.
               apart_behind = 0 :: non_neg_integer(),
               queues = #{} :: #{weft_frame:key() => #queue{}},
               turns = gb_sets:new() :: gb_sets:set({non_neg_integer(), weft_frame:key()}),
               time = 0 :: non_neg_integer(),
               debts = #{} :: #{weft_frame:key() => non_neg_integer()},
               line = [] :: [{weft_frame:key(), BytesLeft :: pos_integer()}],
               fragments = weft_fragments:new() :: weft_fragments:fragments(),
               atoms = weft_atom_cache:new() :: weft_atom_cache:cache(),
               watched = #{} :: #{weft_frame:key() => non_neg_integer()},
               targets = #{} :: #{weft_frame:key() => non_neg_integer()},
               ready = [] :: [frame()],
               held = queue:new() :: queue:queue(frame()),
               hold_all = false :: boolean(),
               effects = [] :: [effect()]}).
-opaque state() :: #fair{}.

%% @doc BytesMax bounds what is fetched from the VM: fetch nothing while `full/1'.
-spec new(BytesMax :: pos_integer()) -> state().
new(BytesMax) ->
    #fair{bytes_max = BytesMax}.

%% @doc May small frames go in by `add_batch/4'?
-spec fast(state()) -> boolean().
fast(#fair{queues = Queues, apart = Apart}) ->
    map_size(Queues) =:= 0 andalso weft_apart:is_empty(Apart).

%% @doc Smaller frames than this are small.
-spec small_bytes() -> pos_integer().
small_bytes() -> ?SMALL_BYTES.

%% @doc A batch of small frames should not be larger.
-spec batch_bytes() -> pos_integer().
batch_bytes() -> ?EXPRESS_BYTES.

%% @doc Small frames with their sizes before them, not looked at but for their headers: none defines
%% atoms (`weft_atom_cache:defines/1'). Only while `fast/1', and while no sender is pinned.
-spec add_batch(iodata(), Bytes :: pos_integer(), Pieces :: pos_integer(), state()) -> state().
add_batch(Batch, BatchBytes, Pieces, #fair{bytes = Bytes, express = Express} = Fair) ->
    Stamps = weft_atom_cache:unseen(Pieces, Fair#fair.atoms),
    Fair#fair{bytes = Bytes + BatchBytes,
              express = weft_payload_fifo:add_batch(Batch, BatchBytes, Pieces, Stamps, Express)}.

%% @doc A frame of any size, as the VM gives it.
-spec add(Size :: non_neg_integer(), iodata(), classes(), state()) -> state().
add(Size, Data, Classes, #fair{bytes = Bytes, atoms = Atoms0} = Fair0) ->
    {Sender, Part, Fair} = sender(weft_frame:read(Data), Fair0),
    {Stamp, Atoms} = weft_atom_cache:fetched(Data, Atoms0),
    Class = maps:get(Sender, Classes, none),
    place({Size, Data, Sender, Class, Part, Stamp},
          Fair#fair{bytes = Bytes + Size + 4, atoms = Atoms}).

%% @doc Other senders are pinned now. Earlier frames of those who were not may be in express
%% payloads.
-spec repinned(Before :: classes(), classes(), state()) -> state().
repinned(Before, Classes, #fair{apart = Apart} = Fair) ->
    Still = [Key || {Key, Class} <- maps:to_list(Classes), Class =/= bulk,
                    maps:get(Key, Before, bulk) =/= bulk],
    behind_express(Fair#fair{apart = weft_apart:keep(Still, Apart)}).

behind_express(#fair{express = Express} = Fair) ->
    Fair#fair{apart_behind = weft_payload_fifo:begun(Express)}.

sender({whole, Sender}, Fair) ->
    {Sender, whole, Fair};
sender({first, Sequence, Sender}, #fair{fragments = Fragments} = Fair) ->
    {Sender, middle, Fair#fair{fragments = weft_fragments:first(Sequence, Sender, Fragments)}};
sender({more, Sequence}, #fair{fragments = Fragments0} = Fair) ->
    {Sender, Fragments} = weft_fragments:more(Sequence, Fragments0),
    {Sender, middle, Fair#fair{fragments = Fragments}};
sender({final, Sequence}, #fair{fragments = Fragments0} = Fair) ->
    {Sender, Fragments} = weft_fragments:final(Sequence, Fragments0),
    {Sender, final, Fair#fair{fragments = Fragments}}.

%% --- where a frame waits ----------------------------------------------------------------------

place(Frame, #fair{hold_all = true, held = Held} = Fair) ->
    Fair#fair{held = queue:in(Frame, Held)};
place({_, _, Key, _, _, _} = Frame, Fair) when is_integer(Key) ->
    place_known(Frame, Fair);
place({_, _, Sender, _, _, _} = Frame, #fair{held = Held, ready = Ready} = Fair) ->
    case Ready =:= [] andalso fast(Fair) of
        true when Sender =:= ordered -> all_behind_express(to_express(Frame, Fair));
        true -> to_express(Frame, Fair);
        false -> await(Fair#fair{held = queue:in(Frame, Held), hold_all = Sender =:= ordered})
    end.

place_known({_, _, Key, Class, _, _} = Frame, #fair{queues = Queues, apart = Apart} = Fair0) ->
    case Queues of
        #{Key := #queue{fifo = Fifo} = Queue} ->
            share(Key, Queue#queue{fifo = append(Frame, Fifo)}, Fair0);
        _ when Class =:= control; Class =:= default ->
            place_pinned(Frame, Fair0);
        _ ->
            case weft_apart:holds(Key, Apart) of
                true -> place_pinned(Frame, Fair0);
                false -> place_other(Frame, Fair0)
            end
    end.

place_other(Frame, Fair0) ->
    case is_express(Frame, Fair0) of
        {true, Fair} -> to_express(Frame, Fair);
        {false, Fair} -> begin_queue(Frame, Fair)
    end.

place_pinned(Frame, #fair{apart = Apart0} = Fair) ->
    case weft_apart:place(Frame, Apart0) of
        {ok, Apart} -> Fair#fair{apart = Apart};
        no -> begin_queue(Frame, Fair)
    end.

append({Size, Data, _, _, Part, Stamp}, Fifo) ->
    weft_payload_fifo:add(Size, Data, Part, Stamp, Fifo).

to_express(Frame, #fair{express = Express} = Fair) ->
    Fair#fair{express = append(Frame, Express)}.

is_express({Size, _, _, Class, _, _}, Fair) when Size >= ?SMALL_BYTES; Class =:= bulk ->
    {false, Fair};
is_express({Size, _, Key, _, _, _}, #fair{express = Express, watched = Watched} = Fair) ->
    case weft_payload_fifo:bytes(Express) < ?WATCH_BYTES of
        true ->
            {true, Fair};
        false ->
            Bytes = maps:get(Key, Watched, 0) + Size,
            {Bytes =< ?WATCHED_BYTES_MAX, Fair#fair{watched = watch(Key, Bytes, Watched)}}
    end.

watch(Key, Bytes, Watched) when map_size(Watched) >= ?WATCHED_MAX -> #{Key => Bytes};
watch(Key, Bytes, Watched) -> Watched#{Key => Bytes}.

%% With what the sender has waiting to travel apart.
begin_queue({_, _, Key, Class, _, _} = Frame, #fair{express = Express, time = Time, turns = Turns,
                                                    debts = Debts, apart = Apart0} = Fair) ->
    Tag = max(Time, maps:get(Key, Debts, 0)),
    {Waiting, Apart} = weft_apart:remove(Key, Apart0),
    Fifo = case Waiting of
               none -> weft_payload_fifo:new(?LARGE_BYTES);
               _ -> Waiting
           end,
    share(Key, #queue{fifo = append(Frame, Fifo), class = Class, tag = Tag,
                      behind = weft_payload_fifo:begun(Express)},
          Fair#fair{turns = gb_sets:add({Tag, Key}, Turns), debts = maps:remove(Key, Debts),
                    apart = Apart}).

%% Puts a queue that has grown back, and has its sender suspended if it is over its share.
share(Key, #queue{suspended = false, fifo = Fifo} = Queue,
      #fair{queues = Queues, effects = Effects} = Fair) ->
    Bytes = weft_payload_fifo:bytes(Fifo),
    case Bytes > ?SHARE_MIN_BYTES andalso Bytes > share_bytes(Fair) of
        true -> Fair#fair{queues = Queues#{Key => Queue#queue{suspended = true}},
                          effects = [{suspend, Key} | Effects]};
        false -> Fair#fair{queues = Queues#{Key => Queue}}
    end;
share(Key, Queue, #fair{queues = Queues} = Fair) ->
    Fair#fair{queues = Queues#{Key => Queue}}.

share_bytes(#fair{bytes_max = Max, queues = Queues}) ->
    max(?SHARE_MIN_BYTES, min(?SHARE_MAX_BYTES, Max div 4 div max(1, map_size(Queues)))).

%% --- frames that wait for all -----------------------------------------------------------------

%% If nothing is awaited yet: what the queues hold now, for all frames held up to the first
%% `ordered' one, with it; and what is to travel apart.
await(#fair{ready = [], queues = Queues, apart = Apart, held = Held0} = Fair) ->
    {Ready, Held} = unknown_senders(Held0, []),
    Begun = maps:map(fun(_, #queue{fifo = Fifo}) -> weft_payload_fifo:begun(Fifo) end, Queues),
    Fair#fair{ready = Ready, held = Held, targets = maps:merge(Begun, weft_apart:begun(Apart))};
await(Fair) ->
    Fair.

unknown_senders(Held, Ready) ->
    case queue:peek(Held) of
        {value, {_, _, last, _, _, _} = Frame} ->
            unknown_senders(queue:drop(Held), [Frame | Ready]);
        {value, {_, _, ordered, _, _, _} = Frame} ->
            {lists:reverse(Ready, [Frame]), queue:drop(Held)};
        _ ->
            {lists:reverse(Ready), Held}
    end.

%% A queue is gone, or has sent its payload of that number.
reached(_Key, _Taken, #fair{ready = []} = Fair) ->
    Fair;
reached(Key, Taken, #fair{targets = Targets0} = Fair) ->
    case Targets0 of
        #{Key := Target} when Target =< Taken ->
            Targets = maps:remove(Key, Targets0),
            released(Fair#fair{targets = Targets}, map_size(Targets));
        _ ->
            Fair
    end.

released(#fair{ready = Ready, hold_all = HoldAll} = Fair, 0) ->
    Released = release_held(lists:foldl(fun to_express/2, Fair#fair{ready = []}, Ready)),
    case HoldAll of
        true -> all_behind_express(Released);
        false -> Released
    end;
released(Fair, _Left) ->
    Fair.

%% There is what everything else is behind.
all_behind_express(#fair{apart = Apart} = Fair) ->
    behind_express(Fair#fair{apart = weft_apart:keep([], Apart)}).

release_held(#fair{held = Held} = Fair) ->
    case queue:peek(Held) of
        empty ->
            Fair#fair{hold_all = false};
        {value, {_, _, Key, _, _, _} = Frame} when is_integer(Key) ->
            release_held(place_known(Frame, Fair#fair{held = queue:drop(Held)}));
        {value, Frame} ->
            case fast(Fair) of
                true -> release_held(to_express(Frame, Fair#fair{held = queue:drop(Held)}));
                false -> await(Fair)
            end
    end.

%% --- what is next -----------------------------------------------------------------------------

%% @doc The next payload, and how it travels. Room says whether there is room for all, or only for
%% express or what travels apart, which may go a bit beyond the window. A sender in the middle of a
%% signal keeps the line for LineBytes.
-spec take(room(), LineBytes :: pos_integer(), state()) ->
          {iodata(), Bytes :: pos_integer(), order(), state()} | empty.
take(Room, LineBytes, Fair) ->
    case next(Room, Fair) of
        express -> in_order(Fair, take_express(Fair));
        queue -> in_order(Fair, take_queue(LineBytes, Fair));
        apart -> take_apart(Fair);
        none -> empty
    end.

in_order(Before, {Payload, Bytes, Fair}) ->
    {Payload, Bytes, case defines(Before, Fair) of true -> defines; false -> frames end, Fair}.

defines(#fair{atoms = Before}, #fair{atoms = Atoms}) ->
    weft_atom_cache:changes(Before) =/= weft_atom_cache:changes(Atoms).

next(Room, #fair{queues = Queues, run_bytes = Run} = Fair) ->
    case map_size(Queues) > 0 andalso Run >= run_bytes_max(Room) of
        true when Room =:= all -> queue;
        true -> none;
        false -> next_small(Room, Fair)
    end.

run_bytes_max(all) -> ?RUN_BYTES;
run_bytes_max(_Beyond) -> ?RUN_BEYOND_BYTES.

next_small(Room, #fair{apart_run_bytes = Run, express = Express, queues = Queues} = Fair) ->
    IsExpress = Room =/= apart andalso weft_payload_fifo:bytes(Express) > 0,
    case is_apart(Fair) of
        true when Run < ?RUN_BYTES; not IsExpress -> apart;
        _ when IsExpress -> express;
        _ when Room =:= all, map_size(Queues) > 0 -> queue;
        _ -> none
    end.

is_apart(#fair{apart = Apart, apart_behind = Behind, express = Express}) ->
    not weft_apart:is_empty(Apart) andalso weft_payload_fifo:taken(Express) >= Behind.

take_apart(#fair{apart = Apart0, bytes = Bytes, run_bytes = Run,
                 apart_run_bytes = ApartRun} = Fair0) ->
    {Key, Taken, {Payload, Size, _, Stamps}, Apart1} = weft_apart:take(Apart0),
    {Mended, MendedSize, Fair} =
        mended(Payload, Size, Stamps,
               Fair0#fair{bytes = Bytes - Size, run_bytes = Run + Size,
                          apart_run_bytes = ApartRun + Size}),
    {Behind, Apart} = weft_apart:behind(Key, defines(Fair0, Fair), Apart1),
    {Mended, MendedSize, {apart, Key, Behind}, reached(Key, Taken, Fair#fair{apart = Apart})}.

take_express(#fair{express = Express0, bytes = Bytes, run_bytes = Run} = Fair) ->
    {{Payload, Size, _, Stamps}, Express} = weft_payload_fifo:take(Express0),
    Watched = case weft_payload_fifo:bytes(Express) of
                  0 -> #{};
                  _ -> Fair#fair.watched
              end,
    mended(Payload, Size, Stamps,
           Fair#fair{express = Express, bytes = Bytes - Size, run_bytes = Run + Size,
                     apart_run_bytes = 0, watched = Watched}).

mended(Payload0, Bytes0, Stamps, #fair{atoms = Atoms0} = Fair) ->
    {Payload, Bytes, Atoms} = weft_atom_cache:sent(Payload0, Bytes0, Stamps, Atoms0),
    {Payload, Bytes, Fair#fair{atoms = Atoms}}.

take_queue(LineBytes, #fair{express = Express} = Fair) ->
    {Key, #queue{behind = Behind} = Queue} = next_queue(Fair),
    case weft_payload_fifo:taken(Express) < Behind of
        true -> take_express(Fair);
        false -> joined(serve(Key, Queue, LineBytes, Fair#fair{run_bytes = 0}), LineBytes)
    end.

%% Whose turn it is; but who is in the middle of a signal goes on, unless a sender of a better class
%% waits.
next_queue(#fair{queues = Queues, turns = Turns, line = Line}) ->
    {_, Key} = gb_sets:smallest(Turns),
    First = {Key, maps:get(Key, Queues)},
    case [Holder || {Holder, _} <- Line, is_map_key(Holder, Queues)] of
        [Holder | _] -> better(First, {Holder, maps:get(Holder, Queues)});
        [] -> First
    end.

better({_, #queue{class = Class}} = First, {_, #queue{class = Held}} = Holder) ->
    case cost(Class) < cost(Held) of
        true -> First;
        false -> Holder
    end.

%% What a byte costs a sender: one over the weight of its class, times 16.
cost(control) -> 1;
cost(default) -> 4;
cost(none) -> 4;
cost(bulk) -> 16.

serve(Key, #queue{fifo = Fifo0, tag = Tag, class = Class} = Queue, LineBytes,
      #fair{bytes = Bytes, turns = Turns} = Fair0) ->
    {{Payload, Size, Whole, Stamps}, Fifo} = weft_payload_fifo:take(Fifo0),
    Fair = Fair0#fair{bytes = Bytes - Size, turns = gb_sets:delete({Tag, Key}, Turns),
                      time = time(Key, Tag, Fair0),
                      line = line(Key, Size, Whole, LineBytes, Fair0)},
    Served = Queue#queue{fifo = Fifo, tag = Tag + Size * cost(Class)},
    mended(Payload, Size, Stamps,
           reached(Key, weft_payload_fifo:taken(Fifo), served(Key, Served, Fair))).

%% Time is the tag of whose turn it was. Who goes on out of turn runs ahead of it.
time(Key, Tag, #fair{line = Line, time = Time}) ->
    case lists:keymember(Key, 1, Line) of
        true -> Time;
        false -> Tag
    end.

%% One in the middle of a signal may send nothing for a moment. If there are too many, the oldest
%% that has nothing here is forgotten; it may be dead.
line(Key, _Size, true, _LineBytes, #fair{line = Line}) ->
    lists:keydelete(Key, 1, Line);
line(Key, Size, false, LineBytes, #fair{line = Line, queues = Queues}) ->
    case lists:keyfind(Key, 1, Line) of
        {_, Left} when Left =< Size -> lists:keydelete(Key, 1, Line);
        {_, Left} -> lists:keyreplace(Key, 1, Line, {Key, Left - Size});
        false when length(Line) < ?LINE_MAX -> Line ++ [{Key, LineBytes}];
        false ->
            case [Holder || {Holder, _} <- Line, not is_map_key(Holder, Queues)] of
                [Oldest | _] -> lists:keydelete(Oldest, 1, Line) ++ [{Key, LineBytes}];
                [] -> Line
            end
    end.

served(Key, #queue{fifo = Fifo, tag = Tag, suspended = Suspended} = Queue,
       #fair{queues = Queues, turns = Turns} = Fair0) ->
    case weft_payload_fifo:bytes(Fifo) of
        0 ->
            Fair = resume(Suspended, Key, Fair0),
            owe(Key, Tag, Fair#fair{queues = maps:remove(Key, Queues)});
        Bytes ->
            Resume = Suspended andalso Bytes =< share_bytes(Fair0) div 2,
            Left = Queue#queue{suspended = Suspended andalso not Resume},
            resume(Resume, Key, Fair0#fair{queues = Queues#{Key := Left},
                                           turns = gb_sets:add({Tag, Key}, Turns)})
    end.

resume(false, _Key, Fair) -> Fair;
resume(true, Key, #fair{effects = E} = Fair) -> Fair#fair{effects = [{resume, Key} | E]}.

%% A sender whose queue was empty for a moment has not paid for what it got before.
owe(_Key, _Tag, #fair{queues = Queues} = Fair) when map_size(Queues) =:= 0 ->
    Fair#fair{debts = #{}, time = 0};
owe(Key, Tag, #fair{debts = Debts} = Fair) when map_size(Debts) >= ?DEBTS_MAX ->
    Fair#fair{debts = #{Key => Tag}};
owe(Key, Tag, #fair{debts = Debts} = Fair) ->
    Fair#fair{debts = Debts#{Key => Tag}}.

%% Small payloads of several senders travel together.
joined({Payload, Size, #fair{queues = Queues} = Fair}, LineBytes)
  when Size < ?JOINED_BYTES, map_size(Queues) > 0 ->
    {Key, #queue{behind = Behind} = Queue} = next_queue(Fair),
    case weft_payload_fifo:taken(Fair#fair.express) < Behind of
        true ->
            {Payload, Size, Fair};
        false ->
            {More, MoreSize, Fair1} = serve(Key, Queue, LineBytes, Fair),
            joined({[Payload | More], Size + MoreSize, Fair1}, LineBytes)
    end;
joined(Taken, _LineBytes) ->
    Taken.

%% --- what the caller needs to know ------------------------------------------------------------

%% @doc Would `take/3' give something?
-spec ready(room(), state()) -> boolean().
ready(all, #fair{bytes = Bytes}) -> Bytes > 0;
ready(Room, Fair) -> next(Room, Fair) =/= none.

%% @doc What is to be done to senders since it was asked last, in order. A resume follows each
%% suspend.
-spec effects(state()) -> {[effect()], state()}.
effects(#fair{effects = []} = Fair) -> {[], Fair};
effects(#fair{effects = Effects} = Fair) -> {lists:reverse(Effects), Fair#fair{effects = []}}.

%% @doc Behind an `ordered' frame nothing can go ahead, and whose turn it is would not be seen.
-spec full(state()) -> boolean().
full(#fair{hold_all = true}) ->
    true;
full(#fair{bytes = Bytes, bytes_max = Max, queues = Queues}) when map_size(Queues) =:= 0 ->
    Bytes >= min(Max, ?EXPRESS_MAX_BYTES);
full(#fair{bytes = Bytes, bytes_max = Max}) ->
    Bytes >= Max.

%% @doc Bytes that wait here.
-spec bytes(state()) -> non_neg_integer().
bytes(#fair{bytes = Bytes}) -> Bytes.

%% @doc Bytes that wait, senders with a queue, and how many of them are suspended.
-spec info(state()) -> #{queued_bytes | queues | suspended => non_neg_integer()}.
info(#fair{bytes = Bytes, queues = Queues}) ->
    #{queued_bytes => Bytes, queues => map_size(Queues),
      suspended => length([Key || {Key, #queue{suspended = true}} <- maps:to_list(Queues)])}.

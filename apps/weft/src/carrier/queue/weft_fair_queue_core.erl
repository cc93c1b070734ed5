%% SPDX-License-Identifier: Apache-2.0
%% @doc What to send next on a distribution connection: fair to senders, in order for each of them.
%%
%% The VM has one queue for all senders of a connection, and stops them all when it is long. So its
%% frames are fetched at once and wait here:
%%   express   one FIFO for small frames of senders that have nothing else waiting. Several frames
%%             make one payload. It is served before the queues, but takes turns with `bypass',
%%             payload by payload.
%%   queues    one for each sender that has large frames, or more small ones than its share while
%%             the express FIFO is long. They take turns by bytes (`weft_sender_queues').
%%   bypass    one FIFO for each pinned sender (not of the class bulk) that has little waiting, all
%%             of it small. These are sent as bypass payloads: the receiver may deliver them before
%%             earlier payloads of other senders (`weft_bypass_queue').
%% If the queue of a sender is over its share, this sender alone is to be suspended, until half of
%% the share is left.
%%
%% Order. A queue that begins waits for the express payloads that there are, since these may hold
%% earlier frames of its sender; later frames of the sender go to the queue until it is empty.
%% Frames without a known sender (see `weft_frame') wait until all queues have sent what they hold
%% now, and then go express. After an `ordered' frame all later frames are held until it is out.
%%
%% While no sender has a queue, small frames may be joined without reading them (`fast/1'). In this
%% state `full/1' is true early: if all frames are small, it costs less to let the VM stop its
%% senders than to read each frame. Bytes include the size before each frame. While nothing waits
%% at all, such a batch need not even pass through here (`is_idle/1').
%%
%% A frame may go out before one that its atom header relies on; `weft_atom_cache' rewrites such
%% headers as they go out.
-module(weft_fair_queue_core).

-export([new/1, fast/1, is_idle/1, add_batch/4, add/4, repinned/3, ready/2, take/3, effects/1,
         full/1, bytes/1, info/1, code_change/1]).
-export_type([state/0, class/0, classes/0, frame/0, room/0, order/0, effect/0]).

%% On the way of each message: not calls.
-compile({inline, [fast/1]}).

-include("weft_frame_sizes.hrl").

%% This much waits at most in the express FIFO while there is nothing else.
-define(EXPRESS_MAX_BYTES, 262144).
%% With this much in it while queues wait, each sender may have only a part of it.
-define(WATCH_BYTES, 131072).
-define(WATCHED_BYTES_MAX, 4096).
-define(WATCHED_MAX, 4096).
%% A payload of a sender's queue is full at this size; two fragments of the VM are a bit more.
-define(LARGE_BYTES, 131072).
%% Bytes of express and bypass payloads in a row while queues wait: within the window, and beyond.
-define(RUN_BYTES, 66560).
-define(RUN_BEYOND_BYTES, 1048576).
%% Payloads of several queues are joined up to this size.
-define(JOINED_BYTES, 32768).

-type class() :: weft_sender_queues:class().
%% Senders that are pinned.
-type classes() :: #{weft_frame:key() => class()}.
%% What may go out: all, only what is urgent, or only bypass payloads.
-type room() :: all | express | bypass.
%% How a payload is sent: in order (`defines': it changes the atoms that the peer knows), or bypass.
-type order() :: frames | defines | {bypass, weft_frame:key(), weft_bypass_queue:behind()}.
-type effect() :: {suspend | resume, weft_frame:key()}.
-type frame() :: weft_sender_queues:frame().

-record(fair, {bytes_max :: pos_integer(),
               bytes = 0 :: non_neg_integer(),
               express = weft_payload_fifo:new(?EXPRESS_BYTES) :: weft_payload_fifo:fifo(),
               run_bytes = 0 :: non_neg_integer(),
               bypass = weft_bypass_queue:new() :: weft_bypass_queue:bypass(),
               bypass_run_bytes = 0 :: non_neg_integer(),
               %% No bypass payload before so many express payloads are out.
               bypass_behind = 0 :: non_neg_integer(),
               queues :: weft_sender_queues:queues(),
               fragments = weft_fragment_senders:new() :: weft_fragment_senders:fragments(),
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
    #fair{bytes_max = BytesMax, queues = weft_sender_queues:new(BytesMax)}.

%% @doc May small frames go in by `add_batch/4'?
-spec fast(state()) -> boolean().
fast(#fair{queues = Queues, bypass = Bypass}) ->
    weft_sender_queues:count(Queues) =:= 0 andalso weft_bypass_queue:is_empty(Bypass).

%% @doc Is there nothing that a batch of small frames would have to wait for? Then it may be the
%% next payload, sent in order, without `add_batch/4' and `take/3', under the same conditions. Both
%% would leave this state as it is, but for the count of payloads, which matters only to what waits
%% for one of them.
-spec is_idle(state()) -> boolean().
is_idle(#fair{bytes = 0, hold_all = false, ready = [], effects = [], atoms = Atoms} = Fair) ->
    fast(Fair) andalso weft_atom_cache:is_settled(Atoms);
is_idle(_Fair) ->
    false.

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

%% @doc The set of pinned senders has changed. Earlier frames of those that are new in it may be in
%% express payloads.
-spec repinned(Before :: classes(), classes(), state()) -> state().
repinned(Before, Classes, #fair{bypass = Bypass, queues = Queues} = Fair) ->
    Still = [Key || {Key, Class} <- maps:to_list(Classes), Class =/= bulk,
                    maps:get(Key, Before, bulk) =/= bulk],
    behind_express(Fair#fair{bypass = weft_bypass_queue:keep(Still, Bypass),
                             queues = weft_sender_queues:classes(Classes, Queues)}).

behind_express(#fair{express = Express} = Fair) ->
    Fair#fair{bypass_behind = weft_payload_fifo:begun(Express)}.

sender({whole, Sender}, Fair) ->
    {Sender, whole, Fair};
sender({first, Sequence, Sender}, #fair{fragments = Fragments} = Fair) ->
    Begun = weft_fragment_senders:first(Sequence, Sender, Fragments),
    {Sender, middle, Fair#fair{fragments = Begun}};
sender({more, Sequence}, #fair{fragments = Fragments0} = Fair) ->
    {Sender, Fragments} = weft_fragment_senders:more(Sequence, Fragments0),
    {Sender, middle, Fair#fair{fragments = Fragments}};
sender({final, Sequence}, #fair{fragments = Fragments0} = Fair) ->
    {Sender, Fragments} = weft_fragment_senders:final(Sequence, Fragments0),
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

place_known({_, _, Key, Class, _, _} = Frame, #fair{queues = Queues, bypass = Bypass} = Fair0) ->
    case weft_sender_queues:holds(Key, Queues) of
        true ->
            queued(weft_sender_queues:add(Frame, Queues), Fair0);
        false ->
            case is_bypass_class(Class) orelse weft_bypass_queue:holds(Key, Bypass) of
                true -> place_pinned(Frame, Fair0);
                false -> place_other(Frame, Fair0)
            end
    end.

is_bypass_class(Class) -> Class =:= control orelse Class =:= default.

queued({none, Queues}, Fair) ->
    Fair#fair{queues = Queues};
queued({Effect, Queues}, #fair{effects = Effects} = Fair) ->
    Fair#fair{queues = Queues, effects = [Effect | Effects]}.

place_other(Frame, Fair0) ->
    case is_express(Frame, Fair0) of
        {true, Fair} -> to_express(Frame, Fair);
        {false, Fair} -> begin_queue(Frame, Fair)
    end.

place_pinned(Frame, #fair{bypass = Bypass0} = Fair) ->
    case weft_bypass_queue:place(Frame, Bypass0) of
        {ok, Bypass} -> Fair#fair{bypass = Bypass};
        no -> begin_queue(Frame, Fair)
    end.

to_express(Frame, #fair{express = Express} = Fair) ->
    Fair#fair{express = weft_sender_queues:append(Frame, Express)}.

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

%% Begins with the frames of the sender that wait in `bypass'.
begin_queue({_, _, Key, Class, _, _} = Frame,
            #fair{express = Express, queues = Queues, bypass = Bypass0} = Fair) ->
    {Waiting, Bypass} = weft_bypass_queue:remove(Key, Bypass0),
    Fifo = case Waiting of
               none -> weft_payload_fifo:new(?LARGE_BYTES);
               _ -> Waiting
           end,
    Behind = weft_payload_fifo:begun(Express),
    queued(weft_sender_queues:start(Key, Class, weft_sender_queues:append(Frame, Fifo), Behind,
                                    Queues),
           Fair#fair{bypass = Bypass}).

%% --- frames that wait for all -----------------------------------------------------------------

%% If nothing is awaited yet: all frames held up to the first `ordered' one, and this one too, wait
%% for what the queues and `bypass' hold now.
await(#fair{ready = [], queues = Queues, bypass = Bypass, held = Held0} = Fair) ->
    {Ready, Held} = unknown_senders(Held0, []),
    Begun = weft_sender_queues:begun(Queues),
    Fair#fair{ready = Ready, held = Held,
              targets = maps:merge(Begun, weft_bypass_queue:begun(Bypass))};
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

%% Everything that comes later has to wait for the express payloads that there are.
all_behind_express(#fair{bypass = Bypass} = Fair) ->
    behind_express(Fair#fair{bypass = weft_bypass_queue:keep([], Bypass)}).

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

%% @doc The next payload, and how it is sent. Room says whether there is room for all, or only for
%% express or bypass payloads, which may exceed the window a little. A message in progress keeps its
%% sender first for ProgressBytes.
-spec take(room(), ProgressBytes :: pos_integer(), state()) ->
          {iodata(), Bytes :: pos_integer(), order(), state()} | empty.
take(Room, ProgressBytes, Fair) ->
    case next(Room, Fair) of
        express -> in_order(Fair, take_express(Fair));
        queue -> in_order(Fair, take_queue(ProgressBytes, Fair));
        bypass -> take_bypass(Fair);
        none -> empty
    end.

in_order(Before, {Payload, Bytes, Fair}) ->
    {Payload, Bytes, case defines(Before, Fair) of true -> defines; false -> frames end, Fair}.

defines(#fair{atoms = Before}, #fair{atoms = Atoms}) ->
    weft_atom_cache:changes(Before) =/= weft_atom_cache:changes(Atoms).

next(Room, #fair{queues = Queues, run_bytes = Run} = Fair) ->
    case weft_sender_queues:count(Queues) > 0 andalso Run >= run_bytes_max(Room) of
        true when Room =:= all -> queue;
        true -> none;
        false -> next_small(Room, Fair)
    end.

run_bytes_max(all) -> ?RUN_BYTES;
run_bytes_max(_Beyond) -> ?RUN_BEYOND_BYTES.

next_small(Room, #fair{bypass_run_bytes = Run, express = Express, queues = Queues} = Fair) ->
    IsExpress = Room =/= bypass andalso weft_payload_fifo:bytes(Express) > 0,
    case can_bypass(Fair) of
        true when Run < ?RUN_BYTES; not IsExpress -> bypass;
        _ when IsExpress -> express;
        _ ->
            case Room =:= all andalso weft_sender_queues:count(Queues) > 0 of
                true -> queue;
                false -> none
            end
    end.

can_bypass(#fair{bypass = Bypass, bypass_behind = Behind, express = Express}) ->
    not weft_bypass_queue:is_empty(Bypass) andalso weft_payload_fifo:taken(Express) >= Behind.

take_bypass(#fair{bypass = Bypass0, bytes = Bytes, run_bytes = Run,
                  bypass_run_bytes = BypassRun} = Fair0) ->
    {Key, Taken, {Payload, Size, _, Stamps}, Bypass1} = weft_bypass_queue:take(Bypass0),
    {Mended, MendedSize, Fair} =
        mended(Payload, Size, Stamps,
               Fair0#fair{bytes = Bytes - Size, run_bytes = Run + Size,
                          bypass_run_bytes = BypassRun + Size}),
    {Behind, Bypass} = weft_bypass_queue:behind(Key, defines(Fair0, Fair), Bypass1),
    {Mended, MendedSize, {bypass, Key, Behind}, reached(Key, Taken, Fair#fair{bypass = Bypass})}.

take_express(#fair{express = Express0, bytes = Bytes, run_bytes = Run} = Fair) ->
    {{Payload, Size, _, Stamps}, Express} = weft_payload_fifo:take(Express0),
    Watched = case weft_payload_fifo:bytes(Express) of
                  0 -> #{};
                  _ -> Fair#fair.watched
              end,
    mended(Payload, Size, Stamps,
           Fair#fair{express = Express, bytes = Bytes - Size, run_bytes = Run + Size,
                     bypass_run_bytes = 0, watched = Watched}).

mended(Payload0, Bytes0, Stamps, #fair{atoms = Atoms0} = Fair) ->
    {Payload, Bytes, Atoms} = weft_atom_cache:sent(Payload0, Bytes0, Stamps, Atoms0),
    {Payload, Bytes, Fair#fair{atoms = Atoms}}.

take_queue(ProgressBytes, #fair{queues = Queues} = Fair) ->
    {Key, Behind} = weft_sender_queues:next(Queues),
    case is_behind_express(Behind, Fair) of
        true -> take_express(Fair);
        false -> joined(serve(Key, ProgressBytes, Fair#fair{run_bytes = 0}), ProgressBytes)
    end.

is_behind_express(Behind, #fair{express = Express}) ->
    weft_payload_fifo:taken(Express) < Behind.

serve(Key, ProgressBytes, #fair{bytes = Bytes, queues = Queues0} = Fair0) ->
    {{Payload, Size, _, Stamps}, Count, Effect, Queues} =
        weft_sender_queues:serve(Key, ProgressBytes, Queues0),
    Fair = queued({Effect, Queues}, Fair0#fair{bytes = Bytes - Size}),
    mended(Payload, Size, Stamps, reached(Key, Count, Fair)).

%% Small payloads of several queues are joined.
joined({Payload, Size, #fair{queues = Queues} = Fair} = Taken, ProgressBytes) ->
    case Size < ?JOINED_BYTES andalso weft_sender_queues:count(Queues) > 0
        andalso weft_sender_queues:next(Queues) of
        false ->
            Taken;
        {Key, Behind} ->
            case is_behind_express(Behind, Fair) of
                true ->
                    Taken;
                false ->
                    {More, MoreSize, Fair1} = serve(Key, ProgressBytes, Fair),
                    joined({[Payload | More], Size + MoreSize, Fair1}, ProgressBytes)
            end
    end.

%% --- what the caller needs to know ------------------------------------------------------------

%% @doc Would `take/3' give something?
-spec ready(room(), state()) -> boolean().
ready(all, #fair{bytes = Bytes}) -> Bytes > 0;
ready(Room, Fair) -> next(Room, Fair) =/= none.

%% @doc What is to be done to senders since this was last asked, in order. Each suspend is followed
%% by a resume.
-spec effects(state()) -> {[effect()], state()}.
effects(#fair{effects = []} = Fair) -> {[], Fair};
effects(#fair{effects = Effects} = Fair) -> {lists:reverse(Effects), Fair#fair{effects = []}}.

%% @doc After an `ordered' frame nothing can overtake, so what is fetched would only wait.
-spec full(state()) -> boolean().
full(#fair{hold_all = true}) ->
    true;
full(#fair{bytes = Bytes, bytes_max = Max, queues = Queues}) ->
    case weft_sender_queues:count(Queues) of
        0 -> Bytes >= min(Max, ?EXPRESS_MAX_BYTES);
        _ -> Bytes >= Max
    end.

%% @doc Bytes that wait here.
-spec bytes(state()) -> non_neg_integer().
bytes(#fair{bytes = Bytes}) -> Bytes.

%% @doc Bytes that wait, senders with a queue, and how many of them are suspended.
-spec info(state()) -> #{queued_bytes | queues | suspended => non_neg_integer()}.
info(#fair{bytes = Bytes, queues = Queues}) ->
    (weft_sender_queues:info(Queues))#{queued_bytes => Bytes}.

%% @doc The state as this version keeps it.
-spec code_change(state()) -> state().
code_change(#fair{bypass = Bypass} = Fair) ->
    Fair#fair{bypass = weft_bypass_queue:code_change(Bypass)}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Brings hints to the owner of their partition, and tells the partition here what was brought:
%% a batch when the one before is acknowledged, until there are none. So there is one batch of each
%% partition under way, and of a few partitions at a time (`weft_kv_hints_turns'). Between two
%% batches it pauses as a handoff does (`weft_ring_handoff_pace'), so that it gives way to requests.
%%
%% It begins anywhere, goes on to the last one and then from the first one on. When the owner does
%% not take a batch, it ends, and begins again with the next tick of the partition: then anywhere
%% else, as what an owner refuses because it is full may not keep the others here.
%%
%% Not here: which objects are hints (`weft_kv_vnode').
-module(weft_kv_hints).

-export([next/3, start/2, bring/4]).
-export_type([start/0, ask/0]).

-type start() :: fun((Partition :: non_neg_integer(), Owner :: node()) -> pid()).
-type ask() :: fun((weft_vnode:place(), weft_kv_table:key(), Command :: term()) ->
                       {ok, Answer :: term()} | {error, term()}).

-define(ASK_MS, 5000).
-define(HINTS_MAX, 100).
%% The least time between two batches, and an eighth of the longest one.
-define(PACE_MS, 10).

-record(run, {partition :: non_neg_integer(),
              owner :: node(),
              ask :: ask(),
              way = unknown :: unknown | weft_kv_copy:way(),
              batch = 1 :: pos_integer(),
              pace :: weft_ring_handoff_pace:pace()}).

%% @doc What the partition says: objects of a batch, and where the next one begins. What was
%% forgotten meanwhile needs no owner.
-spec next(weft_kv_hinted:cursor(), weft_kv_hinted:hinted(), weft_kv_table:table()) ->
          {[weft_kv_copy:item()], weft_kv_hinted:cursor()}.
next(Cursor, Hinted, Table) ->
    {Keys, Next} = weft_kv_hinted:next(Cursor, ?HINTS_MAX, Hinted),
    Batch = weft_kv_shown:objects(Keys, Table),
    {[Item || {_, {_, _}} = Item <- Batch],
     case length(Batch) < length(Keys) of
         true -> {'after', element(1, lists:last(Batch))};
         false -> Next
     end}.

%% @doc In a process of its own. What users have stored is not for logs.
-spec start(Partition :: non_neg_integer(), Owner :: node()) -> pid().
start(Partition, Owner) ->
    Ask = fun(Place, Key, Command) ->
              weft_vnode:ask(weft_kv_vnode, Place, Key, Command, ?ASK_MS)
          end,
    Bring = fun() -> bring(Partition, Owner, ?PACE_MS, Ask) end,
    spawn(weft_redact, run, [fun() -> weft_kv_hints_turns:in_turn(Owner, Bring) end]).

%% @doc Ends when the owner does not take a batch, or has all.
-spec bring(Partition :: non_neg_integer(), Owner :: node(), PaceMs :: non_neg_integer(), ask()) ->
          ok.
bring(Partition, Owner, PaceMs, Ask) ->
    Run = #run{partition = Partition, owner = Owner, ask = Ask,
               pace = weft_ring_handoff_pace:new(PaceMs)},
    case from(anywhere, Run) of
        {ok, Next} ->
            _ = from(start, Next),
            ok;
        refused -> ok
    end.

from(done, Run) ->
    {ok, Run};
from(Cursor, #run{partition = Partition} = Run) ->
    case here({Partition, '', <<>>}, {hints, Cursor}, Run) of
        {ok, {Items, Next}} when is_list(Items) ->
            case brought(Items, Run) of
                {ok, Following} -> from(Next, Following);
                refused -> refused
            end;
        _ -> refused
    end.

brought([], Run) ->
    {ok, Run};
brought([{Key, {_, #{n := N}}} | _] = Items, #run{way = unknown} = Run) ->
    case at_owner(Key, {entropy, {segments, N}}, Run) of
        {ok, Segments} when is_list(Segments) ->
            brought(Items, Run#run{way = weft_kv_copy:way(Segments)});
        _ -> refused
    end;
brought([{Key, _} | _] = Items, #run{partition = Partition, way = Way, batch = Batch,
                                     pace = Pace0} = Run) ->
    Ask = fun(_, AtKey, Command) -> at_owner(AtKey, Command, Run) end,
    Sent = weft_ring_handoff_pace:sent(Batch, now_ms(), Pace0),
    case weft_kv_copy:write(Way, Partition, Items, Ask) of
        {ok, _} ->
            Pace = weft_ring_handoff_pace:acknowledged(Batch, now_ms(), Sent),
            %% If that is not heard, it is brought once more.
            _ = here(Key, {brought, Items}, Run),
            %% pacing: requests come first
            receive after weft_ring_handoff_pace:wait_ms(Pace) -> ok end,
            {ok, Run#run{batch = Batch + 1, pace = Pace}};
        {error, _} -> refused
    end.

at_owner(Key, Command, #run{partition = Partition, owner = Owner, ask = Ask}) ->
    Ask({Partition, Owner, primary}, Key, Command).

here(Key, Command, #run{partition = Partition, ask = Ask}) ->
    Ask({Partition, node(), fallback}, Key, Command).

now_ms() -> erlang:monotonic_time(millisecond).

%% SPDX-License-Identifier: Apache-2.0
%% @doc What is going to happen, in order of time and then of creation.
%%
%% Millions of events pass through here, most of them soon after they were made. So the next
%% milliseconds are kept in order, the rest only in a list per millisecond.
-module(weft_sim_queue).

-export([new/0, in/3, out/2]).
-export_type([queue/0]).

-record(queue, {
    next = 1 :: pos_integer(),
    %% Everything up to the end of the millisecond `near_ms', in order.
    near = gb_sets:new() :: gb_sets:set(entry()),
    near_ms = 0 :: non_neg_integer(),
    far = #{} :: #{Ms :: non_neg_integer() => [entry()]},
    far_count = 0 :: non_neg_integer()}).

-type entry() :: {AtUs :: non_neg_integer(), Created :: pos_integer(), Event :: term()}.
-opaque queue() :: #queue{}.

%% @doc Nothing.
-spec new() -> queue().
new() ->
    #queue{}.

%% @doc Event happens at the given time, after all others that were put there for that time.
-spec in(AtUs :: non_neg_integer(), Event :: term(), queue()) -> queue().
in(AtUs, Event, #queue{next = Next, near_ms = NearMs} = Queue) ->
    Entry = {AtUs, Next, Event},
    case AtUs div 1000 of
        Ms when Ms =< NearMs ->
            Queue#queue{next = Next + 1, near = gb_sets:add_element(Entry, Queue#queue.near)};
        Ms ->
            #queue{far = Far, far_count = Count} = Queue,
            Later = case Far of
                        #{Ms := Entries} -> Far#{Ms := [Entry | Entries]};
                        #{} -> Far#{Ms => [Entry]}
                    end,
            Queue#queue{next = Next + 1, far = Later, far_count = Count + 1}
    end.

%% @doc The next event, if it happens no later than UntilUs.
-spec out(UntilUs :: non_neg_integer(), queue()) ->
          {AtUs :: non_neg_integer(), Event :: term(), queue()} | none.
out(UntilUs, #queue{near = Near0} = Queue) ->
    case gb_sets:is_empty(Near0) of
        false ->
            case gb_sets:take_smallest(Near0) of
                {{AtUs, _, Event}, Near} when AtUs =< UntilUs ->
                    {AtUs, Event, Queue#queue{near = Near}};
                _Later ->
                    none
            end;
        true when Queue#queue.far_count =:= 0 -> none;
        true -> advance(UntilUs, Queue)
    end.

%% The clock does not pass the end of the run, so that what is still put there stays in order.
advance(UntilUs, #queue{near_ms = NearMs, far = Far0, far_count = Count} = Queue) ->
    case first(NearMs + 1, UntilUs div 1000, Far0) of
        none ->
            none;
        Ms ->
            {Entries, Far} = maps:take(Ms, Far0),
            out(UntilUs, Queue#queue{near = gb_sets:from_list(Entries), near_ms = Ms, far = Far,
                                     far_count = Count - length(Entries)})
    end.

%% Most milliseconds of a cluster at rest are empty.
first(Ms, LastMs, _Far) when Ms > LastMs -> none;
first(Ms, _LastMs, Far) when is_map_key(Ms, Far) -> Ms;
first(Ms, LastMs, Far) -> first(Ms + 1, LastMs, Far).

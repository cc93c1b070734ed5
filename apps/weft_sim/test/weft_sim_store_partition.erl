%% SPDX-License-Identifier: Apache-2.0
%% @doc One partition of the store in the simulator: `weft_kv_vnode' as it is, with the cores of
%% handoffs at either end. It does what `weft_vnode_process' does on a real node, without a process:
%% each function gives the partition back, and `effects/1' what is to be sent.
%%
%% `weft_kv_vnode' asks whose a partition is by `weft_ring_lookup', and whether that is this node.
%% So before each call the ring is published with `node()' in place of the node that acts.
-module(weft_sim_store_partition).

-export([start/4, command/6, hand_over/4, cancel/2, heard/4, linked/3, timer/4, tick/4, waiting/1,
         items/1, recall/1, effects/1]).
-export_type([partition/0]).

-define(KV, weft_kv_vnode).
-define(RETRY_MS, 60).
%% So long one that has another owner refuses what is asked.
-define(REFUSE_MS, 100).

-record(partition, {number :: non_neg_integer(),
                    self :: node(),
                    data :: term(),
                    recall :: weft_kv_recall:recall(),
                    kept = weft_vnode_notes:fresh() :: weft_vnode_notes:kept(),
                    %% The core, the transfer and a number that tells it from earlier handoffs.
                    sending = none :: none | {term(), weft_ring_table:transfer(), pos_integer()},
                    receiving = none :: term(),
                    given = false :: false | weft_ring_table:transfer(),
                    over = none :: none | {weft_ring_table:transfer(), AtMs :: integer()},
                    starts = 0 :: non_neg_integer(),
                    effects = [] :: [term()]}).
-opaque partition() :: #partition{}.

%% @doc With what is on disk, as after a start of the node.
-spec start(node(), non_neg_integer(), [weft_kv_copy:item()], NowMs :: integer()) -> partition().
start(Self, Number, Items, NowMs) ->
    {ok, Empty} = ?KV:init(Number, #{}),
    %% All of it are hints at first.
    Data = lists:foldl(fun({Key, {Object, Kind}}, D0) ->
                           {ok, D} = ?KV:change(Key, {merge, Object, Kind, fallback}, none, D0),
                           D
                       end, Empty, Items),
    anew(NowMs, #partition{number = Number, self = Self, data = Data, recall = told()}).

%% What the partition has said last of what it may have forgotten.
told() ->
    [{_, Recall}] = weft_kv_stats:recalls(),
    Recall.

%% @doc What it may have forgotten.
-spec recall(partition()) -> weft_kv_recall:recall().
recall(#partition{recall = Recall}) -> Recall.

%% @doc What there is to do outside of the partition, in order.
-spec effects(partition()) -> {[term()], partition()}.
effects(#partition{effects = Effects} = P) -> {lists:reverse(Effects), P#partition{effects = []}}.

%% @doc All objects.
-spec items(partition()) -> [weft_kv_copy:item()].
items(#partition{data = Data}) ->
    {Items, done} = ?KV:items(start, 1000000, Data),
    [Item || {{KeyPartition, _, _}, _} = Item <- Items, KeyPartition >= 0].

%% @doc How many hints there are.
-spec waiting(partition()) -> non_neg_integer().
waiting(#partition{data = Data}) -> ?KV:waiting(Data).

%% --- commands ---------------------------------------------------------------------------------

%% @doc The answer of `weft_vnode:ask/5'.
-spec command(primary | fallback, term(), term(), weft_ring_table:ring() | none, integer(),
              partition()) -> {{ok, term()} | {error, term()}, partition()}.
command(Role, Key, Command, Ring, NowMs, P) ->
    case whose(Role, Ring, P) of
        ok -> carried_out(Key, Command, Ring, NowMs, P);
        {error, Reason} -> {{error, Reason}, P}
    end.

whose(_, _, #partition{given = {_, _, _}}) -> {error, moved};
whose(fallback, _, _) -> ok;
whose(primary, none, _) -> {error, no_ring};
whose(primary, Ring, #partition{number = Number, self = Self}) ->
    case weft_ring_table:owner(Number, Ring) of
        Self -> ok;
        _ -> {error, not_owner}
    end.

carried_out(Key, Command, Ring, NowMs, #partition{data = Data, self = Self} = P) ->
    ok = published(Self, Ring),
    case ?KV:command(Key, Command, Data) of
        {reply, Reply} when element(1, Command) =:= compared ->
            {{ok, Reply}, case Reply of
                              ok -> P#partition{recall = told()};
                              {error, outdated} -> P
                          end};
        {reply, Reply} -> {{ok, Reply}, P};
        {change, Change, Reply} -> {{ok, Reply}, changed(Key, Change, NowMs, P)};
        {changes, Changes, Reply} ->
            {{ok, Reply}, lists:foldl(fun({K, Change}, P0) -> changed(K, Change, NowMs, P0) end,
                                      P, Changes)}
    end.

changed(Key, Change, _NowMs, #partition{sending = none} = P) ->
    change(Key, Change, none, P);
changed(Key, Change, NowMs, P) ->
    sender({update, command, Key, Change}, NowMs, P).

change(Key, Change, Note, #partition{data = Data} = P) ->
    {ok, New} = ?KV:change(Key, Change, Note, Data),
    noted(Note, P#partition{data = New}).

noted(Note, #partition{kept = Kept} = P) -> P#partition{kept = weft_vnode_notes:add(Note, Kept)}.

anew(NowMs, #partition{kept = Kept} = P) ->
    noted({reset, weft_vnode_notes:next_attempt(NowMs * 1000, Kept)}, P).

%% Always with the same names, so that only numbers of owners change in the look-up. Those beyond
%% the ring are there for that.
published(Self, none) ->
    published_owners(Self, []);
published(Self, Ring) ->
    published_owners(Self, weft_ring_table:owners(Ring)).

published_owners(Self, Owners) ->
    Names = [node(), 'n1@sim', 'n2@sim', 'n3@sim', 'n4@sim', 'n5@sim', 'nobody@sim'],
    weft_ring_lookup:publish_owners(
      weft_ring, [case Owner of Self -> node(); none -> 'nobody@sim'; _ -> Owner end
                  || Owner <- Owners ++ lists:duplicate(8 - length(Owners), none)] ++ Names).

%% --- to the next owner ------------------------------------------------------------------------

%% @doc Begins a handoff. It ends with the effect `{handed, ok | {error, Reason}, Transfer}'.
-spec hand_over(weft_ring_table:transfer(), weft_ring_table:ring(), integer(), partition()) ->
          partition().
hand_over(Transfer, _Ring, _NowMs, #partition{sending = {_, _, _}} = P) ->
    effect({handed, {error, busy}, Transfer}, P);
hand_over(Transfer, Ring, NowMs, #partition{given = Other} = P)
  when Other =/= false, Other =/= Transfer ->
    hand_over(Transfer, Ring, NowMs, anew(NowMs, P#partition{given = false}));
hand_over(Transfer, _Ring, NowMs, #partition{kept = #{log := Log}, starts = Starts} = P) ->
    {Core, Effects} = weft_ring_handoff_sender_core:init(
                        Transfer, in_order(Log),
                        #{incarnation => {P#partition.self, NowMs, Starts}, batch_items => 2,
                          window => 2, log_max => 6, retry_ms => ?RETRY_MS, pace_ms => 5}),
    perform(Effects, NowMs, P#partition{sending = {Core, Transfer, Starts + 1}, given = false,
                                        starts = Starts + 1}).

in_order({Attempt, Last, Entries}) -> {Attempt, Last, lists:sort(Entries)}.

%% @doc The ring does not want the handoff any more.
-spec cancel(integer(), partition()) -> partition().
cancel(_NowMs, #partition{sending = none} = P) -> P;
cancel(NowMs, P) -> (sender(cancel, NowMs, P))#partition{sending = none}.

%% @doc The other end can be reached again, or no longer.
-spec linked({link_up | link_down, node()}, integer(), partition()) -> partition().
linked({Event, To}, NowMs, #partition{sending = {_, {_, _, To}, _}} = P) -> sender(Event, NowMs, P);
linked(_, _, P) -> P.

%% @doc A timer of the handoff with this number.
-spec timer(pos_integer(), term(), integer(), partition()) -> partition().
timer(Start, Timer, NowMs, #partition{sending = {_, _, Start}} = P) ->
    sender({timer, Timer}, NowMs, P);
timer(_Outdated, _, _, P) -> P.

sender(_Event, _NowMs, #partition{sending = none} = P) ->
    P;
sender(Event, NowMs, #partition{sending = {Core0, Transfer, Start}} = P) ->
    {Core, Effects} = weft_ring_handoff_sender_core:handle(Event, NowMs, Core0),
    perform(Effects, NowMs, P#partition{sending = {Core, Transfer, Start}}).

perform(Effects, NowMs, P) ->
    lists:foldl(fun(Effect, P0) -> sent(Effect, NowMs, P0) end, P, Effects).

sent({send, Msg}, _, #partition{sending = {_, {Number, _, To}, _}} = P) ->
    effect({send, To, {receiver, Number, Msg}}, P);
sent({read, Cursor, Max}, NowMs, #partition{data = Data} = P) ->
    {Items, Next} = ?KV:items(Cursor, Max, Data),
    sender({batch, Items, Next}, NowMs, P);
sent({apply, command, Key, Change, none}, _, P) ->
    change(Key, Change, none, P);
sent({apply, command, Key, Change, Number}, _, P) ->
    change(Key, Change, {log, Number, Key, Change}, P);
sent({truncate, Number}, _, P) ->
    noted({truncate, Number}, P);
sent({reset, Attempt}, _, P) ->
    noted({reset, Attempt}, P);
sent({after_ms, Ms, Timer}, _, #partition{number = Number, sending = {_, _, Start}} = P) ->
    effect({after_ms, Ms, {handoff, Number, Start, Timer}}, P);
sent({failed, Reason}, NowMs, #partition{sending = {_, Transfer, _}} = P) ->
    anew(NowMs, effect({handed, {error, Reason}, Transfer}, P#partition{sending = none}));
sent(done, _, #partition{sending = {_, Transfer, _}} = P) ->
    effect({handed, ok, Transfer}, P#partition{sending = none, given = Transfer}).

effect(Effect, #partition{effects = Effects} = P) -> P#partition{effects = [Effect | Effects]}.

%% --- from the former owner --------------------------------------------------------------------

%% @doc A message of the other end of a handoff.
-spec heard({sender | receiver, node(), term()}, weft_ring_table:ring() | none, integer(),
            partition()) -> partition().
heard({sender, _From, Msg}, _Ring, NowMs, P) ->
    sender({message, Msg}, NowMs, P);
heard({receiver, From, Msg}, none, _NowMs, P) ->
    answer(From, weft_ring_handoff_receiver_core:refuse(Msg, no_ring), P);
heard({receiver, From, Msg}, Ring, NowMs, #partition{self = Self, number = Number} = P) ->
    case weft_ring_table:owner(Number, Ring) of
        Self -> answer(From, weft_ring_handoff_receiver_core:refuse(Msg, owner), P);
        _ -> received(From, Msg, NowMs, P)
    end.

received(From, Msg, NowMs, #partition{receiving = none, kept = #{mark := Mark}} = P) ->
    #partition{self = Self, starts = Starts} = P,
    Core = weft_ring_handoff_receiver_core:init(Mark, #{incarnation => {Self, NowMs, Starts}}),
    received(From, Msg, NowMs, P#partition{receiving = Core, starts = Starts + 1});
received(From, Msg, _NowMs, #partition{receiving = Core0} = P) ->
    {Core, Effects} = weft_ring_handoff_receiver_core:handle({message, Msg}, Core0),
    answer(From, Effects, P#partition{receiving = Core, given = false}).

answer(From, Effects, P) ->
    lists:foldl(fun(Effect, P0) -> taken(Effect, From, P0) end, P, Effects).

taken({send, Msg}, From, #partition{number = Number} = P) ->
    effect({send, From, {sender, Number, Msg}}, P);
taken({clear, Mark}, _, #partition{data = Data} = P) ->
    {ok, New} = ?KV:clear({mark, Mark}, Data),
    noted({mark, Mark}, P#partition{data = New});
taken({items, Items, Mark}, _, #partition{data = Data} = P) ->
    {ok, New} = ?KV:take(Items, {mark, Mark}, Data),
    noted({mark, Mark}, P#partition{data = New});
taken({update, Key, Change, Mark}, _, P) ->
    change(Key, Change, {mark, Mark}, P).

%% --- at rest ----------------------------------------------------------------------------------

%% @doc Now and then. `stop': there is nothing here that anybody needs.
-spec tick(weft_kv_hints:start(), weft_ring_table:ring() | none, integer(), partition()) ->
          {ok | stop, partition()}.
tick(_Bring, none, _NowMs, P) ->
    {ok, P};
tick(_Bring, Ring, NowMs, #partition{given = {_, _, _}, number = Number, self = Self} = P) ->
    case {weft_ring_table:owner(Number, Ring), planned(Number, Ring)} of
        {Owner, _} when Owner =/= Self -> over(NowMs, P);
        {_, Self} -> {ok, anew(NowMs, P#partition{given = false})};
        _ -> {ok, P}
    end;
tick(Bring, Ring, _NowMs, #partition{sending = {_, _, _}} = P) ->
    case whose(primary, Ring, P) of
        ok -> at_rest(Bring, Ring, P);
        {error, _} -> {ok, P}
    end;
tick(Bring, Ring, _NowMs, #partition{kept = #{mark := Mark}, number = Number, self = Self} = P)
  when Mark =/= none ->
    case weft_ring_table:owner(Number, Ring) =/= Self andalso planned(Number, Ring) =/= Self of
        true -> at_rest(Bring, Ring, cancelled(P));
        false -> at_rest(Bring, Ring, P)
    end;
tick(Bring, Ring, _NowMs, P) ->
    at_rest(Bring, Ring, P).

over(NowMs, #partition{over = {Given, AtMs}, given = Given, data = Data} = P)
  when NowMs >= AtMs ->
    {ok, New} = ?KV:clear(none, Data),
    {stop, P#partition{data = New}};
over(_NowMs, #partition{over = {Given, _}, given = Given} = P) ->
    {ok, P};
over(NowMs, #partition{given = Given} = P) ->
    {ok, P#partition{over = {Given, NowMs + ?REFUSE_MS}}}.

planned(Number, Ring) -> lists:nth(Number + 1, weft_ring_table:planned(Ring)).

cancelled(#partition{data = Data} = P) ->
    {ok, New} = ?KV:cancelled({mark, none}, Data),
    noted({mark, none}, P#partition{data = New, receiving = none}).

at_rest(Bring, Ring, #partition{data = Data, self = Self} = P) ->
    ok = published(Self, Ring),
    case {?KV:tick(Bring, Data), P} of
        {{stop, New}, #partition{sending = none}} -> {stop, P#partition{data = New}};
        {{_, New}, _} -> {ok, P#partition{data = New, recall = told()}}
    end.

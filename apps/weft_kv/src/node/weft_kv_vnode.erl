%% SPDX-License-Identifier: Apache-2.0
%% @doc The replicas of one partition, in memory and, if there is a `dir', on disk. It answers
%% requests of coordinators, hands its objects to the next owner, and forgets what is over.
%%
%% An object that was written here because the owner was away is a *hint*: it is brought to the
%% owner as soon as that answers, by a process of its own, and dropped here. Objects merge, so
%% nothing is lost if that is done twice, or if the partition is handed over at the same time. What
%% is here when the partition was taken from this node by force is a hint, too.
%%
%% Options (a map in the configuration of weft_ring): `bytes_max' (infinity), for each partition.
%% When it is full, objects of buckets with `evict' are dropped, those first that were not used for
%% longest; if that does not make room, writes are refused, but for those that make objects smaller.
%% `grace_ms' (a day): how long it is remembered that something was deleted or is over.
%% `siblings_max' (100): a write that would be one more sibling is refused.
%%
%% With a `dir' each change is on disk before anybody hears of it, as its bucket asks for that
%% (`weft_kv_durability'). What a partition finds there when it starts is a hint, if another node
%% owns the partition by then. While a change can not be written, all commands fail, but those for a
%% key of a bucket that is in memory only.
%%
%% Not here: how many replicas have to answer (`weft_kv_coordinator_core'), and what is written to
%% the file (`weft_kv_disk').
-module(weft_kv_vnode).
-behaviour(weft_vnode).

-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2, tick/1, tick/2,
         commit/1, is_held/3, terminate/2, directory/1, stored/1, waiting/1, cancelled/2]).

-define(CLEANED, {500, 1000000}). % objects and bytes of a page
-define(CLEANED_MS, 20).

-record(replica, {partition :: non_neg_integer(),
                  writer :: weft_kv_writer:writer(),
                  table :: weft_kv_table:table(),
                  %% Those that were given. With a file also `durability', what its buckets ask for.
                  options :: map(),
                  log = none :: none | weft_kv_log:log(),
                  %% What waits for the disk could not be written: no more is to wait.
                  blocked = false :: boolean(),
                  rewrite = now :: weft_kv_disk:rewrite(),
                  %% What another node owns: none but keys that are in the table.
                  hints = weft_kv_hinted:new() :: weft_kv_hinted:hinted(),
                  pushing = none :: none | pid(),
                  %% Objects came from the former owner.
                  filled = false :: boolean(),
                  %% This node was the owner when it was looked at last.
                  owned = false :: boolean(),
                  cleaned = start :: weft_vnode:cursor()}).

%% @private
init(Partition, Options) ->
    case weft_kv_vnode_options:check(Options) of
        {ok, All} ->
            case loaded(#replica{partition = Partition, table = weft_kv_table:new(), options = All,
                                 writer = weft_kv_writer:new(Partition)}) of
                {ok, Replica} ->
                    %% If it has to be compared, then soon.
                    ok = weft_kv_stats:partition(has(Replica)),
                    {ok, Replica};
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

loaded(#replica{options = #{dir := none}} = Replica) ->
    {ok, Replica};
loaded(#replica{partition = Partition, options = #{dir := Dir}, table = Table} = Replica) ->
    case weft_kv_disk:open(Dir, Partition, ?MODULE, Table) of
        {ok, Log, Durability} ->
            Opened = with_durability(Durability, Replica, Log),
            {ok, case weft_ring_lookup:owner(weft_ring, Partition) of
                     {ok, Owner} when Owner =:= node() -> as_hints(Opened);
                     %% What others have for it is not here.
                     _ -> all_hints(Opened)
                 end};
        {error, Reason} -> {error, Reason}
    end.

with_durability(Durability, #replica{options = Options} = Replica, Log) ->
    Replica#replica{log = Log, options = Options#{durability => Durability}}.

%% @private
directory(#{dir := Dir}) -> Dir;
directory(_Options) -> none.

%% @private
stored(Options) -> weft_kv_disk:stored(directory(Options)).

%% Whoever does not ask would not know what to make of it.
%% @private
command(Key, {read, #{tell := incomplete} = Kind, primary}, Replica) ->
    {reply, {ok, Object}} = command(Key, {read, maps:remove(tell, Kind), primary}, Replica),
    {reply, {said(Key, Kind, Replica), Object}};
command(Key, {Request, Kind, Role},
        #replica{table = Table, writer = Writer, options = Options} = Replica)
  when Request =:= read orelse element(1, Request) =:= write orelse element(1, Request) =:= merge,
       Role =:= primary orelse Role =:= fallback ->
    Object = object(weft_kv_table:use(Key, Table)),
    case weft_kv_replica:requested(Request, weft_kv_writer:last(Writer), map_get(siblings, Kind),
                                   Object) of
        Object -> {reply, {ok, Object}};
        New ->
            Max = weft_kv_vnode_options:siblings_max(Options),
            case {is_blocked(Key, Replica), is_full(Key, New, Kind, Replica),
                  weft_kv_replica:is_crowding(Request, Max, Object, New)} of
                {true, _, _} -> {reply, {error, not_written}};
                {_, true, _} -> {reply, {error, full}};
                {_, _, true} -> {reply, {error, {too_many_siblings, Max}}};
                _ -> {change, {merge, New, Kind, Role}, {ok, New}}
            end
    end;
command({KeyPartition, Bucket, _}, {page, After}, #replica{table = Table}) ->
    {reply, weft_kv_shown:page({KeyPartition, Bucket}, After, Table)};
command(Key, {page, After, N}, Replica) ->
    {reply, Page} = command(Key, {page, After}, Replica),
    {reply, {said(Key, #{n => N}, Replica), Page}};
command({KeyPartition, _, _}, {entropy, {What, N}}, #replica{table = Table}) ->
    {reply, weft_kv_shown:hashes({N, KeyPartition}, What, Table)};
command(_, since, #replica{partition = Partition, table = Table}) ->
    {reply, {since, weft_kv_gaps:since(Partition, Table)}};
command({KeyPartition, _, _}, {compared, Since, {N, Other}, Sinces},
        #replica{table = Table} = Replica) ->
    {reply, case weft_kv_gaps:compared({N, KeyPartition}, Other, Since, Sinces, Table) of
                ok -> weft_kv_stats:partition(has(Replica));
                {error, outdated} -> {error, outdated}
            end};
command(_, {objects, Keys}, #replica{table = Table}) ->
    {reply, weft_kv_shown:objects(Keys, Table)};
command(_, {merge_all, Items}, Replica) ->
    merge_all([{Key, New, Kind} || {Key, {Object, Kind}} <- Items,
                                   New <- new(Key, Object, Kind, Replica)], Replica);
command(_, {adopt, Items}, Replica) ->
    merge_all([{Key, New, Kind} || {Key, {Object, Kind}} <- Items,
                                   New <- adopted(Key, Object, Kind, Replica)], Replica);
command(_, {hints, Cursor}, #replica{hints = Hints, table = Table}) ->
    {reply, weft_kv_hints:next(Cursor, Hints, Table)};
command(_, {left_over, Which}, #replica{table = Table}) ->
    {reply, weft_kv_shown:some(Which, Table)};
command(_, {brought, Items}, #replica{partition = Partition}) when is_list(Items) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} when Owner =:= node() -> {reply, ok};
        _ -> {changes, [{Key, {brought, Key, Object}} || {Key, {Object, _}} <- Items], ok}
    end;
%% (Where it is repeated, earlier versions know it, and leave what is there.)
command(_, {drop, Items}, _) ->
    {changes, [{Key, {brought, Key, {left_over, Object}}} || {Key, {Object, _}} <- Items], ok};
command(_, _OfALaterVersion, _) ->
    {reply, {error, unknown_command}}.

said({KeyPartition, _, _} = Key, #{n := N}, #replica{partition = Partition, table = Table} = R) ->
    weft_kv_gaps:said({N, KeyPartition}, is_in_memory(Key, R), Partition, Table).

%% What there is of the key with this object, if it is not so already. What is over and was
%% forgotten here is not taken again from one that has yet to forget it: the two would bring it back
%% to each other for ever, as each looks at some of its objects at a time.
new(Key, Object, #{siblings := Siblings} = Kind, #replica{table = Table} = Replica) ->
    Mine = read(Key, Table),
    New = weft_kv_replica:requested({merge, Object}, <<>>, Siblings, Mine),
    IsForgotten = Mine =:= weft_kv_object:new() andalso is_waste(now_ms(), Key, New, Kind, Replica),
    [New || New =/= Mine, not IsForgotten].

%% The same. What is here like that already is compared with the copies of this kind from now on.
adopted(Key, Object, #{n := N} = Kind, #replica{table = Table} = Replica) ->
    case {new(Key, Object, Kind, Replica), weft_kv_table:read(Key, Table)} of
        {[], {Mine, #{n := Other}}} when Other =/= N -> [Mine];
        {New, _} -> New
    end.

merge_all([], _) ->
    {reply, {ok, 0}};
merge_all(_, #replica{blocked = true}) ->
    {reply, {error, not_written}};
merge_all(News, Replica) ->
    Changes = [{Key, {merge, New, to_keep(Kind), primary}} || {Key, New, Kind} <- News,
                                                              not is_full(Key, New, Kind, Replica)],
    {changes, Changes, case length(Changes) of
                           Count when Count =:= length(News) -> {ok, Count};
                           _ -> {error, full}
                       end}.

read(Key, Table) -> object(weft_kv_table:read(Key, Table)).

object({Object, _}) -> Object;
object(none) -> weft_kv_object:new().

%% What gets smaller makes room, and so does a deletion in the end, though that of an empty value by
%% a new actor is no smaller.
is_full(_, _, #{evict := true}, _) -> false;
is_full(Key, New, _, #replica{options = #{bytes_max := Max}, table = Table}) ->
    weft_kv_table:bytes(Table) >= Max andalso not weft_kv_table:is_smaller(Key, New, Table)
        andalso (weft_kv_object:values(New) =/= []
                     orelse read(Key, Table) =:= weft_kv_object:new()).

%% What another node drops as soon as it is here. (Earlier versions take it for a part of the kind.)
to_keep(Kind) -> Kind#{durability => synced}.

to_keep({mark, _FromTheFormerOwner}, Kind) -> to_keep(Kind);
to_keep(_Note, Kind) -> Kind.

%% @private
change(Key, {merge, Object, Kind, Role}, Note, #replica{hints = Hints} = Replica) ->
    Merged = merged(Key, Object, to_keep(Note, Kind), Replica),
    {ok, Merged#replica{hints = case Role of
                                    fallback -> weft_kv_hinted:add(Key, Hints);
                                    primary -> Hints
                                end}};
%% Those have it who are to have it. If it was written to meanwhile, it stays.
change(Key, {brought, Key, {left_over, Object}}, _Note, #replica{table = Table} = Replica) ->
    {ok, case read(Key, Table) of
             Object -> renamed([{Key, Object}], removed([Key], Replica));
             _ -> Replica
         end};
%% The owner has it. If it was written to meanwhile, it has to be brought once more.
change(Key, {brought, Key, Object}, _Note, #replica{hints = Hints, table = Table} = Replica) ->
    case weft_kv_hinted:has(Key, Hints) andalso read(Key, Table) of
        Object ->
            Left = Replica#replica{hints = weft_kv_hinted:remove(Key, Hints)},
            {ok, case Left of
                     #replica{filled = true} -> Left;
                     #replica{} -> renamed([{Key, Object}], removed([Key], Left))
                 end};
        _ -> {ok, Replica}
    end.

merged(Key, Object, #{siblings := Siblings} = Asked, #replica{table = Table} = Replica) ->
    New = weft_kv_replica:requested({merge, Object}, <<>>, Siblings, read(Key, Table)),
    Kind = maps:remove(durability, Asked),
    ok = weft_kv_table:store(Key, New, Kind, Table),
    #replica{options = #{bytes_max := Max}, writer = Writer} = Replica,
    Stored = logged({stored, Key, New, Kind}, maps:get(durability, Asked, as_configured),
                    Replica#replica{writer = weft_kv_writer:stored(Object, Writer)}),
    lists:foldl(fun gone/2, Stored, weft_kv_table:evict(Max, Table)).

removed(Keys, #replica{table = Table} = Replica) ->
    lists:foldl(fun(Key, R) ->
                    ok = weft_kv_table:remove(Key, Table),
                    gone(Key, R)
                end, Replica, Keys).

%% What was forgotten needs no owner.
gone(Key, #replica{hints = Hints} = Replica) ->
    logged({removed, Key}, written, Replica#replica{hints = weft_kv_hinted:remove(Key, Hints)}).

renamed(Objects, #replica{writer = Writer} = Replica) ->
    Replica#replica{writer = weft_kv_writer:forgot([Object || {_, Object} <- Objects], Writer)}.

logged(_Entry, _How, #replica{log = none} = Replica) -> Replica;
logged(Entry, How, #replica{log = Log} = Replica) ->
    Replica#replica{log = weft_kv_disk:append(Entry, How, durability(Replica), Log)}.

durability(#replica{options = Options}) -> maps:get(durability, Options, #{}).

%% @private
items(Cursor, Max, #replica{table = Table}) ->
    weft_kv_handed:items(Cursor, {Max, weft_kv_shown:batch_bytes()}, Table).

%% @private
take(Items, Note, #replica{table = Table} = Replica) ->
    Taken = lists:foldl(fun({Key, {Object, Kind}}, R) ->
                            merged(Key, Object, to_keep(Note, Kind), R)
                        end, Replica, weft_kv_handed:taken(Items, Table)),
    {ok, Taken#replica{filled = true}}.

%% Hints are not from a former owner, and there may be no other copy of them. With `none' the
%% partition was handed over, hints and all.
%% @private
clear(none, #replica{log = none, table = Table} = Replica) ->
    ok = weft_kv_table:clear(Table),
    {ok, Replica#replica{hints = weft_kv_hinted:new()}};
clear(none, #replica{log = Log, rewrite = Rewrite} = Replica) ->
    case weft_kv_disk:delete(Rewrite, Log) of
        ok -> clear(none, Replica#replica{log = none, rewrite = now});
        {error, Reason} -> {error, Reason}
    end;
clear(_Mark, #replica{table = Table, hints = Hints, log = Log} = Replica) ->
    Promised = Replica#replica{log = weft_kv_gaps:promised(Table, Log)},
    Keys = weft_kv_table:keys(fun(Key) -> not weft_kv_hinted:has(Key, Hints) end, Table),
    Objects = [{Key, read(Key, Table)} || Key <- Keys],
    {ok, renamed(Objects, removed(Keys, Promised#replica{filled = true,
                                                          owned = false}))}.

%% @private
cover(bytes, #replica{table = Table}) ->
    weft_kv_table:bytes(Table).

%% --- on disk ----------------------------------------------------------------------------------

%% @private
commit(#replica{log = none} = Replica) ->
    {ok, Replica};
commit(#replica{log = Log0, rewrite = Rewrite0, table = Table} = Replica) ->
    {Result, {Log, Durability, Rewrite}} =
        weft_kv_disk:commit({Log0, durability(Replica), Rewrite0}, Table),
    New = with_durability(Durability, Replica#replica{rewrite = Rewrite}, Log),
    case Result of
        ok -> {ok, New#replica{blocked = false}};
        {error, Reason} -> {error, Reason, New#replica{blocked = true}}
    end.

%% What one key of a bucket has in memory only need not wait for a disk. Batches may have others.
%% @private
is_held(Key, {_Request, _Kind, _Role}, Replica) -> not is_in_memory(Key, Replica);
is_held(Key, {page, _}, Replica) -> not is_in_memory(Key, Replica);
is_held(_, _, _) -> true.

is_blocked(Key, #replica{blocked = Blocked} = Replica) ->
    Blocked andalso not is_in_memory(Key, Replica).

%% Also after what was configured since, and is not so yet.
is_in_memory({_, Bucket, _}, #replica{options = #{durability := Durability}}) ->
    lists:all(fun(D) -> weft_kv_durability:of_bucket(Bucket, D) =:= memory end,
              [Durability, weft_kv_durability:current(Durability)]);
is_in_memory(_, _) -> false.

%% @private
terminate(_Reason, #replica{log = Log, rewrite = Rewrite}) ->
    ok = weft_kv_stats:ended(),
    case Log of none -> ok; _ -> weft_kv_disk:close(Rewrite, Log) end.

%% --- at rest ----------------------------------------------------------------------------------

%% @private
tick(Replica) -> tick(fun weft_kv_hints:start/2, Replica).

%% @doc With somebody else who brings hints, for a test.
-spec tick(weft_kv_hints:start(), State) -> {ok | stop, State} when State :: #replica{}.
tick(Bring, Replica0) ->
    Replica = settled(bring(Bring, clean(still_owned(Replica0)))),
    ok = weft_kv_stats:partition(has(Replica)),
    case is_needed(Replica) of
        true -> {ok, Replica};
        false ->
            case clear(none, Replica) of
                {ok, Left} -> {stop, Left};
                %% A later process would find the file.
                {error, _} -> {ok, Replica}
            end
    end.

has(#replica{partition = Partition, hints = Hints, table = Table, log = Log,
             blocked = Blocked}) ->
    #{recall => {Partition, weft_kv_table:recall(Table)},
      hints => weft_kv_hinted:count(Hints), objects => weft_kv_table:count(Table),
      memory_bytes => weft_kv_table:bytes(Table),
      file_bytes => case Log of none -> 0; _ -> weft_kv_log:bytes(Log) end,
      ns => weft_kv_table:ns(Table),
      unwritable => case Blocked of true -> 1; false -> 0 end}.

%% Who hands a partition over is not asked here any more. So whose it is no more without that has
%% lost it by force, and the new owner has none of what is here.
still_owned(#replica{partition = Partition, owned = Owned, filled = Filled} = Replica) ->
    case weft_ring_lookup:owner(weft_ring, Partition) of
        {ok, Owner} when Owner =:= node() -> Replica#replica{owned = true};
        {ok, _} when Owned -> all_hints(Replica);
        {ok, _} when not Filled -> with_gaps(Replica);
        _ -> Replica
    end.

%% Others write for this partition, and not here. If it gets it by force, it lacks that.
with_gaps(#replica{table = Table, log = Log} = Replica) ->
    Replica#replica{log = weft_kv_gaps:forgot(Table, Log)}.

settled(#replica{partition = Partition, owned = Owned, table = Table, log = Log} = Replica) ->
    Replica#replica{log = weft_kv_gaps:rest(Partition, Owned, Table, Log)}.

all_hints(Replica) -> as_hints(with_gaps(Replica)).

as_hints(#replica{table = Table} = Replica) ->
    Keys = weft_kv_table:keys(fun(_) -> true end, Table),
    Replica#replica{owned = false, filled = false, hints = weft_kv_hinted:from_keys(Keys)}.

%% Whoever is the owner gets what came, so it does not matter whether it has it.
%% @private
cancelled(_Mark, Replica) -> {ok, all_hints(Replica)}.

%% @private
waiting(#replica{hints = Hints}) -> weft_kv_hinted:count(Hints).

%% Another node owns the partition, and nothing is kept for it or comes for this node.
is_needed(#replica{filled = Filled, hints = Hints, partition = Partition, table = Table}) ->
    Filled orelse weft_kv_hinted:count(Hints) > 0 orelse weft_kv_table:bytes(Table) > 0
        orelse weft_ring_lookup:owner(weft_ring, Partition) =:= {ok, node()}.

%% To look at all objects again and again is most of what a store at rest would do.
clean(#replica{table = Table} = Replica) ->
    case weft_kv_table:ending(Table) of
        0 -> Replica;
        _ -> cleaned(now_ms() + ?CLEANED_MS, Replica)
    end.

%% While most of a page is over there is another one: values may come faster than one page a tick.
cleaned(UntilMs, #replica{table = Table, cleaned = Cursor} = Replica) ->
    {Items, Next} = weft_kv_table:page(Cursor, ?CLEANED, Table),
    NowMs = now_ms(),
    {Waste, Kept} = lists:partition(fun({Key, {Object, Kind}}) ->
                                        is_waste(NowMs, Key, Object, Kind, Replica)
                                    end, [Item || {Key, _} = Item <- Items,
                                                  not is_blocked(Key, Replica)]),
    Over = [{Key, Shed, Kind} || {Key, {Object, Kind}} <- Kept,
                                 Shed <- [weft_kv_object:shed(NowMs, Object)], Shed =/= Object],
    Left = removed([Key || {Key, _} <- Waste],
                   Replica#replica{cleaned = case Next of done -> start; _ -> Next end}),
    New = lists:foldl(fun shed/2, Left, Over),
    case 2 * length(Waste ++ Over) >= length(Items) of
        true when Next =/= done, NowMs < UntilMs -> cleaned(UntilMs, New);
        _ -> New
    end.

%% Of what is over it has to be known for some time that it is, but not what it was.
shed({Key, Object, Kind}, #replica{table = Table} = Replica) ->
    ok = weft_kv_table:store(Key, Object, Kind, Table),
    logged({stored, Key, Object, Kind}, written, Replica).

now_ms() -> erlang:system_time(millisecond).

is_waste(NowMs, Key, Object, Kind, Replica) ->
    #replica{hints = Hints, options = #{grace_ms := Ms}} = Replica,
    GraceMs = weft_kv_replica:grace_ms(Object, Kind, weft_kv_hinted:has(Key, Hints), Ms),
    weft_kv_replica:is_waste(NowMs, GraceMs, Object).

%% One process at a time, which asks for the hints here, a batch after the other.
bring(Bring, #replica{hints = Hints, partition = Partition, pushing = Pid} = Replica) ->
    case weft_kv_hinted:count(Hints) > 0 andalso not (is_pid(Pid) andalso is_process_alive(Pid))
        andalso weft_ring_lookup:owner(weft_ring, Partition) of
        false -> Replica;
        {ok, Owner} when Owner =:= node() -> Replica#replica{hints = weft_kv_hinted:new()};
        {ok, Owner} -> Replica#replica{pushing = Bring(Partition, Owner)};
        {error, _} -> Replica
    end.

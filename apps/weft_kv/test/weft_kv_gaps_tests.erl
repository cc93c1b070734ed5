%% SPDX-License-Identifier: Apache-2.0
%% @doc A partition on disk that lacks something, and is killed at each step until it has all: what
%% it finds when it starts again, and that it does not count if that is not all. A kill is a start
%% with a copy of the file as it is.
-module(weft_kv_gaps_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SIZE, 8).
-define(KIND, #{n => 3, evict => false, siblings => true}).
%% Each key with the partitions that have it: those of the keys of 0, 7 and 6, of which this
%% partition, 0, is to have a copy, too.
-define(KEYS, [{{0, bucket, <<"a">>}, [1]}, {{0, bucket, <<"b">>}, [2]},
               {{0, bucket, <<"c">>}, [1, 2]}, {{7, bucket, <<"d">>}, [7]},
               {{7, bucket, <<"e">>}, [1]}, {{6, bucket, <<"f">>}, [6]},
               {{6, bucket, <<"g">>}, [7]}]).

%% Also with a part of the file, as all of it comes to the disk in order.
a_kill_at_any_step_until_all_were_compared_test_() ->
    {timeout, 60, fun() ->
        world(fun(Dir) ->
            _ = [put(Partition, lists:foldl(fun stored/2, vnode(Partition, #{}),
                                            [Key || {Key, In} <- ?KEYS,
                                                    lists:member(Partition, In)]))
                 || Partition <- [1, 2, 6, 7]],
            put(0, vnode(0, #{dir => Dir})),
            Kills = compared(Dir, 0),
            ?assertEqual(ok, killed(Dir)),
            ?assert(Kills > 30),
            {ok, Bytes} = file:read_file(file(Dir)),
            [begin
                 Part = binary:part(Bytes, 0, Size),
                 ?assertEqual({Size, incomplete}, {Size, started(Dir, Part)})
             end || Size <- lists:seq(0, byte_size(Bytes) - 1, 5)]
        end)
    end}.

%% Until nothing lacks any more. How often it was killed.
compared(Dir, Kills) ->
    [{0, Recall}] = weft_kv_stats:recalls(),
    case weft_kv_recall:lacking(0, ?SIZE, [3], Recall) of
        [] ->
            ?assertEqual(incomplete, killed(Dir)),
            ok = ticked(),
            ?assertEqual(incomplete, killed(Dir)),
            ok = committed(),
            Kills;
        [{{N, KeyPartition, {0, Other}} = Pair, Since} | _] ->
            Steps = exchanged(Dir, weft_kv_exchange:new(Pair)),
            {ok, ok} = ask(Dir, 0, {KeyPartition, '', <<>>}, {compared, Since, {N, Other}, #{}}),
            ok = ticked(),
            compared(Dir, Kills + Steps)
    end.

exchanged(Dir, Exchange) ->
    case weft_kv_exchange:step(Exchange, fun(P, Key, Command) -> ask(Dir, P, Key, Command) end) of
        {more, Next} -> 2 + exchanged(Dir, Next);
        {done, _} -> 2
    end.

%% As its process does it: the answer comes when all is on disk.
ask(Dir, Partition, Key, Command) ->
    {Answer, Vnode} = case weft_kv_vnode:command(Key, Command, get(Partition)) of
                          {reply, Reply} -> {Reply, get(Partition)};
                          {changes, Changes, Reply} ->
                              {Reply, lists:foldl(fun({K, Change}, V) -> change(K, Change, V) end,
                                                  get(Partition), Changes)}
                      end,
    put(Partition, Vnode),
    _ = [begin
             ?assertEqual(incomplete, killed(Dir)),
             ok = committed(),
             ?assertEqual(incomplete, killed(Dir))
         end || Partition =:= 0],
    {ok, Answer}.

change(Key, Change, Vnode) ->
    {ok, New} = weft_kv_vnode:change(Key, Change, none, Vnode),
    New.

%% --- a handoff --------------------------------------------------------------------------------

%% Another node has all, and hands it over. It may die at each step, and be removed.
a_kill_at_any_step_of_a_handoff_test_() -> {timeout, 30, fun killed_in_a_handoff/0}.

killed_in_a_handoff() ->
    world(fun(Dir) ->
        Items = [{Key, {object(), ?KIND}} || {Key, _} <- lists:sort(?KEYS)],
        %% What is here is from a former time, and was all there was then.
        put(0, whole(vnode(0, #{dir => Dir}))),
        ok = committed(),
        ?assertEqual(ok, killed(Dir)),
        {ok, Cleared} = weft_kv_vnode:clear({mark, 1}, get(0)),
        put(0, Cleared),
        ok = committed(),
        ?assertEqual(incomplete, killed(Dir)),
        _ = [begin
                 {ok, Taken} = weft_kv_vnode:take([Item], {mark, 1}, get(0)),
                 put(0, Taken),
                 ok = owner(other),
                 ok = ticked(),
                 ok = committed(),
                 ok = owner(node()),
                 ?assertEqual(incomplete, killed(Dir))
             end || Item <- Items],
        ok = ticked(),
        ?assertEqual(incomplete, killed(Dir)),
        ok = committed(),
        ?assertEqual(ok, killed(Dir))
    end).

%% Others wrote for it, and not here.
who_was_not_the_owner_for_a_while_lacks_something_after_a_kill_test() ->
    world(fun(Dir) ->
        put(0, whole(vnode(0, #{dir => Dir}))),
        put(0, lists:foldl(fun stored/2, get(0), [Key || {Key, _} <- ?KEYS])),
        ok = committed(),
        ?assertEqual(ok, killed(Dir)),
        ok = owner(other),
        ok = ticked(),
        ok = committed(),
        ok = owner(node()),
        ?assertEqual(incomplete, killed(Dir))
    end).

%% --- the file ---------------------------------------------------------------------------------

%% Most of it is outdated.
a_file_that_is_written_anew_says_the_same_test_() ->
    [{timeout, 30, fun() ->
         world(fun(Dir) ->
             put(0, Which(vnode(0, #{dir => Dir}))),
             [begin
                  put(0, lists:foldl(fun({Key, _}, V) -> stored(Key, large(), V) end, get(0),
                                     ?KEYS)),
                  ok = committed()
              end || _ <- lists:seq(1, 6)],
             %% It was written anew after 1,000,000 bytes.
             ?assert(filelib:file_size(file(Dir)) < 6 * length(?KEYS) * byte_size(large_bytes())),
             ?assertEqual(Says, killed(Dir))
         end)
     end} || {Which, Says} <- [{fun(New) -> New end, incomplete}, {fun whole/1, ok}]].

%% It had to wait for the disk, and is there before the first object.
what_is_lacking_is_in_the_file_before_any_object_test_() ->
    {timeout, 60, fun() ->
        world(fun(Dir) ->
            put(0, stored({0, bucket, <<"a">>}, vnode(0, #{dir => Dir}))),
            ok = committed(),
            ?assertEqual(incomplete, killed(Dir)),
            {ok, Bytes} = file:read_file(file(Dir)),
            [?assertEqual({Size, incomplete}, {Size, started(Dir, binary:part(Bytes, 0, Size))})
             || Size <- lists:seq(0, byte_size(Bytes) - 1, 3)]
        end)
    end}.

%% It did not say anything.
a_file_of_an_earlier_version_is_taken_for_whole_test() ->
    world(fun(Dir) ->
        {ok, Log, []} = weft_kv_log:open(Dir, 0, weft_kv_vnode),
        Entries = [{stored, Key, object(), ?KIND} || {Key, _} <- ?KEYS],
        {ok, _} = weft_kv_log:commit(lists:foldl(fun weft_kv_log:append/2, Log, Entries)),
        ?assertEqual(ok, killed(Dir))
    end).

%% In the file that replaces it, so that it does not matter whether the damaged one is still there.
what_was_damaged_is_lacking_until_it_has_come_test() ->
    world(fun(Dir) ->
        put(0, lists:foldl(fun stored/2, whole(vnode(0, #{dir => Dir})),
                           [Key || {Key, _} <- ?KEYS])),
        ok = ticked(),
        ok = committed(),
        ?assertEqual(ok, killed(Dir)),
        ok = file:write_file(file(Dir), <<1:64, 2:64>>, [append]),
        ?assertEqual(incomplete, found(Dir)),
        %% Nothing was committed.
        ?assertEqual({incomplete, incomplete}, {killed(Dir), found(Dir)}),
        put(0, whole(vnode(0, #{dir => Dir}))),
        ok = ticked(),
        ok = committed(),
        ?assertMatch([_], filelib:wildcard(file(Dir) ++ ".damaged.*")),
        ?assertEqual({ok, ok}, {killed(Dir), found(Dir)})
    end).

%% --- helpers ----------------------------------------------------------------------------------

world(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, atom_to_list(?MODULE)),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    Level = maps:get(level, logger:get_primary_config()),
    %% What is cut off is said in the log.
    ok = logger:set_primary_config(level, critical),
    ok = weft_kv_stats:new(),
    ok = persistent_term:put(weft_kv_app, #{buckets => #{bucket => #{n => 3, evict => false}}}),
    ok = owner(node()),
    try Fun(Dir)
    after
        _ = [erase(Partition) || Partition <- lists:seq(0, ?SIZE - 1)],
        _ = persistent_term:erase(weft_kv_app),
        true = ets:delete(weft_kv_stats),
        _ = persistent_term:erase(weft_kv_stats),
        weft_ring_lookup:withdraw(weft_ring),
        ok = logger:set_primary_config(level, Level),
        file:del_dir_r(Dir)
    end.

owner(Node) ->
    weft_ring_lookup:publish_owners(weft_ring, [Node || _ <- lists:seq(1, ?SIZE)]).

vnode(Partition, Options) ->
    {ok, Vnode} = weft_kv_vnode:init(Partition, Options),
    case Partition of
        0 -> ok;
        %% Only of the first one it is to be seen what it lacks.
        _ -> weft_kv_stats:ended()
    end,
    Vnode.

%% It had all from a former owner.
whole(Vnode) ->
    {ok, Given} = weft_kv_vnode:clear({mark, 0}, Vnode),
    tick(Given).

ticked() ->
    put(0, tick(get(0))),
    ok.

tick(Vnode) ->
    {ok, New} = weft_kv_vnode:tick(fun(_, _) -> self() end, Vnode),
    New.

committed() ->
    {ok, New} = weft_kv_vnode:commit(get(0)),
    put(0, New),
    ok.

stored(Key, Vnode) -> stored(Key, object(), Vnode).

stored(Key, Object, Vnode) -> change(Key, {merge, Object, ?KIND, primary}, Vnode).

object() -> object(<<"1">>).

large() -> object(large_bytes()).

large_bytes() -> binary:copy(<<"large">>, 8000).

object(Value) ->
    weft_kv_object:put(#{value => Value, written_ms => 0, expires_ms => never}, #{}, <<"actor">>,
                       weft_kv_object:new()).

file(Dir) -> filename:join(Dir, "0.log").

%% What a process says that finds what is on disk now. If it counts, it has all.
killed(Dir) ->
    {ok, Bytes} = file:read_file(file(Dir)),
    started(Dir, Bytes).

started(Dir, Bytes) ->
    Copy = filename:join(Dir, "copy"),
    ok = filelib:ensure_dir(file(Copy)),
    ok = file:write_file(file(Copy), Bytes),
    Says = found(Copy),
    ok = file:del_dir_r(Copy),
    Says.

found(Dir) ->
    {_, Ref} = spawn_monitor(fun() -> exit({says, says(vnode(0, #{dir => Dir}))}) end),
    receive {'DOWN', Ref, process, _, {says, Answer}} -> Answer end.

says(Vnode) ->
    case lists:usort([read(Key, Vnode) || {Key, _} <- ?KEYS]) of
        [{incomplete, _} | _] = All ->
            ?assertEqual([], [ok || {ok, _} <- All]),
            incomplete;
        All ->
            %% But for one that is to have nothing.
            ?assert(All =:= [{ok, 1}] orelse All =:= [{ok, 0}]),
            ok
    end.

read(Key, Vnode) ->
    {reply, {Says, Object}} =
        weft_kv_vnode:command(Key, {read, ?KIND#{tell => incomplete}, primary}, Vnode),
    {Says, length(weft_kv_object:values(Object))}.

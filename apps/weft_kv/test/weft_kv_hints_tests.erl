%% SPDX-License-Identifier: Apache-2.0
%% @doc Hints on their way to the owner, all of them by one process, and what a partition has to do
%% for that. The partition is both ends: its name stands for it on any node.
-module(weft_kv_hints_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KIND, #{n => 3, evict => false, siblings => true}).

%% One batch after the other, each when the one before has been acknowledged.
all_are_brought_and_dropped_test() ->
    {Asked, Left} = brought(1050, fun answer/2),
    ?assertEqual([], keys(Left)),
    [{primary, {entropy, {segments, 3}}} | Others] = Asked,
    ?assertEqual(pairs(batches(Others)), Others),
    ?assertEqual([], [Batch || Batch <- batches(Others), length(Batch) > 100]),
    ?assertEqual(keys(hinted(1050)),
                 lists:sort([Key || Batch <- batches(Others), {Key, _} <- Batch])).

%% The others are tried again later, and nothing more is sent to an owner that has refused
%% something.
what_the_owner_does_not_take_is_not_dropped_test() ->
    {Asked, Left} = brought(1000, fun({merge_all, _}, 2) -> {ok, {error, full}};
                                     (Command, Taken) -> answer(Command, Taken)
                                  end),
    [First, Second, Third] = batches(Asked),
    ?assertEqual([{primary, {entropy, {segments, 3}}} | pairs([First, Second])]
                     ++ [{primary, {merge_all, Third}}], Asked),
    ?assertEqual(keys(hinted(1000)) -- [Key || {Key, _} <- First ++ Second], keys(Left)),
    ?assertEqual({[{primary, {entropy, {segments, 3}}}], hinted(1)},
                 brought(1, fun(_, _) -> {error, overload} end)).

an_owner_of_an_earlier_version_gets_them_key_by_key_test() ->
    {Asked, Left} = brought(2, fun({entropy, _}, _) -> {ok, [{1, 1}]};
                                  (Command, Taken) -> answer(Command, Taken)
                               end),
    ?assertEqual([], keys(Left)),
    ?assertMatch([{primary, {entropy, {segments, 3}}} | _], Asked),
    ?assertEqual([{{merge, Object}, ?KIND, primary} || {_, {Object, _}} <- items(2)],
                 lists:sort([Command || {primary, {{merge, _}, _, _} = Command} <- Asked])),
    ?assertEqual(keys(hinted(2)), lists:sort([Key || {fallback, {brought, Batch}} <- Asked,
                                                     {Key, _} <- Batch])).

nothing_is_asked_for_nothing_test() ->
    ?assertEqual({[], hinted(0)}, brought(0, fun answer/2)).

%% So one process is not asked for more than that by the partitions of a node.
two_partitions_at_a_time_bring_hints_to_a_node_test() ->
    ok = weft_kv_hints_turns:new(),
    Self = self(),
    Turn = fun(Owner) ->
               Wait = fun() ->
                          Self ! {self(), brings},
                          receive stop -> ok end
                      end,
               {Pid, Ref} = spawn_monitor(fun() ->
                                              ok = weft_kv_hints_turns:in_turn(Owner, Wait)
                                          end),
               receive
                   {Pid, brings} -> Pid;
                   {'DOWN', Ref, process, _, normal} -> none
               end
           end,
    [First, Second, Third] = [Turn(a) || _ <- [1, 2, 3]],
    ?assert(is_pid(First) andalso is_pid(Second)),
    ?assertEqual(none, Third),
    %% One that hangs is not in the way of others.
    ?assert(is_pid(Turn(b))),
    true = exit(First, kill),
    Second ! stop,
    weft_test_nodes:until(fun() -> not (is_process_alive(First) orelse is_process_alive(Second))
                          end),
    ?assertMatch([A, B, none] when is_pid(A) andalso is_pid(B),
                 [Turn(a) || _ <- [1, 2, 3]]),
    true = ets:delete(weft_kv_hints_turns).

%% The owner is full, say, and takes none: the others behind them are brought all the same.
each_of_many_has_its_turn_test() ->
    Hinted = hinted(1000),
    Turn = fun(_, Seen) ->
               {Keys, _} = weft_kv_hinted:next(anywhere, 100, Hinted),
               maps:merge(Seen, maps:from_keys(Keys, true))
           end,
    %% One has no turn with a chance of nine tenths to the power of 400.
    ?assertEqual(1000, map_size(lists:foldl(Turn, #{}, lists:seq(1, 400)))).

each_is_met_once_though_others_come_and_go_test() ->
    Met = fun Met(Cursor, Hinted) ->
              {Keys, Next} = weft_kv_hinted:next(Cursor, 7, Hinted),
              case Next of
                  done -> Keys;
                  _ ->
                      Less = lists:foldl(fun weft_kv_hinted:remove/2, Hinted, Keys),
                      Keys ++ Met(Next, weft_kv_hinted:add(hd(Keys), Less))
              end
          end,
    ?assertEqual(keys(hinted(105)), lists:sort(Met(start, hinted(105)))),
    ?assertEqual({[], done}, weft_kv_hinted:next(start, 7, hinted(0))).

%% However many there are: the owner may be away for hours, and each partition has its tick.
a_tick_looks_at_none_of_them_test() ->
    {ok, Vnode} = weft_kv_vnode:init(0, #{}),
    Many = lists:foldl(fun({Key, {Object, Kind}}, V) ->
                           {ok, New} = weft_kv_vnode:change(
                                         Key, {merge, Object, Kind, fallback}, none, V),
                           New
                       end, Vnode, items(5000)),
    {Gone, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, _, _} -> ok end,
    ok = weft_ring_lookup:publish_owners(weft_ring, ['owner@nowhere']),
    try
        {_, Before} = process_info(self(), reductions),
        Ticked = lists:foldl(fun(_, V) ->
                                 {ok, New} = weft_kv_vnode:tick(fun(0, _) -> Gone end, V),
                                 New
                             end, Many, lists:seq(1, 20)),
        {_, After} = process_info(self(), reductions),
        ?assertEqual(5000, weft_kv_vnode:waiting(Ticked)),
        ?assert(After - Before < 5000)
    after weft_ring_lookup:withdraw(weft_ring)
    end.

%% --- partitions -------------------------------------------------------------------------------

answer({entropy, _}, _) -> {ok, weft_kv_copy:announced([])};
answer({merge_all, Batch}, _) -> {ok, {ok, length(Batch)}};
answer({{merge, Object}, _, _}, _) -> {ok, {ok, Object}}.

%% What the partition was asked but for hints, and those that it still has. The answer of the owner
%% is that to a command, after so many batches that were taken.
brought(Count, Answer) ->
    ok = weft_vnode_names:make([weft_kv_vnode]),
    {ok, Name} = weft_vnode_names:name(weft_kv_vnode, 0),
    Table = weft_kv_table:new(),
    [ok = weft_kv_table:store(Key, Object, Kind, Table) || {Key, {Object, Kind}} <- items(Count)],
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
                                   Self ! {self(), partition(Answer, Table, hinted(Count), [])}
                               end),
    true = register(Name, Pid),
    Bringing = monitor(process, weft_kv_hints:start(0, node())),
    try receive {'DOWN', Bringing, process, _, Reason} ->
            true = lists:member(Reason, [normal, noproc])
        end
    after
        Pid ! stop,
        receive {'DOWN', Ref, process, _, _} -> ok end,
        weft_vnode_names:forget()
    end,
    receive {Pid, Said} -> Said end.

partition(Answer, Table, Hinted, Asked) ->
    receive
        {'$gen_call', From, {command, fallback, _, {hints, Cursor}}} ->
            gen_server:reply(From, {ok, weft_kv_hints:next(Cursor, Hinted, Table)}),
            partition(Answer, Table, Hinted, Asked);
        {'$gen_call', From, {command, fallback, _, {brought, Batch} = Command}} ->
            gen_server:reply(From, {ok, ok}),
            Left = lists:foldl(fun({Key, _}, H) -> weft_kv_hinted:remove(Key, H) end, Hinted,
                               Batch),
            partition(Answer, Table, Left, [{fallback, Command} | Asked]);
        {'$gen_call', From, {command, primary, _, Command}} ->
            Taken = length([taken || {fallback, _} <- Asked]),
            gen_server:reply(From, Answer(Command, Taken)),
            partition(Answer, Table, Hinted, [{primary, Command} | Asked]);
        stop -> {lists:reverse(Asked), Hinted}
    end.

batches(Asked) -> [Batch || {primary, {merge_all, Batch}} <- Asked].

pairs(Batches) ->
    lists:append([[{primary, {merge_all, Batch}}, {fallback, {brought, Batch}}]
                  || Batch <- Batches]).

hinted(Count) -> weft_kv_hinted:from_keys([Key || {Key, _} <- items(Count)]).

keys(Hinted) ->
    {Keys, done} = weft_kv_hinted:next(start, 1000000, Hinted),
    lists:sort(Keys).

items(Count) -> [item(Number) || Number <- lists:seq(1, Count)].

item(Number) ->
    Value = #{value => <<"v">>, written_ms => 0, expires_ms => never},
    {{0, bucket, integer_to_binary(Number)},
     {weft_kv_object:put(Value, #{}, <<"a">>, weft_kv_object:new()), ?KIND}}.

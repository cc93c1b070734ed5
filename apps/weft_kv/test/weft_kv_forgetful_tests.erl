%% SPDX-License-Identifier: Apache-2.0
%% @doc Partitions that have forgotten what they had, or may have: what they say of it, to whom, and
%% for how long. What reads make of that is tested in `weft_kv_recall_tests'.
-module(weft_kv_forgetful_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KIND, #{n => 3, evict => false, siblings => true}).
-define(KEY, {0, bucket, <<"key">>}).

%% --- one partition ----------------------------------------------------------------------------

%% Earlier versions do not ask, and know no other answer.
only_who_asks_is_told_test() ->
    Vnode = vnode(0, #{}),
    ?assertMatch({incomplete, _}, read(Vnode)),
    ?assertEqual({reply, {ok, weft_kv_object:new()}},
                 weft_kv_vnode:command(?KEY, {read, ?KIND, primary}, Vnode)),
    %% Who stands in for an owner has what was written since, as ever.
    ?assertMatch({reply, {ok, _}},
                 weft_kv_vnode:command(?KEY, {read, ?KIND#{tell => incomplete}, fallback}, Vnode)).

%% The same with a page of keys, of any bucket with so many replicas.
who_asks_for_keys_is_told_test() ->
    Vnode = written(?KEY, vnode(0, #{})),
    {reply, {incomplete, Page}} = told({page, <<>>, 3}, Vnode),
    ?assertMatch({[{<<"key">>, _}], true}, Page),
    ?assertEqual({reply, Page}, told({page, <<>>}, Vnode)),
    ?assertEqual({reply, {ok, Page}}, told({page, <<>>, 1}, Vnode)).

what_it_has_is_said_all_the_same_test() ->
    Vnode = vnode(0, #{}),
    {incomplete, Object} = read(written(?KEY, Vnode)),
    ?assertEqual([<<"1">>], weft_kv_object:values(Object)).

it_counts_when_it_was_compared_test() ->
    ok = weft_kv_stats:new(),
    try
        Vnode = vnode(0, #{}),
        [{0, Recall}] = weft_kv_stats:recalls(),
        Lacking = [{Other, Since} || {{3, 0, {0, Other}}, Since} <-
                                         weft_kv_recall:lacking(0, 8, [3], Recall)],
        ?assertEqual([1, 2], [Other || {Other, _} <- Lacking]),
        [begin
             ?assertMatch({incomplete, _}, read(Vnode)),
             ?assertEqual({reply, {error, outdated}},
                          told({compared, make_ref(), {3, Other}, #{}}, Vnode)),
             ?assertEqual({reply, {since, Since}}, told(since, Vnode)),
             ?assertEqual({reply, ok}, told({compared, Since, {3, Other}, #{}}, Vnode))
         end || {Other, Since} <- Lacking],
        ?assertMatch({ok, _}, read(Vnode)),
        %% Of keys of another partition it has not got back anything.
        ?assertMatch({incomplete, _}, read({7, bucket, <<"key">>}, Vnode)),
        [{0, Further}] = weft_kv_stats:recalls(),
        ?assertEqual([], [Pair || {{3, 0, _}, _} = Pair <-
                                      weft_kv_recall:lacking(0, 8, [3], Further)])
    after
        true = ets:delete(weft_kv_stats),
        _ = persistent_term:erase(weft_kv_stats)
    end.

told(Command, Vnode) -> weft_kv_vnode:command({0, bucket, <<>>}, Command, Vnode).

%% --- the next owner ---------------------------------------------------------------------------

%% In batches of any size.
the_next_owner_lacks_what_the_former_one_lacks_test() ->
    [begin
         From = lists:foldl(fun written/2, vnode(0, #{}),
                            [{0, bucket, <<N>>} || N <- [1, 2, 3]]),
         To = handed(From, Max),
         ?assertEqual({Max, incomplete}, {Max, element(1, read(To))}),
         ?assertEqual(weft_kv_test_copies:objects(From), weft_kv_test_copies:objects(To))
     end || Max <- [1, 2, 100]].

%% What a former owner had itself from one that had all, it has.
the_next_owner_has_what_the_former_one_has_test() ->
    {ok, Cleared} = weft_kv_vnode:clear({mark, 1}, vnode(0, #{})),
    From = written(?KEY, Cleared),
    given(fun() ->
              ?assertMatch({ok, _}, read(From)),
              To = handed(From, 100),
              ?assertMatch({ok, _}, read(To)),
              %% It has it for good.
              ok = owner(other),
              ?assertMatch({ok, _}, read(To))
          end).

%% Its former owner died meanwhile, and was removed. Nobody knows what had come until then.
who_gets_it_by_force_in_the_midst_of_a_handoff_lacks_something_test() ->
    [given(fun() ->
               {ok, Cleared} = weft_kv_vnode:clear({mark, 1}, vnode(0, #{})),
               Part = written(?KEY, Cleared),
               ok = seized(),
               Seen = Look(Part),
               ?assertMatch({incomplete, _}, read(Seen)),
               %% Who has handed it on to itself has got nothing by that.
               ok = owner(node()),
               ?assertMatch({incomplete, _}, read(Seen))
           end) || Look <- [fun(Vnode) -> {incomplete, _} = read(Vnode), Vnode end,
                            fun(Vnode) -> {ok, Ticked} = ticked(Vnode), Ticked end]].

given(Fun) ->
    ok = owner(node()),
    try Fun() after weft_ring_lookup:withdraw(weft_ring) end.

seized() ->
    Created = weft_ring_table:create({other, 1}, here, 8, 3),
    Planned = weft_ring_table:set_plan(weft_ring_table:version({other, Created}),
                                       [{node(), here}], [node() || _ <- lists:seq(1, 8)],
                                       Created),
    weft_ring_lookup:publish(weft_ring,
                             weft_ring_table:seize([0], weft_ring_table:version({node(), Planned}),
                                                   Planned)).

%% An earlier version keeps as an object what says that something may be lacking. It is not there
%% for any request, is not compared, and is forgotten.
an_earlier_version_forgets_it_test() ->
    {[{Key, {Object, Kind}}], done} = weft_kv_vnode:items(start, 10, vnode(0, #{})),
    Earlier = vnode(1, #{}),
    {ok, Has} = weft_kv_vnode:change(Key, {merge, Object, Kind, primary}, none, Earlier),
    ?assertEqual(1, objects(Has)),
    ?assertEqual({reply, {[], true}},
                 weft_kv_vnode:command({0, bucket, <<>>}, {page, <<>>}, Has)),
    {_, Left} = weft_kv_vnode:tick(Has),
    ?assertEqual(0, objects(Left)).

objects(Vnode) -> length([Key || {Key, _} <- everything(Vnode)]).

%% Behind what the partition says of itself.
everything(Vnode) ->
    {Items, done} = weft_kv_vnode:items({'after', {-2, '', <<>>}}, 100, Vnode),
    Items.

handed(From, Max) ->
    {ok, To} = weft_kv_vnode:clear({mark, 1}, vnode(0, #{})),
    handed(start, Max, From, To).

handed(done, _, _, To) -> To;
handed(Cursor, Max, From, To) ->
    {Items, Next} = weft_kv_vnode:items(Cursor, Max, From),
    ?assert(length(Items) =< Max),
    {ok, Taken} = weft_kv_vnode:take(Items, {mark, 1}, To),
    handed(Next, Max, From, Taken).

%% By force, that is without a handoff: `remove'. Others have written for it meanwhile.
who_was_not_the_owner_for_a_while_lacks_something_test() ->
    {ok, Filled} = weft_kv_vnode:clear({mark, 1}, vnode(0, #{})),
    try
        %% The ring says it a moment later.
        ok = owner(other),
        {ok, Waiting} = ticked(Filled),
        ?assertMatch({incomplete, _}, read(Waiting)),
        ok = owner(node()),
        ?assertMatch({ok, _}, read(Waiting)),
        {ok, Owner} = ticked(Waiting),
        ?assertMatch({ok, _}, read(Owner)),
        ok = owner(other),
        {_, Former} = ticked(Owner),
        ok = owner(node()),
        {ok, Again} = ticked(Former),
        ?assertMatch({incomplete, _}, read(Again))
    after weft_ring_lookup:withdraw(weft_ring)
    end.

owner(Node) ->
    weft_ring_lookup:publish_owners(weft_ring, [Node || _ <- lists:seq(1, 8)]).

ticked(Vnode) -> weft_kv_vnode:tick(fun(_, _) -> self() end, Vnode).

%% --- on disk ----------------------------------------------------------------------------------

what_a_file_has_was_not_forgotten_test() ->
    [in_directory(fun(Dir) ->
         ok = kept([?KEY || What =/= nothing], Dir),
         ok = changed(What, filename:join(Dir, "0.log")),
         ok = owner(Owner),
         ?assertEqual({What, Owner, Says}, {What, Owner, element(1, read(vnode(0, #{dir => Dir})))})
     end) || {What, Owner, Says} <- [{whole, node(), ok}, {nothing, node(), ok},
                                     {whole, other, incomplete}, {lost, node(), incomplete},
                                     {damaged, node(), incomplete}]].

changed(lost, File) -> file:delete(File);
changed(damaged, File) ->
    {ok, Bytes} = file:read_file(File),
    file:write_file(File, [Bytes, <<1:64, 2:64>>]);
changed(_, _) -> ok.

%% The file has the other buckets.
a_bucket_in_memory_was_forgotten_test() ->
    in_directory(fun(Dir) ->
        ok = weft_kv_durability:publish(#{memory => #{durability => memory}}),
        try
            ok = kept([?KEY, {0, memory, <<"key">>}], Dir),
            Again = vnode(0, #{dir => Dir}),
            ?assertMatch({ok, _}, read(Again)),
            ?assertEqual({incomplete, weft_kv_object:new()}, read({0, memory, <<"key">>}, Again))
        after weft_kv_durability:withdraw()
        end
    end).

%% By a process that has ended, and lacked nothing.
kept(Keys, Dir) ->
    ok = owner(node()),
    {ok, Given} = weft_kv_vnode:clear({mark, 1}, vnode(0, #{dir => Dir})),
    {ok, Whole} = ticked(Given),
    {ok, Committed} = weft_kv_vnode:commit(lists:foldl(fun written/2, Whole, Keys)),
    weft_kv_vnode:terminate(normal, Committed).

in_directory(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, atom_to_list(?MODULE)),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    Level = maps:get(level, logger:get_primary_config()),
    %% What is damaged is said in the log.
    ok = logger:set_primary_config(level, critical),
    try Fun(Dir)
    after
        ok = logger:set_primary_config(level, Level),
        weft_ring_lookup:withdraw(weft_ring),
        file:del_dir_r(Dir)
    end.

%% --- a node -----------------------------------------------------------------------------------

a_node_that_does_not_run_is_not_complete_test() ->
    ?assertNot(weft_kv:is_complete()).

%% All replicas are on it, so its reads are answered meanwhile. A process that has ended has
%% forgotten what it had, and another one has it.
a_partition_that_was_killed_gets_it_back_and_counts_test_() ->
    {timeout, 60, fun() ->
        Buckets = #{bucket => #{n => 3}, first => #{n => 3, r => 1, w => 3},
                    cache => #{n => 3, evict => true}},
        Dir = weft_kv_one_node:started(?MODULE, #{}, Buckets, 20),
        try
            {ok, _} = weft_kv:put(bucket, <<"key">>, <<"1">>),
            {ok, Partition} = weft_ring:partition({<<"bucket">>, <<"key">>}),
            Key = first(Partition, 1),
            {ok, _} = weft_kv:put(first, Key, <<"1">>),
            Places = [{(Partition + Step) rem 8, node(), primary} || Step <- [0, 1, 2]],
            Says = fun() -> [asked(Partition, Place) || Place <- Places] end,
            weft_test_nodes:until(fun() -> Says() =:= [{ok, 1}, {ok, 1}, {ok, 1}] end),
            weft_test_nodes:until(fun() -> incomplete() =:= 0 end),
            ?assert(weft_kv:is_complete()),
            {ok, Name} = weft_vnode_names:name(weft_kv_vnode, Partition),
            ok = sys:suspend(weft_kv_entropy),
            %% A comparison that has begun goes on, and would start the partition again.
            weft_test_nodes:until(fun nobody_compares/0),
            true = exit(whereis(Name), kill),
            weft_test_nodes:until(fun() -> whereis(Name) =:= undefined end),
            %% Or a request would be sent to the process that has ended.
            weft_test_nodes:until(fun() ->
                                      weft_vnode_watch:find({Name, node()}) =:= unknown
                                  end),
            ?assertEqual([{incomplete, 0}, {ok, 1}, {ok, 1}], Says()),
            ?assertMatch({ok, <<"1">>, _}, weft_kv:get(bucket, <<"key">>, #{r => 3})),
            %% It is asked first, and alone if it counts.
            ?assertEqual({ok, [Key]}, weft_kv:list(first)),
            ?assertMatch({ok, [Key], _}, weft_kv:keys(first, start, 1)),
            ?assertEqual([1, false],
                         resumed_when_asked([fun incomplete/0, fun weft_kv:is_complete/0])),
            weft_test_nodes:until(fun() -> incomplete() =:= 0 end),
            weft_test_nodes:until(fun() -> Says() =:= [{ok, 1}, {ok, 1}, {ok, 1}] end)
        after weft_kv_one_node:stopped(Dir)
        end
    end}.

%% The process of the comparison is in the state, also when it has ended.
nobody_compares() ->
    [] =:= [Pid || {Pid, Ref} <- tuple_to_list(sys:get_state(weft_kv_entropy)), is_pid(Pid),
                   is_reference(Ref), is_process_alive(Pid)].

%% All of them are there before anything more is compared.
resumed_when_asked(Questions) ->
    Self = self(),
    Asking = [spawn_link(fun() -> Self ! {self(), Question()} end) || Question <- Questions],
    Entropy = whereis(weft_kv_entropy),
    weft_test_nodes:until(fun() ->
        {messages, Messages} = process_info(Entropy, messages),
        length([info || {'$gen_call', _, info} <- Messages]) =:= length(Questions) end),
    ok = sys:resume(Entropy),
    [receive {Asker, Answer} -> Answer end || Asker <- Asking].

%% A disk of the ring that hangs holds up nothing here.
replicas_are_compared_though_the_ring_is_busy_test_() ->
    {timeout, 60, fun() ->
        Dir = weft_kv_one_node:started(?MODULE, #{}, #{bucket => #{n => 3}}, 10),
        try
            ok = sys:suspend(weft_ring_server),
            weft_test_nodes:until(fun() ->
                                      #{alike := Alike, pairs := Pairs} = weft_kv_entropy:info(),
                                      Pairs > 0 andalso Alike >= Pairs
                                  end)
        after
            ok = sys:resume(weft_ring_server),
            weft_kv_one_node:stopped(Dir)
        end
    end}.

%% A key of this bucket in the same partition.
first(Partition, Number) ->
    Key = integer_to_binary(Number),
    case weft_ring:partition({<<"first">>, Key}) of
        {ok, Partition} -> Key;
        {ok, _} -> first(Partition, Number + 1)
    end.

incomplete() -> map_get(incomplete, weft_kv_entropy:info()).

asked(KeyPartition, Place) ->
    {ok, {Tag, Object}} = weft_vnode:ask(weft_kv_vnode, Place, {KeyPartition, bucket, <<"key">>},
                                         {read, ?KIND#{tell => incomplete}, primary}, 5000),
    {Tag, length(weft_kv_object:values(Object))}.

%% --- helpers ----------------------------------------------------------------------------------

vnode(Partition, Options) ->
    {ok, Vnode} = weft_kv_vnode:init(Partition, Options),
    Vnode.

read(Vnode) -> read(?KEY, Vnode).

read(Key, Vnode) ->
    {reply, Reply} = weft_kv_vnode:command(Key, {read, ?KIND#{tell => incomplete}, primary}, Vnode),
    Reply.

written(Key, Vnode) ->
    Value = #{value => <<"1">>, written_ms => 0, expires_ms => never},
    {change, Change, {ok, _}} =
        weft_kv_vnode:command(Key, {{write, Value, #{}}, ?KIND, primary}, Vnode),
    {ok, New} = weft_kv_vnode:change(Key, Change, none, Vnode),
    New.

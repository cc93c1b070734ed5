%% SPDX-License-Identifier: Apache-2.0
%% @doc A fold over a bucket, with a store of one node, which is this one: it owns all copies.
-module(weft_kv_fold_tests).

-include_lib("eunit/include/eunit.hrl").

%% More than a page of each partition.
-define(KEYS, 2500).

on_one_node_test_() ->
    Buckets = #{one => #{n => 1}, three => #{n => 3}, other => #{n => 1}, none => #{n => 1},
                last => #{n => 2, siblings => false},
                %% Who may have forgotten something counts there.
                cached => #{n => 3, evict => true}},
    {setup,
     %% Nothing is compared so soon, but might be.
     fun() -> weft_kv_one_node:started(?MODULE, #{}, Buckets, 3600000) end,
     fun weft_kv_one_node:stopped/1,
     fun(_) -> [{timeout, 60, Test} || Test <- [fun each_key_is_there_once_with_its_values/0,
                                                fun what_is_over_is_left_out/0,
                                                fun what_each_copy_has_dropped_is_there_once/0,
                                                fun several_pages/0,
                                                fun a_partition_that_moves_is_waited_for/0,
                                                fun it_is_though_others_lack_something/0,
                                                fun a_partition_that_stays_away_is_an_error/0,
                                                fun a_page_takes_no_longer_than_it_may/0,
                                                fun keys_before_one_that_hangs_are_found/0,
                                                fun partitions_are_asked_at_the_same_time/0,
                                                fun an_earlier_version_is_asked_once_more/0]]
     end}.

%% In three copies, which are alike.
each_key_is_there_once_with_its_values() ->
    {ok, _} = weft_kv:put(three, <<"ann">>, <<"bread">>),
    {ok, _} = weft_kv:put(three, <<"ann">>, <<"milk">>),
    {ok, _} = weft_kv:put(three, <<"ben">>, <<"tea">>),
    {ok, _} = weft_kv:put(other, <<"eve">>, <<"eggs">>),
    Pair = fun(Key, Values, Pairs) -> [{Key, Values} | Pairs] end,
    {ok, Pairs} = weft_kv:fold(three, Pair, [{before, []}]),
    ?assertEqual([{before, []}, {<<"ann">>, [<<"bread">>, <<"milk">>]}, {<<"ben">>, [<<"tea">>]}],
                 lists:sort(Pairs)),
    ?assertEqual({ok, none}, weft_kv:fold(none, fun(_, _, _) -> some end, none)),
    ?assertEqual({error, unknown_bucket}, weft_kv:fold(nothing, Pair, [])).

what_is_over_is_left_out() ->
    {ok, _} = weft_kv:put(other, <<"stays">>, <<"1">>),
    {ok, _} = weft_kv:put(other, <<"deleted">>, <<"2">>),
    {ok, _} = weft_kv:delete(other, <<"deleted">>),
    {ok, _} = weft_kv:put(other, <<"over">>, <<"3">>, #{ttl_ms => 1}),
    weft_test_nodes:until(fun() -> weft_kv:get(other, <<"over">>) =:= {error, not_found} end),
    {ok, Values} = weft_kv:fold(other, fun(_, Values, All) -> Values ++ All end, []),
    ?assertEqual([<<"1">>, <<"eggs">>], lists:sort(Values)).

%% In a bucket without siblings, where clocks differed.
what_each_copy_has_dropped_is_there_once() ->
    {ok, Options} = weft_kv_app:bucket(last),
    Kind = maps:with([n, evict, siblings], Options),
    {ok, [{Partition, _, _} = First, Second]} = weft_ring:primaries({<<"last">>, <<"k">>}, 2),
    Key = {Partition, last, <<"k">>},
    Known = #{<<"a">> => 1, <<"b">> => 1},
    [begin
         Value = #{value => Actor, written_ms => Ms, expires_ms => never},
         Merge = {{merge, {Known, #{{Actor, 1} => Value}}}, Kind, primary},
         {ok, {ok, _}} = weft_vnode:ask(weft_kv_vnode, Place, Key, Merge, 5000)
     end || {Place, Actor, Ms} <- [{First, <<"a">>, 10}, {Second, <<"b">>, 20}]],
    ?assertEqual({ok, [{<<"k">>, [<<"b">>]}]},
                 weft_kv:fold(last, fun(K, Values, All) -> [{K, Values} | All] end, [])),
    ?assertMatch({ok, <<"b">>, _}, weft_kv:get(last, <<"k">>)).

several_pages() ->
    Keys = [integer_to_binary(N) || N <- lists:seq(1, ?KEYS)],
    [{ok, _} = weft_kv:put(one, Key, Key) || Key <- Keys],
    Count = fun(Key, [Key], {Number, Sum}) -> {Number + 1, Sum + binary_to_integer(Key)} end,
    ?assertEqual({ok, {?KEYS, ?KEYS * (?KEYS + 1) div 2}}, weft_kv:fold(one, Count, {0, 0})),
    {ok, Listed} = weft_kv:list(one),
    ?assertEqual(lists:sort(Keys), lists:sort(Listed)).

%% For a while somebody else is there in its place, and refuses.
a_partition_that_moves_is_waited_for() ->
    {ok, Before} = weft_kv:list(other),
    Away = away(<<"stays">>),
    Self = self(),
    Folder = spawn_link(fun() -> Self ! {self(), weft_kv:list(other)} end),
    receive {Away, asked, 3} -> ok after 10000 -> error(not_asked_again) end,
    Away ! back,
    {ok, Found} = receive {Folder, Answer} -> Answer end,
    %% What was in the partition was in memory.
    ?assertEqual([], lists:sort(Found) -- lists:sort(Before)).

%% Nothing was compared yet, so they do not count without it.
it_is_though_others_lack_something() ->
    {ok, Before} = weft_kv:list(three),
    Away = away(three, <<"ann">>),
    Self = self(),
    Folder = spawn_link(fun() -> Self ! {self(), weft_kv:list(three)} end),
    receive {Away, asked, 3} -> ok after 10000 -> error(not_asked_again) end,
    Away ! back,
    ?assertEqual({ok, lists:sort(Before)},
                 receive {Folder, {ok, Found}} -> {ok, lists:sort(Found)};
                         {Folder, Error} -> Error
                 end).

a_partition_that_stays_away_is_an_error() ->
    Away = away(<<"stays">>),
    {ok, Options} = weft_kv_app:bucket(other),
    ?assertMatch({error, {too_few, #{answered := 0, failed := [{_, moved}]}}},
                 weft_kv_fold:fold(other, Options#{timeout_ms := 2000},
                                   fun(_, _, _) -> ok end, ok)),
    Away ! back.

%% However many replicas do not answer. One of them leaves time for the next one.
a_page_takes_no_longer_than_it_may() ->
    {ok, _} = weft_kv:put(cached, <<"ann">>, <<"bread">>),
    {ok, Options} = weft_kv_app:bucket(cached),
    {ok, Places} = weft_ring:primaries({<<"cached">>, <<"ann">>}, 3),
    [{Partition, _, _} = First, Second, _] = Places,
    Page = fun() ->
               timer:tc(weft_kv_fold, page, [cached, Options#{timeout_ms := 6000},
                                             {Partition, <<>>}])
           end,
    Hanging = hanging(First),
    {OneUs, {ok, [{<<"ann">>, _} | _], _}} = Page(),
    ?assert(OneUs >= 3000000),
    ?assert(OneUs < 6000000),
    AlsoHanging = hanging(Second),
    {TwoUs, {error, {too_few, #{failed := [{_, timeout}, {_, timeout}]}}}} = Page(),
    ?assert(TwoUs < 9000000),
    [Pid ! back || Pid <- [Hanging, AlsoHanging]].

keys_before_one_that_hangs_are_found() ->
    {ok, All} = weft_kv:list(one),
    {ok, Options} = weft_kv_app:bucket(one),
    {ok, Owners} = weft_ring_lookup:owners(weft_ring),
    Last = lists:last(Owners),
    Hanging = hanging(Last),
    {Some, Cursor, Reason} = pages(Options#{timeout_ms := 2000}, start, []),
    ?assertMatch({too_few, #{failed := [{_, timeout}]}}, Reason),
    ?assert(Some =/= []),
    Hanging ! back,
    weft_test_nodes:until(fun() -> not is_process_alive(Hanging) end),
    {Rest, done, none} = pages(Options, Cursor, []),
    ?assertEqual(lists:sort(All), lists:sort(Some ++ Rest)).

%% The second one does not wait for the answer of the first.
partitions_are_asked_at_the_same_time() ->
    {ok, _} = weft_kv:list(one),
    {ok, Owners} = weft_ring_lookup:owners(weft_ring),
    Hanging = [hanging(Place) || Place <- lists:sublist(Owners, 2)],
    Self = self(),
    Folder = spawn_link(fun() -> Self ! {self(), weft_kv:list(one)} end),
    weft_test_nodes:until(fun() -> [1, 1] =:= [asked_for_pages(Pid) || Pid <- Hanging] end),
    [Pid ! back || Pid <- Hanging],
    receive {Folder, _} -> ok end,
    weft_test_nodes:until(fun() -> not lists:any(fun is_process_alive/1, Hanging) end).

%% Others may ask it something, too: `weft_kv_left_over' does so every ten seconds.
asked_for_pages(Pid) ->
    {messages, Messages} = process_info(Pid, messages),
    length([page || {'$gen_call', _, {command, primary, _, {page, _, _}}} <- Messages]).

%% Until there are no more keys, or an error.
pages(_Options, done, Found) ->
    {Found, done, none};
pages(Options, Cursor, Found) ->
    case weft_kv_keys:page(one, Options, Cursor, 2 * ?KEYS) of
        {ok, Keys, Next} -> pages(Options, Next, Found ++ Keys);
        {error, Reason} -> {Found, Cursor, Reason}
    end.

hanging(Place) ->
    Hanging = in_place_of(name_of(Place)),
    Hanging ! hang,
    Hanging.

name_of({Partition, _, _}) ->
    {ok, Name} = weft_vnode_names:name(weft_kv_vnode, Partition),
    Name.

%% It does not know whether it has forgotten something.
an_earlier_version_is_asked_once_more() ->
    Away = away(<<"stays">>),
    Away ! earlier,
    {ok, Keys} = weft_kv:list(other),
    ?assert(lists:member(<<"has">>, Keys)),
    Away ! back.

%% The process of a partition ends, and another one takes its place.
away(Key) ->
    {ok, _} = weft_kv:put(other, Key, <<"1">>),
    away(other, Key).

away(Bucket, Key) ->
    {ok, [Place | _]} = weft_ring:primaries({atom_to_binary(Bucket), Key}, 1),
    in_place_of(name_of(Place)).

in_place_of(Name) ->
    Self = self(),
    Away = spawn_link(fun() ->
                          ok = weft_kv_one_node:in_place_of(Name),
                          Self ! {self(), there},
                          refusing(Self, 1)
                      end),
    receive {Away, there} -> Away end.

refusing(Test, Number) ->
    receive
        {'$gen_call', From, {command, primary, _, {page, _, _}}} ->
            gen_server:reply(From, {error, moved}),
            Test ! {self(), asked, Number},
            refusing(Test, Number + 1);
        hang -> receive back -> ok end;
        earlier -> of_an_earlier_version();
        back -> ok
    end.

of_an_earlier_version() ->
    receive
        {'$gen_call', From, {command, primary, _, Command}} ->
            gen_server:reply(From, {ok, case Command of
                                            {page, <<>>} -> {[{<<"has">>, object()}], true};
                                            {page, _, _} -> {error, unknown_command}
                                        end}),
            of_an_earlier_version();
        back -> ok
    end.

object() ->
    Value = #{value => <<"1">>, written_ms => 0, expires_ms => never},
    weft_kv_object:put(Value, #{}, <<"a">>, weft_kv_object:new()).

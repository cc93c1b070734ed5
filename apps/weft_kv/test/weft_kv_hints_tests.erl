%% SPDX-License-Identifier: Apache-2.0
%% @doc Hints on their way to the owner. The partition is both ends: its name stands for it on any
%% node.
-module(weft_kv_hints_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KIND, #{n => 3, evict => false, siblings => true}).

all_batches_are_brought_and_dropped_test() ->
    Batches = [[item(1), item(2)], [item(3)], [], [item(4)]],
    Asked = brought(Batches, fun answer/1),
    Pairs = [[{primary, {merge_all, Batch}}, {fallback, {brought, Batch}}]
             || [_ | _] = Batch <- Batches],
    ?assertEqual([{primary, {entropy, {segments, 3}}} | lists:append(Pairs)], Asked).

%% The others are tried again.
what_the_owner_does_not_take_is_not_dropped_test() ->
    Second = [item(2)],
    Asked = brought([[item(1)], Second, [item(3)]],
                    fun({merge_all, Batch}) when Batch =:= Second -> {ok, {error, full}};
                       (Command) -> answer(Command)
                    end),
    ?assertEqual([[item(1)]], [Batch || {fallback, {brought, Batch}} <- Asked]),
    ?assertMatch({primary, {merge_all, Second}}, lists:last(Asked)),
    ?assertEqual([{primary, {entropy, {segments, 3}}}],
                 brought([[item(1)]], fun(_) -> {error, overload} end)).

an_owner_of_an_earlier_version_gets_them_key_by_key_test() ->
    [{_, {Object, _}}, _] = Batch = [item(1), item(2)],
    ?assertEqual([{primary, {entropy, {segments, 3}}}, {primary, {{merge, Object}, ?KIND, primary}},
                  {primary, {{merge, Object}, ?KIND, primary}}, {fallback, {brought, Batch}}],
                 brought([Batch], fun({entropy, _}) -> {ok, [{1, 1}]};
                                     (Command) -> answer(Command)
                                  end)).

nothing_is_asked_for_nothing_test() ->
    ?assertEqual([], brought([[], []], fun answer/1)),
    ?assertEqual({[], #{}}, weft_kv_hints:next(#{}, 1, weft_kv_table:new())).

%% The owner is full, say, and takes none: the others behind them are brought all the same.
each_of_many_has_its_turn_test() ->
    Table = weft_kv_table:new(),
    Keys = [begin
                {Key, {Object, Kind}} = item(Number),
                ok = weft_kv_table:store(Key, Object, Kind, Table),
                Key
            end || Number <- lists:seq(1, 300)],
    Hints = maps:from_keys(Keys, true),
    Next = fun(_, Seen) ->
               {Batches, Hints} = weft_kv_hints:next(Hints, 1000000, Table),
               Some = [Key || Batch <- Batches, {Key, _} <- Batch],
               ?assertEqual(100, length(lists:usort(Some))),
               maps:merge(Seen, maps:from_keys(Some, true))
           end,
    %% One has no turn with a chance of two thirds to the power of 200.
    ?assertEqual(Hints, lists:foldl(Next, #{}, lists:seq(1, 200))).

answer({entropy, _}) -> {ok, weft_kv_copy:announced([])};
answer({merge_all, Batch}) -> {ok, {ok, length(Batch)}};
answer({{merge, Object}, _, _}) -> {ok, {ok, Object}};
answer({brought, _}) -> {ok, ok}.

%% What the partition was asked.
brought(Batches, Answer) ->
    ok = weft_vnode_names:make([weft_kv_vnode]),
    {ok, Name} = weft_vnode_names:name(weft_kv_vnode, 0),
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> partition(Self, Answer) end),
    true = register(Name, Pid),
    Bringing = monitor(process, weft_kv_hints:start(0, node(), Batches)),
    try receive {'DOWN', Bringing, process, _, Reason} ->
            true = lists:member(Reason, [normal, noproc])
        end
    after
        Pid ! stop,
        receive {'DOWN', Ref, process, _, _} -> ok end,
        weft_vnode_names:forget()
    end,
    heard(Pid).

partition(To, Answer) ->
    receive
        {'$gen_call', From, {command, Role, _, Command}} ->
            To ! {self(), {Role, Command}},
            gen_server:reply(From, Answer(Command)),
            partition(To, Answer);
        stop -> ok
    end.

heard(Pid) -> receive {Pid, Asked} -> [Asked | heard(Pid)] after 0 -> [] end.

item(Number) ->
    Value = #{value => <<"v">>, written_ms => 0, expires_ms => never},
    {{0, bucket, integer_to_binary(Number)},
     {weft_kv_object:put(Value, #{}, <<"a">>, weft_kv_object:new()), ?KIND}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc One flow whose inputs change faster than it computes. The store is played by a process of
%% the test.
-module(weft_crdt_flow_tests).

-include_lib("eunit/include/eunit.hrl").

%% The first value is that of the subscription.
a_slow_flow_gets_the_last_value_and_no_pile_test() ->
    ?assertEqual([{[0], [0]}, {[3], [9]}], acts(latest)).

an_invariant_sees_each_value_test() ->
    ?assertEqual([{[0], [0]}, {[1], [0]}, {[2], [0]}, {[3], [0]}, {[3], [9]}], acts(each)).

%% What a flow is called with while its inputs have changed several times.
acts(Takes) ->
    Store = spawn_link(fun store/0),
    true = register(weft_crdt, Store),
    Self = self(),
    Act = fun(Values) -> Self ! {acted, list_to_tuple(Values)}, again end,
    {ok, Worker} = weft_crdt_flow_worker:init(#{inputs => [a, b], takes => Takes, act => Act,
                                                name => out}),
    [self() ! {weft_crdt, Key, [Value]} || {Key, Value} <- [{a, 1}, {a, 2}, {a, 3}, {b, 9}]],
    ok = handled(Worker),
    unlink(Store),
    Monitor = monitor(process, Store),
    exit(Store, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    told().

handled(Worker0) ->
    receive {weft_crdt, _, _} = Message ->
        {noreply, Worker} = weft_crdt_flow_worker:handle_info(Message, Worker0),
        handled(Worker)
    after 0 -> ok
    end.

told() ->
    receive {acted, Values} -> [Values | told()] after 0 -> [] end.

store() ->
    receive {'$gen_call', From, {command, {subscribe, _, _}}} ->
        gen_server:reply(From, {ok, [0]}),
        store()
    end.

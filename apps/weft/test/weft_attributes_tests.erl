%% SPDX-License-Identifier: Apache-2.0
%% @doc Functions of attributes that hang: who has to wait for them. The rest is in
%% weft_place_SUITE.
-module(weft_attributes_tests).

-include_lib("eunit/include/eunit.hrl").

-export([hang/1, fail/0]).

-define(START_MAX_MS, 20000).

attributes_test_() ->
    [{Name, {timeout, 60, Test}}
     || {Name, Test} <- [{"set", fun nobody_else_waits_for_a_function/0},
                         {"start", fun a_node_starts_without_what_hangs/0}]].

nobody_else_waits_for_a_function() ->
    with(#{}, fun() ->
        Hangs = {automatic, {?MODULE, hang, [self()]}},
        Setting = spawn(weft_attributes, insert, [late, Hangs]),
        receive {hangs, Setting} -> ok end,
        ?assertEqual(ok, weft_attributes:insert(disk, ssd)),
        ?assertEqual(ok, weft_attributes:insert(late, soon)),
        ?assertEqual({error, {attribute_exists, late}}, weft_attributes:insert(late, Hangs)),
        ?assertEqual({error, {attribute_not_set, tape}}, weft_attributes:update(tape, Hangs)),
        %% Somebody else was quicker.
        Setting ! go_on,
        Ref = monitor(process, Setting),
        receive {'DOWN', Ref, process, Setting, _} -> ok end,
        ?assertEqual(#{disk => ssd, late => soon}, weft_attributes:read([disk, late]))
    end),
    ?assertEqual({error, not_running}, weft_attributes:insert(late, 1)).

a_node_starts_without_what_hangs() ->
    Configured = #{disk => 5, late => {automatic, {?MODULE, hang, [self()]}},
                   bad => {automatic, {?MODULE, fail}}, once => {automatic, {erlang, node}},
                   always => {dynamic, {erlang, node, []}}},
    with(Configured, fun() ->
        ?assertEqual(#{disk => 5, once => node(), always => node()},
                     weft_attributes:read([disk, late, bad, once, always])),
        ?assertEqual(ok, weft_attributes:insert(late, 1))
    end).

with(Configured, Test) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    ok = application:set_env(weft, attributes, Configured),
    try
        {ok, Pid} = gen_server:start({local, weft_attributes}, weft_attributes, [],
                                     [{timeout, ?START_MAX_MS}]),
        try Test() after gen_server:stop(Pid) end
    after
        ok = application:unset_env(weft, attributes),
        ok = logger:set_primary_config(level, Level)
    end.

%% @doc Until it is told to go on.
hang(Test) ->
    Test ! {hangs, self()},
    receive go_on -> gone_on end.

%% @doc A function that fails.
fail() -> error(no_value).

%% SPDX-License-Identifier: Apache-2.0
-module(weft_group_names_tests).

-include_lib("eunit/include/eunit.hrl").

%% Scopes that run were started with them.
options_outlive_the_process_test() ->
    ok = weft_view:new(),
    Driver = spawn(fun answer/0),
    true = register(weft_groups, Driver),
    try
        {ok, First} = weft_group_names:init([]),
        Options = #{names_per_pid => one},
        {reply, ok, Told} = weft_group_names:handle_call({configure, Options}, from, First),
        ?assertNotEqual(First, Told),
        ?assertEqual({ok, Told}, weft_group_names:init([])),
        %% As the supervisor of scopes does at its start, when there are none.
        ok = weft_view:clear(weft_services_left),
        ?assertEqual({ok, First}, weft_group_names:init([]))
    after
        exit(Driver, kill),
        ets:delete(weft_view)
    end.

%% Whoever subscribes.
answer() ->
    receive {'$gen_call', From, _Request} -> gen_server:reply(From, ok) end,
    answer().

%% SPDX-License-Identifier: Apache-2.0
-module(weft_group_names_tests).

-include_lib("eunit/include/eunit.hrl").

%% Scopes that run were started with them.
options_outlive_the_process_test() ->
    ok = weft_view:new(),
    Known = weft_names:scopes(),
    Driver = spawn(fun answer/0),
    true = register(weft_groups, Driver),
    try
        {ok, First} = weft_group_names:init([]),
        Options = #{names_per_pid => one},
        {reply, ok, Told} = weft_group_names:handle_call({configure, Options}, from, First),
        ?assertNotEqual(First, Told),
        ?assertEqual({ok, Told}, weft_group_names:init([])),
        %% Nor does the supervisor of the scopes forget them: it starts these again with them.
        {ok, _} = weft_service_sup:init([]),
        ?assertEqual({ok, Told}, weft_group_names:init([]))
    after
        [persistent_term:erase({weft_names, Scope}) || Scope <- weft_names:scopes() -- Known],
        exit(Driver, kill),
        ets:delete(weft_view)
    end.

%% Whoever subscribes.
answer() ->
    receive {'$gen_call', From, _Request} -> gen_server:reply(From, ok) end,
    answer().

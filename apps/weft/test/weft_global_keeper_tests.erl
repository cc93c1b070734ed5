%% SPDX-License-Identifier: Apache-2.0
%% @doc How a lock in a strong scope is taken and given up. Here the scope is a process that grants
%% everything and tells what it was asked.
-module(weft_global_keeper_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SCOPE, keeper_tests).
-define(NAME, {weft_lock, r}).
-define(TOKEN, 7).

%% While the release waits for a quorum the lease may end, and another keeper may get the name.
only_what_was_registered_is_released_test() ->
    Test = self(),
    Scope = spawn_link(fun() -> scope(Test) end),
    true = register(weft_names_strong:handle(?SCOPE), Scope),
    {ok, Keeper} = weft_global_keeper:keep({?SCOPE, ?NAME}, me),
    ?assertMatch({register, ?NAME, Keeper, me, exit, _}, asked()),
    ok = weft_global_keeper:release(Keeper),
    ?assertMatch({unregister, ?NAME, ?TOKEN, _}, asked()),
    true = unlink(Scope),
    exit(Scope, kill).

scope(Test) ->
    receive
        {'$gen_call', From, {command, Command}} ->
            Test ! {asked, Command},
            gen_server:reply(From, case element(1, Command) of
                                       register -> {ok, ?TOKEN};
                                       _ -> ok
                                   end),
            scope(Test)
    end.

asked() -> receive {asked, Command} -> Command after 5000 -> nothing end.

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
    in_scope(fun(Keeper) ->
        ok = weft_global_keeper:release(Keeper),
        ?assertMatch({unregister, ?NAME, ?TOKEN, _}, asked())
    end).

%% Of code that did not keep the token.
what_earlier_code_has_registered_is_released_test() ->
    in_scope(fun(Keeper) ->
        Handle = ets:new(weft_names_strong:handle(?SCOPE), [named_table, public]),
        UntilMs = weft_suspension:now_ms() + 60000,
        true = ets:insert(Handle, [{{name, ?NAME}, own, Keeper, ?TOKEN, me, 1, exit},
                                   {{lease, 1}, UntilMs}]),
        _ = sys:replace_state(Keeper, fun({keeper, Via, Pids, _}) -> {keeper, Via, Pids, none} end),
        ok = weft_global_keeper:release(Keeper),
        ?assertMatch({unregister, ?NAME, ?TOKEN, _}, asked()),
        true = ets:delete(Handle)
    end).

in_scope(Fun) ->
    Test = self(),
    Scope = spawn_link(fun() -> scope(Test) end),
    true = register(weft_names_strong:handle(?SCOPE), Scope),
    {ok, Keeper} = weft_global_keeper:keep({?SCOPE, ?NAME}, me),
    ?assertMatch({register, ?NAME, Keeper, me, exit, _}, asked()),
    Fun(Keeper),
    true = unlink(Scope),
    Monitor = monitor(process, Scope),
    exit(Scope, kill),
    receive {'DOWN', Monitor, process, Scope, _} -> ok end.

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

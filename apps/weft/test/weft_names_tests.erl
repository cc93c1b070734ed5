%% SPDX-License-Identifier: Apache-2.0
%% @doc Scopes of names on a node where the application does not run.
-module(weft_names_tests).

-include_lib("eunit/include/eunit.hrl").

%% Who finds a scope may use it.
a_scope_that_does_not_start_is_not_known_test() ->
    Scope = ?MODULE,
    ?assertMatch({error, _}, weft_names:start_scope(Scope, #{})),
    ?assertEqual(false, lists:member(Scope, weft_names:scopes())),
    ?assertEqual({error, {no_scope, Scope}}, weft_names:register({Scope, x}, self())).

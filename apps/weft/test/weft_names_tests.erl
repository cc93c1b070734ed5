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

%% An atom has at most 255 characters, and a process has a longer name than its scope.
a_scope_of_any_name_has_processes_test() ->
    Scopes = [Scope || Char <- [$a, 16#3b1], Length <- [1, 232, 233, 238, 239, 255],
                       Name <- [long(Length, Char)], Scope <- [Name, {group, Name}]],
    Processes = lists:append([weft_names_sup:processes(Scope) || Scope <- Scopes]),
    ?assertEqual(3 * length(Scopes), length(lists:usort(Processes))).

%% Nodes of the version before use these names.
processes_have_the_name_of_their_scope_if_it_fits_test() ->
    ?assertEqual([weft_names_a, weft_names_a_sup, weft_names_a_links],
                 weft_names_sup:processes(a)),
    ?assertEqual("weft_names_" ++ lists:duplicate(238, $a), driver(long(238, $a))),
    ?assertEqual("weft_names_group_" ++ lists:duplicate(232, $a), driver({group, long(232, $a)})).

driver(Scope) -> atom_to_list(weft_names_sup:driver(Scope)).

long(Length, Char) -> list_to_atom(lists:duplicate(Length, Char)).

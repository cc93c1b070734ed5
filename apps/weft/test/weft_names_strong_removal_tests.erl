%% SPDX-License-Identifier: Apache-2.0
%% @doc Taking names away: what is known when, and what is said of it.
-module(weft_names_strong_removal_tests).

-include_lib("eunit/include/eunit.hrl").

-define(REMOVAL, weft_names_strong_removal).

a_name_that_nobody_has_is_free_test() ->
    ?assertEqual({{done, caller, ok}, ?REMOVAL:new()}, ?REMOVAL:read(1, undefined, 50, begun())).

its_owner_is_asked_until_it_is_known_test() ->
    {{give_back, x, 9}, R1} = ?REMOVAL:read(1, {p, 9, meta}, 50, begun()),
    ?assertEqual({[], [], R1}, ?REMOVAL:due(49, R1)),
    {[{1, x, 1000}], [], R2} = ?REMOVAL:due(50, R1),
    %% It is read only once at a time.
    ?assertEqual({[], [], R2}, ?REMOVAL:due(99, R2)),
    {{give_back, x, 9}, R3} = ?REMOVAL:read(1, {p, 9, meta}, 100, R2),
    ?assertEqual({{done, caller, ok}, ?REMOVAL:new()}, ?REMOVAL:given_back(1, 9, R3)).

another_registration_is_left_alone_test() ->
    {{give_back, x, 9}, R1} = ?REMOVAL:read(1, {p, 9, meta}, 50, begun()),
    {wait, R2} = ?REMOVAL:read(1, {q, 12, meta}, 100, R1),
    %% The word of the former owner may come yet.
    ?assertMatch({{done, caller, ok}, _}, ?REMOVAL:given_back(1, 9, R2)),
    ?assertEqual({wait, R2}, ?REMOVAL:given_back(1, 12, R2)),
    ?assertEqual({{done, caller, {error, {taken, q}}}, ?REMOVAL:new()},
                 ?REMOVAL:read(1, {q, 12, meta}, 150, R2)).

the_time_may_be_over_test() ->
    {_, R1} = ?REMOVAL:read(1, {p, 9, meta}, 1200, begun()),
    ?assertEqual({[], [caller], ?REMOVAL:new()}, ?REMOVAL:due(1000, R1)),
    ?assertEqual({[caller], ?REMOVAL:new()}, ?REMOVAL:failed(1, begun())).

what_comes_late_is_nobodys_test() ->
    None = ?REMOVAL:new(),
    ?assertEqual({wait, None}, ?REMOVAL:read(1, undefined, 50, None)),
    ?assertEqual({wait, None}, ?REMOVAL:given_back(1, 9, None)),
    ?assertEqual({[], None}, ?REMOVAL:failed(1, None)).

begun() -> ?REMOVAL:add(1, {x, caller, 1000}, ?REMOVAL:new()).

%% SPDX-License-Identifier: Apache-2.0
-module(weft_kv_suspects_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PLACES, [{0, a, primary}, {1, b, primary}, {2, c, fallback}]).

who_did_not_answer_is_asked_last_for_a_while_test() ->
    Suspects = weft_kv_suspects:new(),
    ?assertEqual(?PLACES, weft_kv_suspects:last(?PLACES, -500, Suspects)),
    ok = weft_kv_suspects:suspect(a, -500, Suspects),
    Later = [{1, b, primary}, {2, c, fallback}, {0, a, primary}],
    ?assertEqual(Later, weft_kv_suspects:last(?PLACES, -500, Suspects)),
    ?assertEqual(Later, weft_kv_suspects:last(?PLACES, 9499, Suspects)),
    ?assertEqual(?PLACES, weft_kv_suspects:last(?PLACES, 9500, Suspects)).

where_all_are_suspected_nothing_changes_test() ->
    Suspects = weft_kv_suspects:new(),
    [ok = weft_kv_suspects:suspect(Node, 0, Suspects) || Node <- [c, a, b]],
    ?assertEqual(?PLACES, weft_kv_suspects:last(?PLACES, 1, Suspects)).

%% Nodes come and go.
what_was_long_ago_is_forgotten_test() ->
    Suspects = weft_kv_suspects:new(),
    [ok = weft_kv_suspects:suspect(list_to_atom("n" ++ integer_to_list(N)), N * 1000, Suspects)
     || N <- lists:seq(1, 50)],
    ?assertEqual(10, ets:info(Suspects, size)).

requests_that_go_on_after_the_application_have_no_suspects_test() ->
    Suspects = weft_kv_suspects:new(),
    ok = weft_kv_suspects:suspect(a, 0, Suspects),
    true = ets:delete(Suspects),
    ?assertEqual(ok, weft_kv_suspects:suspect(b, 1, Suspects)),
    ?assertEqual(?PLACES, weft_kv_suspects:last(?PLACES, 1, Suspects)).

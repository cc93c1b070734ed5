%% SPDX-License-Identifier: Apache-2.0
-module(weft_circuit_labels_tests).

-include_lib("eunit/include/eunit.hrl").

both_ends_have_labels_of_their_own_test() ->
    ?assertEqual([1, 2], [weft_circuit_labels:first(Own, Peer)
                          || {Own, Peer} <- [{<<"a">>, <<"b">>}, {<<"b">>, <<"a">>}]]),
    ?assertEqual([3, 4], [weft_circuit_labels:next(Label) || Label <- [1, 2]]).

%% Each end begins with its own again, and never with 0.
they_begin_anew_test() ->
    ?assertEqual([16#ffffffff, 1], [weft_circuit_labels:next(Label)
                                    || Label <- [16#fffffffd, 16#ffffffff]]),
    ?assertEqual([16#fffffffe, 2], [weft_circuit_labels:next(Label)
                                    || Label <- [16#fffffffc, 16#fffffffe]]).

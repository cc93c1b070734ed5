%% SPDX-License-Identifier: Apache-2.0
-module(weft_session_core_tests).

-include_lib("eunit/include/eunit.hrl").

a_session_rests_if_nothing_waits_test() ->
    ?assertEqual([true, false, false, false],
                 [weft_session_core:may_rest(IsReady, Bytes)
                  || {IsReady, Bytes} <- [{false, 0}, {true, 0}, {false, 1}, {true, 1}]]).

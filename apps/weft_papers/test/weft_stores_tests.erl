%% SPDX-License-Identifier: Apache-2.0
%% @doc What `bin/bench stores' decides without a store; see also weft_stores_SUITE.
-module(weft_stores_tests).

-include_lib("eunit/include/eunit.hrl").

%% It was one minute for each, however long the clients were to ask.
a_load_may_take_longer_than_it_asks_test() ->
    [?assert(weft_stores:answer_ms(#{operation => get, clients => 1, keys => 1, value_bytes => 1,
                                     ms => Ms}) >= Ms + 10000)
     || Ms <- [0, 2000, 60000, 3600000]].

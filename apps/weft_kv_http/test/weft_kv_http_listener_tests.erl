%% SPDX-License-Identifier: Apache-2.0
-module(weft_kv_http_listener_tests).

-include_lib("eunit/include/eunit.hrl").

%% An application that was configured without a listener stops one all the same.
a_listener_that_is_not_open_is_stopped_test() ->
    {ok, Started} = application:ensure_all_started(ranch),
    ?assertEqual(ok, weft_kv_http_listener:stop()),
    [ok = application:stop(Application) || Application <- Started].

%% SPDX-License-Identifier: Apache-2.0
-module(weft_ops_http_tests).

-include_lib("eunit/include/eunit.hrl").

%% An application that was configured without a listener stops one all the same.
a_listener_that_is_not_open_is_stopped_test() ->
    {ok, Started} = application:ensure_all_started(ranch),
    ?assertEqual(ok, weft_ops_http:stop()),
    [ok = application:stop(Application) || Application <- Started].

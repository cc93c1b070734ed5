%% SPDX-License-Identifier: Apache-2.0
-module(weft_test_missing_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LONG, "FULL").

what_is_missing_is_skipped_in_the_usual_form_only_test() ->
    Before = os:getenv(?LONG),
    true = os:unsetenv(?LONG),
    try
        ?assertEqual({skip, "there is no chromium"}, weft_test_missing:skip("chromium")),
        true = os:putenv(?LONG, "1"),
        ?assertError({missing, "chromium", "bin/setup test-long" ++ _},
                     weft_test_missing:skip("chromium"))
    after
        true = case Before of
                   false -> os:unsetenv(?LONG);
                   _ -> os:putenv(?LONG, Before)
               end
    end.

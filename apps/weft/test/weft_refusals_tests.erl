%% SPDX-License-Identifier: Apache-2.0
%% @doc The words for reasons.
-module(weft_refusals_tests).

-include_lib("eunit/include/eunit.hrl").

text(Reason) -> lists:flatten(io_lib:format("~ts", [weft_refusals:explain(Reason)])).

%% Its proof is made with the token of a link, so it says nothing of cookies.
an_outdated_lane_is_not_about_cookies_test() ->
    Claims = #{name => <<"a@h">>, cluster => <<"c">>, versions => {1, 1}},
    [begin
         ?assertEqual(nomatch, string:find(text(Reason), "cookie")),
         ?assertNotEqual(nomatch, string:find(text(Reason), "replaced in the meantime"))
     end || Reason <- [no_link, {outdated_lane, Claims}]].

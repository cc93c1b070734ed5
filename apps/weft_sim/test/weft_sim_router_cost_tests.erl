%% SPDX-License-Identifier: Apache-2.0
%% @doc The measurements behind docs/internals/router.md measure what they say.
-module(weft_sim_router_cost_tests).

-include_lib("eunit/include/eunit.hrl").

a_table_grows_with_the_nodes_and_its_digest_does_not_test() ->
    Small = weft_sim_router_cost:table(50, 3),
    Large = weft_sim_router_cost:table(500, 3),
    [begin
         Ratio = map_get(Key, Large) / map_get(Key, Small),
         ?assert(Ratio > 7 andalso Ratio < 14, {Key, Ratio})
     end || Key <- [state_bytes, view_bytes, full_bytes]],
    ?assert(map_get(digest_bytes, Large) < 100).

a_lost_link_makes_messages_and_so_does_its_return_test() ->
    #{start_bytes := Start, cut := {CutMessages, CutBytes}, heal := {HealMessages, HealBytes}} =
        weft_sim_router_cost:change(12, 3),
    [?assert(Number > 0) || Number <- [Start, CutMessages, CutBytes, HealMessages, HealBytes]],
    ?assert(CutBytes < Start).

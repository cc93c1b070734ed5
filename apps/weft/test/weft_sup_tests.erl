%% SPDX-License-Identifier: Apache-2.0
-module(weft_sup_tests).

-include_lib("eunit/include/eunit.hrl").

%% A supervisor logs with what a child was started that has ended.
no_child_is_started_with_a_password_test() ->
    Topology = {weft_pubsub_core, #{broker => "amqp://u:secret@h"}},
    {ok, {_, Children}} = weft_sup:init(#{topology => Topology, discovery => #{seeds => []}}),
    ?assert(lists:any(fun(#{id := Id}) -> Id =:= weft_overlay_sup end, Children)),
    ?assertEqual(nomatch, string:find(io_lib:format("~p", [Children]), "secret")),
    %% It is where the overlay looks.
    ?assertEqual(Topology, weft_view:lookup(topology)),
    true = ets:delete(weft_view).

%% SPDX-License-Identifier: Apache-2.0
%% Calls by an emulator on a host, which is one of this machine here, and what is left without it.
-module(weft_deploy_reach_tests).

-include_lib("eunit/include/eunit.hrl").

-define(AWAY, 'away@b').
-define(BOOT_MS, 60000).

%% The node that is called is the emulator itself, which takes its time to start on a busy machine.
reach() ->
    {ok, Peer} = started(peer:start(#{connection => standard_io, wait_boot => ?BOOT_MS,
                                      exec => filename:join([code:root_dir(), "bin", "erl"]),
                                      args => ["+S", "1:1"]})),
    {#{name => "shop", dir => "/shop", topology => undefined,
       where => #{nonode@nohost => "a", ?AWAY => "b"},
       emulators => #{"a" => {ok, Peer}, "b" => {error, "no route"}}}, Peer}.

started({ok, Peer}) -> {ok, Peer};
started({ok, Peer, nonode@nohost}) -> {ok, Peer}.

call(Reach, Node, Function, Arguments) ->
    weft_deploy_reach:call(Node, erlang, Function, Arguments, 5000, Reach).

a_call_answers_and_fails_as_one_of_erpc_test_() ->
    {timeout, 60, fun a_call_answers_and_fails_as_one_of_erpc/0}.

a_call_answers_and_fails_as_one_of_erpc() ->
    {Reach, Peer} = reach(),
    ?assertEqual([nonode@nohost, 3], [call(Reach, nonode@nohost, node, []),
                                      call(Reach, nonode@nohost, '+', [1, 2])]),
    ?assertError({exception, badarith, _}, call(Reach, nonode@nohost, '+', [1, a])),
    ?assertExit({exception, over}, call(Reach, nonode@nohost, exit, [over])),
    ?assertError({erpc, noconnection}, call(Reach, ?AWAY, node, [])),
    ok = peer:stop(Peer).

a_host_is_lost_with_its_emulator_test_() ->
    {timeout, 60, fun a_host_is_lost_with_its_emulator/0}.

a_host_is_lost_with_its_emulator() ->
    {Reach, Peer} = reach(),
    ?assertMatch(#{name := "shop", nodes := [?AWAY, nonode@nohost]}, weft_deploy_reach:info(Reach)),
    ?assertEqual({[{"b", "no route"}], [?AWAY]}, weft_deploy_reach:lost(Reach)),
    ok = peer:stop(Peer),
    ?assertMatch({[{"a", "the connection to it was lost" ++ _}, {"b", "no route"}],
                  [?AWAY, nonode@nohost]}, weft_deploy_reach:lost(Reach)),
    ?assertError({erpc, noconnection}, call(Reach, nonode@nohost, node, [])),
    ?assertEqual(ok, weft_deploy_reach:close(Reach)).

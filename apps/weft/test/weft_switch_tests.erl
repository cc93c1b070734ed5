%% SPDX-License-Identifier: Apache-2.0
%% @doc What the sessions above a link hear of it.
-module(weft_switch_tests).

-include_lib("eunit/include/eunit.hrl").

%% A session that opened its way in the moment in which the next hop was lost would take an end of
%% that node for an end of its own peer.
a_dial_that_failed_says_nothing_of_those_behind_it_test() ->
    ?assertEqual({dial, econnrefused}, told_of_failed_dial(<<"hop@host">>)),
    ?assertEqual(broken, told_of_failed_dial(<<"behind@host">>)).

told_of_failed_dial(Target) ->
    ok = weft_identity:init(true),
    Open = #{mode => new, kind => distribution, target => Target},
    Pending = weft_switch:message({open, self(), self(), Open},
                                  weft_switch:init('hop@host', <<"hop@host">>)),
    Link = self(),
    _ = weft_switch:dial_failed(econnrefused, Pending),
    receive {weft_path, closed, Link, any, Reason} -> Reason after 0 -> nothing end.

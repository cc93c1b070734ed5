%% SPDX-License-Identifier: Apache-2.0
%% Somebody acknowledges an alarm in a browser, and one of two agents does not answer.
-module(weft_dashboard_acknowledge_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_browser, [request/4, json/1]).

-define(TOKEN, "correct-horse-battery").

who_acknowledges_is_told_which_agents_did_not_answer_test_() ->
    {timeout, 60, fun who_acknowledges_is_told_which_agents_did_not_answer/0}.

who_acknowledges_is_told_which_agents_did_not_answer() ->
    {ok, _} = application:ensure_all_started(cowboy),
    ok = weft_view:new(),
    [ok = weft_view:put(?MODULE, {group, Group}, [node()]) || Group <- [g, h]],
    Agent = spawn_link(fun() -> true = register(weft_ops_agent, self()), agent([g, h]) end),
    {ok, Config} = weft_dashboard_config:parse([{port, 0}, {token, ?TOKEN}]),
    {ok, Supervisor} = weft_dashboard:start(Config#{source => agents}),
    try
        {ok, _} = weft_dashboard_model:current(),
        ?assertEqual({200, #{<<"done">> => true}}, acknowledge()),
        Agent ! {only, [g]},
        ?assertEqual({200, #{<<"done">> => true,
                             <<"note">> => <<"these agents did not answer, and do not know it: "
                                             "of group h">>}}, acknowledge()),
        Agent ! {only, []},
        ?assertMatch({504, #{<<"error">> := <<"these agents did not answer", _/binary>>}},
                     acknowledge())
    after
        ok = weft_dashboard_made_up:stop(Supervisor),
        true = unlink(Agent),
        true = exit(Agent, kill),
        ok = weft_view:clear(?MODULE)
    end.

acknowledge() ->
    Body = iolist_to_binary(weft_json:encode(#{id => <<"silent nonode@nohost">>,
                                               comment => <<"mine">>})),
    json(request(weft_dashboard:port(), {"POST", "/api/acknowledge"},
                 [{"content-type", "application/json"}, {"authorization", "Bearer " ?TOKEN}],
                 Body)).

%% The agent of both groups; it answers for some only.
agent(Groups) ->
    receive
        {only, Some} -> agent(Some);
        {'$gen_call', From, {ask, {group, Group}}} ->
            [gen_server:reply(From, {ok, #{nodes => #{node() => silent}, alarms => [alarm()]}})
             || lists:member(Group, Groups)],
            agent(Groups);
        {'$gen_call', From, {acknowledge, _, <<"mine">>}} ->
            gen_server:reply(From, ok),
            agent(Groups);
        {'$gen_call', From, _Other} ->
            gen_server:reply(From, {ok, []}),
            agent(Groups)
    end.

alarm() ->
    #{id => {silent, node(), node()}, severity => critical, text => <<"it is gone">>,
      raised_ms => 1, at_ms => 1, acknowledged => no}.

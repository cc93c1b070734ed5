%% SPDX-License-Identifier: Apache-2.0
-module(weft_sup_tests).
-behaviour(supervisor).

-include_lib("eunit/include/eunit.hrl").

-export([init/1, start_link/1, discover/1]).

%% A supervisor logs with what a child was started that has ended.
no_child_is_started_with_a_password_test() ->
    Topology = {weft_pubsub_core, #{broker => "amqp://u:secret@h"}},
    {ok, {_, Children}} = weft_sup:init(#{topology => Topology, discovery => #{seeds => []}}),
    ?assert(lists:any(fun(#{id := Id}) -> Id =:= weft_overlay_sup end, Children)),
    ?assertEqual(nomatch, string:find(io_lib:format("~p", [Children]), "secret")),
    %% It is where the overlay looks.
    ?assertEqual(Topology, weft_view:lookup(topology)),
    true = ets:delete(weft_view).

%% This module is the supervisor, and a source with a process, which does not start if its name is
%% `fails', or while that name is registered: as one whose port is in use.
change_discovery_test_() ->
    [{Title, {spawn, fun() -> with_discovery(Test) end}}
     || {Title, Test} <-
            [{"sources that do not start leave those of before", fun former_go_on/0},
             {"without any that start there are none", fun none_starts/0}]].

former_go_on() ->
    ?assertMatch({error, _}, weft_sup:change_discovery(discovery(fails))),
    ?assertEqual(discovery(first), running()),
    ?assertEqual(ok, weft_sup:change_discovery(discovery(second))),
    ?assertEqual(discovery(second), running()).

none_starts() ->
    true = register(fails, self()),
    ?assertMatch({error, _}, weft_sup:change_discovery(discovery(second))),
    ?assertMatch(#{sources := []}, running()),
    true = unregister(fails),
    ?assertEqual(ok, weft_sup:change_discovery(discovery(first))),
    ?assertEqual(discovery(first), running()).

with_discovery(Test) ->
    {ok, Supervisor} = supervisor:start_link({local, weft_sup}, ?MODULE, discovery(first)),
    Test(),
    true = unlink(Supervisor),
    ok = gen_server:stop(Supervisor).

discovery(Name) -> #{sources => [{Name, ?MODULE, #{name => Name}}], seeds => [],
                     interval_ms => 60000}.

running() ->
    {ok, #{start := {_, _, [Config]}}} = supervisor:get_childspec(weft_sup, weft_discovery_sup),
    true = is_process_alive(whereis(weft_discovery_poller)),
    Config.

%% @private
init(Config) ->
    {ok, {#{}, [#{id => weft_discovery_sup, type => supervisor,
                  start => {weft_discovery_sup, start_link, [Config]}}]}}.

%% @private
start_link(#{name := Name}) ->
    case Name =:= fails orelse whereis(fails) =/= undefined of
        true -> {error, eaddrinuse};
        false -> {ok, spawn_link(fun() -> receive stop -> ok end end)}
    end.

%% @private
discover(_Options) -> {ok, []}.

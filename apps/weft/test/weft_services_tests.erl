%% SPDX-License-Identifier: Apache-2.0
%% @doc What is started below the supervisor of the services later comes back with it.
-module(weft_services_tests).
-behaviour(supervisor).

-include_lib("eunit/include/eunit.hrl").

-export([init/1, start_child/0]).

-define(SUPERVISOR, weft_service_sup).

what_was_started_later_is_known_test_() ->
    {spawn, fun() -> with_supervisor(fun what_was_started_later_is_known/0) end}.

%% In the order in which it was started; but not what was stopped.
what_was_started_later_is_known() ->
    [{ok, _} = weft_services:start(child(Id)) || Id <- [{scope, b}, {scope, a}, stopped]],
    {ok, _} = weft_services:start(child({scope, b})),
    ok = weft_services:stop(stopped),
    ok = ended(),
    ?assertEqual({error, not_started}, weft_services:start(child(too_late))),
    ?assertEqual([child({scope, b}), child({scope, a})], weft_services:added()),
    %% Before there is another one.
    ok = weft_services:stop({scope, b}),
    ?assertEqual([child({scope, a})], weft_services:added()).

the_supervisor_starts_it_again_test_() ->
    {spawn, fun() -> with_supervisor(fun the_supervisor_starts_it_again/0) end}.

%% What has become one of those that are always there is there once.
the_supervisor_starts_it_again() ->
    Known = weft_names:scopes(),
    Always = children(),
    [{ok, _} = weft_services:start(child(Id)) || Id <- [{scope, a}, {weft_names, cluster}]],
    ok = ended(),
    try
        ?assertEqual(Always ++ [{scope, a}], children())
    after
        [persistent_term:erase({weft_names, Scope}) || Scope <- weft_names:scopes() -- Known]
    end.

children() ->
    {ok, {_, Children}} = weft_service_sup:init([]),
    [Id || #{id := Id} <- Children].

with_supervisor(Test) ->
    ok = weft_view:new(),
    {ok, Supervisor} = supervisor:start_link({local, ?SUPERVISOR}, ?MODULE, []),
    true = unlink(Supervisor),
    try Test()
    after
        _ = whereis(?SUPERVISOR) =/= undefined andalso ended(),
        ok = weft_view:clear(weft_services)
    end.

ended() -> gen_server:stop(?SUPERVISOR).

child(Id) -> #{id => Id, start => {?MODULE, start_child, []}}.

%% @private
init([]) -> {ok, {#{}, []}}.

%% @private
start_child() -> {ok, proc_lib:spawn_link(fun() -> receive stop -> ok end end)}.

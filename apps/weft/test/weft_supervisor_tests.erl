%% SPDX-License-Identifier: Apache-2.0
%% @doc A supervisor that is OTP's, and lives on when it is asked for what it does not know.
-module(weft_supervisor_tests).
-behaviour(supervisor).

-include_lib("eunit/include/eunit.hrl").

-export([init/1, child/0]).

init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 1, period => 10},
          [#{id => child, start => {?MODULE, child, []}}]}}.

child() -> {ok, proc_lib:spawn_link(fun() -> receive stop -> ok end end)}.

strays_are_answered_and_dropped_test() ->
    {ok, Supervisor} = weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []),
    ?assertEqual({error, {unknown_request, foo}}, gen_server:call(?MODULE, foo)),
    ok = gen_server:cast(?MODULE, foo),
    ?MODULE ! {tcp_closed, foo},
    ?assertEqual(Supervisor, whereis(?MODULE)),
    ?assertMatch([{child, _, worker, _}], supervisor:which_children(?MODULE)),
    ok = gen_server:stop(?MODULE).

children_are_started_again_and_given_up_test() ->
    process_flag(trap_exit, true),
    {ok, Supervisor} = weft_supervisor:start_link(?MODULE, []),
    [{child, First, _, _}] = supervisor:which_children(Supervisor),
    exit(First, kill),
    weft_test_nodes:until(fun() -> is_another(First, Supervisor) end),
    [{child, Second, _, _}] = supervisor:which_children(Supervisor),
    exit(Second, kill),
    receive {'EXIT', Supervisor, Reason} -> ?assertEqual(shutdown, Reason) end,
    process_flag(trap_exit, false).

is_another(First, Supervisor) ->
    [{child, Pid, _, _}] = supervisor:which_children(Supervisor),
    is_pid(Pid) andalso Pid =/= First.

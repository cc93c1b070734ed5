%% SPDX-License-Identifier: Apache-2.0
%% @doc A supervisor that is OTP's, and lives on when it is asked for what it does not know.
-module(weft_supervisor_tests).
-behaviour(supervisor).

-include_lib("eunit/include/eunit.hrl").

-export([init/1, child/0, slow/0]).

init(slow) ->
    {ok, {#{strategy => one_for_one, intensity => 0, period => 10},
          [#{id => slow, start => {?MODULE, slow, []}}]}};
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 1, period => 10},
          [#{id => child, start => {?MODULE, child, []}}]}}.

child() -> {ok, proc_lib:spawn_link(fun() -> receive stop -> ok end end)}.

%% Has a name. If its supervisor was killed, it ends a moment after it is told to.
slow() ->
    Starter = self(),
    Pid = proc_lib:spawn_link(
            fun() ->
                    process_flag(trap_exit, true),
                    Starter ! {self(), has_got_name()},
                    receive
                        {'EXIT', Starter, killed} -> receive may_end -> ok end;
                        {'EXIT', Starter, _} -> ok
                    end,
                    receive after 200 -> ok end % pacing: the slowness itself
            end),
    receive
        {Pid, true} -> {ok, Pid};
        {Pid, false} -> {error, name_is_taken}
    end.

has_got_name() ->
    try register(weft_supervisor_tests_child, self())
    catch error:badarg -> false
    end.

strays_are_answered_and_dropped_test() ->
    {ok, Supervisor} = weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []),
    ?assertEqual({error, {unknown_request, foo}}, gen_server:call(?MODULE, foo)),
    ok = gen_server:cast(?MODULE, foo),
    ?MODULE ! {tcp_closed, foo},
    ?assertEqual(Supervisor, whereis(?MODULE)),
    ?assertMatch([{child, _, worker, _}], supervisor:which_children(?MODULE)),
    ok = gen_server:stop(?MODULE).

%% OTP's supervisor hibernates by a message to itself, from OTP 29 on.
nothing_is_dropped_at_rest_test() ->
    Listen = fun(Event, Listener) -> Listener ! {logged, Event}, Event end,
    ok = logger:add_primary_filter(?MODULE, {Listen, self()}),
    {ok, Supervisor} = weft_supervisor:start_link(?MODULE, []),
    try
        receive {logged, #{meta := #{pid := Supervisor}} = Event} -> error(Event)
        after 1200 -> ok % pacing: it hibernates after a second
        end
    after
        ok = logger:remove_primary_filter(?MODULE),
        ok = gen_server:stop(Supervisor)
    end.

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

%% The child takes its time; the next supervisor waits for that.
another_one_waits_for_the_end_of_the_former_test() ->
    process_flag(trap_exit, true),
    {ok, First} = weft_supervisor:start_link({local, weft_supervisor_tests_slow}, ?MODULE, slow),
    [{slow, Child, _, _}] = supervisor:which_children(First),
    exit(First, kill),
    receive {'EXIT', First, killed} -> ok end,
    ?assert(is_process_alive(Child)),
    Child ! may_end,
    {ok, Second} = weft_supervisor:start_link({local, weft_supervisor_tests_slow}, ?MODULE, slow),
    ?assertNot(is_process_alive(Child)),
    ?assertMatch([{slow, _, _, _}], supervisor:which_children(Second)),
    ok = gen_server:stop(Second),
    process_flag(trap_exit, false).

is_another(First, Supervisor) ->
    [{child, Pid, _, _}] = supervisor:which_children(Supervisor),
    is_pid(Pid) andalso Pid =/= First.

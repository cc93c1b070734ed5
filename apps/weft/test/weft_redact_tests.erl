%% SPDX-License-Identifier: Apache-2.0
%% @doc What a crash says of a process that holds what users have stored.
-module(weft_redact_tests).
-behaviour(gen_server).

-include_lib("eunit/include/eunit.hrl").

-export([init/1, handle_call/3, handle_cast/2, format_status/1, log/2]).

-define(SECRET, "opensesame").

%% In none of the events, whatever makes them: the state, the message, those that wait, arguments,
%% what did not match.
no_event_of_a_crash_has_values_test_() ->
    [?_test(begin
                Text = crash(How),
                ?assertEqual({How, nomatch}, {How, string:find(Text, ?SECRET)}),
                %% Where it was is said.
                ?assertNotEqual(nomatch, string:find(Text, "weft_redact_tests"))
            end) || How <- [clause, match, exit, throw]].

what_is_left_of_a_reason_test() ->
    ?assertEqual([badarg, {badmatch, not_shown}, not_shown, not_shown],
                 [weft_redact:reason(R) || R <- [badarg, {badmatch, ?SECRET}, {?SECRET, 1}, "x"]]).

what_does_not_fail_is_as_it_was_test() ->
    ?assertEqual({ok, ?SECRET}, weft_redact:run(fun() -> {ok, ?SECRET} end)),
    ?assertEqual({sensitive, false}, {sensitive, process_flag(sensitive, false)}).

crash(How) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    ok = logger:add_primary_filter(?MODULE, {fun quiet/2, self()}),
    {ok, Pid} = gen_server:start(?MODULE, ?SECRET, []),
    Ref = monitor(process, Pid),
    ok = sys:suspend(Pid),
    gen_server:cast(Pid, {How, ?SECRET}),
    Pid ! {waits, ?SECRET},
    ok = sys:resume(Pid),
    receive {'DOWN', Ref, process, _, _} -> ok end,
    Text = [event() || _ <- [error_report, crash_report]],
    ok = logger:remove_primary_filter(?MODULE),
    ok = logger:remove_handler(?MODULE),
    lists:flatten(Text).

event() -> receive {event, Text} -> Text after 5000 -> error(no_event) end.

%% Only for this test.
quiet(#{meta := #{pid := Pid}} = Event, Test) when Pid =/= Test ->
    Test ! {event, io_lib:format("~tp", [Event])},
    stop;
quiet(_, _) -> ignore.

log(_, _) -> ok.

%% --- a process that fails ---------------------------------------------------------------------

init(State) -> {ok, State}.

handle_call(_, _, State) -> {reply, ok, State}.

handle_cast({How, Value}, State) ->
    {noreply, weft_redact:run(fun() -> {failed(How, Value), State} end)}.

failed(clause, Value) -> clause(Value);
failed(match, Value) -> none = Value;
failed(exit, Value) -> exit({gone, Value});
failed(throw, Value) -> throw({thrown, Value}).

clause(none) -> none.

format_status(Status) -> weft_redact:status(Status, ?MODULE).

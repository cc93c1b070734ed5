%% SPDX-License-Identifier: Apache-2.0
%% @doc What is not for a process is logged, but not for ever, and is answered where somebody waits.
-module(weft_stray_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

call_is_answered_test() ->
    ?assertEqual({error, {unknown_request, foo}}, weft_stray:call(foo)).

lines_are_limited_test() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self()}),
    Strays = 1000,
    {_, Ref} = spawn_monitor(fun() ->
                                     [ok = weft_stray:message({x, N}) || N <- lists:seq(1, Strays)]
                             end),
    receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end,
    ok = logger:remove_handler(?MODULE),
    Lines = lines(),
    ?assert(length(Lines) >= 1),
    ?assert(length(Lines) =< 30),
    ?assertMatch("weft: " ++ _, hd(Lines)),
    ?assertNotEqual(nomatch, string:find(hd(Lines), "{x,1}")).

%% A logger handler sends to whoever logs, and that is logged again.
what_a_handler_sends_ends_test() ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => reflect}),
    {_, Ref} = spawn_monitor(fun() -> ok = weft_stray:message(first), reflected(0) end),
    receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end,
    ok = logger:remove_handler(?MODULE).

reflected(Count) when Count < 100 ->
    receive
        reflected -> ok = weft_stray:message(reflected), reflected(Count + 1)
    after 0 -> ok
    end.

%% @private The handler.
log(#{msg := {report, #{what := stray}}}, #{config := reflect}) ->
    self() ! reflected;
log(#{msg := {report, #{what := stray} = Report}}, #{config := To}) ->
    {Format, Args} = weft_stray:format(Report),
    To ! {line, lists:flatten(io_lib:format(Format, Args))};
log(_Event, _Config) ->
    ok.

lines() ->
    receive {line, Line} -> [Line | lines()]
    after 0 -> []
    end.

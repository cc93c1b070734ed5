%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs one suite in the emulator that it is called in, and writes what became of it to a file
%% of terms: `{failed, Part, Text, Why}' for each case that failed, as it fails, `{skipped, Why}'
%% for each that says that it cannot run here, and at the end `{sum, #{passed, failed, skipped}}'.
%% Part says what to run to run it again: `{Module, Case}' of EUnit, {Path of groups, Case} of
%% Common Test; `unknown' if only the whole can. Without a sum the suite did not come to its end.
-module(suite_run).

-export([eunit/2, ct/4, say/2, brief/1]).

%% Cases wait for what should come, so more time costs nothing, and helps on a busy machine.
-define(MORE_TIME, 3).
-define(REASON_CHARS_MAX, 1000).

%% @doc The tests of modules.
-spec eunit([module()], Events :: file:filename()) -> no_return().
eunit(Modules, Events) ->
    add_paths(),
    Listener = {report, {suite_eunit_listener, [{events, Events}]}},
    Tests = [suite_eunit_time:module(Module, ?MORE_TIME) || Module <- Modules],
    _ = eunit:test(Tests, [verbose, Listener]),
    halt().

%% @doc A suite of Common Test, or some of its cases.
-spec ct(module(), LogDir :: file:filename(), all | [{Path :: [atom()], Case :: atom()}],
         Events :: file:filename()) -> no_return().
ct(Suite, LogDir, Cases, Events) ->
    add_paths(),
    ok = filelib:ensure_dir(filename:join(LogDir, "x")),
    Common = [{dir, filename:dirname(code:which(Suite))}, {suite, Suite}, {auto_compile, false},
              {logdir, LogDir}, {multiply_timetraps, ?MORE_TIME},
              {ct_hooks, [{suite_ct_hook, Events}]}],
    Sums = [ct:run_test(Common ++ chosen(Part)) || Part <- parts(Cases)],
    Sum = lists:foldl(fun add/2, #{passed => 0, failed => 0, skipped => 0}, Sums),
    say(Events, {sum, Sum}),
    halt().

%% One run for the cases of each group: those of several cannot be chosen by their names.
parts(all) ->
    [all];
parts(Cases) ->
    [{Path, [Case || {P, Case} <- Cases, P =:= Path]}
     || Path <- lists:usort([P || {P, _} <- Cases])].

chosen(all) -> [];
chosen({[], Cases}) -> [{testcase, Cases}];
chosen({Path, Cases}) -> [{group, [Path]}, {testcase, Cases}].

%% What was skipped because something before it failed has failed.
add({Passed, Failed, {ByUser, ByFailure}}, #{passed := P, failed := F, skipped := S}) ->
    #{passed => P + Passed, failed => F + Failed + ByFailure, skipped => S + ByUser};
add(Error, #{failed := Failed} = Sum) ->
    io:format("~p~n", [Error]),
    Sum#{failed := Failed + 1}.

%% Where the script of the build finds libraries that are installed on this machine.
add_paths() ->
    {ok, _} = file:script("rebar.config.script", [{'CONFIG', []}]),
    ok.

%% @doc One event more.
-spec say(Events :: file:filename(), tuple()) -> ok.
say(Events, Event) ->
    ok = file:write_file(Events, unicode:characters_to_binary(io_lib:format("~0tp.~n", [Event])),
                         [append]).

%% @doc A reason in a line.
-spec brief(Reason :: term()) -> string().
brief(Reason) ->
    lists:flatten(io_lib:format("~0tp", [Reason], [{chars_limit, ?REASON_CHARS_MAX}])).

#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput
%% Would the tests notice? Puts each deliberate bug of bugs/*.config into a copy of the module that
%% it is about, and runs the tests that should find it against that:
%%
%%   test/mutants/mutants.escript [WORD ...]    all bugs, or those whose name contains a word
%%   test/mutants/mutants.escript --table       the rows of docs/internals/simulator.md
%%
%% A bug is {mutant, Name, File, Old, New, Tests, Sentence}. Old occurs once in the file (a test
%% sees to that) and New takes its place. Tests are modules of EUnit, or {Module, Function}.
%%
%% The sources stay as they are; the build of the tests has to be there (`make mutants' sees to it).
%% The tests have to pass without a bug first. A bug is found if each of its tests fails when it is
%% run alone, or does not come to an end in time. The exit code is 0 if all bugs were found.
-mode(compile).

-define(TIMEOUT_MS, 600_000).

main(["--table"]) ->
    [io:format("| `~s` | ~ts | ~ts |~n", [Name, Sentence, tests(Tests)])
     || #{name := Name, sentence := Sentence, tests := Tests} <- mutants()];
main(Words) ->
    Base = filename:absname(os:getenv("REBAR_BASE_DIR", "_build")),
    Chosen = [Mutant || Mutant <- mutants(), is_wanted(Mutant, Words)],
    ok = sound(Chosen, Base),
    Outcomes = [tried(Mutant, Base) || Mutant <- Chosen],
    Left = length([Outcome || Outcome <- Outcomes, Outcome =/= found]),
    io:format("~w bugs, ~w found~n", [length(Outcomes), length(Outcomes) - Left]),
    halt(min(1, Left + case Chosen of [] -> 1; _ -> 0 end)).

mutants() ->
    Tables = filename:join([filename:dirname(escript:script_name()), "bugs", "*.config"]),
    [#{name => atom_to_list(Name), file => File, old => Old, new => New, tests => Tests,
       sentence => Sentence}
     || Table <- filelib:wildcard(Tables),
        {mutant, Name, File, Old, New, Tests, Sentence} <- consulted(Table)].

consulted(Table) ->
    {ok, Terms} = file:consult(Table),
    Terms.

is_wanted(_Mutant, []) -> true;
is_wanted(#{name := Name}, Words) ->
    lists:any(fun(Word) -> string:find(Name, Word) =/= nomatch end, Words).

tests(Tests) ->
    lists:join(", ", [case Test of
                          {Module, Function} -> io_lib:format("`~s:~s`", [Module, Function]);
                          Module -> io_lib:format("`~s`", [Module])
                      end || Test <- Tests]).

%% Tests that fail anyway would find any bug.
sound(Mutants, Base) ->
    Tests = lists:usort(lists:append([Tests || #{tests := Tests} <- Mutants])),
    Dir = filename:join([Base, "mutants", "none"]),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    case run(Tests, Dir, Base) of
        not_found -> ok;
        found ->
            io:format("the tests fail without any bug: ~s~n", [filename:join(Dir, "log")]),
            halt(1)
    end.

tried(#{name := Name, tests := Tests} = Mutant, Base) ->
    Dir = filename:join([Base, "mutants", Name]),
    %% What an earlier run has compiled there would be another bug.
    _ = file:del_dir_r(Dir),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Started = erlang:monotonic_time(millisecond),
    Outcome = case compiled(Mutant, Dir) of
                  ok -> found_by(Tests, Dir, Base);
                  Error -> Error
              end,
    io:format("~-44s ~ts, ~.1f s~n", [Name, word(Outcome),
                                     (erlang:monotonic_time(millisecond) - Started) / 1000]),
    Outcome.

%% A test that finds nothing would be listed in vain.
found_by(Tests, Dir, Base) ->
    case [Test || Test <- Tests, run([Test], Dir, Base) =:= not_found] of
        [] -> found;
        Blind -> {not_found_by, Blind}
    end.

word(found) -> "found";
word({not_found_by, Tests}) -> ["NOT FOUND by ", tests(Tests)];
word({not_compiled, Reason}) -> io_lib:format("NOT A BUG: ~0p", [Reason]).

compiled(#{file := File, old := Old, new := New}, Dir) ->
    {ok, Text} = file:read_file(File),
    [_, _] = binary:split(Text, unicode:characters_to_binary(Old), [global]),
    Copy = filename:join(Dir, filename:basename(File)),
    ok = file:write_file(Copy, string:replace(Text, Old, New)),
    App = filename:join(lists:takewhile(fun(Part) -> Part =/= "src" end, filename:split(File))),
    Includes = [filename:dirname(File), filename:join(App, "include")],
    case compile:file(Copy, [debug_info, return, {outdir, Dir} | [{i, I} || I <- Includes]]) of
        {ok, _, _Warnings} -> ok;
        {error, Errors, _} -> {not_compiled, Errors}
    end.

%% The wrong module is found first.
run(Tests, Dir, Base) ->
    Paths = lists:append([filelib:wildcard(filename:join([Base, "test", Wildcard]))
                          || Wildcard <- ["lib/*/ebin", "lib/*/test", "extras/test"]]),
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noinput", "-pa"] ++ Paths
                             ++ ["-eval", lists:flatten(script(Dir, Tests))]},
                      exit_status, stderr_to_stdout, hide]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    ended(Port, Pid, filename:join(Dir, "log"), []).

script(Dir, Tests) ->
    io_lib:format("{ok, _} = file:script(\"rebar.config.script\", [{'CONFIG', []}]), "
                  "true = code:add_patha(~0p), "
                  "halt(case eunit:test([~s]) of ok -> 0; _ -> 1 end).",
                  [Dir, lists:join(", ", [test(Test) || Test <- Tests])]).

test({Module, Function}) ->
    Kind = case lists:suffix("_test_", atom_to_list(Function)) of
               true -> generator;
               false -> test
           end,
    io_lib:format("{~w, ~w, ~w}", [Kind, Module, Function]);
test(Module) ->
    io_lib:format("{module, ~w}", [Module]).

ended(Port, Pid, Log, Said) ->
    receive
        {Port, {data, Data}} -> ended(Port, Pid, Log, [Said, Data]);
        {Port, {exit_status, Status}} ->
            ok = file:write_file(Log, Said),
            case Status of 0 -> not_found; _ -> found end
    after ?TIMEOUT_MS ->
        _ = os:cmd("kill -KILL " ++ integer_to_list(Pid)),
        found
    end.

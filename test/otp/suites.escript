#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu
%% OTP's own suites about distribution, on stock, on weft and on mixed nodes (CONTRIBUTING.md):
%%
%%   test/otp/suites.escript [SUITE ...]      all of test/otp/suites.config, or those named
%%
%% OTP_SOURCE=DIR says where the sources of the installed OTP are, if they cannot be downloaded
%% (test/otp/source.sh). VARIANTS="weft from_weft to_weft" says what is compared with stock, JOBS=2
%% how many suites run at a time. Logs are in <build>/otp-suites/logs. The exit code is 0 if each
%% difference from stock is listed in test/otp/accepted.config, and each listed one is there.
-mode(compile).

-define(VARIANTS, "weft from_weft to_weft").
-define(JOBS, "2").

main(Words) ->
    Base = filename:absname(os:getenv("REBAR_BASE_DIR", "_build")),
    Work = filename:join(Base, "otp-suites"),
    Code = filename:join(Work, "runner"),
    ok = filelib:ensure_dir(filename:join(Code, "x")),
    [{ok, _} = compile:file(File, [{outdir, Code}, report])
     || File <- filelib:wildcard("test/otp/weft_otp_*.erl"), not is_suite(File)],
    true = code:add_patha(Code),
    true = code:add_pathz(filename:join(Base, "default/lib/weft_migrate/ebin")),
    weft_otp_suites:main(#{root => ".", work => Work, source => source(Base), words => Words,
                           weft => filename:join(Base, "default/lib/weft/ebin"),
                           variants => variants(), jobs => jobs()}).

is_suite(File) ->
    lists:suffix("_SUITE.erl", File) orelse lists:suffix("_tests.erl", File).

variants() ->
    [list_to_atom(Word) || Word <- string:lexemes(os:getenv("VARIANTS", ?VARIANTS), " ,")].

jobs() ->
    max(1, list_to_integer(os:getenv("JOBS", ?JOBS))).

%% What it has to say if it has none is on standard error.
source(Base) ->
    Port = open_port({spawn_executable, "test/otp/source.sh"},
                     [{args, [filename:join(Base, "otp-source")]}, exit_status]),
    case output(Port, []) of
        {0, Dir} -> filename:absname(Dir);
        {Status, _} -> halt(Status)
    end.

output(Port, Output) ->
    receive
        {Port, {data, Data}} -> output(Port, Output ++ Data);
        {Port, {exit_status, Status}} -> {Status, string:trim(Output)}
    end.

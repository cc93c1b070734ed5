%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes OTP's suites ready to run, outside of their sources: each with the modules of its
%% directory that it names, and with its data directory, whose programs in C are built by the
%% Makefile that it brings. OTP's own test server does the latter with a configured tree of OTP;
%% here the variables of such a Makefile are those of the installed OTP and of a usual compiler.
-module(weft_otp_build).

-export([suite/4, filled_in/2]).

-type problem() :: string().

%% What suites name and is not beside them: a hook, which adds names of nodes if the tree of OTP is
%% not configured, and a carrier that is an example.
-define(HELPERS, [{"lib/common_test/test_server", "ts_install_cth"},
                  {"lib/common_test/test_server", "ts_lib"},
                  {"lib/kernel/examples/gen_tcp_dist/src", "gen_tcp_dist"}]).

%% How a suite sends frames of its own. It is beside the suites on all nodes.
-define(FRAMES, weft_otp_frames).

%% @doc Compiles what Suite needs from Dir of Source to a directory below Work, and answers that.
%% What cannot be built of its data is a problem to be told; the cases that want it will fail.
-spec suite(Suite :: string(), Dir :: string(), Source :: file:filename(),
            Work :: file:filename()) -> {ok, file:filename(), [problem()]} | {error, problem()}.
suite(Suite, Dir, Source, Work) ->
    From = filename:join(Source, Dir),
    To = filename:join(Work, Dir),
    ok = filelib:ensure_dir(filename:join(To, "x")),
    Module = Suite ++ "_SUITE",
    case filelib:is_regular(filename:join(From, Module ++ ".erl")) of
        true ->
            {ok, _} = file:copy(code:which(?FRAMES),
                                filename:join(To, atom_to_list(?FRAMES) ++ ".beam")),
            [ok = compile(Helper, filename:join(Source, At), To) || {At, Helper} <- ?HELPERS],
            case compile_all([Module], [], From, To) of
                ok -> {ok, To, data(Module, From, To)};
                {error, _} = Error -> Error
            end;
        false ->
            {error, "this release has no " ++ Module}
    end.

%%% Modules

%% A module is needed if its name is an atom of one that is: calls may be made by apply.
compile_all([], _Done, _From, _To) ->
    ok;
compile_all([Module | Modules], Done, From, To) ->
    case compile(Module, From, To) of
        ok ->
            Named = [Name || Name <- named_by(Module, To),
                             filelib:is_regular(filename:join(From, Name ++ ".erl"))],
            New = (Named -- Modules) -- [Module | Done],
            compile_all(Modules ++ New, [Module | Done], From, To);
        {error, _} = Error ->
            Error
    end.

compile(Module, From, To) ->
    File = filename:join(From, Module ++ ".erl"),
    Options = [{outdir, To}, {i, From}, {parse_transform, ?FRAMES}, debug_info, return],
    case compile:file(File, Options) of
        {ok, _, _Warnings} -> ok;
        {error, Errors, _} -> {error, lists:flatten(io_lib:format("~0tp", [Errors]))}
    end.

named_by(Module, To) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(filename:join(To, Module), [abstract_code]),
    [Name || Atom <- lists:usort(atoms(Forms)), Name <- [atom_to_list(Atom)],
             is_helper(Name, Module)].

atoms({atom, _, Atom}) -> [Atom];
atoms(Form) when is_tuple(Form) -> atoms(tuple_to_list(Form));
atoms([First | Rest]) -> atoms(First) ++ atoms(Rest);
atoms(_) -> [].

%% Suites name each other in comments only, or to start them in ways that are not wanted here.
is_helper(Module, Module) -> false;
is_helper(Name, _Module) -> not lists:suffix("_SUITE", Name).

%%% Data

data(Module, From, To) ->
    case filelib:is_dir(filename:join(From, Module ++ "_data")) of
        true ->
            Data = filename:join(To, Module ++ "_data"),
            _ = file:del_dir_r(Data),
            [] = run(["cp", "-R", filename:join(From, Module ++ "_data"), Data], "."),
            lists:append([make(filename:dirname(File))
                          || File <- filelib:wildcard(Data ++ "/**/Makefile.src")]);
        false ->
            []
    end.

make(Data) ->
    {ok, Template} = file:read_file(filename:join(Data, "Makefile.src")),
    Erl = filename:absname(filename:join(Data, "erl_interface.mk")),
    ok = file:write_file(Erl, "THR_DEFS = -D_THREAD_SAFE -D_REENTRANT -DPOSIX_THREADS\n"),
    Makefile = filled_in(Template, variables(Erl)),
    ok = file:write_file(filename:join(Data, "Makefile"), Makefile),
    run(["make"], Data).

%% @doc Text with the values of `@variables@'; one without a value is nothing.
-spec filled_in(Text :: binary(), #{string() => string()}) -> iodata().
filled_in(Text, Variables) ->
    Parts = re:split(Text, "@([A-Za-z_]+)@", [{return, list}]),
    fill_in(Parts, Variables).

fill_in([Text, Name | Parts], Variables) ->
    [Text, maps:get(Name, Variables, "") | fill_in(Parts, Variables)];
fill_in(Rest, _Variables) ->
    Rest.

variables(ErlInterfaceMk) ->
    Include = filename:join([code:root_dir(), "usr", "include"]),
    ErlInterface = case code:lib_dir(erl_interface) of
                       {error, bad_name} -> "";
                       Dir -> Dir
                   end,
    #{"CC" => "cc", "LD" => "cc", "CFLAGS" => "-O2 -fPIC", "EI_CFLAGS" => "-O2",
      "LIBS" => "-lpthread -lm -ldl", "obj" => ".o", "dll" => ".so", "EMULATOR" => "beam",
      "erl_name" => "erl", "DS" => "/", "erl_include" => Include,
      "erl_interface_mk_include" => ErlInterfaceMk,
      "erl_interface_include" => filename:join(ErlInterface, "include"),
      "erl_interface_eilib" => filename:join(ErlInterface, "lib/libei.a"),
      "erl_interface_threadlib" => "-lpthread",
      "SHLIB_RULES" => ".SUFFIXES:\n.SUFFIXES: .so .c\n\n.c.so:\n"
                       "\tcc -O2 -fPIC -shared $(SHLIB_EXTRA_CFLAGS) -I" ++ Include
                       ++ " -o $@ $< $(SHLIB_EXTRA_LDFLAGS) $(SHLIB_EXTRA_LDLIBS)\n"}.

run([Command | Arguments], Dir) ->
    case os:find_executable(Command) of
        false ->
            [Command ++ ": command not found"];
        Executable ->
            Path = filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH"),
            Port = open_port({spawn_executable, Executable},
                             [{args, Arguments}, {cd, Dir}, {env, [{"PATH", Path}]},
                              exit_status, stderr_to_stdout, hide]),
            output(Port, [])
    end.

output(Port, Output) ->
    receive
        {Port, {data, Data}} -> output(Port, [Output, Data]);
        {Port, {exit_status, 0}} -> [];
        {Port, {exit_status, _}} -> [lists:flatten(Output)]
    end.

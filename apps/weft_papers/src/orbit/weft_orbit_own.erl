%% SPDX-License-Identifier: Apache-2.0
%% @doc Generators that a user has written: a file with a module of Erlang, of which each exported
%% function with one argument is a generator. It gets a vertex, and returns a whole number; the
%% program takes that without its sign, and modulo the space.
-module(weft_orbit_own).

-export([read/1]).
-export_type([own/0]).

-type own() :: #{generators := weft_orbit_generators:set(), modules := [{module(), binary()}]}.

%% For one vertex; the program needs them for each.
-define(TRY_MS, 5000).

%% @doc Compiles and loads the module here, and tries its generators on the first vertex. Nodes that
%% use them need its code, which is in the answer. The error is a text.
-spec read(file:filename()) -> {ok, own()} | {error, string()}.
read(File) ->
    case filename:extension(File) of
        ".erl" -> compiled(File);
        _ -> text("~ts: the name of a file with a module of Erlang ends in .erl", [File])
    end.

compiled(File) ->
    case compile:file(File, [binary, return_errors]) of
        {ok, Module, Code} ->
            loaded(File, Module, Code);
        {error, [{_, [{Where, By, What} | _]} | _], _} ->
            text("~ts:~ts: ~ts", [File, position(Where), By:format_error(What)])
    end.

position({Line, Column}) -> io_lib:format("~b:~b", [Line, Column]);
position(Line) -> io_lib:format("~0p", [Line]).

%% A module of the system must not be replaced. The file may have been read before.
loaded(File, Module, Code) ->
    case code:which(Module) of
        Which when Which =:= non_existing; Which =:= File ->
            {module, Module} = code:load_binary(Module, File, Code),
            tried(File, Module, [Name || {Name, 1} <- Module:module_info(exports),
                                         Name =/= module_info], Code);
        _ ->
            text("~ts: there is a module ~ts already; give it another name", [File, Module])
    end.

tried(File, _Module, [], _Code) ->
    text("~ts exports no function with one argument, which would be a generator: write, say, "
         "-export([next/1]). next(X) -> 2 * X + 1.", [File]);
tried(File, Module, Names, Code) ->
    case [Text || Name <- lists:sort(Names), {error, Text} <- [tried(File, Module, Name)]] of
        [] -> {ok, #{generators => [{Module, Name} || Name <- lists:sort(Names)],
                     modules => [{Module, Code}]}};
        [Text | _] -> {error, Text}
    end.

%% In a process that can be ended: one that never returns would hold up the command.
tried(File, Module, Name) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Self ! {self(), first(Module, Name)} end),
    Outcome = receive
                  {Pid, Told} -> Told;
                  {'DOWN', Monitor, process, Pid, Why} -> {exit, Why}
              after ?TRY_MS -> timeout
              end,
    true = demonitor(Monitor, [flush]),
    true = exit(Pid, kill),
    case Outcome of
        {returned, Number} when is_integer(Number) ->
            ok;
        {returned, Other} ->
            text("~ts: ~ts(0) is ~0tP: a generator returns whole numbers",
                 [File, Name, Other, 10]);
        {Class, Reason} ->
            text("~ts: ~ts(0) ends with ~ts ~0tP", [File, Name, Class, Reason, 10]);
        timeout ->
            text("~ts: ~ts(0) does not return within ~b s", [File, Name, ?TRY_MS div 1000])
    end.

first(Module, Name) ->
    try {returned, Module:Name(0)}
    catch Class:Reason -> {Class, Reason}
    end.

text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Commands one after another in one emulator, which has the flags of the command's file. What
%% takes most of the time of a command is to start its emulator; here that is done once.
%%
%% A command runs as in the file, but that it does not end the emulator: what it printed and its
%% exit code are the answer. Not for what needs a terminal or standard input, and not over TLS, for
%% which a command becomes a weft node.
-module(weft_cli_emulator).

-export([start/0, stop/1, run/3, line/3]).
%% In that emulator.
-export([command/2]).

-define(BOOT_MS, 60000).
-define(COMMAND_MS, 90000).
-define(SAID, "said_by_a_command").

%% @doc Starts it.
-spec start() -> pid().
start() ->
    Paths = lists:append([["-pa", Path] || Path <- [weft_test_nodes:ebin(?MODULE)
                                                    | weft_cli_build:ebins()]]),
    {ok, Peer, _} = peer:start(#{connection => standard_io, wait_boot => ?BOOT_MS,
                                 exec => filename:join([code:root_dir(), "bin", "erl"]),
                                 args => weft_cli_build:flags() ++ ["+S", "1:1" | Paths]}),
    {module, weft_cli} = peer:call(Peer, code, load_binary, [weft_cli, "weft_cli", without_end()]),
    Peer.

%% The module from its own code, with the function that does not end the emulator.
without_end() ->
    {ok, {weft_cli, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(code:which(weft_cli), [abstract_code]),
    {ok, weft_cli, Binary} = compile:forms(Forms, [export_all, nowarn_export_all]),
    Binary.

-spec stop(pid()) -> ok.
stop(Peer) -> peer:stop(Peer).

%% @doc The exit code and all output of the command with these words, in a directory.
-spec run(file:filename(), [string()], pid()) -> {non_neg_integer(), binary()}.
run(Dir, Words, Peer) -> peer:call(Peer, ?MODULE, command, [Dir, Words], ?COMMAND_MS).

%% @doc The same for a line without quotes; if the configuration has no emulator, by a shell and the
%% command that is there.
-spec line(file:filename(), string(), [{atom(), term()}]) -> {non_neg_integer(), iodata()}.
line(Dir, "weft " ++ Words = Line, Config) ->
    {Code, Said} = case proplists:get_value(emulator, Config) of
                       undefined -> by_shell(Dir, Line, proplists:get_value(command, Config));
                       Emulator -> run(Dir, string:lexemes(Words, " "), Emulator)
                   end,
    ct:log("~ts~n~b~n~ts", [Line, Code, Said]),
    {Code, Said}.

by_shell(Dir, Line, Command) ->
    [Code | Said] = os:cmd("cd '" ++ Dir ++ "'; weft() { '" ++ Command ++ "' \"$@\"; }; (" ++ Line
                           ++ ") < /dev/null > said 2>&1; printf %s $?; cat said"),
    {Code - $0, Said}.

%% @doc In the emulator: both outputs go to one file. Nothing is left for the next command.
-spec command(file:filename(), [string()]) -> {non_neg_integer(), binary()}.
command(Dir, Words) ->
    ok = file:set_cwd(Dir),
    {ok, Device} = file:open(?SAID, [write, {encoding, utf8}]),
    _ = whereis(standard_error) =:= undefined orelse unregister(standard_error),
    true = register(standard_error, Device),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           true = group_leader(Device, self()),
                                           exit({ended, weft_cli:command(Words)})
                                   end),
    receive
        {'DOWN', Monitor, process, Pid, {ended, Code}} ->
            ok = weft_local_control:disconnect(),
            _ = application:unload(weft),
            ok = file:close(Device),
            {ok, Output} = file:read_file(?SAID),
            {Code, Output};
        {'DOWN', Monitor, process, Pid, Reason} ->
            error({Words, Reason})
    end.

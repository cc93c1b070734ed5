%% SPDX-License-Identifier: Apache-2.0
%% @doc The emulators of a BenchErl run: a master, and slaves beside it. Whatever they do, whoever
%% started one gets an answer in time, and is rid of it at the end.
-module(weft_bencherl_node).

-export([start/4, stop/1, name/1, call/5]).
-export_type([emulator/0, options/0]).

-opaque emulator() :: #{peer := pid(), name := node(), os_pid := string()}.
-type options() :: #{emulator := string(), arguments := [string()], cookie := string(),
                     code_path := [file:filename()], environment := [{string(), string()}],
                     directory := file:filename() | none}.

-define(BOOT_MS, 30000).

%% @doc Starts one; what it logs goes to Dir/logs.
-spec start(Number :: non_neg_integer(), options(), Dir :: file:filename(),
            weft_bench_place:place()) -> {ok, emulator()} | {error, string()}.
start(Number, #{emulator := Emulator, directory := Directory} = Options, Dir, Place) ->
    try
        {ok, Peer, Name} =
            peer:start(#{name => lists:concat(["b", Number, "-",
                                               erlang:unique_integer([positive])]),
                         host => weft_bench_place:address(Place, near), longnames => true,
                         connection => standard_io, wait_boot => ?BOOT_MS,
                         exec => weft_bench_place:command(Place, near, [program(Emulator)]),
                         env => environment(Options, Place), args => arguments(Options, Dir)}),
        Started = #{peer => Peer, name => Name,
                    os_pid => peer:call(Peer, os, getpid, [], ?BOOT_MS)},
        case Directory =:= none orelse call(Started, file, set_cwd, [Directory], ?BOOT_MS) of
            true -> {ok, Started};
            ok -> {ok, Started};
            {error, Reason} ->
                stop(Started),
                text("~ts: ~0tp", [Directory, Reason])
        end
    catch
        _:Why -> text("an emulator does not start: ~0tP", [Why, 20])
    end.

%% As BenchErl wants it, an installation; or the emulator itself.
program("erl") -> filename:join([code:root_dir(), "bin", "erl"]);
program(Path) ->
    case filelib:is_dir(Path) of
        true -> filename:join([Path, "bin", "erl"]);
        false -> Path
    end.

environment(#{environment := Given}, Place) ->
    Own = [{"ERL_EPMD_PORT", integer_to_list(weft_bench_place:epmd_port(Place))},
           {"ERL_CRASH_DUMP_BYTES", "0"}],
    [One || {Name, _} = One <- Given, not lists:keymember(Name, 1, Own)] ++ Own.

arguments(#{arguments := Arguments, cookie := Cookie, code_path := Path}, Dir) ->
    Log = filename:join([Dir, "logs", "node.log"]),
    Logger = [{handler, default, logger_std_h, #{config => #{file => Log}}}],
    Ours = [filename:dirname(code:which(Module)) || Module <- [?MODULE, weft_load_source]],
    Arguments ++ ["-setcookie", Cookie, "-pa" | [filename:absname(One) || One <- Ours ++ Path]]
        ++ ["-kernel", "logger", lists:flatten(io_lib:format("~0p", [Logger]))].

-spec name(emulator()) -> node().
name(#{name := Name}) -> Name.

%% @doc Calls a function that answers ok or an error with a text. So does this if it does not.
-spec call(emulator(), module(), atom(), [term()], timeout()) ->
          ok | {ok, term()} | {error, term()}.
call(#{peer := Peer}, Module, Function, Arguments, TimeoutMs) ->
    try peer:call(Peer, Module, Function, Arguments, TimeoutMs)
    catch
        exit:{timeout, _} ->
            text("the emulator did not answer within ~b s", [TimeoutMs div 1000]);
        Class:Reason -> text("the emulator ended: ~0tP ~0tP", [Class, 10, Reason, 20])
    end.

%% @doc Ends it, also if it hears nothing any more.
-spec stop(emulator()) -> ok.
stop(#{peer := Peer, os_pid := OsPid}) ->
    _ = [os:cmd("kill -KILL " ++ OsPid) || is_process_alive(Peer)],
    true = exit(Peer, kill),
    ok.

text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Ends the processes of the operating system that belong to a directory, and removes it:
%% those that have it on their command lines, as nodes of a deployment have. These do not end with
%% who has started them, and what starts them may be cut off at any moment.
%%
%% A guard is a shell that does that when its input ends, at the latest with this emulator, whatever
%% ends this. Needs /proc.
-module(weft_papers_sweep).

-export([guard/2, finish/1, script/2, made/1]).
-export_type([guard/0]).

-opaque guard() :: port().

%% That of the whole host, which stays.
-define(EPMD_PORT, 4369).

%% @doc Begins to guard a directory, whose nodes have an epmd of their own at this port. The calling
%% process owns the guard, which sweeps when that process ends.
-spec guard(Dir :: file:filename(), Epmd :: inet:port_number()) -> guard().
guard(Dir, Epmd) ->
    Script = lists:flatten(["read -r dir\nread -r _\n" | swept(Epmd)]),
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Script]}, exit_status]),
    %% On its command line the guard would find itself.
    true = port_command(Port, [unicode:characters_to_binary(Dir), $\n]),
    Port.

%% @doc Has the guard sweep now, and waits for that.
-spec finish(guard()) -> ok.
finish(Guard) ->
    true = port_command(Guard, "\n"),
    receive {Guard, {exit_status, _}} -> ok end.

%% @doc The same as a script for a shell, without a guard, and without an epmd if there is none.
-spec script(Dir :: string(), Epmd :: inet:port_number() | none) -> unicode:chardata().
script(Dir, Epmd) -> ["dir=", weft_deploy_shell:quote(Dir), $\n | swept(Epmd)].

%% @doc A script that makes the directory, in which nobody else can read. What an earlier run has
%% left there is removed, but not while processes of it are there.
-spec made(Dir :: string()) -> unicode:chardata().
made(Dir) ->
    ["umask 077; dir=", weft_deploy_shell:quote(Dir), $\n, found(),
     "if [ \"$(found)\" ]; then printf 'another benchmark is in %s: wait for it, or end its "
     "processes\\n' \"$dir\"; exit 1; fi\n"
     "rm -rf \"$dir\" && mkdir -p \"$dir\" || exit 1\n"].

%% Processes that have the directory on their command lines.
found() -> "found() { printf '%s/\\n' \"$dir\" | grep -slF -f - /proc/[0-9]*/cmdline; }\n".

%% Until none is found any more: one of them may have started another one meanwhile. epmd ends once
%% it has noticed that its nodes are gone. Something may just be written to the directory.
swept(Epmd) ->
    [found(),
     "t=0; while files=$(found); [ \"$files\" ] && [ $t -lt 100 ]; do t=$((t + 1))\n"
     "  for f in $files; do f=${f#/proc/}; kill -KILL \"${f%/cmdline}\" 2>/dev/null; done\n"
     "  sleep 0.1; done\n",
     [epmd_ended(["epmd -port ", integer_to_list(Epmd), " "])
      || Epmd =/= none, Epmd =/= ?EPMD_PORT],
     "t=0; while rm -rf \"$dir\" 2>/dev/null; [ -e \"$dir\" ] && [ $t -lt 20 ]; do\n"
     "  t=$((t + 1)); sleep 0.1; done\n"
     "exit 0\n"].

epmd_ended(Of) ->
    ["t=0; while [ $t -lt 20 ] && ", Of, "-names >/dev/null 2>&1; do t=$((t + 1))\n"
     "  ", Of, "-kill >/dev/null 2>&1 || sleep 0.1; done\n"].

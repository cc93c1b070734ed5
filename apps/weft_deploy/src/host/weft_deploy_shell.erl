%% SPDX-License-Identifier: Apache-2.0
%% @doc The scripts that hosts run, for any POSIX shell. Pure.
%%
%% Hosts need a shell, `tar', and /proc or `ps'. A script goes to the shell as its input, or as a
%% file that others can not read, so what is in it (the cookie) is on no command line. Each word
%% that comes from outside is quoted.
%%
%% A host has one directory:
%% ```
%%   .erlang.cookie        mode 400
%%   deployment            its name
%%   lock                  while a command changes something (`weft_deploy_host_lock')
%%   state                 a copy of what commands remember (`weft_deploy_state')
%%   releases/VERSION/     lib/APPLICATION/ebin of a release, kept by version
%%   nodes/NODE/id         what the node was made from
%%              start      runs it
%%              healthy       {Applications, Health function} that it is to have
%%              sys.config, pid, .erlang.cookie
%%              logger.config  where its logger writes, unless its sys.config says that
%%              log, log.0 ..  what it has logged
%%              output, output.1   what it has printed
%%              closed     is there while it is drained
%%              left       is there once it has left the cluster for good
%%              previous/  id, start, healthy and sys.config before the last upgrade
%%   logs/NODE/            log, output and the like, and crash_dump, of a node that was removed
%% '''
%% A process is signalled only if its command line has both the directory and the name of the node.
-module(weft_deploy_shell).

-export([quote/1, observe/1, prepare/3, unpack/2, define/2, launch/2, stop/3, left/1, remove/2,
         undo/2, recheck/2, prune/2, epmd/1, end_epmd/3, purge/1, parse/1, log_tail/2,
         configuration/2, configured/1, killed/1, remember/3, remembered/1]).
-export_type([definition/0, observed/0]).

-type definition() :: #{node := string(), id := string(), words := [iodata()],
                        environment := [{string(), iodata()}], config := iodata(),
                        healthy := iodata()}.
%% deployment: whose directory it is, once something was put there. revision: of the copy of what
%% commands remember. releases: the newest first.
%% closed: nodes that run and lead no traffic of others, since a drain was not finished. left: it
%% runs, and is no member of the cluster any more. health: the function that is asked whether a node
%% is healthy.
-type observed() :: #{cores := pos_integer(), deployment => string(),
                      revision => non_neg_integer(), releases := [string()],
                      closed := [Node :: string()],
                      health => #{Node :: string() => term()},
                      nodes := #{string() => #{up := boolean(), left := boolean(),
                                               os_pid := non_neg_integer(), id := string(),
                                               previous := string() | none}}}.

-define(EPMD_PORT, 4369).
%% Of what a node logs there are a file and so many older ones, of what it prints one and one.
-define(LOG_BYTES_MAX, 10000000).
-define(LOG_FILES_OLD, 5).
-define(OUTPUT_LOOK_MS, 2000).

%% @doc One word of a command line, whatever is in it: for `string' an accent after the quote would
%% make another character of it.
-spec quote(unicode:chardata()) -> unicode:chardata().
quote(Word) ->
    Text = unicode:characters_to_binary(Word),
    [$', binary:replace(Text, <<"'">>, <<"'\\''">>, [global]), $'].

%% @doc Says what is there, for parse/1. Without the directory there is nothing.
-spec observe(Dir :: string()) -> iodata().
observe(Dir) ->
    ["printf 'cores\\t%s\\n' \"$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN || echo 1)\"\n",
     "cd ", quote(Dir), " 2>/dev/null || exit 0\n", is_alive(Dir),
     "d=; [ -f deployment ] && read -r d < deployment && printf 'deployment\\t%s\\n' \"$d\"\n"
     "v=; [ -f state ] && read -r c v < state && printf 'state\\t%s\\n' \"$v\"\n"
     "ls -1t releases 2>/dev/null | while read -r r; do\n"
     "  [ -f \"releases/$r/.complete\" ] || continue\n"
     "  printf 'release\\t%s\\n' \"$r\"; done\n"
     "for f in nodes/*/id; do [ -f \"$f\" ] || continue\n"
     "  d=${f%/id}; n=${d#nodes/}; p=0; i=; o=-\n"
     "  [ -f \"$d/pid\" ] && read -r p < \"$d/pid\"; read -r i < \"$d/id\"\n"
     "  [ -f \"$d/previous/id\" ] && read -r o < \"$d/previous/id\"\n"
     "  s=down; is_alive \"$n\" \"$p\" && s=up\n"
     "  [ $s = up ] && [ -f \"$d/left\" ] && s=left\n"
     "  printf 'node\\t%s\\t%s\\t%s\\t%s\\t%s\\n' \"$n\" \"$s\" \"${p:-0}\" \"$i\" \"$o\"\n"
     "  [ -f \"$d/healthy\" ] && { read -r h && read -r h; } < \"$d/healthy\" &&\n"
     "    printf 'healthy\\t%s\\t%s\\n' \"$n\" \"$h\"\n"
     "  [ $s = up ] && [ -f \"$d/closed\" ] && printf 'closed\\t%s\\n' \"$n\"; done\n"
     "exit 0\n"].

%% In /proc words end with a zero byte; those of a process that has ended are not there. One that
%% becomes another program has none for a moment, as a node does several times while it starts.
is_alive(Dir) ->
    ["dir=", quote(Dir), "\n",
     "is_alive() { case \"$2\" in ''|0|*[!0-9]*) return 1;; esac\n"
     "  if [ -d /proc/self ]; then\n"
     "    [ -r \"/proc/$2/cmdline\" ] || return 1\n"
     "    t=0; while w=$(tr '\\0' '\\n' < \"/proc/$2/cmdline\" 2>/dev/null) || return 1\n"
     "      [ -z \"$w\" ] && [ $t -lt 5 ] && [ -e \"/proc/$2/exe\" ]\n"
     "    do t=$((t + 1)); sleep 0.02; done\n"
     "  else w=$(ps -ww -o args= -p \"$2\" | tr ' ' '\\n'); fi\n"
     "  w=\"\n$w\n\"\n"
     "  case \"$w\" in *\"\n$1\n\"*) ;; *) return 1;; esac\n"
     "  case \"$w\" in *\"\n$dir\n\"*) return 0;; *) return 1;; esac; }\n"].

%% @doc Makes the directory, with the cookie. Nodes that run have no use for another cookie. That
%% which is there already stays: somebody may be reading it.
-spec prepare(Dir :: string(), Deployment :: string(), Cookie :: iodata()) -> iodata().
prepare(Dir, Deployment, Cookie) ->
    ["set -e\numask 077\n"
     "mkdir -p ", quote(Dir), "\ncd ", quote(Dir), "\n"
     "mkdir -p releases nodes logs control upload\n",
     is_alive(Dir), "cookie=", quote(Cookie), "\n"
     "same=; [ -f .erlang.cookie ] && [ \"$(cat .erlang.cookie)\" = \"$cookie\" ] && same=yes\n"
     "if [ -f .erlang.cookie ] && [ -z \"$same\" ]; then\n"
     "  for f in nodes/*/pid; do [ -f \"$f\" ] || continue\n"
     "    n=${f#nodes/}; n=${n%/pid}; p=; read -r p < \"$f\" || :\n"
     "    if is_alive \"$n\" \"$p\"; then\n"
     "      echo \"$n runs with another cookie: work where it was started, or name that\" \\\n"
     "        \"cookie by cookie_file\"; exit 1; fi; done; fi\n"
     "printf '%s\\n' ", quote(Deployment), " > deployment\n"
     "if [ -z \"$same\" ]; then rm -f .erlang.cookie.new\n"
     "  (umask 277; printf '%s' \"$cookie\" > .erlang.cookie.new)\n"
     "  mv -f .erlang.cookie.new .erlang.cookie; fi\nexit 0\n"].

%% @doc Writes a copy of what commands remember. Its first line is a comment of one word, the
%% revision. The directory belongs to the deployment from then on; in that of another one nothing is
%% written, and without a directory neither.
-spec remember(Dir :: string(), Deployment :: string(), Text :: iodata()) -> iodata().
remember(Dir, Deployment, Text) ->
    ["cd ", quote(Dir), " 2>/dev/null || exit 0\numask 077\n"
     "d=; [ -f deployment ] && read -r d < deployment\n"
     "if [ -z \"$d\" ]; then printf '%s\\n' ", quote(Deployment), " > deployment || exit 1\n"
     "elif [ \"$d\" != ", quote(Deployment), " ]; then exit 0; fi\n"
     "printf '%s' ", quote(Text), " > state.new || exit 1\n"
     "mv -f state.new state\n"].

%% @doc Prints that copy.
-spec remembered(Dir :: string()) -> iodata().
remembered(Dir) -> ["cat ", quote([Dir, "/state"]), "\n"].

%% @doc Makes a release of a file that is in the directory `upload'. If it can not be done, as on a
%% full disk, nothing of it stays.
-spec unpack(Dir :: string(), Version :: string()) -> iodata().
unpack(Dir, Version) ->
    ["set -e\numask 077\ncd ", quote(Dir), "\nv=", quote(Version), "\n"
     "if [ ! -f \"releases/$v/.complete\" ]; then\n"
     "  rm -rf \"releases/$v\"; mkdir -p \"releases/$v\"\n"
     "  tar xzf \"upload/$v\" -C \"releases/$v\" && : > \"releases/$v/.complete\" || {\n"
     "    rm -rf \"releases/$v\" \"upload/$v\"; exit 1; }; fi\n"
     "rm -f \"upload/$v\"\nexit 0\n"].

%% @doc Writes what a node is. If it was something else, that is kept as `previous'. The id is
%% written last: if `previous' has the id that the node has still, this was ended half-way before,
%% and the other files may be new ones already.
-spec define(Dir :: string(), definition()) -> iodata().
define(Dir, #{node := Node, id := Id, config := Config, healthy := Healthy} = Definition) ->
    ["set -e\numask 077\ncd ", quote(Dir), "\nd=nodes/", quote(Node), "\nmkdir -p \"$d\"\n"
     "if [ -f \"$d/id\" ] && [ \"$(cat \"$d/id\")\" != ", quote(Id), " ]; then\n"
     "  if [ ! -f \"$d/previous/id\" ] || \\\n"
     "      [ \"$(cat \"$d/id\")\" != \"$(cat \"$d/previous/id\")\" ]; then\n"
     "    rm -rf \"$d/previous.new\"; mkdir \"$d/previous.new\"\n"
     "    cp \"$d/id\" \"$d/start\" \"$d/sys.config\" \"$d/previous.new/\"\n"
     "    if [ -f \"$d/healthy\" ]; then cp \"$d/healthy\" \"$d/previous.new/\"; fi\n"
     "    rm -rf \"$d/previous\"; mv \"$d/previous.new\" \"$d/previous\"; fi; fi\n"
     "rm -f \"$d/.erlang.cookie\"; cp .erlang.cookie \"$d/.erlang.cookie\"\n"
     "chmod 400 \"$d/.erlang.cookie\"\n",
     file("healthy", Healthy), file("logger.config", logger_config()), file("sys.config", Config),
     file("start", starter(Dir, Definition)), file("id", [Id, $\n]), "exit 0\n"].

file(Name, Content) ->
    ["printf '%s' ", quote(Content), " > \"$d/", Name, ".new\"; mv \"$d/", Name, ".new\" \"$d/",
     Name, "\"\n"].

%% The shell becomes the node, so that the process id stays the same.
starter(Dir, #{node := Node, words := [Erl | Words], environment := Environment}) ->
    Home = [Dir, "/nodes/", Node],
    ["cd ", quote(Home), " || exit 1\n",
     [[Name, $=, quote(Value), "; export ", Name, $\n]
      || {Name, Value} <- [{"HOME", Home}, {"ERL_CRASH_DUMP", [Home, "/crash_dump"]}
                           | Environment]],
     "unset ESCRIPT_NAME\n"
     "exec ", lists:join($\s, [quote(Word) || Word <- [Erl, "-weft_deploy", Dir,
                                                       "-config", "logger", "-eval", bound_output()
                                                       | Words]]),
     " < /dev/null >> output 2>&1\n"].

%% The configuration of the node comes after it, so its own `logger' counts if it has one. What was
%% logged last is in the file also if the node ends at once: it is not held back.
logger_config() ->
    Config = #{file => "log", max_no_bytes => ?LOG_BYTES_MAX, max_no_files => ?LOG_FILES_OLD,
               modes => [raw, append, {delayed_write, 1, 0}]},
    io_lib:format("~tp.~n", [[{kernel, [{logger, [{handler, default, logger_std_h,
                                                   #{config => Config}}]}]}]]).

%% What a node prints besides.
bound_output() -> weft_deploy_output:bounded("output", ?LOG_BYTES_MAX, ?OUTPUT_LOOK_MS).

%% @doc Writes how a node is asked whether it is healthy, and nothing else.
-spec recheck(Dir :: string(), definition()) -> iodata().
recheck(Dir, #{node := Node, healthy := Healthy}) ->
    ["set -e\numask 077\ncd ", quote(Dir), "\nd=nodes/", quote(Node), "\n",
     file("healthy", Healthy)].

%% @doc Starts nodes that do not run. Each writes its process id by itself too: so that it is known
%% also if this shell is ended meanwhile. From then on its command line has what is_alive looks for.
-spec launch(Dir :: string(), [Node :: string()]) -> iodata().
launch(Dir, Nodes) ->
    ["cd ", quote(Dir), " || exit 1\numask 077\n", is_alive(Dir),
     "s=; command -v setsid >/dev/null 2>&1 && s=setsid\n"
     "for n in", words(Nodes), "; do\n"
     "  d=nodes/$n; p=; [ -f \"$d/pid\" ] && read -r p < \"$d/pid\"\n"
     "  is_alive \"$n\" \"$p\" && continue\n"
     "  rm -f \"$d/closed\" \"$d/left\"\n"
     "  $s sh -c 'echo $$ > \"$1/nodes/$2/pid.own\" &&\n"
     "    mv \"$1/nodes/$2/pid.own\" \"$1/nodes/$2/pid\"\n"
     "    exec sh \"$1/nodes/$2/start\" \"$1\" \"$2\"' sh \"$dir\" \"$n\" \\\n"
     "    < /dev/null > /dev/null 2>&1 &\n"
     "  echo $! > \"$d/pid.new\"; mv \"$d/pid.new\" \"$d/pid\"; done\nexit 0\n"].

words(Nodes) -> [[$\s, quote(Node)] || Node <- Nodes].

%% @doc Asks nodes to end, and ends those that do not within the time. Who waits starts no program
%% for each node that is left: they need the processor themselves.
-spec stop(Dir :: string(), [Node :: string()], GraceSeconds :: pos_integer()) -> iodata().
stop(Dir, Nodes, GraceS) ->
    ["cd ", quote(Dir), " || exit 0\n", is_alive(Dir),
     "signal() { p=; [ -f \"nodes/$2/pid\" ] && read -r p < \"nodes/$2/pid\"\n"
     "  is_alive \"$2\" \"$p\" || return 1; [ \"$1\" = 0 ] || kill \"-$1\" \"$p\"; }\n"
     "is_there() { if [ -d /proc/self ]; then w=\n"
     "    [ -r \"/proc/$1/cmdline\" ] && read -r w 2>/dev/null < \"/proc/$1/cmdline\"\n"
     "    [ -n \"$w\" ]; else kill -0 \"$1\" 2>/dev/null; fi; }\n"
     "await() { t=0; while [ $t -lt $1 ]; do left=\n"
     "  for p in $all; do is_there \"$p\" && left=\"$left $p\"; done; all=$left\n"
     "  [ -z \"$all\" ] && break; t=$((t + 1)); sleep 0.1; done; }\n"
     "all=; for n in", words(Nodes), "; do signal TERM \"$n\" && all=\"$all $p\"; done\n"
     "await ", integer_to_list(GraceS * 10), "\n"
     "[ -z \"$all\" ] || { for n in", words(Nodes), "; do\n"
     "  signal KILL \"$n\" && printf 'killed\\t%s\\n' \"$n\"; done; await 50; }\n"
     "for n in", words(Nodes), "; do if signal 0 \"$n\"; then printf 'left\\t%s\\n' \"$n\"\n"
     "  else rm -f \"nodes/$n/pid\" \"nodes/$n/closed\" \"nodes/$n/left\"; fi; done\nexit 0\n"].

%% @doc Reads what stop/3 has printed: nodes that run all the same.
-spec left(binary()) -> [Node :: string()].
left(Output) -> told(<<"left">>, Output).

%% @doc The same: nodes that did not end in time.
-spec killed(binary()) -> [Node :: string()].
killed(Output) -> told(<<"killed">>, Output).

told(Kind, Output) ->
    [text(Node) || Line <- binary:split(Output, <<"\n">>, [global]),
                   [Own, Node] <- [binary:split(Line, <<"\t">>, [global])], Own =:= Kind].

%% @doc Forgets nodes that do not run; their logs stay, in the place of those that an earlier node
%% of the name has left. One that was killed has left its process id. This may be ended half-way and
%% repeated: logs are put together beside their place.
-spec remove(Dir :: string(), [Node :: string()]) -> iodata().
remove(Dir, Nodes) ->
    ["cd ", quote(Dir), " || exit 0\n", is_alive(Dir),
     "for n in", words(Nodes), "; do\n"
     "  p=; [ -f \"nodes/$n/pid\" ] && read -r p < \"nodes/$n/pid\"\n"
     "  is_alive \"$n\" \"$p\" && continue\n"
     "  for f in \"nodes/$n\"/log \"nodes/$n\"/log.[0-9] \"nodes/$n\"/output \\\n"
     "      \"nodes/$n\"/output.1 \"nodes/$n\"/crash_dump; do\n"
     "    [ -f \"$f\" ] && mkdir -p \"logs/$n.new\" && mv \"$f\" \"logs/$n.new/\"; done\n"
     "  if [ -d \"logs/$n.new\" ]; then rm -rf \"logs/$n\" \"logs/$n.output\"\n"
     "    mv \"logs/$n.new\" \"logs/$n\"; fi\n"
     "  rm -rf \"nodes/$n\"; done\n"
     "exit 0\n"].

%% @doc Makes a stopped node what it was before the last upgrade. What it needs is removed last, so
%% that it may be repeated if it was ended half-way.
-spec undo(Dir :: string(), Node :: string()) -> iodata().
undo(Dir, Node) ->
    ["set -e\ncd ", quote(Dir), "/nodes/", quote(Node), "\n"
     "umask 077\n[ -f previous/id ]\n[ -f previous/healthy ] || rm -f healthy\n"
     "for f in healthy sys.config start id; do [ -f \"previous/$f\" ] || continue\n"
     "  cp \"previous/$f\" \"$f.new\"; mv \"$f.new\" \"$f\"; done\n"
     "rm -f previous/id; rm -rf previous\nexit 0\n"].

%% @doc Removes releases.
-spec prune(Dir :: string(), [Version :: string()]) -> iodata().
prune(Dir, Versions) ->
    ["cd ", quote(Dir), "/releases || exit 0\n"
     "for v in", words(Versions), "; do\n"
     "  rm -f \"$v/.complete\"; rm -rf \"$v\" \"../upload/$v\"; done\nexit 0\n"].

%% @doc Calls `epmd' that of the Erlang whose `erl' this is, which may not be on the path. One line.
-spec epmd(Erl :: string()) -> iodata().
epmd(Erl) ->
    ["erl=", quote(Erl), "; epmd=epmd; "
     "for p in \"${erl%/*}\"/epmd \"${erl%/*}\"/../erts-*/bin/epmd; do "
     "[ -x \"$p\" ] && [ ! -d \"$p\" ] && epmd=$p; done; "].

%% @doc Ends an epmd that is not that of the whole host; it stays while others are registered.
-spec end_epmd(Dir :: string(), Erl :: string(), inet:port_number()) -> iodata().
end_epmd(Dir, Erl, Port) ->
    [[epmd(Erl), "\"$epmd\" -port ", integer_to_list(Port), " -kill > /dev/null 2>&1\n"]
     || Port =/= ?EPMD_PORT]
        ++ ["cd ", quote(Dir), " && rm -rf .erlang.cookie .erlang.cookie.new control upload "
            ".script-[0-9]*-[0-9]*\nexit 0\n"].

%% @doc Removes what belongs to the deployment, and the directory if it is empty then: the file may
%% name one that has something else in it.
-spec purge(Dir :: string()) -> iodata().
purge(Dir) ->
    ["cd ", quote(Dir), " 2>/dev/null || exit 0\n"
     "rm -rf releases nodes logs control upload deployment .erlang.cookie .erlang.cookie.new\n"
     "rm -rf lock state state.new .script-[0-9]*-[0-9]*\n"
     "cd /\nrmdir ", quote(Dir), " 2>/dev/null\nexit 0\n"].

%% @doc The last lines that a node has logged, and those that it has printed: there it says which
%% application does not start.
-spec log_tail(Dir :: string(), Node :: string()) -> iodata().
log_tail(Dir, Node) ->
    ["cd ", quote([Dir, "/nodes/", Node]), " || exit 0\n"
     "for f in log output; do tail -n 8 \"$f\" 2>/dev/null; done\nexit 0\n"].

%% @doc Prints the configuration that a node was made with.
-spec configuration(Dir :: string(), Node :: string()) -> iodata().
configuration(Dir, Node) ->
    ["printf 'configuration\\t\\n'; cat ", quote([Dir, "/nodes/", Node, "/sys.config"]), "\n"].

%% @doc What configuration/2 has printed, without what the shell of the host has to say before.
-spec configured(binary()) -> binary().
configured(Output) ->
    lists:last(binary:split(Output, <<"configuration\t\n">>)).

%% @doc Reads what observe/1 has printed. Other lines are passed over.
-spec parse(binary()) -> observed().
parse(Output) ->
    Lines = [binary:split(Line, <<"\t">>, [global])
             || Line <- binary:split(Output, <<"\n">>, [global])],
    #{releases := Releases} = Seen =
        lists:foldl(fun line/2, #{cores => 1, releases => [], closed => [], health => #{},
                                   nodes => #{}}, Lines),
    Seen#{releases := lists:reverse(Releases)}.

line([<<"cores">>, Count], Seen) ->
    Seen#{cores := max(1, number(Count))};
line([<<"deployment">>, Name], Seen) ->
    Seen#{deployment => text(Name)};
line([<<"state">>, Revision], Seen) ->
    Seen#{revision => number(Revision)};
line([<<"release">>, Version], #{releases := Versions} = Seen) ->
    Seen#{releases := [text(Version) | Versions]};
line([<<"node">>, Node, State, OsPid, Id, Previous], #{nodes := Nodes} = Seen) ->
    Seen#{nodes := Nodes#{text(Node) =>
                              #{up => State =/= <<"down">>, left => State =:= <<"left">>,
                                os_pid => number(OsPid), id => text(Id),
                                previous => case Previous of <<"-">> -> none; P -> text(P) end}}};
line([<<"healthy">>, Node, Text], #{health := All} = Seen) ->
    Seen#{health := All#{text(Node) => health(Text)}};
line([<<"closed">>, Node], #{closed := Closed} = Seen) ->
    Seen#{closed := [text(Node) | Closed]};
line(_Other, Seen) ->
    Seen.

%% Of what `define/2' has written: which applications are to run belongs to the id of a node.
health(Text) ->
    try
        {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
        {ok, {_Start, Health}} = erl_parse:parse_term(Tokens),
        Health
    catch error:_ -> unreadable
    end.

text(Bytes) -> binary_to_list(Bytes).

number(Text) ->
    case string:to_integer(Text) of
        {Number, _} when is_integer(Number) -> Number;
        {error, _} -> 0
    end.

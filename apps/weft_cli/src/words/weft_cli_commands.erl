%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands of `weft': their words, options, help and the function that runs each. Pure.
%% A new command is one more entry in all/0; help, option parsing and dispatch follow from it.
-module(weft_cli_commands).

-export([all/0, command/0, overview/0]).
-export_type([command/0]).

-import(weft_cli_options, [common/0, deployed/0, any_node/1, agents/0]).

%% A command of weft_argparse with its name. The handler is called by weft_cli with the words that
%% are no options, and the options; it answers a weft_cli:answer().
-type command() :: #{name := string(), arguments := [weft_argparse:argument()],
                     help := string(), details := [string()], handler := {module(), atom()}}.

%% @doc All commands, in the order of the help.
-spec all() -> [command()].
all() ->
    [up(), status(), watch(), trace(), why(), doctor(), alarms(), events(), profile(), cut(),
     heal(), join(), leave(), kill(), restart(), eval(), shell(), down(), paper(), migrate(),
     deploy(), kv(), completion(), man()].

%% @doc What weft_argparse reads the words with.
-spec command() -> weft_argparse:command().
command() ->
    #{commands => maps:from_list([{Name, Command} || #{name := Name} = Command <- all()])}.

%% --- the commands -----------------------------------------------------------------------------

up() ->
    #{name => "up", handler => {weft_cli_cluster, up},
      arguments => up_options() ++ common(),
      help => "start a cluster of real nodes on this machine",
      details =>
          ["Starts nodes n01, n02, ... as processes in the background, with weft as their carrier,",
           "on the loopback address and with an epmd of their own. Returns when every node knows a",
           "way to every other. All files, the log of each node among them, are in .weft/NAME.",
           "",
           "  weft up                                   three nodes, all connected",
           "  weft up -n 5 --topology line              n01 - n02 - n03 - n04 - n05",
           "  weft up --groups 'a=n01..n04;b=n03..n06'  two groups, n03 and n04 are the gateways",
           "  weft up -n 6 --servers n01,n02            two servers, four clients",
           "  weft up -n 20 --topology peer_to_peer     a few neighbours each",
           "  weft up --path _build/default/lib/my_app/ebin",
           "  weft up --file cluster.config",
           "",
           "A file holds the same as Erlang terms, and options override it:",
           "  {groups, #{a => [n01, n02], b => [n02, n03]}}.",
           "  {settings, [{lanes, 2}, {resume_timeout_ms, 5000}]}.",
           "  {paths, [\"_build/default/lib/my_app/ebin\"]}."]}.

up_options() ->
    [#{name => nodes, long => "-nodes", short => $n, type => integer, value => "COUNT",
       help => "number of nodes (default 3, or those the topology names)"},
     #{name => topology, long => "-topology", short => $t, type => string, value => "SHAPE",
       help => "full_mesh (default), line, ring, star, client_server, peer_to_peer, none, or an "
               "Erlang term"},
     #{name => groups, long => "-groups", short => $g, type => string, value => "GROUPS",
       help => "overlapping groups: 'a=n01,n02;b=n02..n04'"},
     #{name => links, long => "-links", type => string, value => "LINKS",
       help => "links one by one: n01-n02,n02-n03"},
     #{name => servers, long => "-servers", type => string, value => "NODES",
       help => "topology client_server with these servers; the other nodes are clients"},
     #{name => lanes, long => "-lanes", type => integer, value => "COUNT",
       help => "TCP connections per link"},
     #{name => circuits, long => "-circuits", type => string, value => "HOW",
       help => "hidden (default), or visible: nodes() lists everybody"},
     #{name => transport, long => "-transport", type => string, value => "HOW",
       help => "tcp (default), or tls with certificates made for the cluster"},
     #{name => path, long => "-path", short => $p, type => string, action => append, value => "DIR",
       help => "a directory of your compiled code, for every node (again for more)"},
     #{name => set, long => "-set", short => $s, type => string, action => append,
       value => "KEY=TERM",
       help => "any setting of weft, such as resume_timeout_ms=5000 (again for more)"},
     #{name => file, long => "-file", short => $f, type => string, value => "FILE",
       help => "take all this from a file of Erlang terms"},
     #{name => epmd_port, long => "-epmd-port", type => integer, value => "PORT",
       help => "port of epmd (default: a free one); an epmd that is there is used"}].

status() ->
    #{name => "status", handler => {weft_cli_look, status},
      arguments => deployed(),
      help => "nodes, links, sessions, circuits and their resumes",
      details =>
          ["Asks every node. Links are counted against the N(N-1)/2 of a full mesh; each",
           "link has as many TCP connections as it has lanes.",
           "A circuit is a session between nodes that have no link; its hops are those that",
           "the session really uses now. `resumes' counts how often sessions lost their path",
           "and went on by another, without a nodedown; `re-routes' how often that was by way",
           "of another neighbour. Groups are shown with the nodes that",
           "each shares with others, scopes of names with how many names all nodes have.",
           "",
           "With --cluster it asks the nodes of a deployment, by an emulator on each host. If a",
           "host can not be reached, it is named, and the exit code is 1. For hosts that are",
           "reached by ssh the program ssh is needed.",
           "",
           "  weft status --cluster shop.deploy"]}.

watch() ->
    #{name => "watch", handler => {weft_cli_watch, watch},
      arguments => [#{name => interval, long => "-interval", short => $i,
                      type => {float, [{min, 0.1}, {max, 3600}]}, value => "SECONDS",
                      default => 2.0, help => "how long between two samples (default 2)"},
                    #{name => count, long => "-count", short => $n,
                      type => {integer, [{min, 1}]}, value => "COUNT",
                      help => "end after so many samples"}] ++ deployed(),
      help => "status again and again, with what moves in between",
      details =>
          ["Sums of the cluster, and for each node what it sent and received per second since",
           "the sample before, what it relayed for others, resumes, and the bytes that wait to be",
           "sent (queued), or to be acknowledged (some are at rest, too). On a terminal each",
           "sample takes the place of the one before; elsewhere it follows it, with --json as",
           "one object on a line. Ends with ctrl-C, or when the cluster is down.",
           "",
           "  weft watch --interval 0.5",
           "  weft watch --count 10 --json > samples",
           "  weft watch --cluster shop.deploy          nodes that weft deploy has started"]}.

trace() ->
    #{name => "trace", handler => {weft_cli_look, trace},
      arguments => [#{name => a}, #{name => b}] ++ deployed(),
      help => "the way from A to B, with the round trip of each link",
      details =>
          ["Follows the circuit of the session between A and B, or the routes if there is no",
           "session yet. Times are those of the last keepalive of each link; end to end is",
           "a call from A to B, if they are connected.",
           "",
           "  weft trace n01 n12",
           "  weft trace web1 db1 --cluster shop.deploy"]}.

why() ->
    #{name => "why", handler => {weft_cli_look, why},
      arguments => [#{name => a}, #{name => b}] ++ deployed(),
      help => "why A reaches B, or not, in plain words",
      details =>
          ["Path, link, lanes, session, what waits in its queue, and the last error, as A sees",
           "it. In a shell on a node weft:why(Node) says the same, but not of how many links a",
           "circuit is: for that the command asks all nodes.",
           "",
           "  weft why n01 n12",
           "  weft why web1 db1 --cluster shop.deploy"]}.

doctor() ->
    #{name => "doctor", handler => {weft_cli_doctor, doctor},
      arguments => any_node("NODE@HOST of any cluster; it examines the members it knows")
          ++ deployed(),
      help => "what is wrong with the cluster, why it matters, what to do",
      details =>
          ["Asks every node, for 5 s at most, and checks what it says: whether it answers, its",
           "links, lanes, paths and sessions; whether versions, topology, configuration and",
           "net_ticktime are the same everywhere; clocks, busy schedulers, limits on files and",
           "sockets, names of hosts, the port; cookie and certificates; flags of the kernel,",
           "the size of a full mesh, the use of `global'. Each finding is an error, a warning",
           "or a note. It changes nothing.",
           "",
           "The exit code is 0 if there are notes at most, 1 with a warning or an error, and 3",
           "if no node runs: nodes are examined once they are started.",
           "",
           "A local cluster is examined, or the deployment of --cluster. With --node the command",
           "calls that node as tools without weft do: over TCP, by the epmd on its host. Where",
           "that is not allowed, weft_doctor:examine() in a shell of a node does the same.",
           "",
           "  weft doctor",
           "  weft doctor --cluster shop.deploy",
           "  weft doctor --node shop@db1.example.org --cookie-file /etc/shop/cookie"]}.

alarms() ->
    #{name => "alarms", handler => {weft_cli_ops, alarms},
      arguments => agents(),
      help => "what is wrong now, as the agents of weft_ops say",
      details =>
          ["Asks a node on which weft_ops runs, which asks the agents of all nodes. The oldest one",
           "is the first; what somebody said who takes care of it is in brackets.",
           "",
           "  weft alarms --node shop@db1.example.org --cookie-file /etc/shop/cookie"]}.

events() ->
    #{name => "events", handler => {weft_cli_ops, events},
      arguments => [#{name => minutes, long => "-minutes", type => {integer, [{min, 1}]},
                      value => "COUNT", default => 60,
                      help => "of so many minutes until now (default 60)"} | agents()],
      help => "what has happened, as the agents of weft_ops say",
      details =>
          ["Asks as weft alarms does. Each agent knows its last thousand events.", "",
           "  weft events --minutes 5 --cluster shop.deploy"]}.

cut() ->
    #{name => "cut", handler => {weft_cli_act, cut},
      arguments => [#{name => a}, #{name => b}] ++ common(),
      help => "cut the link between A and B",
      details =>
          ["Closes the connections between the two and refuses new ones until weft heal.",
           "Sessions find a way around if there is one, or wait for resume_timeout_ms.",
           "",
           "  weft cut n03 n06"]}.

heal() ->
    #{name => "heal", handler => {weft_cli_act, heal},
      arguments => [#{name => nodes, nargs => list, value => "A B"}] ++ common(),
      help => "end all cuts, or that between A and B",
      details =>
          ["  weft heal", "  weft heal n03 n06"]}.

join() ->
    #{name => "join", handler => {weft_cli_act, join},
      arguments => [#{name => a}, #{name => b}] ++ common(),
      help => "A joins the cluster of B",
      details =>
          ["As weft:join/1 on A. Does nothing if they are members of one cluster already.",
           "",
           "  weft join n03 n01"]}.

leave() ->
    #{name => "leave", handler => {weft_cli_act, leave},
      arguments => [#{name => node}] ++ common(),
      help => "a node leaves its cluster and goes on alone",
      details =>
          ["As weft:leave/0 on that node: what it has sent is delivered, the others are told.",
           "",
           "  weft leave n03"]}.

kill() ->
    #{name => "kill", handler => {weft_cli_act, kill},
      arguments => [#{name => node}] ++ common(),
      help => "end a node at once, as a crash would (SIGKILL)",
      details =>
          ["Only a process that this cluster started is ever signalled.", "",
           "  weft kill n04"]}.

restart() ->
    #{name => "restart", handler => {weft_cli_act, restart},
      arguments => [#{name => node}] ++ common(),
      help => "start a node again, stop it first if it runs",
      details =>
          ["Returns when the node knows a way to each node that knew one to it before; so it does",
           "not wait for nodes that are cut off, or have left. If it did not run: when it knows a",
           "way to one of them, after ten seconds at the latest."]}.

eval() ->
    #{name => "eval", handler => {weft_cli_act, eval},
      arguments => [#{name => node}, #{name => expression}] ++ common(),
      help => "evaluate an Erlang expression on a node, or on all",
      details =>
          ["Prints the value. The full stop may be left out. `all' instead of a node asks",
           "every node that runs.",
           "",
           "  weft eval n01 'nodes(connected).'",
           "  weft eval all 'application:ensure_all_started(my_app).'"]}.

shell() ->
    #{name => "shell", handler => {weft_cli_shell, shell},
      arguments => [#{name => node}] ++ common(),
      help => "an Erlang shell on a node",
      details =>
          ["Leave it with ctrl-G q, or ctrl-C twice. (q() would stop the node.)"]}.

down() ->
    #{name => "down", handler => {weft_cli_cluster, down},
      arguments => common(),
      help => "stop the cluster, and nothing else",
      details =>
          ["Stops each process by its recorded id, after a look at its command line. The logs",
           "stay in .weft/NAME."]}.

paper() ->
    #{name => "paper", handler => {weft_cli_paper, paper},
      arguments => paper_options(),
      help => "figures of papers: what they claim, and what this machine measures",
      details =>
          ["Without a list: which figures there are. Their page, paper.html, has charts, the",
           "claims, and what could not be shown here and why; the numbers are beside it. It",
           "is weft_papers that measures: in the checkout, or named in ERL_LIBS.",
           "",
           "  weft paper de_5,de_6 --quick",
           "  weft paper orbit,partisan_2 --out figures"]}.

deploy() ->
    #{name => "deploy", handler => {weft_cli_deploy, deploy},
      arguments => [#{name => action}, #{name => words, nargs => list, value => "FILE"},
                    #{name => again, long => "-again", type => boolean,
                      help => "also what was rolled back"},
                    #{name => purge, long => "-purge", type => boolean,
                      help => "of down: remove releases and logs, too"},
                    #{name => out, long => "-out", type => string, value => "DIR",
                      help => "of export: where the files go"},
                    #{name => dir, long => "-dir", type => string, value => "DIR",
                      help => "where the command keeps what it remembers (default .weft)"},
                    #{name => json, long => "-json", type => boolean, help => "answer in JSON"}],
      help => "nodes on hosts, as a file says: started, scaled, upgraded",
      details =>
          ["The file has Erlang terms; docs/guide/deploy.md describes them. Hosts are asked each",
           "time what is there, so a command that was ended half-way may be repeated.",
           "",
           "  weft deploy plan shop.deploy           what apply would do",
           "  weft deploy apply shop.deploy          start what is missing or has failed",
           "  weft deploy scale shop.deploy web=5    another number of nodes",
           "  weft deploy status shop.deploy",
           "  weft deploy upgrade shop.deploy        what differs from the file, one by one",
           "  weft deploy rollback shop.deploy       what it was before",
           "  weft deploy drain shop.deploy gate1    led around, then stopped",
           "  weft deploy export shop.deploy systemd --out units",
           "  weft deploy down shop.deploy           stop its nodes, and nothing else"]}.

paper_options() ->
    [#{name => list, required => false},
     #{name => quick, long => "-quick", type => boolean,
       help => "smaller and shorter: seconds for each figure"},
     #{name => repetitions, long => "-repetitions", type => integer, value => "COUNT",
       help => "of each measurement (default 5, quick 2; some figures have fewer)"},
     #{name => minutes, long => "-minutes", type => integer, value => "COUNT",
       help => "how long a figure may take (default 18); what does not fit is left out"},
     #{name => out, long => "-out", type => string, value => "DIR",
       help => "where the results go (default: a new directory in that of clusters)"},
     #{name => dir, long => "-dir", type => string, value => "DIR",
       help => "where that is (default .weft)"},
     #{name => json, long => "-json", type => boolean, help => "answer in JSON"}].

kv() ->
    #{name => "kv", handler => {weft_cli_kv, kv},
      arguments => [#{name => action, type => {atom, [get, put, delete, list, info, export, import,
                                                   backup]}},
                    #{name => words, nargs => list, value => "BUCKET KEY VALUE"}]
          ++ weft_cli_options:kv() ++ weft_cli_options:kv_archive()
          ++ any_node("a NODE of the local cluster, or NODE@HOST of any")
          ++ common(),
      help => "keys and values of weft_kv: read, write, list, back up",
      details =>
          ["Asks a node that runs weft_kv; docs/guide/kv.md describes buckets, contexts and",
           "siblings. A value is printed as the bytes that it is. Where several writes did not",
           "know each other, all their values are shown with a context: give it to the next put,",
           "and that replaces them all. What is no text in a key is printed as %XX.",
           "",
           "  weft kv put carts ann bread,milk       a sibling of what is there",
           "  weft kv get carts ann",
           "  weft kv put carts ann bread --context g2gDYQ",
           "  weft kv put pages /logo --file logo.png --content-type image/png",
           "  weft kv get pages /logo --out copy.png",
           "  weft kv delete carts ann",
           "  weft kv list carts --limit 20          then --after what it says",
           "  weft kv info                           the buckets; of one: weft kv info carts",
           "  weft kv export carts.archive           and import, which merges",
           "  weft kv backup /var/backups/weft --keep 7",
           "",
           "The exit code is 5 if there is no such key, and 6 if it has several values."]}.

completion() ->
    #{name => "completion", handler => {weft_cli_completion, completion},
      arguments => [#{name => shell}],
      help => "a script with which bash, zsh or fish completes these words",
      details =>
          ["  source <(weft completion bash)                  in ~/.bashrc",
           "  source <(weft completion zsh)                   in ~/.zshrc",
           "  weft completion fish | source                   in ~/.config/fish/config.fish"]}.

man() ->
    #{name => "man", handler => {weft_cli_man, man},
      arguments => [],
      help => "the manual page: weft man > weft.1 && man -l weft.1",
      details => []}.

migrate() ->
    #{name => "migrate", handler => {weft_cli_migrate, migrate},
      arguments => [#{name => what}, #{name => paths, nargs => list, value => "PATH..."}
                    | migrate_options()],
      help => "what in sources will not scale; rewrites it for weft",
      details =>
          ["weft migrate scan reads sources of Erlang (structure) and Elixir (words only) and says",
           "what gets slower with each node, or assumes that all nodes are connected: where, why,",
           "at what cost, what to do. It changes nothing.",
           "",
           "weft migrate rewrite shows what means the same on weft as a diff, or writes it to the",
           "files with --write. Whatever is not certain it leaves, and says why. A name of global",
           "moves with all its places below PATH, or not at all; so give it the whole program. A",
           "second run changes nothing.",
           "",
           "The exit code is 1 if there is a warning, something is left, or a file is unreadable.",
           "",
           "  weft migrate scan src --html scan.html --sarif scan.sarif",
           "  weft migrate rewrite src --only global,pg",
           "  weft migrate rewrite src --write"]}.

migrate_options() ->
    [#{name => html, long => "-html", type => string, value => "FILE",
       help => "write the report of a scan as a page, too"},
     #{name => sarif, long => "-sarif", type => string, value => "FILE",
       help => "and as SARIF 2.1.0, for editors and hosts of repositories"},
     #{name => write, long => "-write", type => boolean, help => "rewrite the files (else a diff)"},
     #{name => dry_run, long => "-dry-run", type => boolean, help => "a diff, as without --write"},
     #{name => only, long => "-only", type => {list, {atom, weft_migrate_rule:names()}},
       value => "RULES", help => "some of global,pg,pg2,s_group,global_group,multicall"},
     #{name => partial, long => "-partial", type => boolean,
       help => "rewrite names of global whose other places stay, too: mend those by hand"},
     #{name => adaptors, long => "-adaptor", type => string, action => append, value => "FILE",
       help => "a module that has an old interface in terms of a new one (again for more)"},
     #{name => channel, long => "-channel", type => {custom, fun list_to_atom/1}, value => "NAME",
       help => "messages sent with ! take this channel"},
     #{name => json, long => "-json", type => boolean, help => "answer in JSON"}].

profile() ->
    #{name => "profile", handler => {weft_cli_profile, profile},
      arguments => [#{name => nodes, nargs => list, value => "NODE..."} | profile_options()]
          ++ deployed(),
      help => "record what nodes do: schedulers, messages between them, stacks",
      details =>
          ["Records for some seconds, then writes trace.json (open it in Perfetto or speedscope),",
           "summary.html and flame.svg. A recording ends by itself when there is too much of it,",
           "and says so. Nodes are traced for 40 ms of each second, as tracing slows them down;",
           "--continuous traces them all of the time.",
           "",
           "  weft profile n01 n02",
           "  weft profile n01 n02 n03 --seconds 2 --out profile",
           "  weft profile n01 --pids 20",
           "  weft profile --group a",
           "  weft profile web1 db1 --cluster shop.deploy"]}.

profile_options() ->
    [#{name => seconds, long => "-seconds", type => integer, value => "COUNT",
       help => "how long (default 5)"},
     #{name => out, long => "-out", type => string, value => "DIR",
       help => "where the files go (default: a new directory in that of clusters)"},
     #{name => group, long => "-group", type => string, value => "GROUP",
       help => "the nodes of a group, besides those that are named"},
     #{name => pids, long => "-pids", type => integer, value => "COUNT",
       help => "only so many processes of each node, those that are busiest (default: all)"},
     #{name => continuous, long => "-continuous", type => boolean,
       help => "trace all of the time: nodes become slower"}].

%% --- help -------------------------------------------------------------------------------------

%% @doc What `weft help' prints.
-spec overview() -> unicode:chardata().
overview() ->
    ["weft: distributed Erlang in any shape, tried out on this machine\n\n",
     weft_cli_table:format([["  weft " ++ weft_argparse:usage(Name, Command), Summary]
                            || #{name := Name, help := Summary} = Command <- all()]),
     "\nweft help COMMAND says more. Try this:\n\n"
     "  weft up --groups 'a=n01..n03;b=n03..n05;c=n05..n07'\n"
     "  weft eval n01 \"net_adm:ping('n07@127.0.0.1').\"\n"
     "  weft trace n01 n07\n"
     "  weft status\n"
     "  weft down\n\n"
     "Exit codes: 0 done, 1 it failed (doctor: it found an error or a warning), 2 the words made\n"
     "no sense, 3 no such cluster is up, 4 no such node, or it does not run. Of kv: 5 no such\n"
     "key, 6 there are several values.\n"].

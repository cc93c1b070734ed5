%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands of `weft' that look at a cluster and change nothing, whether it is a local one,
%% a deployment or any other: their words, options, help and the function that runs each. Pure.
%%
%% Not here: what changes a local cluster (`weft_cli_local_commands'), and all others
%% (`weft_cli_commands', which has the order of all).
-module(weft_cli_look_commands).

-export([all/0]).

-import(weft_cli_options, [deployed/0, any_node/1, agents/0]).

%% @doc All of them, in the order of the help.
-spec all() -> [weft_cli_commands:command()].
all() -> [status(), watch(), trace(), why(), doctor(), alarms(), events(), profile()].

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
           "sent (queued), or to be acknowledged (some are at rest, too). Where weft_ops runs, a",
           "line with the worst alarms, as agents have said last. On a terminal each sample takes",
           "the place of the one before; elsewhere it follows it, with --json as one object on a",
           "line. Ends with ctrl-C, or when the cluster is down.",
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
      arguments => [#{name => config, long => "-config", type => string, value => "FILE",
                      help => "nodes before they run: a deployment file, or a sys.config"},
                    #{name => vm_args, long => "-vm-args", type => string, value => "FILE",
                      help => "with that sys.config: the vm.args"}
                    | any_node("NODE@HOST of any cluster; it examines the members it knows")]
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
           "With --config nothing has to run, and no node or host is asked. It checks what files",
           "say: settings, topology, flags of the kernel, cookie, ports, hosts by their names, and",
           "of nodes on this machine certificates, limits and ports in use.",
           "",
           "  weft doctor",
           "  weft doctor --config shop.deploy",
           "  weft doctor --config config/sys.config --vm-args config/vm.args",
           "  weft doctor --cluster shop.deploy",
           "  weft doctor --node shop@db1.example.org --cookie-file /etc/shop/cookie"]}.

alarms() ->
    #{name => "alarms", handler => {weft_cli_ops, alarms},
      arguments => agents(),
      help => "what is wrong now, as the agents of weft_ops say",
      details =>
          ["Asks a node on which weft_ops runs, which asks the agents of all nodes. The oldest one",
           "is the first; what somebody said who takes care of it is in brackets. The groups and",
           "nodes are named for which no agent has answered: their alarms are not known.",
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

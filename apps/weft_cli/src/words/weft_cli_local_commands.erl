%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands of `weft' that make, change and end a cluster on this machine: their words,
%% options, help and the function that runs each. Pure.
%%
%% Not here: what only looks (`weft_cli_look_commands'), and what is not about a local cluster
%% (`weft_cli_commands', which has the order of all).
-module(weft_cli_local_commands).

-export([up/0, on_running/0]).

-import(weft_cli_options, [common/0]).

%% @doc The one that makes a cluster.
-spec up() -> weft_cli_commands:command().
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

%% @doc Those for which one has to be up, in the order of the help.
-spec on_running() -> [weft_cli_commands:command()].
on_running() -> [cut(), heal(), join(), leave(), kill(), restart(), eval(), shell(), down()].

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

%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands of `weft': their words, options, help and the function that runs each. Pure.
%% A new command is one more entry in all/0; help, option parsing and dispatch follow from it.
-module(weft_cli_commands).

-export([all/0, find/1, counts/1, overview/0, help/1]).
-export_type([command/0]).

%% run: called with the words that are no options, and the options; answers a weft_cli:answer().
-type command() :: #{name := string(), arguments := string(), summary := string(),
                     options := [weft_cli_options:option()], run := {module(), atom()},
                     help := [string()]}.

%% @doc All commands, in the order of the help.
-spec all() -> [command()].
all() ->
    [up(), status(), trace(), why(), cut(), heal(), kill(), restart(), eval(), shell(), down(),
     paper()].

%% @doc The command of that name; the error names the nearest.
-spec find(string()) -> {ok, command()} | {error, iolist()}.
find(Name) ->
    Names = [N || #{name := N} <- all()],
    case [Command || #{name := N} = Command <- all(), N =:= Name] of
        [Command] -> {ok, Command};
        [] ->
            {error, ["there is no command ", Name,
                     case weft_cli_options:nearest(Name, Names) of
                         {ok, Near} -> [", did you mean ", Near, "?"];
                         none -> [". There are: ", lists:join(", ", Names), "."]
                     end]}
    end.

%% @doc How many words the command takes: those in brackets may be left out together.
-spec counts(command()) -> [non_neg_integer()].
counts(#{arguments := Arguments}) ->
    case string:split(Arguments, "[") of
        [Needed, Optional] -> [words(Needed), words(Needed) + words(Optional)];
        [Needed] -> [words(Needed)]
    end.

words(Text) -> length(string:lexemes(Text, " ]")).

%% --- the commands -----------------------------------------------------------------------------

up() ->
    #{name => "up", arguments => "", run => {weft_cli_cluster, up},
      summary => "start a cluster of real nodes on this machine",
      options => up_options() ++ common(),
      help =>
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
    [#{key => nodes, short => $n, type => integer, value => "COUNT",
       help => "number of nodes (default 3, or those the topology names)"},
     #{key => topology, short => $t, type => string, value => "SHAPE",
       help => "full_mesh (default), line, ring, star, client_server, peer_to_peer, none, or an "
               "Erlang term"},
     #{key => groups, short => $g, type => string, value => "GROUPS",
       help => "overlapping groups: 'a=n01,n02;b=n02..n04'"},
     #{key => links, type => string, value => "LINKS", help => "links one by one: n01-n02,n02-n03"},
     #{key => servers, type => string, value => "NODES",
       help => "topology client_server with these servers; the other nodes are clients"},
     #{key => lanes, type => integer, value => "COUNT", help => "TCP connections per link"},
     #{key => circuits, type => string, value => "HOW",
       help => "hidden (default), or visible: nodes() lists everybody"},
     #{key => transport, type => string, value => "HOW",
       help => "tcp (default), or tls with certificates made for the cluster"},
     #{key => path, short => $p, type => string, many => true, value => "DIR",
       help => "a directory of your compiled code, for every node (again for more)"},
     #{key => set, short => $s, type => string, many => true, value => "KEY=TERM",
       help => "any setting of weft, such as resume_timeout_ms=5000 (again for more)"},
     #{key => file, short => $f, type => string, value => "FILE",
       help => "take all this from a file of Erlang terms"},
     #{key => epmd_port, type => integer, value => "PORT",
       help => "port of epmd (default: a free one); an epmd that is there is used"}].

status() ->
    #{name => "status", arguments => "", run => {weft_cli_look, status}, options => common(),
      summary => "nodes, links, sessions, circuits and their resumes",
      help => ["Asks every node. Links are counted against the N(N-1)/2 of a full mesh; each",
               "link has as many TCP connections as it has lanes.",
               "A circuit is a session between nodes that have no link; its hops are those that",
               "the session really uses now. `resumes' counts how often sessions lost their path",
               "and went on by another, without a nodedown. Groups are shown with the nodes that",
               "each shares with others, scopes of names with how many names all nodes have."]}.

trace() ->
    #{name => "trace", arguments => "A B", run => {weft_cli_look, trace}, options => common(),
      summary => "the way from A to B, with the round trip of each link",
      help => ["Follows the circuit of the session between A and B, or the routes if there is no",
               "session yet. Times are those of the last keepalive of each link; end to end is",
               "a call from A to B, if they are connected.",
               "",
               "  weft trace n01 n12"]}.

why() ->
    #{name => "why", arguments => "A B", run => {weft_cli_look, why}, options => common(),
      summary => "why A reaches B, or not, in plain words",
      help => ["Path, link, lanes, session, what waits in its queue, and the last error, as A sees",
               "it. In a shell on a node weft:why(Node) says the same, but not of how many links a",
               "circuit is: for that the command asks all nodes.",
               "",
               "  weft why n01 n12"]}.

cut() ->
    #{name => "cut", arguments => "A B", run => {weft_cli_act, cut}, options => common(),
      summary => "cut the link between A and B",
      help => ["Closes the connections between the two and refuses new ones until weft heal.",
               "Sessions find a way around if there is one, or wait for resume_timeout_ms.",
               "",
               "  weft cut n03 n06"]}.

heal() ->
    #{name => "heal", arguments => "[A B]", run => {weft_cli_act, heal}, options => common(),
      summary => "end all cuts, or that between A and B",
      help => ["  weft heal", "  weft heal n03 n06"]}.

kill() ->
    #{name => "kill", arguments => "NODE", run => {weft_cli_act, kill}, options => common(),
      summary => "end a node at once, as a crash would (SIGKILL)",
      help => ["Only a process that this cluster started is ever signalled.", "",
               "  weft kill n04"]}.

restart() ->
    #{name => "restart", arguments => "NODE", run => {weft_cli_act, restart}, options => common(),
      summary => "start a node again, stop it first if it runs",
      help => ["Returns when the node knows a way to every other node that runs."]}.

eval() ->
    #{name => "eval", arguments => "NODE EXPRESSION", run => {weft_cli_act, eval},
      options => common(), summary => "evaluate an Erlang expression on a node, or on all",
      help => ["Prints the value. The full stop may be left out. `all' instead of a node asks",
               "every node that runs.",
               "",
               "  weft eval n01 'nodes(connected).'",
               "  weft eval all 'application:ensure_all_started(my_app).'"]}.

shell() ->
    #{name => "shell", arguments => "NODE", run => {weft_cli_shell, shell}, options => common(),
      summary => "an Erlang shell on a node",
      help => ["Leave it with ctrl-G q, or ctrl-C twice. (q() would stop the node.)"]}.

down() ->
    #{name => "down", arguments => "", run => {weft_cli_cluster, down}, options => common(),
      summary => "stop the cluster, and nothing else",
      help => ["Stops each process by its recorded id, after a look at its command line. The logs",
               "stay in .weft/NAME."]}.

paper() ->
    #{name => "paper", arguments => "[LIST]", run => {weft_cli_paper, paper},
      summary => "figures of papers: what they claim, and what this machine measures",
      options =>
          [#{key => quick, type => flag, help => "smaller and shorter: seconds for each figure"},
           #{key => repetitions, type => integer, value => "COUNT",
             help => "of each measurement (default 5, quick 2; some figures have fewer)"},
           #{key => minutes, type => integer, value => "COUNT",
             help => "how long a figure may take (default 18); what does not fit is left out"},
           #{key => out, type => string, value => "DIR",
             help => "where the results go (default: a new directory in that of clusters)"},
           #{key => dir, type => string, value => "DIR", help => "where that is (default .weft)"},
           #{key => json, type => flag, help => "answer in JSON"},
           #{key => help, short => $h, type => flag, help => "this text"}],
      help => ["Without a list: which figures there are. Their page, paper.html, has charts, the",
               "claims, and what could not be shown here and why; the numbers are beside it. It",
               "is weft_bench that measures: in the checkout, or named in ERL_LIBS.",
               "",
               "  weft paper de_5,de_6 --quick",
               "  weft paper orbit,partisan_2 --out figures"]}.

common() ->
    [#{key => name, type => string, value => "NAME",
       help => "the cluster (default: local, or the only one that is up)"},
     #{key => dir, type => string, value => "DIR", help => "where clusters are (default .weft)"},
     #{key => json, type => flag, help => "answer in JSON"},
     #{key => help, short => $h, type => flag, help => "this text"}].

%% --- help -------------------------------------------------------------------------------------

%% @doc What `weft help' prints.
-spec overview() -> unicode:chardata().
overview() ->
    ["weft: distributed Erlang in any shape, tried out on this machine\n\n",
     weft_cli_table:format([["  weft " ++ Name ++ " " ++ Arguments, Summary]
                            || #{name := Name, arguments := Arguments, summary := Summary}
                                   <- all()]),
     "\nweft help COMMAND says more. Try this:\n\n"
     "  weft up --groups 'a=n01..n03;b=n03..n05;c=n05..n07'\n"
     "  weft eval n01 \"net_adm:ping('n07@127.0.0.1').\"\n"
     "  weft trace n01 n07\n"
     "  weft status\n"
     "  weft down\n\n"
     "Exit codes: 0 done, 1 it failed, 2 the words made no sense, 3 no such cluster is up,\n"
     "4 no such node, or it does not run.\n"].

%% @doc What `weft help COMMAND' prints.
-spec help(command()) -> unicode:chardata().
help(#{name := Name, arguments := Arguments, summary := Summary, options := Options,
       help := Lines}) ->
    ["weft ", string:trim(Name ++ " " ++ Arguments), ": ", Summary, "\n\n",
     [[string:trim("  " ++ Line, trailing), $\n] || Line <- Lines], "\nOptions:\n",
     weft_cli_table:format([["  " ++ option_words(Option), maps:get(help, Option)]
                            || Option <- Options])].

option_words(#{key := Key} = Option) ->
    Short = case Option of #{short := Letter} -> [$-, Letter, $,, $\s]; #{} -> "" end,
    Long = "--" ++ lists:flatten(string:replace(atom_to_list(Key), "_", "-", all)),
    string:trim(Short ++ Long ++ " " ++ maps:get(value, Option, "")).

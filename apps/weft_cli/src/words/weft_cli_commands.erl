%% SPDX-License-Identifier: Apache-2.0
%% @doc The commands of `weft': their words, options, help and the function that runs each. Pure.
%% A new command is one more entry in all/0, or in one of the two modules that it takes others from;
%% help, option parsing and dispatch follow from it. Those two have the commands that act on a local
%% cluster, and those that look; here is the rest.
-module(weft_cli_commands).

-export([all/0, command/0, overview/0]).
-export_type([command/0]).

-import(weft_cli_options, [common/0, any_node/1]).

%% A command of weft_argparse with its name. The handler is called by weft_cli with the words that
%% are no options, and the options; it answers a weft_cli:answer().
-type command() :: #{name := string(), arguments := [weft_argparse:argument()],
                     help := string(), details := [string()], handler := {module(), atom()}}.

%% @doc All commands, in the order of the help.
-spec all() -> [command()].
all() ->
    [weft_cli_local_commands:up() | weft_cli_look_commands:all()]
        ++ weft_cli_local_commands:on_running()
        ++ [paper(), migrate(), deploy(), kv(), completion(), man()].

%% @doc What weft_argparse reads the words with.
-spec command() -> weft_argparse:command().
command() ->
    #{commands => maps:from_list([{Name, Command} || #{name := Name} = Command <- all()])}.

%% --- the commands -----------------------------------------------------------------------------

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
                    #{name => break_lock, long => "-break-lock", type => boolean,
                      help => "although a command of another machine has not given back its lock"},
                    #{name => adopt, long => "-adopt", type => boolean,
                      help => "although nothing is remembered of nodes that may be there"},
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

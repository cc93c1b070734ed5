%% SPDX-License-Identifier: Apache-2.0
%% @doc Commands that pages show are run as they stand there, and answer what is shown. They run in
%% a place like the root of a checkout, whose build is that of the tests. What the network would
%% bring is something small that this suite keeps in its place (`git' and `apt-get' copy it), `make'
%% says what it would do, and what runs for ten seconds runs for one.
-module(weft_pages_commands_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([a_first_walk/1, clusters/1, make/1, shells/1, dependencies/1, elixir/1,
         loads_of_others/1, a_load_on_hosts/1, sources_of_others/1, places_to_read/1,
         own_topology/1]).

-define(LOOK_MS, 20000).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [a_first_walk, make, shells, dependencies, elixir, sources_of_others, places_to_read]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [clusters, a_load_on_hosts, own_topology, loads_of_others]].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Dir = filename:join(?config(priv_dir, Config), "weft"),
    Build = filename:join([Dir, "_build", "default"]),
    ok = filelib:ensure_path(filename:join(Build, "bin")),
    ok = linked(Dir),
    ok = file:make_symlink(filename:absname(filename:dirname(code:lib_dir(weft))),
                           filename:join(Build, "lib")),
    ok = file:make_symlink(weft_cli_build:file(), filename:join([Build, "bin", "weft"])),
    ok = programs(filename:join(?config(priv_dir, Config), "programs")),
    Cookie = filename:join(?config(priv_dir, Config), ".erlang.cookie"),
    ok = file:write_file(Cookie, "weft_pages"),
    ok = file:change_mode(Cookie, 8#400),
    [{root, Dir}, {emulator, weft_cli_emulator:start()} | Config].

linked(Dir) ->
    ok = filelib:ensure_path(Dir),
    lists:foreach(fun(Name) -> ok = file:make_symlink(filename:join(weft_guide:root(), Name),
                                                      filename:join(Dir, Name)) end,
                  ["bin", "test", "apps", "Makefile"]).

end_per_suite(Config) ->
    ok = weft_cli_emulator:stop(?config(emulator, Config)),
    weft_test_nodes:end_suite(Config).

%% In the place of the reader's, before them in the path. What was asked for is below `others'.
programs(Dir) ->
    ok = filelib:ensure_path(Dir),
    Make = os:find_executable("make"),
    [begin
         File = filename:join(Dir, Name),
         ok = file:write_file(File, ["#!/bin/sh\nset -eu\nothers=$(dirname \"$0\")/../others\n",
                                     Script]),
         ok = file:change_mode(File, 8#755)
     end || {Name, Script} <-
                [{"git", "shift\n[ \"$1\" != --branch ] || shift 2\n"
                         "cp -R \"$others/$(basename \"$1\")\" \"${2:-$(basename \"$1\")}\"\n"},
                 {"apt-get", "[ \"$1\" != source ] || cp -R \"$others\"/\"$2\"-* .\n"},
                 {"make", ["exec ", Make, " -n \"$@\"\n"]},
                 {"rebar3", ["shift\n", group_of_a_suite(), " -extra \"$@\"\n"]}]],
    ok.

%% In the place of `rebar3 ct': what is compiled already is run.
group_of_a_suite() ->
    Paths = [[" -pa ", filename:absname(Path)]
             || Path <- code:get_path(), not lists:prefix(code:root_dir(), Path)],
    ["exec erl -noinput", Paths, " -eval '"
     "[\"--dir\", _, \"--suite\", Suite, \"--group\", Group] = init:get_plain_arguments(), "
     "Dir = filename:dirname(code:which(list_to_atom(Suite))), "
     "{Passed, 0, _} = ct:run_test([{dir, Dir}, {suite, list_to_atom(Suite)}, "
     "{group, list_to_atom(Group)}, {auto_compile, false}, {logdir, \".\"}]), "
     "io:format(\"~p passed~n\", [Passed]), halt().'"].

%% --- the command weft -------------------------------------------------------------------------

%% The pages' commands in order, on one cluster. All has to be as shown, but for numbers of bytes,
%% milliseconds, processes, sessions, resumes and re-routes, and the last error of a link; `...' is
%% any lines.
a_first_walk(Config) ->
    Page = "docs/guide/command.md",
    [Up, Status, Cut] = [commands(weft_pages:block(Page, ["console"], Words))
                         || Words <- ["weft up", "weft status", "weft cut"]],
    {Faults, [{["down"], _} = Down]} = lists:split(length(Cut) - 1, Cut),
    try
        [shown(Command, Config) || Command <- Up ++ Status ++ Faults],
        watched(weft_pages:block(Page, ["console"], "weft watch"), Config),
        profiled(weft_pages:block("docs/guide/profile.md", ["sh"], "weft profile"), Config),
        examined(Page, Config)
    after
        shown(Down, Config)
    end.

%% Of two looks the second has rates.
watched(Text, Config) ->
    [{Words, Shown}] = commands(Text),
    {0, Said} = weft(Words ++ ["--count", "2", "--interval", "1"], Config),
    ?assertEqual([], general(Shown) -- general(Said)).

general(Text) ->
    [others_for(Line, [{"(?<![a-z0-9])[0-9][0-9.:]*( (k|M)?B)?", "#"}, {"# resume\\b", "# resumes"},
                       {" +", " "}])
     || Line <- string:lexemes(Text, "\n"), Line =/= "..."].

others_for(Text, Patterns) ->
    lists:foldl(fun({Pattern, By}, Of) -> re:replace(Of, Pattern, By, [global, {return, list}]) end,
                Text, Patterns).

profiled(Text, Config) ->
    [Words] = [string:lexemes(Line, " ") || Line <- string:lexemes(Text, "\n")],
    {0, _} = weft(tl(replaced(Words, [{"3", "1"}])), Config),
    [?assert(filelib:is_regular(filename:join([?config(priv_dir, Config), "profile", File])))
     || File <- ["trace.json", "summary.html", "flame.svg"]].

%% With the faults that are shown; also as from another machine, by a node of the cluster.
examined(Page, Config) ->
    [{Words, Shown}] = commands(weft_pages:block(Page, ["console"], "weft doctor")),
    {0, _} = weft(["kill", "n06"], Config),
    {0, _} = weft(["cut", "n03", "n05"], Config),
    until(fun() -> {Code, Said} = weft(Words, Config), {Code, plain(Said, Shown)} end,
          {1, plain(Shown, Shown)}),
    {ok, #{cookie := Cookie, epmd_port := Port}} =
        weft_local_files:load(filename:join(?config(priv_dir, Config), "clusters"), "local"),
    File = filename:join(?config(priv_dir, Config), "cookie"),
    ok = file:write_file(File, atom_to_list(Cookie)),
    Command = weft_pages:replaced(weft_pages:block(Page, ["sh"], "weft doctor --node"),
                                  [{"shop@db1.example.org", "n01@127.0.0.1"},
                                   {"/etc/shop/cookie", File}]),
    Placed = [{place, #{epmd => #{port => Port}}} | Config],
    {1, Found} = script(Command, Placed),
    ?assertMatch({match, _}, re:run(Found, "n06: does not answer")),
    {0, _} = weft(["restart", "n06"], Config),
    examined_before(weft_pages:block(Page, ["sh"], "weft doctor --config"), Placed).

%% Nothing of it runs. The deployment is that of its page.
examined_before(Commands, Config) ->
    Deployment = weft_pages:block("docs/guide/deploy.md", ["erlang", "terms", "deploy"],
                                  "%% shop.deploy"),
    _ = others([{"shop.deploy", Deployment},
                 {"config/sys.config", "[{weft, [{topology, full_mesh}]}]."},
                 {"config/vm.args", "-name shop@127.0.0.1\n-proto_dist weft\n"}], Config),
    {0, Said} = in(others(Config), Commands, Config),
    ?assertMatch({match, _}, re:run(Said, "shop: 5 nodes examined.*nothing found")),
    ?assertMatch({match, _}, re:run(Said, "config/sys.config: 1 node examined.*nothing found")).

%% All ways to start a cluster, each ended at once. Usually three of them.
clusters(Config) ->
    Dir = ?config(priv_dir, Config),
    Page = "docs/guide/command.md",
    ok = filelib:ensure_path(filename:join(Dir, "_build/default/lib/my_app/ebin")),
    ok = file:write_file(filename:join(Dir, "cluster.config"),
                         weft_pages:block(Page, ["erlang", "terms", "cluster"], "groups")),
    Lines = [hd(string:split(Line, "#"))
             || Line <- string:lexemes(weft_pages:block(Page, ["sh"], "weft up"), "\n")],
    [begin
         ["weft" | Words] = words(Line),
         ?assertMatch({_, {0, _}}, {Line, weft(Words, Config)}),
         {0, Status} = weft(["status" | name(Words)], Config),
         ?assertMatch({Line, {match, [Up, Up]}},
                      {Line, re:run(Status, "([0-9]+) of ([0-9]+) nodes up",
                                    [{capture, all_but_first, list}])}),
         ?assertMatch({0, _}, weft(["down" | name(Words)], Config))
     end || Line <- Lines].

%% The file has another name for its cluster.
name(Words) -> [Word || lists:member("--file", Words), Word <- ["--name", "two_sites"]].

commands(Text) ->
    [begin
         [Line | Said] = string:split(Command, "\n"),
         {words(Line), string:trim(lists:append(Said))}
     end || "weft " ++ Command <- string:split("\n" ++ Text, "\n$ ", all)].

words(Line) ->
    {match, Words} = re:run(Line, "'([^']*)'|\"([^\"]*)\"|(\\S+)",
                            [global, {capture, all_but_first, list}]),
    [lists:append(Word) || Word <- Words].

weft(Words, Config) ->
    Dir = ?config(priv_dir, Config),
    {Code, Said} = weft_cli_emulator:run(Dir, Words ++ ["--dir", filename:join(Dir, "clusters")],
                                         ?config(emulator, Config)),
    ct:log("weft ~ts~n~b~n~ts", [lists:join(" ", Words), Code, Said]),
    {Code, unicode:characters_to_list(Said)}.

%% What only looks is repeated: what it looks at comes after a while.
shown({[Word | _] = Words, Shown}, Config) when Word =:= "up"; Word =:= "down"; Word =:= "cut";
                                                Word =:= "heal" ->
    {0, Said} = weft(Words, Config),
    ?assertEqual({Words, plain(Shown, Shown)}, {Words, plain(Said, Shown)});
shown({Words, Shown}, Config) ->
    until(fun() -> {0, Said} = weft(Words, Config), plain(Said, Shown) end, plain(Shown, Shown)).

until(Look, Expected) ->
    try weft_test_nodes:until(fun() -> Look() =:= Expected end, ?LOOK_MS)
    catch error:{never_true, _} -> ?assertEqual(Expected, Look())
    end.

%% As far as it has to be as shown: if it fits to what is shown, it is that.
plain(_Said, "") -> "";
plain(Said, Shown) ->
    Pattern = string:replace(plain(Shown), "...", "\\E.*\\Q", all),
    case re:run(plain(Said), ["^\\Q", Pattern, "\\E$"], [dotall]) of
        {match, _} -> plain(Shown);
        nomatch -> plain(Said)
    end.

plain(Text) ->
    others_for(string:trim(Text),
               [{"logs in [^)]*", "logs in DIR"}, {"port [0-9]+", "port #"},
                {"(?<![a-z0-9.])[0-9]+(\\.[0-9]+)? (ms|s|B|kB|MB|bytes)\\b", "#"},
                {"[0-9]+ (in\\.|sessions)", "# \\1"}, {", [0-9]+ notes?", ""},
                {"[0-9]+ (resume|re-route)s?\\b", "# \\1s"}, {"resumed [^,]*,", "resumed,"},
                {"Reason: (broken|no_route)", "Reason: #"}, {"Last error: .*", "Last error: #"},
                {"(?m)^(n[0-9]+) +.*?(( n[0-9]+)+)$", "\\1 #\\2"},
                {"\\s*\nnote on .*(\n .*)*", ""}, {"\\s+", " "}]).

%% --- make, erl --------------------------------------------------------------------------------

%% What it would run is there.
make(Config) ->
    ok = linked(filename:join(others(Config), "weft")),
    [begin
         Text = weft_pages:replaced(weft_pages:block(Page, ["sh"], Words),
                                    [{"<this repository>", "https://example.org/weft"}]),
         {0, Said} = script(Text, Config),
         {match, Programs} = re:run(Said, "(?<![\\w/])(bin|test)/[\\w.]+",
                                    [global, {capture, first, list}]),
         ?assertEqual([], [Program || [Program] <- Programs,
                                      not filelib:is_file(filename:join(weft_guide:root(),
                                                                        Program))])
     end || {Page, Words} <- [{"README.md", "git clone"}, {"README.md", "make demo"},
                              {"README.md", "make test"}, {"docs/guide/compare.md", "make bench"}]].

%% Lines that begin shells, with an expression for each. The first one stays, and when it is there
%% the second one finds it.
shells(Config) ->
    SdErlang = weft_pages:block("docs/guide/sd_erlang.md", ["sh"], "erl -pa"),
    {0, Groups} = script([string:trim(SdErlang), " -noinput -eval 'ok = s_group:start(), "
                          "io:format(\"~p\", [s_group:own_s_groups()]), halt(0).'\n"], Config),
    ?assertNotEqual({Groups, nomatch}, {Groups, string:find(Groups, "[{g1,[a@h,b@h,c@h]}]")}),
    Both = weft_pages:block("docs/guide/crdt.md", ["sh"], "-sname"),
    [First, Second] = string:lexemes(Both, "\n"),
    Talk = "[_, Host] = string:lexemes(atom_to_list(node()), \"@\"), "
        "pong = net_adm:ping(list_to_atom(\"a@\" ++ Host)), #{} = weft:status(), "
        "{ok, _} = application:ensure_all_started(weft_crdt), halt(0).",
    {0, _} = script([First, " -noinput > /dev/null 2>&1 &\na=$!\ntrap 'kill -KILL $a' EXIT\n"
                     "for try in 1 2 3 4 5 6; do\n", Second, " -noinput -eval '", Talk,
                     "' && exit 0\ndone\nexit 1\n"], Config).

%% --- dependencies, Elixir ---------------------------------------------------------------------

%% A project with what is shown gets the application, from a repository that has it.
dependencies(Config) ->
    case [P || P <- ["git", "rebar3"], os:find_executable(P) =:= false] of
        [] ->
            Address = repository(filename:join(?config(priv_dir, Config), "repository")),
            Here = [{"<this repository>", Address}],
            by_rebar3(Here, Config),
            os:find_executable("mix") =:= false orelse by_mix(Here, Config),
            ok;
        [Program | _] -> {skip, "there is no " ++ Program ++ " here"}
    end.

repository(Dir) ->
    ok = filelib:ensure_path(filename:join(Dir, "apps/weft")),
    [] = os:cmd("cp -r " ++ weft_guide:root() ++ "/apps/weft/src " ++ Dir ++ "/apps/weft"),
    "done\n" = os:cmd("cd " ++ Dir ++ " && git init -q . && git checkout -q -b main && git add -A"
                      " && git -c user.name=x -c user.email=x commit -q -m x && echo done"),
    "file://" ++ Dir.

by_rebar3(Here, Config) ->
    Dir = dir("by_rebar3", Config),
    [Text] = weft_pages:blocks("README.md", ["erlang", "terms", "rebar"]),
    ok = file:write_file(filename:join(Dir, "rebar.config"), weft_pages:replaced(Text, Here)),
    {0, _} = in(Dir, "rebar3 get-deps", Config),
    fetched(filename:join(Dir, "_build/default/lib/weft")).

fetched(Dir) -> ?assert(filelib:is_regular(filename:join(Dir, "apps/weft/src/weft.app.src"))).

by_mix(Here, Config) ->
    Dir = dir("by_mix", Config),
    Text = weft_pages:block("docs/guide/elixir.md", ["elixir"], "defp deps"),
    ok = file:write_file(filename:join(Dir, "mix.exs"),
                         ["defmodule Reader.MixProject do\n  use Mix.Project\n",
                          "  def project, do: [app: :reader, version: \"0.1.0\", deps: deps()]\n",
                          weft_pages:replaced(Text, Here), "end\n"]),
    {0, _} = in(Dir, "mix deps.get > said 2>&1 || { cat said; exit 1; }", Config),
    fetched(filename:join(Dir, "deps/weft")).

%% What Elixir makes of the configurations is accepted, and names what there is.
elixir(Config) ->
    case os:find_executable("elixir") of
        false -> {skip, "there is no elixir here"};
        _ -> configured(Config)
    end.

configured(Config) ->
    Texts = [weft_pages:block(Page, ["elixir"], Words)
             || {Page, Words} <- [{"docs/guide/elixir.md", "config :weft"},
                                  {"docs/guide/elixir.md", "Rooms.Strategy"},
                                  {"docs/guide/discovery.md", "config :libcluster"},
                                  {"docs/guide/elixir.md", "Phoenix.PubSub"}]],
    [Weft, Rooms, App, Pubsub] = evaluated(Texts, dir("elixir", Config), Config),
    [{weft, Environment}] = Weft,
    ?assertNotMatch({error, _}, weft_config:check(Environment)),
    {'Elixir.Phoenix.PubSub', [{name, _}, {adapter, Adapter}]} = Pubsub,
    [{rooms, OfRooms}] = topologies(Rooms),
    [{app, OfApp}] = topologies(App),
    [{source, Source}, {options, Options}] = proplists:get_value(config, OfRooms),
    {module, Source} = code:ensure_loaded(Source),
    ?assertMatch({error, _}, Source:discover(Options)),
    Example = os:cmd("cat " ++ weft_guide:root() ++ "/examples/elixir/lib/rooms/*.ex"),
    [?assertNotEqual({Name, nomatch}, {Name, string:find(Example, "defmodule " ++ Name ++ " do")})
     || Module <- [Adapter, proplists:get_value(strategy, OfRooms)],
        "Elixir." ++ Name <- [atom_to_list(Module)]],
    {module, weft_discovery} = code:ensure_loaded(weft_discovery),
    %% libcluster adds the node to the arguments.
    [?assert(erlang:function_exported(Module, Function, length(Args) + Added))
     || Of <- [OfRooms, OfApp], {Key, Added} <- [{connect, 1}, {disconnect, 1}, {list_nodes, 0}],
        {Module, Function, Args} <- [proplists:get_value(Key, Of)]].

topologies([{libcluster, [{topologies, Topologies}]}]) -> Topologies.

%% Each as Erlang has it. All in one emulator.
evaluated(Texts, Dir, Config) ->
    Files = [begin
                 Name = integer_to_list(Number) ++ ".exs",
                 Import = [["import Config\n"] || string:find(Text, "config :") =/= nomatch],
                 ok = file:write_file(filename:join(Dir, Name), [Import, Text]),
                 Name
             end || {Number, Text} <- lists:zip(lists:seq(1, length(Texts)), Texts)],
    ok = file:write_file(filename:join(Dir, "all.exs"),
                         "for file <- System.argv() do\n"
                         "  value = if File.read!(file) =~ \"import Config\", "
                         "do: Config.Reader.read!(file), else: elem(Code.eval_file(file), 0)\n"
                         "  IO.puts(\"=\" <> Base.encode64(:erlang.term_to_binary(value)))\nend\n"),
    {0, Said} = in(Dir, lists:join(" ", ["elixir all.exs" | Files]), Config),
    [binary_to_term(base64:decode(Line)) || "=" ++ Line <- string:lexemes(Said, "\n")].

%% --- loads ------------------------------------------------------------------------------------

%% Of Basho Bench and of DE-Bench: what these would bring is a driver, and the page's own file.
loads_of_others(Config) ->
    Page = "docs/guide/load.md",
    Driver = "-module(theirs). -export([new/1, run/4]).\n"
        "-include(\"basho_bench.hrl\").\n"
        "new(Id) -> {ok, {Id, basho_bench_config:get(operations)}}. run(_, _, _, S) -> {ok, S}.\n",
    Load = "{mode, max}. {duration, {seconds, 1}}. {concurrent, 1}. {driver, theirs}.\n"
        "{operations, [{get, 1}]}.\n",
    DeBench = weft_pages:replaced(weft_pages:block(Page, ["erlang", "terms", "de_bench"], "packet"),
                                  [{"{seconds, 8}", "{seconds, 1}"}]),
    others([{"basho_bench/src/theirs.erl", Driver}, {"DEbench/bench.config", DeBench}
            | [{"basho_bench/examples/" ++ Name ++ ".config", Load}
               || Name <- ["null_err_test", "basho_bench_ets"]]], Config),
    [begin
         {0, Said} = script(weft_pages:block(Page, ["sh"], Words), Config),
         ?assertMatch({match, Reports} when length(Reports) =:= Count,
                      re:run(Said, "report.html", [global, {capture, first}]))
     end || {Words, Count} <- [{"basho_bench", 2}, {"DEbench", 1}]].

%% The hosts of the deployment are this machine.
a_load_on_hosts(Config) ->
    Page = "docs/guide/load.md",
    Load = weft_pages:replaced(weft_pages:block(Page, ["erlang", "terms", "load"], "driver_call"),
                               [{"{seconds, 10}", "{seconds, 1}"}]),
    Deployment = io_lib:format("{name, shop}.~n{epmd_port, ~b}.~n{family, web, #{count => 2}}.~n",
                               [weft_test_nodes:free_port()]),
    [ok = file:write_file(filename:join(?config(root, Config), Name), Text)
     || {Name, Text} <- [{"shop.config", Load}, {"shop.deploy", Deployment}]],
    {0, _} = script("weft deploy apply shop.deploy\n", Config),
    try
        {0, Said} = script(weft_pages:block(Page, ["sh"], "--cluster"), Config),
        ?assertMatch({match, _}, re:run(Said, "for these nodes of shop: .*web1@.*web2@")),
        ?assertMatch({match, _}, re:run(Said, "errors 0"))
    after
        script("weft deploy down shop.deploy\n", Config)
    end.

%% --- migration --------------------------------------------------------------------------------

%% Of RabbitMQ and ejabberd there is a module each.
sources_of_others(Config) ->
    Source = fun(Name) ->
                 ["-module(", Name, ").\n-export([f/1]).\n",
                  "f(X) -> pg:join(orders, self()), pg:leave(shop, X, self()).\n"]
             end,
    others([{"rabbitmq-server-3.10.8/deps/rabbit/src/theirs.erl", Source("theirs")},
            {"ejabberd-24.12/src/also_theirs.erl", Source("also_theirs")}], Config),
    [begin
         {0, Said} = script(weft_pages:block("docs/guide/migrate.md", ["sh"], Words), Config),
         [?assertMatch({_, {match, _}}, {Line, re:run(Said, Line, [multiline])})
          || Line <- ["^compiled +1$", "^rewritten +2$", "^left +0$"]]
     end || Words <- ["source rabbitmq", "source ejabberd"]].

%% The first line in a program beside the checkout, the second in the checkout.
places_to_read(Config) ->
    [InProgram, Here] = string:lexemes(weft_pages:block("docs/guide/migrate.md", ["sh"], "sites"),
                                       "\n"),
    Program = filename:join(?config(priv_dir, Config), "shop"),
    [] = os:cmd("cp -r " ++ weft_guide:root() ++ "/apps/weft_migrate/test/weft_migrate_data/shop "
                ++ Program),
    %% 1: something is left.
    {1, _} = in(Program, InProgram, Config),
    {0, Said} = script(Here, Config),
    ["project,file,line,column,rule,what" | [_ | _] = Places] = string:lexemes(Said, "\n"),
    ?assertEqual(["left", "rewritten"],
                 lists:usort([lists:last(string:lexemes(Place, ",")) || Place <- Places])).

%% --- a topology of the reader -----------------------------------------------------------------

%% The page's own module, with the name that the command has.
own_topology(Config) ->
    Page = "docs/guide/topologies.md",
    Dir = dir("own_topology", Config),
    Ebin = filename:join(Dir, "my_ring/ebin"),
    ok = filelib:ensure_path(Ebin),
    [Module] = weft_pages:blocks(Page, ["erlang", "module"]),
    File = filename:join(Ebin, "my_ring.erl"),
    ok = file:write_file(File, weft_pages:replaced(Module, [{"weft_chord_ring", "my_ring"}])),
    {ok, my_ring} = compile:file(File, [{outdir, Ebin}]),
    Command = weft_pages:replaced(weft_pages:block(Page, ["sh"], "rebar3 ct"),
                                  [{"/path/to/your/_build/default/lib", Dir}]),
    {0, Said} = script("unset FULL\n" ++ Command, Config),
    {match, [Passed]} = re:run(Said, "([0-9]+) passed", [{capture, [1], list}]),
    ?assert(list_to_integer(Passed) > 10).

%% --- small parts ------------------------------------------------------------------------------

%% A script in the root.
script(Text, Config) -> in(?config(root, Config), Text, Config).

in(Dir, Text, Config) ->
    Own = filename:join(?config(priv_dir, Config), "programs"),
    Weft = filename:join(?config(root, Config), "_build/default/bin"),
    Programs = [Path || Path <- [Own], Dir =:= ?config(root, Config)] ++ [Weft],
    All = [{"PATH", lists:append([Path ++ ":" || Path <- Programs]) ++ os:getenv("PATH")},
           {"HOME", ?config(priv_dir, Config)}, {"MIX_REBAR3", os:find_executable("rebar3")},
           {"MAKEFLAGS", false}],
    Script = lists:flatten(Text),
    ct:log("~ts", [Script]),
    weft_guide:run(Script, {Dir, All}, ?config(place, Config)).

others(Config) -> filename:join(?config(priv_dir, Config), "others").

others(Files, Config) ->
    [begin
         File = filename:join(others(Config), Name),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Text)
     end || {Name, Text} <- Files].

dir(Name, Config) ->
    Dir = filename:join(?config(priv_dir, Config), Name),
    ok = filelib:ensure_path(Dir),
    Dir.

replaced(Words, Others) -> [proplists:get_value(Word, Others, Word) || Word <- Words].

%% SPDX-License-Identifier: Apache-2.0
%% @doc What pages show is done as it stands there, on real nodes. Configurations and arguments: a
%% node starts with them, and so do the applications that they configure. Expressions: they are
%% evaluated in order, in one shell for each node of the page, and none may fail; most contain the
%% answer that they get. Names of nodes, ports and directories are those of this suite.
-module(weft_pages_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([configurations/1, arguments/1, without_epmd/1, alarms/1, broadcast/1, channels/1, chaos/1,
         dashboard/1, groups/1, names/1, profiles/1, ring/1, joining/1, strong_names/1,
         a_chat_by_hand/1, a_conversation/1]).
%% On nodes.
-export([started/1, begun/2, talk/2]).

-define(CALL_MS, 120000).

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [configurations, arguments, without_epmd, alarms, broadcast, channels, chaos, dashboard, groups,
     names, profiles, ring, joining, strong_names, a_chat_by_hand, a_conversation].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Dir = ?config(priv_dir, Config),
    ok = file:write_file(filename:join(Dir, "secret"), "a secret of this test, and a long one"),
    [{cacertfile, Authority}, _, {certfile, Own}, {keyfile, Key}] =
        weft_interop_certificates:options(Dir, app, [app]),
    [{ok, _} = file:copy(File, filename:join(Dir, Name))
     || {File, Name} <- [{Authority, "ca.pem"}, {Own, "node.pem"}, {Key, "node.key"}]],
    Config.

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- configurations ---------------------------------------------------------------------------

%% Those that no other case starts its nodes with, and what is the reader's in them.
shown_configurations() ->
    [{"README.md", weft, []},
     {"docs/guide/alarms.md", weft, [{"\"/etc/weft/webhook\"", "\"DIR/secret\""},
                                     {"/var/lib/weft", "DIR/recording"}]},
     {"docs/guide/discovery.md", weft, []},
     {"docs/guide/groups.md", weft, [{"/var/lib/app", "DIR"}]},
     {"docs/guide/kv.md", weft_ring, [{"/var/lib/myapp", "DIR"}]},
     {"docs/guide/kv_http.md", weft, [{"9480", "0"}]},
     {"docs/guide/names.md", weft, []},
     {"docs/guide/operating.md", weft, [{"/etc/app", "DIR"}, {"4370", "PORT"}, {"4371", "PORT"}]},
     {"docs/guide/partisan.md", weft, []},
     {"docs/guide/ring.md", weft_ring, []},
     {"docs/guide/topologies.md", weft, [{"@host:5672", "@127.0.0.1:PORT"}]},
     {"docs/guide/tuning.md", weft, []}].

%% The others are started with FULL=1.
is_shown_first(Page) ->
    lists:member(Page, ["README.md", "docs/guide/groups.md", "docs/guide/kv.md",
                        "docs/guide/topologies.md"]).

kind(weft) -> ["erlang", "config"];
kind(App) -> kind(weft) ++ [atom_to_list(App)].

configurations(Config) ->
    Here = [{"DIR", string:trim(?config(priv_dir, Config), trailing, "/")}, {"PORT", port()}],
    Failed = [{Page, Environment, Reason}
              || {Page, App, Others} <- shown_configurations(),
                 is_shown_first(Page) orelse os:getenv("FULL") =/= false,
                 Text <- weft_pages:blocks(Page, kind(App)),
                 Environment <- weft_pages:environments(weft_pages:replaced(Text, Others ++ Here),
                                                        kind(App)),
                 Reason <- [starts(Page, name(Text, Environment), Environment, Config)],
                 Reason =/= ok],
    ?assertEqual([], Failed).

%% The first name in it. A client is none of the servers.
name(Text, Environment) ->
    IsClient = string:find(io_lib:format("~0p", [Environment]), "role => client") =/= nomatch,
    case re:run(Text, "'([a-z0-9]+@[a-z0-9]+)'", [{capture, [1], list}]) of
        {match, [First]} when not IsClient -> list_to_atom(First);
        _ -> 'app@h1'
    end.

starts(Page, Name, Environment, Config) ->
    ct:log("~ts ~ts~n~0p", [Page, Name, Environment]),
    try start(Name, besides(Page) ++ Environment, #{}, modules_of(Page), Config) of
        _ -> ok
    catch
        Class:Reason -> {Class, Reason}
    after
        weft_test_nodes:stop_all()
    end.

%% What the page takes for granted.
besides("docs/guide/kv_http.md") -> [{weft_ring, [{vnodes, [weft_kv_vnode]}]}];
besides(_) -> [].

%% Those of the reader which a page shows, or names.
modules_of("docs/guide/ring.md" = Page) ->
    weft_pages:blocks(Page, ["erlang", "module"])
        ++ ["-module(my_store). -export([hand_over/1]). hand_over(_) -> ok."];
modules_of(_) ->
    [].

%% --- arguments --------------------------------------------------------------------------------

%% Each part of a vm.args: two nodes begin with it, and talk over weft.
arguments(Config) ->
    [begin
         ct:log("~ts~n~ts", [Page, Text]),
         Args = ["-args_file", file("vm.args", Text, Config)],
         [A, B] = [start(Name, [], #{args => Args, carrier => stock}, [], Config)
                   || Name <- [a, b]],
         talk_over_weft(A, B),
         ok = weft_test_nodes:stop_all()
     end || Page <- ["README.md", "docs/guide/elixir.md"],
            Text <- weft_pages:blocks(Page, ["args"])].

%% With the ports that the page configures.
without_epmd(Config) ->
    Page = "docs/guide/operating.md",
    [Text] = weft_pages:blocks(Page, ["args"]),
    Ports = weft_pages:replaced(weft_pages:block(Page, kind(weft), "ports"),
                                [{"4370", port()}, {"4371", port()}]),
    [Environment] = weft_pages:environments(Ports, kind(weft)),
    Args = ["-args_file", file("vm.args", Text, Config)],
    [A, B] = [start(Name, Environment, #{args => Args, carrier => stock}, [], Config)
              || Name <- [app, db]],
    talk_over_weft(A, B),
    ?assertEqual({ok, []}, weft_test_nodes:call(A, erl_epmd, names, [])).

talk_over_weft(A, B) ->
    Other = weft_test_nodes:name(B),
    ?assertEqual(pong, weft_test_nodes:call(A, net_adm, ping, [Other])),
    ?assertMatch([{Other, _}], weft_test_nodes:call(A, weft_group_suggestion, traffic, [])).

%% --- expressions ------------------------------------------------------------------------------

%% The last block is that of a recording, which is read elsewhere.
alarms(Config) ->
    Page = page("docs/guide/alarms.md", [{"a@h1", a}, {"b@h2", b}],
                #{environment => [{weft_ops, [{sample_ms, 100}]}], apps => []}, Config),
    said(Page, "{ok, _} = weft_group:create(g, ['a@h1', 'b@h2'])."),
    shown(Page, "ensure_all_started"),
    said(Page, "until(fun() -> #{nodes := #{'b@h2' := #{}}} = weft_ops:picture(), true end),
                erpc:cast('b@h2', erlang, halt, []),
                until(fun() -> weft_ops:alarms() =/= [] end)."),
    shown(Page, "acknowledge"),
    said(Page, "[#{acknowledged := #{}} | _] = weft_ops:alarms().").

broadcast(Config) ->
    shown(page("docs/guide/broadcast.md", [{"a@h1", a}], #{}, Config), "weft:broadcast").

channels(Config) ->
    Page = page("docs/guide/channels.md", [{"a@host", a}, {"b@host", b}, {"c@host", c}],
                #{environment => shown}, Config),
    said(Page, "[{ok, _} = erpc:call(Node, gen_server, start, [{local, Name}, db, [], []])
                 || {Name, Node} <- [{server, 'b@host'}, {sink, 'b@host'},
                                     {sink, 'c@host'}]].
                Record = 1, K = key, V = 2, Event = event, Pid = self()."),
    shown(Page, "weft:cast"),
    said(Page, "event = receive Event -> Event after 5000 -> nothing end.").

%% The schedule in a tenth of its time.
chaos(Config) ->
    Page = page("docs/guide/chaos.md", [{"a@h1", a}, {"b@h2", b}, {"c@h3", c}],
                #{environment => shown, instead => {"([0-9]+)000\\b", "\\g{1}00"}}, Config),
    shown(Page, "Schedule"),
    said(Page, "[] = Failed, [_ | _] = Done."),
    said(Page, "{ok, _} = application:ensure_all_started(weft_ring)."),
    shown(Page, "weft_chaos:off").

dashboard(Config) ->
    Page = page("docs/guide/dashboard.md", [{"a@h1", a}], #{}, Config),
    said(Page, "application:set_env(weft_dashboard, port, 0)."),
    shown(Page, "weft_dashboard").

%% What is proposed is not what is shown; how it is said is.
groups(Config) ->
    File = "docs/guide/groups.md",
    Names = [{"a@h1", a}, {"b@h1", b}, {"g@h2", g}, {"c@h1", c}],
    Page = page(File, Names, #{instead => {"fun work/0", "fun m:f/0"}}, Config),
    shown(Page, "weft_group:add"),
    said(Page, "{ok, _} = weft_group:create(left, ['a@h1', 'b@h1']), Event = event,
                [{ok, _} = erpc:call(Node, gen_server, start, [{local, audit}, db, [], []])
                 || Node <- ['a@h1', 'b@h1']]."),
    shown(Page, "weft_group:scope"),
    said(Page, "[ok = erpc:call('b@h1', weft_attributes, Change, [Name, Value])
                 || {Change, Name, Value} <- [{update, cores, 8}, {insert, roles, [db]},
                                              {insert, zone, [europe]}]],
                [ok = erpc:call(Node, weft_attributes, update, [memory_free, 1 bsl 40])
                 || Node <- ['a@h1', 'b@h1']]."),
    shown(Page, "weft_place"),
    said(Page, "['b@h1'] = Nodes."),
    [ok = weft_test_nodes:call(ref(Of, Page), ?MODULE, talk, [node_name(To), 100])
     || {Of, To} <- [{"a@h1", b}, {"c@h1", g}]],
    Session = weft_pages:console(weft_pages:block(File, ["erlang", "shell"], "suggest")),
    [{_, _, Suggest, ""}, {_, _, Print, Shown}] = Session,
    said(Page, weft_pages:replaced(Suggest ++ " " ++ Print, [{"60000", "2000"}])),
    [Why] = said(Page, "Why."),
    ?assertEqual(sentences(Shown), sentences(lists:join("\n", Why))).

%% Without names of nodes and groups, numbers and ends of lines.
sentences(Text) ->
    Plain = lists:foldl(fun({Pattern, By}, Of) ->
                                re:replace(Of, Pattern, By, [global, {return, list}])
                        end, lists:flatten(Text),
                        [{"\n(?!group)", " "}, {"[a-z0-9_]+@[a-z0-9-]+(, )?", "N"}, {"N+", "N"},
                         {"group[0-9]+", "G"}, {"[0-9.]+ (bytes|(k|M)?B)", "BYTES"},
                         {"[0-9]+", "#"}]),
    lists:usort(string:lexemes(Plain, "\n")).

names(Config) ->
    Page = page("docs/guide/names.md", [{"a@h1", a}], #{}, Config),
    said(Page, "Pid = self(), Other = spawn(timer, sleep, [infinity])."),
    shown(Page, "weft_names"),
    shown(Page, "weft_pg").

profiles(Config) ->
    Page = page("docs/guide/profile.md", [{"a@h1", a}, {"b@h2", b}],
                #{instead => {"seconds => 5", "seconds => 1"}, apps => [weft_profile]}, Config),
    said(Page, "Node = 'b@h2', {ok, _} = weft_group:create(g1, ['a@h1', 'b@h2'])."),
    shown(Page, "weft_profile"),
    said(Page, "[true = filelib:is_regular(File)
                 || File <- [\"profile/summary.html\", \"profile/trace.json\", \"trace.json\"]].").

%% Each node has a directory of its own.
ring(Config) ->
    Page = page("docs/guide/ring.md", [{"a@h1", a}, {"b@h2", b}, {"c@h3", c}],
                #{environment => shown, others => [{"/var/lib/myapp", "DIR"}]}, Config),
    shown(Page, "create()"),
    said(Page, "until(fun() -> #{members := M} = weft_ring:status(), map_size(M) =:= 3 end)."),
    shown(Page, "commit"),
    said(Page, "until(fun() -> #{owned := O, moving := 0} = weft_ring:status(),
                               map_size(O) =:= 3 end),
                64 = lists:sum(maps:values(Owned))."),
    shown(Page, "primaries"),
    said(Page, "3 = length(Owners), 3 = length(Nodes).").

joining(Config) ->
    Page = page("docs/guide/topologies.md", [{"a@h1", a}, {"n1@h1", b}, {"n3@h3", c}],
                #{environment => [{weft, [{topology, full_mesh}]}]}, Config),
    said(Page, "until(fun() -> lists:member('n3@h3', weft:members()) end),
                erpc:cast('n3@h3', erlang, halt, []),
                until(fun() -> not lists:member('n3@h3', nodes()) end)."),
    shown(Page, "weft:join").

strong_names(Config) ->
    Page = page("docs/internals/strong-names.md", [{"a@h1", a}, {"b@h2", b}, {"c@h3", c}],
                #{environment => shown}, Config),
    said(Page, "until(fun() -> ok =:= weft_names:register({accounts, make_ref()}, self()) end)."),
    shown(Page, "accounts").

%% --- the chat ---------------------------------------------------------------------------------

%% Two nodes as the lines say, of stock distribution. What is said takes a moment.
a_chat_by_hand(Config) ->
    Steps = weft_pages:console(weft_pages:block("examples/chat/README.md", ["console"], "chat:")),
    Page = lists:foldl(fun(Step, Shells) -> by_hand(Step, Shells, Config) end, [], Steps),
    ?assertMatch([_, _], Page).

by_hand({command, "", "erl -pa ../../_build/default/lib/chat/ebin -sname " ++ Rest, ""}, Shells,
        Config) ->
    [Name, "-setcookie", Cookie] = string:lexemes(Rest, " "),
    Ref = start(list_to_atom(Name), [], #{carrier => stock, cookie => Cookie}, [], Config),
    [{Name, Ref} | Shells];
by_hand({expression, Where, Text, Shown}, [{Last, _} | _] = Shells, _Config) ->
    Name = case Where of "" -> Last; _ -> Where end,
    {Name, Ref} = lists:keyfind(Name, 1, Shells),
    Expected = weft_pages:replaced(Shown, [{"n02@host", atom_to_list(node_name(n02))}]),
    Says = fun() ->
                   {ok, Values} = weft_test_nodes:call(Ref, weft_page_shell, said, [Text]),
                   lists:flatten(io_lib:format("~p", [lists:last(Values)]))
           end,
    case Shown of
        "" -> Says();
        _ -> weft_test_nodes:until(fun() -> string:find(plain(Says()), plain(Expected)) =/= nomatch
                                   end)
    end,
    Shells.

%% A name needs quotes or not.
plain(Text) -> [Char || Char <- Text, Char =/= $'].

%% A conversation of two nodes that takes a second. On every node, as the page says.
a_conversation(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "conversations"),
    ok = filelib:ensure_path(Dir),
    ok = chat_town:write(filename:join(Dir, "town.txt"), #{nodes => 2, lines => 50, seconds => 1}),
    Refs = [start(Name, [{chat, []}], #{}, [], Config) || Name <- [n01, n02]],
    Nodes = io_lib:format("Nodes = ~p.", [[weft_test_nodes:name(Ref) || Ref <- Refs]]),
    [Open, Ready, Play, Counters] =
        string:lexemes(weft_pages:block("examples/chat/README.md", ["erlang"], "chat:ready"), "\n"),
    [{ok, _} = weft_test_nodes:call(Ref, weft_page_shell, said, [lists:flatten(Text)])
     || Text <- [Nodes, Open, Ready, "until(fun() -> chat:ready() end).", Play, Counters],
        Ref <- Refs],
    weft_test_nodes:until(fun() ->
                              maps:get(ok, chat:verdict([weft_test_nodes:call(Ref, chat, report, [])
                                                         || Ref <- Refs]))
                          end).

%% --- a page and its nodes ---------------------------------------------------------------------

%% Nodes with the configuration that the page shows, or another one, are started and connected.
%% Words of the page that are not those of this suite: names of nodes, `others', and numbers that
%% would take long.
page(File, Names, Options, Config) ->
    Nodes = [{Shown, node_name(Name)} || {Shown, Name} <- Names],
    Page = #{file => File, nodes => Names, instead => maps:get(instead, Options, none),
             others => weft_pages:quoted(Nodes)},
    [First | Others] = Refs =
        [{Shown, start(Name, environment(Name, Page, Options, Config), Options, modules(), Config)}
         || {Shown, Name} <- Names],
    [pong = weft_test_nodes:call(element(2, First), net_adm, ping, [weft_test_nodes:name(Ref)])
     || {_, Ref} <- Others],
    Page#{refs => Refs}.

environment(Name, #{file := File, others := Nodes}, #{environment := shown} = Options, Config) ->
    [Text | _] = weft_pages:blocks(File, kind(weft)),
    Others = Nodes ++ maps:get(others, Options, [])
        ++ [{"DIR", filename:join(?config(priv_dir, Config), Name)}],
    [Environment] = weft_pages:environments(weft_pages:replaced(Text, Others), kind(weft)),
    Environment;
environment(_Name, _Page, Options, _Config) ->
    maps:get(environment, Options, []).

%% The block with these words, at the nodes that its comments name.
shown(#{file := File, instead := Instead, refs := Refs} = Page, Words) ->
    Text = weft_pages:block(File, ["erlang"], Words),
    Here = case Instead of
               none -> Text;
               {Pattern, By} -> re:replace(Text, Pattern, By, [global, {return, list}])
           end,
    [said_at(ref(Name, Page), Line, Page)
     || {At, Line} <- weft_pages:lines(Here, [Name || {Name, _} <- Refs]), Name <- At].

%% What the test says, at the first of them.
said(#{refs := [{_, First} | _]} = Page, Text) ->
    said_at(First, lists:flatten(Text), Page).

said_at(Ref, Text, #{others := Others, file := File}) ->
    Here = weft_pages:replaced(Text, Others),
    ct:log("~ts: ~ts~n~ts", [weft_test_nodes:name(Ref), File, Here]),
    case weft_test_nodes:call(Ref, weft_page_shell, said, [Here], ?CALL_MS) of
        {ok, Values} -> Values;
        {failed, Expression, Why} -> ct:fail({File, Expression, Why})
    end.

ref(Name, #{refs := Refs}) -> element(2, lists:keyfind(Name, 1, Refs)).

%% A node with a configuration file. The applications that are in it run, and so does a shell.
start(Name, Environment, Options, Modules, Config) ->
    Sys = file("sys.config", io_lib:format("~p.~n", [Environment]), Config),
    Flags = ["-connect_all", "false"],
    Ref = weft_test_nodes:start(Name, Options#{args => ["-config", filename:rootname(Sys) | Flags]
                                                   ++ maps:get(args, Options, []) ++ paths()},
                                ?config(place, Config)),
    ok = weft_test_nodes:call(Ref, ?MODULE, begun, [?config(priv_dir, Config), Modules]),
    Apps = maps:get(apps, Options, [App || {App, _} <- Environment]),
    case weft_test_nodes:call(Ref, ?MODULE, started, [Apps]) of
        ok -> Ref;
        Failed -> ct:fail({Name, Failed})
    end.

%% @private
-spec begun(file:filename(), [string()]) -> ok.
begun(Dir, Modules) ->
    ok = file:set_cwd(Dir),
    ok = weft_page_shell:load(Modules),
    weft_page_shell:start().

%% @private With weft, if that carries the node.
-spec started([atom()]) -> ok | [term()].
started(Apps) ->
    Carrier = [weft || {ok, [["weft"] | _]} <- [init:get_argument(proto_dist)]],
    Results = [{App, application:ensure_all_started(App)} || App <- Carrier ++ Apps],
    case [Failed || {_, {error, _}} = Failed <- Results] of
        [] -> ok;
        Failed -> Failed
    end.

%% @private Of each node of a pair with the other, from now on.
-spec talk(node(), pos_integer()) -> ok.
talk(Node, EveryMs) ->
    _ = spawn(fun Talk() ->
                      _ = erpc:call(Node, erlang, byte_size, [rand:bytes(100000)]),
                      receive after EveryMs -> Talk() end % pacing: ten times a second
              end),
    ok.

%% What the reader's own modules are in these pages.
modules() ->
    Server = " -behaviour(gen_server). -export([init/1, handle_call/3, handle_cast/2])."
        " -export([handle_info/2]). init(_) -> {ok, none}."
        " handle_call(_, _, State) -> {reply, ok, State}."
        " handle_cast(_, State) -> {noreply, State}. handle_info(_, State) -> {noreply, State}.",
    ["-module(" ++ Name ++ ")." ++ Server || Name <- ["account", "db", "invoices"]]
        ++ ["-module(m). -export([f/0]). f() -> ok."].

%% --- small parts ------------------------------------------------------------------------------

file(Name, Text, Config) ->
    Number = integer_to_list(erlang:unique_integer([positive])),
    File = filename:join([?config(priv_dir, Config), Number, Name]),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, unicode:characters_to_binary(Text)),
    File.

%% Applications, libraries that are installed, and what is here.
paths() ->
    Here = filename:dirname(code:which(?MODULE)),
    lists:append([["-pa", filename:absname(Path)]
                  || Path <- [Here | code:get_path()], not lists:prefix(code:root_dir(), Path),
                     Path =:= Here orelse lists:suffix("/ebin", Path)]).

port() -> integer_to_list(weft_test_nodes:free_port()).

node_name(Name) -> weft_test_nodes:node_name(Name).

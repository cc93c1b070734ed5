%% SPDX-License-Identifier: Apache-2.0
%% @doc What is found in a source, and what is not, and how it is reported.
-module(weft_migrate_scan_tests).

-include_lib("eunit/include/eunit.hrl").

-define(DATA, "apps/weft_migrate/test/weft_migrate_data").

%% ---- kinds ----

what_does_not_scale_is_found_test_() ->
    [{Code, ?_assertEqual(Expected, ids(["f(X, Y) -> ", Code, "."]))}
     || {Code, Expected} <- names() ++ tuples() ++ groups() ++ calls() ++ nodes_of()].

names() ->
    [{"global:register_name(x, self())", [global_names]},
     {"global : whereis_name ( x )", [global_names]},
     {"'global':'sync'()", [global_names]},
     {"?CHECK(global:send(x, y))", [global_names]},
     {"global:set_lock({a, b})", [global_locks]},
     {"global:trans({a, b}, X, [node() | nodes()])", [global_locks, nodes_membership]},
     {"global:trans({a, b}, X, Y, 3)", [global_locks_some]},
     {"global:del_lock({a, b}, [node()])", [global_locks_some]},
     {"gen_server:call({global, X}, Y)", [global_via]},
     {"gen_statem:start_link({global, {a, X}}, m, [], [])", [global_via]},
     {"X = {global, name}", [global_via]},
     {"X = {global, \"name\"}", [global_via]},
     {"apply(global, X, Y)", [global_dynamic]},
     {"rpc:call(X, global, sync, [])", [global_dynamic]},
     {"#{start => {global, start_link, []}}", [global_dynamic]},
     {"fun global:sync/0", [global_dynamic]},
     {"{global, true}", []},
     {"re:replace(X, Y, [], [global])", []},
     {"{global, X, Y}", []},
     {"case X of {global, N} -> N end", []},
     {"globalx:sync()", []},
     {"other:set_lock(global, [])", []},
     {"execute(global, insert_node, [X, Y])", []},
     {"execute(global, send, [X])", []},
     {"{global, insert_node, []}", []},
     {"start_child(global, send, [X, Y])", [global_dynamic]},
     {"{global, trans, [X | Y]}", [global_dynamic]},
     {"rpc:call(X, global, insert_node, [])", [global_dynamic]},
     {"\"global:sync()\"", []}].

%% Names in tuples, and modules that are computed.
tuples() ->
    [{"gen_server:call({via, global, X}, Y)", [global_via]},
     {"X = {via, global, name}", [global_via]},
     {"case X of {via, global, N} -> N end", []},
     {"{global, X#s.name}", [global_via]},
     {"{global, <<\"name\">>}", [global_via]},
     {"{global, 5}", []},
     {"global:set_lock({global, self()})", [global_locks]},
     {"{global, name()}", [global_via]},
     {"{global, X ++ Y}", [global_via]},
     {"{X:whereis_name(global), a}", [global_dynamic]},
     {"{X:send(a, b), re:run(X, Y, [global])}", []},
     {"{X:send(a, b), [global]}", [global_dynamic]},
     {"{fun X:register_name/2, [global]}", [global_dynamic]}].

groups() ->
    [{"pg:join(a, self())", [pg]},
     {"#{start => {pg, start_link, [scope]}}", [pg_dynamic]},
     {"start_child(id, pg, [X])", [pg_dynamic]},
     {"maybe pg:join(X) ?= 1 else X -> 1 end", [pg]},
     {"io:format(?MODULE_STRING \": ~p\" ?NL, pg:which_groups())", [pg]},
     {"pg:join(~\"a\", [~b\"ä\", ~\"c\"])", [pg]},
     {"X = [pg, {pg, 1}]", []},
     {"{pg, select, [X]}", []},
     {"{X:get_members(a), start(pg)}", [pg_dynamic, pg_dynamic]},
     {"[X:get_closest_pid(a), pg2]", [pg2]},
     {"pg2:create(a)", [pg2]},
     {"X = pg2", [pg2]},
     {"global_group:monitor_nodes(true)", [global_group]},
     {"gen_server:call(global_group, X, Y)", []},
     {"s_group:new_s_group(X, Y)", [s_group]}].

calls() ->
    [{"rpc:multicall(m, f, [])", [call_all]},
     {"rpc:multicall(m, f, [], 5000)", [call_all]},
     {"rpc:multicall(X, m, f, [])", [call_many]},
     {"rpc:multicall(nodes(), m, f, [])", [call_all, nodes_membership]},
     {"erpc:multicall([node() | nodes()], m, f, [])", [call_all, nodes_membership]},
     {"rpc:eval_everywhere(m, f, [])", [call_all]},
     {"gen_server:multi_call(a, b)", [call_all]},
     {"gen_server:abcast(X, a, b)", [call_many]},
     {"rpc:call(X, m, f, [])", []},
     {"rpc:call(X, ets, tab2list, [t])", [large_message]},
     {"X ! {all, ets:tab2list(t)}", [large_message]},
     {"gen_server:cast(X, file:read_file(Y))", [large_message]},
     {"X ! small", []},
     {"net_adm:world()", [world]},
     {"net_kernel:monitor_nodes(true, [])", [monitor_nodes]}].

nodes_of() ->
    [{"[{a, N} ! X || N <- nodes()]", [nodes_loop]},
     {"[N || N <- [node() | nodes(connected)]]", [nodes_loop]},
     {"lists:foreach(X, erlang:nodes())", [nodes_loop]},
     {"lists:member(X, nodes())", [nodes_membership]},
     {"length(nodes())", [nodes_membership]},
     {"nodes(hidden)", []},
     {"m:nodes()", []}].

ids(Code) -> [Id || #{id := Id} <- findings(Code)].

findings(Code) ->
    weft_migrate_scan:findings(
      weft_migrate_source:of_bytes("f.erl", unicode:characters_to_binary(Code))).

%% The first of these is a name, and an option that is kept; the others are keys wherever they are.
keys_of_tables_are_no_names_test() ->
    ?assertEqual(
       [1, 1], [Line || #{id := global_via, line := Line}
                         <- findings("a() -> b({global, n}), ets:insert(t, {c, {global, n}}).\n"
                                     "c() -> ets:insert(t, [{{global, x}, 1}, {{global, y}, 0}]).\n"
                                     "d() -> ets:lookup(t, {global, z}), e({global, x}).\n"
                                     "e() -> {{global, z}, {global, y}}.\n")]).

what_switches_a_feature_on_is_read_test() ->
    ?assertEqual([pg], ids("-feature(maybe_expr, enable).\nf() -> pg:which_groups().\n")).

types_are_no_calls_test() ->
    ?assertEqual([], ids("-spec f(global:name(), pg:group()) -> {global, x}.\n"
                         "-type t() :: {global, atom()}.\n")).

macros_are_looked_into_test() ->
    ?assertMatch([#{id := global_via, inside := "-define", line := 1, column := 12}],
                 findings("-define(S, {global, server}).")),
    ?assertEqual([global_names], ids("-define(W(X), global:whereis_name(X)).")),
    ?assertEqual([global_dynamic], ids("-import(global, [send/2]).")).

a_macro_that_is_the_module_is_read_test() ->
    ?assertEqual([pg, global_locks, global_names, global_via],
                 ids("-define(PG, pg).\n-define(G, global).\n-define(Q, lqueue).\n"
                     "f(X) -> ?PG:join(a, X), ?G:set_lock(X), ?G:send(a, X), {?G, X}, "
                     "?Q:join(a, X), ?Q:whereis_name(X).\n")).

defaults_of_records_are_read_test() ->
    ?assertMatch([#{id := global_via, inside := "-record"}],
                 findings("-record(s, {name = {global, a} :: {global, b}}).\n")).

a_place_is_that_of_the_module_test() ->
    ?assertMatch([#{line := 3, column := 7, inside := "f/1", text := <<"ä, global:sync()."/utf8>>}],
                 findings("%% ü\nf(_) -> \n   ä, global:sync().\n")).

what_cannot_be_read_is_told_with_the_words_in_it_test() ->
    ?assertMatch([#{id := unread, line := 1}, #{id := global_names, line := 1, note := _}],
                 findings("f() -> ) global:sync().")),
    ?assertMatch([#{id := unread}, #{id := call_many, note := _}],
                 findings("f() -> ) rpc:multicall(a, b, []).")).

%% ---- Elixir ----

elixir_is_scanned_by_words_test() ->
    Found = weft_migrate_elixir:findings(
              "a.ex", <<"x = \"ä\"; :global.trans(a, b) # :global.sync\n"
                        "{:global, name}\n# Node.list\nNode.list() |> f\n\":global.x\"\n"/utf8>>),
    ?assertEqual([{elixir_global, 1, 10}, {elixir_global, 2, 1}, {elixir_nodes, 4, 1},
                  {elixir_global, 5, 2}],
                 [{Id, Line, Column} || #{id := Id, line := Line, column := Column} <- Found]).

each_word_of_elixir_is_found_test_() ->
    [{Line, ?_assertEqual(Ids, [Id || #{id := Id} <- weft_migrate_elixir:findings(
                                                       "a.ex", list_to_binary(Line))])}
     || {Line, Ids} <-
            [{":pg.join(:a, self())", [elixir_pg]}, {":pg2.join(:a, self())", [elixir_pg]},
             {"children = [%{id: :pg, start: {:pg, :start_link, [:a]}}]", [elixir_pg]},
             {"  @groups :pg", [elixir_pg]}, {"  @registry :global", [elixir_global]},
             {"GenServer.call({:via, :global, :a}, :b)", [elixir_global]},
             {"apply(:global, f, [])", [elixir_global]}, {"registry = :global", [elixir_global]},
             {"registry == :global", []}, {"f(scope: :global)", []}, {"{:pg, 1}", []},
             {":rpc.multicall(Node.list(), :m, :f, [])", [elixir_nodes, elixir_calls]},
             {":erpc.multicall(nodes, :m, :f, [])", [elixir_calls]},
             {":rpc.call(node, :m, :f, [])", []},
             {"GenServer.multi_call(:server, :x)", [elixir_calls]},
             {"GenServer.abcast(:server, :x)", [elixir_calls]},
             {"GenServer.call(:server, :x)", []}]].

%% ---- reports ----

shop() ->
    {ok, Report} = weft_migrate:scan([filename:join(root(), ?DATA)]),
    Report.

root() -> filename:dirname(filename:dirname(filename:dirname(filename:dirname(source_of())))).

source_of() -> proplists:get_value(source, module_info(compile)).

every_kind_that_is_found_is_in_each_report_test() ->
    #{findings := Findings} = Report = shop(),
    Text = unicode:characters_to_binary(weft_migrate_terminal:report(Report)),
    Page = iolist_to_binary(weft_migrate_page:report(Report)),
    {_, _} = xmerl_scan:string(binary_to_list(Page), [{quiet, true}]),
    {ok, #{<<"runs">> := [#{<<"results">> := Results}]}} =
        weft_json:decode(iolist_to_binary(weft_json:encode(weft_migrate_sarif:report(Report)))),
    ?assertEqual(length(Findings), length(Results)),
    [begin
         #{title := Title, todo := Todo} = weft_migrate_catalogue:entry(Id),
         ?assertMatch({_, _}, binary:match(Text, list_to_binary(Todo))),
         ?assertMatch({_, _}, binary:match(Page, list_to_binary(Title)))
     end || #{id := Id} <- Findings].

sarif_has_the_place_and_the_rule_test() ->
    Finding = #{id => pg, file => "a b/ü.erl", line => 3, column => 5, inside => "f/1",
                text => <<"pg:join(x)">>},
    #{runs := [#{results := [Result], tool := #{driver := #{rules := Rules}}}]} =
        weft_migrate_sarif:report(#{files => 1, findings => [Finding], failed => []}),
    ?assertMatch(#{ruleId := pg, level := note,
                   locations := [#{physicalLocation :=
                                       #{artifactLocation := #{uri := <<"a%20b/%C3%BC.erl">>},
                                         region := #{startLine := 3, startColumn := 5}}}]},
                 Result),
    ?assertMatch([_], [Id || #{id := pg = Id} <- Rules]).

a_path_that_is_not_there_is_an_error_test() ->
    ?assertMatch({error, "there is no /no/such" ++ _}, weft_migrate:scan(["/no/such"])).

a_directory_without_sources_is_an_error_test() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    Deps = filename:join([Dir, "deps", "a"]),
    ok = filelib:ensure_path(Deps),
    ok = file:write_file(filename:join(Deps, "a.erl"), "f() -> ok.\n"),
    Results = [weft_migrate:scan([Path]) || Path <- [Dir, filename:dirname(Deps)]],
    ok = file:del_dir_r(Dir),
    ?assertMatch([{error, "there is no source below /" ++ _}, {ok, #{files := 1}}], Results).

an_unreadable_file_is_told_and_the_rest_scanned_test() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    ok = file:make_symlink("f.erl", filename:join(Dir, "f.erl")),
    ok = file:write_file(filename:join(Dir, "g.erl"), "g() -> pg2:which_groups().\n"),
    Result = weft_migrate:scan([Dir]),
    ok = file:del_dir_r(Dir),
    ?assertMatch({ok, #{files := 2, failed := [{_, "too many" ++ _}],
                        findings := [#{id := pg2}]}}, Result).

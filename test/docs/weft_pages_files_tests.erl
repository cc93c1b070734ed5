%% SPDX-License-Identifier: Apache-2.0
%% @doc What documents show that needs no other nodes: files for commands, and expressions that
%% compute something, are used as they stand there. Only what takes long takes less here.
-module(weft_pages_files_tests).

-include_lib("eunit/include/eunit.hrl").

%% ---- files for commands ----

%% The other one of the page needs the nodes of a deployment.
a_load_runs_test_() ->
    {timeout, 60, fun() -> in_dir(fun loaded/1) end}.

loaded(Dir) ->
    Text = weft_pages:block("docs/guide/load.md", ["erlang", "terms", "load"], "driver_ets"),
    File = filename:join(Dir, "load.config"),
    ok = file:write_file(File, weft_pages:replaced(Text, [{"{seconds, 10}", "{seconds, 1}"}])),
    {ok, Config} = weft_load_config:read(File),
    {ok, #{total := Total, errors := [], crashed := []}} =
        weft_load:run(Config, #{dir => filename:join(Dir, "out"), progress => fun(_) -> ok end}),
    ?assertMatch(#{get := #{units := Got}, put := #{units := Put}} when Got > Put, Total).

%% What comes with weft is measured with the first file, but for what it leaves out; with the second
%% one all that it names, from a directory in the layout of BenchErl.
benchmarks_are_found_test() ->
    [Few, Originals, _Tables] = blocks("bencherl.md", ["ini", "bencherl"]),
    {ok, Own} = weft_bencherl_config:parse(list_to_binary(Few)),
    ?assertMatch(#{schedulers := [1, 2, 3, 4], slaves := [0], version := intermediate,
                   iterations := 5, otps := [{"25", "erl"}, {"27", "/opt/otp27"}],
                   erl_args := [{"free", "+sbt u"}, {"bound", "+sbt db"}]}, Own),
    {ok, All} = weft_bencherl_bench:find(weft_bencherl_config:defaults()),
    {ok, Found} = weft_bencherl_bench:find(Own),
    ?assertEqual(["dialyzer"], names(All) -- names(Found)),
    in_dir(fun(Dir) ->
        File = filename:join(Dir, "originals.conf"),
        ok = file:write_file(File, weft_pages:replaced(Originals, [{"bencherl/", Dir}])),
        {ok, #{include := Include} = Theirs} = weft_bencherl_config:read(File),
        ?assertEqual(14, length(Include)),
        [ok = filelib:ensure_dir(filename:join([Dir, "bench", Name, "src", Name ++ ".erl"]))
         || Name <- Include],
        [ok = file:write_file(filename:join([Dir, "bench", Name, "src", Name ++ ".erl"]), "")
         || Name <- Include],
        {ok, Those} = weft_bencherl_bench:find(Theirs),
        ?assertEqual({Include, []}, {names(Those), [B || #{source := none} = B <- Those]})
    end).

%% With each release and each set of flags.
tables_are_measured_test() ->
    [_, _, Tables] = blocks("bencherl.md", ["ini", "bencherl"]),
    {ok, Config} = weft_bencherl_config:parse(list_to_binary(Tables)),
    ?assertMatch(#{schedulers := [1, 2], otps := [{"25", "erl"}, {"27", _}, {"29", _}],
                   erl_args := [{"each", "+rg 64"}, {"one", "+rg 1"}]}, Config),
    {ok, Found} = weft_bencherl_bench:find(Config),
    ?assertEqual(["ets_bench", "ets_random_ops"], names(Found)).

names(Benches) -> [Name || #{name := Name} <- Benches].

%% The program runs with the generators of the reader.
generators_reach_vertices_test() ->
    [Text] = blocks("workloads.md", ["erlang", "module"]),
    in_dir(fun(Dir) ->
        File = filename:join(Dir, "my_generators.erl"),
        ok = file:write_file(File, Text),
        {ok, #{generators := [{my_generators, double}, {my_generators, triple}] = Generators}} =
            weft_orbit_own:read(File),
        {ok, #{size := Size}} = weft_bench_program:run(weft_orbit,
                                                       #{generators => Generators, space => 1000,
                                                         workers => 2}, [node()], 60000),
        ?assertEqual(length(reached([0], [], 1000)), Size)
    end).

reached([], Known, _) -> Known;
reached([X | Rest], Known, Space) ->
    case lists:member(X, Known) of
        true -> reached(Rest, Known, Space);
        false -> reached([(2 * X + 1) rem Space, (3 * X + 2) rem Space | Rest], [X | Known], Space)
    end.

%% Of which one has eight times as many cores as the other.
nodes_go_to_the_hosts_test() ->
    [Text] = blocks("deploy.md", ["erlang", "terms", "hosts"]),
    in_dir(fun(Dir) ->
        File = filename:join(Dir, "shop.deploy"),
        ok = file:write_file(File, ["{name, shop}. {family, web, #{count => 9}}.\n", Text]),
        {ok, Terms} = file:consult(File),
        {ok, #{hosts := Hosts, dir := "/home/shop/weft"} = Spec} = weft_deploy_spec:new(Terms),
        Seen = maps:from_list([{Host, {ok, #{cores => 2, releases => [], closed => [],
                                             nodes => #{}}}} || #{host := Host} <- Hosts]),
        Given = #{counts => weft_deploy_spec:counts(Spec, #{}), versions => #{web => "1"},
                  placed => #{}, cores => #{"db1.example.org" => 2}, dir => "/", erl => "erl"},
        Desired = weft_deploy_nodes:desired(Spec, [], Given),
        #{start := Start} = weft_deploy_plan:new(Desired, Seen, [], [], false),
        At = [Host || #{host := Host} <- Start],
        ?assertEqual({9, 8}, {length(At), length([x || "db2.example.org" <- At])}),
        ?assertEqual(["db1.example.org", "db2.example.org"], lists:usort(At))
    end).

%% ---- what a receiver gets ----

a_receiver_gets_what_is_shown_test() ->
    [Text] = blocks("alarms.md", ["json"]),
    {ok, #{<<"at">> := At, <<"text">> := Words} = Shown} =
        weft_json:decode(unicode:characters_to_binary(Text)),
    AtMs = calendar:rfc3339_to_system_time(binary_to_list(At), [{unit, millisecond}]),
    Alarm = #{id => {unreachable, 'b@h2', 'b@h2'}, severity => critical, text => Words,
              acknowledged => no},
    ?assertEqual({ok, Shown},
                 weft_json:decode(weft_ops_webhook_message:body({raised, Alarm}, 'a@h1', AtMs))).

%% ---- expressions ----

%% Each block with what is there before it.
expressions_test_() ->
    [{Page, {timeout, 600, fun() -> evaluated(Page, Words, Before, Others) end}}
     || {Page, Words, Before, Others} <-
            [{"shape.md", "grouping", "", []},
             {"chaos.md", "random", "Seed = 1, Nodes = ['a@h', 'b@h', 'c@h'].", []},
             {"topologies.md", "{topology", "Module = weft_full_mesh_core, Options = #{}.", []},
             {"topologies.md", "run_own", "", seeds()}]].

seeds() -> [{"lists:seq(1, 100)", "lists:seq(1, 10)"} || os:getenv("FULL") =:= false].

evaluated(Page, Words, Before, Others) ->
    Text = block(Page, Words),
    {{ok, _}, Bindings} = weft_page_shell:evaluate(Before, erl_eval:new_bindings()),
    {Said, _} = weft_page_shell:evaluate(weft_pages:replaced(Text, Others), Bindings),
    ?assertMatch({ok, [_ | _]}, Said).

%% Its last minute but one is read, and all that was written.
a_recording_is_read_test() ->
    Text = block("alarms.md", "weft_ops_recording"),
    in_dir(fun(Dir) ->
        Sample = #{node => a, at_ms => 5},
        Event = #{at_ms => 1, kind => silent, node => a, about => none, text => <<>>},
        recorded(Dir, [{1000, {sample, Sample}}, {2000, {event, Event}}, {3000, {silent, b}}],
                 [{70000, {silent, a}}, {71000, {event, Event}}]),
        Before = erl_eval:add_binding('Dir', Dir, erl_eval:new_bindings()),
        {{ok, _}, Bindings} = weft_page_shell:evaluate(Text, Before),
        [?assertEqual({Name, {value, Value}}, {Name, erl_eval:binding(Name, Bindings)})
         || {Name, Value} <- [{'FromMs', 1000}, {'ToMs', 71000}, {'Events', [Event, Event]},
                              {'Problems', []}]],
        {value, #{nodes := Nodes}} = erl_eval:binding('Picture', Bindings),
        ?assertEqual(#{a => Sample, b => silent}, Nodes)
    end).

recorded(Dir, First, Second) ->
    _ = lists:foldl(fun(Entries, Files) ->
                        {ok, Chunk} = weft_ops_chunk:add(Entries, weft_ops_chunk:new()),
                        {AtMs, _} = hd(Entries),
                        {ok, Next} = weft_ops_recording_files:append(
                                       AtMs, weft_ops_chunk:encode(Chunk), Files),
                        Next
                    end, weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}),
                    [First, Second]).

%% ---- helpers ----

blocks(Page, Kind) -> weft_pages:blocks("docs/guide/" ++ Page, Kind).

block(Page, Words) -> weft_pages:block("docs/guide/" ++ Page, ["erlang"], Words).

in_dir(Test) ->
    Dir = string:trim(os:cmd("mktemp -d")) ++ "/",
    try Test(Dir) after file:del_dir_r(Dir) end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The house checks catch what they are for: each rule gets a good and a bad sample.
-module(house_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SOURCE, "apps/weft/src/link/sample.erl").
-define(SUITE, "test/sample/sample_SUITE.erl").

%%% Text

a_good_source_file_has_no_problem_test() ->
    ?assertEqual([], text(?SOURCE, good_source())).

each_text_rule_catches_its_bad_sample_test_() ->
    Licence = "%% SPDX-License-Identifier: Apache-2.0\n",
    Header = Licence ++ "%% @doc One.\n%% Two.\n",
    Test = fun(Line) -> "%% SPDX-License-Identifier: Apache-2.0\n" ++ Line ++ "\n" end,
    Samples = [
        {licence, ?SOURCE, "%% @doc One.\n%% Two.\n%% Three.\n-module(sample).\n"},
        {columns, ?SOURCE, Header ++ lists:duplicate(101, $%) ++ "\n"},
        {module_lines, ?SOURCE, Header ++ lists:duplicate(450, $\n)},
        {module_lines, ?SUITE, Test(lists:duplicate(800, $\n))},
        {header, ?SOURCE, Licence ++ "%% @doc One.\n-module(sample).\n"},
        {header, ?SOURCE, Licence ++ "%% One.\n%% Two.\n-module(sample).\n"},
        {header, ?SOURCE, Header ++ "-module(sample).\n-export([]).\n-callback init() -> ok.\n"},
        {header, "apps/weft/src/overlay/sample_core.erl", Header ++ "-module(sample_core).\n"},
        {marker, "README.md", "TO" "DO: finish\n"},
        {machine_path, "docs/start.md", "cd /wo" "rk/main\n"},
        {machine_path, "bin/demo", "# SPDX-License-Identifier: Apache-2.0\nLOG=/ro" "ot/log\n"},
        {kill_by_name, "bin/demo", "# SPDX-License-Identifier: Apache-2.0\npk" "ill -f beam\n"},
        {keyword, ?SUITE, Test("    {ok, may" "be} = it(),")},
        {sleep, ?SUITE, Test("    timer:sl" "eep(100),")},
        {sleep, ?SUITE, Test("    rec" "eive after 100 -> ok end,")}
    ],
    [{atom_to_list(Rule) ++ " in " ++ File, ?_assertEqual([Rule], text(File, Text))}
     || {Rule, File, Text} <- Samples].

time_that_is_the_matter_of_a_test_is_permitted_test() ->
    Lines = ["%% SPDX-License-Identifier: Apache-2.0\n",
             "    timer:sleep(100), % pacing: ten messages a second\n",
             "    % pacing: lets the timer of the session fire\n",
             "    receive after 100 -> ok end,\n",
             "    receive after infinity -> ok end\n"],
    ?assertEqual([], text(?SUITE, lists:append(Lines))).

a_path_inside_of_the_project_is_no_machine_path_test() ->
    Text = "see apps/wo" "rk/src and https://example.org/wo" "rk/x\n",
    ?assertEqual([], text("docs/start.md", Text)).

%%% Shape

a_clause_of_40_lines_is_permitted_and_of_41_is_not_test() ->
    ?assertEqual([], house_shape:check(?SOURCE, clause(40))),
    Long = iolist_to_binary(["-module(sample).\n\n", clause(41)]),
    ?assertMatch([#{rule := clause_lines, line := 3, subject := "sample:long", value := 41}],
                 house_shape:check(?SOURCE, Long)).

clauses_are_measured_one_by_one_and_without_comments_test() ->
    Short = "f(a) ->\n    fun(X) when X > 1 -> a; (_) ->\n    case b of\n c -> d; e -> g end end",
    Comments = lists:duplicate(41, "    %% why\n"),
    ?assertEqual([], house_shape:check(?SOURCE, iolist_to_binary(
        [lists:join(";\n", lists:duplicate(15, Short)), ".\ng() ->\n", Comments, "    ok.\n"]))).

a_script_may_begin_with_a_shebang_test() ->
    Script = <<"#!/usr/bin/env escript\nmain(_) -> ok.\n">>,
    ?assertEqual([], house_shape:check("bin/x.escript", Script)).

%%% Links

links_lead_to_files_and_headings_test() ->
    Dir = filename:join("/tmp", "house_links_" ++ os:getpid()),
    Other = filename:join(Dir, "docs/other.md"),
    ok = filelib:ensure_dir(Other),
    ok = file:write_file(Other, "# The `other_one` page, v2\n"),
    Problems = fun(Text) ->
                   [lists:flatten(Problem)
                    || #{text := Problem} <- house_links:check(Dir, "docs/a.md",
                                                               iolist_to_binary(Text))]
               end,
    try
        ?assertEqual([], Problems("# Here\n[x](other.md), [y](#here), [z](https://weft.example/)\n"
                                  "[v](other.md#the-other_one-page-v2) `f[x](nothing)`\n"
                                  "```\n[w](nothing)\n```\n")),
        ?assertEqual(["none.md is not there", "other.md#two has no such heading",
                      "../none.svg is not there"],
                     Problems("[x](none.md) and [y](other.md#two)\n![z](../none.svg)\n"))
    after ok = file:del_dir_r(Dir)
    end.

%%% Purity

each_impure_call_of_a_core_is_caught_test_() ->
    [{Body, ?_assertMatch([#{rule := purity, subject := "sample_core", line := 3}],
                          purity([{sample_core, "f(X) ->\n    " ++ Body ++ "."}]))}
     || Body <- ["X ! hello", "self()", "erlang:monotonic_time(millisecond)", "spawn(X)",
                 "receive X -> ok end", "erlang:send_after(10, X, y)", "rand:uniform(X)",
                 "rand:seed(exsss)", "ets:insert(t, X)", "gen_server:call(X, y)", "logger:info(X)",
                 "persistent_term:get(X)", "application:get_env(weft, X)", "io:format(X)",
                 "file:read_file(X)", "put(x, X)", "get(X)",
                 "lists:foreach(fun erlang:display/1, X)", "crypto:strong_rand_bytes(X)",
                 "node()", "[self() || _ <- X]"]].

a_core_may_compute_test_() ->
    [{Body, ?_assertEqual([], purity([{sample_core, "f(X) ->\n    " ++ Body ++ "."}]))}
     || Body <- ["rand:uniform_s(10, X)", "rand:seed_s(exsss, X)", "crypto:hash(sha256, X)",
                 "maps:get(x, X)", "node(X)", "timer:seconds(X)", "erlang:phash2(X)"]].

a_core_that_reaches_a_clock_through_another_module_is_caught_test() ->
    Clock = {helper, "now_ms() ->\n    erlang:system_time().\npure() ->\n    now_ms."},
    ?assertMatch([#{rule := purity, line := 3}],
                 purity([{sample_core, "f() ->\n    helper:now_ms()."}, Clock])),
    ?assertEqual([], purity([{sample_core, "f() ->\n    helper:pure()."}, Clock])).

only_cores_have_to_be_pure_test() ->
    ?assertEqual([], purity([{sample, "f() ->\n    self()."}])).

%%% Layers

a_call_up_is_caught_and_a_call_down_is_not_test() ->
    Up = layered([{"link", low, "f() ->\n    high:f()."}, {"carrier", high, "f() ->\n    ok."}]),
    ?assertMatch([#{rule := layer, subject := "low -> high", line := 3}], Up),
    Down = layered([{"link", low, "f() ->\n    ok."}, {"carrier", high, "f() ->\n    low:f()."}]),
    ?assertEqual([], Down).

a_behaviour_in_a_layer_above_is_caught_test() ->
    ?assertMatch([#{rule := layer}],
                 layered([{"overlay", low, "-behaviour(high).\nf() ->\n    ok."},
                          {"service", high, "f() ->\n    ok."}])).

a_name_of_a_layer_above_is_caught_test_() ->
    High = {"carrier", high, "f() ->\n    {ok, low}."},
    [?_assertEqual({Named, Body},
                   {[{Rule, Subject, Line} || #{rule := Rule, subject := Subject, line := Line}
                                                  <- layered([{"link", low, "f() ->\n    " ++ Body},
                                                              High])], Body})
     || {Named, Body} <- [{[{name, "low -> high", 3}], "whereis(high)."},
                          {[{name, "low -> high", 3}], "gen_server:call(high, high)."},
                          {[{name, "low -> high", 3}], "(fun(M) -> M:f() end)(high)."},
                          {[{name, "low -> high", 3}], "{case x of high -> 1 end,\n high}."},
                          {[{layer, "low -> high", 3}], "high:f()."},
                          {[{layer, "low -> high", 3}], "fun high:f/0."},
                          {[], "[low, weft, \"high\", high_too]."}]].

a_folder_that_is_in_no_layer_is_caught_test() ->
    ?assertMatch([#{rule := layer, subject := "attic/box"}],
                 layered([{"attic/box", low, "f() ->\n    ok."}])).

rooms_of_a_layer_are_in_an_order_too_test() ->
    Rooms = fun(One, Two) ->
        [Subject || #{subject := Subject} <- layered([{"link/lane", lane, One},
                                                      {"link/dial", dial, Two}])]
    end,
    ?assertEqual([], Rooms("f() ->\n    ok.", "f() ->\n    lane:f().")),
    ?assertEqual(["lane -> dial"], Rooms("f() ->\n    dial:f().", "f() ->\n    ok.")).

%% The entries of apps/weft/src, in the order of house.config; after a colon the rooms of each.
the_architecture_lists_the_folders_in_their_order_test() ->
    {ok, Config} = file:consult("test/house/house.config"),
    {layers, Folders} = lists:keyfind(layers, 1, Config),
    Expected = [{Layer, [Room || Folder <- Folders, [L, Room] <- [filename:split(Folder)],
                                 L =:= Layer]}
                || [Layer] <- [filename:split(Folder) || Folder <- Folders]],
    {ok, Text} = file:read_file("ARCHITECTURE.md"),
    {match, Entries} = re:run(Text, "^apps/weft/src/(\\w+) +(.*(?:\n +.*)*)",
                              [global, multiline, {capture, [1, 2], list}]),
    IsLayerFirst = fun({One, _}, {Two, _}) -> first(One, Folders) =< first(Two, Folders) end,
    ?assertEqual(lists:sort(IsLayerFirst, Expected),
                 [{Layer, listed(Said, proplists:get_value(Layer, Expected, []))}
                  || [Layer, Said] <- Entries]).

%% Where the first folder of a layer is.
first(Layer, [Folder | Others]) ->
    case filename:split(Folder) of
        [Layer | _] -> 0;
        _ -> 1 + first(Layer, Others)
    end.

listed(_Said, []) ->
    [];
listed(Said, _Rooms) ->
    [_, List] = string:split(Said, ": ", trailing),
    string:lexemes(List, ", \n").

the_architecture_lists_applications_after_those_that_they_need_test() ->
    Needs = maps:from_list([{App, proplists:get_value(applications, Keys)}
                            || File <- filelib:wildcard("{apps,examples}/*/src/*.app.src"),
                               {ok, [{application, App, Keys}]} <- [file:consult(File)]]),
    {ok, Text} = file:read_file("ARCHITECTURE.md"),
    {match, Names} = re:run(Text, "^(?:apps|examples)/(\\w+) ",
                            [global, multiline, {capture, all_but_first, list}]),
    Listed = [weft | [list_to_atom(Name) || [Name] <- Names]],
    ?assertEqual(lists:sort(maps:keys(Needs)), lists:sort(Listed)),
    Later = fun(App) -> tl(lists:dropwhile(fun(Other) -> Other =/= App end, Listed)) end,
    ?assertEqual([], [{App, needs, Needed} || App <- Listed, Needed <- map_get(App, Needs),
                                              lists:member(Needed, Later(App))]).

the_library_needs_nothing_but_otp_test() ->
    ?assertMatch([#{rule := application, subject := "weft"}],
                 house_layers:check(#{modules => #{}, apps => #{weft => {"f", [kernel, proper]}}},
                                    layer_config())).

applications_that_need_each_other_are_caught_test() ->
    Apps = #{a => {"a.app.src", [kernel, b]}, b => {"b.app.src", [a]}, c => {"c.app.src", [a]}},
    ?assertMatch([#{file := "a.app.src"}, #{file := "b.app.src"}],
                 house_layers:check(#{modules => #{}, apps => Apps}, layer_config())).

a_call_into_an_undeclared_application_is_caught_test() ->
    Modules = facts([{"apps/a/src/", a, x, "f() ->\n    y:f(),\n    xmerl_lib:any_nosuch()."},
                     {"apps/b/src/", b, y, "f() ->\n    lists:reverse([])."}]),
    Check = fun(Needs) ->
        Apps = #{a => {"", [stdlib | Needs]}, b => {"", [stdlib]}},
        [Subject || #{subject := Subject} <- house_layers:check(#{modules => Modules, apps => Apps},
                                                                layer_config())]
    end,
    ?assertEqual(["a -> b", "a -> xmerl"], Check([])),
    ?assertEqual([], Check([b, xmerl])).

%%% Circles

modules_that_need_each_other_are_caught_test() ->
    Calls = [{a, "f() ->\n    b:f()."}, {b, "f() ->\n    fun c:f/0."}, {c, "-behaviour(a)."}],
    ?assertMatch([#{rule := circle, subject := "a, b, c", value := 3}], circles(Calls)).

a_chain_of_calls_is_no_circle_test() ->
    ?assertEqual([], circles([{a, "f() ->\n    b:f(),\n    f()."}, {b, "f() ->\n    c:f()."},
                              {c, "f() ->\n    lists:reverse([])."}])).

a_call_by_way_of_a_variable_is_no_circle_test() ->
    ?assertEqual([], circles([{a, "f(Handler) ->\n    Handler:f()."},
                              {b, "f() ->\n    a:f(b)."}])).

two_circles_are_two_problems_test() ->
    ?assertMatch([#{subject := "a, b"}, #{subject := "c, d"}],
                 circles([{a, "f() ->\n    b:f()."}, {b, "f() ->\n    a:f(), c:f()."},
                          {c, "f() ->\n    d:f()."}, {d, "f() ->\n    c:f()."}])).

%%% Folders

every_folder_has_a_readme_that_names_a_file_test() ->
    Folders = fun(Readme) ->
        house_folders:check([{"apps/weft/src/README.md", <<"Begin with `a/b.erl`.">>},
                             {"apps/weft/src/a/b.erl", <<>>} | Readme])
    end,
    ?assertMatch([#{rule := folder, subject := "apps/weft/src/a"}], Folders([])),
    Said = fun(Text) -> Folders([{"apps/weft/src/a/README.md", Text}]) end,
    ?assertMatch([#{rule := folder}], Said(<<"A is for b.">>)),
    ?assertMatch([#{rule := folder}], Said(<<"Begin with `c.erl`.">>)),
    ?assertEqual([], Said(<<"Begin with `b.erl`.">>)).

a_folder_of_many_files_is_caught_test() ->
    Check = fun(Count) ->
        Files = [{"apps/weft/src/" ++ integer_to_list(N) ++ ".erl", <<>>}
                 || N <- lists:seq(2, Count)],
        house_folders:check([{"apps/weft/src/README.md", <<"Begin with `2.erl`.">>} | Files])
    end,
    ?assertEqual([], Check(25)),
    ?assertMatch([#{rule := folder, subject := "apps/weft/src"}], Check(26)).

a_folder_of_many_files_is_caught_in_any_application_test() ->
    Check = fun(Folder, Count) ->
        house_folders:check([{Folder ++ integer_to_list(N) ++ ".erl", <<>>}
                             || N <- lists:seq(1, Count)])
    end,
    ?assertEqual([], Check("apps/any/src/", 25)),
    ?assertMatch([#{rule := folder, subject := "apps/any/src"}], Check("apps/any/src/", 26)),
    ?assertMatch([#{rule := folder, subject := "apps/any/src/a"}], Check("apps/any/src/a/", 26)),
    ?assertEqual([], Check("apps/any/test/", 26)).

%%% Specs

an_exported_function_without_spec_is_caught_test() ->
    Text = "-export([f/0, g/0]).\n-spec f() -> ok.\nf() ->\n    ok.\n"
           "g() ->\n    h().\nh() ->\n    ok.",
    ?assertMatch([#{rule := spec, subject := "x", line := 6}], spec([{x, Text}])).

a_callback_needs_no_spec_test() ->
    Otp = "-behaviour(gen_server).\n-export([init/1]).\ninit(X) ->\n    X.",
    ?assertEqual([], spec([{x, Otp}])),
    Own = "-behaviour(y).\n-export([work/1, other/1]).\nwork(X) ->\n    X.\nother(X) ->\n    X.",
    Behaviour = "-callback work(term()) -> term().",
    ?assertMatch([#{rule := spec, line := 6}], spec([{x, Own}, {y, Behaviour}])).

a_callback_of_a_library_that_is_not_here_needs_one_test_() ->
    {timeout, 60, fun a_callback_of_a_library_that_is_not_here_needs_one/0}.

a_callback_of_a_library_that_is_not_here_needs_one() ->
    Text = "-behaviour(no_such_library).\n-export([work/1]).\nwork(X) ->\n    X.",
    ?assertMatch([#{rule := spec, line := 4}], spec([{x, Text}])).

%%% Permissions

a_permission_covers_exactly_what_is_used_test() ->
    Problems = [house:problem(sleep, "a", Line, "a", "") || Line <- [1, 2]],
    Permit = fun(Limit) -> [{permit, sleep, "a", Limit, "because"}] end,
    ?assertEqual(Problems, house:permit(Problems, [])),
    ?assertEqual(Problems, house:permit(Problems, Permit(1))),
    ?assertEqual([], house:permit(Problems, Permit(2))),
    ?assertMatch([#{rule := ratchet, subject := "a"}], house:permit(Problems, Permit(3))).

%%% Samples

good_source() ->
    "%% SPDX-License-Identifier: Apache-2.0\n%% @doc Adds.\n%%\n%% Not here: multiplication.\n"
    "-module(sample).\n-export([]).\n".

text(File, Text) ->
    lists:usort([Rule || #{rule := Rule} <- house_text:check(File, iolist_to_binary(Text))]).

clause(Lines) ->
    iolist_to_binary(["long() ->\n", lists:duplicate(Lines - 2, "    ok,\n"), "    ok.\n"]).

purity(Modules) ->
    Facts = facts([{"apps/weft/src/overlay/", weft, M, Text} || {M, Text} <- Modules]),
    house_purity:check(#{modules => Facts}).

spec(Modules) ->
    house_spec:check(#{modules => facts([{"apps/a/src/", a, M, Text} || {M, Text} <- Modules])}).

circles(Modules) ->
    house_circles:check(#{modules => facts([{"apps/weft/src/", weft, M, Text}
                                            || {M, Text} <- Modules])}).

layered(Modules) ->
    Facts = facts([{"apps/weft/src/" ++ Folder ++ "/", weft, M, Text}
                   || {Folder, M, Text} <- Modules]),
    Apps = #{weft => {"", [kernel, stdlib]}},
    house_layers:check(#{modules => Facts, apps => Apps}, layer_config()).

layer_config() ->
    [{layers, ["link", "link/lane", "link/dial", "overlay", "carrier", "service"]}].

facts(Modules) ->
    maps:from_list([{M, (house_facts:module(filename:join(Dir, atom_to_list(M) ++ ".erl"),
                                            forms(M, Text)))#{app := App}}
                    || {Dir, App, M, Text} <- Modules]).

forms(Module, Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:concat(["-module(", Module, ").\n", Text, "\n"])),
    parse(Tokens, []).

parse([], _) ->
    [];
parse([{dot, _} = Dot | Rest], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | parse(Rest, [])];
parse([Token | Rest], Form) ->
    parse(Rest, [Token | Form]).

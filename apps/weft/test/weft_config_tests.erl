%% SPDX-License-Identifier: Apache-2.0
%% @doc Errors of the configuration say which key is wrong, what it must be, and what was meant.
-module(weft_config_tests).

-include_lib("eunit/include/eunit.hrl").

defaults_are_valid_test() ->
    ?assertEqual(ok, weft_config:check([{Key, Default}
                                        || {Key, Default, _, _} <- rows()])),
    ?assertEqual(ok, weft_config:check([])).

an_unknown_key_gets_the_nearest_known_one_test_() ->
    [?_assertNotEqual(nomatch, string:find(error_of([{Key, 1}]), "did you mean " ++ Meant ++ "?"))
     || {Key, Meant} <- [{lane, "lanes"}, {resume_timeout, "resume_timeout_ms"},
                         {window_byte, "window_bytes"}, {cluster_nam, "cluster_name"},
                         {stock_node, "stock_nodes"}]].

an_unknown_key_like_no_other_gets_them_all_test() ->
    Text = error_of([{something_else_entirely, 1}]),
    ?assertNotEqual(nomatch, string:find(Text, "unknown option something_else_entirely")),
    [?assertNotEqual(nomatch, string:find(Text, atom_to_list(Key)))
     || {Key, _, _, _} <- rows()].

a_wrong_value_is_named_with_what_it_must_be_test_() ->
    [begin
         Text = error_of([{Key, Value}]),
         {Key, _, _, Expected} = lists:keyfind(Key, 1, rows()),
         ?_assertEqual(lists:flatten(io_lib:format("weft: ~s is ~0p, it must be ~s",
                                                   [Key, Value, Expected])), Text)
     end || {Key, Value} <- [{lanes, 0}, {lanes, 65}, {lanes, "4"}, {cluster_name, ""},
                             {cluster_name, 17}, {cluster_name, lists:duplicate(256, $x)},
                             {transport, udp}, {tls_options, none}, {family, inet4},
                             {window_bytes, 1}, {resume_timeout_ms, -1}, {keepalive_ms, 0},
                             {idle_keepalive_ms, never},
                             {handshake_timeout_ms, infinity}, {pending_handshakes_max, 0},
                             {stock_nodes, true}, {ports, [{"a", 1}]}, {ports, #{"a" => 70000}},
                             {circuits, both}, {hop_limit, 0}, {faults, 1}, {groups, #{all => []}},
                             {groups, #{g => ["a@h"]}}, {groups, [g]}, {groups_file, 7},
                             {group_names, []}, {attributes, [roles]}]].

all_errors_are_told_test() ->
    Text = error_of([{lanes, 0}, {family, x}, {lames, 1}]),
    [?assertNotEqual(nomatch, string:find(Text, Part))
     || Part <- ["lanes is", "family is", "lames"]].

a_link_must_be_able_to_hear_a_keepalive_in_time_test() ->
    ?assertNotEqual(nomatch, string:find(error_of([{keepalive_ms, 6000}]),
                                         "link_timeout_ms (5000) must be more than keepalive_ms")),
    ?assertEqual(ok, weft_config:check([{keepalive_ms, 6000}, {link_timeout_ms, 20000}])).

idle_lanes_rest_for_fifteen_keepalives_unless_told_otherwise_test_() ->
    Of = fun(Env) ->
             [application:set_env(weft, Key, Value) || {Key, Value} <- Env],
             Ms = weft_link_keys:idle_keepalive_ms(),
             [application:unset_env(weft, Key) || {Key, _} <- Env],
             Ms
         end,
    [?_assertEqual(15000, Of([])), ?_assertEqual(3000, Of([{keepalive_ms, 200}])),
     ?_assertEqual(5000, Of([{topology, {pubsub, #{}}}])),
     ?_assertEqual(700, Of([{keepalive_ms, 200}, {idle_keepalive_ms, 700}]))].

%% --- tuning -----------------------------------------------------------------------------------

what_is_not_set_often_may_be_in_tuning_or_by_itself_test_() ->
    [[?_assertEqual(ok, weft_config:check([{Key, Default}])),
      ?_assertEqual(ok, weft_config:check([{tuning, #{Key => Default}}]))]
     || {Key, Default, _, _} <- weft_config:tuning()].

both_forms_are_read_test() ->
    Read = fun(Env) ->
               [application:set_env(weft, Key, Value) || {Key, Value} <- Env],
               ok = weft_config:load(),
               Values = [weft_config:get(Key) || Key <- [hop_limit, keepalive_ms]],
               [application:unset_env(weft, Key) || {Key, _} <- Env],
               ok = weft_config:load(),
               Values
           end,
    ?assertEqual([8, 1000], Read([])),
    ?assertEqual([5, 1000], Read([{hop_limit, 5}])),
    ?assertEqual([5, 1000], Read([{tuning, #{hop_limit => 5}}])),
    ?assertEqual([5, 700], Read([{hop_limit, 5}, {tuning, #{keepalive_ms => 700}}])).

a_key_that_is_given_twice_is_an_error_test() ->
    ?assertEqual("weft: keepalive_ms is given twice, by itself and in tuning: leave one of them "
                 "out", error_of([{keepalive_ms, 900}, {tuning, #{keepalive_ms => 900}}])).

tuning_is_checked_like_what_stands_by_itself_test_() ->
    [?_assertEqual(Text, error_of([{tuning, Tuning}]))
     || {Tuning, Text} <-
            [{[{hop_limit, 5}], "weft: tuning is [{hop_limit,5}], it must be a map of options"},
             {#{hop_limit => 0}, "weft: hop_limit is 0, it must be an integer from 1 to 255"},
             {#{hop_limits => 5}, "weft: unknown option hop_limits, did you mean hop_limit?"},
             {#{lanes => 2}, "weft: lanes is no option of tuning, it stands by itself: {lanes, 2}"},
             {#{keepalive_ms => 6000},
              "weft: link_timeout_ms (5000) must be more than keepalive_ms (6000)"}]].

relations_are_between_keys_of_either_form_test() ->
    ?assertEqual(ok, weft_config:check([{keepalive_ms, 6000},
                                        {tuning, #{link_timeout_ms => 20000}}])),
    ?assertMatch("weft: pins: init is pinned to the channel fast, " ++ _,
                 error_of([{channels, #{slow => #{}}}, {tuning, #{pins => #{init => fast}}}])),
    ?assertEqual(ok, weft_config:check([{channels, #{fast => #{}}},
                                        {tuning, #{pins => #{init => fast}}}])).

roles_and_zone_of_a_node_are_lists_test_() ->
    [?_assertEqual(Text, error_of([{tuning, #{attributes => Attributes}}]))
     || {Attributes, Text} <-
            [{#{roles => db}, "weft: roles in attributes is db: write a list, as [db, web]"},
             {#{zone => <<"eu">>, disk => 5},
              "weft: zone in attributes is <<\"eu\">>: write a list, as [europe, dc1]"},
             {#{zone => [eu | dc1]},
              "weft: zone in attributes is [eu|dc1]: write a list, as [europe, dc1]"}]]
    ++ [?_assertEqual(ok, weft_config:check([{tuning, #{attributes => Attributes}}]))
        || Attributes <- [#{roles => [], zone => [eu, dc1]},
                          #{roles => {dynamic, {m, f}}, zone => {automatic, {m, f, [1]}}}]].

no_key_is_in_two_layers_test() ->
    Keys = [Key || {Key, _, _, _} <- rows()],
    ?assertEqual([], Keys -- lists:usort(Keys)).

each_key_has_a_row_in_the_documentation_test_() ->
    [{File, ?_assertEqual(lists:sort([Key || {Key, _, _, _} <- Rows]),
                          lists:sort(documented(File, Heading, Next)))}
     || {File, Heading, Next, Rows} <-
            [{"README.md", "\n## Configuration\n", "\n## ", weft_config:keys()},
             {"docs/guide/tuning.md", "# Tuning\n", "\n# ", weft_config:tuning()}]].

%% As for the kernel.
a_ticktime_that_is_no_number_is_the_default_test_() ->
    Former = application:get_env(kernel, net_ticktime),
    {setup, fun() -> ok end,
     fun(_) ->
             case Former of
                 {ok, Value} -> application:set_env(kernel, net_ticktime, Value);
                 undefined -> application:unset_env(kernel, net_ticktime)
             end
     end,
     [?_test(begin
                 ok = application:set_env(kernel, net_ticktime, Given),
                 ?assertEqual(Ms, weft_config:net_ticktime_ms())
             end) || {Given, Ms} <- [{8, 8000}, {soon, 60000}, {0, 1000}, {"8", 60000}]]}.

%% The first column of the tables below a heading, up to the next one.
documented(File, Heading, Next) ->
    {ok, Text} = file:read_file(File),
    [_, Below] = string:split(Text, Heading),
    [Chapter | _] = string:split(Below, Next),
    case re:run(Chapter, "^\\| `(\\w+)` \\|", [global, multiline, {capture, [1], list}]) of
        {match, Found} -> [list_to_atom(Key) || [Key] <- Found];
        nomatch -> []
    end.

rows() -> weft_config:keys() ++ weft_config:tuning().

error_of(Env) ->
    {error, Text} = weft_config:check(Env),
    true = io_lib:char_list(Text),
    Text.

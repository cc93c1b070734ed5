%% SPDX-License-Identifier: Apache-2.0
-module(weft_argparse_tests).

-include_lib("eunit/include/eunit.hrl").

%% A command of its own, and some below it.
command() ->
    #{commands =>
          #{"up" => #{help => "starts it", details => ["  up -n 3"], handler => fun(_) -> 7 end,
                      arguments => [#{name => words, nargs => list, required => false}
                                    | options()]},
            "cut" => #{help => "cuts it", handler => fun(_) -> 0 end,
                       arguments => [#{name => a}, #{name => b, type => integer}]},
            "heal" => #{handler => fun(_) -> 0 end,
                        arguments => [#{name => a, required => false}]},
            "dark" => #{help => hidden, handler => fun(_) -> 0 end}}}.

options() ->
    [#{name => nodes, short => $n, long => "-nodes", type => integer, value => "COUNT",
       help => "how many"},
     #{name => epmd_port, long => "-epmd-port", type => {integer, [{min, 1}, {max, 65535}]}},
     #{name => path, short => $p, long => "-path", action => append},
     #{name => name, long => "-name", value => "NAME"},
     #{name => kinds, long => "-kinds", type => {list, {atom, [global, eventual]}}},
     #{name => sizes, long => "-sizes", type => {list, {integer, [{min, 2}]}}, default => [4]},
     #{name => share, long => "-share", type => {float, [{max, 1}]}},
     #{name => even, long => "-even", type => {custom, fun even/1}},
     #{name => json, long => "-json", type => boolean},
     #{name => secret, long => "-secret", type => boolean, help => hidden}].

even(Text) ->
    case list_to_integer(Text) of
        Number when Number rem 2 =:= 0 -> Number;
        _ -> throw("even")
    end.

parse(Text) -> weft_argparse:parse(string:lexemes(Text, " "), command(), "try").

%% What `up' is given.
up(Text) ->
    {ok, Given, ["up"], #{help := "starts it"}} = parse("up " ++ Text),
    maps:remove(sizes, Given).

error_text(Text) ->
    {error, Message} = parse(Text),
    unicode:characters_to_list(Message).

help(Text) ->
    {help, Help} = parse(Text),
    unicode:characters_to_list(Help).

all_forms_test() ->
    ?assertEqual(#{nodes => 5, epmd_port => 4370, json => true, name => "x", words => ["a", "b"]},
                 up("a -n 5 --epmd-port=4370 b --json --name x")).

again_for_more_test() ->
    ?assertMatch(#{path := ["one", "two"]}, up("-p one --path two")).

the_last_one_counts_test() ->
    ?assertMatch(#{name := "b"}, up("--name a --name b")).

two_dashes_end_the_options_test() ->
    ?assertEqual(#{json => true, words => ["--name", "-n"]}, up("--json -- --name -n")).

a_value_may_contain_equals_test() ->
    ?assertMatch(#{name := "a=b"}, up("--name=a=b")).

what_is_not_given_has_its_default_test() ->
    ?assertMatch({ok, #{sizes := [4], words := []}, _, _}, parse("up")),
    ?assertMatch({ok, #{sizes := [2, 30]}, _, _}, parse("up --sizes 2,30")),
    ?assertMatch({ok, Given, _, _} when Given =:= #{}, parse("heal")).

words_are_taken_in_order_test() ->
    ?assertMatch({ok, #{a := "x", b := 7}, ["cut"], _}, parse("cut x 7")).

values_have_their_types_test() ->
    ?assertMatch(#{kinds := [eventual, global], share := 0.5, even := 4},
                 up("--kinds eventual,global --share 0.5 --even 4")),
    ?assertMatch(#{share := 1.0}, up("--share 1")).

values_are_checked_test_() ->
    [?_assertEqual(Expected, hd(string:split(error_text(Text), "\n")))
     || {Text, Expected} <-
            [{"up --nodes many", "--nodes is many, it must be a whole number"},
             {"up -n", "-n needs a value: -n COUNT"},
             {"up --json=yes", "--json takes no value"},
             {"up --epmd-port 0",
              "--epmd-port is 0, it must be a whole number from 1 on up to 65535"},
             {"up --kinds strong", "--kinds is strong, it must be one of global, eventual, or "
              "several with commas between them"},
             {"up --sizes 1,2", "--sizes is 1,2, it must be a whole number from 2 on, or several "
              "with commas between them"},
             {"up --share 2", "--share is 2, it must be a number up to 1"},
             {"up --even 3", "--even is 3, it must be even"},
             {"cut a", "B is missing"},
             {"cut a x", "B is x, it must be a whole number"},
             {"cut a 1 2", "unexpected word 2"}]].

unknown_names_the_nearest_test_() ->
    [?_assertEqual(Expected, hd(string:split(error_text(Text), "\n")))
     || {Text, Expected} <-
            [{"up --jsn", "unknown option --jsn, did you mean --json?"},
             {"up --node", "unknown option --node, did you mean --nodes?"},
             {"up --epmdport 1", "unknown option --epmdport, did you mean --epmd-port?"},
             {"up -z", "unknown option -z"},
             {"cat", "there is no command cat, did you mean cut?"},
             {"restart", "there is no command restart. There are: cut, dark, heal, up."}]].

unlike_anything_lists_all_test() ->
    ?assertMatch("unknown option --colour, there are --nodes, " ++ _, error_text("up --colour")).

help_is_made_of_the_description_test() ->
    Up = help("up --nodes 3 --help"),
    [?assertMatch({Line, {match, _}}, {Line, re:run(Up, Line, [multiline])})
     || Line <- ["^try up \\[WORDS\\]: starts it$", "^    up -n 3$",
                 "^  -n, --nodes COUNT +how many$",
                 "^  -h, --help +this text$"]],
    ?assertEqual(nomatch, string:find(Up, "secret")),
    ?assertEqual(Up, help("up -h")),
    ?assertMatch("try cut A B: cuts it\n" ++ _, help("cut -h")),
    All = help("--help"),
    ?assertMatch({match, _}, re:run(All, "^  cut A B +cuts it$", [multiline])),
    ?assertEqual(nomatch, string:find(All, "dark")),
    ?assertEqual(All, help("")).

a_command_may_do_something_without_one_below_it_test() ->
    Command = (command())#{handler => fun(_) -> 0 end, arguments => [#{name => file}]},
    ?assertMatch({ok, #{file := "here"}, [], _}, weft_argparse:parse(["here"], Command, "try")),
    ?assertMatch({ok, #{words := ["here"]}, ["up"], _},
                 weft_argparse:parse(["up", "here"], Command, "try")).

run_calls_the_handler_test() ->
    ?assertEqual(7, weft_argparse:run(["up"], command(), "try")),
    ?assertEqual(0, weft_argparse:run(["up", "--help"], command(), "try")),
    ?assertEqual(2, weft_argparse:run(["up", "--what"], command(), "try")).

distance_test() ->
    ?assertEqual([0, 1, 2, 4], [weft_argparse:distance("mode", Word)
                                || Word <- ["mode", "node", "moed", ""]]).

nearest_test() ->
    ?assertEqual({ok, "status"}, weft_argparse:nearest("stauts", ["up", "status", "down"])),
    ?assertEqual({ok, "down"}, weft_argparse:nearest("do", ["up", "status", "down"])),
    ?assertEqual(none, weft_argparse:nearest("restart", ["up", "eval", "down"])),
    ?assertEqual(none, weft_argparse:nearest("", ["up"])).

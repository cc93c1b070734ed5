%% SPDX-License-Identifier: Apache-2.0
-module(weft_cli_options_tests).

-include_lib("eunit/include/eunit.hrl").

known() ->
    [#{key => nodes, short => $n, type => integer, value => "COUNT", help => ""},
     #{key => epmd_port, type => integer, value => "PORT", help => ""},
     #{key => path, short => $p, type => string, many => true, value => "DIR", help => ""},
     #{key => name, type => string, value => "NAME", help => ""},
     #{key => json, type => flag, help => ""}].

parse(Text) -> weft_cli_options:parse(string:lexemes(Text, " "), known()).

error_text(Text) ->
    {error, Message} = parse(Text),
    unicode:characters_to_list(Message).

all_forms_test() ->
    ?assertEqual({ok, #{nodes => 5, epmd_port => 4370, json => true, name => "x"}, ["a", "b"]},
                 parse("a -n 5 --epmd-port=4370 b --json --name x")).

again_for_more_test() ->
    ?assertEqual({ok, #{path => ["one", "two"]}, []}, parse("-p one --path two")).

the_last_one_counts_test() ->
    ?assertEqual({ok, #{name => "b"}, []}, parse("--name a --name b")).

two_dashes_end_the_options_test() ->
    ?assertEqual({ok, #{json => true}, ["--name", "-n"]}, parse("--json -- --name -n")).

a_value_may_contain_equals_test() ->
    ?assertEqual({ok, #{name => "a=b"}, []}, parse("--name=a=b")).

unknown_names_the_nearest_test() ->
    ?assertEqual("unknown option --jsn, did you mean --json?", error_text("--jsn")),
    ?assertEqual("unknown option --node, did you mean --nodes?", error_text("--node")),
    ?assertEqual("unknown option --epmdport, did you mean --epmd-port?",
                 error_text("--epmdport 1")),
    ?assertEqual("unknown option -z", error_text("-z")).

unlike_anything_lists_all_test() ->
    ?assertMatch("unknown option --colour, there are --nodes, " ++ _, error_text("--colour")).

values_are_checked_test() ->
    ?assertEqual("--nodes is many, it must be a whole number", error_text("--nodes many")),
    ?assertEqual("-n needs a value: -n COUNT", error_text("-n")),
    ?assertEqual("--json takes no value", error_text("--json=yes")).

nearest_test() ->
    ?assertEqual({ok, "status"}, weft_cli_options:nearest("stauts", ["up", "status", "down"])),
    ?assertEqual({ok, "down"}, weft_cli_options:nearest("do", ["up", "status", "down"])),
    ?assertEqual(none, weft_cli_options:nearest("restart", ["up", "eval", "down"])),
    ?assertEqual(none, weft_cli_options:nearest("", ["up"])).

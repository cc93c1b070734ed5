%% SPDX-License-Identifier: Apache-2.0
%% @doc The configuration of groups: what is taken, what is refused, and in what words.
-module(sd_erlang_config_tests).

-include_lib("eunit/include/eunit.hrl").

groups_are_read_test_() ->
    [?_assertEqual({ok, Expected}, sd_erlang_config:parse(Term))
     || {Term, Expected} <-
            [{[], #{}},
             {[{g1, normal, ['a@h', 'b@h']}, {g2, normal, ['b@h']}],
              #{g1 => ['a@h', 'b@h'], g2 => ['b@h']}},
             {[{g1, ['b@h', 'a@h', 'b@h']}], #{g1 => ['a@h', 'b@h']}},
             {[{g1, normal, ['a@h']}, {g1, normal, ['b@h']}], #{g1 => ['a@h', 'b@h']}}]].

what_is_wrong_is_said_test_() ->
    [fun() ->
         {error, Text} = sd_erlang_config:parse(Term),
         ?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text})
     end || {Term, Words} <- [{g1, "no list of groups"},
                              {[g1], "write {Name, normal"},
                              {[{g1, hidden, ['a@h']}], "publish type"},
                              {[{undefined, normal, ['a@h']}], "reserved"},
                              {[{no_group, ['a@h']}], "reserved"},
                              {[{g1, normal, ["a@h"]}], "no list of names"},
                              {[{g1, normal, 'a@h'}], "no list of names"},
                              {[{g1, normal, ['a@h' | 'b@h']}], "no list of names"},
                              {[{g1, ['a@h']} | g2], "no list of groups"}]].

the_groups_of_global_group_are_taken_if_there_are_no_others_test() ->
    try
        ok = application:set_env(kernel, global_groups, [{g1, ['a@h']}]),
        ?assertEqual({ok, #{g1 => ['a@h']}}, sd_erlang_config:groups()),
        ok = application:set_env(kernel, s_groups, [{g2, normal, ['a@h']}]),
        ?assertEqual({ok, #{g2 => ['a@h']}}, sd_erlang_config:groups())
    after
        application:unset_env(kernel, global_groups),
        application:unset_env(kernel, s_groups)
    end,
    ?assertEqual({ok, #{}}, sd_erlang_config:groups()).

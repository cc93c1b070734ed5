%% SPDX-License-Identifier: Apache-2.0
%% @doc What the workload soda says to options that are wrong.
-module(weft_diasca_soda_tests).
-include_lib("eunit/include/eunit.hrl").

-define(RIGHT, #{machines => [{1, 100}], customers => [{1, 1, 100}]}).

right_options_make_every_actor_test() ->
    ?assertEqual(2, length(weft_diasca_soda:actors(?RIGHT))).

%% None is left out of the simulation without a word.
wrong_options_are_refused_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Wrong])),
      ?_assertMatch({error, _}, weft_diasca_soda:actors(maps:merge(?RIGHT, Wrong)))}
     || Wrong <- [#{customers => [{1, 1}]}, #{customers => [{1, 0, 100}]},
                  #{customers => [{0, 1, 100}]}, #{customers => [{a, 1, 100}]},
                  #{customers => [{2, 1, 100}]}, #{customers => none},
                  #{machines => [{1, 100}, 7]}, #{machines => [{-1, 100}]},
                  #{machines => none}]].

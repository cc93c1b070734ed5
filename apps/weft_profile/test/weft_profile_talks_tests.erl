%% SPDX-License-Identifier: Apache-2.0
%% @doc Which processes talk to which, by flows that were never made.
-module(weft_profile_talks_tests).

-include_lib("eunit/include/eunit.hrl").
-include_lib("xmerl/include/xmerl.hrl").

-define(SIDES, [#{node => Node, names => #{pid(1) => <<"server">>}} || Node <- [a@h, b@h]]).

pid(N) -> list_to_pid("<0." ++ integer_to_list(N) ++ ".0>").

flow(From, To, Kind, Us) ->
    #{id => 1, from_node => a@h, from => pid(From), to_node => b@h, to => pid(To), sent => 1000,
      received => 1000 + 1000 * Us, kind => Kind}.

%% The same process number on another node is another process.
pairs_are_told_by_how_much_they_say_test() ->
    Back = (flow(2, 1, reply, 7))#{from_node := b@h, to_node := a@h},
    Flows = [flow(2, 1, get, 5), Back, flow(2, 1, get, 1), flow(2, 1, set, 3), flow(3, 1, get, 9),
             flow(3, 1, get, 11)],
    ?assertEqual([#{from => a@h, from_process => <<"<0.2.0>">>,
                    to => b@h, to_process => <<"server <0.1.0>">>, count => 3, p50_us => 3.0,
                    kinds => [#{kind => <<"get">>, count => 2}, #{kind => <<"set">>, count => 1}]},
                  #{from => a@h, from_process => <<"<0.3.0>">>,
                    to => b@h, to_process => <<"server <0.1.0>">>, count => 2, p50_us => 9.0,
                    kinds => [#{kind => <<"get">>, count => 2}]},
                  #{from => b@h, from_process => <<"<0.2.0>">>,
                    to => a@h, to_process => <<"server <0.1.0>">>, count => 1, p50_us => 7.0,
                    kinds => [#{kind => <<"reply">>, count => 1}]}],
                 weft_profile_talks:rows(Flows, ?SIDES)).

of_many_pairs_those_that_say_most_are_told_test() ->
    Flows = [flow(N, 1, get, 1) || N <- lists:seq(2, 40), _ <- lists:seq(1, N)],
    ?assertEqual(lists:seq(40, 26, -1),
                 [Count || #{count := Count} <- weft_profile_talks:rows(Flows, ?SIDES)]).

%% Two that send to one: three names, and the wider line is of who sends more.
the_picture_has_each_process_once_on_a_side_test() ->
    Rows = weft_profile_talks:rows([flow(2, 1, get, 1), flow(2, 1, get, 1), flow(3, 1, get, 1)],
                                   ?SIDES),
    {Svg, ""} = xmerl_scan:string(binary_to_list(unicode:characters_to_binary(
                                                   weft_profile_talks:picture(Rows)))),
    ?assertEqual(["a <0.2.0>", "a <0.3.0>", "b server <0.1.0>"],
                 [lists:append([Value || #xmlText{value = Value} <- Content])
                  || #xmlElement{content = Content} <- xmerl_xpath:string("//text", Svg)]),
    ?assertEqual(["9.0", "4.5"],
                 [Width || #xmlAttribute{value = Width}
                               <- xmerl_xpath:string("//path/@stroke-width", Svg)]).

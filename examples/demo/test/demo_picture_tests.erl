%% SPDX-License-Identifier: Apache-2.0
-module(demo_picture_tests).

-include_lib("eunit/include/eunit.hrl").

samples(Nodedowns) ->
    [#{at_ms => AtMs, delivered => AtMs * 7, nodedowns => Nodedowns} || AtMs <- [500, 1000, 1500]].

both_carriers_are_in_both_charts_test() ->
    Svg = unicode:characters_to_binary(
            demo_picture:svg([{weft, samples(0)}, {stock, samples(6)}], "12 s: gateway killed")),
    ?assertMatch(<<"<svg", _/binary>>, Svg),
    [?assertEqual({Tip, Count}, {Tip, length(binary:matches(Svg, Tip))})
     || {Tip, Count} <- [{<<"weft: 0 after 1.0 s">>, 1}, {<<"stock: 6 after 1.0 s">>, 1},
                         {<<": 10500 after 1.5 s">>, 2}]],
    ?assertMatch({_, _}, binary:match(Svg, <<"12 s: gateway killed">>)).

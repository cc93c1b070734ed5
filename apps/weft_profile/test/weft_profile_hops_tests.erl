%% SPDX-License-Identifier: Apache-2.0
%% @doc When messages passed gateways.
-module(weft_profile_hops_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(LINK, list_to_pid("<0.101.0>")).
-define(OTHER, list_to_pid("<0.102.0>")).

the_first_moment_on_each_gateway_test() ->
    ?assertEqual([{g, 120}, {h, 150}],
                 hops([side(g, 0, [{10, 20}, {120, 130}, {160, 170}]),
                       side(h, 0, [{115, 118}, {150, 155}])])).

%% A link that was already at work, and one that begins at the last moment.
a_moment_may_be_within_a_slice_test() ->
    ?assertEqual([{g, 100}, {h, 200}], hops([side(g, 0, [{50, 110}]), side(h, 0, [{200, 900}])])).

without_a_link_that_ran_there_is_none_test_() ->
    [?_assertEqual([{h, 150}], hops([side(g, 0, G), side(h, 0, [{150, 155}])]))
     || G <- [[], [{10, 99}], [{201, 300}]]]
        ++ [?_assertEqual([{h, 150}], hops([side(h, 0, [{150, 155}])]))].

%% Its clock may be wrong by 30; the moment is put between the ends.
clocks_may_differ_test() ->
    ?assertEqual([{g, 100}, {h, 200}],
                 hops([side(g, 30, [{70, 75}]), side(h, 30, [{230, 240}])])),
    ?assertEqual([], hops([side(g, 30, [{60, 69}]), side(h, 30, [{231, 240}])])).

what_is_no_link_is_no_moment_test() ->
    #{history := #{slices := [Slice]} = History} = Side = side(g, 0, [{120, 130}]),
    ?assertEqual([], hops([Side#{history := History#{slices := [Slice#{pid := ?OTHER}]}}])).

without_a_way_there_are_none_test_() ->
    [?_assertEqual([], hops([side(g, 0, [{120, 130}])], Ways))
     || Ways <- [#{}, #{{a, b} => [a, b]}, #{{b, a} => [b, g, a]}]].

%% Moments are in the order of the way, between the ends.
moments_are_in_order_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_order(), [{to_file, user}, quiet,
                                                            {numtests, 300}]))}.

prop_order() ->
    ?FORALL({G, H, Error}, {slices(), slices(), range(0, 40)},
            begin
                Hops = hops([side(g, Error, G), side(h, Error, H)]),
                Times = [100] ++ [Ns || {_, Ns} <- Hops] ++ [200],
                Times =:= lists:sort(Times) andalso [g, h] -- ([g, h] -- [N || {N, _} <- Hops])
                    =:= [N || {N, _} <- Hops]
            end).

slices() ->
    ?LET(Spans, list({range(0, 300), range(0, 20)}),
         [{From, From + Long} || {From, Long} <- Spans]).

hops(Sides) -> hops(Sides, #{{a, b} => [a, g, h, b]}).

hops(Sides, Ways) ->
    Flow = #{id => 1, from_node => a, to_node => b, sent => 100, received => 200},
    #{flows := [#{hops := Hops}]} =
        weft_profile_hops:add(#{nodes => [side(a, 0, []), side(b, 0, []) | Sides],
                                flows => [Flow], ways => Ways}),
    Hops.

side(Node, Error, Spans) ->
    #{node => Node, error => Error, names => #{?LINK => <<"weft_link:init/1">>},
      history => #{slices => [#{pid => ?LINK, from => From, to => To} || {From, To} <- Spans]}}.

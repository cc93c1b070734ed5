%% SPDX-License-Identifier: Apache-2.0
%% @doc Beacons are taken only from nodes with our cookie, of our cluster, and unchanged.
-module(weft_beacon_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(KEY, weft_beacon:key(secret)).

a_beacon_tells_who_made_it_test() ->
    ?assertEqual({ok, "a@host"}, weft_beacon:decode(?KEY, <<"c">>, beacon())).

another_cookie_or_cluster_is_told_apart_test() ->
    ?assertEqual({error, other_cookie},
                 weft_beacon:decode(weft_beacon:key(other), <<"c">>, beacon())),
    ?assertEqual({error, other_cluster}, weft_beacon:decode(?KEY, <<"d">>, beacon())),
    ?assertEqual({error, not_a_beacon}, weft_beacon:decode(?KEY, <<"c">>, <<"hello">>)),
    ?assertEqual({error, not_a_beacon}, weft_beacon:decode(?KEY, <<"c">>, <<>>)).

no_changed_beacon_is_taken_and_none_crashes_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_changed(), [{numtests, 500}, {to_file, user}]))}.

prop_changed() ->
    ?FORALL(Changed, oneof([changed(), cut(), binary()]),
            Changed =:= beacon()
            orelse element(1, weft_beacon:decode(?KEY, <<"c">>, Changed)) =:= error).

changed() ->
    Size = byte_size(beacon()),
    ?LET({At, Byte}, {integer(0, Size - 1), integer(0, 255)},
         begin
             <<Before:At/binary, _, After/binary>> = beacon(),
             <<Before/binary, Byte, After/binary>>
         end).

cut() ->
    ?LET(Size, integer(0, byte_size(beacon()) - 1), binary:part(beacon(), 0, Size)).

beacon() ->
    weft_beacon:encode(?KEY, <<"c">>, 'a@host').

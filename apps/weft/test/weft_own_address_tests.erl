%% SPDX-License-Identifier: Apache-2.0
%% @doc Names of this node under other names of its host. The node of the test is nonode@nohost.
-module(weft_own_address_tests).

-include_lib("eunit/include/eunit.hrl").

own(Host) ->
    list_to_atom(weft_discovery_names:own_name() ++ "@" ++ Host).

other_names_of_this_machine_are_its_own_test_() ->
    {ok, Hostname} = inet:gethostname(),
    [{Host, ?_assert(weft_own_address:is_own(own(Host)))}
     || Host <- ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.9", "::1"]
            ++ [Hostname || {ok, _} <- [inet:getaddr(Hostname, inet)]]].

every_address_of_this_machine_is_its_own_test() ->
    {ok, Interfaces} = inet:getifaddrs(),
    [?assert(weft_own_address:is_own(own(inet:ntoa(Address))))
     || {_, Options} <- Interfaces, {addr, Address} <- Options].

others_are_not_test_() ->
    [{atom_to_list(Node), ?_assertNot(weft_own_address:is_own(Node))}
     || Node <- [own("192.0.2.1"), own("another.example"), 'another@localhost', 'no name',
                 'another@127.0.0.1']].

the_name_itself_is_own_test() ->
    ?assert(weft_own_address:is_own(node())).

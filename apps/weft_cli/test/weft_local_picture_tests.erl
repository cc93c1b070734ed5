%% SPDX-License-Identifier: Apache-2.0
%% @doc What the row of a node says of it, from its status.
-module(weft_local_picture_tests).

-include_lib("eunit/include/eunit.hrl").

-define(A, 'a@h').
-define(B, 'b@h').

%% As metrics have it, also of links that have ended.
what_a_node_relayed_is_its_own_count_test() ->
    Status = status([with_link(30)]),
    ?assertEqual(1030, relayed(Status#{counters => #{relayed_bytes => 1030}})),
    ?assertEqual(1030, relayed((status([]))#{counters => #{relayed_bytes => 1030}})).

of_a_node_that_does_not_count_it_links_are_summed_up_test() ->
    ?assertEqual(30, relayed(status([with_link(30)]))).

relayed(Status) ->
    #{nodes := [#{relayed_bytes := Bytes}, _]} =
        weft_local_picture:of_statuses(#{nodes => [?A, ?B], unknown => []}, #{?A => Status}),
    Bytes.

status(Links) ->
    #{os_pid => "1", uptime_ms => 1000, links => Links, sessions => [], names => #{}, cuts => [],
      routes => #{}, groups => #{}, own_groups => [], broadcast => #{}}.

with_link(Bytes) ->
    #{node => ?B, state => up, lanes => 1, circuits => [], relayed_bytes => Bytes,
      last_error => ""}.

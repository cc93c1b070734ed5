%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs SD-Orbit on its own nodes, as its module bench does, but with the orbit as the result.
-module(weft_release_orbit).

-export([run/3]).

%% @doc Called on the master's node: the size of the orbit of the generators g12, and a hash of it.
-spec run(Space :: pos_integer(), [node()], Groups :: pos_integer()) ->
          {Size :: non_neg_integer(), Hash :: non_neg_integer()}.
run(Space, Nodes, Groups) ->
    group_leader(weft_release_nodes:silent(), self()),
    {ok, Submasters} = grouping:initiate(Nodes, Groups),
    Tables = grouping:create_group_list(Submasters, Space, Groups),
    {Orbit, _Statistics} = master:orbit(bench:g12(Space), [0], 2, 2, 1, false, Tables),
    {length(Orbit), erlang:phash2(lists:sort(Orbit))}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A node outside of the ring with a client of the store (`weft_kv_client'), so that each node
%% of the store may die.
-module(weft_kv_test_outside).

-export([start/4]).
-export([begin_client/2]).

%% @doc When this returns it is connected to these nodes of the store, and knows the ring. The code
%% of this module has to be where the arguments of the node say.
-spec start(Client :: atom(), Options :: map(), Store :: [map()], Config :: [tuple()]) -> map().
start(Client, Options, Store, Config) ->
    Ref = weft_test_nodes:start(outside, Options, proplists:get_value(place, Config)),
    Nodes = [weft_test_nodes:name(Node) || Node <- Store],
    ok = weft_test_nodes:call(Ref, ?MODULE, begin_client, [Client, Nodes]),
    weft_test_nodes:until(fun() ->
                              #{connected := Connected, partitions := Partitions} =
                                  weft_test_nodes:call(Ref, weft_kv_client, info, [Client]),
                              Nodes -- Connected =:= [] andalso Partitions > 0
                          end, 30000),
    Ref.

%% @doc On the node.
-spec begin_client(atom(), [node()]) -> ok.
begin_client(Client, Nodes) ->
    Self = self(),
    Pid = spawn(fun() ->
                    {ok, _} = weft_kv_client:start_link(Client, #{nodes => Nodes}),
                    Self ! {self(), begun},
                    receive stop -> ok end
                end),
    receive {Pid, begun} -> ok end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Which host gets which node of a family. Pure.
%%
%% Fair for each core: no node of a family would have fewer neighbours on its core on another host
%% (`is_fair/3'). Nodes that have a host keep it, also if hosts were added: moving costs more than
%% a host that is less busy for a while.
-module(weft_deploy_place).

-export([place/3, is_fair/2]).
-export_type([host/0]).

-type host() :: string().

%% @doc A host for each of the names. Kept are those that are on one of the hosts already; hosts
%% have cores, and come in the order in which they are preferred.
-spec place([Name], [{host(), Cores :: pos_integer()}, ...], #{Name => host()}) ->
          [{Name, host()}].
place(Names, Hosts, Placed) ->
    Known = maps:from_list(Hosts),
    Kept = maps:filter(fun(Name, Host) -> lists:member(Name, Names)
                                              andalso is_map_key(Host, Known)
                       end, Placed),
    Load = maps:fold(fun(_Name, Host, Counts) -> more(Host, Counts) end, #{}, Kept),
    {Result, _} = lists:mapfoldl(fun(Name, Counts) -> one(Name, Hosts, Kept, Counts) end, Load,
                                 Names),
    Result.

one(Name, _Hosts, Kept, Counts) when is_map_key(Name, Kept) ->
    {{Name, map_get(Name, Kept)}, Counts};
one(Name, Hosts, _Kept, Counts) ->
    {_Least, _Order, Host} =
        lists:min([{(maps:get(Host, Counts, 0) + 1) / Cores, Order, Host}
                   || {Order, {Host, Cores}} <- lists:zip(lists:seq(1, length(Hosts)), Hosts)]),
    {{Name, Host}, more(Host, Counts)}.

more(Host, Counts) -> maps:update_with(Host, fun(Count) -> Count + 1 end, 1, Counts).

%% @doc Would no node have less company on another host?
-spec is_fair([{term(), host()}], [{host(), Cores :: pos_integer()}]) -> boolean().
is_fair(Placed, Hosts) ->
    Counts = lists:foldl(fun({_Name, Host}, Sum) -> more(Host, Sum) end, #{}, Placed),
    Count = fun(Host) -> maps:get(Host, Counts, 0) end,
    lists:all(fun({A, CoresA}) ->
                      lists:all(fun({B, CoresB}) ->
                                        Count(A) / CoresA =< (Count(B) + 1) / CoresB
                                end, Hosts)
              end, Hosts).

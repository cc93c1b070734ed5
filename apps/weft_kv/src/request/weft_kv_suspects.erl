%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes that were to give a write its dot and did not answer in time. A node that hangs, with
%% all its connections up, is one of them until the failure detector has found out. Each write that
%% begins there waits a fourth of its time before it asks another one. So other writes of this node
%% begin elsewhere for a while, if they can. It changes the order in which replicas are asked, and
%% nothing else: no quorum is another one for it.
%%
%% Times are monotonic milliseconds.
-module(weft_kv_suspects).

-export([new/0, suspect/3, last/3]).
-export_type([suspects/0]).

%% After this time a write tries it again.
-define(SUSPECTED_MS, 10000).

-opaque suspects() :: ets:table().

%% @doc There is none. The table ends with the calling process.
-spec new() -> suspects().
new() -> ets:new(?MODULE, [set, public, {read_concurrency, true}]).

%% @doc This node did not answer. Those of which it is long ago are forgotten.
-spec suspect(node(), NowMs :: integer(), suspects() | none) -> ok.
suspect(_Node, _NowMs, none) ->
    ok;
suspect(Node, NowMs, Suspects) ->
    try
        _ = ets:select_delete(Suspects, [{{'_', '$1'}, [{'=<', '$1', NowMs}], [true]}]),
        true = ets:insert(Suspects, {Node, NowMs + ?SUSPECTED_MS}),
        ok
    catch
        error:badarg -> ok % the application was stopped meanwhile
    end.

%% @doc The same places, those of suspected nodes behind the others.
-spec last([weft_kv_coordinator_core:place()], NowMs :: integer(), suspects() | none) ->
          [weft_kv_coordinator_core:place()].
last(Places, _NowMs, none) ->
    Places;
last(Places, NowMs, Suspects) ->
    case ets:info(Suspects, size) of
        Size when Size =:= 0; Size =:= undefined -> Places;
        _ ->
            {Others, Suspected} = lists:partition(fun({_, Node, _}) ->
                                                      not is_suspected(Node, NowMs, Suspects)
                                                  end, Places),
            Others ++ Suspected
    end.

is_suspected(Node, NowMs, Suspects) ->
    try ets:lookup(Suspects, Node) of
        [{_, UntilMs}] -> NowMs < UntilMs;
        [] -> false
    catch
        error:badarg -> false
    end.

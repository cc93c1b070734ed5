%% SPDX-License-Identifier: Apache-2.0
%% @doc Measures the traffic between nodes, and proposes groups (`weft_group_proposal').
%%
%% The figures are the bytes of the distribution sessions of each node, by peer: either since the
%% sessions began, or in a window of time. Nodes that do not answer are named; what others exchanged
%% with them is included all the same. They are not waited for much longer than the last node that
%% answered: as long as the window takes (a second at least), or two seconds.
-module(weft_group_suggestion).

-export([suggest/1, traffic/0]).
-export_type([suggestion/0]).

-type suggestion() :: #{groups := #{atom() => [node()]}, why := [string()], modularity := float(),
                        links := #{full_mesh | proposed => non_neg_integer()},
                        silent := [node()]}.

-define(TIMEOUT_MS, 5000).
%% How long a node is waited for after the last one that answered.
-define(PATIENCE_MS, 2000).
-define(PATIENCE_MIN_MS, 1000).

%% @doc Options: `nodes' (all that are known), `window_ms' (0: since the sessions began),
%% `timeout_ms' (5000) for the answers. Raises `{unknown_option, Name}', and
%% `needs_the_carrier_weft' on a node with another carrier, which has no sessions.
-spec suggest(#{nodes => [node()], window_ms => non_neg_integer(),
                timeout_ms => non_neg_integer()}) -> suggestion().
suggest(Options) ->
    [error({unknown_option, Key}) || Key <- maps:keys(Options),
                                     not lists:member(Key, [nodes, window_ms, timeout_ms])],
    whereis(weft_sessions) =/= undefined orelse error(needs_the_carrier_weft),
    Nodes = maps:get(nodes, Options, weft_place:all_nodes()),
    {Measured, Silent} = measured(Nodes, Options),
    Weights = among(Nodes ++ weft_place:all_nodes(), Measured),
    (weft_group_proposal:make(Weights))#{silent => Silent}.

%% Without hidden nodes that only observe, as tools do.
among(Nodes, Weights) ->
    Known = maps:from_list([{Node, known} || Node <- Nodes]),
    maps:filter(fun({A, B}, _) -> is_map_key(A, Known) andalso is_map_key(B, Known) end, Weights).

measured(Nodes, #{window_ms := WindowMs} = Options) when WindowMs > 0 ->
    EndMs = erlang:monotonic_time(millisecond) + WindowMs,
    {Before, Silent} = ask(Nodes, Options),
    LeftMs = EndMs - erlang:monotonic_time(millisecond),
    receive after max(0, LeftMs) -> ok end, % the time that is measured
    {After, SilentNow} = ask(Nodes -- Silent, Options),
    {maps:filter(fun(_, Bytes) -> Bytes > 0 end,
                 maps:map(fun(Pair, Bytes) -> Bytes - maps:get(Pair, Before, 0) end, After)),
     [Node || Node <- Nodes, lists:member(Node, Silent ++ SilentNow)]};
measured(Nodes, Options) ->
    ask(Nodes, Options).

ask(Nodes, Options) ->
    TimeoutMs = maps:get(timeout_ms, Options, ?TIMEOUT_MS),
    {Answers, Silent} = weft_ask:all(
                          Nodes, fun(Node) -> erpc:call(Node, ?MODULE, traffic, [], TimeoutMs) end,
                          TimeoutMs, patience_ms(Options)),
    {lists:foldl(fun({Node, Peers}, Weights) -> add(Node, Peers, Weights) end, #{}, Answers),
     Silent}.

%% With a window there is time to wait.
patience_ms(#{window_ms := WindowMs}) when WindowMs > 0 -> max(?PATIENCE_MIN_MS, WindowMs);
patience_ms(_Options) -> ?PATIENCE_MS.

%% Both ends count the same bytes. The end that has counted more of them is right.
add(Node, Peers, Weights) ->
    lists:foldl(fun({Peer, Bytes}, Map) ->
                    maps:update_with({min(Node, Peer), max(Node, Peer)},
                                     fun(Known) -> max(Known, Bytes) end, Bytes, Map)
                end, Weights, Peers).

%% @doc What this node has exchanged with each peer, in bytes, by its sessions.
-spec traffic() -> [{node(), pos_integer()}].
traffic() ->
    [{Node, In + Out} || #{node := Node, bytes_in := In, bytes_out := Out} <- sessions(),
                         In + Out > 0].

%% A session may end while it is asked.
sessions() ->
    lists:append([try [weft_session:info(Pid)]
                  catch
                      exit:_ -> []
                  end || Pid <- weft_sessions:list()]).

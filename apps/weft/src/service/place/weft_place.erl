%% SPDX-License-Identifier: Apache-2.0
%% @doc Placement: which node is the right one? Chooses nodes by what they say of themselves
%% (`weft_attributes'), by distance and by round trip, and starts processes there. See
%% docs/guide/groups.md.
%%
%% All candidates are asked at once. One that does not answer in time is named as silent and is not
%% chosen; it does not affect the choice among the others. spawn/2 does not wait long for such a
%% node: once half of the candidates have answered, it goes on two seconds after the last answer. It
%% takes the next node if one does not start the process in two seconds.
-module(weft_place).

-export([choose_nodes/1, choose_nodes/2, all_nodes/0, attributes/2, spawn/2]).
-export_type([query/0, choice/0, spawn_error/0]).

-type from() :: all | [node()] | {group, weft_group:name()}.
-type query() :: #{from => from(),
                   where => [weft_place_rules:predicate()],
                   order => [weft_place_rules:order()],
                   limit => pos_integer(),
                   timeout_ms => non_neg_integer()}.
%% `from' (all): the candidates. `all' are this node, those that are connected and visible, and the
%% members of the overlay; a hidden node that only observes, as a tool does, is not among them.
%% `limit': at most so many, the best ones. `timeout_ms' (5000).
-type choice() :: #{nodes := [node()], silent := [node()]}.
-type spawn_error() :: no_node | {not_spawned, [{node(), term()}]}.

-define(TIMEOUT_MS, 5000).
%% How long a silent node is waited for if another one could be taken.
-define(PATIENCE_MS, 2000).

%% @doc Chooses among all nodes. A list is the predicates of a query. Raises `{bad_predicate,
%% Term}', `{bad_order, Term}', `{unknown_option, Term}', `{not_a_node, Term}', `{unknown_group,
%% Name}'.
-spec choose_nodes([weft_place_rules:predicate()] | query()) -> choice().
choose_nodes(Where) when is_list(Where) ->
    choose_nodes(#{where => Where});
choose_nodes(Query) when is_map(Query) ->
    choose(Query, timeout_ms(Query)).

choose(Query, PatienceMs) ->
    ok = check(Query),
    {Candidates, Silent} = candidates(Query, PatienceMs),
    Nodes = weft_place_rules:choose(Query, Candidates),
    #{nodes => lists:sublist(Nodes, maps:get(limit, Query, max(1, length(Nodes)))),
      silent => Silent}.

%% @doc The same among certain nodes.
-spec choose_nodes(from(), [weft_place_rules:predicate()] | query()) -> choice().
choose_nodes(From, Where) when is_list(Where) -> choose_nodes(#{from => From, where => Where});
choose_nodes(From, Query) when is_map(Query) -> choose_nodes(Query#{from => From}).

%% @doc The nodes of the cluster: this one, those that are connected and visible, and the members of
%% the overlay. A session over a circuit may be hidden, but its node is a member.
-spec all_nodes() -> [node()].
all_nodes() -> lists:usort([node() | nodes(visible)] ++ weft_overlay:members()).

%% @doc The values of attributes on nodes, and the nodes that did not answer.
-spec attributes([node()], [weft_attributes:name()]) ->
          {#{node() => #{weft_attributes:name() => term()}}, Silent :: [node()]}.
attributes(Nodes, Names) ->
    {Answers, Silent} = ask(Nodes, Names, ?TIMEOUT_MS, ?TIMEOUT_MS),
    {maps:from_list(Answers), Silent}.

%% @doc Starts a process on the first node of the choice that starts it. If the query has no order,
%% the nodes are tried in random order.
-spec spawn(query(), fun(() -> term()) | {module(), atom(), [term()]}) ->
          {ok, pid()} | {error, spawn_error()}.
spawn(Query, Fun) when is_function(Fun, 0) ->
    start(Query, {erlang, apply, [Fun, []]});
spawn(Query, {_Module, _Function, _Args} = MFA) ->
    start(Query, MFA).

start(Query, MFA) ->
    #{nodes := Nodes} = choose(Query, ?PATIENCE_MS),
    Ordered = case Query of
                  #{order := [_ | _]} -> Nodes;
                  #{} -> [Node || {_, Node} <- lists:sort([{rand:uniform(), N} || N <- Nodes])]
              end,
    first_of(Ordered, MFA, timeout_ms(Query), []).

timeout_ms(Query) -> maps:get(timeout_ms, Query, ?TIMEOUT_MS).

first_of([], _MFA, _TimeoutMs, []) -> {error, no_node};
first_of([], _MFA, _TimeoutMs, Failed) -> {error, {not_spawned, lists:reverse(Failed)}};
first_of([Node | Others], MFA, TimeoutMs, Failed) ->
    WaitMs = case Others of
                 [] -> TimeoutMs;
                 [_ | _] -> min(TimeoutMs, ?PATIENCE_MS)
             end,
    case weft_place_start:start(Node, MFA, WaitMs) of
        {ok, Pid} -> {ok, Pid};
        {error, Reason} -> first_of(Others, MFA, TimeoutMs, [{Node, Reason} | Failed])
    end.

check(Query) ->
    case {maps:keys(maps:without([from, where, order, limit, timeout_ms], Query)),
          weft_place_rules:check(Query)} of
        {[], ok} -> ok;
        {[Unknown | _], _} -> error({unknown_option, Unknown});
        {[], {error, Reason}} -> error(Reason)
    end.

candidates(Query, PatienceMs) ->
    Names = weft_place_rules:attributes(Query),
    {Answers, Silent} = ask(from(maps:get(from, Query, all)), Names, timeout_ms(Query),
                            PatienceMs),
    {placed(lists:member(zone, Names), Answers), Silent}.

from(all) -> all_nodes();
from({group, Name}) ->
    case weft_group_view:members(Name) of
        {ok, Nodes} -> Nodes;
        {error, unknown_group} -> error({unknown_group, Name})
    end;
from(Nodes) ->
    case [Node || Node <- Nodes, not is_atom(Node)] of
        [] -> lists:usort(Nodes);
        [Wrong | _] -> error({not_a_node, Wrong})
    end.

placed(false, Answers) -> Answers;
placed(true, Answers) ->
    Here = {node(), maps:get(zone, weft_attributes:read([zone]), [])},
    [{Node, Values#{distance => weft_distance:between(Here, {Node, maps:get(zone, Values, [])})}}
     || {Node, Values} <- Answers].

ask(Nodes, Names, TimeoutMs, PatienceMs) ->
    weft_ask:all(Nodes, fun(Node) -> read(Node, Names, TimeoutMs) end, TimeoutMs, PatienceMs).

read(Node, Names, TimeoutMs) ->
    Values = erpc:call(Node, weft_attributes, read, [Names -- [rtt_us]], TimeoutMs),
    case lists:member(rtt_us, Names) of
        true -> Values#{rtt_us => rtt_us(Node, TimeoutMs)};
        false -> Values
    end.

%% The connection exists by now. The shorter of two times, since the first call may find it busy.
rtt_us(Node, _TimeoutMs) when Node =:= node() -> 0;
rtt_us(Node, TimeoutMs) ->
    lists:min([element(1, timer:tc(fun() -> erpc:call(Node, erlang, node, [], TimeoutMs) end))
               || _ <- [1, 2]]).

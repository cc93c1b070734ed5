%% SPDX-License-Identifier: Apache-2.0
%% @doc Who watches whom. There is an agent for each group, and one for each free node, as in SD-Mon
%% (Chechina et al., "Evaluating Scalable Distributed Erlang for Scalability and Reliability",
%% section 6.5). Pure.
%%
%% The agent of a group is the first of its members, in term order, on which weft_ops runs. So
%% all members choose the same one without asking each other, and when a group changes, or a node
%% ends, the next choice is another one. A node in several groups reports to the agent of each. A
%% node in no group is its own agent. As that one can not say that it has ended, it has a witness,
%% to which it reports as well: another free node, the next one in term order. So each node has one
%% more to watch, however many there are.
-module(weft_ops_agents).

-export([of_node/2, all/2, witnesses/3, there/2, unproven/3, parted/2, text/1]).
-export_type([duty/0, role/0]).

%% More than so many in a row without weft_ops are not tried.
-define(WITNESSES_MAX, 3).

%% What an agent is for.
-type duty() :: {group, weft_group:name()} | {node, node()}.
%% What a node that is reported to is for.
-type role() :: duty() | witness.

%% @doc The duties under which Node reports, and for each the nodes that may be its agent, the best
%% one first.
-spec of_node(node(), #{weft_group:name() => [node()]}) -> #{duty() => [node(), ...]}.
of_node(Node, Groups) ->
    case [{{group, Name}, lists:sort(Nodes)} || {Name, Nodes} <- maps:to_list(Groups),
                                                lists:member(Node, Nodes)] of
        [] -> #{{node, Node} => [Node]};
        Own -> maps:from_list(Own)
    end.

%% @doc All duties in a cluster of these members.
-spec all([node()], #{weft_group:name() => [node()]}) -> #{duty() => [node(), ...]}.
all(Members, Groups) ->
    lists:foldl(fun(Node, Duties) -> maps:merge(Duties, of_node(Node, Groups)) end, #{}, Members).

%% @doc Which of these nodes may be the witness of Node, the best one first: those that are free, as
%% Node is.
-spec witnesses(node(), [node()], #{weft_group:name() => [node()]}) -> [node()].
witnesses(Node, Nodes, Groups) ->
    Grouped = lists:append(maps:values(Groups)),
    case lists:member(Node, Grouped) of
        true ->
            [];
        false ->
            {Before, Behind} = lists:partition(fun(Other) -> Other < Node end,
                                               lists:usort(Nodes) -- [Node | Grouped]),
            lists:sublist(Behind ++ Before, ?WITNESSES_MAX)
    end.

%% @doc The members that are connected; all that are if there is no topology, and so no member.
-spec there(Members :: [node()], Connected :: [node()]) -> [node()].
there([], Connected) -> Connected;
there(Members, Connected) -> Connected -- (Connected -- Members).

%% @doc Which of the candidates for roles would come before who has the role. In place of one that
%% is no candidate any more, and of nobody, there is this node, Self: for a duty it always may be.
-spec unproven(#{role() => node()}, #{role() => [node(), ...]}, Self :: node()) -> [node()].
unproven(Agents, Candidates, Self) ->
    lists:usort(lists:append([before([maps:get(Role, Agents, Self), Self], Nodes)
                              || {Role, Nodes} <- maps:to_list(Candidates)])).

before([Agent | Others], Nodes) ->
    case lists:splitwith(fun(Node) -> Node =/= Agent end, Nodes) of
        {Better, [Agent | _]} -> Better;
        {_All, []} -> before(Others, Nodes)
    end;
before([], _Nodes) ->
    [].

%% @doc Who has lost a role, and which node has it now. Where this node has the role no more, as it
%% has left a group, that is an agent of it. A witness would not do: alarms are given to that node,
%% and a witness would say that they are over, as it only knows whether a node is there.
-spec parted(#{role() => node()}, #{role() => node()}) ->
          [{Former :: node(), role(), Now :: node()}].
parted(Before, Agents) ->
    [Agent | _] = All = maps:values(maps:remove(witness, Agents)),
    lists:append([case Agents of
                      #{Role := Former} -> [];
                      #{Role := Now} -> [{Former, Role, Now}];
                      #{} -> [{Former, Role, Agent} || not lists:member(Former, All)]
                  end || {Role, Former} <- maps:to_list(Before)]).

%% @doc These duties for people, as in "the agents of group web, node a@h".
-spec text([duty()]) -> unicode:chardata().
text(Duties) -> lists:join(", ", [of_what(Duty) || Duty <- Duties]).

of_what({group, Name}) -> io_lib:format("group ~ts", [printed(Name)]);
of_what({node, Node}) -> ["node ", atom_to_list(Node)].

printed(Name) when is_atom(Name) -> atom_to_list(Name);
printed(Name) -> io_lib:format("~0tp", [Name]).

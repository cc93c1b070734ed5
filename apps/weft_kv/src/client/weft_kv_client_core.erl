%% SPDX-License-Identifier: Apache-2.0
%% @doc One request of a client to nodes of the store: which node is asked, and after which answers
%% another one. Pure.
%%
%% After an answer that says that nothing was done another node is asked, whatever the request is. A
%% read is also asked again if there was no answer, or an error of the replicas. A write of which
%% nobody knows whether it was done is asked `again', which a node may refuse (`weft_kv_served').
%% Then, or if there are no tries left, the client gets the error that leaves that open, and not a
%% later one that sounds as if nothing was done.
%%
%% `overload' is not asked elsewhere: the caller has to slow down.
-module(weft_kv_client_core).

-export([order/4, new/3, node/2, answered/3, unanswered/1]).
-export_type([state/0, answer/0]).

-type answer() :: term().

-record(tries, {kind :: read | write,
                nodes :: [node(), ...],
                left :: non_neg_integer(),
                asked = [] :: [node()],
                %% What was said of a write that may have been done.
                open = none :: none | {error, term()}}).

-opaque state() :: #tries{}.

%% @doc The nodes in the order in which they are asked for a key: those that have a replica of it,
%% then the others, one group after the other. Processes with different turns begin with different
%% ones, but a write goes to the first replica, which makes the new version for the others in any
%% case.
-spec order(read | write, Replicas :: [node()], Groups :: [[node()]], Turn :: non_neg_integer()) ->
          [node()].
order(Kind, Replicas, Groups, Turn) ->
    Nodes = lists:append(Groups),
    Known = [Node || Node <- Replicas, lists:member(Node, Nodes)],
    Others = lists:append([turned(Group -- Known, Turn) || Group <- Groups]),
    case Kind of
        read -> turned(Known, Turn) ++ Others;
        write -> Known ++ Others
    end.

turned([], _Turn) ->
    [];
turned(Nodes, Turn) ->
    {Behind, Before} = lists:split(Turn rem length(Nodes), Nodes),
    Before ++ Behind.

%% @doc A request that may be sent `Tries' times in all, to the nodes in this order.
-spec new(read | write, [node(), ...], pos_integer()) -> state().
new(Kind, Nodes, Tries) -> #tries{kind = Kind, nodes = Nodes, left = Tries}.

%% @doc Who is asked next: the first node that is connected and was not asked yet, or was not asked
%% for longest. How many tries there are with this one; the caller gives each an equal part of the
%% time that is left. `none': no node is connected.
-spec node([node()], state()) -> {ok, node(), first | again, TriesLeft :: pos_integer(), state()}
                               | none.
node(Connected, #tries{nodes = Nodes, asked = Asked, left = Left, open = Open} = State)
  when Left > 0 ->
    case [Node || Node <- (Nodes -- Asked) ++ lists:reverse(Asked),
                  lists:member(Node, Connected)] of
        [] -> none;
        [Node | _] ->
            Try = case Open of none -> first; _ -> again end,
            {ok, Node, Try, Left,
             State#tries{asked = [Node | lists:delete(Node, Asked)], left = Left - 1}}
    end.

%% @doc After the answer of a node, or what is said in its place (`{error, {unknown, Reason}}'): is
%% it that of the request? `refused' is an error of a node that can not serve at all.
-spec answered(answer(), refused | said, state()) -> {answer, answer()} | {next, state()}.
answered(Answer, Who, #tries{kind = Kind, open = Open, left = Left} = State) ->
    case verdict(Answer, Who) of
        open when Left > 0, Kind =:= read -> {next, State};
        open when Left > 0 -> {next, State#tries{open = Answer}};
        open -> {answer, Answer};
        done -> {answer, Answer};
        nothing_done when Left > 0 -> {next, State};
        _NotThisTime when Open =/= none -> {answer, Open};
        _ -> {answer, Answer}
    end.

verdict({error, _}, refused) -> nothing_done;
verdict({error, Reason}, said) -> verdict(Reason);
verdict(_, said) -> done.

verdict(no_ring) -> nothing_done;
verdict(not_running) -> nothing_done;
verdict({not_done, _}) -> nothing_done;
verdict(timeout) -> open;
verdict({too_few, _}) -> open;
verdict({unknown, _}) -> open;
verdict(_OfTheCaller) -> refusal.

%% @doc The error of a request for which no time is left.
-spec unanswered(state()) -> answer().
unanswered(#tries{open = none, nodes = Nodes}) -> {error, {no_node, Nodes}};
unanswered(#tries{open = Open}) -> Open.

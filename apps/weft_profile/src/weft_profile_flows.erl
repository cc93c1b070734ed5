%% SPDX-License-Identifier: Apache-2.0
%% @doc Finds for each message that arrived from another node where it was sent: the flow arrows of
%% a profile. Pure.
%%
%% A trace message of an arrival does not tell the sender, and a number in each message
%% (`seq_trace') would change what processes see. So a message is known by what it is: a hash of the
%% term, the references in it, and who gets it. Equal messages to the same process are taken in the
%% order in which they were sent, which is that of signals between two processes. References make
%% calls and their replies unique.
%%
%% Where nodes are traced in windows, both ends are in the same one: one end only says nothing.
%%
%% Limits. Equal messages to one process from several senders may be confused with each other. When
%% one of several equal messages was lost, or was sent before the recording, the arrows of those
%% after it begin one too early. A message to a name finds only a process that had this name when
%% the recording ended. What was not paired is counted: arrivals without a begin are dropped, so a
%% flow that ends has begun.
-module(weft_profile_flows).

-export([pair/2]).
-export_type([flow/0, counts/0, side/0]).

-type flow() :: #{id := pos_integer(), from := pid(), to := pid(), from_node := node(),
                  to_node := node(), sent := integer(), received := integer(), kind := atom(),
                  hops => [weft_profile_hops:hop()]}.
-type counts() :: #{paired := non_neg_integer(), not_received := non_neg_integer(),
                    not_sent := non_neg_integer()}.
%% What a node recorded. The error is that of its clock.
-type side() :: #{node := node(), error := non_neg_integer(), names := #{pid() => binary()},
                  events := [weft_profile_tracer:event()],
                  windows => [weft_profile_tracer:window()]}.

%% @doc All flows, sorted by the time of arrival. Messages to nodes that are not among those
%% recorded are not counted. At most Max flows are made, the rest counts as not received.
-spec pair([side()], Max :: pos_integer()) -> {[flow()], counts()}.
pair(Sides, Max) ->
    Nodes = [Node || #{node := Node} <- Sides],
    Sends = lists:keysort(1, [sent(Event, Side)
                              || #{events := Events} = Side <- Sides,
                                 {_, send, _, _, To, _, _} = Event <- Events,
                                 lists:member(node_of(To), Nodes)]),
    Waiting = queued(Sends, #{}),
    Arrivals = lists:keysort(1, [received(Event, Side) || #{events := Events} = Side <- Sides,
                                                          {_, 'receive', _, _, _, _} = Event
                                                              <- Events]),
    {Flows, _} = lists:foldl(fun arrival/2, {[], Waiting}, Arrivals),
    Made = lists:sublist(lists:reverse(Flows), Max),
    {numbered(Made), #{paired => length(Made), not_received => length(Sends) - length(Made),
                       not_sent => length(Arrivals) - length(Flows)}}.

numbered(Flows) ->
    [Flow#{id => Id} || {Id, Flow} <- lists:zip(lists:seq(1, length(Flows)), Flows)].

node_of({_Name, Node}) -> Node;
node_of(To) when is_atom(To) -> undefined;
node_of(To) -> node(To).

sent({Ns, send, Pid, _, To, Key, Kind}, #{node := Node, error := Error} = Side) ->
    {Ns, {addressed(To), Key, window(Ns, Side)},
     #{from => Pid, from_node => Node, sent => Ns, kind => Kind}, Error}.

%% A message has one of these addresses; the process that gets it may be any of them.
addressed(Pid) when is_pid(Pid) -> Pid;
addressed({Name, Node}) -> {Node, atom_to_binary(Name)};
addressed(Alias) -> {node(Alias), alias}.

received({Ns, 'receive', Pid, _, Key, _Kind}, Side) ->
    #{node := Node, names := Names, error := Error} = Side,
    Window = window(Ns, Side),
    Addresses = [Pid, {Node, alias}] ++ [{Node, Name} || #{Pid := Name} <- [Names]],
    {Ns, [{Address, Key, Window} || Address <- Addresses],
     #{to => Pid, to_node => Node, received => Ns}, Error}.

%% The last one that had begun.
window(Ns, Side) ->
    lists:max([0 | [Number || {Number, From, _} <- maps:get(windows, Side, []), From =< Ns]]).

queued(Sends, Queues) ->
    Reversed = lists:foldl(fun({_, Key, Sent, Error}, Acc) ->
                                   Acc#{Key => [{Sent, Error} | maps:get(Key, Acc, [])]}
                           end, Queues, Sends),
    maps:map(fun(_Key, Queue) -> lists:reverse(Queue) end, Reversed).

%% Nothing arrives before it is sent, but for the errors of the two clocks.
arrival({Ns, Keys, Received, Error}, {Flows, Waiting}) ->
    First = [{Sent, Key} || Key <- Keys, #{Key := [{#{sent := At} = Sent, Other} | _]} <- [Waiting],
                            At =< Ns + Error + Other],
    case lists:sort(fun({#{sent := A}, _}, {#{sent := B}, _}) -> A =< B end, First) of
        [{Sent, Key} | _] ->
            #{Key := [_ | Later]} = Waiting,
            {[maps:merge(Sent, Received) | Flows], Waiting#{Key := Later}};
        [] ->
            {Flows, Waiting}
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc When a message passed the gateways on its way, as far as a recording tells. Pure.
%%
%% Gateways relay packets and do not read them, so nothing says which packet was which message. But
%% the way of a message is known, and when the links of each gateway ran. A message has passed a
%% gateway while one of its links ran, after it was sent, after it passed the gateway before, and
%% before it arrived. The first such moment is taken. It is an estimate: the link may have relayed
%% something else then, and this message a little later. Where no link ran in that time, or the
%% gateway was not recorded, there is no moment.
-module(weft_profile_hops).

-export([add/1]).
-export_type([hop/0]).

%% On that node, at that time.
-type hop() :: {node(), Ns :: integer()}.

%% What the process of a link is called, if it has no name.
-define(LINK, <<"weft_link:init/1">>).

%% @doc The profile, in which each flow has the `hops' between its ends, in their order.
-spec add(weft_profile_recording:profile()) -> weft_profile_recording:profile().
add(#{nodes := Sides, flows := Flows, ways := Ways} = Profile) ->
    Between = lists:usort(lists:append([droplast(tl(Way)) || {_, [_ | _] = Way}
                                                                 <- maps:to_list(Ways)])),
    Errors = maps:from_list([{Node, Error} || #{node := Node, error := Error} <- Sides]),
    Worked = maps:from_list([{Node, {worked(Side), maps:get(Node, Errors)}}
                             || #{node := Node} = Side <- Sides, lists:member(Node, Between)]),
    Profile#{flows := [Flow#{hops => hops(Flow, Ways, Worked, Errors)} || Flow <- Flows]}.

droplast([]) -> [];
droplast(Nodes) -> lists:droplast(Nodes).

%% When its links ran, sorted, to be searched.
worked(#{names := Names, history := #{slices := Slices}}) ->
    list_to_tuple(lists:sort([{From, To} || #{pid := Pid, from := From, to := To} <- Slices,
                                            maps:get(Pid, Names, none) =:= ?LINK])).

hops(#{from_node := A, to_node := B, sent := Sent, received := Received}, Ways, Worked, Errors) ->
    case Ways of
        #{{A, B} := [A | Rest]} ->
            Margin = maps:get(A, Errors) + maps:get(B, Errors),
            passed(droplast(Rest), Sent, {Sent, Received}, Margin, Worked);
        #{} -> []
    end.

%% The clocks may differ: a moment is looked for that much earlier and later, and put in between.
passed([Node | Nodes], AfterNs, {Sent, Received} = Span, Margin, Worked) ->
    case Worked of
        #{Node := {Slices, Error}} ->
            case first(AfterNs - Margin - Error, Received + Margin + Error, Slices) of
                none -> passed(Nodes, AfterNs, Span, Margin, Worked);
                Ns ->
                    At = max(Sent, min(max(AfterNs, Ns), max(Sent, Received))),
                    [{Node, At} | passed(Nodes, At, Span, Margin, Worked)]
            end;
        #{} ->
            passed(Nodes, AfterNs, Span, Margin, Worked)
    end;
passed([], _AfterNs, _Span, _Margin, _Worked) ->
    [].

%% The first moment from From to To at which one of them was.
first(From, To, Slices) ->
    Next = search(From, Slices, 1, tuple_size(Slices) + 1),
    Candidates = [max(From, Start) || N <- [Next - 1, Next], N >= 1, N =< tuple_size(Slices),
                                      {Start, End} <- [element(N, Slices)], End >= From,
                                      Start =< To],
    case Candidates of
        [] -> none;
        _ -> lists:min(Candidates)
    end.

%% The first that begins at From or later.
search(_From, _Slices, Low, High) when Low =:= High ->
    Low;
search(From, Slices, Low, High) ->
    Middle = (Low + High) div 2,
    case element(1, element(Middle, Slices)) >= From of
        true -> search(From, Slices, Low, Middle);
        false -> search(From, Slices, Middle + 1, High)
    end.

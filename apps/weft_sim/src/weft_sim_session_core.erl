%% SPDX-License-Identifier: Apache-2.0
%% @doc Sessions in the simulator: the numbering and resume of the carrier over gateways that fail.
%%
%% Runs the carrier's own `weft_outbound_core' and `weft_inbound_core' as a machine of the simulated
%% world. Two ends push numbered payloads at each other; gateways relay by label, as `weft_switch'
%% does, and forget their labels when a link or they themselves fail. What the carrier does with
%% sockets and processes is played here: opening a circuit, closing it when a link breaks, resuming.
%%
%% Role `{source, Peer}' opens circuits, `{target, Peer}' is found, `gateway' relays. An end shows
%% `{delivered, Peer}' (how many payloads, in order), `{pushed, Peer}', and `disorder' if a payload
%% comes that is not the next one.
-module(weft_sim_session_core).
-behaviour(weft_core).

-export([init/2, handle/3]).

-define(PUSH_EVERY_MS, 10).
-define(OPEN_TIMEOUT_MS, 1000).
-define(RETRY_MS, 50).
-define(WINDOW_BYTES, 4000).

-record('end', {role :: source | target,
                self :: node(),
                peer :: node(),
                links = [] :: [node()],
                path :: undefined | {node(), Label :: pos_integer()},
                opening :: undefined | {node(), Label :: pos_integer()},
                next_label = 1 :: pos_integer(),
                to_push :: non_neg_integer(),
                pushed = 0 :: non_neg_integer(),
                delivered = 0 :: non_neg_integer(),
                out :: weft_outbound_core:state(),
                in :: weft_inbound_core:state(),
                rand :: rand:state()}).
-record(gateway, {links = [] :: [node()],
                  %% {Neighbour, Label} to the other side.
                  labels = #{} :: #{{node(), pos_integer()} => {node(), pos_integer()}},
                  next_label = 1000000 :: pos_integer()}).

%% @doc Options: `role', `payloads' (how many an end pushes), `seed'.
-spec init(node(), map()) -> {#'end'{} | #gateway{}, weft_core:effects()}.
init(_Self, #{role := gateway}) ->
    {#gateway{}, []};
init(Self, #{role := {Role, Peer}, payloads := Payloads} = Options) ->
    {#'end'{role = Role, self = Self, peer = Peer, to_push = Payloads,
            out = weft_outbound_core:new(?WINDOW_BYTES),
            in = weft_inbound_core:new(100 * ?WINDOW_BYTES),
            rand = weft_core:seed(Self, ?MODULE, Options)},
     [{after_ms, ?PUSH_EVERY_MS, push}]}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #'end'{} | #gateway{}) ->
          {#'end'{} | #gateway{}, weft_core:effects()}.
handle(Event, _NowMs, #gateway{} = Gateway) -> gateway(Event, Gateway);
handle(Event, _NowMs, #'end'{} = End) -> at_end(Event, End).

%% --- an end -----------------------------------------------------------------------------------

at_end({neighbour_up, Node}, #'end'{links = Links} = End) ->
    open(End#'end'{links = lists:usort([Node | Links])});
at_end({neighbour_down, Node, _}, #'end'{links = Links} = End0) ->
    End = End0#'end'{links = lists:delete(Node, Links)},
    case End of
        #'end'{path = {Node, _}} -> open(End#'end'{path = undefined});
        #'end'{opening = {Node, _}} -> open(End#'end'{opening = undefined});
        _ -> {End, []}
    end;
at_end({timer, push}, End0) ->
    {#'end'{to_push = Left} = End, Effects} = push(End0),
    {End, [{after_ms, ?PUSH_EVERY_MS, push} || Left > 0] ++ Effects};
at_end({timer, {open_timeout, Label}}, #'end'{opening = {_, Label}} = End) ->
    open(End#'end'{opening = undefined});
at_end({timer, retry}, End) ->
    open(End);
at_end({message, From, {open, Label, Received}}, #'end'{role = target, in = In} = End) ->
    {Resumed, Effects} = resume({From, Label}, Received, End),
    {Resumed, drop_path(End) ++ [{send, From, {accept, Label, weft_inbound_core:received(In)}}
                                 | Effects]};
at_end({message, From, {accept, Label, Received}}, #'end'{opening = {From, Label}} = End) ->
    resume({From, Label}, Received, End#'end'{opening = undefined});
at_end({message, From, {close, Label}}, #'end'{path = {From, Label}} = End) ->
    open(End#'end'{path = undefined});
at_end({message, From, {close, Label}}, #'end'{opening = {From, Label}} = End) ->
    {End#'end'{opening = undefined}, [{after_ms, ?RETRY_MS, retry}]};
at_end({message, _From, {ack, _Label, Sequence}}, #'end'{out = Out} = End) ->
    {End#'end'{out = weft_outbound_core:acked(Sequence, Out)}, []};
at_end({message, From, {data, Label, Sequence, Kind, Payload}}, End) ->
    receive_data(From, Label, Sequence, Kind, Payload, End);
at_end(_Stale, End) ->
    {End, []}.

%% The source looks for a way by any neighbour it has; the target waits.
open(#'end'{role = source, path = undefined, opening = undefined, links = [_ | _] = Links,
            next_label = Label, in = In, rand = Rand0} = End) ->
    {N, Rand} = rand:uniform_s(length(Links), Rand0),
    Via = lists:nth(N, Links),
    {End#'end'{opening = {Via, Label}, next_label = Label + 1, rand = Rand},
     [{send, Via, {open, Label, weft_inbound_core:received(In)}},
      {after_ms, ?OPEN_TIMEOUT_MS, {open_timeout, Label}}]};
open(End) ->
    {End, []}.

%% A late open may lead off a path that the source believes in: it has to hear that.
drop_path(#'end'{path = undefined}) -> [];
drop_path(#'end'{path = {Via, Label}}) -> [{send, Via, {close, Label}}].

resume(Path, Received, #'end'{out = Out0} = End) ->
    {ok, Items, Out} = weft_outbound_core:resume(Received, Out0),
    {End#'end'{path = Path, out = Out}, [data(Path, Item) || Item <- Items]}.

%% Payloads of different sizes, so that the window closes and opens.
push(#'end'{to_push = 0} = End) ->
    {End, []};
push(#'end'{peer = Peer, to_push = ToPush, pushed = Pushed, out = Out0, path = Path} = End) ->
    case weft_outbound_core:room(Out0) of
        true ->
            Payload = <<(Pushed + 1):32, 0:(8 * ((Pushed * 37) rem 900))>>,
            {Item, Out} = weft_outbound_core:push(frames, Payload, byte_size(Payload), Out0),
            {End#'end'{to_push = ToPush - 1, pushed = Pushed + 1, out = Out},
             [{view, {pushed, Peer}, Pushed + 1} | [data(Path, Item) || Path =/= undefined]]};
        false ->
            {End, []}
    end.

data({Via, Label}, {Sequence, Kind, Payload, _Bytes}) ->
    {send, Via, {data, Label, Sequence, Kind, Payload}}.

receive_data(From, Label, Sequence, Kind, Payload, #'end'{in = In0} = End0) ->
    {Deliveries, Ack, In} = weft_inbound_core:accept(Sequence, Kind, Payload, In0),
    {End, Effects} = lists:foldl(fun deliver/2, {End0#'end'{in = In}, []}, Deliveries),
    Acks = [{send, From, {ack, Label, weft_inbound_core:received(In)}} || Ack],
    {End, lists:reverse(Effects, Acks)}.

deliver({frames, <<Number:32, _/binary>>},
        {#'end'{delivered = Delivered, peer = Peer} = End, Effects})
  when Number =:= Delivered + 1 ->
    {End#'end'{delivered = Number}, [{view, {delivered, Peer}, Number} | Effects]};
deliver({frames, <<Number:32, _/binary>>}, {#'end'{delivered = Delivered} = End, Effects}) ->
    {End, [{view, disorder, {Number, after_number, Delivered}} | Effects]}.

%% --- a gateway --------------------------------------------------------------------------------

gateway({neighbour_up, Node}, #gateway{links = Links} = Gateway) ->
    {Gateway#gateway{links = lists:usort([Node | Links])}, []};
gateway({neighbour_down, Node, _}, #gateway{links = Links, labels = Labels} = Gateway) ->
    Lost = [{Side, Other} || {{Neighbour, _} = Side, Other} <- maps:to_list(Labels),
                             Neighbour =:= Node],
    Keys = lists:append([[Side, Other] || {Side, Other} <- Lost]),
    {Gateway#gateway{links = lists:delete(Node, Links), labels = maps:without(Keys, Labels)},
     [{send, Neighbour, {close, Label}} || {_, {Neighbour, Label}} <- Lost]};
gateway({message, From, {open, Label, Received}},
        #gateway{links = Links, labels = Labels, next_label = Next} = Gateway) ->
    %% Two neighbours matter to a gateway here: the end that asks and the other one.
    case Links -- [From] of
        [To | _] ->
            {Gateway#gateway{labels = Labels#{{From, Label} => {To, Next},
                                              {To, Next} => {From, Label}},
                             next_label = Next + 1},
             [{send, To, {open, Next, Received}}]};
        [] ->
            {Gateway, [{send, From, {close, Label}}]}
    end;
gateway({message, From, {close, Label}}, #gateway{labels = Labels} = Gateway) ->
    case Labels of
        #{{From, Label} := {To, Next} = Other} ->
            {Gateway#gateway{labels = maps:without([{From, Label}, Other], Labels)},
             [{send, To, {close, Next}}]};
        #{} ->
            {Gateway, []}
    end;
gateway({message, From, Message}, #gateway{labels = Labels} = Gateway) ->
    Label = element(2, Message),
    case Labels of
        #{{From, Label} := {To, Next}} -> {Gateway, [{send, To, setelement(2, Message, Next)}]};
        #{} -> {Gateway, [{send, From, {close, Label}}]}
    end;
gateway(_Other, Gateway) ->
    {Gateway, []}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Messages that drivers on other nodes send directly to this one, put in the order sent.
%%
%% Pure; part of the driver. The driver learns from its links that a session is up. The first
%% messages of the session may come before that news. They are returned to the links, which know all
%% sessions, and come again after the news (`unknown'). Meanwhile later messages arrive; messages
%% are numbered, so these wait for the earlier ones. None is missing for long: a message is lost
%% only with its connection, and then the links say `down'.
-module(weft_driver_order).

-export([new/0, up/3, down/2, arrived/4]).
-export_type([order/0]).

-type session() :: pos_integer().
-type count() :: pos_integer().
-opaque order() :: #{session() => {node(), Next :: count(), Early :: #{count() => term()}}}.

%% @doc No session.
-spec new() -> order().
new() -> #{}.

%% @doc The session of that number is with Node from now on; it begins with message 1.
-spec up(session(), node(), order()) -> order().
up(Session, Node, Order) -> Order#{Session => {Node, 1, #{}}}.

%% @doc The session with Node is over, and so is what waits in it.
-spec down(node(), order()) -> order().
down(Node, Order) -> maps:filter(fun(_Session, {Other, _, _}) -> Other =/= Node end, Order).

%% @doc A message of a session. Answers the sender and the messages that may be handled now, in
%% order. `unknown' if there is no such session (yet).
-spec arrived(session(), count(), Message :: term(), order()) ->
          {node(), [Message :: term()], order()} | unknown.
arrived(Session, Number, Message, Order) ->
    case Order of
        #{Session := {Node, Number, Early}} when map_size(Early) =:= 0 ->
            {Node, [Message], Order#{Session := {Node, Number + 1, Early}}};
        #{Session := {Node, Next, Early}} ->
            {Now, Later, Left} = in_a_row(Next, Early#{Number => Message}, []),
            {Node, Now, Order#{Session := {Node, Later, Left}}};
        #{} ->
            unknown
    end.

in_a_row(Next, Early, Before) ->
    case maps:take(Next, Early) of
        {Message, Left} -> in_a_row(Next + 1, Left, [Message | Before]);
        error -> {lists:reverse(Before), Next, Early}
    end.

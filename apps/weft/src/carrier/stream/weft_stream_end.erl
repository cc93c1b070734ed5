%% SPDX-License-Identifier: Apache-2.0
%% @doc Whose word ends a stream, and whose does not.
%%
%% Pure; asked by `weft_stream_core' about what its owner hears. That a path is lost says nothing
%% about the node at its other end, for which another path may be found. A stream that has begun,
%% so that the peer has it, too, has ended when
%% <ul>
%% <li>a link says that the peer has ended it, does not know it any more, or is gone: these reasons
%%     come from the peer, or from the network about the peer;</li>
%% <li>another incarnation of the peer's node answers, unless the stream is with that one, by
%%     another way;</li>
%% <li>the incarnation that it is with has ended, and there is no path. The news may come before the
%%     path is lost: while there is one it is not believed, and looked up when the path is
%%     lost;</li>
%% <li>the peer has left a neighbour, and was not found elsewhere in the time that it gets for
%%     this;</li>
%% <li>something that it needs on this node is gone.</li>
%% </ul>
%% Before it has begun there is nothing to end: what is heard ends the attempt to find a path, if it
%% is about that attempt.
%%
%% Not here: when the search for a path is given up, which ends a stream as well
%% (`weft_path_search').
-module(weft_stream_end).

-export([heard/2]).
-export_type([event/0, about/0]).

-type link() :: term().
-type label() :: weft_wire:label().

-type event() ::
        %% A link says that a circuit is no more: that one, or any to the peer.
        {closed, link(), label() | any, Reason :: term(), about()}
        %% That incarnation of the peer's node answers on a link.
      | {restarted, Now :: non_neg_integer()}
        %% What other nodes say of the peer's node in that incarnation.
      | {died, node(), non_neg_integer()} | {departed, node(), non_neg_integer(), Witness :: term()}
        %% The peer's node, which was lost then, had time to come back.
      | {return_is_due, SinceUs :: integer(), HasRoute :: boolean()}
        %% What the stream needs on this node is gone.
      | {without, Reason :: term()}.

%% What the caller knows when a path is lost or refused.
-type about() :: #{%% The incarnation of the peer that this stream is with has ended.
                   has_died := boolean(),
                   %% There is a route to the peer, or there may be one soon.
                   may_be_found := boolean(),
                   resume_timeout_ms := auto | pos_integer(),
                   net_ticktime_ms := pos_integer()}.

%% What the stream knows.
-type known() :: #{established := boolean(), incarnation := non_neg_integer() | undefined,
                   path := none | {link(), label()}, search := weft_path_search:search()}.

%% path_lost: it was that of the stream, which has ended, too, or has not. failed: what is tried
%% now. may_return: the peer gets time for it. died: others say so, and may be wrong.
-type verdict() :: {ended, Reason :: term()}
                 | {path_lost, Reason :: term(), died | lives}
                 | {failed, Reason :: term(), MayBeFound :: boolean()}
                 | {may_return, node()}
                 | nothing.

%% @doc What an event says about the end of a stream. `nothing' for one that says nothing about it.
-spec heard(event() | weft_path_search:event(), known()) -> verdict().
heard({closed, Link, Label, Reason, About}, Known) ->
    closed(Link, Label, Reason, About, Known);
heard({restarted, Now}, #{established := true, incarnation := Incarnation})
  when Incarnation =/= Now ->
    {ended, gone};
heard({died, _Node, Incarnation},
      #{path := none, established := true, incarnation := Incarnation}) ->
    {ended, died};
heard({departed, Node, Incarnation, _Witness}, #{path := none, incarnation := Incarnation}) ->
    {may_return, Node};
heard({return_is_due, SinceUs, false}, #{path := none, established := true, search := Search}) ->
    case weft_path_search:is_lost_since(SinceUs, Search) of
        true -> {ended, departed};
        false -> nothing
    end;
heard({without, Reason}, #{established := true}) ->
    {ended, Reason};
heard({without, Reason}, _Known) ->
    {failed, Reason, true};
heard(_Event, _Known) ->
    nothing.

closed(_Link, _Label, Reason, _About, #{established := true})
  when Reason =:= ended; Reason =:= gone; Reason =:= refused; Reason =:= timed_out ->
    {ended, Reason};
closed(Link, Label, Reason, #{has_died := HasDied}, #{path := {Link, Current}})
  when Reason =/= departed, Label =:= Current orelse Label =:= any ->
    {path_lost, Reason, case HasDied of true -> died; false -> lives end};
closed(_Link, any, departed, _About, #{path := none, established := true}) ->
    {ended, departed};
closed(Link, Label, Reason, #{may_be_found := MayBeFound}, #{path := none, search := Search}) ->
    case weft_path_search:concerns(Link, Label, Search) of
        true -> {failed, Reason, MayBeFound};
        false -> nothing
    end;
closed(_Link, _Label, _Reason, _About, _OnAPath) ->
    nothing.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Seqno requests in progress (RFC 8966, 3.8): pure data of `weft_router_core'.
%%
%% A node that knows only unfeasible routes to a destination, or a better one that is unfeasible,
%% asks the destination for a newer seqno. A node repeats its own request, at doubling intervals,
%% while it still needs the answer, and at once if another neighbour has become the one to ask:
%% where links change the request before has often ended at one that is gone. Within an interval
%% each neighbour is asked once. A request that passes through is kept once, with all neighbours
%% that wait for the answer, and forgotten after one interval. There is one entry for a destination.
-module(weft_router_requests).

-export([new/1, want/5, relay/6, answered/3, due/2, drop/2, lost/2, is_empty/1]).
-export_type([requests/0]).

-record(request, {
    seqno :: non_neg_integer(),
    is_own :: boolean(),
    tries = 0 :: non_neg_integer(),
    due_ms :: integer(),
    %% Neighbours that it was sent to in this interval.
    asked :: [weft_core:node_id()],
    waiting = [] :: [weft_core:node_id()]}).

-record(requests, {
    retry_ms :: pos_integer(),
    open = #{} :: #{weft_core:node_id() => #request{}}}).

-opaque requests() :: #requests{}.

%% Own requests are repeated at most every retry_ms * 2^DOUBLINGS_MAX.
-define(DOUBLINGS_MAX, 5).

%% @doc No request in progress.
-spec new(RetryMs :: pos_integer()) -> requests().
new(RetryMs) ->
    #requests{retry_ms = RetryMs}.

%% @doc This node wants a route to Dest with at least Seqno, and Node is the neighbour to ask.
%% `send' if the request is to be sent now, `wait' if it was sent there recently.
-spec want(Dest :: weft_core:node_id(), Node :: weft_core:node_id(), non_neg_integer(),
           NowMs :: integer(), requests()) -> {send | wait, requests()}.
want(Dest, Node, Seqno, NowMs, #requests{open = Open, retry_ms = RetryMs} = Requests) ->
    case Open of
        #{Dest := #request{seqno = Fresh, due_ms = DueMs, asked = Asked} = Request}
          when Fresh >= Seqno, DueMs > NowMs ->
            {case lists:member(Node, Asked) of true -> wait; false -> send end,
             put_open(Dest, Request#request{is_own = true, asked = lists:usort([Node | Asked])},
                      Requests)};
        #{Dest := #request{tries = Tries, waiting = Waiting}} ->
            DueMs = NowMs + (RetryMs bsl min(Tries + 1, ?DOUBLINGS_MAX)),
            {send, put_open(Dest, #request{seqno = Seqno, is_own = true, tries = Tries + 1,
                                           due_ms = DueMs, asked = [Node], waiting = Waiting},
                            Requests)};
        #{} ->
            {send, put_open(Dest, #request{seqno = Seqno, is_own = true, due_ms = NowMs + RetryMs,
                                           asked = [Node]}, Requests)}
    end.

%% @doc A neighbour wants a route to Dest with at least Seqno; it would be asked for at Next. `send'
%% if the request is to be passed on, `wait' if one that serves as well is in progress.
-spec relay(From :: weft_core:node_id(), Next :: weft_core:node_id(), Dest :: weft_core:node_id(),
            non_neg_integer(), NowMs :: integer(), requests()) -> {send | wait, requests()}.
relay(From, Next, Dest, Seqno, NowMs, #requests{open = Open, retry_ms = RetryMs} = Requests) ->
    case Open of
        #{Dest := #request{seqno = Fresh, due_ms = DueMs, waiting = Waiting} = Request} ->
            Waits = Request#request{waiting = lists:usort([From | Waiting])},
            case Fresh >= Seqno andalso DueMs > NowMs of
                true -> {wait, put_open(Dest, Waits, Requests)};
                false -> {send, put_open(Dest, Waits#request{seqno = max(Seqno, Fresh),
                                                             due_ms = NowMs + RetryMs,
                                                             asked = [Next]}, Requests)}
            end;
        #{} ->
            {send, put_open(Dest, #request{seqno = Seqno, is_own = false, waiting = [From],
                                           due_ms = NowMs + RetryMs, asked = [Next]}, Requests)}
    end.

%% @doc We now have a route to Dest with Seqno. Answers the neighbours that waited for it.
-spec answered(Dest :: weft_core:node_id(), non_neg_integer(), requests()) ->
          {[weft_core:node_id()], requests()}.
answered(Dest, Seqno, #requests{open = Open} = Requests) ->
    case Open of
        #{Dest := #request{seqno = Wanted, waiting = Waiting}} when Seqno >= Wanted ->
            {Waiting, drop(Dest, Requests)};
        #{} ->
            {[], Requests}
    end.

%% @doc Destinations whose request has waited long enough. Own ones are to be examined again;
%% relayed ones are dropped.
-spec due(NowMs :: integer(), requests()) -> {Own :: [weft_core:node_id()], requests()}.
due(NowMs, #requests{open = Open} = Requests) ->
    Due = maps:filter(fun(_, #request{due_ms = DueMs}) -> DueMs =< NowMs end, Open),
    {Own, Relayed} = lists:partition(fun({_, #request{is_own = IsOwn}}) -> IsOwn end,
                                     lists:sort(maps:to_list(Due))),
    Left = maps:without([Dest || {Dest, _} <- Relayed], Open),
    {[Dest || {Dest, _} <- Own], Requests#requests{open = Left}}.

%% @doc Forgets the request for Dest.
-spec drop(weft_core:node_id(), requests()) -> requests().
drop(Dest, #requests{open = Open} = Requests) ->
    Requests#requests{open = maps:remove(Dest, Open)}.

%% @doc That neighbour is gone, and with it the requests that were sent there. Own ones are to be
%% examined again.
-spec lost(Node :: weft_core:node_id(), requests()) -> {Own :: [weft_core:node_id()], requests()}.
lost(Node, #requests{open = Open} = Requests) ->
    There = maps:filter(fun(_, #request{asked = Asked}) -> lists:member(Node, Asked) end, Open),
    Left = maps:map(fun(_, #request{asked = Asked} = Request) ->
                            Request#request{asked = lists:delete(Node, Asked)}
                    end, There),
    {[Dest || {Dest, #request{is_own = true}} <- lists:sort(maps:to_list(There))],
     Requests#requests{open = maps:merge(Open, Left)}}.

%% @doc Whether no request is in progress.
-spec is_empty(requests()) -> boolean().
is_empty(#requests{open = Open}) ->
    map_size(Open) =:= 0.

put_open(Dest, Request, #requests{open = Open} = Requests) ->
    Requests#requests{open = Open#{Dest => Request}}.

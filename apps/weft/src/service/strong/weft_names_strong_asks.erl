%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node asks the leaders of a strong scope. Requests are sent, and sent again to another
%% replica if no answer comes; leases are renewed. `weft_names_strong_route' says which replica to
%% ask, `weft_names_strong_requests' has the requests in progress, and `weft_names_strong_client'
%% handles the answers.
-module(weft_names_strong_asks).

-export([request/6, started/3, leader/3, led_by/3, request/2, removed/2, untouched/2, resent/3,
         ids/2, renew/3, elsewhere/3, again/3]).

-import(weft_names_strong_leases, [effect/2, holdings/2, part/2, put_part/3, life/2, sum/2]).

-include("weft_names_strong_client.hrl").

%% @doc A request for a name, as it is sent.
-spec request(Name :: term(), Wire :: tuple(), From :: term(), OnLost :: term(),
              DeadlineMs :: integer(), env()) -> weft_names_strong_requests:request().
request(Name, Wire, From, OnLost, DeadlineMs, #{now_ms := NowMs, options := Options}) ->
    P = weft_names_strong_homes:partition(Name, map_get(partitions, Options)),
    ?REQUESTS:request({Name, P}, Wire, From, OnLost, {NowMs, DeadlineMs}).

watched(Pid, Id, #client{holdings = Holdings} = Client) ->
    holdings(?HOLDINGS:watch(Pid, {request, Id}, Holdings), Client).

unwatched(Pid, Id, #client{holdings = Holdings} = Client) ->
    holdings(?HOLDINGS:unwatch(Pid, {request, Id}, Holdings), Client).

%% @doc The request is in progress; its process is monitored.
-spec started(weft_names_strong_requests:request(), #client{}, env()) -> #client{}.
started(#{part := P} = Request, #client{requests = Requests0} = Client0, Env) ->
    {Id, Requests} = ?REQUESTS:add(Request, Requests0),
    Client = put_part(P, part(P, Client0), Client0#client{requests = Requests}),
    sent(P, [Id], case ?REQUESTS:pid(Request) of
                      {ok, Pid} -> watched(Pid, Id, Client);
                      none -> Client
                  end, Env).

sent(_P, [], Client, _Env) ->
    Client;
sent(P, Ids, Client0, #{now_ms := NowMs, incarnation := Incarnation} = Env) ->
    {Leader, #client{requests = Requests0} = Client} = leader(P, Client0, Env),
    {Oldest, Messages, Requests} = ?REQUESTS:send(P, Ids, NowMs, Requests0),
    #part{lease = Lease} = Part = part(P, Client),
    Asks = [case Message of
                {write, Writes} -> {write, life(Part, Env), Lease, Oldest, Writes};
                {read, Reads} -> {read, Incarnation, Reads}
            end || Message <- Messages],
    lists:foldl(fun(Ask, C) -> effect({send, Leader, {ask, P, Ask}}, C) end,
                Client#client{requests = Requests}, Asks).

%% @doc The replica to ask about a partition. Nodes with replicas that are not up are to be
%% connected.
-spec leader(P :: non_neg_integer(), #client{}, env()) -> {node(), #client{}}.
leader(P, #client{routes = Routes0} = Client0, #{up := Up, places := Places}) ->
    Homes = map_get(P, Places),
    {Leader, IsNew, Routes} = weft_names_strong_route:choose(P, Homes, Up, Routes0),
    Client = Client0#client{routes = Routes},
    {Leader, lists:foldl(fun(Home, C) -> effect({connect, Home}, C) end, Client,
                         [Home || IsNew, Home <- Homes, not is_map_key(Home, Up)])}.

%% @doc The replica answered as the leader does.
-spec led_by(node(), P :: non_neg_integer(), #client{}) -> #client{}.
led_by(From, P, #client{routes = Routes} = Client) ->
    Client#client{routes = weft_names_strong_route:answered(P, From, Routes)}.

%% @doc A request that is in progress.
-spec request(Id :: pos_integer(), #client{}) -> weft_names_strong_requests:request() | none.
request(Id, #client{requests = Requests}) -> ?REQUESTS:find(Id, Requests).

%% @doc A request is over; its process is no longer monitored for it.
-spec removed(Id :: pos_integer(), #client{}) -> #client{}.
removed(Id, #client{requests = Requests} = Client0) ->
    Client = Client0#client{requests = ?REQUESTS:remove(Id, Requests)},
    case ?REQUESTS:pid(request(Id, Client0)) of
        {ok, Pid} -> unwatched(Pid, Id, Client);
        none -> Client
    end.

%% @doc These requests were not carried out.
-spec untouched([pos_integer()], #client{}) -> #client{}.
untouched(Ids, #client{requests = Requests} = Client) ->
    Client#client{requests = ?REQUESTS:not_carried_out(Ids, Requests)}.

%% @doc All requests of a partition that are in progress are sent again, a renewal too.
-spec resent(P :: non_neg_integer(), #client{}, env()) -> #client{}.
resent(P, Client, Env) ->
    #part{renewal = Renewal} = Part = part(P, Client),
    Again = sent(P, ids(P, Client), put_part(P, Part#part{renewal = none}, Client), Env),
    case Renewal of
        none -> Again;
        _ -> renew(P, Again, Env)
    end.

%% @doc The requests of a partition that are in progress.
-spec ids(P :: non_neg_integer(), #client{}) -> [pos_integer()].
ids(P, #client{requests = Requests}) -> ?REQUESTS:ids(P, Requests).

%% @doc Asks for the lease of a partition to be renewed.
-spec renew(P :: non_neg_integer(), #client{}, env()) -> #client{}.
renew(P, #client{requests = Requests0} = Client0, #{now_ms := NowMs} = Env) ->
    {Id, Requests} = ?REQUESTS:number(Requests0),
    {Leader, Client} = leader(P, Client0#client{requests = Requests}, Env),
    #part{lease = Lease} = Part = part(P, Client),
    effect({send, Leader, {ask, P, {renew, life(Part, Env), Lease, Id, sum(P, Client)}}},
           put_part(P, Part#part{renewal = {Id, NowMs}, renewed_ms = NowMs}, Client)).

%% @doc The next request goes to another replica.
-spec elsewhere(P :: non_neg_integer(), #client{}, env()) -> #client{}.
elsewhere(P, #client{routes = Routes} = Client, #{places := Places}) ->
    Client#client{routes = weft_names_strong_route:elsewhere(P, map_get(P, Places), Routes)}.

%% @doc Requests without an answer for too long are sent again, to another replica.
-spec again(P :: non_neg_integer(), #client{}, env()) -> #client{}.
again(P, #client{requests = Requests} = Client,
      #{now_ms := NowMs, options := #{retry_ms := RetryMs}} = Env) ->
    #part{renewal = Renewal} = Part = part(P, Client),
    case {?REQUESTS:is_late(P, NowMs - RetryMs, Requests), Renewal} of
        {true, _} -> resent(P, elsewhere(P, Client, Env), Env);
        {false, {_, SentMs}} when NowMs - SentMs >= 2 * RetryMs ->
            renew(P, elsewhere(P, put_part(P, Part#part{renewal = none}, Client), Env), Env);
        _ -> Client
    end.

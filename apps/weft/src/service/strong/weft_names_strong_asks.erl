%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node asks the leaders of a strong scope. Requests are sent, and sent again to another
%% replica if no answer comes; leases are renewed. `weft_names_strong_route' says which replica to
%% ask, `weft_names_strong_requests' has the requests in progress, and `weft_names_strong_owner'
%% handles the answers.
-module(weft_names_strong_asks).

-export([request/6, started/3, leader/3, led_by/3, request/2, removed/2, untouched/2, resent/3,
         ids/2, renew/3, elsewhere/3, again/3]).

-import(weft_names_strong_leases, [effect/2, holdings/2, part/2, put_part/3, incarnation/2, sum/2]).

-include("weft_names_strong_owner.hrl").

%% @doc A request for a name, as it is sent.
-spec request(Name :: term(), Wire :: tuple(), From :: term(), OnLost :: term(),
              DeadlineMs :: integer(), env()) -> weft_names_strong_requests:request().
request(Name, Wire, From, OnLost, DeadlineMs, #{now_ms := NowMs, options := Options}) ->
    P = weft_names_strong_placement:partition(Name, map_get(partitions, Options)),
    ?REQUESTS:request({Name, P}, Wire, From, OnLost, {NowMs, DeadlineMs}).

watched(Pid, Id, #owner{holdings = Holdings} = Owner) ->
    holdings(?HOLDINGS:watch(Pid, {request, Id}, Holdings), Owner).

unwatched(Pid, Id, #owner{holdings = Holdings} = Owner) ->
    holdings(?HOLDINGS:unwatch(Pid, {request, Id}, Holdings), Owner).

%% @doc The request is in progress; its process is monitored.
-spec started(weft_names_strong_requests:request(), #owner{}, env()) -> #owner{}.
started(#{part := P} = Request, #owner{requests = Requests0} = Owner0, Env) ->
    {Id, Requests} = ?REQUESTS:add(Request, Requests0),
    Owner = put_part(P, part(P, Owner0), Owner0#owner{requests = Requests}),
    sent(P, [Id], case ?REQUESTS:pid(Request) of
                      {ok, Pid} -> watched(Pid, Id, Owner);
                      none -> Owner
                  end, Env).

sent(_P, [], Owner, _Env) ->
    Owner;
sent(P, Ids, Owner0, #{now_ms := NowMs, incarnation := Incarnation} = Env) ->
    {Leader, #owner{requests = Requests0} = Owner} = leader(P, Owner0, Env),
    {Oldest, Messages, Requests} = ?REQUESTS:send(P, Ids, NowMs, Requests0),
    #part{lease = Lease} = Part = part(P, Owner),
    Asks = [case Message of
                {write, Writes} -> {write, incarnation(Part, Env), Lease, Oldest, Writes};
                {read, Reads} -> {read, Incarnation, Reads}
            end || Message <- Messages],
    lists:foldl(fun(Ask, C) -> effect({send, Leader, {ask, P, Ask}}, C) end,
                Owner#owner{requests = Requests}, Asks).

%% @doc The replica to ask about a partition. Nodes with replicas that are not up are to be
%% connected.
-spec leader(P :: non_neg_integer(), #owner{}, env()) -> {node(), #owner{}}.
leader(P, #owner{routes = Routes0} = Owner0, #{up := Up, places := Places}) ->
    Replicas = map_get(P, Places),
    {Leader, IsNew, Routes} = weft_names_strong_route:choose(P, Replicas, Up, Routes0),
    Owner = Owner0#owner{routes = Routes},
    {Leader, lists:foldl(fun(Replica, C) -> effect({connect, Replica}, C) end, Owner,
                         [Replica || IsNew, Replica <- Replicas, not is_map_key(Replica, Up)])}.

%% @doc The replica answered as the leader does.
-spec led_by(node(), P :: non_neg_integer(), #owner{}) -> #owner{}.
led_by(From, P, #owner{routes = Routes} = Owner) ->
    Owner#owner{routes = weft_names_strong_route:answered(P, From, Routes)}.

%% @doc A request that is in progress.
-spec request(Id :: pos_integer(), #owner{}) -> weft_names_strong_requests:request() | none.
request(Id, #owner{requests = Requests}) -> ?REQUESTS:find(Id, Requests).

%% @doc A request is over; its process is no longer monitored for it.
-spec removed(Id :: pos_integer(), #owner{}) -> #owner{}.
removed(Id, #owner{requests = Requests} = Owner0) ->
    Owner = Owner0#owner{requests = ?REQUESTS:remove(Id, Requests)},
    case ?REQUESTS:pid(request(Id, Owner0)) of
        {ok, Pid} -> unwatched(Pid, Id, Owner);
        none -> Owner
    end.

%% @doc These requests were not carried out.
-spec untouched([pos_integer()], #owner{}) -> #owner{}.
untouched(Ids, #owner{requests = Requests} = Owner) ->
    Owner#owner{requests = ?REQUESTS:not_carried_out(Ids, Requests)}.

%% @doc All requests of a partition that are in progress are sent again, a renewal too.
-spec resent(P :: non_neg_integer(), #owner{}, env()) -> #owner{}.
resent(P, Owner, Env) ->
    #part{renewal = Renewal} = Part = part(P, Owner),
    Again = sent(P, ids(P, Owner), put_part(P, Part#part{renewal = none}, Owner), Env),
    case Renewal of
        none -> Again;
        _ -> renew(P, Again, Env)
    end.

%% @doc The requests of a partition that are in progress.
-spec ids(P :: non_neg_integer(), #owner{}) -> [pos_integer()].
ids(P, #owner{requests = Requests}) -> ?REQUESTS:ids(P, Requests).

%% @doc Asks for the lease of a partition to be renewed.
-spec renew(P :: non_neg_integer(), #owner{}, env()) -> #owner{}.
renew(P, #owner{requests = Requests0} = Owner0, #{now_ms := NowMs} = Env) ->
    {Id, Requests} = ?REQUESTS:number(Requests0),
    {Leader, Owner} = leader(P, Owner0#owner{requests = Requests}, Env),
    #part{lease = Lease} = Part = part(P, Owner),
    effect({send, Leader, {ask, P, {renew, incarnation(Part, Env), Lease, Id, sum(P, Owner)}}},
           put_part(P, Part#part{renewal = {Id, NowMs}, renewed_ms = NowMs}, Owner)).

%% @doc The next request goes to another replica.
-spec elsewhere(P :: non_neg_integer(), #owner{}, env()) -> #owner{}.
elsewhere(P, #owner{routes = Routes} = Owner, #{places := Places}) ->
    Owner#owner{routes = weft_names_strong_route:elsewhere(P, map_get(P, Places), Routes)}.

%% @doc Requests without an answer for too long are sent again, to another replica.
-spec again(P :: non_neg_integer(), #owner{}, env()) -> #owner{}.
again(P, #owner{requests = Requests} = Owner,
      #{now_ms := NowMs, options := #{retry_ms := RetryMs}} = Env) ->
    #part{renewal = Renewal} = Part = part(P, Owner),
    case {?REQUESTS:is_late(P, NowMs - RetryMs, Requests), Renewal} of
        {true, _} -> resent(P, elsewhere(P, Owner, Env), Env);
        {false, {_, SentMs}} when NowMs - SentMs >= 2 * RetryMs ->
            renew(P, elsewhere(P, put_part(P, Part#part{renewal = none}, Owner), Env), Env);
        _ -> Owner
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The leases of a node in a strong scope, and the names that depend on them.
%%
%% All names of this node in one partition depend on one lease. It lasts from the moment when the
%% last request was sent that a leader confirmed, and a name is held as long as its lease.
%% `weft_names_strong_owner' decides when a lost lease is followed by a new one, and
%% `weft_names_strong_asks' sends the requests.
-module(weft_names_strong_leases).

-export([held/3, effect/2, holdings/2, part/2, put_part/3, incarnation/2, cached/4, uncached/2,
         cache/2, owned/5, released/2, lost/3, sum/2, extended/4]).

-include("weft_names_strong_owner.hrl").

%% @doc What is known of a name that this node owns. A lease that has ended is not valid, even
%% before the tick that removes it.
-spec held(Name :: term(), #owner{}, env()) -> ?HOLDINGS:holding() | none.
held(Name, #owner{holdings = Holdings} = Owner, #{now_ms := NowMs}) ->
    case ?HOLDINGS:find(Name, Holdings) of
        none -> none;
        #{part := P} = Holding ->
            case part(P, Owner) of
                #part{until_ms = UntilMs} when UntilMs > NowMs -> Holding;
                #part{} -> none
            end
    end.

%% @doc One more effect.
-spec effect(term(), #owner{}) -> #owner{}.
effect(Effect, #owner{out = Out} = Owner) ->
    Owner#owner{out = [Effect | Out]}.

%% @doc What is owned has changed, with these effects.
-spec holdings({?HOLDINGS:holdings(), [term()]}, #owner{}) -> #owner{}.
holdings({Holdings, Effects}, Owner) ->
    lists:foldl(fun effect/2, Owner#owner{holdings = Holdings}, Effects).

%% @doc The lease of a partition.
-spec part(P :: non_neg_integer(), #owner{}) -> #part{}.
part(P, #owner{parts = Parts}) -> maps:get(P, Parts, #part{}).

-spec put_part(P :: non_neg_integer(), #part{}, #owner{}) -> #owner{}.
put_part(P, Part, #owner{parts = Parts} = Owner) ->
    Owner#owner{parts = Parts#{P => Part}}.

%% @doc The incarnation of this node in a partition, with the count of leases that it has lost
%% there.
-spec incarnation(#part{}, env()) -> {Incarnation :: non_neg_integer(), Count :: non_neg_integer()}.
incarnation(#part{count = Count}, #{incarnation := Incarnation}) -> {Incarnation, Count}.

%% @doc What the leader said about a name of another node is kept for a while, which begins when it
%% was asked: the answer may be late, and the name given up meanwhile.
-spec cached(weft_names_strong_requests:request(),
             {Pid :: term(), Token :: pos_integer(), Meta :: term()}, #owner{}, env()) -> #owner{}.
cached(#{name := Name, first_ms := AskedMs}, Value,
       #owner{cache = Cache, holdings = Holdings} = Owner,
       #{now_ms := NowMs, options := #{cache_ms := CacheMs}}) ->
    UntilMs = AskedMs + CacheMs,
    case ?HOLDINGS:find(Name, Holdings) of
        none when UntilMs > NowMs ->
            cache(weft_names_strong_cache:put(Name, Value, UntilMs, Cache), Owner);
        _OwnOrOver -> Owner
    end.

-spec uncached(Name :: term(), #owner{}) -> #owner{}.
uncached(Name, #owner{cache = Cache} = Owner) ->
    cache(weft_names_strong_cache:drop(Name, Cache), Owner).

%% @doc The cache has changed, with these effects.
-spec cache({weft_names_strong_cache:cache(), [term()]}, #owner{}) -> #owner{}.
cache({Cache, Effects}, Owner) ->
    lists:foldl(fun effect/2, Owner#owner{cache = Cache}, Effects).

%% @doc The name that was asked for is owned now.
-spec owned(weft_names_strong_requests:request(), Token :: pos_integer(), Pid :: term(),
            Meta :: term(), #owner{}) -> #owner{}.
owned(#{name := Name, part := P, on_lost := OnLost}, Token, Pid, Meta, Owner0) ->
    #owner{holdings = Holdings} = Owner = uncached(Name, Owner0),
    Holding = #{part => P, pid => Pid, token => Token, meta => Meta, on_lost => OnLost},
    holdings(?HOLDINGS:put(Name, Holding, Holdings), Owner).

%% @doc The name is given up; its process is not told.
-spec released(Name :: term(), #owner{}) -> #owner{}.
released(Name, #owner{holdings = Holdings} = Owner) ->
    holdings(?HOLDINGS:drop(Name, Holdings), Owner).

%% @doc The name is lost; its process is told in the way that it chose.
-spec lost(Name :: term(), #owner{}, env()) -> #owner{}.
lost(Name, #owner{holdings = Holdings} = Owner, #{scope := Scope}) ->
    holdings(?HOLDINGS:lose(Name, Scope, Holdings), Owner).

%% @doc The sum of all tokens in a partition, 0 if nothing is owned there.
-spec sum(P :: non_neg_integer(), #owner{}) -> non_neg_integer().
sum(P, #owner{holdings = Holdings}) -> ?HOLDINGS:sum(P, Holdings).

%% @doc The lease counts from when the request was sent that is now known to be confirmed.
-spec extended(SentMs :: integer(), P :: non_neg_integer(), #owner{}, env()) -> #owner{}.
extended(SentMs, P, Owner, #{options := #{lease_ms := LeaseMs}}) ->
    case part(P, Owner) of
        #part{until_ms = UntilMs} = Part when SentMs + LeaseMs > UntilMs ->
            effect({view, {lease, P}, {SentMs + LeaseMs}},
                   put_part(P, Part#part{until_ms = SentMs + LeaseMs}, Owner));
        #part{} -> Owner
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A node of the advertisement counter as a pure core: the store of data that merges
%% (`weft_crdt_core') with the program of `weft_partisan_ads' beside it, at the times of the paper.
%% It counts the bytes that it sends to each other node from the beginning on.
%%
%% Options: `others' (nodes with which it has a connection), `begin_ms' (when the server shows the
%% advertisement), `first_ms' (when the node looks for it for the first time) and, of the server
%% only, `max' (after how many impressions it removes it).
-module(weft_partisan_ads_core).
-behaviour(weft_core).

-export([init/2, handle/3]).
-export([state/1, sent_bytes/1]).

-define(AD, 1).

-record(ads, {
    store :: weft_crdt_core:state(),
    begin_ms :: non_neg_integer(),
    %% Of the server, until it has removed the advertisement.
    max = none :: pos_integer() | none,
    has_shown = false :: boolean(),
    sent_bytes = #{} :: #{node() => pos_integer()}}).

-opaque state() :: #ads{}.
-export_type([state/0]).

%% @doc See `weft_core'.
-spec init(node(), weft_core:options()) -> {state(), weft_core:effects()}.
init(Self, #{others := Others, begin_ms := BeginMs, first_ms := FirstMs} = Options) ->
    Given = (maps:with([seed, incarnation], Options))#{
              flush_ms => weft_partisan_ads:flush_ms(),
              declared => [{ads, orset}, {impressions, gcounter}]},
    {Store, Started} = weft_crdt_core:init(Self, Given),
    Max = maps:get(max, Options, none),
    {Connected, Ads} = lists:mapfoldl(fun(Other, Ads0) ->
                                          {Ads1, Effects} = store({neighbour_up, Other}, 0, Ads0),
                                          {Effects, Ads1}
                                      end, #ads{store = Store, begin_ms = BeginMs, max = Max},
                                      Others),
    {Ads, Started ++ lists:append(Connected) ++ [{after_ms, FirstMs, show}]
          ++ [{after_ms, BeginMs, serve} || Max =/= none]}.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), state()) -> {state(), weft_core:effects()}.
handle({timer, serve}, NowMs, Ads) ->
    update(ads, {add, ?AD}, NowMs, Ads);
handle({timer, show}, NowMs, #ads{has_shown = HasShown} = Ads0) ->
    case {state(Ads0), HasShown} of
        {{_, [?AD]}, _} ->
            {Ads, Effects} = update(impressions, increment, NowMs, Ads0#ads{has_shown = true}),
            {Ads, [show_again() | Effects]};
        {{_, []}, false} -> {Ads0, [show_again()]};
        {{_, []}, true} -> {Ads0, []}
    end;
handle(Event, NowMs, Ads) ->
    removed(NowMs, store(Event, NowMs, Ads)).

show_again() -> {after_ms, weft_partisan_ads:impression_ms(), show}.

update(Key, Operation, NowMs, Ads) ->
    removed(NowMs, store({command, Key, {update, Key, Operation, NowMs * 1000}}, NowMs, Ads)).

%% What the invariant of the server does.
removed(NowMs, {#ads{max = Max} = Ads0, Before}) when is_integer(Max) ->
    case state(Ads0) of
        {Impressions, [?AD]} when Impressions >= Max ->
            {Ads, Effects} = update(ads, {remove, ?AD}, NowMs, Ads0#ads{max = none}),
            {Ads, Before ++ Effects};
        _ -> {Ads0, Before}
    end;
removed(_NowMs, Done) ->
    Done.

store(Event, NowMs, #ads{store = Store0} = Ads) ->
    {Store, Effects} = weft_crdt_core:handle(Event, NowMs, Store0),
    {lists:foldl(fun(Effect, Counted) -> sent(Effect, NowMs, Counted) end,
                 Ads#ads{store = Store}, Effects), Effects}.

sent({send, To, Msg}, NowMs, #ads{begin_ms = BeginMs, sent_bytes = Sent} = Ads)
  when NowMs >= BeginMs ->
    Bytes = erlang:external_size(Msg),
    Ads#ads{sent_bytes = maps:update_with(To, fun(Before) -> Before + Bytes end, Bytes, Sent)};
sent(_Effect, _NowMs, Ads) ->
    Ads.

%% @doc How often it was shown, and whether it still is, as far as this node knows.
-spec state(state()) -> {Impressions :: non_neg_integer(), Ads :: [pos_integer()]}.
state(#ads{store = Store}) ->
    {ok, Impressions} = weft_crdt_core:value(impressions, Store),
    {ok, Shown} = weft_crdt_core:value(ads, Store),
    {Impressions, Shown}.

%% @doc What was sent to each other node, in the external term format.
-spec sent_bytes(state()) -> #{node() => pos_integer()}.
sent_bytes(#ads{sent_bytes = Sent}) -> Sent.

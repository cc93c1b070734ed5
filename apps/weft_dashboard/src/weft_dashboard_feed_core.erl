%% SPDX-License-Identifier: Apache-2.0
%% @doc What one browser is sent, so that its model becomes that of the server. Pure.
%%
%% Models are numbered. The first frame is a snapshot; each one after it is the difference to the
%% model that the browser has acknowledged. There is at most one frame that is not acknowledged.
%% While there is one, newer models are not sent and not kept; with the acknowledgement goes the
%% newest one. So a slow browser gets fewer frames, and nothing waits for it.
%%
%% A browser that misses something (the number that a difference begins with is not the one it has)
%% asks for all of it again. An acknowledgement of something else than what is under way is ignored:
%% it is about a frame before such a request.
-module(weft_dashboard_feed_core).

-export([new/0, wants/2, handle/3]).
-export_type([feed/0, numbered/0, frame/0, event/0]).

-type numbered() :: {Number :: pos_integer(), weft_dashboard_model_core:packed()}.
-type frame() :: {snapshot, Number :: pos_integer(), weft_dashboard_model_core:model()}
               | {patch, Number :: pos_integer(), After :: pos_integer(), map()}.
%% There is a newer model; the browser has that one; the browser needs all.
-type event() :: changed | {ack, integer()} | resend.

-record(feed, {has = none :: none | numbered(),
               under_way = none :: none | numbered()}).
-opaque feed() :: #feed{}.

-spec new() -> feed().
new() -> #feed{}.

%% @doc Whether the newest model is needed to handle an event: a browser that has not taken the one
%% before gets none.
-spec wants(event(), feed()) -> boolean().
wants(changed, #feed{under_way = UnderWay}) -> UnderWay =:= none;
wants({ack, Number}, #feed{under_way = {Number, _}}) -> true;
wants({ack, _Other}, _Feed) -> false;
wants(resend, _Feed) -> true.

%% @doc What is to be sent after an event, with the newest model that there is.
-spec handle(event(), Newest :: none | numbered(), feed()) -> {none | frame(), feed()}.
handle(resend, Newest, _Feed) ->
    next(Newest, #feed{});
handle({ack, Number}, Newest, #feed{under_way = {Number, _} = Arrived}) ->
    next(Newest, #feed{has = Arrived});
handle({ack, _Other}, _Newest, Feed) ->
    {none, Feed};
handle(changed, Newest, #feed{under_way = none} = Feed) ->
    next(Newest, Feed);
handle(changed, _Newest, Feed) ->
    {none, Feed}.

next(none, Feed) ->
    {none, Feed};
next({Number, Packed} = Newest, #feed{has = none} = Feed) ->
    {{snapshot, Number, weft_dashboard_model_core:unpack(Packed)}, Feed#feed{under_way = Newest}};
next({Number, _}, #feed{has = {Number, _}} = Feed) ->
    {none, Feed};
next({Number, Packed} = Newest, #feed{has = {After, Before}}) ->
    [Old, New] = [weft_dashboard_model_core:unpack(Model) || Model <- [Before, Packed]],
    {{patch, Number, After, weft_dashboard_merge_patch:difference(Old, New)},
     #feed{under_way = Newest}}.

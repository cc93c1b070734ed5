%% SPDX-License-Identifier: Apache-2.0
%% @doc The websocket of one browser, GET /live: it gets what `weft_dashboard_feed_core' says, and
%% acknowledges it. README.md of this application has the frames.
%%
%% A browser that reads slowly holds up this process and nothing else. One that says what is not
%% understood, or more than 4 KB at a time, is sent away; so is one that is not heard of for a
%% minute, and all of them when the process with the model has ended: they come back by themselves.
-module(weft_dashboard_live).
-behaviour(cowboy_websocket).

-export([init/2, websocket_init/1, websocket_handle/2, websocket_info/2]).

-define(FRAME_BYTES_MAX, 4096).
-define(IDLE_MS, 60000).
-define(PING_MS, 20000).
%% All of it is sent once a second at most, whatever the browser says.
-define(RESEND_MS, 1000).
-define(POLICY, 1008).
-define(RESTART, 1012).
-define(TRY_LATER, 1013).

-record(live, {feed = weft_dashboard_feed_core:new() :: weft_dashboard_feed_core:feed(),
               resent_ms = never :: never | integer(),
               resend = none :: none | reference()}).

-type result() :: {cowboy_websocket:commands(), #live{}}
                | {cowboy_websocket:commands(), #live{}, hibernate}.

%% @private
-spec init(cowboy_req:req(), term()) -> {cowboy_websocket, cowboy_req:req(), #live{}, map()}.
init(Request, _Options) ->
    {cowboy_websocket, Request, #live{},
     #{max_frame_size => ?FRAME_BYTES_MAX, idle_timeout => ?IDLE_MS}}.

%% @private
-spec websocket_init(#live{}) -> result().
websocket_init(Live) ->
    _ = monitor(process, weft_dashboard_model),
    case weft_dashboard_model:subscribe() of
        ok ->
            ping_later(),
            step(changed, Live);
        {error, too_many} ->
            Text = <<"there are too many browsers already: see browsers_max">>,
            {[frame(#{type => error, text => Text}), {close, ?TRY_LATER, <<"too many browsers">>}],
             Live};
        {error, _NotRunning} ->
            {[{close, ?RESTART, <<"the dashboard starts">>}], Live}
    end.

%% @private
-spec websocket_handle(term(), #live{}) -> result().
websocket_handle({text, Text}, Live) ->
    case weft_json:decode(Text) of
        {ok, #{<<"type">> := <<"ack">>, <<"number">> := Number}} when is_integer(Number) ->
            step({ack, Number}, Live);
        {ok, #{<<"type">> := <<"resend">>}} ->
            resend(Live);
        _Other ->
            not_understood(Live)
    end;
websocket_handle({binary, _}, Live) ->
    not_understood(Live);
websocket_handle(_PingOrPong, Live) ->
    {[], Live}.

not_understood(Live) ->
    {[{close, ?POLICY, <<"say ack with a number, or resend">>}], Live}.

resend(#live{resend = none, resent_ms = ResentMs} = Live) ->
    case ResentMs =:= never orelse now_ms() - ResentMs >= ?RESEND_MS of
        true -> step(resend, Live#live{resent_ms = now_ms()});
        false -> {[], Live#live{resend = erlang:send_after(?RESEND_MS, self(), resend)}}
    end;
resend(Live) ->
    {[], Live}.

%% @private
-spec websocket_info(term(), #live{}) -> result().
websocket_info(weft_dashboard_changed, Live) ->
    step(changed, Live);
websocket_info(resend, Live) ->
    step(resend, Live#live{resend = none, resent_ms = now_ms()});
websocket_info(ping, Live) ->
    ping_later(),
    {[ping], Live};
websocket_info({'DOWN', _, process, {weft_dashboard_model, _}, _}, Live) ->
    {[{close, ?RESTART, <<"the dashboard starts again">>}], Live};
websocket_info(Message, Live) ->
    ok = weft_stray:message(Message),
    {[], Live}.

ping_later() ->
    _ = erlang:send_after(?PING_MS, self(), ping),
    ok.

%% --- frames -----------------------------------------------------------------------------------

step(Event, #live{feed = Before} = Live) ->
    Newest = case weft_dashboard_feed_core:wants(Event, Before) of
                 true -> weft_dashboard_model:newest();
                 false -> none
             end,
    {Frame, Feed} = weft_dashboard_feed_core:handle(Event, Newest, Before),
    sent(Frame, Live#live{feed = Feed}).

%% Models and their text are large: what is not needed any more is not kept until a browser has
%% taken many. A process that has a message does not hibernate: then it does after this one.
sent(none, Live) -> {[], Live, hibernate};
sent(Frame, Live) -> {frames(Frame), Live, hibernate}.

frames({snapshot, Number, Model}) ->
    [frame(#{type => snapshot, number => Number, model => Model})];
frames({patch, Number, After, Patch}) ->
    [frame(#{type => patch, number => Number, 'after' => After, patch => Patch})].

frame(Json) -> {text, weft_json:encode(Json)}.

now_ms() -> erlang:monotonic_time(millisecond).

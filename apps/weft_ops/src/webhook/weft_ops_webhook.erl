%% SPDX-License-Identifier: Apache-2.0
%% @doc Tells a webhook what happens to the alarms that this node has raised as an agent, by POST
%% with a JSON object (`weft_ops_webhook_message').
%%
%% Requests are asynchronous, one at a time; what is tried again and what is given up is decided by
%% `weft_ops_webhook_core'. Whatever the receiver does, the agent does not notice: it sends a
%% message and goes on. What was sent, has failed and was dropped is counted for the node.
%%
%% Neither the URL nor the secret is in a log or in the report of a crash: the process reads them
%% from the configuration itself, what is in files each time, and shows a state without them. When
%% the process is killed, what waits is lost.
-module(weft_ops_webhook).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, tell/1, counts/0, close/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1]).

%% After the client's own time has passed.
-define(GRACE_MS, 1000).
-define(COUNTS, [sent, failed, dropped, queued]).

-record(hook, {config :: weft_ops_config:webhook(),
               queue :: weft_ops_webhook_core:state(),
               request = none :: none | {reference(), Timer :: reference()},
               timer = none :: none | reference(),
               %% So that a receiver that is absent is logged once.
               is_failing = false :: boolean()}).

%% @doc With a configuration without `webhook' there is no process.
-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc What happened to an alarm. Without a webhook nobody is told.
-spec tell(weft_ops_webhook_message:event()) -> ok.
tell(Event) ->
    gen_server:cast(?MODULE, {tell, Event, erlang:system_time(millisecond)}).

%% @doc Since the node has a webhook: events that arrived, attempts that failed, events that were
%% dropped; and how many wait now.
-spec counts() -> #{sent | failed | dropped | queued => non_neg_integer()}.
counts() ->
    case persistent_term:get(?MODULE, none) of
        none -> #{};
        Counters -> maps:from_list([{Name, counters:get(Counters, index(Name))} || Name <- ?COUNTS])
    end.

%% @private
-spec init([]) -> {ok, #hook{}} | ignore.
init([]) ->
    case weft_ops_config:read() of
        {ok, #{webhook := none}} ->
            ignore;
        {ok, #{webhook := Config}} ->
            ok = counted(),
            ok = open(),
            Limits = maps:with([queue_max, tries_max, retry_ms, retry_max_ms], Config),
            {ok, sized(#hook{config = Config, queue = weft_ops_webhook_core:new(Limits)})}
    end.

%% The client outlives this process, which may have been killed.
open() ->
    case inets:start(httpc, [{profile, ?MODULE}]) of
        {ok, _Client} -> ok;
        {error, {already_started, _Client}} -> ok
    end.

%% @doc Ends the client; to be called when the application stops.
-spec close() -> ok.
close() ->
    _ = inets:stop(httpc, ?MODULE),
    ok.

counted() ->
    case persistent_term:get(?MODULE, none) of
        none -> persistent_term:put(?MODULE, counters:new(length(?COUNTS), []));
        _Counters -> ok
    end.

%% @private
-spec handle_call(term(), gen_server:from(), #hook{}) -> {reply, term(), #hook{}}.
handle_call(Request, _From, Hook) ->
    {reply, weft_stray:call(Request), Hook}.

%% @private
-spec handle_cast(term(), #hook{}) -> {noreply, #hook{}}.
handle_cast({tell, Event, AtMs}, #hook{queue = Queue0} = Hook) ->
    Body = weft_ops_webhook_message:body(Event, node(), AtMs),
    {Dropped, Queue} = weft_ops_webhook_core:add(Body, Queue0),
    ok = count(dropped, Dropped),
    {noreply, sent(Hook#hook{queue = Queue})};
handle_cast(Request, Hook) ->
    ok = weft_stray:message(Request),
    {noreply, Hook}.

%% @private
-spec handle_info(term(), #hook{}) -> {noreply, #hook{}}.
handle_info({http, {Ref, Result}}, #hook{request = {Ref, _}} = Hook) ->
    {noreply, done(outcome(Result), Result, Hook)};
handle_info({http, _OfAnEarlierRequest}, Hook) ->
    {noreply, Hook};
handle_info({timeout, Timer, late}, #hook{request = {Ref, Timer}} = Hook) ->
    ok = cancelled(Ref),
    {noreply, done(late, {error, timeout}, Hook)};
handle_info({timeout, Timer, again}, #hook{timer = Timer} = Hook) ->
    {noreply, sent(Hook#hook{timer = none})};
handle_info({timeout, _Timer, _}, Hook) ->
    {noreply, Hook};
handle_info(Message, Hook) ->
    ok = weft_stray:message(Message),
    {noreply, Hook}.

%% @private What is written when the process crashes, or is asked for its state.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) ->
    maps:map(fun(state, #hook{config = #{url := Url} = Config} = Hook) ->
                     Hook#hook{config = Config#{url := weft_ops_webhook_message:place(Url)}};
                (_, Other) -> Other
             end, Status).

%% --- telling ------------------------------------------------------------------------------------

sent(#hook{queue = Queue0, timer = Timer} = Hook) ->
    case weft_ops_webhook_core:next(now_ms(), Queue0) of
        {send, Body, Queue} -> requested(Body, sized(Hook#hook{queue = Queue}));
        {wait, Ms} when Timer =:= none ->
            sized(Hook#hook{timer = erlang:start_timer(Ms, self(), again)});
        _NotNow -> sized(Hook)
    end.

requested(Body, #hook{config = #{timeout_ms := TimeoutMs} = Config} = Hook) ->
    case posted(Body, Config) of
        {ok, Ref} ->
            Timer = erlang:start_timer(TimeoutMs + ?GRACE_MS, self(), late),
            Hook#hook{request = {Ref, Timer}};
        {error, Text} ->
            done(absent, {error, Text}, Hook)
    end.

posted(Body, Config) ->
    case url(Config) of
        {ok, Url} -> posted(Body, Url, Config);
        {error, Text} -> {error, Text}
    end.

posted(Body, Url, Config) ->
    case {secret(Config), tls(Url, Config)} of
        {{ok, Secret}, {ok, Tls}} ->
            Headers = weft_ops_webhook_message:headers(Body, Secret),
            asked({Url, Headers, "application/json", Body}, Tls, Config);
        {{error, Text}, _} ->
            {error, Text};
        {_, {error, Text}} ->
            {error, Text}
    end.

%% A client that has ended is no reason to end. The reason would name the URL.
asked(Request, Tls, #{timeout_ms := TimeoutMs}) ->
    Http = [{timeout, TimeoutMs}, {connect_timeout, TimeoutMs}, {autoredirect, false} | Tls],
    try httpc:request(post, Request, Http, [{sync, false}, {body_format, binary}], ?MODULE) of
        {ok, Ref} -> {ok, Ref};
        {error, _Reason} -> {error, "the client of this node can not send that"}
    catch
        exit:_ ->
            _ = inets:start(httpc, [{profile, ?MODULE}]),
            {error, "the client of this node had ended, and is started again"}
    end.

cancelled(Ref) ->
    try httpc:cancel_request(Ref, ?MODULE)
    catch exit:_ -> ok
    end.

url(#{url := {file, File}}) ->
    case content(File) of
        {ok, Text} ->
            case weft_ops_config:is_url(Text) of
                true -> {ok, unicode:characters_to_list(Text)};
                false -> {error, io_lib:format("what is in ~ts is no URL", [File])}
            end;
        {error, Text} ->
            {error, Text}
    end;
url(#{url := Url}) ->
    {ok, Url}.

%% Without it nothing is told: that could be anybody's.
secret(#{secret_file := none}) -> {ok, none};
secret(#{secret_file := File}) -> content(File).

%% It may be replaced while the node runs. It may be any bytes: `string' would fail, with them in
%% the reason.
content(File) ->
    case file:read_file(File) of
        {ok, Bytes} ->
            case re:replace(Bytes, "^\\s+|\\s+$", "", [global, dollar_endonly, {return, binary}]) of
                <<>> -> {error, io_lib:format("~ts is empty", [File])};
                Content -> {ok, Content}
            end;
        {error, Reason} ->
            {error, io_lib:format("~ts: ~ts", [File, file:format_error(Reason)])}
    end.

tls("https:" ++ _, Config) ->
    case trusted(Config) of
        {ok, Trusted} ->
            Check = public_key:pkix_verify_hostname_match_fun(https),
            {ok, [{ssl, [{verify, verify_peer},
                         {customize_hostname_check, [{match_fun, Check}]}, Trusted]}]};
        {error, Text} ->
            {error, Text}
    end;
tls(_Plain, _Config) ->
    {ok, []}.

%% A small image has no certificates.
trusted(#{cacert_file := none}) ->
    try {ok, {cacerts, public_key:cacerts_get()}}
    catch
        error:_ -> {error, "the system has no certificates of authorities: install them, or set "
                           "cacert_file"}
    end;
trusted(#{cacert_file := File}) ->
    {ok, {cacertfile, File}}.

outcome({{_Version, Status, _Phrase}, _Headers, _Body}) -> {status, Status};
outcome({error, {failed_connect, _Tried}}) -> absent;
outcome({error, _Reason}) -> late.

done(Outcome, Result, #hook{queue = Queue0, request = Request} = Hook0) ->
    _ = [erlang:cancel_timer(Timer) || {_, Timer} <- [Request]],
    {Verdict, Queue} = weft_ops_webhook_core:done(Outcome, now_ms(), Queue0),
    Hook = Hook0#hook{queue = Queue, request = none},
    sent(said(Verdict, Result, Hook)).

said(sent, _Result, #hook{is_failing = IsFailing} = Hook) ->
    ok = count(sent, 1),
    _ = IsFailing andalso ?LOG_NOTICE("alarms: ~ts accepts them again", [place(Hook)]),
    Hook#hook{is_failing = false};
said(Verdict, Result, #hook{is_failing = IsFailing} = Hook) ->
    ok = count(failed, 1),
    ok = count(dropped, case Verdict of retry -> 0; _ -> 1 end),
    _ = IsFailing orelse
        ?LOG_WARNING("alarms: ~ts was not told: ~ts. ~ts See weft_webhook_failed_total.",
                     [place(Hook), reason(Result), consequence(Verdict)]),
    Hook#hook{is_failing = true}.

consequence(retry) -> "It is tried again.";
consequence(_Dropped) -> "That alarm is not tried again.".

%% Not what the client says of its request, which names the URL.
reason({{_Version, Status, Phrase}, _Headers, _Body}) ->
    io_lib:format("it answered ~b ~ts", [Status, Phrase]);
reason({error, timeout}) ->
    "it did not answer in time";
reason({error, {failed_connect, Tried}}) ->
    io_lib:format("no connection, ~0tp", [[Reason || {_Inet, _Options, Reason} <- Tried]]);
reason({error, [Text | _] = Said}) when is_list(Text); is_integer(Text) ->
    Said;
reason({error, _Reason}) ->
    "the connection broke".

place(#hook{config = #{url := Url}}) -> weft_ops_webhook_message:place(Url).

%% --- counting -----------------------------------------------------------------------------------

sized(#hook{queue = Queue} = Hook) ->
    ok = counters:put(persistent_term:get(?MODULE), index(queued),
                      weft_ops_webhook_core:size(Queue)),
    Hook.

count(Name, Count) -> counters:add(persistent_term:get(?MODULE), index(Name), Count).

index(sent) -> 1;
index(failed) -> 2;
index(dropped) -> 3;
index(queued) -> 4.

now_ms() -> erlang:monotonic_time(millisecond).

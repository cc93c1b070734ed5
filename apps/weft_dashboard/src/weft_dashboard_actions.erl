%% SPDX-License-Identifier: Apache-2.0
%% @doc What a browser may do: acknowledge an alarm, and break something if chaos is configured.
%% Only with the token, as JSON (which no form of another page can send), of at most 4 KB.
%%
%% Nodes and alarms are looked up in the model, so that nothing becomes an atom here.
-module(weft_dashboard_actions).

-include_lib("kernel/include/logger.hrl").

-export([post/3]).

-define(BODY_BYTES_MAX, 4096).
-define(BODY_MS, 2000).

%% @doc Carries out what was posted, or says why not.
-spec post([binary()], cowboy_req:req(), weft_dashboard_config:config()) ->
          weft_dashboard_api:answer().
post(Words, Request, Config) ->
    case {weft_dashboard_guard:may_act(Request), content_type(Request)} of
        {yes, <<"application/json">>} -> read(Words, Request, Config);
        {yes, _} -> no(415, <<"send it as application/json">>);
        {never, _} -> no(403, <<"this dashboard only looks: configure a token to act">>);
        {untold, _} -> no(401, <<"to act, send the header `authorization: Bearer TOKEN'">>);
        {wrong, _} -> no(403, <<"this is not the token">>)
    end.

content_type(Request) ->
    [Type | _] = binary:split(cowboy_req:header(<<"content-type">>, Request, <<>>), <<";">>),
    Type.

read(Words, Request, Config) ->
    case cowboy_req:read_body(Request, #{length => ?BODY_BYTES_MAX, period => ?BODY_MS}) of
        {ok, Body, _} when byte_size(Body) =< ?BODY_BYTES_MAX ->
            case weft_json:decode(Body) of
                {ok, #{} = Said} -> act(Words, Said, Config);
                _Other -> no(400, <<"that is no JSON object">>)
            end;
        {_, _, _} ->
            no(413, <<"that is too much, or took too long">>)
    end.

act([<<"acknowledge">>], #{<<"id">> := Id, <<"comment">> := Comment}, Config)
  when is_binary(Id), is_binary(Comment) ->
    case weft_dashboard_model:alarm_id(Id) of
        {ok, Alarm} -> acknowledge(Alarm, Comment, Config);
        error -> no(404, <<"there is no such alarm now">>)
    end;
act([<<"acknowledge">>], _Said, _Config) ->
    no(400, <<"say id and comment, both strings">>);
act([<<"chaos">>], _Said, #{chaos := false}) ->
    no(403, <<"chaos is off: it is a key of the configuration">>);
act([<<"chaos">>], Said, #{chaos := Chaos} = Config) ->
    case weft_dashboard_chaos:fault(Said, fun weft_dashboard_model:find/1) of
        {ok, Fault} -> break(Fault, Chaos, Config);
        {error, Text} -> no(400, Text)
    end;
act(_Words, _Said, _Config) ->
    no(404, <<"there is no such action">>).

acknowledge(Alarm, Comment, #{source := agents}) ->
    case weft_ops:acknowledge(Alarm, Comment) of
        ok -> {200, #{done => true}};
        {silent, Duties} -> {200, #{done => true, note => silent(Duties)}};
        {error, unknown_alarm} -> no(404, <<"there is no such alarm now">>);
        {error, {silent, Duties}} -> no(504, silent(Duties))
    end;
acknowledge(_Alarm, _Comment, _Config) ->
    no(409, <<"this dashboard finds alarms by itself, and forgets them: acknowledge those of "
              "agents, on a dashboard that asks agents">>).

silent(Duties) ->
    unicode:characters_to_binary(["these agents did not answer, and do not know it: of ",
                                  weft_ops_agents:text(Duties)]).

break(Fault, Chaos, Config) ->
    ?LOG_NOTICE("from a browser: ~0tp", [Fault]),
    case weft_dashboard_chaos:break(Fault, Chaos) of
        ok ->
            ok = tell(Fault, Config),
            {200, #{done => true}};
        {error, Text} -> no(409, Text)
    end.

%% It becomes an event, which the timeline shows.
tell(Fault, #{source := agents}) ->
    weft_ops:tell(chaos, ["from the dashboard: ", weft_dashboard_chaos:text(Fault)]);
tell(_Fault, _Config) ->
    ok.

no(Status, Text) -> {Status, #{error => unicode:characters_to_binary(Text)}}.

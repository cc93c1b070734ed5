%% SPDX-License-Identifier: Apache-2.0
%% @doc What each request has to pass before anything else looks at it.
%%
%% The name in its Host must be an address, `localhost', or that of a configured origin: a page of
%% somebody else, whose name was made to lead here, does not get through (DNS rebinding). Its
%% Origin, if a browser sent one, must be this dashboard's own or a configured one. For pictures,
%% scripts and frames of a page browsers send none, but most say (Sec-Fetch-Site) that a page of
%% another origin wants them: from there only a link to the page can be followed. The answer gets
%% headers that keep foreign scripts out of the page, and the page out of foreign frames.
%%
%% The token is compared here and taken out of the request, which then knows only whether it may
%% act. So no report of a crash can have it.
-module(weft_dashboard_guard).
-behaviour(cowboy_middleware).

-export([access/1, execute/2, may_act/1]).
-export_type([access/0]).

-type access() :: #{origins := [binary()], hosts := [binary()],
                    token := weft_http_token:token()}.

-define(POLICY, <<"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
                  "frame-ancestors 'none'">>).

%% @doc What is allowed by a configuration.
-spec access(weft_dashboard_config:config()) -> access().
access(#{origins := Origins, token := Token}) ->
    #{origins => Origins, token => Token,
      hosts => [Host || Origin <- Origins, #{host := Host} <- [uri_string:parse(Origin)]]}.

%% @private
-spec execute(cowboy_req:req(), cowboy_middleware:env()) ->
          {ok, cowboy_req:req(), cowboy_middleware:env()} | {stop, cowboy_req:req()}.
execute(Request, #{access := Access} = Env) ->
    Checked = cowboy_req:set_resp_headers(headers(), without_token(Request, Access)),
    case {weft_http_host:is_known(cowboy_req:host(Request), maps:get(hosts, Access)),
          is_origin(Request, Access)} of
        {true, true} ->
            {ok, Checked, Env};
        {false, _} ->
            refuse(<<"This is no name of the dashboard. Use an address or localhost, or name it in "
                     "`origins'.\n">>, Checked);
        {_, false} ->
            refuse(<<"A page of another origin may not use the dashboard, unless `origins' names "
                     "it.\n">>, Checked)
    end.

refuse(Text, Request) ->
    Headers = #{<<"content-type">> => <<"text/plain; charset=utf-8">>},
    {stop, cowboy_req:reply(403, Headers, Text, Request)}.

headers() ->
    #{<<"content-security-policy">> => ?POLICY, <<"x-content-type-options">> => <<"nosniff">>,
      <<"referrer-policy">> => <<"no-referrer">>, <<"cache-control">> => <<"no-cache">>,
      <<"cross-origin-resource-policy">> => <<"same-origin">>,
      <<"cross-origin-opener-policy">> => <<"same-origin">>}.

is_origin(#{headers := #{<<"origin">> := Origin}} = Request, #{origins := Origins}) ->
    Own = <<"http://", (cowboy_req:header(<<"host">>, Request, <<>>))/binary>>,
    Origin =:= Own orelse lists:member(Origin, Origins);
is_origin(#{headers := #{<<"sec-fetch-site">> := Site} = Headers, path := Path}, _Access)
  when Site =:= <<"cross-site">>; Site =:= <<"same-site">> ->
    Path =:= <<"/">> andalso maps:get(<<"sec-fetch-dest">>, Headers, none) =:= <<"document">>;
is_origin(_NotOfAPage, _Access) ->
    true.

%% --- the token --------------------------------------------------------------------------------

without_token(#{headers := Headers} = Request, #{token := Token}) ->
    Request#{headers := maps:remove(<<"authorization">>, Headers),
             may_act => may_act(maps:get(<<"authorization">>, Headers, none), Token)}.

may_act(_Any, none) -> never;
may_act(none, _Token) -> untold;
may_act(<<"Bearer ", Given/binary>>, Token) ->
    case weft_http_token:is_token(Given, Token) of
        true -> yes;
        false -> wrong
    end;
may_act(_Other, _Token) ->
    wrong.

%% @doc Whether a request that has passed may change something: `never' if nobody may, `untold' if
%% it has no token.
-spec may_act(cowboy_req:req()) -> yes | never | untold | wrong.
may_act(#{may_act := MayAct}) -> MayAct.

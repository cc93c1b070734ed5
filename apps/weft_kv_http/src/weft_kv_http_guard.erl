%% SPDX-License-Identifier: Apache-2.0
%% @doc What each request has to pass before anything else looks at it.
%%
%% The name in its Host must be an address, `localhost' or a configured one: a page of somebody
%% else, whose name was made to lead here, does not get through (DNS rebinding). If a browser says
%% that a page wants this (Origin, Sec-Fetch-Site), it must be one of this very address: only what
%% was opened here by hand, or no page at all, gets through. With a token in the configuration each
%% request needs it; it is taken out here, so no report of a crash has it.
-module(weft_kv_http_guard).
-behaviour(cowboy_middleware).

-export([execute/2]).

%% @private
-spec execute(cowboy_req:req(), cowboy_middleware:env()) ->
          {ok, cowboy_req:req(), cowboy_middleware:env()} | {stop, cowboy_req:req()}.
execute(#{headers := Headers} = Request, #{handler_opts := #{hosts := Hosts} = Config} = Env) ->
    Checked = Request#{headers := maps:remove(<<"authorization">>, Headers)},
    case {weft_http_host:is_known(cowboy_req:host(Request), Hosts), is_own_page(Request),
          is_allowed(maps:get(<<"authorization">>, Headers, none), Config)} of
        {true, true, true} -> {ok, Checked, Env};
        {false, _, _} -> refuse({forbidden, host}, Checked);
        {_, false, _} -> refuse({forbidden, page}, Checked);
        {_, _, false} -> refuse(no_token, Checked)
    end.

refuse(Reason, Request) ->
    {Status, Headers, Body} = weft_kv_http_error:answer(Reason, cowboy_req:path(Request)),
    {stop, cowboy_req:reply(Status, Headers, Body, Request)}.

is_own_page(#{headers := #{<<"origin">> := Origin} = Headers}) ->
    Host = maps:get(<<"host">>, Headers, <<>>),
    Origin =:= <<"http://", Host/binary>> orelse Origin =:= <<"https://", Host/binary>>;
is_own_page(#{headers := #{<<"sec-fetch-site">> := Site}}) ->
    Site =:= <<"none">> orelse Site =:= <<"same-origin">>;
is_own_page(_NotOfAPage) ->
    true.

is_allowed(_Any, #{token := none}) -> true;
is_allowed(<<"Bearer ", Given/binary>>, #{token := Token}) ->
    weft_http_token:is_token(Given, Token);
is_allowed(_NoToken, _Config) -> false.

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
execute(#{headers := Headers} = Request, #{handler_opts := Config} = Env) ->
    Checked = Request#{headers := maps:remove(<<"authorization">>, Headers)},
    case {is_host(cowboy_req:host(Request), Config), is_own_page(Request),
          is_allowed(maps:get(<<"authorization">>, Headers, none), Config)} of
        {true, true, true} -> {ok, Checked, Env};
        {false, _, _} -> refuse({forbidden, host}, Checked);
        {_, false, _} -> refuse({forbidden, page}, Checked);
        {_, _, false} -> refuse(no_token, Checked)
    end.

refuse(Reason, Request) ->
    {Status, Headers, Body} = weft_kv_http_error:answer(Reason, cowboy_req:path(Request)),
    {stop, cowboy_req:reply(Status, Headers, Body, Request)}.

is_host(<<"localhost">>, _Config) -> true;
is_host(<<"[", _/binary>>, _Config) -> true;
is_host(Host, #{hosts := Hosts}) ->
    lists:member(Host, Hosts)
        orelse element(1, inet:parse_ipv4strict_address(binary_to_list(Host))) =:= ok.

is_own_page(#{headers := #{<<"origin">> := Origin} = Headers}) ->
    Host = maps:get(<<"host">>, Headers, <<>>),
    Origin =:= <<"http://", Host/binary>> orelse Origin =:= <<"https://", Host/binary>>;
is_own_page(#{headers := #{<<"sec-fetch-site">> := Site}}) ->
    Site =:= <<"none">> orelse Site =:= <<"same-origin">>;
is_own_page(_NotOfAPage) ->
    true.

is_allowed(_Any, #{token := none}) -> true;
is_allowed(<<"Bearer ", Given/binary>>, Config) -> weft_kv_http_config:is_token(Given, Config);
is_allowed(_NoToken, _Config) -> false.

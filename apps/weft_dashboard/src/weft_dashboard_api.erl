%% SPDX-License-Identifier: Apache-2.0
%% @doc What a browser asks besides its websocket, as JSON: GET /api/... only looks and needs no
%% token; POST /api/... changes something (`weft_dashboard_actions'). README.md of this application
%% has the list.
%%
%% Whatever goes wrong is an answer with a status and `{"error": Text}'.
-module(weft_dashboard_api).
-behaviour(cowboy_handler).

-include_lib("kernel/include/logger.hrl").

-export([init/2]).
-export_type([answer/0]).

-type answer() :: {Status :: 200..599, weft_json:json()}.

%% @private
-spec init(cowboy_req:req(), weft_dashboard_config:config()) ->
          {ok, cowboy_req:req(), weft_dashboard_config:config()}.
init(Request, Config) ->
    Words = cowboy_req:path_info(Request),
    {Status, Json} = try answer(cowboy_req:method(Request), Words, Request, Config)
                     catch
                         exit:{request_error, qs, _} ->
                             {400, error_text(<<"what is behind the ? is no query">>)};
                         Class:Reason:Stack ->
                             failed(Words, Class, Reason, Stack)
                     end,
    Headers = #{<<"content-type">> => <<"application/json">>, <<"cache-control">> => <<"no-store">>,
                <<"allow">> => <<"GET, POST">>},
    {ok, cowboy_req:reply(Status, Headers, weft_json:encode(Json), Request), Config}.

failed(Words, Class, Reason, Stack) ->
    ?LOG_ERROR("dashboard: ~0tp failed: ~0tP", [Words, {Class, Reason, Stack}, 100]),
    {500, error_text(<<"this failed; the log of the dashboard says more">>)}.

answer(<<"GET">>, Words, Request, Config) -> get(Words, Request, Config);
answer(<<"POST">>, Words, Request, Config) -> weft_dashboard_actions:post(Words, Request, Config);
answer(_Method, _Words, _Request, _Config) -> {405, error_text(<<"only GET, and POST to act">>)}.

%% --- questions --------------------------------------------------------------------------------

get([<<"model">>], _Request, _Config) ->
    with_model(fun({_Number, Packed}) -> {200, weft_dashboard_model_core:unpack(Packed)} end);
get([<<"path">>], Request, _Config) ->
    with_model(fun(_) -> of_nodes([from, to], Request, fun weft_dashboard_look:path/1) end);
get([<<"node">>], Request, _Config) ->
    #{migrations := Wanted} = cowboy_req:match_qs([{migrations, [], <<"no">>}], Request),
    Look = #{migrations => Wanted =:= <<"yes">>},
    with_model(fun(_) -> of_nodes([name], Request,
                                  fun([Node]) -> weft_dashboard_look:node(Node, Look) end) end);
get([<<"why">>], Request, _Config) ->
    with_model(fun(_) -> of_nodes([from, to], Request, fun weft_dashboard_look:why/1) end);
get([<<"names">>], Request, _Config) ->
    with_model(fun(_) -> of_one_or_all(Request, fun weft_dashboard_look:names/1) end);
get([<<"stores">>], Request, _Config) ->
    with_model(fun(_) -> of_one_or_all(Request, fun weft_dashboard_stores:ask/1) end);
get([<<"about">>], _Request, Config) ->
    {200, about(Config)};
get([<<"events">>], Request, Config) ->
    with_ms(since, Request, fun(SinceMs) -> weft_dashboard_past:events(SinceMs, Config) end);
get([<<"recording">>], Request, Config) ->
    case cowboy_req:match_qs([{at, [], none}], Request) of
        #{at := none} -> weft_dashboard_past:span(Config);
        #{} -> with_ms(at, Request, fun(AtMs) -> weft_dashboard_past:model(AtMs, Config) end)
    end;
get(_Other, _Request, _Config) ->
    {404, error_text(<<"there is no such question">>)}.

with_model(Fun) ->
    case weft_dashboard_model:current() of
        {ok, Numbered} -> Fun(Numbered);
        {error, _} -> {503, error_text(<<"the cluster could not be seen in time">>)}
    end.

%% What the page may offer.
about(#{token := Token, chaos := Chaos, recording := Recording, source := Source,
        period_ms := PeriodMs}) ->
    #{node => node(), acts => Token =/= none, chaos => Chaos =/= false,
      recording => Recording =/= none, events => Source =:= agents, period_ms => PeriodMs}.

with_ms(Key, Request, Fun) ->
    #{Key := Text} = cowboy_req:match_qs([{Key, [], <<"0">>}], Request),
    case is_time(Text) of
        true -> Fun(binary_to_integer(Text));
        false -> {400, error_text([<<"say milliseconds since 1970 in: ">>, atom_to_binary(Key)])}
    end.

%% A key without a value is true, and one that comes twice has a list.
is_time(Text) ->
    is_binary(Text)
        andalso re:run(Text, "^[0-9]{1,15}$", [{capture, none}, dollar_endonly]) =:= match.

%% Only nodes of the model are asked.
of_nodes(Keys, Request, Look) ->
    Given = cowboy_req:match_qs([{Key, [], <<>>} || Key <- Keys], Request),
    Nodes = [weft_dashboard_model:find(maps:get(Key, Given)) || Key <- Keys],
    case lists:member(error, Nodes) of
        true -> {404, error_text([<<"say nodes of the model in: ">>,
                                  lists:join(<<", ">>, [atom_to_binary(Key) || Key <- Keys])])};
        false -> Look([Node || {ok, Node} <- Nodes])
    end.

%% Of the node that the request names, or of all that the model knows.
of_one_or_all(Request, Ask) ->
    case cowboy_req:match_qs([{node, [], none}], Request) of
        #{node := none} ->
            Ask(lists:sort(maps:values(weft_dashboard_model:known())));
        #{node := Text} ->
            case weft_dashboard_model:find(Text) of
                {ok, Node} -> Ask([Node]);
                error -> {404, error_text(<<"say a node of the model in: node">>)}
            end
    end.

error_text(Text) -> #{error => unicode:characters_to_binary(Text)}.

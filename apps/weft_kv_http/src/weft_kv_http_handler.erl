%% SPDX-License-Identifier: Apache-2.0
%% @doc Which question a request is, and the answers about buckets; those about keys are in
%% `weft_kv_http_key'. A bucket is one of those that are configured: no atom is made of what comes
%% from outside. Whatever goes wrong is an answer of `weft_kv_http_error'.
-module(weft_kv_http_handler).
-behaviour(cowboy_handler).

-include_lib("kernel/include/logger.hrl").

-export([init/2]).

-define(LIMIT, 100).
-define(LIMIT_MAX, 1000).

%% @private
-spec init(cowboy_req:req(), weft_kv_http_config:config()) ->
          {ok, cowboy_req:req(), weft_kv_http_config:config()}.
init(Request0, Config) ->
    {Result, Request} = try answered(Request0, Config)
                        catch
                            exit:{request_error, {header, Name}, _} ->
                                {{error, {header, Name}}, Request0};
                            exit:{request_error, _, _} ->
                                {{error, {query, <<"it can not be read">>}}, Request0};
                            Class:Reason:Stack ->
                                {{error, failed(Class, Reason, Stack)}, Request0}
                        end,
    {Status, Headers, Body} = case Result of
                                  {error, Error} ->
                                      weft_kv_http_error:answer(Error, cowboy_req:path(Request));
                                  _ -> Result
                              end,
    {ok, cowboy_req:reply(Status, Headers, Body, Request), Config}.

failed(Class, Reason, Stack) ->
    ?LOG_ERROR("a request to the store failed: ~0tP", [{Class, Reason, Stack}, 100]),
    failed.

answered(Request, Config) ->
    Method = cowboy_req:method(Request),
    case {words(cowboy_req:path(Request)), weft_kv_app:buckets()} of
        {error, _} -> {{error, bad_path}, Request};
        {_, {error, Reason}} -> {{error, Reason}, Request};
        {{ok, [<<"buckets">>]}, {ok, Buckets}} ->
            {only_get(Method, fun() -> buckets(Buckets) end), Request};
        {{ok, [<<"buckets">>, Name | Words]}, {ok, Buckets}} ->
            case [Bucket || Bucket <- maps:keys(Buckets), atom_to_binary(Bucket) =:= Name] of
                [Bucket] -> of_bucket(Words, Method, Bucket, map_get(Bucket, Buckets), Request,
                                      Config);
                [] -> {{error, unknown_bucket}, Request}
            end;
        _ -> {{error, no_path}, Request}
    end.

%% The path as it was sent: `.' and `..' are keys like others.
words(<<"/", Path/binary>>) ->
    Words = [weft_octets:from_percent(Word) || Word <- binary:split(Path, <<"/">>, [global])],
    case lists:member(error, Words) of
        true -> error;
        false -> {ok, [Word || {ok, Word} <- Words]}
    end;
words(_NoPath) ->
    error.

of_bucket([], Method, Bucket, _Options, Request, _Config) ->
    {only_get(Method, fun() -> info(Bucket) end), Request};
of_bucket([<<"keys">>], Method, Bucket, _Options, Request, _Config) ->
    {only_get(Method, fun() -> keys(Bucket, cowboy_req:parse_qs(Request)) end), Request};
of_bucket([<<"keys">>, Key], Method, Bucket, Options, Request, Config) ->
    weft_kv_http_key:answer(Method, {Bucket, Key, Options}, Request, Config);
of_bucket(_Words, _Method, _Bucket, _Options, Request, _Config) ->
    {{error, no_path}, Request}.

only_get(Method, Answer) when Method =:= <<"GET">>; Method =:= <<"HEAD">> -> Answer();
only_get(_Method, _Answer) -> {error, {method, <<"GET, HEAD">>}}.

%% --- buckets ----------------------------------------------------------------------------------

buckets(Buckets) ->
    json(#{buckets => [atom_to_binary(Name) || Name <- lists:sort(maps:keys(Buckets))]}).

info(Bucket) ->
    case weft_kv:info(Bucket) of
        {ok, #{bucket := Options, ring := Ring, stats := Stats}} ->
            json(#{bucket => Bucket, options => maps:without([dir], Options), node => node(),
                   stats => Stats,
                   ring => case Ring of
                               {error, Reason} -> #{error => Reason};
                               #{} -> Ring
                           end});
        {error, Reason} -> {error, Reason}
    end.

%% Keys are given as they stand in a URL.
keys(Bucket, Query) ->
    case place(Query, start, ?LIMIT) of
        {ok, After, Limit} ->
            case weft_kv:keys(Bucket, After, Limit) of
                {ok, Keys, Next} ->
                    json(#{keys => [weft_octets:percent(Key) || Key <- Keys],
                           next => case Next of
                                       done -> null;
                                       _ -> weft_octets:base64url(Next)
                                   end});
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

place([], After, Limit) ->
    {ok, After, Limit};
place([{<<"after">>, Text} | Query], _After, Limit) when is_binary(Text) ->
    case weft_octets:from_base64url(Text) of
        {ok, Cursor} -> place(Query, Cursor, Limit);
        error -> {error, bad_cursor}
    end;
place([{<<"limit">>, Text} | Query], After, _Limit) when is_binary(Text) ->
    case weft_kv_http_key:number(Text) of
        {ok, Limit} when Limit =< ?LIMIT_MAX -> place(Query, After, Limit);
        _ -> {error, {query, <<"limit">>}}
    end;
place([{Name, _} | _], _After, _Limit) ->
    {error, {query, Name}}.

json(Json) ->
    {200, #{<<"content-type">> => <<"application/json">>, <<"cache-control">> => <<"no-store">>,
            <<"x-content-type-options">> => <<"nosniff">>}, [weft_json:encode(Json), $\n]}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc GET, HEAD, PUT and DELETE of one key.
%%
%% The ETag of a key is a hash of its context and its values. The context changes with each write
%% that a replica has heard of. That of a PUT covers what came in between, too, but its ETag is that
%% of the value that was put alone. If-Match and If-None-Match (RFC 9110, 13) are compared with what
%% a read finds, and the write that follows says that it has seen that, and no more. So a write that
%% comes between the two is not overwritten: both values stay, as siblings, which the next GET shows
%% (300). A bucket without siblings keeps the later one of them, whatever its condition was, so a
%% write with a condition is refused there.
%%
%% A PUT that says nothing of a value that is there is refused (428), unless the bucket has no
%% siblings. One with `Weft-Context' needs no read. In a strong bucket a write under a condition
%% is a compare-and-set with the value that was read, so conditions hold exactly. If there is
%% another value by then, the condition is compared with that one, until the time of the request is
%% over. Content types are not kept there.
-module(weft_kv_http_key).

-export([answer/4, number/1]).

-define(ALLOWED, <<"GET, HEAD, PUT, DELETE">>).
-define(TIMEOUT_MAX_MS, 60000).

-type key() :: {atom(), binary(), weft_kv_bucket:options()}.
-type found() :: {ok, [weft_kv:sibling()], weft_kv:context()}.

%% @doc The answer, and the request with what was read of it.
-spec answer(binary(), key(), cowboy_req:req(), weft_kv_http_config:config()) ->
          {weft_kv_http_error:answer() | {error, term()}, cowboy_req:req()}.
answer(Method, Key, Request, Config) ->
    case {options(cowboy_req:parse_qs(Request), #{}), context(Request)} of
        {{error, Reason}, _} -> {{error, Reason}, Request};
        {_, {error, Reason}} -> {{error, Reason}, Request};
        {{ok, Given}, _} when Method =:= <<"GET">>; Method =:= <<"HEAD">> ->
            {get(Key, maps:remove(ttl_ms, Given), Request), Request};
        {{ok, Given}, {ok, Context}} when Method =:= <<"PUT">> ->
            put(Key, maps:merge(Given, Context), Request, Config);
        {{ok, Given}, {ok, Context}} when Method =:= <<"DELETE">> ->
            {delete(Key, maps:merge(maps:remove(ttl_ms, Given), Context), Request), Request};
        _ -> {{error, {method, ?ALLOWED}}, Request}
    end.

%% --- what is asked ----------------------------------------------------------------------------

options([], Given) ->
    {ok, Given};
options([{Name, Text} | Query], Given) when is_binary(Text) ->
    Known = [{<<"r">>, r}, {<<"w">>, w}, {<<"pr">>, pr}, {<<"pw">>, pw}, {<<"nodes">>, nodes},
             {<<"ttl_ms">>, ttl_ms}, {<<"timeout_ms">>, timeout_ms}],
    case {lists:keyfind(Name, 1, Known), number(Text)} of
        {{_, timeout_ms}, {ok, Ms}} when Ms > ?TIMEOUT_MAX_MS -> {error, {query, Name}};
        {{_, Key}, {ok, Number}} -> options(Query, Given#{Key => Number});
        {{_, Key}, error} when Key =/= ttl_ms, Key =/= timeout_ms, Text =:= <<"all">> ->
            options(Query, Given#{Key => all});
        {{_, Key}, error} when Key =/= ttl_ms, Key =/= timeout_ms, Text =:= <<"quorum">> ->
            options(Query, Given#{Key => quorum});
        _ -> {error, {query, Name}}
    end;
options([{Name, _} | _], _Given) ->
    {error, {query, Name}}.

%% @doc A number from 1 on, of no more digits than anybody needs.
-spec number(binary()) -> {ok, pos_integer()} | error.
number(Text) ->
    case re:run(Text, "^[1-9][0-9]{0,14}$", [{capture, none}, dollar_endonly]) of
        match -> {ok, binary_to_integer(Text)};
        nomatch -> error
    end.

context(Request) ->
    case cowboy_req:header(<<"weft-context">>, Request) of
        undefined -> {ok, #{}};
        %% That of strong buckets, which know of none.
        <<>> -> {ok, #{}};
        Text ->
            case weft_octets:from_base64url(Text) of
                {ok, Context} -> {ok, #{context => Context}};
                error -> {error, bad_context}
            end
    end.

%% --- reading ----------------------------------------------------------------------------------

get({Bucket, Key, _}, Given, Request) ->
    case weft_kv:read(Bucket, Key, Given) of
        {error, Reason} -> {error, Reason};
        {ok, Siblings, Context} = Found ->
            Headers = headers(tagged(Found), Context),
            case matches(<<"if-match">>, Found, Request) of
                false -> {error, changed};
                _ ->
                    case matches(<<"if-none-match">>, Found, Request) of
                        true -> {304, Headers, <<>>};
                        _ -> found(Siblings, Context, Headers)
                    end
            end
    end.

%% What was put may be a page with scripts: it gets no rights at this address.
found([#{value := Value} = Sibling], _Context, Headers) ->
    {200, Headers#{<<"content-type">> => content_type(Sibling),
                   <<"content-security-policy">> => <<"sandbox">>}, Value};
found(Siblings, Context, Headers) ->
    {300, Headers#{<<"content-type">> => <<"application/json">>},
     [weft_json:encode(#{siblings => [sibling(Sibling) || Sibling <- Siblings],
                         context => weft_octets:base64url(Context)}), $\n]}.

sibling(#{value := Value} = Sibling) ->
    maps:merge(#{content_type => content_type(Sibling)},
               case unicode:characters_to_binary(Value) of
                   Value -> #{value => Value};
                   _NoText -> #{value_base64 => base64:encode(Value)}
               end).

%% Earlier versions and archives may have stored one with ends of lines.
content_type(Sibling) ->
    Type = maps:get(content_type, Sibling, none),
    case weft_kv_object:is_content_type(Type) of
        true -> Type;
        false -> <<"application/octet-stream">>
    end.

headers(Tagged, Context) ->
    #{<<"etag">> => [$", etag(Tagged), $"], <<"weft-context">> => weft_octets:base64url(Context),
      <<"cache-control">> => <<"no-cache">>, <<"x-content-type-options">> => <<"nosniff">>}.

etag(Tagged) ->
    <<Short:16/binary, _/binary>> = crypto:hash(sha256, Tagged),
    weft_octets:base64url(Short).

tagged({ok, Siblings, Context}) ->
    of_values(lists:sort([Value || #{value := Value} <- Siblings]), Context).

%% In strong buckets the context is empty.
of_values(Values, Context) ->
    [Context | [[<<(byte_size(Value)):64>>, Value] || Value <- Values]].

%% --- writing ----------------------------------------------------------------------------------

put({_, _, #{value_max := Max}} = Key, Given, Request0, #{body_ms := BodyMs}) ->
    UntilMs = erlang:monotonic_time(millisecond) + BodyMs,
    case cowboy_req:body_length(Request0) of
        Length when is_integer(Length), Length > Max -> {{error, {too_large, Max}}, Request0};
        _ ->
            case body(<<>>, Max, UntilMs, Request0) of
                {ok, Value, Request} ->
                    {conditional(Key, Given, Request,
                                 fun(Seen, All) ->
                                         put_value(Key, Value, Seen, All, Request)
                                 end), Request};
                {error, Reason} -> {{error, Reason}, Request0}
            end
    end.

body(Read, Max, UntilMs, Request0) ->
    LeftMs = max(1, UntilMs - erlang:monotonic_time(millisecond)),
    try cowboy_req:read_body(Request0, #{length => Max + 1 - byte_size(Read), period => LeftMs,
                                         timeout => LeftMs + 1000}) of
        {_, Data, _} when byte_size(Read) + byte_size(Data) > Max -> {error, {too_large, Max}};
        {ok, Data, Request} -> {ok, <<Read/binary, Data/binary>>, Request};
        {more, Data, Request} ->
            case erlang:monotonic_time(millisecond) >= UntilMs of
                true -> {error, slow};
                false -> body(<<Read/binary, Data/binary>>, Max, UntilMs, Request)
            end
    catch
        exit:timeout -> {error, slow}
    end.

put_value({Bucket, Key, #{consistency := strong}}, Value, any, Given, _Request) ->
    tagged([Value], weft_kv:put(Bucket, Key, Value, Given));
put_value({Bucket, Key, #{consistency := strong}}, Value, Seen, Given, _Request) ->
    tagged([Value], weft_kv:cas(Bucket, Key, Seen, Value, Given));
put_value({Bucket, Key, _}, Value, _Seen, Given, Request) ->
    Typed = case cowboy_req:header(<<"content-type">>, Request) of
                undefined -> Given;
                Type -> Given#{content_type => Type}
            end,
    tagged([Value], weft_kv:put(Bucket, Key, Value, Typed)).

delete({Bucket, Key, Options} = Place, Given, Request) ->
    conditional(Place, Given, Request,
                fun(Seen, All) ->
                        tagged([], case Options of
                                       #{consistency := strong} when Seen =/= any ->
                                           weft_kv:cas(Bucket, Key, Seen, not_found, All);
                                       #{} -> weft_kv:delete(Bucket, Key, All)
                                   end)
                end).

%% What the ETag is of, with the context.
tagged(Values, {ok, Context}) -> {ok, of_values(Values, Context), Context};
tagged(_, {error, Reason}) -> {error, Reason}.

%% Writes if the conditions hold, with the context of what they were compared with. That has values
%% that are over and deletions, too: without it they would become more with each write.
conditional({Bucket, Key, Options}, Given, #{headers := Headers} = Request, Write) ->
    case {is_conditional(Headers) andalso not may_be_conditional(Options),
          is_read_needed(Given, Options, Request)} of
        {true, _} -> {error, no_conditions};
        {false, false} -> written(Write(any, Given), 204);
        {false, true} ->
            #{timeout_ms := TimeoutMs} = maps:merge(Options, Given),
            UntilMs = erlang:monotonic_time(millisecond) + TimeoutMs,
            compared(weft_kv:siblings(Bucket, Key, maps:without([ttl_ms, context], Given)),
                     Request, Options, UntilMs,
                     fun({ok, _, Context} = Found) ->
                             Write(seen(Found, Request), with_context(Context, Given))
                     end)
    end.

compared({error, Reason}, _Request, _Options, _UntilMs, _Write) ->
    {error, Reason};
compared({ok, Siblings, _} = Found, Request, Options, UntilMs, Write) ->
    Done = case allowed(Found, Request, Options) of
               ok -> Write(Found);
               {error, Reason} -> {error, Reason}
           end,
    case Done of
        {error, {conflict, Other}} ->
            case erlang:monotonic_time(millisecond) < UntilMs of
                true -> compared(found_since(Other), Request, Options, UntilMs, Write);
                false -> {error, {not_done, contention}}
            end;
        _ -> written(Done, case Siblings of [] -> 201; _ -> 204 end)
    end.

%% Of a strong bucket, where there is no context.
found_since(not_found) -> {ok, [], <<>>};
found_since(Value) -> {ok, [#{value => Value}], <<>>}.

%% What has to be there when it is written, in a strong bucket.
seen({ok, Siblings, _}, #{headers := Headers}) ->
    case {is_conditional(Headers), Siblings} of
        {false, _} -> any;
        {true, []} -> not_found;
        {true, [#{value := Value} | _]} -> Value
    end.

is_conditional(Headers) ->
    is_map_key(<<"if-match">>, Headers) orelse is_map_key(<<"if-none-match">>, Headers).

may_be_conditional(#{consistency := strong}) -> true;
may_be_conditional(#{siblings := Siblings}) -> Siblings.

with_context(<<>>, Given) -> Given;
with_context(Context, Given) -> maps:merge(#{context => Context}, Given).

is_read_needed(Given, Options, #{headers := Headers, method := Method}) ->
    is_conditional(Headers)
        orelse not is_map_key(context, Given)
               andalso (maps:get(siblings, Options, false) orelse Method =:= <<"DELETE">>).

allowed({ok, There, _} = Found, #{method := Method} = Request, Options) ->
    Siblings = maps:get(siblings, Options, false),
    case {matches(<<"if-match">>, Found, Request), matches(<<"if-none-match">>, Found, Request)} of
        {false, _} -> {error, changed};
        {_, true} -> {error, changed};
        _ when There =:= [], Method =:= <<"DELETE">> -> {error, not_found};
        {none, none} when There =/= [], Method =:= <<"PUT">>, Siblings ->
            {error, unconditional};
        _ -> ok
    end.

%% Whether one of the tags of a header is that of the key; `none' without the header.
-spec matches(binary(), found(), cowboy_req:req()) -> boolean() | none.
matches(Header, Found, Request) ->
    case {cowboy_req:parse_header(Header, Request), Found} of
        {undefined, _} -> none;
        {_, {ok, [], _}} -> false;
        {'*', _} -> true;
        {Tags, _} ->
            Tag = etag(tagged(Found)),
            %% A weak tag is no proof that the bytes are the same (RFC 9110, 13.1.1).
            lists:member({strong, Tag}, Tags)
                orelse Header =:= <<"if-none-match">> andalso lists:member({weak, Tag}, Tags)
    end.

written({ok, Tagged, Context}, Status) ->
    {Status, maps:with([<<"etag">>, <<"weft-context">>], headers(Tagged, Context)), <<>>};
written({error, Reason}, _Status) ->
    {error, Reason}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What nobody is to read: the cookie, and secrets in settings of weft and of applications.
%% Pure.
%%
%% A secret is text beside a key that has `password', `passphrase' or `secret' in its name, or whose
%% name is `token' or ends in `_token'; but not the name of a file that has it, beside a key that
%% ends in `_file'. So is what is between the name of a user and the host in an address, as in
%% `amqp://shop:PASSWORD@host', and the `url' of a `webhook' with more than a host in it.
%% Other secrets are not known for what they are.
-module(weft_deploy_secrets).

-export([in/1, hide/2]).
-export_type([secret/0]).

-type secret() :: {Key :: atom(), binary()}.

%% Shorter ones would be found in words that are none.
-define(LETTERS_MIN, 4).

%% @doc The secrets in a term, such as the families of a deployment.
-spec in(term()) -> [secret()].
in(Term) -> lists:usort(found(Term)).

found({webhook, #{url := Url} = Webhook}) ->
    [{url, Text} || {ok, Text} <- [text(Url)], has_path(Text)] ++ found(Webhook);
found({Key, Value}) when is_atom(Key) ->
    case {is_secret(Key), text(Value)} of
        {true, {ok, Text}} -> [{Key, Text}];
        {false, {ok, Text}} -> [{Key, Password} || Password <- in_address(Text)];
        {_, none} -> found(Value)
    end;
found([Head | Tail] = List) ->
    case text(List) of
        {ok, Text} -> [{address, Password} || Password <- in_address(Text)];
        none -> found(Head) ++ found(Tail)
    end;
found(Binary) when is_binary(Binary) -> [{address, Password} || Password <- in_address(Binary)];
found(Tuple) when is_tuple(Tuple) -> found(tuple_to_list(Tuple));
found(Map) when is_map(Map) -> found(maps:to_list(Map));
found(_Other) -> [].

is_secret(Key) ->
    re:run(atom_to_binary(Key), "^(?!.*_file$)(.*(password|passphrase|secret)|(.*_)?token$)",
           [caseless, dollar_endonly, {capture, none}]) =:= match.

%% weft_ops takes it for a secret, too: see `weft_ops_webhook_message:place'.
has_path(Url) ->
    re:run(Url, "^[a-z]+://[^/?#]*/?$", [caseless, {capture, none}]) =:= nomatch.

%% As it is written, and as a program reads it, which may put it into its log.
in_address(Text) ->
    case re:run(Text, "[a-z][a-z0-9+.-]*://[^\\s/?#:@]*:([^\\s/?#]+)@",
                [caseless, global, {capture, [1], binary}]) of
        {match, Found} ->
            [Password || [Written] <- Found, Password <- [Written | read(Written)],
                         byte_size(Password) >= ?LETTERS_MIN];
        nomatch -> []
    end.

read(Written) ->
    case uri_string:percent_decode(Written) of
        Read when is_binary(Read) -> [Read];
        _NoPercents -> []
    end.

text(Value) when is_list(Value); is_binary(Value) ->
    try unicode:characters_to_binary(Value) of
        Text when is_binary(Text), byte_size(Text) >= ?LETTERS_MIN -> {ok, Text};
        _ -> none
    catch error:badarg -> none
    end;
text(_Value) -> none.

%% @doc The same answer or text, with stars in their places.
-spec hide(Answer, [secret()]) -> Answer.
hide(Answer, Secrets) -> hidden(Answer, written(Secrets)).

%% As they are, and as a term is printed. The longest ones come first: one may begin like another.
written(Secrets) ->
    Texts = lists:usort(lists:append([[Text, printed(Text)] || {_Key, Text} <- Secrets])),
    [Text || {_Size, Text} <- lists:reverse(lists:sort([{byte_size(Text), Text}
                                                        || Text <- Texts]))].

printed(Text) ->
    case unicode:characters_to_list(Text) of
        Characters when is_list(Characters) ->
            Quoted = unicode:characters_to_binary(io_lib:write_string(Characters)),
            binary:part(Quoted, 1, byte_size(Quoted) - 2);
        _ ->
            Text
    end.

hidden(Answer, []) -> Answer;
hidden(Map, Texts) when is_map(Map) -> maps:map(fun(_Key, Value) -> hidden(Value, Texts) end, Map);
hidden(Tuple, Texts) when is_tuple(Tuple) ->
    list_to_tuple([hidden(Element, Texts) || Element <- tuple_to_list(Tuple)]);
hidden(Binary, Texts) when is_binary(Binary) -> starred(Binary, Texts);
hidden([First | _] = List, Texts) when is_binary(First); is_map(First) ->
    each(List, Texts);
hidden(List, Texts) when is_list(List) ->
    try unicode:characters_to_binary(List) of
        Text when is_binary(Text) ->
            case starred(Text, Texts) of
                Text -> List;
                Starred -> unicode:characters_to_list(Starred)
            end;
        _ -> each(List, Texts)
    catch error:badarg -> each(List, Texts)
    end;
hidden(Other, _Texts) -> Other.

each([Head | Tail], Texts) -> [hidden(Head, Texts) | each(Tail, Texts)];
each(Tail, Texts) -> hidden(Tail, Texts).

%% Bytes are compared: for `string' an accent after a secret would make another text of it.
starred(Text, Secrets) ->
    lists:foldl(fun(Secret, Left) -> binary:replace(Left, Secret, <<"***">>, [global]) end, Text,
                Secrets).

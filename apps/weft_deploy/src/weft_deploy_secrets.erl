%% SPDX-License-Identifier: Apache-2.0
%% @doc What nobody is to read: the cookie, and passwords in settings of weft and of applications.
%% Pure.
%%
%% A password is text beside a key that has `password', `passphrase' or `secret' in its name, and
%% what is between the name of a user and the host in an address, as in `amqp://shop:PASSWORD@host'.
%% Other secrets are not known for what they are.
-module(weft_deploy_secrets).

-export([in/1, hide/2]).
-export_type([secret/0]).

-type secret() :: {Key :: atom(), binary()}.

%% Shorter ones would be found in words that are none.
-define(LETTERS_MIN, 4).

%% @doc The passwords in a term, such as the families of a deployment.
-spec in(term()) -> [secret()].
in(Term) -> lists:usort(found(Term)).

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
    re:run(atom_to_binary(Key), "password|passphrase|secret",
           [caseless, {capture, none}]) =:= match.

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
hide(Answer, []) -> Answer;
hide(Map, Secrets) when is_map(Map) -> maps:map(fun(_Key, Value) -> hide(Value, Secrets) end, Map);
hide(Tuple, Secrets) when is_tuple(Tuple) ->
    list_to_tuple([hide(Element, Secrets) || Element <- tuple_to_list(Tuple)]);
hide(Binary, Secrets) when is_binary(Binary) -> starred(Binary, Secrets);
hide([First | _] = List, Secrets) when is_binary(First); is_map(First) ->
    each(List, Secrets);
hide(List, Secrets) when is_list(List) ->
    try unicode:characters_to_binary(List) of
        Text when is_binary(Text) ->
            case starred(Text, Secrets) of
                Text -> List;
                Starred -> unicode:characters_to_list(Starred)
            end;
        _ -> each(List, Secrets)
    catch error:badarg -> each(List, Secrets)
    end;
hide(Other, _Secrets) -> Other.

each([Head | Tail], Secrets) -> [hide(Head, Secrets) | each(Tail, Secrets)];
each(Tail, Secrets) -> hide(Tail, Secrets).

%% Bytes are compared: for `string' an accent after a secret would make another text of it.
starred(Text, Secrets) ->
    lists:foldl(fun({_Key, Secret}, Left) ->
                        binary:replace(Left, Secret, <<"***">>, [global])
                end, Text, Secrets).

%% SPDX-License-Identifier: Apache-2.0
%% @doc What a webhook is told of an alarm: a JSON object, and a signature of it. Pure.
%%
%% The signature is an HMAC-SHA256 of the body, so that the receiver knows who has sent it and the
%% secret never travels. The time is in the body: what is repeated by somebody else is old.
-module(weft_ops_webhook_message).

-export([body/3, headers/2, place/1]).
-export_type([event/0]).

-type event() :: {raised | acknowledged | cleared, weft_ops_alarms_core:alarm()}.

%% @doc The body that says what happened, as that agent knows it.
-spec body(event(), Agent :: node(), AtMs :: integer()) -> binary().
body({What, #{id := {Kind, Node, About} = Id, severity := Severity, text := Text} = Alarm}, Agent,
     AtMs) ->
    At = calendar:system_time_to_rfc3339(AtMs, [{unit, millisecond}, {offset, "Z"}]),
    iolist_to_binary(weft_json:encode(
                       #{version => 1, event => What, id => id(Id), kind => Kind, node => Node,
                         about => printed(About), severity => Severity,
                         text => unicode:characters_to_binary(Text), agent => Agent,
                         at => list_to_binary(At),
                         comment => case Alarm of
                                        #{acknowledged := #{comment := Comment}} -> Comment;
                                        #{acknowledged := no} -> null
                                    end})).

%% The same for all that happens to an alarm, at each agent that knows it.
id({Kind, Node, About}) ->
    iolist_to_binary([atom_to_binary(Kind), $/, atom_to_binary(Node), $/, printed(About)]).

printed(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
printed(Term) -> unicode:characters_to_binary(io_lib:format("~0tp", [Term])).

%% @doc The headers besides those of the client.
-spec headers(Body :: binary(), Secret :: binary() | none) -> [{string(), string()}].
headers(_Body, none) ->
    [{"user-agent", "weft"}];
headers(Body, Secret) ->
    Signature = binary:encode_hex(crypto:mac(hmac, sha256, Secret, Body)),
    [{"x-weft-signature", "sha256=" ++ string:lowercase(binary_to_list(Signature))}
     | headers(Body, none)].

%% @doc Of a URL what may be in a log: neither a name and a password, nor a path, which may be a
%% secret too. Of one in a file it is the name of that.
-spec place(string() | {file, file:filename_all()}) -> string().
place({file, File}) ->
    lists:flatten(io_lib:format("the URL in ~ts", [File]));
place(Url) ->
    case uri_string:parse(Url) of
        #{scheme := Scheme, host := Host} = Parts ->
            Port = [[$:, integer_to_list(Port)] || #{port := Port} <- [Parts], is_integer(Port)],
            lists:flatten([Scheme, "://", Host, Port]);
        _NoUrl ->
            "a webhook"
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Opening and closing a connection to the broker with one AMQP channel, and what its end
%% means.
%%
%% The connection is linked to the process that opens it, which traps exits: if that is killed the
%% connection is closed all the same.
-module(weft_amqp_connection).

-include_lib("amqp_client/include/amqp_client.hrl").

-export([params/1, place/1, open/2, close/2, reason/1, explain/1, is_lasting/1]).
-export_type([params/0]).

%% Processes hold them, and supervisors show with what they start a process. So that no report has
%% the password, all but the place is encrypted, by a key of this run of the VM.
-opaque params() :: {Place :: string(), Number :: pos_integer(),
                     {Cipher :: binary(), Tag :: <<_:128>>}}
                  | #amqp_params_network{}.

-define(KEY, weft_amqp_connection).

%% Unless the URL says otherwise.
-define(CONNECT_MS, 10000).
%% From version 4.3 on the client takes only words in an URL that are atoms already: mechanisms, and
%% how TLS verifies. A module must be loaded for its atoms to be.
-define(HAVE_WORDS, [amqp_auth_mechanisms, ssl, ssl_config]).

%% @doc What an URL says. Errors do not repeat it, since it holds a password.
-spec params(URL :: string()) -> {ok, params()} | {error, iolist()}.
params(Url) ->
    lists:foreach(fun code:ensure_loaded/1, ?HAVE_WORDS),
    case amqp_uri:parse(Url) of
        {ok, #amqp_params_network{connection_timeout = 60000} = Params} ->
            {ok, hidden(Params#amqp_params_network{connection_timeout = ?CONNECT_MS})};
        {ok, #amqp_params_network{} = Params} ->
            {ok, hidden(Params)};
        {ok, _Direct} ->
            {error, "the URL of the broker names no host: write amqp://user:password@host:port"};
        {error, _ReasonWithUrl} ->
            {error, "the URL of the broker cannot be read: write "
                    "amqp://user:password@host:port/vhost, with %2F for a special character as /"}
    end.

%% @doc Where that is, for people: user, host, port and virtual host.
-spec place(params()) -> string().
place({Place, _Number, _Hidden}) -> Place;
%% Of a supervisor that the version before has started.
place(#amqp_params_network{} = Params) -> place_of(Params).

hidden(Params) ->
    Number = erlang:unique_integer([positive, monotonic]),
    {place_of(Params), Number, weft_amqp_seal:seal(key(), Number, <<>>, term_to_binary(Params))}.

shown({_Place, Number, {Cipher, Tag}}) ->
    {ok, Plain} = weft_amqp_seal:unseal(key(), Number, <<>>, {Tag, Cipher}),
    binary_to_term(Plain);
shown(#amqp_params_network{} = OfTheVersionBefore) ->
    OfTheVersionBefore.

key() ->
    case persistent_term:get(?KEY, none) of
        none ->
            persistent_term:put(?KEY, weft_random:bytes(32)),
            key();
        Key ->
            Key
    end.

place_of(#amqp_params_network{username = User, host = Host, port = Port, virtual_host = VHost,
                              ssl_options = Ssl}) ->
    DefaultPort = case Ssl of none -> 5672; _ -> 5671 end,
    lists:flatten(io_lib:format("~ts@~ts:~b, vhost ~ts",
                                [User, Host, case Port of undefined -> DefaultPort; _ -> Port end,
                                 VHost])).

-spec open(params(), Name :: binary()) -> {ok, pid(), Channel :: pid()} | {error, term()}.
open(Params, Name) ->
    FullName = <<Name/binary, " ", (atom_to_binary(node()))/binary>>,
    try amqp_connection:start(shown(Params), FullName) of
        {ok, Connection} ->
            link(Connection),
            case amqp_connection:open_channel(Connection) of
                {ok, Channel} ->
                    _ = monitor(process, Channel),
                    {ok, Connection, Channel};
                Error ->
                    close(Connection, ?CONNECT_MS),
                    {error, reason(Error)}
            end;
        {error, Reason} ->
            {error, reason(Reason)}
    catch
        throw:{error, Reason} -> {error, Reason};
        exit:Reason -> {error, reason(Reason)}
    end.

%% @doc Closes it in an orderly way, what was published goes out before; at once after TimeoutMs.
-spec close(pid() | undefined, pos_integer()) -> ok.
close(undefined, _TimeoutMs) ->
    ok;
close(Connection, TimeoutMs) ->
    unlink(Connection),
    try amqp_connection:close(Connection, TimeoutMs) of
        _ -> ok
    catch
        exit:_ -> ok
    end.

%% @doc The reason inside those of the client's processes.
-spec reason(term()) -> term().
reason({shutdown, Reason}) -> reason(Reason);
reason({error, Reason}) -> reason(Reason);
reason({connection_closing, Reason}) -> reason(Reason);
reason({server_initiated_close, Code, Text}) -> {closed_by_broker, Code, Text};
reason({Reason, {gen_server, call, _}}) -> reason(Reason);
reason(socket_closed_unexpectedly) -> connection_lost;
reason({socket_closed_unexpectedly, _AwaitedMethod}) -> connection_lost;
reason({socket_error, Reason}) -> {connection_lost, Reason};
reason(Reason) -> Reason.

%% @doc Will another attempt soon end in the same way? Then it is made later.
-spec is_lasting(term()) -> boolean().
is_lasting({auth_failure, _}) -> true;
is_lasting({closed_by_broker, Code, _}) -> lists:member(Code, [402, 403, 404, 406, 530]);
is_lasting(not_allowed) -> true;
is_lasting(access_refused) -> true;
is_lasting({superseded, _}) -> true;
is_lasting(_) -> false.

%% @doc What a reason means and what to do about it.
-spec explain(term()) -> iolist().
explain({auth_failure, _}) ->
    "the broker refuses user and password: correct them in the URL of topology pubsub";
explain(access_refused) ->
    "the broker refuses the user: it may not use this virtual host (rabbitmqctl set_permissions)";
explain(not_allowed) ->
    "the broker has no such virtual host, or the user may not use it";
explain({closed_by_broker, 406, Text}) ->
    io_lib:format("the exchange or queue is there with other properties than weft needs: ~ts",
                  [Text]);
explain({closed_by_broker, 403, Text}) ->
    io_lib:format("the broker refuses, the user needs the right to configure, write and read what "
                  "begins with weft. and amq.gen: ~ts", [Text]);
explain({closed_by_broker, Code, Text}) ->
    io_lib:format("the broker closed the connection: ~ts (~b)", [Text, Code]);
explain({superseded, Name}) ->
    io_lib:format("another node called ~ts, started later than this one, is at the broker: stop "
                  "one of them, or give each a name of its own", [Name]);
explain(econnrefused) -> "nothing listens there: the broker is down, or the port is wrong";
explain(timeout) -> "no answer in time: host or firewall";
explain(etimedout) -> explain(timeout);
explain(unknown_host) -> "there is no such host";
explain(nxdomain) -> explain(unknown_host);
explain(heartbeat_timeout) -> "the broker no longer answers to heartbeats";
explain(connection_lost) -> "the connection to the broker was lost";
explain({connection_lost, Reason}) ->
    io_lib:format("the connection to the broker was lost: ~0p", [Reason]);
explain(queue_deleted) -> "somebody has deleted the queue of this node";
explain(Reason) -> io_lib:format("~0p", [Reason]).

%% SPDX-License-Identifier: Apache-2.0
%% @doc A listener of cowboy: opened with a text for whoever has to mend what is in its way, and
%% closed however often that is asked. It belongs to ranch, not to the caller.
%%
%% Not here: what a request has to pass, and who answers it (the options of cowboy).
-module(weft_http_listener).

-export([start/4, stop/1, port/1]).

-define(ACCEPTORS, 2).

-type place() :: #{ip := inet:ip_address(), port := inet:port_number(), what := string()}.
%% Where it listens (port 0 takes a free one), and what it is called in the text of an error.

%% @doc Begins to listen. Transport and Protocol are options of ranch and cowboy, the address left
%% out. When there are `max_connections', others wait to be accepted; the acceptor that waits
%% already takes one more. The text of an error says what to do.
-spec start(Name :: atom(), place(), Transport :: map(), cowboy:opts()) ->
          ok | {error, Text :: string()}.
start(Name, #{ip := Ip, port := Port, what := What}, Transport, Protocol) ->
    %% From ranch 2 on the limit is one of each supervisor of connections; ranch 1 has only one.
    Placed = Transport#{num_acceptors => ?ACCEPTORS, num_conns_sups => 1,
                        socket_opts => [{port, Port}, {ip, Ip}]},
    case cowboy:start_clear(Name, Placed, Protocol) of
        {ok, _Listener} ->
            ok;
        {error, Reason} ->
            Text = io_lib:format("no ~ts on ~ts port ~b: ~ts. Choose another port or ip, or stop "
                                 "what listens there.",
                                 [What, inet:ntoa(Ip), Port, explained(Reason)]),
            {error, lists:flatten(Text)}
    end.

explained(Reason) when is_atom(Reason) -> inet:format_error(Reason);
explained(Reason) -> io_lib:format("~0tp", [Reason]).

%% @doc Closes the listener and its connections, if it is open. Not every release of ranch answers
%% `not_found' if it is not.
-spec stop(Name :: atom()) -> ok.
stop(Name) ->
    try cowboy:stop_listener(Name) of
        ok -> ok;
        {error, not_found} -> ok
    catch
        error:badarg -> ok
    end.

%% @doc The port it listens on, for one that was given as 0.
-spec port(Name :: atom()) -> inet:port_number().
port(Name) -> ranch:get_port(Name).

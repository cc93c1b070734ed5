%% SPDX-License-Identifier: Apache-2.0
%% @doc Asks epmd where a node listens, and what kind of node it is, in one round trip.
%%
%% The client of the kernel, `erl_epmd', asks the same but does not return the kind. VMs register as
%% one kind; C nodes, and other programs that speak the distribution protocol without being a VM, as
%% others. For the bytes see "EPMD Protocol" in the ERTS User's Guide, PORT_PLEASE2_REQ.
-module(weft_epmd_client).

-export([port_please/4, epmd_port/0]).
-export_type([kind/0]).

-define(PORT_PLEASE2_REQ, $z).
-define(PORT2_RESP, $w).
-define(VM, $M).
-define(DEFAULT_PORT, 4369).

-type kind() :: vm | foreign.

%% @doc The port of the node of that name on the host with that address. `noport' if epmd says that
%% it does not know the name, or if the host says that it has no epmd. `{error, no_epmd}' means that
%% it cannot be reached, which says nothing about the node; `erl_epmd' answers `noport' then,
%% too. `{error, timeout}' means that epmd takes connections and does not answer, `{error,
%% unexpected}' that the answer does not fit the question.
-spec port_please(Name :: string(), inet:ip_address(), inet:port_number(),
                  TimeoutMs :: pos_integer()) ->
          {ok, inet:port_number(), kind()} | noport | {error, no_epmd | timeout | unexpected}.
port_please(Name, Ip, EpmdPort, TimeoutMs) ->
    case lists:all(fun(Character) -> Character < 128 end, Name) of
        true -> ask_at(Ip, EpmdPort, list_to_binary(Name), TimeoutMs);
        %% `erl_epmd' knows how such a name is written.
        false -> {error, unexpected}
    end.

ask_at(Ip, EpmdPort, Name, TimeoutMs) ->
    Deadline = erlang:monotonic_time(millisecond) + TimeoutMs,
    Options = [family(Ip), binary, {active, false}, {packet, 2}],
    case gen_tcp:connect(Ip, EpmdPort, Options, TimeoutMs) of
        {ok, Socket} ->
            try ask(Socket, Name, Deadline)
            after gen_tcp:close(Socket)
            end;
        {error, econnrefused} ->
            noport;
        {error, _Unreachable} ->
            {error, no_epmd}
    end.

family(Ip) when tuple_size(Ip) =:= 4 -> inet;
family(Ip) when tuple_size(Ip) =:= 8 -> inet6.

%% @doc The port of epmd on all hosts: that of ERL_EPMD_PORT, or the usual one.
-spec epmd_port() -> inet:port_number().
epmd_port() ->
    case init:get_argument(epmd_port) of
        {ok, [[Port | _] | _]} -> list_to_integer(Port);
        error -> ?DEFAULT_PORT
    end.

%% The request has a length before it, the answer has none.
ask(Socket, Name, Deadline) ->
    case gen_tcp:send(Socket, <<?PORT_PLEASE2_REQ, Name/binary>>) of
        ok ->
            _ = inet:setopts(Socket, [{packet, raw}]),
            answer(recv(Socket, 2, Deadline), Socket, Name, Deadline);
        {error, _Ended} ->
            {error, no_epmd}
    end.

answer({ok, <<?PORT2_RESP, 0>>}, Socket, Name, Deadline) ->
    Size = byte_size(Name),
    case recv(Socket, 10 + Size, Deadline) of
        {ok, <<Port:16, Kind, _Protocol, _Versions:32, Size:16, Name:Size/binary>>} when Port > 0 ->
            {ok, Port, kind(Kind)};
        {error, timeout} ->
            {error, timeout};
        _ ->
            {error, unexpected}
    end;
answer({ok, <<?PORT2_RESP, _NotFound>>}, _Socket, _Name, _Deadline) ->
    noport;
answer({error, timeout}, _Socket, _Name, _Deadline) ->
    {error, timeout};
answer(_Other, _Socket, _Name, _Deadline) ->
    {error, unexpected}.

kind(?VM) -> vm;
kind(_) -> foreign.

recv(Socket, Size, Deadline) ->
    gen_tcp:recv(Socket, Size, max(0, Deadline - erlang:monotonic_time(millisecond))).

%% SPDX-License-Identifier: Apache-2.0
%% @doc A stock node whose name is new here proves that it knows the cookie before the name becomes
%% an atom.
%%
%% dist_util makes an atom of the name before it asks for the proof, and atoms are never freed. So
%% the listener's part of the handshake is done twice. First it is done on binaries, in the process
%% that accepted the connection, with the messages that dist_util would send: these are obtained
%% from a run of dist_util without a peer and under an invented name. Then dist_util does it for the
%% kernel, with this module in the place of the socket, and what the peer has got already is not
%% sent to it again.
%%
%% ```
%%    peer                    first                     dist_util, when the proof is there
%%    name ──────────────────▶
%%         ◀────── status, challenge 1
%%    reply to challenge 1 ──▶  is it right?              name ──▶
%%                                                             ◀── status, challenge 2: the same?
%%                                           reply to challenge 2 ──▶
%%         ◀──────────────────────────────────────────────── acknowledgement
%% '''
%%
%% Between the two the kernel may have come to another decision: this node is just calling that one,
%% or has another creation. Then the connection ends. The name is an atom by then, so the next
%% connection is an ordinary one.
-module(weft_stock_proof).

-export([prove/3, played/2]).
-export_type([proof/0]).

-include_lib("kernel/include/dist.hrl").
-include_lib("kernel/include/dist_util.hrl").

%% A name that no configuration of groups of nodes contains.
-define(MADE_UP, 'a_new_node@nowhere').
-define(ALL_FLAGS, 16#ffffffffffffffff).

-record(proof, {name :: binary(),                    % the whole message
                heard :: binary(),                   % our challenge message
                challenge :: non_neg_integer()}).    % that of the peer
-opaque proof() :: #proof{}.

%% @doc In the process that accepted the connection, which owns the socket: makes the peer prove
%% itself. NameMessage was read already, and contains Name.
-spec prove(weft_transport:socket(), NameMessage :: binary(), Name :: binary()) ->
          {ok, proof()} | {error, {wrong_cookie, #{name := binary()}} | malformed | term()}.
prove(Socket, NameMessage, Name) ->
    Deadline = erlang:monotonic_time(millisecond) + weft_config:get(handshake_timeout_ms),
    <<$N, _Flags:64, Ours:32, _/binary>> = Heard = rehearsed_challenge(),
    Expected = digest(Ours),
    try
        ok = weft_handshake:send(Socket, <<"sok">>),
        ok = weft_handshake:send(Socket, Heard),
        case weft_handshake:recv(Socket, Deadline) of
            <<$r, Theirs:32, Expected:16/binary>> ->
                {ok, #proof{name = NameMessage, heard = Heard, challenge = Theirs}};
            <<$r, _Theirs:32, _Other:16/binary>> ->
                {error, {wrong_cookie, #{name => string:slice(Name, 0, 80)}}};
            _ ->
                {error, malformed}
        end
    catch
        throw:Reason -> {error, Reason}
    end.

%% What dist_util asks its kernel for is answered before it asks.
rehearsed_challenge() ->
    Self = self(),
    Self ! {Self, {accept_pending, ok}},
    Made = atom_to_binary(?MADE_UP),
    Flags = ?ALL_FLAGS band bnot ?DFLAG_NAME_ME,
    NameMessage = <<$N, Flags:64, 1:32, (byte_size(Made)):16, Made/binary>>,
    HsData = #hs_data{kernel_pid = Self, timer = Self, this_node = node(), this_flags = 0,
                      allowed = [],
                      f_recv = fun(_, _, _) -> {ok, binary_to_list(NameMessage)} end,
                      f_send = fun(_, Packet) -> rehearsed(iolist_to_binary(Packet)) end},
    try dist_util:handshake_other_started(HsData)
    catch throw:{challenge, Challenge} -> Challenge
    end.

rehearsed(<<$s, _/binary>>) -> ok;
rehearsed(<<$N, _/binary>> = Challenge) -> throw({challenge, Challenge}).

digest(Challenge) ->
    erlang:md5([atom_to_list(auth:get_cookie(?MADE_UP)) | integer_to_list(Challenge)]).

%% @doc In the process of dist_util: the functions of HsData that talk with the peer. They first
%% replay what was exchanged with the peer, and then work as they are.
-spec played(proof(), #hs_data{}) -> #hs_data{}.
played(Proof, #hs_data{f_send = Send, f_recv = Recv} = HsData) ->
    put(?MODULE, {name, Proof}),
    HsData#hs_data{
      f_recv = fun(Socket, Length, TimeoutMs) ->
                       case recv(get(?MODULE)) of
                           peer -> Recv(Socket, Length, TimeoutMs);
                           Result -> Result
                       end
               end,
      f_send = fun(Socket, Packet) ->
                       case send(get(?MODULE), Packet) of
                           peer -> Send(Socket, Packet);
                           %% The call of this node is preferred: then the peer closes, or the time
                           %% is over.
                           wait -> Recv(Socket, 0, infinity);
                           ok -> ok
                       end
               end}.

recv({name, #proof{name = NameMessage} = Proof}) ->
    put(?MODULE, {status, Proof}),
    {ok, binary_to_list(NameMessage)};
recv({reply, #proof{challenge = Theirs}, Ours}) ->
    put(?MODULE, peer),
    {ok, binary_to_list(<<$r, Theirs:32, (digest(Ours))/binary>>)};
recv(peer) ->
    peer;
recv(different) ->
    {error, closed}.

send({status, Proof}, Packet) ->
    status(iolist_to_binary(Packet), Proof);
send({challenge, #proof{heard = Heard} = Proof}, Packet) ->
    <<$N, Flags:64, Ours:32, Rest/binary>> = iolist_to_binary(Packet),
    case Heard of
        <<$N, Flags:64, _:32, Rest/binary>> -> put(?MODULE, {reply, Proof, Ours}), ok;
        _ -> put(?MODULE, different), ok
    end;
send(peer, _Packet) ->
    peer.

status(Status, Proof) when Status =:= <<"sok">>; Status =:= <<"sok_simultaneous">> ->
    put(?MODULE, {challenge, Proof}),
    ok;
status(<<"snok">>, _Proof) ->
    wait;
status(_NotAllowedOrAlive, _Proof) ->
    put(?MODULE, different),
    ok.

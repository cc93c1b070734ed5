%% SPDX-License-Identifier: Apache-2.0
%% @doc Frames of the distribution protocol, made by a test, into a connection, and the end of one
%% by force. Some of OTP's cases do this with commands to the connection's port. A session of weft
%% is a process and takes frames from the VM only. So OTP's suites are compiled with this module as
%% parse transform: their function `dctrl_send/2' becomes send/2, and `erlang:port_close/1' close/1.
%% The module goes to the nodes with the suites.
-module(weft_otp_frames).

%% Between attempts to send.
-define(POLL_MS, 10).

-export([parse_transform/2, send/2, close/1]).

%% @doc As said above.
-spec parse_transform([Form], [term()]) -> [Form] when Form :: erl_parse:abstract_form().
parse_transform(Forms, _Options) ->
    [replaced(Form) || Form <- Forms].

replaced({function, At, dctrl_send, 2, _Clauses}) ->
    Arguments = [{var, At, 'Controller'}, {var, At, 'Data'}],
    Body = {call, At, function(At, send), Arguments},
    {function, At, dctrl_send, 2, [{clause, At, Arguments, [], [Body]}]};
replaced({call, At, {remote, _, {atom, _, erlang}, {atom, _, port_close}}, [Controller]}) ->
    {call, At, function(At, close), [replaced(Controller)]};
replaced(Form) when is_tuple(Form) ->
    list_to_tuple(replaced(tuple_to_list(Form)));
replaced([First | Rest]) ->
    [replaced(First) | replaced(Rest)];
replaced(Other) ->
    Other.

function(At, Name) ->
    {remote, At, {atom, At, ?MODULE}, {atom, At, Name}}.

%% @doc Sends one frame from this node on a connection of it, as soon as there is room.
-spec send(Controller :: port() | pid(), Frame :: iodata()) -> term().
send(Port, Frame) when is_port(Port) ->
    port_command(Port, Frame);
send(Session, Frame) when is_pid(Session) ->
    Size = iolist_size(Frame),
    Sent = make_ref(),
    Self = self(),
    _ = sys:replace_state(Session,
                          fun(State) ->
                                  {Is, New} = pushed([<<Size:32>>, Frame], Size + 4, State),
                                  Self ! {Sent, Is},
                                  New
                          end),
    receive
        {Sent, true} -> ok;
        {Sent, false} -> receive after ?POLL_MS -> send(Session, Frame) end % pacing: of attempts
    end.

%% @doc Ends a connection of this node, or closes a port.
-spec close(Controller :: port() | pid()) -> true.
close(Port) when is_port(Port) -> port_close(Port);
close(Session) when is_pid(Session) -> exit(Session, kill).

%% A session puts whatever it sends into a stream. Such frames may define atoms.
pushed(Payload, Bytes, State) ->
    {Position, Stream} = stream(tuple_size(State), State),
    case weft_stream:room(express, Stream) of
        none -> {false, State};
        _ -> {true, setelement(Position, State, weft_stream:push(defines, Payload, Bytes, Stream))}
    end.

stream(Position, State) ->
    Candidate = element(Position, State),
    try weft_stream:info(Candidate) of
        #{} -> {Position, Candidate}
    catch
        error:_ -> stream(Position - 1, State)
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Connections that were accepted and have not authenticated yet (strangers). Each has a
%% process; `weft_strangers_core' decides which of them is dropped for a newcomer.
%%
%% A value of the process that accepts, which may wait in a call for the next connection for as long
%% as it takes. So it cannot be asked: each connection has a word that both processes share
%% (`weft_stranger'), which the acceptor reads when it looks for a connection to drop.
-module(weft_strangers).

-export([new/0, come/3]).
-export([examine/4]).
-export_type([strangers/0, peername/0]).

%% A weft node has spoken by then. If this one was not heard yet, the core has to be told.
-define(SOON_MS, 2000).

-record(strangers, {core :: weft_strangers_core:strangers(),
                    places = #{} :: #{pid() => {inet:socket(), weft_stranger:word(),
                                                peername(), SinceMs :: integer()}}}).
-opaque strangers() :: #strangers{}.
-type peername() :: {inet:ip_address(), inet:port_number()}.

%% @doc No connections.
-spec new() -> strangers().
new() ->
    Places = lists:min([weft_config:get(pending_handshakes_max) | half_of_descriptors()]),
    #strangers{core = weft_strangers_core:new(max(1, Places))}.

%% A connection that is authenticated needs a descriptor. If none were left, no connection could be
%% dropped in favour of another.
half_of_descriptors() ->
    [Max div 2 || PollSet <- erlang:system_info(check_io), is_list(PollSet),
                  {max_fds, Max} <- PollSet, is_integer(Max)].

%% @doc Gives a connection, which the caller owns, to a process of its own. That calls
%% Module:Function(Place, {Socket, Peername}, Extra).
-spec come(inet:socket(), {module(), Function :: atom(), Extra :: term()}, strangers()) ->
          strangers().
come(Socket, Examine, State) ->
    case weft_transport:peername(Socket) of
        {ok, {Ip, _Port} = Peername} ->
            begin_one(Socket, Peername, Examine, make_room(host(Ip), news(State)));
        {error, _} ->
            ok = weft_transport:close(Socket),
            news(State)
    end.

%% A single host has a whole network of IPv6 addresses.
host({A, B, C, D, _, _, _, _}) -> {A, B, C, D};
host(Ip) -> Ip.

begin_one(Socket, {Ip, _} = Peername, {Module, Function, Extra},
          #strangers{core = Core, places = Places} = State) ->
    Word = weft_stranger:new(),
    Place = {self(), Word},
    {Pid, _Monitor} = spawn_opt(?MODULE, examine, [Module, Function, Place, Extra],
                                [monitor, {priority, weft_turn:priority(control)}]),
    ok = weft_transport:give(Socket, Pid),
    Pid ! {?MODULE, Socket, Peername},
    NowMs = now_ms(),
    State#strangers{core = weft_strangers_core:come(Pid, host(Ip), NowMs, Core),
                    places = Places#{Pid => {Socket, Word, Peername, NowMs}}}.

%% @private
-spec examine(module(), atom(), weft_stranger:place(), term()) -> term().
examine(Module, Function, Place, Extra) ->
    receive {?MODULE, Socket, Peername} -> Module:Function(Place, {Socket, Peername}, Extra) end.

%% --- what became of them ----------------------------------------------------------------------

%% There are never more than two messages for each connection.
news(State) ->
    receive
        {?MODULE, settled, Pid, true} ->
            news(forget(Pid, fun weft_strangers_core:authenticated/2, State));
        {?MODULE, settled, Pid, false} ->
            news(forget(Pid, fun weft_strangers_core:gone/2, State));
        {'DOWN', _Monitor, process, Pid, _Reason} ->
            news(forget(Pid, fun weft_strangers_core:gone/2, State))
    after 0 -> State
    end.

forget(Pid, How, #strangers{core = Core, places = Places} = State) ->
    State#strangers{core = How(Pid, Core), places = maps:remove(Pid, Places)}.

%% --- room -------------------------------------------------------------------------------------

make_room(Host, #strangers{core = Core} = State) ->
    case weft_strangers_core:is_full(Core) of
        true -> make_room(Host, drop(weft_strangers_core:next_to_go(Host, Core), State));
        false -> State
    end.

drop(Pid, #strangers{core = Core, places = Places} = State) ->
    #{Pid := {_Socket, Word, _Peername, _SinceMs} = Connection} = Places,
    case {weft_strangers_core:is_heard(Pid, Core), weft_stranger:state(Word)} of
        {false, heard} ->
            State#strangers{core = weft_strangers_core:heard(Pid, Core)};
        {_, settled} ->
            forget(Pid, fun weft_strangers_core:gone/2, news(State));
        {_, Seen} ->
            dropped(weft_stranger:drop(Seen, Word), Seen, Pid, Connection, State)
    end.

%% If the word has changed in the meantime it is examined again.
dropped(false, _Seen, _Pid, _Connection, State) ->
    State;
dropped(true, Seen, Pid, {Socket, _Word, Peername, SinceMs}, State) ->
    _ = Seen =:= silent andalso now_ms() - SinceMs < ?SOON_MS
        andalso weft_config:get(transport) =:= tcp
        andalso weft_handshake:decline(Socket, overload),
    weft_refusals:report(Peername, overload),
    exit(Pid, kill),
    forget(Pid, fun weft_strangers_core:gone/2, State).

now_ms() -> erlang:monotonic_time(millisecond).

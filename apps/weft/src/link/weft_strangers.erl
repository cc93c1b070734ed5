%% SPDX-License-Identifier: Apache-2.0
%% @doc Connections that were accepted and have not authenticated yet: a process for each, and which
%% of them is dropped for a newcomer (`weft_strangers_core').
%%
%% A value of the process that accepts, which may wait in a call for the next connection for as long
%% as it takes. So nothing is asked of it: each connection has a word that both share. The examiner
%% (the connection's process) raises it, and the acceptor reads it when it looks for somebody to
%% drop. Whoever changes the word to its last value first has his way: a connection is either
%% dropped, and its process killed, or it has settled, and is never touched from here again.
%%
%% ```
%%   silent ──▶ heard ──▶ settled        by the examiner: `heard/1', `settle/2'
%%      └──────────┴────▶ dropped        by the acceptor
%% '''
-module(weft_strangers).

-export([new/0, come/3, heard/1, settle/2]).
-export([examine/4]).
-export_type([strangers/0, place/0, peername/0]).

-define(SILENT, 0).
-define(HEARD, 1).
-define(SETTLED, 2).
-define(DROPPED, 3).

%% A weft node has spoken by then. If it was not heard yet it has to be told that this is one too.
-define(SOON_MS, 2000).

-record(strangers, {core :: weft_strangers_core:strangers(),
                    places = #{} :: #{pid() => {inet:socket(), atomics:atomics_ref(),
                                                peername(), SinceMs :: integer()}}}).
-opaque strangers() :: #strangers{}.
%% `none': nobody waits for its place.
-type place() :: {Acceptor :: pid(), atomics:atomics_ref()} | none.
-type peername() :: {inet:ip_address(), inet:port_number()}.

%% @doc Nobody has come.
-spec new() -> strangers().
new() ->
    Places = lists:min([weft_config:get(pending_handshakes_max) | half_of_descriptors()]),
    #strangers{core = weft_strangers_core:new(max(1, Places))}.

%% Who is let in needs one. Without any left nobody could be dropped for anybody.
half_of_descriptors() ->
    [Max div 2 || PollSet <- erlang:system_info(check_io), is_list(PollSet),
                  {max_fds, Max} <- PollSet, is_integer(Max)].

%% @doc A connection, which the caller owns, is given to a process of its own. That calls
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

%% A host has a whole network of these.
host({A, B, C, D, _, _, _, _}) -> {A, B, C, D};
host(Ip) -> Ip.

begin_one(Socket, {Ip, _} = Peername, {Module, Function, Extra},
          #strangers{core = Core, places = Places} = State) ->
    Word = atomics:new(1, []),
    Place = {self(), Word},
    {Pid, _Monitor} = spawn_opt(?MODULE, examine, [Module, Function, Place, Extra],
                                [monitor, {priority, weft_turn:priority(control)}]),
    ok = weft_transport:give(Socket, Pid),
    Pid ! {?MODULE, Socket, Peername},
    NowMs = now_ms(),
    State#strangers{core = weft_strangers_core:come(Pid, host(Ip), NowMs, Core),
                    places = Places#{Pid => {Socket, Word, Peername, NowMs}}}.

%% @private
-spec examine(module(), atom(), place(), term()) -> term().
examine(Module, Function, Place, Extra) ->
    receive {?MODULE, Socket, Peername} -> Module:Function(Place, {Socket, Peername}, Extra) end.

%% --- what became of them ----------------------------------------------------------------------

%% @doc The peer has said what it wants, and was answered.
-spec heard(place()) -> ok.
heard(none) ->
    ok;
heard({_Acceptor, Word}) ->
    _ = atomics:compare_exchange(Word, 1, ?SILENT, ?HEARD),
    ok.

%% @doc The connection is about to be given to somebody else: from now on it is not dropped. Has
%% the peer proven itself? Ends the caller if the connection was dropped just now.
-spec settle(place(), HasProven :: boolean()) -> ok.
settle(none, _HasProven) ->
    ok;
settle({Acceptor, Word}, HasProven) ->
    %% Sent first: who reads the word has the message.
    Acceptor ! {?MODULE, settled, self(), HasProven},
    case atomics:exchange(Word, 1, ?SETTLED) of
        ?DROPPED -> exit(normal);
        _ -> ok
    end.

%% Never more than two messages for each connection.
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
    case {weft_strangers_core:is_heard(Pid, Core), atomics:get(Word, 1)} of
        {false, ?HEARD} ->
            State#strangers{core = weft_strangers_core:heard(Pid, Core)};
        {_, ?SETTLED} ->
            forget(Pid, fun weft_strangers_core:gone/2, news(State));
        {_, Seen} ->
            dropped(atomics:compare_exchange(Word, 1, Seen, ?DROPPED), Seen, Pid, Connection, State)
    end.

%% The word has changed meanwhile: it is looked at again.
dropped(Changed, _Seen, _Pid, _Connection, State) when Changed =/= ok ->
    State;
dropped(ok, Seen, Pid, {Socket, _Word, Peername, SinceMs}, State) ->
    _ = Seen =:= ?SILENT andalso now_ms() - SinceMs < ?SOON_MS
        andalso weft_config:get(transport) =:= tcp
        andalso weft_handshake:decline(Socket, overload),
    weft_refusals:report(Peername, overload),
    exit(Pid, kill),
    forget(Pid, fun weft_strangers_core:gone/2, State).

now_ms() -> erlang:monotonic_time(millisecond).

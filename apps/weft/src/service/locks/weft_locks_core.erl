%% SPDX-License-Identifier: Apache-2.0
%% @doc Locks that this node keeps for others, as a replica of them (`weft_global' chooses the
%% replicas of a lock).
%%
%% A lock belongs to a requester, which is any term. Processes that name the same requester hold the
%% lock together, and each holds it once, however often it asks (as in `global'). Others wait in a
%% queue for a time that they name. The queue is bounded: a process that finds it full is told
%% `busy' at once. A lock ends when its processes end. When the connection to the node of a process
%% is lost, its lock is kept for `lease_ms', because the node may come back. Its place in a queue is
%% not kept: the process has lost its call as well, and asks again.
%%
%% Commands: `{set, Resource, Requester, {Pid, Ask}, WaitMs | infinity}' is answered by `true',
%% `false' (the time is over) or `busy'; `{delete, Resource, Requester, {Pid, Ask}}' by `true';
%% `info'. `Ask' is unique, so that a deletion that comes late does not end what was asked later.
%% View: `lock_homes', the nodes that keep locks, this one too. (Its name is that of earlier
%% versions, because it stands while this code is loaded.)
-module(weft_locks_core).
-behaviour(weft_core).

-export([init/2, handle/3, named/2]).

-define(LEASE_MS, 5000).
-define(WAITING_MAX, 10000).

-record(wait, {token :: pos_integer(), ref :: term(), requester :: term(), pid :: pid(),
               ask :: term()}).

-record(lock, {requester :: term(),
               holders :: #{pid() => Ask :: term()},
               %% Waiting requests, in the order in which they came.
               queue = queue:new() :: queue:queue(#wait{})}).

-record(locks, {
    self :: node(),
    lease_ms :: pos_integer(),
    waiting_max :: pos_integer(),
    next = 1 :: pos_integer(),
    up = #{} :: #{node() => []},
    locks = #{} :: #{Resource :: term() => #lock{}},
    %% What each watched process holds or waits for; the places in queues by token.
    pids = #{} :: #{pid() => #{Resource :: term() => []}},
    waits = #{} :: #{Token :: pos_integer() => Resource :: term()},
    leases = #{} :: #{pid() => Token :: pos_integer()},
    refused = 0 :: non_neg_integer(),
    out = [] :: weft_core:effects()}).

%% @private
-spec init(node(), weft_core:options()) -> {#locks{}, weft_core:effects()}.
init(Self, Options) ->
    done(lock_nodes(#locks{self = Self, lease_ms = maps:get(lease_ms, Options, ?LEASE_MS),
                           waiting_max = maps:get(waiting_max, Options, ?WAITING_MAX)})).

%% @private
-spec named(node(), #locks{}) -> {#locks{}, weft_core:effects()}.
named(Self, Locks) ->
    done(lock_nodes(Locks#locks{self = Self})).

%% @private
-spec handle(weft_core:event(), NowMs :: integer(), #locks{}) -> {#locks{}, weft_core:effects()}.
handle({command, Ref, Command}, _NowMs, Locks) ->
    done(command(Command, Ref, Locks));
handle({neighbour_up, Node}, _NowMs, #locks{up = Up} = Locks) ->
    done(lock_nodes(Locks#locks{up = Up#{Node => []}}));
handle({neighbour_down, Node, _Reason}, _NowMs, #locks{up = Up} = Locks) ->
    done(lock_nodes(Locks#locks{up = maps:remove(Node, Up)}));
handle({notice, {gone, Pid, noconnection}}, _NowMs, #locks{pids = Pids} = Locks)
  when is_map_key(Pid, Pids) ->
    done(disconnected(Pid, Locks));
handle({notice, {gone, Pid, _Reason}}, _NowMs, Locks) ->
    done(gone(Pid, Locks));
handle({timer, {lease, Pid, Token}}, _NowMs, #locks{leases = Leases, up = Up} = Locks) ->
    case Leases of
        #{Pid := Token} when is_map_key(node(Pid), Up) ->
            done(effect({watch, Pid}, Locks#locks{leases = maps:remove(Pid, Leases)}));
        #{Pid := Token} ->
            done(gone(Pid, Locks#locks{leases = maps:remove(Pid, Leases)}));
        #{} ->
            {Locks, []}
    end;
handle({timer, {wait, Token}}, _NowMs, Locks) ->
    done(given_up(Token, Locks));
handle({message, _From, _OfANewerVersion}, _NowMs, Locks) ->
    {Locks, []}.

done(#locks{out = Out} = Locks) ->
    {Locks#locks{out = []}, lists:reverse(Out)}.

effect(Effect, #locks{out = Out} = Locks) ->
    Locks#locks{out = [Effect | Out]}.

lock_nodes(#locks{self = Self, up = Up} = Locks) ->
    effect({view, lock_homes, lists:sort([Self | maps:keys(Up)])}, Locks).

command({set, Resource, Requester, {Pid, Ask}, WaitMs}, Ref, #locks{locks = All} = Locks) ->
    Wait = #wait{token = Locks#locks.next, ref = Ref, requester = Requester, pid = Pid, ask = Ask},
    case All of
        #{Resource := #lock{requester = Requester} = Lock} ->
            effect({reply, Ref, true}, held(Resource, Wait, Lock, Locks));
        #{Resource := Lock} ->
            queued(WaitMs, Resource, Wait, Lock, Locks);
        #{} ->
            effect({reply, Ref, true},
                   held(Resource, Wait, #lock{requester = Requester, holders = #{}}, Locks))
    end;
command({delete, Resource, Requester, {Pid, Ask}}, Ref, #locks{locks = All} = Locks0) ->
    Locks = case All of
                #{Resource := #lock{requester = Requester, holders = #{Pid := Ask}} = Lock} ->
                    let_go(Resource, Pid, Lock, Locks0);
                #{Resource := #lock{queue = Queue}} ->
                    lists:foldl(fun(#wait{token = Token}, L) -> given_up(Token, L) end, Locks0,
                                [W || #wait{ask = A} = W <- queue:to_list(Queue), A =:= Ask]);
                #{} -> Locks0
            end,
    effect({reply, Ref, true}, Locks);
command(info, Ref, #locks{locks = All, waits = Waits, refused = Refused} = Locks) ->
    effect({reply, Ref, #{locks => map_size(All), waiting => map_size(Waits),
                          refused => Refused}}, Locks).

held(Resource, #wait{pid = Pid, ask = Ask}, #lock{holders = Holders} = Lock,
     #locks{locks = All} = Locks) ->
    Held = Lock#lock{holders = Holders#{Pid => Ask}},
    watched(Pid, Resource, Locks#locks{locks = All#{Resource => Held}}).

watched(Pid, Resource, #locks{pids = Pids} = Locks) ->
    case Pids of
        #{Pid := Resources} -> Locks#locks{pids = Pids#{Pid := Resources#{Resource => []}}};
        #{} -> effect({watch, Pid}, Locks#locks{pids = Pids#{Pid => #{Resource => []}}})
    end.

unwatched(Pid, Resource, #locks{pids = Pids, locks = All} = Locks) ->
    #{Pid := Resources} = Pids,
    case is_involved(Pid, maps:get(Resource, All, none)) of
        true -> Locks;
        false when map_size(Resources) =:= 1 ->
            effect({unwatch, Pid}, Locks#locks{pids = maps:remove(Pid, Pids)});
        false -> Locks#locks{pids = Pids#{Pid := maps:remove(Resource, Resources)}}
    end.

is_involved(_Pid, none) -> false;
is_involved(Pid, #lock{holders = Holders, queue = Queue}) ->
    is_map_key(Pid, Holders) orelse queue:any(fun(#wait{pid = P}) -> P =:= Pid end, Queue).

%% --- waiting ----------------------------------------------------------------------------------

queued(0, _Resource, #wait{ref = Ref}, _Lock, Locks) ->
    effect({reply, Ref, false}, Locks);
queued(_WaitMs, _Resource, #wait{ref = Ref}, _Lock,
       #locks{waits = Waits, waiting_max = Max, refused = Refused} = Locks)
  when map_size(Waits) >= Max ->
    effect({reply, Ref, busy}, Locks#locks{refused = Refused + 1});
queued(WaitMs, Resource, #wait{token = Token, pid = Pid} = Wait, Lock, Locks0) ->
    #lock{queue = Queue} = Lock,
    #locks{waits = Waits, locks = All} = Locks0,
    Longer = Lock#lock{queue = queue:in(Wait, Queue)},
    Locks = watched(Pid, Resource,
                    Locks0#locks{next = Token + 1, waits = Waits#{Token => Resource},
                                 locks = All#{Resource := Longer}}),
    case WaitMs of
        infinity -> Locks;
        _ -> effect({after_ms, WaitMs, {wait, Token}}, Locks)
    end.

given_up(Token, #locks{waits = Waits, locks = All} = Locks) ->
    case maps:take(Token, Waits) of
        {Resource, Rest} ->
            #{Resource := #lock{queue = Queue} = Lock} = All,
            {[#wait{ref = Ref, pid = Pid}], Others} =
                lists:partition(fun(#wait{token = T}) -> T =:= Token end, queue:to_list(Queue)),
            Left = Lock#lock{queue = queue:from_list(Others)},
            effect({reply, Ref, false},
                   unwatched(Pid, Resource, Locks#locks{waits = Rest,
                                                        locks = All#{Resource := Left}}));
        error ->
            Locks
    end.

%% --- the end of a lock ------------------------------------------------------------------------

let_go(Resource, Pid, #lock{holders = Holders} = Lock, #locks{locks = All} = Locks) ->
    Left = case maps:remove(Pid, Holders) of
               None when map_size(None) =:= 0 ->
                   next(Resource, Lock, Locks);
               Others ->
                   Locks#locks{locks = All#{Resource := Lock#lock{holders = Others}}}
           end,
    unwatched(Pid, Resource, Left).

%% Grants the lock to the first in the queue, and to all in it that name the same requester.
next(Resource, #lock{queue = Queue}, #locks{locks = All} = Locks) ->
    case queue:to_list(Queue) of
        [] ->
            Locks#locks{locks = maps:remove(Resource, All)};
        [#wait{requester = Requester} | _] = Waits ->
            {Next, Others} = lists:partition(fun(#wait{requester = R}) -> R =:= Requester end,
                                             Waits),
            Lock = #lock{requester = Requester, holders = #{}, queue = queue:from_list(Others)},
            lists:foldl(fun(Wait, L) -> granted(Resource, Wait, L) end,
                        Locks#locks{locks = All#{Resource := Lock}}, Next)
    end.

granted(Resource, #wait{token = Token, ref = Ref} = Wait,
        #locks{waits = Waits, locks = All} = Locks) ->
    effect({reply, Ref, true},
           held(Resource, Wait, map_get(Resource, All),
                Locks#locks{waits = maps:remove(Token, Waits)})).

%% The connection is lost, but the process may be alive.
disconnected(Pid, #locks{pids = Pids} = Locks0) ->
    #{Pid := Resources} = Pids,
    Locks = lists:foldl(fun(Resource, L) -> unwatched(Pid, Resource, left(Resource, Pid, L)) end,
                        Locks0, lists:sort(maps:keys(Resources))),
    case is_map_key(Pid, Locks#locks.pids) of
        true -> leased(Pid, Locks);
        false -> Locks
    end.

leased(Pid, #locks{leases = Leases, next = Token, lease_ms = LeaseMs} = Locks) ->
    effect({after_ms, LeaseMs, {lease, Pid, Token}},
           Locks#locks{next = Token + 1, leases = Leases#{Pid => Token}}).

gone(Pid, #locks{pids = Pids0} = Locks) ->
    case maps:take(Pid, Pids0) of
        {Resources, _} ->
            lists:foldl(fun(Resource, L) -> gone_from(Resource, Pid, L) end, Locks,
                        lists:sort(maps:keys(Resources)));
        error ->
            Locks
    end.

%% Out of the queue first, or the process would get the lock again that it gives up.
gone_from(Resource, Pid, Locks0) ->
    #locks{locks = All} = Locks = left(Resource, Pid, Locks0),
    #{Resource := #lock{holders = Holders} = Lock} = All,
    case is_map_key(Pid, Holders) of
        true -> let_go(Resource, Pid, Lock, Locks);
        false -> unwatched(Pid, Resource, Locks)
    end.

%% A process waits no longer in the queue of a lock.
left(Resource, Pid, #locks{locks = All, waits = Waits} = Locks) ->
    #{Resource := #lock{queue = Queue} = Lock} = All,
    {Its, Others} = lists:partition(fun(#wait{pid = P}) -> P =:= Pid end, queue:to_list(Queue)),
    Locks#locks{waits = maps:without([T || #wait{token = T} <- Its], Waits),
                locks = All#{Resource := Lock#lock{queue = queue:from_list(Others)}}}.

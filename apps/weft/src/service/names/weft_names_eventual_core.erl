%% SPDX-License-Identifier: Apache-2.0
%% @doc An eventual scope of names on one node. The node of a process decides at once about its
%% names, and tells the others (`weft_own_rows_core').
%%
%% What a node says about a name is a <em>claim</em>: `{Rank, TimeUs, Pid, Meta, Id}'. Two nodes
%% that did not hear of each other may claim the same name. Every node shows the best claim: higher
%% rank, then earlier (or, by the option `conflict', later) time, then pid. So nodes that know the
%% same claims show the same process, and there is nothing to agree on.
%%
%% One node ends the conflict: that of the best claim. It tells the node of each other claim to give
%% up, or gives up its own if the user's function wants that. A node that gives up tells the others,
%% as with any other change. The order names a claim by its Id, so a late order does not affect
%% another claim. It is repeated whenever the name changes and at the beginning of a session, until
%% one claim is left.
%%
%% With the option `wait' a change is answered when all nodes in a session have heard of it
%% (`weft_heard_core'). Until then the claim is <em>pending</em>. If a node that is waited for has a
%% claim of the same name, both were made at once: the better one stays, the user's function is not
%% asked, and who registered the other one is told that the name is taken; its process gets no
%% signal. So of many that register a name at once one succeeds, as under a lock. A pending claim
%% hears of every such claim before it is answered, for a node sends its own changes before it says
%% that it has heard. (If one of them was answered without a node that was late, its process loses
%% the name later, without a call of the function.)
%%
%% The judgement of two claims is kept as long as both are there, so the function is asked once.
%%
%% To re-register is to claim with a rank above all others that this node or the caller's node
%% knows. The process that had the name stays alive, and no node is asked.
%%
%% Commands: `{register, Name, Pid, Meta, TimeUs}' and `{re_register, Name, Pid, Meta, TimeUs,
%% Rank}' for processes of this node, where Rank is that of the claim that the caller sees, or -1:
%% `{ok, Seq}' or `{error, {taken, Pid} | {pid_registered, Name}}'; `{unregister, Name}': `{ok,
%% Seq}' or `{error, not_here}'; `{await, Node, Seq}': `ok'; `info'.
%%
%% Options: `scope'; `conflict' (oldest | newest | function, see `weft_names'); `loser' (exit |
%% notify | none); `names_per_pid' (many | one | one_new); `wait' (none | all); `own' ([{Name, Pid,
%% Meta, TimeUs, Rank}]: what the driver had before it was restarted).
%%
%% Messages: those of `weft_own_rows_core', and `{1, yield, Name, Id, conflict | superseded,
%% Winner}'.
-module(weft_names_eventual_core).
-behaviour(weft_core).

-export([init/2, handle/3, named/2]).
-export([holders/1, heard_of/2, is_waiting/1]).

-record(claim, {rank = 0 :: non_neg_integer(), time_us :: integer(), pid :: pid(), meta :: term(),
                id :: non_neg_integer()}).

-record(names, {
    scope :: term(),
    self :: node(),
    conflict :: oldest | newest | fun(),
    loser :: exit | notify | none,
    names_per_pid :: many | one | one_new,
    wait :: none | all,
    next_id :: non_neg_integer(),
    rows = weft_own_rows_core:new() :: weft_own_rows_core:rows(),
    %% Best first.
    claims = #{} :: #{Name :: term() => [#claim{}]},
    %% Of this node.
    pids = #{} :: #{pid() => [Name :: term()]},
    conflicts = 0 :: non_neg_integer(),
    %% Claims of this node that stay against others: by names that have a conflict.
    judged = #{} :: #{Name :: term() => [{Mine :: id(), node(), Other :: id()}]},
    %% Effects, newest first.
    out = [] :: weft_core:effects()}).

-type id() :: non_neg_integer().

%% @private
-spec init(node(), weft_core:options()) -> {#names{}, weft_core:effects()}.
init(Self, #{scope := Scope, incarnation := Incarnation} = Options) ->
    Names = #names{scope = Scope, self = Self, next_id = Incarnation,
                   conflict = maps:get(conflict, Options, oldest),
                   loser = maps:get(loser, Options, exit),
                   names_per_pid = maps:get(names_per_pid, Options, many),
                   wait = maps:get(wait, Options, none)},
    Restored = lists:foldl(fun({Name, Pid, Meta, TimeUs, Rank}, N) ->
                                   claim(Name, Pid, Meta, TimeUs, Rank, N)
                           end, Names, maps:get(own, Options, [])),
    done(Restored).

done(#names{out = Out} = Names) ->
    {Names#names{out = []}, lists:reverse(Out)}.

%% @doc For checkers: the nodes that claim each name, the one that is shown first.
-spec holders(#names{}) -> #{Name :: term() => [pid()]}.
holders(#names{claims = Claims}) ->
    maps:map(fun(_, List) -> [Pid || #claim{pid = Pid} <- List] end, Claims).

%% @doc For checkers: the number of the last change of another node that is known here.
-spec heard_of(node(), #names{}) -> non_neg_integer().
heard_of(Node, #names{rows = Rows}) -> weft_own_rows_core:heard_of(Node, Rows).

%% @doc For checkers: does anybody wait until others have heard of a change?
-spec is_waiting(#names{}) -> boolean().
is_waiting(#names{rows = Rows}) -> weft_own_rows_core:is_waiting(Rows).

%% @private
-spec named(node(), #names{}) -> {#names{}, weft_core:effects()}.
named(Self, Names) ->
    {Names#names{self = Self}, []}.

%% @private
-spec handle(weft_core:event(), NowMs :: integer(), #names{}) -> {#names{}, weft_core:effects()}.
handle({command, Ref, Command}, _NowMs, Names) ->
    done(command(Command, Ref, Names));
handle({message, _From, {1, yield, Name, Id, Why, Winner}}, _NowMs, Names) ->
    done(yield(Name, Id, Why, Winner, Names));
handle({message, From, Msg}, _NowMs, #names{rows = Rows} = Names) ->
    done(outcome(weft_own_rows_core:message(From, Msg, Rows), Names));
handle({timer, Timer}, _NowMs, #names{rows = Rows} = Names) ->
    done(outcome(weft_own_rows_core:timer(Timer, Rows), Names));
handle({neighbour_up, Node}, _NowMs, #names{rows = Rows} = Names) ->
    done(outcome(weft_own_rows_core:up(Node, Rows), Names));
handle({neighbour_down, Node, Reason}, _NowMs, #names{rows = Rows} = Names) ->
    done(outcome(weft_own_rows_core:down(Node, Reason, Rows), Names));
handle({notice, {gone, Pid, _Reason}}, _NowMs, #names{pids = Pids} = Names) ->
    done(lists:foldl(fun unclaim/2, Names, maps:get(Pid, Pids, []))).

effect(Effect, #names{out = Out} = Names) ->
    Names#names{out = [Effect | Out]}.

effects(Effects, #names{out = Out} = Names) ->
    Names#names{out = lists:reverse(Effects, Out)}.

%% --- commands ---------------------------------------------------------------------------------

command({register, Name, Pid, Meta, TimeUs}, Ref, #names{claims = Claims} = Names) ->
    case Claims of
        #{Name := [#claim{pid = Holder} | _]} ->
            effect({reply, Ref, {error, {taken, Holder}}}, Names);
        #{} ->
            allowed([one, one_new], Name, Pid, {register, Ref},
                    fun() -> claim(Name, Pid, Meta, TimeUs, 0, Names) end, Names)
    end;
command({re_register, Name, Pid, Meta, TimeUs, Seen}, Ref, #names{claims = Claims} = Names) ->
    Rank = case Claims of
               #{Name := [#claim{rank = Best} | _]} -> max(Best, Seen) + 1;
               #{} -> Seen + 1
           end,
    allowed([one], Name, Pid, {re_register, Ref},
            fun() -> claim(Name, Pid, Meta, TimeUs, Rank, Names) end, Names);
command({unregister, Name}, Ref, #names{rows = Rows} = Names) ->
    case weft_own_rows_core:find(Name, Rows) of
        {ok, _} -> replied(Name, {unregister, Ref}, unclaim(Name, Names));
        error -> effect({reply, Ref, {error, not_here}}, Names)
    end;
command({await, Node, Seq}, Ref, #names{rows = Rows} = Names) ->
    outcome(weft_own_rows_core:await(Node, Seq, Ref, Rows), Names);
command(info, Ref, #names{rows = Rows, claims = Claims, conflicts = Conflicts} = Names) ->
    #{own := Own, peers := Peers} = weft_own_rows_core:info(Rows),
    effect({reply, Ref, #{names => map_size(Claims), own => Own, peers => Peers,
                          conflicts => Conflicts}}, Names).

%% Limits are the values of `names_per_pid' that forbid it if the process has another name.
allowed(Limits, Name, Pid, {_, Ref} = Asked, Claim, Names) ->
    #names{names_per_pid = PerPid, pids = Pids} = Names,
    case {lists:member(PerPid, Limits), Pids} of
        {true, #{Pid := [Other | _]}} when Other =/= Name ->
            effect({reply, Ref, {error, {pid_registered, Other}}}, Names);
        _ ->
            replied(Name, Asked, Claim())
    end.

%% At once it is replied after the views and before all else, which can not change the reply.
replied(_Name, {_, Ref}, #names{wait = none, rows = Rows, out = Out} = Names) ->
    Seq = weft_own_rows_core:seq(Rows),
    {Views, Others} = lists:partition(fun(Effect) -> element(1, Effect) =:= view end, Out),
    Names#names{out = Others ++ [{reply, Ref, {ok, Seq}} | Views]};
replied(Name, {What, Ref}, #names{wait = all, rows = Rows0} = Names) ->
    Reply = {ok, weft_own_rows_core:seq(Rows0)},
    {Rows, Effects} = weft_own_rows_core:tell(Name, What, Ref, Reply, Rows0),
    effects(Effects, Names#names{rows = Rows}).

%% --- claims of this node ----------------------------------------------------------------------

claim(Name, Pid, Meta, TimeUs, Rank, #names{next_id = Id, rows = Rows0} = Names0) ->
    Claim = #claim{rank = Rank, time_us = TimeUs, pid = Pid, meta = Meta, id = Id},
    {_Seq, Rows, Effects} = weft_own_rows_core:put(Name, to_row(Claim), Rows0),
    Names = disowned(Name, Names0),
    owned(Name, Pid,
          put_claim(Name, Claim, effects(Effects, Names#names{next_id = Id + 1, rows = Rows}))).

unclaim(Name, #names{rows = Rows0, self = Self} = Names0) ->
    Names = disowned(Name, Names0),
    {_Seq, Rows, Effects} = weft_own_rows_core:delete(Name, Rows0),
    drop_claim(Name, Self, effects(Effects, Names#names{rows = Rows})).

owned(Name, Pid, #names{pids = Pids} = Names) ->
    case Pids of
        #{Pid := Owned} -> Names#names{pids = Pids#{Pid := [Name | Owned]}};
        #{} -> effect({watch, Pid}, Names#names{pids = Pids#{Pid => [Name]}})
    end.

%% The claim that this node has on Name, if any, no longer belongs to its process.
disowned(Name, #names{rows = Rows, pids = Pids} = Names) ->
    case weft_own_rows_core:find(Name, Rows) of
        {ok, Row} ->
            #claim{pid = Pid} = from_row(Row),
            case lists:delete(Name, map_get(Pid, Pids)) of
                [] -> effect({unwatch, Pid}, Names#names{pids = maps:remove(Pid, Pids)});
                Owned -> Names#names{pids = Pids#{Pid := Owned}}
            end;
        error -> Names
    end.

to_row(#claim{rank = Rank, time_us = TimeUs, pid = Pid, meta = Meta, id = Id}) ->
    {Rank, TimeUs, Pid, Meta, Id}.

from_row({Rank, TimeUs, Pid, Meta, Id}) ->
    #claim{rank = Rank, time_us = TimeUs, pid = Pid, meta = Meta, id = Id}.

%% An order to give up a claim; ignored if this node has another claim now.
yield(Name, Id, Why, Winner, #names{rows = Rows} = Names) ->
    case weft_own_rows_core:find(Name, Rows) of
        {ok, {_, _, Pid, _, Id}} -> lost(Why, Name, Pid, Winner, unclaim(Name, Names));
        _ -> Names
    end.

%% Who still waits for the answer gets to know it by that. Who waits because of another change of
%% the name, such as a process that was given it, made that before the other node did.
lost(superseded, _Name, _Pid, _Winner, Names) ->
    Names;
lost(conflict, Name, Pid, none, Names) ->
    signalled(Name, Pid, none, Names);
lost(conflict, Name, Pid, Winner, #names{rows = Rows0} = Names) ->
    case weft_own_rows_core:is_waited(Name, Rows0) of
        false ->
            signalled(Name, Pid, Winner, Names);
        true ->
            {Waits, Rows} = weft_own_rows_core:released(Name, register, Rows0),
            effects([{reply, Ref, {error, {taken, Winner}}} || {_, _, Ref, _} <- Waits],
                    Names#names{rows = Rows})
    end.

signalled(Name, Pid, Winner, #names{scope = Scope, loser = Loser} = Names) ->
    Reason = {weft_name_conflict, {Scope, Name}, Winner},
    case Loser of
        exit -> effect({exit, Pid, Reason}, Names);
        notify -> effect({tell, Pid, Reason}, Names);
        none -> Names
    end.

%% --- claims of all nodes ----------------------------------------------------------------------

%% Who is told that a change has arrived finds it in the views.
outcome({Changes, Rows, Effects}, Names) ->
    effects(Effects, lists:foldl(fun change/2, Names#names{rows = Rows}, Changes)).

change({Node, Name, _Old, none}, Names) ->
    drop_claim(Name, Node, Names);
change({Node, Name, _Old, Row}, Names) ->
    case from_row(Row) of
        #claim{pid = Pid} = Claim when node(Pid) =:= Node -> put_claim(Name, Claim, Names);
        _NotItsOwn -> Names
    end.

put_claim(Name, #claim{pid = Pid} = Claim, #names{claims = Claims, conflict = Order} = Names) ->
    Before = maps:get(Name, Claims, []),
    Others = of_others(node(Pid), Before),
    After = lists:sort(fun(A, B) -> is_better(Order, A, B) end, [Claim | Others]),
    judged(Name, After, shown(Name, Before, After, Names#names{claims = Claims#{Name => After}})).

drop_claim(Name, Node, #names{claims = Claims} = Names) ->
    Before = maps:get(Name, Claims, []),
    case of_others(Node, Before) of
        [] ->
            judged(Name, [], shown(Name, Before, [],
                                   Names#names{claims = maps:remove(Name, Claims)}));
        After ->
            judged(Name, After, shown(Name, Before, After,
                                      Names#names{claims = Claims#{Name := After}}))
    end.

of_others(Node, List) ->
    [Claim || #claim{pid = Pid} = Claim <- List, node(Pid) =/= Node].

is_better(_Order, #claim{rank = A}, #claim{rank = B}) when A =/= B -> A > B;
is_better(newest, #claim{time_us = A}, #claim{time_us = B}) when A =/= B -> A > B;
is_better(_Order, #claim{time_us = A}, #claim{time_us = B}) when A =/= B -> A < B;
is_better(_Order, #claim{pid = A}, #claim{pid = B}) ->
    {node(A), A} =< {node(B), B}.

shown(_Name, [Best | _], [Best | _], Names) ->
    Names;
shown(Name, _Before, [#claim{pid = Pid, meta = Meta, time_us = TimeUs, rank = Rank} | _], Names) ->
    effect({view, Name, {Pid, Meta, TimeUs, Rank}}, Names);
shown(_Name, [], [], Names) ->
    Names;
shown(Name, _Before, [], Names) ->
    effect({view, Name, delete}, Names).

%% The node of the best claim ends a conflict.
judged(Name, [#claim{pid = Best} = Mine | [_ | _] = Others], #names{self = Self} = Names)
  when node(Best) =:= Self ->
    against(Others, Name, Mine, Names);
judged(Name, _NoConflictOrNotMine, #names{judged = Judged} = Names) ->
    Names#names{judged = maps:remove(Name, Judged)}.

against([], _Name, _Mine, Names) ->
    Names;
against([Other | Rest], Name, Mine, Names) ->
    case verdict(Name, Mine, Other, Names) of
        other -> given_up(Name, Other#claim.pid, Names);
        none -> given_up(Name, none, ordered(Name, none, Mine, Other, Names));
        superseded -> against(Rest, Name, Mine, ordered(Name, superseded, Mine, Other, Names));
        mine -> against(Rest, Name, Mine,
                        ordered(Name, mine, Mine, Other, stays(Name, Mine, Other, Names)))
    end.

stays(Name, Mine, Other, #names{judged = Judged} = Names) ->
    {_, Node, _} = Pair = pair(Mine, Other),
    Pairs = lists:keydelete(Node, 2, maps:get(Name, Judged, [])),
    Names#names{judged = Judged#{Name => [Pair | Pairs]}}.

pair(#claim{id = Mine}, #claim{pid = Pid, id = Other}) -> {Mine, node(Pid), Other}.

verdict(_Name, #claim{rank = A}, #claim{rank = B}, _Names) when A > B -> superseded;
verdict(_Name, _Mine, _Other, #names{conflict = Order}) when is_atom(Order) -> mine;
verdict(Name, Mine, #claim{pid = Pid} = Other, #names{rows = Rows, judged = Judged} = Names) ->
    case weft_own_rows_core:is_awaited(Name, node(Pid), Rows)
        orelse lists:member(pair(Mine, Other), maps:get(Name, Judged, [])) of
        true -> mine;
        false -> chosen(Name, Mine, Other, Names)
    end.

chosen(Name, Mine, Other, #names{conflict = Choose, scope = Scope}) ->
    #claim{pid = MyPid, meta = MyMeta, time_us = MyUs} = Mine,
    #claim{pid = Pid, meta = Meta, time_us = Us} = Other,
    try Choose({Scope, Name}, {MyPid, MyMeta, MyUs}, {Pid, Meta, Us}) of
        MyPid -> mine;
        Pid -> other;
        none -> none;
        _NeitherOfThem -> mine
    catch
        _:_ -> mine
    end.

ordered(Name, Verdict, #claim{pid = MyPid}, #claim{pid = Pid, id = Id}, Names0) ->
    #names{conflicts = Count} = Names0,
    Names = Names0#names{conflicts = Count + 1},
    {Why, Winner} = case Verdict of
                        superseded -> {superseded, MyPid};
                        mine -> {conflict, MyPid};
                        none -> {conflict, none}
                    end,
    effect({send, node(Pid), {1, yield, Name, Id, Why, Winner}}, Names).

given_up(Name, Winner, #names{rows = Rows, judged = Judged} = Names0) ->
    Names = Names0#names{judged = maps:remove(Name, Judged)},
    {ok, {_, _, Pid, _, _}} = weft_own_rows_core:find(Name, Rows),
    lost(conflict, Name, Pid, Winner, unclaim(Name, Names)).

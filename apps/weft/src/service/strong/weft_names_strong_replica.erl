%% SPDX-License-Identifier: Apache-2.0
%% @doc One replica of one partition of a strong scope: which node leads, and what it follows. With
%% the leader's part (`weft_names_strong_leader') this is Raft (Ongaro and Ousterhout, 2014) with
%% three changes:
%%
%% <ul>
%% <li>There is no log. A follower applies what it gets to its table; one that missed something gets
%%     the whole table, which is small. The order of tables is that of Raft's last log entries.</li>
%% <li>Nothing is on disk. A member is a node <em>in one incarnation</em>, so a restarted node is
%%     not a member: it has no vote until the leader has given it the table and changed the members.
%%     If the majority of a replica's members was restarted, no leader can be elected for them any
%%     more, and the replica forgets its table.</li>
%% <li>A partition is founded by the first of its nodes, when all of them are connected and say that
%%     they have no table. Then no node can have a table that might still be outvoted. What owners
%%     may hold since an earlier founding ends within one lease; during this time no leader answers.
%%     </li>
%% </ul>
%% A candidate asks first whether it would be elected (pre-vote), and a replica that hears of a
%% leader says no. So a replica that hears nothing, or was cut off for long, disturbs no other.
%%
%% Votes and tables of older ballots are refused; a ballot belongs to one candidate.
-module(weft_names_strong_replica).

-export([new/2, handle/4, request/4, node_down/3, tick/2, info/1, table/1, members/1]).
-export_type([replica/0]).

-define(BOTTOM, {{0, none, 0}, 0}).

-record(replica, {
    promised = {0, none, 0} :: weft_names_strong_leader:ballot(),
    position = ?BOTTOM :: weft_names_strong_leader:position(),
    table = none :: none | weft_names_strong_table:table(),
    role = follower :: role(),
    leader = none :: none | weft_names_strong_table:member(),
    heard_ms :: integer(),
    deadline_ms :: integer(),
    rand :: rand:state()}).

%% `asking': would I be elected; `electing': elect me; `founding': do you have no table.
-type role() :: follower
              | {asking | electing | founding, weft_names_strong_leader:ballot(),
                 Agreed :: [weft_names_strong_table:member()]}
              | {leading, weft_names_strong_leader:leader()}.

-opaque replica() :: #replica{}.
-type env() :: weft_names_strong_leader:env().
-type out() :: [{node(), Msg :: term()}].

%% @doc A replica that knows nothing.
-spec new(rand:state(), env()) -> replica().
new(Rand, #{now_ms := NowMs, options := #{heartbeat_ms := HeartbeatMs}}) ->
    #replica{heard_ms = NowMs, deadline_ms = NowMs + HeartbeatMs, rand = Rand}.

%% @doc For people and checkers.
-spec info(replica()) -> map().
info(#replica{role = Role, leader = Leader, promised = Promised} = Replica) ->
    Info = #{role => case Role of {Kind, _, _} -> Kind; {leading, _} -> leading; _ -> Role end,
             leader => Leader, ballot => Promised, members => members(Replica)},
    case Role of
        {leading, L} -> maps:merge(Info, weft_names_strong_leader:info(L));
        _ -> Info
    end.

%% @doc The table as this replica has it, confirmed or not.
-spec table(replica()) -> weft_names_strong_table:table() | none.
table(#replica{role = {leading, Leader}}) -> weft_names_strong_leader:table(Leader);
table(#replica{table = Table}) -> Table.

%% @doc A request of an owner or a reader. A replica that is not the leader names the leader.
-spec request(node(), term(), replica(), env()) -> {replica(), out()}.
request(From, Request, #replica{role = {leading, Leader}} = Replica, Env) ->
    led(weft_names_strong_leader:request(From, Request, Leader, Env), Replica);
request(From, _Request, #replica{leader = Leader} = Replica, _Env) ->
    {Replica, [{From, {not_leader, case Leader of {Node, _} -> Node; none -> none end}}]}.

led({Leader, Out}, Replica) ->
    {Replica#replica{role = {leading, Leader}}, Out}.

%% @doc A message of another replica.
-spec handle(weft_names_strong_table:member(), term(), replica(), env()) -> {replica(), out()}.
handle(From, {append, Ballot, Round, Former, Ops, Position}, Replica0, Env) ->
    case follows(From, Ballot, Replica0, Env) of
        {refused, Out} ->
            {Replica0, Out};
        {Replica, Out} ->
            appended(From, {Ballot, Round}, {Former, Ops, Position}, Replica, Out)
    end;
handle(From, {snapshot, Ballot, Round, Position, Table}, Replica0, Env) ->
    case follows(From, Ballot, Replica0, Env) of
        {refused, Out} ->
            {Replica0, Out};
        {Replica, Out} ->
            {Replica#replica{position = Position, table = Table},
             Out ++ [answer(From, {ack, Ballot, Round})]}
    end;
handle(From, {ack, Ballot, Round}, #replica{promised = Ballot, role = {leading, L}} = Replica,
       Env) ->
    led(weft_names_strong_leader:ack(From, Round, L, Env), Replica);
handle(From, {behind, Ballot, Round}, #replica{promised = Ballot, role = {leading, L}} = Replica,
       Env) ->
    led(weft_names_strong_leader:behind(From, Round, L, Env), Replica);
handle(_From, {Answer, _, _}, Replica, _Env) when Answer =:= ack; Answer =:= behind ->
    {Replica, []};
handle(From, {ask, Ballot, Position}, Replica, Env) ->
    {Replica, asked(From, Ballot, Position, Replica, Env)};
handle(From, {elect, Ballot, Position}, Replica, Env) ->
    elect(From, Ballot, Position, Replica, Env);
handle(From, {found, Ballot}, Replica, Env) ->
    found(From, Ballot, Replica, Env);
handle(From, {agreed, Kind, Ballot}, #replica{role = {Kind, Ballot, Agreed}} = Replica, Env) ->
    agreed(Replica#replica{role = {Kind, Ballot, lists:usort([From | Agreed])}}, Env);
handle(_From, {agreed, _Kind, _Ballot}, Replica, _Env) ->
    {Replica, []};
handle(_From, {refused, Ballot}, #replica{promised = Promised} = Replica, Env)
  when Ballot > Promised ->
    steps_down(Replica#replica{promised = Ballot}, Env);
handle(_From, {refused, _Ballot}, Replica, _Env) ->
    {Replica, []};
handle(_From, {removed, Ballot}, #replica{promised = Promised} = Replica, Env)
  when Ballot >= Promised ->
    forgets(Replica#replica{promised = Ballot}, Env);
handle(_From, {removed, _Ballot}, Replica, _Env) ->
    {Replica, []};
%% The leader of this ballot prefers this replica as the leader.
handle(From, {lead, Ballot}, #replica{promised = Ballot, leader = From} = Replica, Env) ->
    candidate(electing, Replica, Env);
handle(_From, {lead, _Ballot}, Replica, _Env) ->
    {Replica, []}.

answer({Node, _}, Msg) -> {Node, Msg}.

%% --- following --------------------------------------------------------------------------------

follows(From, Ballot, #replica{promised = Promised}, _Env) when Ballot < Promised ->
    {refused, [answer(From, {refused, Promised})]};
follows(From, Ballot, Replica0, #{now_ms := NowMs} = Env) ->
    {Replica, Out} = case Replica0#replica.role of
                         follower -> {Replica0, []};
                         _ -> steps_down(Replica0, Env)
                     end,
    {waits(Replica#replica{promised = Ballot, leader = From, heard_ms = NowMs}, Env), Out}.

appended(From, {Ballot, Round}, {Position, Ops, New}, #replica{position = Position} = Replica,
         Out) when Replica#replica.table =/= none ->
    {_, No} = Position,
    {_, Table} = lists:foldl(fun(Op, {N, T0}) ->
                                 {_, T} = weft_names_strong_table:run(Op, N + 1, T0),
                                 {N + 1, T}
                             end, {No, Replica#replica.table}, Ops),
    {Replica#replica{position = New, table = Table}, Out ++ [answer(From, {ack, Ballot, Round})]};
appended(From, {Ballot, Round}, _Missed, Replica, Out) ->
    {Replica, Out ++ [answer(From, {behind, Ballot, Round})]}.

%% The time until it becomes a candidate, from one to two times election_ms.
waits(#replica{rand = Rand0} = Replica,
      #{now_ms := NowMs, options := #{election_ms := ElectionMs}}) ->
    {Ms, Rand} = rand:uniform_s(ElectionMs, Rand0),
    Replica#replica{deadline_ms = NowMs + ElectionMs + Ms, rand = Rand}.

steps_down(#replica{role = {leading, Leader}} = Replica, Env) ->
    {waits(Replica#replica{role = follower, leader = none,
                           position = weft_names_strong_leader:position(Leader),
                           table = weft_names_strong_leader:table(Leader)}, Env),
     [{Node, {not_leader, none}} || Node <- weft_names_strong_leader:askers(Leader)]};
steps_down(Replica, Env) ->
    {waits(Replica#replica{role = follower, leader = none}, Env), []}.

%% The position stays: what this replica acknowledged binds its vote, also when it is a member only
%% for some that do not know yet that it was removed.
forgets(Replica0, Env) ->
    {Replica, Out} = steps_down(Replica0, Env),
    {Replica#replica{table = none}, Out}.

%% @doc The link to a node is lost. If that node led, another one should soon.
-spec node_down(node(), replica(), env()) -> replica().
node_down(Node, #replica{leader = {Node, _}, rand = Rand0} = Replica,
          #{now_ms := NowMs, options := #{election_ms := ElectionMs}}) ->
    {Ms, Rand} = rand:uniform_s(max(1, ElectionMs div 4), Rand0),
    Replica#replica{leader = none, rand = Rand,
                    deadline_ms = min(Replica#replica.deadline_ms, NowMs + Ms)};
node_down(_Node, Replica, _Env) ->
    Replica.

%% --- voting -----------------------------------------------------------------------------------

%% Yes to a candidate that has all that this replica has, unless there is a leader.
asked(From, _Ballot, _Position, #replica{role = {leading, Leader}} = Replica, Env) ->
    case weft_names_strong_leader:is_led(Leader, Env)
             andalso not lists:member(From, members(Replica)) of
        true -> weft_names_strong_leader:stranger(From, Leader);
        false -> []
    end;
asked(From, Ballot, Position, #replica{position = Own, promised = Promised, leader = Leader,
                                       heard_ms = HeardMs},
      #{now_ms := NowMs, options := #{election_ms := ElectionMs}}) ->
    HasLeader = Leader =/= none andalso NowMs - HeardMs < ElectionMs,
    if
        Ballot =< Promised -> [answer(From, {refused, Promised})];
        HasLeader; Position < Own -> [];
        true -> [answer(From, {agreed, asking, Ballot})]
    end.

elect(From, Ballot, _Position, #replica{promised = Promised} = Replica, _Env)
  when Ballot < Promised ->
    {Replica, [answer(From, {refused, Promised})]};
elect(From, Ballot, Position, Replica0, Env) ->
    {Replica, Out} = steps_down(Replica0#replica{promised = Ballot}, Env),
    case Position >= Replica#replica.position of
        true -> {Replica, Out ++ [answer(From, {agreed, electing, Ballot})]};
        false -> {Replica, Out}
    end.

%% This is a promise, too: what an earlier incarnation of the founder founded comes too late.
found(From, Ballot, #replica{table = none, promised = Promised} = Replica, _Env)
  when Ballot >= Promised ->
    {Replica#replica{promised = Ballot}, [answer(From, {agreed, founding, Ballot})]};
found(From, _Ballot, #replica{promised = Promised} = Replica, _Env) ->
    {Replica, [answer(From, {refused, Promised}) || table(Replica) =:= none]}.

candidate(Kind, #replica{promised = {N, _, _}, position = Position} = Replica0,
          #{self := {Node, Incarnation} = Self} = Env) ->
    Ballot = {N + 1, Node, Incarnation},
    Replica1 = case Kind of
                   electing -> Replica0#replica{promised = Ballot};
                   asking -> Replica0
               end,
    Replica = waits(Replica1#replica{role = {Kind, Ballot, [Self]}, leader = none}, Env),
    Msg = case Kind of asking -> {ask, Ballot, Position}; electing -> {elect, Ballot, Position} end,
    {Elected, Out} = agreed(Replica, Env),
    {Elected, [{Other, Msg} || {Other, _} = Member <- members(Replica), Member =/= Self] ++ Out}.

%% @doc The nodes whose majority elects and confirms, as this replica knows them.
-spec members(replica()) -> [weft_names_strong_table:member()].
members(Replica) ->
    case table(Replica) of
        none -> [];
        Table -> weft_names_strong_table:members(Table)
    end.

agreed(#replica{role = {founding, Ballot, Agreed}} = Replica, #{replicas := Nodes} = Env) ->
    case lists:sort([Node || {Node, _} <- Agreed]) =:= lists:sort(Nodes) of
        true -> founded(Ballot, Agreed, Replica, Env);
        false -> {Replica, []}
    end;
agreed(#replica{role = {Kind, Ballot, Agreed}} = Replica, Env) ->
    Members = members(Replica),
    Votes = length([M || M <- Members, lists:member(M, Agreed)]),
    case Votes >= weft_names_strong_placement:majority(length(Members)) of
        true when Kind =:= asking -> candidate(electing, Replica, Env);
        true -> leads(Ballot, Replica, Env);
        false -> {Replica, []}
    end.

leads(Ballot, #replica{position = Position, table = Table} = Replica, #{self := Self} = Env) ->
    led(weft_names_strong_leader:start(Ballot, Position, Table, Env),
        Replica#replica{leader = Self}).

%% Tokens continue from one founding to the next. The incarnation is the microsecond when the
%% founder started, so the number is that of the present one: it is greater if the founder has
%% restarted, and also if it has not, because there are fewer operations than microseconds.
founded(Ballot, Members, #replica{position = {_, LastNo}} = Replica,
        #{self := {_, Incarnation}, now_ms := NowMs} = Env) ->
    No = max(Incarnation + NowMs * 1000, LastNo),
    leads(Ballot, Replica#replica{promised = Ballot, position = {{0, none, 0}, No},
                                  table = weft_names_strong_table:new(lists:sort(Members))}, Env).

%% --- time -------------------------------------------------------------------------------------

%% @doc Time passed.
-spec tick(replica(), env()) -> {replica(), out()}.
tick(#replica{role = {leading, Leader}} = Replica, Env) ->
    case weft_names_strong_leader:is_led(Leader, Env) of
        true -> led(weft_names_strong_leader:tick(Leader, Env), Replica);
        false -> steps_down(Replica, Env)
    end;
tick(#replica{deadline_ms = DeadlineMs} = Replica, #{now_ms := NowMs}) when NowMs < DeadlineMs ->
    {Replica, []};
tick(#replica{table = none} = Replica, Env) ->
    founds(Replica, Env);
tick(Replica, #{self := Self} = Env) ->
    case {is_lost(Replica, Env), lists:member(Self, members(Replica))} of
        {true, _} -> forgets(Replica, Env);
        {false, true} -> candidate(asking, Replica, Env);
        {false, false} -> {waits(Replica, Env), []}
    end.

is_lost(Replica, #{latest := Latest}) ->
    Members = members(Replica),
    Alive = [M || {Node, Incarnation} = M <- Members,
                  maps:get(Node, Latest, Incarnation) =< Incarnation],
    length(Alive) < weft_names_strong_placement:majority(length(Members)).

%% Repeated with the same ballot, unless a replica has promised a higher one.
founds(#replica{role = Role, promised = {N, _, _}} = Replica,
       #{founds := true, replicas := [Node | Others], self := {Node, Incarnation} = Self} = Env) ->
    Ballot = case Role of {founding, Last, _} -> Last; _ -> {N + 1, Node, Incarnation} end,
    #{now_ms := NowMs, options := #{heartbeat_ms := HeartbeatMs}} = Env,
    {Founded, Out} = agreed(Replica#replica{role = {founding, Ballot, [Self]}, promised = Ballot,
                                            deadline_ms = NowMs + HeartbeatMs}, Env),
    {Founded, [{Other, {found, Ballot}} || Other <- Others] ++ Out};
founds(Replica, Env) ->
    {waits(Replica, Env), []}.

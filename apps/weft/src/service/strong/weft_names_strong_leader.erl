%% SPDX-License-Identifier: Apache-2.0
%% @doc The replica that leads a partition. It alone answers, after a majority of the members
%% confirmed that it still leads and has what the answer says.
%%
%% Work is done in <em>rounds</em>. A round takes all requests that wait, applies what they change,
%% and tells the members. Once a majority has acknowledged it (or a later one), the answers are sent
%% and the next round takes what came meanwhile. So a request costs one round trip to the other
%% replicas, and many at once share it. An idle leader has a round without changes as its heartbeat;
%% renewals of leases wait for it. A member that missed something says `behind' and gets the whole
%% table.
%%
%% Only as many members are told at once as a majority needs, those that were quickest to
%% acknowledge. The others get what they lack with the next heartbeat, or as soon as a round is
%% late. This saves a third of the messages.
%%
%% The leader removes owners whose lease it did not see renewed (a new leader counts from its
%% start), or whose node has come in a later incarnation. It changes the members one by one: first
%% it removes dead ones, then adds the nodes that should have a replica, then removes the others.
%% There are never fewer than the replicas less one, so a quorum always has more than half of the
%% replicas.
%%
%% A leader that hands the lead over tells all that it has first, and changes nothing for the time
%% of a heartbeat. Otherwise the next one, which may be a slow one, would lack something and not be
%% elected.
%%
%% Not here: the election (`weft_names_strong_replica').
-module(weft_names_strong_leader).

-export([start/4, position/1, table/1, request/4, ack/4, behind/4, tick/2, stranger/2, is_led/2,
         askers/1, info/1]).
-export_type([leader/0, env/0, position/0, ballot/0]).

%% Requests of one round; the others wait for the next.
-define(ROUND_MAX, 500).
%% Requests that wait; more are dropped, and their senders ask again.
-define(WAITING_MAX, 20000).
%% Operations that are kept for a member that need not be told at once.
-define(DUE_MAX, 1000).

-type ballot() :: {non_neg_integer(), node() | none, Incarnation :: non_neg_integer()}.
-type position() :: {ballot(), No :: non_neg_integer()}.
-type env() :: #{now_ms := integer(), self := weft_names_strong_table:member(),
                 up := #{node() => Incarnation :: non_neg_integer() | none},
                 latest := #{node() => Incarnation :: non_neg_integer()},
                 replicas := [node()], founds := boolean(),
                 options := weft_names_strong_options:options()}.
%% `now_ms': how long this node has run, by a clock that may be late but never early (see
%% `weft_names_strong_core'). `up': the nodes with a link, with the incarnation that they told.
%% `latest': the latest incarnation heard of each. `replicas': the nodes that should have a replica
%% of this partition. `founds': a partition that never existed may be founded.

-record(leader, {
    ballot :: ballot(),
    no :: non_neg_integer(),
    table :: weft_names_strong_table:table(),
    since_ms :: integer(),
    %% The last round, the last one that a majority has, when that was, when the last one was sent.
    round = 0 :: non_neg_integer(),
    confirmed = 0 :: non_neg_integer(),
    confirmed_ms :: integer(),
    sent_ms :: integer(),
    %% The last two rounds that all members were told, and when that was.
    whole = {0, 0} :: {non_neg_integer(), non_neg_integer()},
    whole_ms :: integer(),
    %% The operations that a member was not told, newest first, and the position that it was told up
    %% to.
    due = #{} :: #{weft_names_strong_table:member() =>
                       {position(), [weft_names_strong_table:op()]}},
    acked = #{} :: #{weft_names_strong_table:member() => Round :: pos_integer()},
    %% The round with which a member got the whole table.
    given = #{} :: #{weft_names_strong_table:member() => Round :: pos_integer()},
    %% The round of the last change of members, and the member that it removed.
    changed = 1 :: pos_integer(),
    removed = none :: none | weft_names_strong_table:member(),
    moved_ms :: integer(),
    urgent = false :: boolean(),
    waiting = [] :: [{node(), term()}],
    waiting_count = 0 :: non_neg_integer(),
    %% Newest first.
    answers = [] :: [{Round :: pos_integer(), [{node(), term()}]}],
    heard = #{} :: #{node() => Ms :: integer()}}).

-opaque leader() :: #leader{}.
-type out() :: [{node(), Msg :: term()}].
%% In the order of sending.

%% @doc A leader elected with Ballot, with the table that it had so far.
-spec start(ballot(), position(), weft_names_strong_table:table(), env()) -> {leader(), out()}.
start(Ballot, {_, No} = Position, Table, #{now_ms := NowMs} = Env) ->
    Leader = #leader{ballot = Ballot, no = No, table = Table, since_ms = NowMs, moved_ms = NowMs,
                     confirmed_ms = NowMs, sent_ms = NowMs, whole_ms = NowMs},
    %% What earlier leaders left may be confirmed only together with a round of this one.
    settled(round_of(everybody, [noop], Position, Leader#leader{no = No + 1}, Env), Env).

%% @doc The position of its table in the order of all tables.
-spec position(leader()) -> position().
position(#leader{ballot = Ballot, no = No}) -> {Ballot, No}.

-spec table(leader()) -> weft_names_strong_table:table().
table(#leader{table = Table}) -> Table.

%% @doc The nodes that wait for an answer.
-spec askers(leader()) -> [node()].
askers(#leader{waiting = Waiting, answers = Answers}) ->
    lists:usort([Node || {Node, _} <- lists:append([Waiting | [List || {_, List} <- Answers]])]).

%% @doc For people: the round, the one that is confirmed, how many requests wait.
-spec info(leader()) -> #{atom() => non_neg_integer()}.
info(#leader{round = Round, confirmed = Confirmed, waiting_count = Waiting, table = Table}) ->
    #{round => Round, confirmed => Confirmed, waiting => Waiting,
      names => weft_names_strong_table:count(Table)}.

%% @doc A request of a node; an answer comes when it is confirmed, or never.
-spec request(node(), term(), leader(), env()) -> {leader(), out()}.
request(_From, _Request, #leader{waiting_count = ?WAITING_MAX} = Leader, _Env) ->
    {Leader, []};
request(From, Request, #leader{waiting = Waiting, waiting_count = Count} = Leader, Env) ->
    Urgent = Leader#leader.urgent orelse element(1, Request) =/= renew,
    flush(Leader#leader{waiting = [{From, Request} | Waiting], waiting_count = Count + 1,
                        urgent = Urgent}, Env).

%% @doc A member has everything up to a round.
-spec ack(weft_names_strong_table:member(), Round :: pos_integer(), leader(), env()) ->
          {leader(), out()}.
ack(From, Round, #leader{acked = Acked} = Leader, Env) ->
    settled({Leader#leader{acked = Acked#{From => max(Round, maps:get(From, Acked, 0))}}, []}, Env).

%% @doc A member can not follow: it gets the whole table, unless that is on its way.
-spec behind(weft_names_strong_table:member(), Round :: pos_integer(), leader(), env()) ->
          {leader(), out()}.
behind({Node, _} = From, Round, #leader{given = Given, round = Last} = Leader, _Env) ->
    case Given of
        #{From := Later} when Later >= Round ->
            {Leader, []};
        #{} ->
            #leader{ballot = Ballot, table = Table, due = Due} = Leader,
            {Leader#leader{given = Given#{From => Last}, due = maps:remove(From, Due)},
             [{Node, {snapshot, Ballot, Last, position(Leader), Table}}]}
    end.

%% @doc Whether the leader still reaches a majority, as far as it can know.
-spec is_led(leader(), env()) -> boolean().
is_led(#leader{confirmed_ms = Ms}, #{now_ms := NowMs, options := #{election_ms := ElectionMs}}) ->
    NowMs - Ms < 3 * ElectionMs.

%% @doc A node that is no member wants to be elected: it does not know that it was removed.
-spec stranger(weft_names_strong_table:member(), leader()) -> out().
stranger({Node, _}, #leader{ballot = Ballot, changed = Changed, confirmed = Confirmed})
  when Confirmed >= Changed -> [{Node, {removed, Ballot}}];
stranger(_Member, _Leader) -> [].

%% @doc Heartbeat, leases that ran out, changes of members.
-spec tick(leader(), env()) -> {leader(), out()}.
tick(Leader0, Env) ->
    Changes = case is_still(Leader0, Env) of
                  true -> [];
                  false -> [fun open/2, fun expire/2, fun reshape/2]
              end,
    lists:foldl(fun(Step, {Leader1, Before}) ->
                    {Leader, Out} = Step(Leader1, Env),
                    {Leader, Before ++ Out}
                end, {Leader0, []}, Changes ++ [fun beat/2]).

%% It handed the lead over, and the next leader has had no time to be elected.
is_still(#leader{moved_ms = MovedMs, since_ms = SinceMs},
         #{now_ms := NowMs, options := #{heartbeat_ms := HeartbeatMs}}) ->
    MovedMs > SinceMs andalso NowMs - MovedMs < HeartbeatMs.

beat(#leader{waiting = Waiting, urgent = Urgent, round = Round} = Leader, Env) ->
    IsDue = is_due(Leader, Env),
    case flush(Leader#leader{urgent = Urgent orelse IsDue andalso Waiting =/= []}, Env) of
        {#leader{round = Round} = Same, []} when IsDue ->
            settled(round_of(everybody, [], position(Same), Same, Env), Env);
        Flushed -> Flushed
    end.

is_due(#leader{round = Round, confirmed = Confirmed, sent_ms = SentMs, whole_ms = WholeMs},
       #{now_ms := NowMs, options := #{heartbeat_ms := HeartbeatMs, tick_ms := TickMs}}) ->
    NowMs - WholeMs >= HeartbeatMs orelse Round > Confirmed andalso NowMs - SentMs >= TickMs.

%% --- rounds -----------------------------------------------------------------------------------

%% Of later rounds than the first only those with answers are waited for. Where a round trip is
%% longer than a tick, rounds without requests follow each other all the time, and the last one is
%% never confirmed.
flush(#leader{urgent = true, answers = [], confirmed = Confirmed, table = Table} = Leader, Env)
  when Confirmed > 0 ->
    case weft_names_strong_table:is_open(Table) andalso not is_still(Leader, Env) of
        true -> flushed(Leader, Env);
        false -> {Leader, []}
    end;
flush(Leader, _Env) ->
    {Leader, []}.

flushed(#leader{waiting = Waiting, waiting_count = Count} = Leader0, Env) ->
    {Later, Now} = lists:split(max(0, Count - ?ROUND_MAX), Waiting),
    Leader1 = Leader0#leader{waiting = Later, waiting_count = length(Later),
                             urgent = Later =/= []},
    {Ops, Answers, Leader2} = lists:foldl(fun(Request, Acc) -> served(Request, Acc, Env) end,
                                          {[], [], Leader1}, lists:reverse(Now)),
    {Leader3, Out} = round_of(quickest, lists:reverse(Ops), position(Leader1), Leader2, Env),
    #leader{round = New, answers = Earlier} = Leader3,
    settled({Leader3#leader{answers = [{New, lists:reverse(Answers)} | Earlier]}, Out}, Env).

served({From, {write, Incarnation, Lease, Oldest, Requests}}, {Ops, Answers, Leader} = Acc, Env) ->
    #leader{table = Table0, no = No0} = Leader,
    case has_room(Requests, Table0, Env) of
        false ->
            {Ops, [{From, {full, Incarnation, [Id || {Id, _} <- Requests]}} | Answers], Leader};
        true ->
            Op = {write, From, Incarnation, Lease, Oldest, Requests},
            {Result, Table} = weft_names_strong_table:run(Op, No0 + 1, Table0),
            wrote(From, Incarnation, Op, Result, Acc,
                  Leader#leader{table = Table, no = No0 + 1}, Env)
    end;
served({From, {read, Incarnation, Reads}}, {Ops, Answers, #leader{table = Table} = Leader}, _Env) ->
    Values = [{Id, value(What, Table)} || {Id, What} <- Reads],
    {Ops, [{From, {values, Incarnation, Values}} | Answers], Leader};
served({From, {renew, Incarnation, Lease, Id, Sum}}, {Ops, Answers, Leader}, Env) ->
    #leader{table = Table, no = No} = Leader,
    case weft_names_strong_table:digest(From, {Incarnation, Lease}, Sum, Table) of
        stale -> {Ops, [{From, {stale, Incarnation, []}} | Answers], Leader};
        Digest -> {Ops, [{From, {renewed, Incarnation, Id, No, Digest}} | Answers],
                   heard(From, Leader, Env)}
    end.

value({name, Name}, Table) ->
    weft_names_strong_table:find(Name, Table);
value(names, Table) ->
    {names, [Name || {Name, _Token} <- weft_names_strong_table:names(Table)]}.

wrote(From, Incarnation, {write, _, _, _, _, Requests}, stale, {Ops, Answers, Leader}, _Changed,
      _Env) ->
    {Ops, [{From, {stale, Incarnation, [Id || {Id, _} <- Requests]}} | Answers], Leader};
wrote(From, Incarnation, Op, {ok, Lease, Results}, {Ops, Answers, _}, Changed, Env) ->
    {[Op | Ops], [{From, {wrote, Incarnation, Lease, Results}} | Answers],
     heard(From, Changed, Env)}.

has_room(Requests, Table, #{options := #{names_max := Max, partitions := Partitions}}) ->
    weft_names_strong_table:count(Table) * Partitions < Max
        orelse not lists:any(fun({_, Request}) -> element(1, Request) =:= register end, Requests).

heard(Node, #leader{heard = Heard} = Leader, #{now_ms := NowMs}) ->
    Leader#leader{heard = Heard#{Node => NowMs}}.

%% What the operations change is already in the table.
round_of(Whom, Ops, Former, #leader{ballot = Ballot, round = Last, due = Due0} = Leader0, Env) ->
    Round = Last + 1,
    Leader = stamped(Whom, Leader0#leader{round = Round}, Env),
    Listeners = listeners(Leader, Env),
    Told = told(Listeners, Leader),
    {Out, Due} = lists:foldl(fun({Node, _} = Member, {Acc, D}) ->
        {From, Before} = maps:get(Member, Due0, {Former, []}),
        All = lists:reverse(Ops, Before),
        case lists:member(Member, Told) orelse length(All) > ?DUE_MAX of
            true ->
                Msg = {append, Ballot, Round, From, lists:reverse(All), position(Leader)},
                {[{Node, Msg} | Acc], D};
            false -> {Acc, D#{Member => {From, All}}}
        end
    end, {[], #{}}, Listeners),
    {Leader#leader{due = Due}, lists:reverse(Out)}.

%% If a heartbeat is due, it is this round.
stamped(Whom, #leader{round = Round, whole = {_, Last}, whole_ms = WholeMs} = Leader,
        #{now_ms := NowMs, options := #{heartbeat_ms := HeartbeatMs}}) ->
    case Whom =:= everybody orelse NowMs - WholeMs >= HeartbeatMs of
        true -> Leader#leader{sent_ms = NowMs, whole_ms = NowMs, whole = {Last, Round}};
        false -> Leader#leader{sent_ms = NowMs}
    end.

told(Listeners, #leader{round = Round, whole = {_, Round}}) ->
    Listeners;
told(Listeners, #leader{table = Table} = Leader) ->
    Members = weft_names_strong_table:members(Table),
    Quickest = lists:reverse(lists:sort([{acked(Member, Leader), Member}
                                         || Member <- Listeners, lists:member(Member, Members)])),
    Needed = weft_names_strong_placement:majority(length(Members)) - 1,
    [Member || {_, Member} <- lists:sublist(Quickest, Needed)].

acked(Member, #leader{acked = Acked}) -> maps:get(Member, Acked, 0).

%% The members and those that are to become members, without this one, if they are connected.
listeners(#leader{table = Table}, #{self := Self, replicas := Replicas, up := Up}) ->
    Members = weft_names_strong_table:members(Table),
    Wanted = Members ++ [{Node, Incarnation} || Node <- Replicas, #{Node := Incarnation} <- [Up],
                                                Incarnation =/= none],
    [{Node, Incarnation} || {Node, Incarnation} <- lists:usort(Wanted) -- [Self],
                            maps:get(Node, Up, none) =:= Incarnation].

%% Sends the answers up to the round that a majority has; then what waits makes the next round.
settled({#leader{confirmed = Former} = Leader0, Out}, #{now_ms := NowMs} = Env) ->
    case majority_round(Leader0, Env) of
        Confirmed when Confirmed > Former ->
            {Later, Due} = lists:splitwith(fun({Round, _}) -> Round > Confirmed end,
                                           Leader0#leader.answers),
            Leader1 = Leader0#leader{confirmed = Confirmed, confirmed_ms = NowMs, answers = Later},
            {Leader2, Told} = removal_told(Leader1),
            {Leader, More} = flush(Leader2, Env),
            {Leader, Out ++ lists:append([Answers || {_, Answers} <- lists:reverse(Due)])
             ++ Told ++ More};
        _ ->
            {Leader0, Out}
    end.

majority_round(#leader{table = Table, round = Round} = Leader, #{self := Self}) ->
    Members = weft_names_strong_table:members(Table),
    Acked = [case Member of Self -> Round; _ -> acked(Member, Leader) end || Member <- Members],
    Majority = weft_names_strong_placement:majority(length(Members)),
    lists:nth(Majority, lists:reverse(lists:sort(Acked))).

removal_told(#leader{removed = {Node, _}, changed = Changed, confirmed = Confirmed} = Leader)
  when Confirmed >= Changed ->
    {Leader#leader{removed = none}, [{Node, {removed, Leader#leader.ballot}}]};
removal_told(Leader) ->
    {Leader, []}.

%% --- leases -----------------------------------------------------------------------------------

%% After a founding each leader waits as long as an owner may still believe in what it had before.
%% The first leader that has waited opens the table, for its successors too.
open(#leader{table = Table, since_ms = SinceMs} = Leader,
     #{now_ms := NowMs, options := #{lease_ms := LeaseMs, margin_ms := MarginMs}} = Env) ->
    IsDue = NowMs - SinceMs >= LeaseMs + MarginMs
        andalso not weft_names_strong_table:is_open(Table),
    propose([open || IsDue], Leader, Env).

%% An owner counts its lease from before it asked; the leader counts from when it heard of it or
%% became the leader, which was after every answer of an earlier one. If a node is connected in a
%% later incarnation, no process can be left that believes in the earlier one. The loss of a
%% connection proves nothing.
expire(#leader{table = Table, heard = Heard, since_ms = SinceMs} = Leader,
       #{now_ms := NowMs, options := #{lease_ms := LeaseMs, margin_ms := MarginMs}} = Env) ->
    Owners = weft_names_strong_table:owners(Table),
    Ops = [{expire, Node, Incarnation}
           || {Node, Incarnation} <- Owners,
              NowMs - maps:get(Node, Heard, SinceMs) > LeaseMs + MarginMs
                  orelse has_restarted(Node, Incarnation, Env)],
    Known = maps:with([Node || {Node, _} <- Owners], Heard),
    propose(Ops, Leader#leader{heard = Known}, Env).

has_restarted(Node, {Incarnation, _Count}, #{up := Up}) ->
    case Up of
        #{Node := Now} when is_integer(Now) -> Now > Incarnation;
        #{} -> false
    end.

propose([], Leader, _Env) ->
    {Leader, []};
propose(Ops, #leader{no = No0, table = Table0} = Leader, Env) ->
    {No, Table} = lists:foldl(fun(Op, {N, T0}) ->
                                  {ok, T} = weft_names_strong_table:run(Op, N + 1, T0),
                                  {N + 1, T}
                              end, {No0, Table0}, Ops),
    settled(round_of(everybody, Ops, position(Leader), Leader#leader{no = No, table = Table}, Env),
            Env).

%% --- members ----------------------------------------------------------------------------------

%% One change at a time, and only after one of this leader's own rounds is confirmed (Ongaro 2015).
reshape(#leader{changed = Changed, confirmed = Confirmed, table = Table} = Leader, Env)
  when Confirmed >= Changed ->
    Members = weft_names_strong_table:members(Table),
    case change(Members, Leader, Env) of
        none -> hand_over(Members, Leader, Env);
        {Removed, New} ->
            propose([{members, New}], Leader#leader{changed = Leader#leader.round + 1,
                                                    removed = Removed}, Env)
    end;
reshape(Leader, _Env) ->
    {Leader, []}.

change(Members, Leader, #{self := Self, replicas := Replicas, latest := Latest, up := Up}) ->
    Dead = [M || {Node, Incarnation} = M <- Members,
                 maps:get(Node, Latest, Incarnation) > Incarnation],
    Missing = [M || Node <- Replicas, #{Node := Incarnation} <- [Up], M <- [{Node, Incarnation}],
                    not lists:member(M, Members), is_following(M, Leader)],
    Extra = [M || {Node, _} = M <- Members, M =/= Self, not lists:member(Node, Replicas)],
    case {Dead, Missing, Extra, length(Members) - length(Replicas)} of
        {[M | _], _, _, Surplus} when Surplus >= 0 -> {M, Members -- [M]};
        {_, [M | _], _, Surplus} when Surplus =< 0 -> {none, lists:sort([M | Members])};
        {_, _, [M | _], Surplus} when Surplus > 0 -> {M, Members -- [M]};
        _ -> none
    end.

%% It has acknowledged the last but one round that all members were told.
is_following(Member, #leader{whole = {Former, _}} = Leader) ->
    Former > 0 andalso acked(Member, Leader) >= Former.

%% Hands the lead over to the first node in `replicas' that is fit for it, once in a lease. What
%% that node lacks comes before.
hand_over(Members, #leader{moved_ms = MovedMs, ballot = Ballot, waiting = []} = Leader,
          #{self := Self, replicas := Replicas, up := Up, now_ms := NowMs,
            options := #{lease_ms := LeaseMs}} = Env) when NowMs - MovedMs > LeaseMs ->
    Fit = [Member || Node <- Replicas, Member <- [{Node, maps:get(Node, Up, none)}, Self],
                     element(1, Member) =:= Node, lists:member(Member, Members),
                     Member =:= Self orelse is_following(Member, Leader)],
    case Fit of
        [Self | _] -> {Leader, []};
        [{Node, _} | _] ->
            Moved = Leader#leader{moved_ms = NowMs},
            {Told, Out} = round_of(everybody, [], position(Leader), Moved, Env),
            {Told, Out ++ [{Node, {lead, Ballot}}]};
        [] -> {Leader, []}
    end;
hand_over(_Members, Leader, _Env) ->
    {Leader, []}.

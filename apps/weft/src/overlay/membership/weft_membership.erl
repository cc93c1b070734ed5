%% SPDX-License-Identifier: Apache-2.0
%% @doc Gossip about the members of the cluster: the part that topologies without a written list
%% share.
%%
%% Pure part of a core. The owner passes its events and its list of neighbours to this module, and
%% gets the messages to send, the views `{member, Node} => Incarnation', and what changed. The owner
%% decides which nodes to dial. Protocol, in order:
%% <ol>
%% <li>A link comes up: both ends send what they know and ask for what they lack (`pull'). The
%%     answer is a `delta', if the other end knows more.</li>
%% <li>What was new to the receiver is passed on once (`delta'), to those of its neighbours that the
%%     owner names; if they are more than `fanout', to so many of them at random.</li>
%% <li>Every `digest_ms' a random neighbour gets a `digest' of our table. If its own differs it
%%     answers with a `pull'. This repairs the loss of news.</li>
%% </ol>
%% A member that crashed or was cut off stays a member. One that leaves (command `leave') is
%% remembered as `left'. A node that learns that it is listed as `left', or of a later incarnation
%% of itself, takes a yet higher one.
-module(weft_membership).

-export([new/3, handle/4, table/1, dialable/2, strangers/2, is_joined/1]).
-export_type([membership/0, about/0, change/0, message/0, neighbours/0]).

-record(membership, {
    self :: weft_core:node_id(),
    kind :: weft_member_table:kind(),
    version :: term(),
    table :: weft_member_table:table(),
    mode = joined :: joined | {leaving, Ref :: term()} | left,
    is_full_told = false :: boolean(),
    rand :: rand:state(),
    fanout :: pos_integer() | all,
    digest_ms :: pos_integer(),
    linger_ms :: pos_integer(),
    %% What the present event led to, newest first.
    changes = [] :: [change()],
    out = [] :: weft_core:effects()}).

-opaque membership() :: #membership{}.

%% The incarnation of a node of which nobody has heard: each that it may have counts more.
-define(NEVER_MET, 0).

-type about() :: #{kind := weft_member_table:kind(), version := term(), salt := atom()}.
%% `kind': what we are. `version': tag of all messages; those with another one are ignored, so each
%% topology has its own. `salt': see `weft_core:seed/3'.

-type change() :: {member, weft_core:node_id(), weft_member_table:kind()}
                | {left, weft_core:node_id()}
                | leaving
                | left.
%% `leaving': dial no more, but keep the links until the news is out. `left': drop them.

-type neighbours() :: #{linked := [weft_core:node_id()], listeners := [weft_core:node_id()]}.
%% Neighbours with a link, and those of them that get the news of this event.

-type message() :: {Version :: term(),
                    {pull | delta, [weft_member_table:entry()]}
                  | {digest, {non_neg_integer(), non_neg_integer()}}}.
%% `pull': this is all I know, send back what I lack. `delta': news.

%% @doc A table with ourselves only. Options: `incarnation' (0), `fanout' (4, or `all'), `digest_ms'
%% (10000), `linger_ms' (500), and those of `weft_member_table:new/2'.
-spec new(weft_core:node_id(), about(), weft_core:options()) ->
          {membership(), weft_core:effects()}.
new(Self, #{kind := Kind, version := Version, salt := Salt}, Options) ->
    Entry = {Self, maps:get(incarnation, Options, 0), Kind},
    finish(digest_later(show(Entry, #membership{
        self = Self, kind = Kind, version = Version,
        table = weft_member_table:new(Entry, Options),
        rand = weft_core:seed(Self, Salt, Options),
        fanout = maps:get(fanout, Options, 4),
        digest_ms = maps:get(digest_ms, Options, 10000),
        linger_ms = maps:get(linger_ms, Options, 500)}))).

%% @doc The table of members.
-spec table(membership()) -> weft_member_table:table().
table(#membership{table = Table}) -> Table.

%% @doc Whether this node has not begun to leave.
-spec is_joined(membership()) -> boolean().
is_joined(#membership{mode = Mode}) -> Mode =:= joined.

%% @doc Those of Seeds that are worth dialling. A node that left is not (if it comes back it dials
%% by itself); once this node leaves, none is.
-spec dialable([weft_core:node_id()], membership()) -> [weft_core:node_id()].
dialable(Seeds, #membership{mode = joined, table = Table}) ->
    [Seed || Seed <- Seeds, case weft_member_table:get(Seed, Table) of
                                {ok, {_, left}} -> false;
                                _ -> true
                            end];
dialable(_Seeds, _Membership) ->
    [].

%% @doc Those of Nodes that are not members.
-spec strangers([weft_core:node_id()], membership()) -> [weft_core:node_id()].
strangers(Nodes, #membership{table = Table}) ->
    [Node || Node <- Nodes, weft_member_table:get(Node, Table) =:= error].

%% @doc See `weft_core'. Events: a link that came up, messages, timers `digest' and `left'.
%% Commands: `leave' (answered `ok' after `linger_ms'); `{forget, Node}' for a member that will
%% never come back (answered `ok' or `{error, unknown_member | self}'; a node that was forgotten in
%% error comes back by itself); `{forget_stranger, Node}' for one that is not in the table, and that
%% the owner dials (answered `ok'). Notices: `{member, Node, joined | left}', and once `{warning,
%% {members_full, Node}}'.
-spec handle(weft_core:event(), neighbours(), NowMs :: integer(), membership()) ->
          {[change()], weft_core:effects(), membership()}.
handle(Event, Neighbours, NowMs, Membership0) ->
    #membership{changes = Changes} = Membership = on(Event, Neighbours, NowMs, Membership0),
    {Quiet, Effects} = finish(Membership#membership{changes = []}),
    {lists:reverse(Changes), Effects, Quiet}.

on({neighbour_up, Node}, _Neighbours, _NowMs, #membership{table = Table} = M) ->
    send(Node, {pull, weft_member_table:told(Table)}, M);
on({message, From, {Version, Message}}, Neighbours, NowMs, #membership{version = Version} = M) ->
    message(Message, From, Neighbours, NowMs, M);
on({message, _From, _OtherVersion}, _Neighbours, _NowMs, M) ->
    M;
on({timer, digest}, Neighbours, NowMs, #membership{table = Table} = M) ->
    digest_later(send_digest(Neighbours,
                             M#membership{table = weft_member_table:expire(NowMs, Table)}));
on({timer, left}, _Neighbours, _NowMs, #membership{mode = {leaving, Ref}} = M) ->
    emit({reply, Ref, ok}, changed(left, M#membership{mode = left}));
on({command, Ref, leave}, Neighbours, NowMs, M) ->
    leave(Ref, Neighbours, NowMs, M);
on({command, Ref, {forget, Node}}, Neighbours, NowMs, M) ->
    forget(Ref, Node, Neighbours, NowMs, M);
on({command, Ref, {forget_stranger, Node}}, Neighbours, NowMs, M) ->
    emit({reply, Ref, ok}, learn([{Node, ?NEVER_MET, left}], Neighbours, NowMs, M)).

message({delta, Entries}, _From, Neighbours, NowMs, M) ->
    learn(Entries, Neighbours, NowMs, M);
message({pull, Entries}, From, Neighbours, NowMs, M0) ->
    M = learn(Entries, Neighbours, NowMs, M0),
    case weft_member_table:newer_than(Entries, M#membership.table) of
        [] -> M;
        Lacking -> send(From, {delta, Lacking}, M)
    end;
message({digest, Digest}, From, _Neighbours, _NowMs, #membership{table = Table} = M) ->
    case weft_member_table:digest(Table) of
        Digest -> M;
        _Differs -> send(From, {pull, weft_member_table:told(Table)}, M)
    end.

%% A node that has left ignores news: late news must not make it a member again.
learn(_Entries, _Neighbours, _NowMs, #membership{mode = Mode} = M) when Mode =/= joined ->
    M;
learn(Entries0, #{listeners := Listeners}, NowMs, #membership{table = Table0} = M0) ->
    Entries = refute(Entries0, M0),
    {Changed, Refused, Table} = weft_member_table:merge(Entries, NowMs, Table0),
    M1 = warn(Refused, M0#membership{table = Table}),
    spread(Changed, Listeners, lists:foldl(fun apply_change/2, M1, Changed)).

warn([{Node, _, _} | _], #membership{is_full_told = false} = M) ->
    emit({notice, {warning, {members_full, Node}}}, M#membership{is_full_told = true});
warn(_Refused, M) ->
    M.

%% News about ourselves that we did not make: answer with an incarnation above it.
refute(Entries, #membership{self = Self, kind = Kind, table = Table}) ->
    {ok, Own} = weft_member_table:get(Self, Table),
    [case Entry of
         {Self, Incarnation, Status} when Status =/= Kind, Incarnation >= element(1, Own);
                                          Incarnation > element(1, Own) ->
             {Self, Incarnation + 1, Kind};
         _ ->
             Entry
     end || Entry <- Entries].

apply_change({Self, _, _} = Entry, #membership{self = Self} = M) ->
    show(Entry, M);
apply_change({Node, _, left} = Entry, M) ->
    emit({notice, {member, Node, left}}, changed({left, Node}, show(Entry, M)));
apply_change({Node, _, Kind} = Entry, M) ->
    emit({notice, {member, Node, joined}}, changed({member, Node, Kind}, show(Entry, M))).

show({Node, _Incarnation, left}, M) -> emit({view, {member, Node}, delete}, M);
show({Node, Incarnation, _Kind}, M) -> emit({view, {member, Node}, Incarnation}, M).

spread([], _Listeners, M) ->
    M;
spread(Changed, Listeners, #membership{fanout = Fanout} = M0) ->
    {Receivers, M} = choose(Fanout, Listeners, M0),
    lists:foldl(fun(Node, Acc) -> send(Node, {delta, Changed}, Acc) end, M, Receivers).

send_digest(#{linked := Linked}, #membership{table = Table} = M0) ->
    {Receivers, M} = choose(1, Linked, M0),
    lists:foldl(fun(Node, Acc) -> send(Node, {digest, weft_member_table:digest(Table)}, Acc) end,
                M, Receivers).

%% Spread over 3/4 to 5/4 of the interval so that nodes do not act in step.
digest_later(#membership{mode = left} = M) ->
    M;
digest_later(#membership{digest_ms = Ms, rand = Rand0} = M) ->
    {Jitter, Rand} = rand:uniform_s(Rand0),
    emit({after_ms, round(Ms * (0.75 + Jitter / 2)), digest}, M#membership{rand = Rand}).

leave(Ref, #{linked := Linked}, NowMs, #membership{self = Self, mode = joined} = M0) ->
    {ok, {Incarnation, _}} = weft_member_table:get(Self, M0#membership.table),
    Gone = {Self, Incarnation, left},
    {_, _, Table} = weft_member_table:merge([Gone], NowMs, M0#membership.table),
    M = lists:foldl(fun(Node, Acc) -> send(Node, {delta, [Gone]}, Acc) end, M0, Linked),
    emit({after_ms, M#membership.linger_ms, left},
         show(Gone, changed(leaving, M#membership{table = Table, mode = {leaving, Ref}})));
leave(Ref, _Neighbours, _NowMs, M) ->
    emit({reply, Ref, ok}, M).

forget(Ref, Self, _Neighbours, _NowMs, #membership{self = Self} = M) ->
    emit({reply, Ref, {error, self}}, M);
forget(Ref, Node, Neighbours, NowMs, #membership{table = Table} = M) ->
    case weft_member_table:get(Node, Table) of
        {ok, {Incarnation, Status}} when Status =/= left ->
            emit({reply, Ref, ok}, learn([{Node, Incarnation, left}], Neighbours, NowMs, M));
        _ ->
            emit({reply, Ref, {error, unknown_member}}, M)
    end.

%% Count random elements of List.
choose(all, List, M) ->
    {List, M};
choose(Count, List, #membership{rand = Rand0} = M) ->
    {Keyed, Rand} = lists:mapfoldl(fun(Element, R0) ->
                                       {Key, R} = rand:uniform_s(R0),
                                       {{Key, Element}, R}
                                   end, Rand0, List),
    {[Element || {_, Element} <- lists:sublist(lists:sort(Keyed), Count)],
     M#membership{rand = Rand}}.

send(Node, Message, #membership{version = Version} = M) ->
    emit({send, Node, {Version, Message}}, M).

changed(Change, #membership{changes = Changes} = M) ->
    M#membership{changes = [Change | Changes]}.

emit(Effect, #membership{out = Out} = M) ->
    M#membership{out = [Effect | Out]}.

finish(#membership{out = Out} = M) ->
    {M#membership{out = []}, lists:reverse(Out)}.

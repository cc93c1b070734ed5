%% SPDX-License-Identifier: Apache-2.0
%% @doc How groups are changed and how the news spreads; the data are in `weft_group_table'. A pure
%% state machine.
%%
%% A change is made in the own table first. Then the nodes that it concerns (the members before and
%% after it) are told and asked to confirm; those without a link are dialled. The caller gets its
%% answer when each of them has confirmed or could not be reached, or when `timeout_ms' have passed.
%% The answer lists the nodes that were not reached. No node waits for another to confirm, so
%% initiators that name each other can not block. An initiator whose change lost against another one
%% learns that from the confirmations.
%%
%% Other nodes get the news by gossip: what is new is passed on to `fanout' neighbours. When a link
%% comes up, and every `sync_ms' with a random neighbour, two nodes compare hashes of their tables
%% and exchange the entries that differ. So a node that was away catches up. A node that knows of no
%% group asks nobody, and is asked by those that do.
%%
%% A group may be created before its initiator has heard that one of that name was deleted. That
%% deletion has the higher version if its counter was higher, and would end the new group. So the
%% initiator creates it again, after the deletion, if that says that it was of another creation.
%%
%% Members of one group are kept connected for ever (`weft_wanted_links'). A former member is not
%% disconnected: processes there may be linked to processes here.
%%
%% Options: `groups' (a map of groups as configured, the same on all nodes), `table' (kept from
%% before a restart), `timeout_ms' (5000), `sync_ms' (10000), `fanout' (5), those of
%% `weft_wanted_links:new/2'.
%% Commands: the changes of `weft_group_operation:change/0' with their answers, `{configure,
%% Groups}', `table', `fellows' (connected members of the own groups). Views: `{group, Name} =>
%% [Node]'. Notices: `{groups, changed}'; `{group, Name, {up | down, Node}}' for the fellow members
%% in groups of this node; `{warning, {lost, Name}}' when a group that this node created, and that
%% existed, was replaced by another of that name; `{warning, {deleted, Name, What}}' when it was
%% deleted by a node that does not say which creation it knew of.
-module(weft_group_gossip_core).
-behaviour(weft_core).

-export([init/2, handle/3, pending/1, table/1]).

-define(OPERATIONS_MAX, 256).
-define(ENTRIES_MAX, 100).

-record(groups, {
    self :: weft_core:node_id(),
    author :: weft_group_table:author(),
    table :: weft_group_table:table(),
    links :: weft_wanted_links:links(),
    %% Own groups: the other members that are connected.
    fellows = #{} :: #{weft_group_table:name() => [weft_core:node_id()]},
    operations = #{} :: #{pos_integer() => weft_group_operation:operation()},
    next_operation = 1 :: pos_integer(),
    rand :: rand:state(),
    timeout_ms :: pos_integer(),
    sync_ms :: pos_integer(),
    fanout :: pos_integer()}).

-opaque state() :: #groups{}.
-export_type([state/0]).

%% @doc See `weft_core'.
-spec init(weft_core:node_id(), weft_core:options()) -> {state(), weft_core:effects()}.
init(Self, Options) ->
    State = #groups{self = Self, author = {Self, maps:get(incarnation, Options, 0)},
                    table = weft_group_table:new(),
                    links = weft_wanted_links:new(Self, Options),
                    rand = weft_core:seed(Self, ?MODULE, Options),
                    timeout_ms = maps:get(timeout_ms, Options, 5000),
                    sync_ms = maps:get(sync_ms, Options, 10000),
                    fanout = maps:get(fanout, Options, 5)},
    Table = weft_group_table:configured(maps:get(groups, Options, #{}),
                                        maps:get(table, Options, weft_group_table:new())),
    {Started, Effects} = adopt(Table, State),
    {Started, Effects ++ [{after_ms, State#groups.sync_ms, sync}]}.

%% @doc How many operations are not answered yet.
-spec pending(state()) -> non_neg_integer().
pending(#groups{operations = Operations}) -> map_size(Operations).

%% @doc What this node knows of groups.
-spec table(state()) -> weft_group_table:table().
table(#groups{table = Table}) -> Table.

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), state()) -> {state(), weft_core:effects()}.
handle({command, Ref, table}, _NowMs, #groups{table = Table} = State) ->
    {State, [{reply, Ref, Table}]};
handle({command, Ref, fellows}, _NowMs, #groups{fellows = Fellows} = State) ->
    {State, [{reply, Ref, Fellows}]};
handle({command, Ref, {configure, Groups}}, _NowMs, #groups{table = Table0} = State0) ->
    Table = weft_group_table:configured(Groups, Table0),
    New = [Name || Name <- maps:keys(Groups), known(Name, Table) =/= known(Name, Table0)],
    {State, Effects} = learn(New, Table, [], State0),
    {State, Effects ++ [{reply, Ref, ok}]};
handle({command, Ref, Change}, _NowMs, State) ->
    start(Ref, Change, State);
handle({message, From, {groups, 1, Msg}}, _NowMs, State) ->
    message(From, Msg, State);
handle({message, _From, _OfAnotherVersion}, _NowMs, State) ->
    {State, []};
handle({neighbour_up, Node}, _NowMs, #groups{links = Links} = State0) ->
    {State, Effects} = refresh(State0#groups{links = weft_wanted_links:up(Node, Links)}),
    {State, Effects ++ [hash(Node, State) | resend(Node, State)]};
handle({neighbour_down, Node, _Reason}, _NowMs, #groups{links = Links0} = State0) ->
    {Links, Dials} = weft_wanted_links:down(Node, Links0),
    {State1, Effects} = parted(weft_wanted_links:is_linked(Node, Links0),
                               State0#groups{links = Links}),
    {State, Answers} = each_operation(
                         fun(_, Op) -> weft_group_operation:unreachable(Node, Op) end, State1),
    {State, Dials ++ Effects ++ Answers};
handle({timer, sync}, _NowMs, #groups{sync_ms = SyncMs, table = Table} = State0) ->
    {Nodes, State} = some(1, linked(State0), State0),
    {State, [hash(Node, State) || map_size(weft_group_table:summary(Table)) > 0, Node <- Nodes]
         ++ [{after_ms, SyncMs, sync}]};
handle({timer, {operation, Id}}, _NowMs, #groups{operations = Operations} = State) ->
    case Operations of
        #{Id := Operation} -> finish(Id, Operation, State);
        #{} -> {State, []}
    end;
handle({timer, LinkTimer}, _NowMs, #groups{links = Links0} = State) ->
    {Links, Effects} = weft_wanted_links:timer(LinkTimer, Links0),
    {State#groups{links = Links}, Effects};
%% Neighbours of the overlay: if there are groups, news has to reach all parts of the cluster, also
%% those that share no member.
handle({notice, {neighbours, Nodes}}, _NowMs, #groups{table = Table} = State) ->
    {State, [{connect, Node} || weft_group_table:names(Table) =/= [],
                                Node <- Nodes -- linked(State)]}.

%% --- changes of this node ---------------------------------------------------------------------

start(Ref, _Change, #groups{operations = Operations} = State)
  when map_size(Operations) >= ?OPERATIONS_MAX ->
    {State, [{reply, Ref, {error, busy}}]};
start(Ref, Change, #groups{author = Author, table = Table0} = State) ->
    case weft_group_operation:make(Change, Author, Table0) of
        {error, Reason} -> {State, [{reply, Ref, {error, Reason}}]};
        {ok, Table, Operation} -> tell(weft_group_operation:from(Ref, Operation), Table, State)
    end.

tell(Operation, Table, #groups{next_operation = Id, operations = Operations} = State0) ->
    Name = weft_group_operation:name(Operation),
    Told = weft_group_operation:waiting(Operation),
    {State1, News} = learn([Name], Table, Told, State0),
    State = State1#groups{next_operation = Id + 1, operations = Operations#{Id => Operation}},
    case Told of
        [] -> after_effects(News, finish(Id, Operation, State));
        _ -> {State, News ++ [tell_one(Node, Id, Name, State) || Node <- Told]
                  ++ [{after_ms, State#groups.timeout_ms, {operation, Id}}]}
    end.

tell_one(Node, Id, Name, #groups{links = Links, table = Table}) ->
    case weft_wanted_links:is_linked(Node, Links) of
        true -> {send, Node, {groups, 1, {change, Id, Name, known(Name, Table)}}};
        false -> {connect, Node}
    end.

%% Sends again what waits for a node that has come.
resend(Node, #groups{operations = Operations} = State) ->
    [tell_one(Node, Id, weft_group_operation:name(Operation), State)
     || {Id, Operation} <- lists:sort(maps:to_list(Operations)),
        lists:member(Node, weft_group_operation:waiting(Operation))].

each_operation(Fun, #groups{operations = Operations} = State) ->
    lists:foldl(fun({Id, Operation}, {State0, Effects}) ->
                    {State1, More} = progress(Id, Fun(Id, Operation), State0),
                    {State1, Effects ++ More}
                end, {State, []}, lists:sort(maps:to_list(Operations))).

progress(Id, Operation, #groups{operations = Operations} = State) ->
    case weft_group_operation:waiting(Operation) of
        [] -> finish(Id, Operation, State);
        _ -> {State#groups{operations = Operations#{Id := Operation}}, []}
    end.

finish(Id, Operation, #groups{operations = Operations, table = Table} = State) ->
    {Ref, Answer} = weft_group_operation:answer(Operation, Table),
    {State#groups{operations = maps:remove(Id, Operations)}, [{reply, Ref, Answer}]}.

%% --- what others say --------------------------------------------------------------------------

message(From, {change, Id, Name, Entry}, State0) ->
    {#groups{table = Table} = State, Effects} = merge([{Name, Entry}], From, State0),
    {State, Effects ++ [{send, From, {groups, 1, {changed, Id, Name, known(Name, Table)}}}]};
message(From, {changed, Id, Name, Entry}, State0) ->
    {#groups{operations = Operations} = State, Effects} = merge([{Name, Entry}], From, State0),
    case Operations of
        #{Id := Operation} ->
            after_effects(Effects, progress(Id, weft_group_operation:confirmed(From, Operation),
                                            State));
        #{} -> {State, Effects}
    end;
message(From, {hash, Hash}, #groups{table = Table} = State) ->
    case weft_group_table:hash(Table) of
        Hash -> {State, []};
        _ -> {State, [{send, From, {groups, 1, {summary, weft_group_table:summary(Table)}}}]}
    end;
message(From, {summary, Theirs}, #groups{table = Table} = State) ->
    Ours = weft_group_table:summary(Table),
    Different = [Name || {Name, Hash} <- maps:to_list(maps:merge(Ours, Theirs)),
                         maps:get(Name, Ours, none) =/= Hash
                             orelse maps:get(Name, Theirs, none) =/= Hash],
    {Give, Ask} = {[Name || Name <- Different, is_map_key(Name, Ours)],
                   [Name || Name <- Different, is_map_key(Name, Theirs)]},
    {State, tell_entries(From, entries(Give, Table), Ask)};
message(From, {entries, Entries, Ask}, State0) ->
    {#groups{table = Table} = State, Effects} = merge(Entries, From, State0),
    {State, Effects ++ case Ask of
                           [] -> [];
                           _ -> tell_entries(From, entries(Ask, Table), [])
                       end}.

%% In messages of a bounded number of entries; the last one also asks for entries.
tell_entries(To, Entries, Ask) when length(Entries) > ?ENTRIES_MAX ->
    {Some, Rest} = lists:split(?ENTRIES_MAX, Entries),
    [{send, To, {groups, 1, {entries, Some, []}}} | tell_entries(To, Rest, Ask)];
tell_entries(To, Entries, Ask) ->
    [{send, To, {groups, 1, {entries, Entries, Ask}}}].

hash(Node, #groups{table = Table}) ->
    {send, Node, {groups, 1, {hash, weft_group_table:hash(Table)}}}.

entries(Names, Table) ->
    [{Name, Entry} || Name <- Names, {ok, Entry} <- [weft_group_table:entry(Name, Table)]].

%% `none' if it was forgotten in between.
known(Name, Table) ->
    case weft_group_table:entry(Name, Table) of
        {ok, Entry} -> Entry;
        error -> none
    end.

merge(Entries, From, #groups{table = Table0} = State0) ->
    {Merged, Changed, Full} =
        lists:foldl(fun merge_one/2, {Table0, [], []}, [E || {_, Known} = E <- Entries,
                                                             Known =/= none]),
    Again = [Name || Name <- Changed, is_taken_for_another(Name, Merged, State0)],
    {Table, State1} = lists:foldl(fun create_again/2, {Merged, State0}, Again),
    Members = lists:append([members(Name, Table) || Name <- Again]),
    Know = lists:usort([From | [Node || Node <- linked(State1), lists:member(Node, Members)]]),
    {State, Effects} = learn(Changed, Table, Know, State1),
    {State, Effects ++ lists:append([tell_entries(Node, entries(Again, Table), [])
                                     || Again =/= [], Node <- Know])
         ++ [{notice, {warning, {too_many_groups, Name}}} || Name <- Full]}.

merge_one({Name, Entry}, {Table0, Changed, Full}) ->
    case weft_group_table:merge(Name, Entry, Table0) of
        {changed, Table} -> {Table, [Name | Changed], Full};
        {same, Table} -> {Table, Changed, Full};
        {full, Table} -> {Table, Changed, [Name | Full]}
    end.

%% Did a deletion end a group of this node that was of another group of that name?
is_taken_for_another(Name, Merged, #groups{author = {Self, Incarnation}, table = Before}) ->
    case {weft_group_table:created(Name, Before), weft_group_table:deleted(Name, Merged)} of
        {{_, Self, Incarnation} = Created, {_By, Ended}}
          when Ended =/= unknown, Ended =/= Created ->
            members(Name, Before) =/= [];
        _ -> false
    end.

%% With the members that it has by now. For changes that wait for an answer it is the same group.
create_again(Name, {Table0, #groups{author = Author, table = Before} = State}) ->
    Table = weft_group_table:create({Name, members(Name, Before)}, Author, Table0),
    [Former, Created] = [weft_group_table:created(Name, T) || T <- [Before, Table]],
    Operations = maps:map(fun(_Id, Operation) ->
                              weft_group_operation:created_again(Former, Created, Operation)
                          end, State#groups.operations),
    {Table, State#groups{operations = Operations}}.

members(Name, Table) ->
    {ok, Members} = weft_group_table:members(Name, Table),
    Members.

%% --- what a new table means for this node -----------------------------------------------------

%% The news goes on to other nodes, except those that Know it already.
learn([], _SameTable, _Know, State) ->
    {State, []};
learn(Names, Table, Know, #groups{fanout = Fanout} = State0) ->
    {State1, Effects} = adopt(Table, State0),
    {Nodes, State} = some(Fanout, linked(State1) -- Know, State1),
    News = entries(Names, Table),
    {State, Effects ++ lists:append([tell_entries(Node, News, []) || Node <- Nodes])}.

adopt(Table, #groups{table = Before} = State0) ->
    {Old, New} = {weft_group_table:groups(Before), weft_group_table:groups(Table)},
    {State, Effects} = refresh(State0#groups{table = Table}),
    Lost = [{notice, {warning, Warning}} || Name <- lists:sort(maps:keys(Old)),
                                            Warning <- lost(Name, Table, State0)],
    {State, views(Old, New) ++ Lost ++ [{notice, {groups, changed}} || Old =/= New] ++ Effects}.

lost(Name, Table, #groups{self = Self, author = {Self, Incarnation}, table = Before}) ->
    case {weft_group_table:created(Name, Before), weft_group_table:created(Name, Table),
          weft_group_table:deleted(Name, Table)} of
        {{_, Self, Incarnation}, {_, Other, _}, none} when Other =/= Self ->
            [{lost, Name}];
        {{_, Self, Incarnation}, none, {By, unknown}} ->
            [{deleted, Name, #{by => By, what => "if another group of that name was deleted there, "
                                                 "before this one was created: create it again"}}];
        _ ->
            []
    end.

views(Old, New) ->
    [{view, {group, Name}, delete} || Name <- lists:sort(maps:keys(Old)), not is_map_key(Name, New)]
        ++ [{view, {group, Name}, Nodes} || {Name, Nodes} <- lists:sort(maps:to_list(New)),
                                            maps:get(Name, Old, none) =/= Nodes].

%% The nodes that this node wants to be connected to, and which of them are.
refresh(#groups{self = Self, table = Table, links = Links0, fellows = Before} = State) ->
    Own = maps:filter(fun(_, Nodes) -> lists:member(Self, Nodes) end,
                      weft_group_table:groups(Table)),
    Wanted = lists:delete(Self, lists:usort(lists:append(maps:values(Own)))),
    {Links1, Dials} = each(fun weft_wanted_links:want/2,
                           Wanted -- weft_wanted_links:wanted(Links0), Links0),
    {Links, _Disconnects} = each(fun weft_wanted_links:unwant/2,
                                 weft_wanted_links:wanted(Links1) -- Wanted, Links1),
    Linked = weft_wanted_links:linked(Links),
    Fellows = maps:map(fun(_, Nodes) -> [N || N <- Nodes, lists:member(N, Linked)] end, Own),
    {State#groups{links = Links, fellows = Fellows}, Dials ++ ups_and_downs(Before, Fellows)}.

%% An attempt that failed parts nobody. While many members are still to come there are many of them.
parted(true, State) -> refresh(State);
parted(false, State) -> {State, []}.

ups_and_downs(Before, Now) ->
    lists:append([comings_and_goings(Name, maps:get(Name, Before, []), maps:get(Name, Now, []))
                  || Name <- lists:sort(maps:keys(maps:merge(Before, Now)))]).

comings_and_goings(Name, Before, Now) ->
    [{notice, {group, Name, {down, Node}}} || Node <- Before -- Now]
        ++ [{notice, {group, Name, {up, Node}}} || Node <- Now -- Before].

each(Fun, Nodes, Links) ->
    lists:foldl(fun(Node, {Links0, Effects}) ->
                    {Links1, More} = Fun(Node, Links0),
                    {Links1, Effects ++ More}
                end, {Links, []}, Nodes).

linked(#groups{links = Links}) ->
    weft_wanted_links:linked(Links).

%% Up to Count of the nodes, at random.
some(Count, Nodes, #groups{rand = Rand0} = State) ->
    {Drawn, Rand} = lists:mapfoldl(fun(Node, R0) ->
                                       {N, R} = rand:uniform_s(R0),
                                       {{N, Node}, R}
                                   end, Rand0, Nodes),
    {[Node || {_, Node} <- lists:sublist(lists:sort(Drawn), Count)], State#groups{rand = Rand}}.

after_effects(Effects, {State, More}) ->
    {State, Effects ++ More}.

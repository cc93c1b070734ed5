%% SPDX-License-Identifier: Apache-2.0
%% @doc What the replicas of one partition of a strong scope agree on: names, their owners, and the
%% members. Pure data; all replicas apply the same operations in the same order.
%%
%% An owner is a node with `{Incarnation, Count}'. The node increments Count when it has given up
%% all that it had in the partition. All that an owner registers depends on a lease, whose number is
%% that of the operation that made it. A request of an earlier incarnation is stale. The first
%% request of a later one removes what the earlier one had. A request that names an unknown lease is
%% stale as well. So after the replicas lost their memory no owner can continue with what it held
%% before.
%%
%% A request whose answer never came may have registered a name without the owner knowing it. If the
%% owner asks for that name again it is told that the name is its own (`yours'), and may register it
%% in place of that token.
%%
%% A token is the number of the operation that registered the name or changed its entry, so for
%% each name tokens only grow, whichever node owns it.
-module(weft_names_strong_table).

-export([new/1, run/3, members/1, is_open/1]).
-export([find/2, owner/2, owners/1, digest/4, count/1, names/1]).
-export_type([table/0, member/0, incarnation/0, op/0, request/0, result/0]).

-record(entry, {pid :: term(),
                meta :: term(),
                token :: pos_integer(),
                node :: node()}).

-record(owner, {incarnation :: incarnation(),
                lease :: pos_integer(),
                oldest = 0 :: integer(),
                %% The same request may come twice: results that the owner may still wait for.
                results = #{} :: #{Id :: integer() => result()},
                sum = 0 :: non_neg_integer(),
                names = #{} :: #{Name :: term() => Token :: pos_integer()}}).

-record(table, {members :: [member()],
                is_open = false :: boolean(),
                names = #{} :: #{Name :: term() => #entry{}},
                owners = #{} :: #{node() => #owner{}}}).

-opaque table() :: #table{}.
-type member() :: {node(), Incarnation :: non_neg_integer()}.
-type incarnation() :: {OfNode :: non_neg_integer(), Count :: non_neg_integer()}.

-type request() ::
    {register, Name :: term(), Pid :: term(), Meta :: term(), Instead :: non_neg_integer()}
  | {update, Name :: term(), Token :: pos_integer(), Pid :: term(), Meta :: term()}
  | {unregister, Name :: term(), Token :: pos_integer()}.
-type result() ::
    {registered, Token :: pos_integer()}
  | {taken | yours, Pid :: term(), Token :: pos_integer()}
  | removed
  | absent.
%% `Instead': a token that the owner knows of by the result `yours', and that may be replaced; or 0.
%% `absent': the owner does not have the name with that token.

-type op() ::
    noop
  | {write, node(), incarnation(), Lease :: non_neg_integer(), Oldest :: integer(),
     [{Id :: integer(), request()}]}
  | {expire, node(), incarnation()}
  | {members, [member()]}
  | open.
%% `Lease' 0: the owner has none yet. `Oldest': it waits for no request with a lower number; a lower
%% one that comes late is not carried out.

%% @doc A table without names. No leader may answer from it until it is opened: owners of names from
%% an earlier founding must lose them first.
-spec new([member()]) -> table().
new(Members) ->
    #table{members = Members}.

%% @doc Applies the operation with the given number. The result is that of a write, else `ok'.
-spec run(op(), No :: pos_integer(), table()) ->
          {ok | stale | {ok, Lease :: pos_integer(), [{Id :: integer(), result()}]}, table()}.
run(noop, _No, Table) ->
    {ok, Table};
run({members, Members}, _No, Table) ->
    {ok, Table#table{members = Members}};
run(open, _No, Table) ->
    {ok, Table#table{is_open = true}};
run({expire, Node, Incarnation}, _No, #table{owners = Owners} = Table) ->
    case Owners of
        #{Node := #owner{incarnation = Incarnation}} -> {ok, forget(Node, Table)};
        #{} -> {ok, Table}
    end;
run({write, Node, Incarnation, Lease, Oldest, Requests}, No, Table0) ->
    case lease(Node, Incarnation, Lease, No, Table0) of
        {ok, Id, Table1} ->
            {From, Table} = forgotten(Oldest, Node, Table1),
            Current = [R || {RequestId, _} = R <- Requests, RequestId >= From],
            {Results, Done} = lists:mapfoldl(fun(Request, T) -> once(Request, Node, No, T) end,
                                             Table, Current),
            {{ok, Id, Results}, Done};
        stale ->
            {stale, Table0}
    end.

%% Messages may overtake each other, so Oldest never gets lower.
forgotten(Told, Node, #table{owners = Owners} = Table) ->
    #{Node := #owner{results = Results, oldest = Known} = Owner} = Owners,
    Oldest = max(Told, Known),
    Kept = maps:filter(fun(Id, _) -> Id >= Oldest end, Results),
    {Oldest, Table#table{owners = Owners#{Node := Owner#owner{results = Kept, oldest = Oldest}}}}.

once({Id, Request}, Node, No, #table{owners = Owners0} = Table0) ->
    case Owners0 of
        #{Node := #owner{results = #{Id := Result}}} ->
            {{Id, Result}, Table0};
        #{} ->
            {Result, #table{owners = Owners} = Table} = request(Request, Node, No, Table0),
            #{Node := #owner{results = Results} = Owner} = Owners,
            Remembered = Owner#owner{results = Results#{Id => Result}},
            {{Id, Result}, Table#table{owners = Owners#{Node := Remembered}}}
    end.

lease(Node, Incarnation, Lease, No, #table{owners = Owners} = Table) ->
    case Owners of
        #{Node := #owner{incarnation = Incarnation, lease = Id}} when Lease =:= Id; Lease =:= 0 ->
            {ok, Id, Table};
        #{Node := #owner{incarnation = Former}} when Former < Incarnation, Lease =:= 0 ->
            leased(Node, Incarnation, No, forget(Node, Table));
        #{Node := _} ->
            stale;
        #{} when Lease =:= 0 ->
            leased(Node, Incarnation, No, Table);
        #{} ->
            stale
    end.

leased(Node, Incarnation, No, #table{owners = Owners} = Table) ->
    {ok, No, Table#table{owners = Owners#{Node => #owner{incarnation = Incarnation, lease = No}}}}.

forget(Node, #table{names = Names, owners = Owners} = Table) ->
    {#owner{names = Gone}, Rest} = maps:take(Node, Owners),
    Table#table{names = maps:without(maps:keys(Gone), Names), owners = Rest}.

request({register, Name, Pid, Meta, Instead}, Node, No, #table{names = Names} = Table) ->
    case Names of
        #{Name := #entry{node = Node, token = Instead}} ->
            request({update, Name, Instead, Pid, Meta}, Node, No, Table);
        #{Name := #entry{node = Node, pid = Holder, token = Token}} ->
            {{yours, Holder, Token}, Table};
        #{Name := #entry{pid = Holder, token = Token}} ->
            {{taken, Holder, Token}, Table};
        #{} ->
            Entry = #entry{pid = Pid, meta = Meta, token = No, node = Node},
            {{registered, No}, held(Name, Entry, Table)}
    end;
request({update, Name, Token, Pid, Meta}, Node, No, #table{names = Names} = Table) ->
    case Names of
        #{Name := #entry{node = Node, token = Token}} ->
            Entry = #entry{pid = Pid, meta = Meta, token = No, node = Node},
            {{registered, No}, held(Name, Entry, released(Name, Node, Table))};
        #{} ->
            {absent, Table}
    end;
request({unregister, Name, Token}, Node, _No, #table{names = Names} = Table) ->
    case Names of
        #{Name := #entry{node = Node, token = Token}} -> {removed, released(Name, Node, Table)};
        #{} -> {absent, Table}
    end.

held(Name, #entry{node = Node, token = Token} = Entry, #table{names = Names} = Table) ->
    #table{owners = #{Node := #owner{sum = Sum, names = Own} = Owner} = Owners} = Table,
    Changed = Owner#owner{sum = Sum + Token, names = Own#{Name => Token}},
    Table#table{names = Names#{Name => Entry}, owners = Owners#{Node := Changed}}.

released(Name, Node, #table{names = Names, owners = Owners} = Table) ->
    #{Node := #owner{sum = Sum, names = Own} = Owner} = Owners,
    {Token, Rest} = maps:take(Name, Own),
    Table#table{names = maps:remove(Name, Names),
                owners = Owners#{Node := Owner#owner{sum = Sum - Token, names = Rest}}}.

%% @doc The members, each with its incarnation.
-spec members(table()) -> [member()].
members(#table{members = Members}) -> Members.

%% @doc Whether the time since the founding was long enough.
-spec is_open(table()) -> boolean().
is_open(#table{is_open = IsOpen}) -> IsOpen.

%% @doc The process that has a name.
-spec find(Name :: term(), table()) ->
          {Pid :: term(), Token :: pos_integer(), Meta :: term()} | undefined.
find(Name, #table{names = Names}) ->
    case Names of
        #{Name := #entry{pid = Pid, token = Token, meta = Meta}} -> {Pid, Token, Meta};
        #{} -> undefined
    end.

%% @doc The owner of a name by this token.
-spec owner({Name :: term(), Token :: pos_integer()}, table()) -> node() | none.
owner({Name, Token}, #table{names = Names}) ->
    case Names of
        #{Name := #entry{token = Token, node = Node}} -> Node;
        #{} -> none
    end.

%% @doc All owners.
-spec owners(table()) -> [{node(), incarnation()}].
owners(#table{owners = Owners}) ->
    [{Node, Incarnation} || {Node, #owner{incarnation = Incarnation}} <- maps:to_list(Owners)].

%% @doc Compares what an owner has here with the sum of the tokens that it believes to have.
-spec digest(node(), {incarnation(), Lease :: pos_integer()}, Sum :: non_neg_integer(), table()) ->
          same | stale | {names, #{Name :: term() => Token :: pos_integer()}}.
digest(Node, {Incarnation, Lease}, Sum, #table{owners = Owners}) ->
    case Owners of
        #{Node := #owner{incarnation = Incarnation, lease = Lease, sum = Sum}} -> same;
        #{Node := #owner{incarnation = Incarnation, lease = Lease, names = Names}} ->
            {names, Names};
        #{} -> stale
    end.

%% @doc How many names there are.
-spec count(table()) -> non_neg_integer().
count(#table{names = Names}) -> map_size(Names).

%% @doc All names with their tokens.
-spec names(table()) -> [{Name :: term(), Token :: pos_integer()}].
names(#table{names = Names}) ->
    [{Name, Token} || {Name, #entry{token = Token}} <- maps:to_list(Names)].

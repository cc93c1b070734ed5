%% SPDX-License-Identifier: Apache-2.0
%% @doc Names that a node takes away from others: it has them read, has their owners told to give
%% them up, and answers who asked for it.
%%
%% `weft_names_strong_removal' decides which step comes next. This module carries the steps out on
%% the state of `weft_names_strong_owner', by whose requests the names are read. The request to read
%% a name for this comes from `{removal, Ref}'.
%%
%% Not here: what a node does that is told to give up a name of its own (`weft_names_strong_owner').
-module(weft_names_strong_taking).

-export([wanted/5, read/5, failed/3, given_back/4, tick/2]).

-import(weft_names_strong_leases, [effect/2]).
-import(weft_names_strong_asks, [request/6, started/3, leader/3]).

-include("weft_names_strong_owner.hrl").

%% @doc A process of this node wants a name to be free, whichever node owns it, and is answered by
%% then.
-spec wanted(Name :: term(), From :: term(), DeadlineMs :: integer(), #owner{}, env()) -> #owner{}.
wanted(Name, From, DeadlineMs, #owner{requests = Requests0, removals = Removals0} = Owner, Env) ->
    {Ref, Requests} = ?REQUESTS:number(Requests0),
    Removals = ?REMOVAL:add(Ref, {Name, From, DeadlineMs}, Removals0),
    asked({Ref, Name, DeadlineMs}, Owner#owner{requests = Requests, removals = Removals}, Env).

asked({Ref, Name, DeadlineMs}, Owner, Env) ->
    started(request(Name, {read, {name, Name}}, {removal, Ref}, none, DeadlineMs, Env), Owner, Env).

%% @doc The name was read: the answer, or the owner is told to give it up.
-spec read(Ref :: pos_integer(),
           {Pid :: term(), Token :: pos_integer(), Meta :: term()} | undefined, Name :: term(),
           #owner{}, env()) -> #owner{}.
read(Ref, Value, Name, #owner{removals = Removals0} = Owner0, Env) ->
    #{now_ms := NowMs, incarnation := Incarnation, self := Self, options := Options} = Env,
    #{partitions := Partitions, retry_ms := RetryMs} = Options,
    {Step, Removals} = ?REMOVAL:read(Ref, Value, NowMs + RetryMs, Removals0),
    Owner1 = Owner0#owner{removals = Removals},
    case Step of
        {done, From, Reply} -> effect({reply, From, Reply}, Owner1);
        {give_back, Name, Token} ->
            P = weft_names_strong_placement:partition(Name, Partitions),
            {Leader, Owner} = leader(P, Owner1, Env),
            Asker = {Self, Incarnation, Ref},
            effect({send, Leader, {removal, {remove, P, Asker, Name, Token}}}, Owner);
        wait -> Owner1
    end.

%% @doc The name could not be read.
-spec failed(Ref :: pos_integer(), Reason :: term(), #owner{}) -> #owner{}.
failed(Ref, Reason, #owner{removals = Removals0} = Owner) ->
    {Askers, Removals} = ?REMOVAL:failed(Ref, Removals0),
    replies({error, Reason}, Askers, Owner#owner{removals = Removals}).

%% @doc An owner has given up a name for this node. What an earlier incarnation of it asked for
%% means nothing.
-spec given_back(weft_names_strong_owner:asker(), Token :: pos_integer(), #owner{}, env()) ->
          #owner{}.
given_back({Self, Incarnation, Ref}, Token, #owner{removals = Removals0} = Owner,
           #{self := Self, incarnation := Incarnation}) ->
    case ?REMOVAL:given_back(Ref, Token, Removals0) of
        {{done, From, Reply}, Removals} ->
            effect({reply, From, Reply}, Owner#owner{removals = Removals});
        {wait, _} -> Owner
    end;
given_back(_OfAnEarlierIncarnation, _Token, Owner, _Env) ->
    Owner.

%% @doc Time passed: names are read again, or who asked is told that it took too long.
-spec tick(#owner{}, env()) -> #owner{}.
tick(#owner{removals = Removals0} = Owner0, #{now_ms := NowMs} = Env) ->
    {Read, Over, Removals} = ?REMOVAL:due(NowMs, Removals0),
    Owner = replies({error, timeout}, Over, Owner0#owner{removals = Removals}),
    lists:foldl(fun(Removal, C) -> asked(Removal, C, Env) end, Owner, Read).

replies(Reply, Askers, Owner) ->
    lists:foldl(fun(From, C) -> effect({reply, From, Reply}, C) end, Owner, Askers).

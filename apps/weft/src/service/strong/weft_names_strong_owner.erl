%% SPDX-License-Identifier: Apache-2.0
%% @doc The owner's part of a strong scope: what this node registered, under which leases, and what
%% it asks the leaders of the partitions.
%%
%% All names of this node in one partition depend on one <em>lease</em>. It lasts `lease_ms' from
%% the moment when the last request was sent that a leader confirmed; so it ends here before the
%% replicas let another node have a name. When it ends the names are lost: their rows are removed,
%% and their processes are told in the way that they chose (`on_lost'). Requests for one name are
%% made one after the other.
%%
%% If no answer comes a request is sent again, to another replica; after its time it is answered
%% with `no_quorum', and may be carried out all the same. Renewals carry the sum of all tokens, so
%% that both sides notice a name that one of them has and the other does not know; then it is
%% removed. If an answer was lost, the replicas may have a name for this node that it does not know
%% of. Such a name is replaced by the next registration of this node, or removed after a renewal. A
%% request that extends the lease at the replicas is always followed by a renewal, also if this node
%% owns nothing.
%%
%% What other nodes have registered is read from the leader, and kept in a row for `cache_ms'
%% (`weft_names_strong_cache').
%%
%% This module handles commands, answers and timers. It works on leases with the names that depend
%% on them (`weft_names_strong_leases', `weft_names_strong_holdings'), on requests
%% (`weft_names_strong_asks', `weft_names_strong_requests', `weft_names_strong_route'). Names that
%% other nodes are to give up are with `weft_names_strong_taking'.
-module(weft_names_strong_owner).

-export([new/0, command/4, answer/5, gone/3, lose_all/2, up/3, down/3, tick/2, info/1]).
-export([give_back/5, given_back/4]).
-export_type([owner/0, env/0, asker/0]).

-import(weft_names_strong_leases, [held/3, effect/2, part/2, put_part/3, incarnation/2, cached/4,
                                   uncached/2, cache/2, owned/5, released/2, lost/3, sum/2,
                                   extended/4]).
-import(weft_names_strong_asks, [request/6, started/3, led_by/3, request/2, removed/2,
                                 untouched/2, resent/3, ids/2, renew/3, elsewhere/3, again/3]).

-include("weft_names_strong_owner.hrl").

%% Requests in progress or waiting.
-define(REQUESTS_MAX, 100000).

-opaque owner() :: #owner{}.
%% The node that wants a name to be given up.
-type asker() :: {node(), Incarnation :: non_neg_integer(), Ref :: pos_integer()}.
-type changed() :: {owner(), weft_core:effects()}.

%% @doc Nothing owned.
-spec new() -> owner().
new() -> #owner{}.

%% @doc For people: how many names, requests and leases.
-spec info(owner()) -> #{atom() => non_neg_integer()}.
info(#owner{holdings = Holdings, requests = Requests, parts = Parts, cache = Cache}) ->
    #{owned => ?HOLDINGS:count(Holdings),
      requests => ?REQUESTS:count(Requests),
      cached => weft_names_strong_cache:count(Cache),
      leases => length([1 || #part{lease = Lease} <- maps:values(Parts), Lease > 0])}.

%% @doc A command of this node. Answers: `{register, Name, Pid, Meta, OnLost, TimeoutMs}': `{ok,
%% Token}', `{error, {taken, Pid}}'; `{update, Name, Token, Pid, Meta, OnLost | same, TimeoutMs}':
%% `{ok, Token}', `{error, not_owner}'; `{unregister, Name, Token | any, TimeoutMs}': `ok';
%% `{remove, Name, TimeoutMs}', whichever process has it: `ok', `{error, timeout}', `{error, {taken,
%% Pid}}', see `weft_names_strong_removal'; `{whereis, Name, TimeoutMs}': `{ok, Pid, Token, Meta}',
%% `undefined'; `{names, P, TimeoutMs}', all of a partition: `{ok, [Name]}'; all: `{error, no_quorum
%% | busy | full}'.
-spec command(Command :: tuple(), From :: term(), owner(), env()) -> changed().
command(Command, From, Owner, #{now_ms := NowMs} = Env) ->
    case has_room(Owner) of
        true ->
            DeadlineMs = NowMs + element(tuple_size(Command), Command),
            done(asked(Command, From, DeadlineMs, Owner, Env));
        false ->
            {Owner, [{reply, From, {error, busy}}]}
    end.

has_room(#owner{requests = Requests, removals = Removals}) ->
    ?REQUESTS:count(Requests) + ?REMOVAL:count(Removals) < ?REQUESTS_MAX.

done(#owner{out = Out} = Owner) ->
    {Owner#owner{out = []}, lists:reverse(Out)}.

asked({whereis, Name, _}, From, DeadlineMs, Owner, Env) ->
    started(request(Name, {read, {name, Name}}, From, none, DeadlineMs, Env), Owner, Env);
asked({remove, Name, _}, From, DeadlineMs, Owner, Env) ->
    weft_names_strong_taking:wanted(Name, From, DeadlineMs, Owner, Env);
asked({names, P, _}, From, DeadlineMs, Owner, Env) ->
    Times = {map_get(now_ms, Env), DeadlineMs},
    started(?REQUESTS:request({none, P}, {read, names}, From, none, Times), Owner, Env);
asked(Command, From, DeadlineMs, #owner{requests = Requests} = Owner, Env) ->
    Name = element(2, Command),
    Waiting = {Command, From, DeadlineMs},
    case ?REQUESTS:is_busy(Name, Requests) of
        true -> Owner#owner{requests = ?REQUESTS:wait(Waiting, Name, Requests)};
        false -> turn(Waiting, Owner, Env)
    end.

turn({_Command, From, DeadlineMs}, Owner, #{now_ms := NowMs}) when DeadlineMs =< NowMs ->
    answer_to(From, {error, no_quorum}, Owner);
turn({Command, From, DeadlineMs}, Owner, Env) ->
    Own = held(element(2, Command), Owner, Env),
    wanted(Command, Own, {From, DeadlineMs}, Owner, Env).

wanted({register, Name, Pid, Meta, OnLost, _}, _Own, {From, DeadlineMs}, Owner, Env) ->
    Wire = {register, Name, Pid, Meta, 0},
    started(request(Name, Wire, From, OnLost, DeadlineMs, Env), Owner, Env);
wanted({update, Name, Token, Pid, Meta, New, _}, #{token := Token, on_lost := Former},
       {From, DeadlineMs}, Owner, Env) ->
    OnLost = case New of same -> Former; _ -> New end,
    Wire = {update, Name, Token, Pid, Meta},
    started(request(Name, Wire, From, OnLost, DeadlineMs, Env), Owner, Env);
wanted({unregister, Name, Which, _}, #{token := Token}, {From, DeadlineMs}, Owner, Env)
  when Which =:= Token; Which =:= any ->
    Request = request(Name, {unregister, Name, Token}, From, none, DeadlineMs, Env),
    started(Request, released(Name, Owner), Env);
%% The replicas may have the name all the same, and only they know. From now on this node does not
%% believe in it, whatever the answer to a renewal in progress is.
wanted({unregister, Name, Token, _}, _Own, {From, DeadlineMs}, Owner, Env) when Token =/= any ->
    Disowned = case ?HOLDINGS:is_known({Name, Token}, Owner#owner.holdings) of
                   true -> released(Name, Owner);
                   false -> Owner
               end,
    started(request(Name, {unregister, Name, Token}, From, none, DeadlineMs, Env), Disowned, Env);
wanted(_Command, _Own, {From, _}, Owner, _Env) ->
    answer_to(From, {error, not_owner}, Owner).

%% --- requests in progress ---------------------------------------------------------------------

%% The request is over: the next command for its name may be handled.
ended(Id, Owner0, Env) ->
    #{name := Name, wire := Wire} = request(Id, Owner0),
    #owner{requests = Requests0} = Owner = removed(Id, Owner0),
    case Wire of
        {read, _} ->
            Owner;
        _ ->
            {Waiting, Requests} = ?REQUESTS:free(Name, Requests0),
            turns(queue:out(Waiting), Name, Owner#owner{requests = Requests}, Env)
    end.

turns({empty, _}, _Name, Owner, _Env) ->
    Owner;
turns({{value, Waiting}, Others}, Name, Owner0, Env) ->
    #owner{requests = Requests} = Owner = turn(Waiting, Owner0, Env),
    case ?REQUESTS:is_busy(Name, Requests) of
        true -> Owner#owner{requests = ?REQUESTS:wait_all(Others, Name, Requests)};
        false -> turns(queue:out(Others), Name, Owner, Env)
    end.

%% Commands of this module itself have no caller to answer. A node that asked for a name to be given
%% up is told by the replica that it asked.
answer_to(none, _Reply, Owner) -> Owner;
answer_to({give_back, Replica, Asker, Token}, ok, Owner) ->
    effect({send, Replica, {removal, {given_back, Asker, Token}}}, Owner);
answer_to({give_back, _Replica, _Asker, _Token}, _NotRemoved, Owner) -> Owner;
answer_to(From, Reply, Owner) -> effect({reply, From, Reply}, Owner).

reply(#{from := From}, Reply, Owner) -> answer_to(From, Reply, Owner).

%% --- answers ----------------------------------------------------------------------------------

%% @doc An answer of a replica about partition P.
-spec answer(node(), P :: non_neg_integer(), term(), owner(), env()) -> changed().
answer(From, P, Answer, Owner, Env) ->
    done(answered(Answer, From, P, Owner, Env)).

answered({wrote, Incarnation, Lease, Results}, From, P, Owner0, Env) ->
    #part{lease = Known} = Part = part(P, Owner0),
    case incarnation(Part, Env) of
        Incarnation when Known =:= 0; Known =:= Lease ->
            Owner = led_by(From, P, put_part(P, Part#part{lease = Lease}, Owner0)),
            lists:foldl(fun({Id, Result}, C) -> result(Id, Result, P, C, Env) end, Owner, Results);
        _ -> Owner0
    end;
%% Answers to an earlier incarnation may still come: its numbers meant other requests.
answered({values, Incarnation, Values}, From, P, Owner0, #{incarnation := Incarnation} = Env) ->
    Owner = led_by(From, P, Owner0),
    lists:foldl(fun({Id, Value}, C) -> read(Id, Value, C, Env) end, Owner, Values);
answered({values, _, _}, _From, _P, Owner, _Env) ->
    Owner;
answered({renewed, Incarnation, Id, No, Digest}, From, P, Owner0, Env) ->
    #part{renewal = Renewal} = Part = part(P, Owner0),
    case {incarnation(Part, Env), Renewal} of
        {Incarnation, {Id, SentMs}} ->
            Owner = led_by(From, P, put_part(P, Part#part{renewal = none}, Owner0)),
            compared(Digest, No, P, extended(SentMs, P, Owner, Env), Env);
        _ -> Owner0
    end;
answered({stale, Incarnation, Ids}, _From, P, Owner, Env) ->
    #part{lease = Known} = Part = part(P, Owner),
    case incarnation(Part, Env) of
        Incarnation when Known =:= 0 -> lose(P, untouched(Ids, Owner), Env);
        Incarnation -> resent(P, lose(P, untouched(Ids, Owner), Env), Env);
        _ -> Owner
    end;
answered({full, Incarnation, Ids}, _From, P, Owner, Env) ->
    case incarnation(part(P, Owner), Env) of
        Incarnation -> lists:foldl(fun(Id, C) -> failed(Id, full, C, Env) end, Owner, Ids);
        _ -> Owner
    end;
answered({not_leader, Hint}, From, P, #owner{routes = Routes0} = Owner0, Env) ->
    Replicas = map_get(P, map_get(places, Env)),
    {When, Routes} = weft_names_strong_route:sent_on(P, From, Hint, Replicas, Routes0),
    Owner = Owner0#owner{routes = Routes},
    case When of
        again -> resent(P, Owner, Env);
        _ -> Owner
    end.

result(Id, Result, P, Owner, Env) ->
    case {request(Id, Owner), Result} of
        %% The request was given up: the name that it registered belongs to no process. The next
        %% renewal will show that.
        {none, {registered, _Token}} ->
            put_part(P, (part(P, Owner))#part{renewed_ms = ?LONG_AGO_MS}, Owner);
        {none, _} -> Owner;
        {Request, _} -> result_for(Request, Id, Result, P, Owner, Env)
    end.

result_for(#{first_ms := FirstMs} = Request, Id, Result, P, Owner0, #{now_ms := NowMs} = Env) ->
    Owner = extended(FirstMs, P, Owner0, Env),
    case part(P, Owner) of
        %% It took longer than a lease.
        #part{until_ms = UntilMs} when UntilMs =< NowMs ->
            failed(Id, no_quorum, lose(P, Owner, Env), Env);
        #part{} -> carried_out(Request, Id, Result, Owner, Env)
    end.

carried_out(#{name := Name} = Request, Id, {yours, Holder, Token}, Owner, Env) ->
    case ?HOLDINGS:is_known({Name, Token}, Owner#owner.holdings) of
        true -> failed(Id, {taken, Holder}, Owner, Env);
        false -> instead(Token, Id, Request, Owner, Env)
    end;
carried_out(#{name := Name, wire := Wire} = Request, Id, Result, Owner0, Env) ->
    Owner = case {Result, Wire} of
                 {{registered, Token}, {register, _, Pid, Meta, _}} ->
                     Free = lost(Name, Owner0, Env),
                     reply(Request, {ok, Token}, owned(Request, Token, Pid, Meta, Free));
                 {{registered, Token}, {update, _, _, Pid, Meta}} ->
                     Former = released(Name, Owner0),
                     reply(Request, {ok, Token}, owned(Request, Token, Pid, Meta, Former));
                 {{taken, Holder, _}, _} -> reply(Request, {error, {taken, Holder}}, Owner0);
                 {removed, _} -> reply(Request, ok, Owner0);
                 {absent, {unregister, _, _}} -> reply(Request, absent(Request), Owner0);
                 {absent, _} -> reply(Request, {error, not_owner}, Owner0)
             end,
    ended(Id, Owner, Env).

%% For its owner that is as good as removed. Another node must know whether it was free at once.
absent(#{from := {give_back, _, _, _}}) -> absent;
absent(_Request) -> ok.

%% An earlier request for the name was carried out, and this node never knew. The new one replaces
%% it, and the name stays busy.
instead(Token, Id, #{wire := {register, Name, Pid, Meta, _}} = Request, Owner, Env) ->
    Again = Request#{wire := {register, Name, Pid, Meta, Token}, sends := 0},
    started(Again, removed(Id, Owner), Env).

failed(Id, Reason, Owner, Env) ->
    case request(Id, Owner) of
        none -> Owner;
        #{from := {removal, Ref}} ->
            weft_names_strong_taking:failed(Ref, Reason, ended(Id, Owner, Env));
        Request -> ended(Id, reply(Request, {error, Reason}, Owner), Env)
    end.

read(Id, Value, Owner, Env) ->
    case request(Id, Owner) of
        none -> Owner;
        Request -> value(Value, Request, ended(Id, Owner, Env), Env)
    end.

value(Value, #{from := {removal, Ref}, name := Name}, Owner, Env) ->
    weft_names_strong_taking:read(Ref, Value, Name, uncached(Name, Owner), Env);
value({Pid, Token, Meta} = Value, Request, Owner, Env) ->
    reply(Request, {ok, Pid, Token, Meta}, cached(Request, Value, Owner, Env));
value({names, Names}, Request, Owner, _Env) ->
    reply(Request, {ok, Names}, Owner);
value(undefined, #{name := Name} = Request, Owner, _Env) ->
    reply(Request, undefined, uncached(Name, Owner)).

%% --- names that are to be given up ------------------------------------------------------------

%% @doc A replica asks this node to give up a name, for a node that wants it.
-spec give_back(Replica :: node(), asker(), {Name :: term(), Token :: pos_integer()}, owner(),
                env()) -> changed().
give_back(Replica, Asker, {Name, Token}, Owner, Env) ->
    case has_room(Owner) of
        true -> done(asked({unregister, Name, Token, 0}, {give_back, Replica, Asker, Token},
                           own_deadline(Env), Owner, Env));
        false -> {Owner, []}
    end.

%% @doc What this node asked for was done.
-spec given_back(asker(), Token :: pos_integer(), owner(), env()) -> changed().
given_back(Asker, Token, Owner, Env) ->
    done(weft_names_strong_taking:given_back(Asker, Token, Owner, Env)).

%% --- what this node owns ----------------------------------------------------------------------

%% @doc A process has ended: its names are given up.
-spec gone(Pid :: term(), owner(), env()) -> changed().
gone(Pid, #owner{holdings = Holdings0} = Owner0, Env) ->
    {Requests, Names, Holdings} = ?HOLDINGS:gone(Pid, Holdings0),
    Owner = lists:foldl(fun(Id, C) -> failed(Id, noproc, C, Env) end,
                         Owner0#owner{holdings = Holdings}, Requests),
    done(lists:foldl(fun(Name, C) -> given_back(Name, C, Env) end, Owner, Names)).

%% While another request for the name is in progress, that request or a renewal removes the name at
%% the replicas.
given_back(Name, #owner{requests = Requests} = Owner, Env) ->
    case ?REQUESTS:is_busy(Name, Requests) of
        true -> released(Name, Owner);
        false -> asked({unregister, Name, any, 0}, none, own_deadline(Env), Owner, Env)
    end.

%% Requests of this module itself are tried for a while; a later renewal shows if that was not
%% enough.
own_deadline(#{now_ms := NowMs, options := #{renew_ms := RenewMs}}) -> NowMs + RenewMs.

%% @doc All names are lost at once, and no registration in progress is carried out any more.
-spec lose_all(owner(), env()) -> changed().
lose_all(Owner, #{places := Places} = Env) ->
    done(lists:foldl(fun(P, C) -> lose(P, C, Env) end, Owner, lists:sort(maps:keys(Places)))).

%% The next request has a new Count in this partition. A registration that may have been carried out
%% with the old one must not be carried out again with the new one, nor be reported as not carried
%% out: the answer is `no_quorum'.
lose(P, Owner0, Env) ->
    Owner1 = lists:foldl(fun(Name, C) -> lost(Name, C, Env) end, Owner0,
                          ?HOLDINGS:names(P, Owner0#owner.holdings)),
    #part{count = Count} = part(P, Owner1),
    Owner2 = effect({view, {lease, P}, delete}, put_part(P, #part{count = Count + 1}, Owner1)),
    lists:foldl(fun(Id, C) -> failed(Id, no_quorum, C, Env) end, Owner2,
                ?REQUESTS:registers(P, Owner2#owner.requests)).

compared(same, _No, _P, Owner, _Env) ->
    Owner;
compared({names, Theirs}, No, P, #owner{holdings = Holdings, requests = R} = Owner0, Env) ->
    Busy = ?REQUESTS:busy(R),
    {OnlyHere, OnlyThere} = ?HOLDINGS:compare({P, No, Busy}, Theirs, Holdings),
    Owner = lists:foldl(fun(Name, C) -> lost(Name, C, Env) end, Owner0, OnlyHere),
    lists:foldl(fun({Name, Token}, C) -> remove(Name, Token, C, Env) end, Owner, OnlyThere).

remove(Name, Token, Owner, Env) ->
    started(request(Name, {unregister, Name, Token}, none, none, own_deadline(Env), Env), Owner,
            Env).

%% --- links and time ---------------------------------------------------------------------------

%% @doc A node can be reached (again).
-spec up(node(), owner(), env()) -> changed().
up(Node, #owner{routes = Routes} = Owner, Env) ->
    done(lists:foldl(fun(P, C) ->
                         case ids(P, C) =/= [] orelse (part(P, C))#part.renewal =/= none of
                             true -> resent(P, C, Env);
                             false -> C
                         end
                     end, Owner, weft_names_strong_route:to(Node, Routes))).

%% @doc A node can not be reached any more: its requests go to another replica.
-spec down(node(), owner(), env()) -> changed().
down(Node, #owner{routes = Routes} = Owner, Env) ->
    done(lists:foldl(fun(P, C) -> elsewhere(P, C, Env) end, Owner,
                     weft_names_strong_route:to(Node, Routes))).

%% @doc Time passed: leases end or are renewed, requests are given up or sent again.
-spec tick(owner(), env()) -> changed().
tick(#owner{parts = Parts, cache = Cache} = Owner,
     #{now_ms := NowMs, options := #{cache_ms := CacheMs}} = Env) ->
    Swept = cache(weft_names_strong_cache:sweep(NowMs, CacheMs, Cache), Owner),
    Ticked = lists:foldl(fun(P, C) -> part_tick(P, C, Env) end, Swept,
                         lists:sort(maps:keys(Parts))),
    done(weft_names_strong_taking:tick(Ticked, Env)).

part_tick(P, Owner0, #{now_ms := NowMs, options := Options} = Env) ->
    #{renew_ms := RenewMs, lease_ms := LeaseMs} = Options,
    Owner1 = given_up(P, leases(P, Owner0, Env), Env),
    Owner2 = again(P, Owner1, Env),
    case part(P, Owner2) of
        #part{lease = Lease, renewed_ms = RenewedMs, renewal = none, until_ms = UntilMs}
          when Lease > 0, NowMs - RenewedMs >= RenewMs ->
            case UntilMs - LeaseMs > RenewedMs orelse sum(P, Owner2) > 0 of
                true -> renew(P, Owner2, Env);
                false -> Owner2
            end;
        #part{} -> Owner2
    end.

%% Without names there is nothing to lose, and an answer on its way may extend the lease.
leases(P, Owner, #{now_ms := NowMs} = Env) ->
    case part(P, Owner) of
        #part{lease = Lease, until_ms = UntilMs} when Lease > 0, UntilMs =< NowMs ->
            case sum(P, Owner) > 0 orelse ids(P, Owner) =:= [] of
                true -> lose(P, Owner, Env);
                false -> Owner
            end;
        #part{} -> Owner
    end.

given_up(P, #owner{requests = Requests} = Owner, #{now_ms := NowMs} = Env) ->
    lists:foldl(fun(Id, C) -> failed(Id, no_quorum, C, Env) end, Owner,
                ?REQUESTS:over(P, NowMs, Requests)).

%% SPDX-License-Identifier: Apache-2.0
%% @doc The owner's half of a strong scope: what this node registered, under which leases, and what
%% it asks the leaders of the partitions.
%%
%% All names of this node in one partition hang on one <em>lease</em>. It lasts `lease_ms' from the
%% moment when the last request was sent that a leader confirmed; so it ends here before the homes
%% let anybody else have a name. When it ends the names are lost: their rows go, and their processes
%% are told as they wished (`on_lost'). Requests for one name go one after the other.
%%
%% A request is sent again, to another home, when no answer comes; after its time it is answered
%% with `no_quorum', and may be carried out all the same. Renewals tell the sum of all tokens, so
%% that both sides notice what one believes and the other does not know; then it is removed. A name
%% that the homes have for this node without its knowing, because an answer was lost, is replaced by
%% the next registration of this node, or removed after a renewal; and any request that extends the
%% lease at the homes is followed by a renewal, also if nothing is owned here.
%%
%% What others have registered is read from the leader, and kept in a row for `cache_ms'.
-module(weft_names_strong_client).

-export([new/1, command/4, answer/5, gone/3, up/3, down/3, tick/2, info/1]).
-export_type([client/0, env/0, on_lost/0]).

%% Requests under way, requests of one message, redirections without pause.
-define(REQUESTS_MAX, 100000).
-define(MESSAGE_MAX, 200).
-define(REDIRECTIONS_MAX, 3).
%% Clocks may begin far below 0.
-define(LONG_AGO_MS, -(1 bsl 58)).

-type on_lost() :: exit | kill | tell.
-type env() :: #{now_ms := integer(), scope := term(), incarnation := non_neg_integer(),
                 up := #{node() => term()}, places := #{non_neg_integer() => [node()]},
                 options := weft_names_strong_options:options()}.
%% `places': the homes of each partition.

-record(request, {name :: term(),
                  wire :: weft_names_strong_table:request() | {read, {name, term()} | names},
                  part :: non_neg_integer(),
                  from :: term(),
                  on_lost :: on_lost() | none,
                  first_ms :: integer(),
                  sent_ms = never :: integer() | never,
                  %% How often it was sent and may have been carried out.
                  sends = 0 :: non_neg_integer(),
                  deadline_ms :: integer()}).

-record(part, {count = 0 :: non_neg_integer(),
               lease = 0 :: non_neg_integer(),
               until_ms = ?LONG_AGO_MS :: integer(),
               leader = none :: node() | none,
               redirections = 0 :: non_neg_integer(),
               renewed_ms = ?LONG_AGO_MS :: integer(),
               %% The renewal under way: its number and when it was sent.
               renewal = none :: none | {integer(), Ms :: integer()},
               sum = 0 :: non_neg_integer(),
               names = #{} :: #{Name :: term() => []},
               requests = #{} :: #{integer() => []}}).

-record(own, {pid :: term(), token :: pos_integer(), meta :: term(), on_lost :: on_lost(),
              part :: non_neg_integer()}).

-record(client, {next = 1 :: pos_integer(),
                 parts = #{} :: #{non_neg_integer() => #part{}},
                 requests = #{} :: #{integer() => #request{}},
                 %% Names with a request under way, and the commands that wait for its end.
                 busy = #{} :: #{Name :: term() => [{Command :: term(), From :: term(),
                                                     DeadlineMs :: integer()}]},
                 owned = #{} :: #{Name :: term() => #own{}},
                 %% Watched processes with the names and requests that are theirs.
                 pids = #{} :: #{Pid :: term() => #{{name | request, term()} => []}},
                 cache = weft_names_strong_cache:new() :: weft_names_strong_cache:cache(),
                 %% Effects, newest first.
                 out = [] :: [term()]}).

-opaque client() :: #client{}.

%% @doc Nothing owned.
-spec new(map()) -> client().
new(_Options) ->
    #client{}.

%% @doc For people: how many names, requests and leases.
-spec info(client()) -> #{atom() => non_neg_integer()}.
info(#client{owned = Owned, requests = Requests, parts = Parts, cache = Cache}) ->
    #{owned => map_size(Owned), requests => map_size(Requests),
      cached => weft_names_strong_cache:count(Cache),
      leases => length([1 || #part{lease = Lease} <- maps:values(Parts), Lease > 0])}.

%% @doc A command of this node. Answers: `{register, Name, Pid, Meta, OnLost, TimeoutMs}': `{ok,
%% Token}', `{error, {taken, Pid}}'; `{update, Name, Token, Pid, Meta, OnLost | same, TimeoutMs}':
%% `{ok, Token}', `{error, not_owner}'; `{unregister, Name, Token | any, TimeoutMs}': `ok', `{error,
%% not_owner}'; `{whereis, Name, TimeoutMs}': `{ok, Pid, Token, Meta}', `undefined'; `{names, P,
%% TimeoutMs}', all of a partition: `{ok, [Name]}'; all: `{error, no_quorum | busy | full}'.
-spec command(Command :: tuple(), From :: term(), client(), env()) ->
          {client(), weft_core:effects()}.
command(_Command, From, #client{requests = Requests} = Client, _Env)
  when map_size(Requests) >= ?REQUESTS_MAX ->
    {Client, [{reply, From, {error, busy}}]};
command(Command, From, Client, #{now_ms := NowMs} = Env) ->
    DeadlineMs = NowMs + element(tuple_size(Command), Command),
    done(asked(Command, From, DeadlineMs, Client, Env)).

done(#client{out = Out} = Client) ->
    {Client#client{out = []}, lists:reverse(Out)}.

asked({whereis, Name, _}, From, DeadlineMs, Client, Env) ->
    started(request(Name, {read, {name, Name}}, From, none, DeadlineMs, Env), Client, Env);
asked({names, P, _}, From, DeadlineMs, Client, Env) ->
    Request = request(none, {read, names}, From, none, DeadlineMs, Env),
    started(Request#request{part = P}, Client, Env);
asked(Command, From, DeadlineMs, #client{busy = Busy} = Client, #{now_ms := NowMs} = Env) ->
    Name = element(2, Command),
    case Busy of
        #{Name := Waiting} ->
            Client#client{busy = Busy#{Name := [{Command, From, DeadlineMs} | Waiting]}};
        #{} when DeadlineMs =< NowMs ->
            answer_to(From, {error, no_quorum}, Client);
        #{} ->
            Own = held(Name, Client, Env),
            wanted(Command, Own, {From, DeadlineMs}, Client, Env)
    end.

wanted({register, Name, Pid, Meta, OnLost, _}, _Own, {From, DeadlineMs}, Client, Env) ->
    started(request(Name, {register, Name, Pid, Meta, 0}, From, OnLost, DeadlineMs, Env), Client,
            Env);
wanted({update, Name, Token, Pid, Meta, New, _}, #own{token = Token, on_lost = Former},
       {From, DeadlineMs}, Client, Env) ->
    OnLost = case New of same -> Former; _ -> New end,
    started(request(Name, {update, Name, Token, Pid, Meta}, From, OnLost, DeadlineMs, Env), Client,
            Env);
wanted({unregister, Name, Which, _}, #own{token = Token}, {From, DeadlineMs}, Client, Env)
  when Which =:= Token; Which =:= any ->
    Request = request(Name, {unregister, Name, Token}, From, none, DeadlineMs, Env),
    started(Request, released(Name, Client), Env);
wanted(_Command, _Own, {From, _}, Client, _Env) ->
    answer_to(From, {error, not_owner}, Client).

request(Name, Wire, From, OnLost, DeadlineMs, #{now_ms := NowMs, options := Options}) ->
    #{partitions := Partitions} = Options,
    #request{name = Name, wire = Wire, from = From, on_lost = OnLost,
             part = weft_names_strong_homes:partition(Name, Partitions),
             first_ms = NowMs, deadline_ms = DeadlineMs}.

%% A lease that has ended gives nothing, even before the tick that says so.
held(Name, #client{owned = Owned, parts = Parts}, #{now_ms := NowMs}) ->
    case Owned of
        #{Name := #own{part = P} = Own} ->
            case Parts of
                #{P := #part{until_ms = UntilMs}} when UntilMs > NowMs -> Own;
                #{} -> none
            end;
        #{} -> none
    end.

effect(Effect, #client{out = Out} = Client) ->
    Client#client{out = [Effect | Out]}.

watched(Pid, What, #client{pids = Pids} = Client) ->
    case Pids of
        #{Pid := Held} -> Client#client{pids = Pids#{Pid := Held#{What => []}}};
        #{} -> effect({watch, Pid}, Client#client{pids = Pids#{Pid => #{What => []}}})
    end.

unwatched(Pid, What, #client{pids = Pids} = Client) ->
    case Pids of
        #{Pid := Held} when map_size(Held) =:= 1, is_map_key(What, Held) ->
            effect({unwatch, Pid}, Client#client{pids = maps:remove(Pid, Pids)});
        #{Pid := Held} -> Client#client{pids = Pids#{Pid := maps:remove(What, Held)}};
        #{} -> Client
    end.

%% --- requests under way -----------------------------------------------------------------------

started(#request{name = Name, part = P} = Request, Client0, Env) ->
    #client{next = Id, requests = Requests, busy = Busy0} = Client0,
    Part = #part{requests = Ids} = part(P, Client0),
    Busy = case Request#request.wire of
               {read, _} -> Busy0;
               _ -> Busy0#{Name => maps:get(Name, Busy0, [])}
           end,
    Client = put_part(P, Part#part{requests = Ids#{Id => []}},
                      Client0#client{next = Id + 1, busy = Busy,
                                     requests = Requests#{Id => Request}}),
    sent(P, [Id], case pid(Request) of
                      {ok, Pid} -> watched(Pid, {request, Id}, Client);
                      none -> Client
                  end, Env).

pid(#request{wire = {register, _, Pid, _, _}}) -> {ok, Pid};
pid(#request{wire = {update, _, _, Pid, _}}) -> {ok, Pid};
pid(#request{}) -> none.

part(P, #client{parts = Parts}) -> maps:get(P, Parts, #part{}).

put_part(P, Part, #client{parts = Parts} = Client) ->
    Client#client{parts = Parts#{P => Part}}.

sent(_P, [], Client, _Env) ->
    Client;
sent(P, Ids, Client0, Env) when length(Ids) > ?MESSAGE_MAX ->
    {Now, Later} = lists:split(?MESSAGE_MAX, Ids),
    sent(P, Later, sent(P, Now, Client0, Env), Env);
sent(P, Ids, #client{requests = Requests0} = Client0, #{now_ms := NowMs} = Env) ->
    {Leader, Client1} = leader(P, Client0, Env),
    Requests = lists:foldl(fun(Id, R) ->
                               #{Id := Request} = R,
                               R#{Id := Request#request{sent_ms = NowMs,
                                                        sends = Request#request.sends + 1}}
                           end, Requests0, Ids),
    Wires = [{Id, (map_get(Id, Requests))#request.wire} || Id <- Ids],
    Reads = [{Id, What} || {Id, {read, What}} <- Wires],
    Writes = [Wire || {_, Request} = Wire <- Wires, element(1, Request) =/= read],
    #part{lease = Lease} = Part = part(P, Client1),
    Oldest = lists:min(maps:keys(Part#part.requests)),
    Asks = [{write, life(Part, Env), Lease, Oldest, Writes} || Writes =/= []]
        ++ [{read, map_get(incarnation, Env), Reads} || Reads =/= []],
    lists:foldl(fun(Ask, C) -> effect({send, Leader, {ask, P, Ask}}, C) end,
                Client1#client{requests = Requests}, Asks).

life(#part{count = Count}, #{incarnation := Incarnation}) -> {Incarnation, Count}.

%% The home that is believed to lead, if it can be reached; the first one that can, else.
leader(P, Client, #{up := Up, places := Places}) ->
    #part{leader = Leader} = Part = part(P, Client),
    Homes = map_get(P, Places),
    case Leader =/= none andalso is_map_key(Leader, Up) of
        true -> {Leader, Client};
        false ->
            Chosen = hd([Home || Home <- Homes, is_map_key(Home, Up)] ++ Homes),
            {Chosen, connect(Homes, Up, put_part(P, Part#part{leader = Chosen}, Client))}
    end.

connect(Homes, Up, Client) ->
    lists:foldl(fun(Home, C) -> effect({connect, Home}, C) end, Client,
                [Home || Home <- Homes, not is_map_key(Home, Up)]).

%% The request is no more: the next command for its name may go.
ended(Id, #client{requests = Requests0, busy = Busy0} = Client0, Env) ->
    {#request{name = Name, part = P, wire = Wire} = Request, Requests} = maps:take(Id, Requests0),
    #part{requests = Ids} = Part = part(P, Client0),
    Client1 = put_part(P, Part#part{requests = maps:remove(Id, Ids)},
                       Client0#client{requests = Requests}),
    Client = case pid(Request) of
                 {ok, Pid} -> unwatched(Pid, {request, Id}, Client1);
                 none -> Client1
             end,
    case {Wire, Busy0} of
        {{read, _}, _} -> {Request, Client};
        {_, #{Name := Waiting}} ->
            {Request, lists:foldl(fun({Command, From, DeadlineMs}, C) ->
                                      asked(Command, From, DeadlineMs, C, Env)
                                  end, Client#client{busy = maps:remove(Name, Busy0)},
                                  lists:reverse(Waiting))}
    end.

%% Commands of this module itself have nobody to answer.
answer_to(none, _Reply, Client) -> Client;
answer_to(From, Reply, Client) -> effect({reply, From, Reply}, Client).

reply(#request{from = From}, Reply, Client) -> answer_to(From, Reply, Client).

%% --- answers ----------------------------------------------------------------------------------

%% @doc What a home says about partition P.
-spec answer(node(), P :: non_neg_integer(), term(), client(), env()) ->
          {client(), weft_core:effects()}.
answer(From, P, Answer, Client, Env) ->
    done(answered(Answer, From, P, Client, Env)).

answered({wrote, Life, Lease, Results}, From, P, Client0, Env) ->
    #part{lease = Known} = Part = part(P, Client0),
    case life(Part, Env) of
        Life when Known =:= 0; Known =:= Lease ->
            Client = put_part(P, Part#part{leader = From, lease = Lease, redirections = 0},
                              Client0),
            lists:foldl(fun({Id, Result}, C) -> result(Id, Result, P, C, Env) end, Client, Results);
        _ -> Client0
    end;
%% Of an earlier life somebody may still get answers: its numbers meant something else.
answered({values, Incarnation, Values}, From, P, Client0, #{incarnation := Incarnation} = Env) ->
    Client = put_part(P, (part(P, Client0))#part{leader = From, redirections = 0}, Client0),
    lists:foldl(fun({Id, Value}, C) -> read(Id, Value, C, Env) end, Client, Values);
answered({values, _, _}, _From, _P, Client, _Env) ->
    Client;
answered({renewed, Life, Id, No, Digest}, From, P, Client0, Env) ->
    #part{renewal = Renewal} = Part = part(P, Client0),
    case {life(Part, Env), Renewal} of
        {Life, {Id, SentMs}} ->
            Client = put_part(P, Part#part{leader = From, renewal = none, redirections = 0},
                              Client0),
            compared(Digest, No, P, extended(SentMs, P, Client, Env), Env);
        _ -> Client0
    end;
answered({stale, Life, Ids}, _From, P, Client, Env) ->
    #part{lease = Known} = Part = part(P, Client),
    case life(Part, Env) of
        Life when Known =:= 0 -> lose(P, untouched(Ids, Client), Env);
        Life -> resent(P, lose(P, untouched(Ids, Client), Env), Env);
        _ -> Client
    end;
answered({full, Life, Ids}, _From, P, Client, Env) ->
    case life(part(P, Client), Env) of
        Life -> lists:foldl(fun(Id, C) -> failed(Id, full, C, Env) end, Client, Ids);
        _ -> Client
    end;
answered({not_leader, Hint}, From, P, Client, Env) ->
    redirected(From, Hint, P, Client, Env).

%% For certain these were not carried out, this time.
untouched(Ids, #client{requests = Requests} = Client) ->
    Client#client{requests = lists:foldl(
        fun(Id, R) ->
            case R of
                #{Id := #request{sends = Sends} = Request} when Sends > 0 ->
                    R#{Id := Request#request{sends = Sends - 1}};
                #{} -> R
            end
        end, Requests, Ids)}.

%% Bounded, for two homes may each believe that the other leads; then the next tick asks again.
redirected(From, Hint, P, Client0, #{places := Places} = Env) ->
    case part(P, Client0) of
        #part{leader = From, redirections = Count} = Part ->
            Next = case Hint of none -> next(From, map_get(P, Places)); _ -> Hint end,
            Client = put_part(P, Part#part{leader = Next, redirections = Count + 1}, Client0),
            case Count < ?REDIRECTIONS_MAX andalso Hint =/= none of
                true -> resent(P, Client, Env);
                false -> Client
            end;
        #part{} -> Client0
    end.

next(Node, Homes) ->
    case lists:dropwhile(fun(Home) -> Home =/= Node end, Homes) of
        [Node, Next | _] -> Next;
        _ -> hd(Homes)
    end.

resent(P, Client, Env) ->
    #part{requests = Ids, renewal = Renewal} = Part = part(P, Client),
    Again = sent(P, lists:sort(maps:keys(Ids)), put_part(P, Part#part{renewal = none}, Client),
                 Env),
    case Renewal of
        none -> Again;
        _ -> renew(P, Again, Env)
    end.

%% An answer to a request that was given up: what it registered is nobody's.
result(Id, {registered, _Token}, P, #client{requests = Requests} = Client, Env)
  when not is_map_key(Id, Requests) ->
    reconciled(P, Client, Env);
result(Id, _Result, _P, #client{requests = Requests} = Client, _Env)
  when not is_map_key(Id, Requests) ->
    Client;
result(Id, Result, P, #client{requests = Requests} = Client0, Env) ->
    #{Id := #request{first_ms = FirstMs}} = Requests,
    Client = extended(FirstMs, P, Client0, Env),
    case {map_get(P, Client#client.parts), Env} of
        {#part{until_ms = UntilMs}, #{now_ms := NowMs}} when UntilMs =< NowMs ->
            %% It took longer than a lease.
            failed(Id, no_quorum, lose(P, Client, Env), Env);
        _ -> carried_out(Id, Result, Client, Env)
    end.

carried_out(Id, {yours, Holder, Token}, #client{requests = Requests, owned = Owned} = Client, Env) ->
    #{Id := #request{name = Name} = Request} = Requests,
    case Owned of
        #{Name := #own{token = Token}} -> failed(Id, {taken, Holder}, Client, Env);
        #{} -> instead(Token, Id, Request, Client, Env)
    end;
carried_out(Id, Result, Client0, Env) ->
    #client{requests = #{Id := Request}} = Client0,
    Client = case {Result, Request#request.wire} of
                 {{registered, Token}, {register, _, Pid, Meta, _}} ->
                     Free = lost(Request#request.name, Client0, Env),
                     reply(Request, {ok, Token}, owned(Request, Token, Pid, Meta, Free));
                 {{registered, Token}, {update, _, _, Pid, Meta}} ->
                     Former = released(Request#request.name, Client0),
                     reply(Request, {ok, Token}, owned(Request, Token, Pid, Meta, Former));
                 {{taken, Holder, _}, _} -> reply(Request, {error, {taken, Holder}}, Client0);
                 {removed, _} -> reply(Request, ok, Client0);
                 {absent, {unregister, _, _}} -> reply(Request, ok, Client0);
                 {absent, _} -> reply(Request, {error, not_owner}, Client0)
             end,
    {_, Ended} = ended(Id, Client, Env),
    Ended.

%% An earlier request for the name was carried out, and this node never knew. The new one takes its
%% place, as the commands that wait for the end of the present one must go on waiting.
instead(Token, Id, #request{part = P, wire = {register, Name, Pid, Meta, _}} = Request,
        #client{requests = Requests} = Client, Env) ->
    #part{requests = Ids} = Part = part(P, Client),
    Again = Request#request{wire = {register, Name, Pid, Meta, Token}, sends = 0},
    Without = put_part(P, Part#part{requests = maps:remove(Id, Ids)},
                       Client#client{requests = maps:remove(Id, Requests)}),
    unwatched(Pid, {request, Id}, started(Again, Without, Env)).

failed(Id, Reason, #client{requests = Requests} = Client, Env) ->
    case Requests of
        #{Id := Request} ->
            {_, Ended} = ended(Id, reply(Request, {error, Reason}, Client), Env),
            Ended;
        #{} -> Client
    end.

read(Id, Value, #client{requests = Requests} = Client, Env) when is_map_key(Id, Requests) ->
    {#request{name = Name} = Request, Ended} = ended(Id, Client, Env),
    case Value of
        {Pid, Token, Meta} ->
            reply(Request, {ok, Pid, Token, Meta}, cached(Name, Value, Ended, Env));
        {names, Names} ->
            reply(Request, {ok, Names}, Ended);
        undefined ->
            reply(Request, undefined, uncached(Name, Ended))
    end;
read(_Id, _Value, Client, _Env) ->
    Client.

cached(Name, _Value, #client{owned = Owned} = Client, _Env) when is_map_key(Name, Owned) ->
    Client;
cached(Name, Value, #client{cache = Cache} = Client,
       #{now_ms := NowMs, options := #{cache_ms := CacheMs}}) ->
    cache(weft_names_strong_cache:put(Name, Value, NowMs + CacheMs, Cache), Client).

uncached(Name, #client{cache = Cache} = Client) ->
    cache(weft_names_strong_cache:drop(Name, Cache), Client).

cache({Cache, Effects}, Client) ->
    lists:foldl(fun effect/2, Client#client{cache = Cache}, Effects).

%% --- what this node owns ----------------------------------------------------------------------

owned(#request{name = Name, part = P, on_lost = OnLost}, Token, Pid, Meta, Client0) ->
    Client = #client{owned = Owned} = watched(Pid, {name, Name}, uncached(Name, Client0)),
    #part{sum = Sum, names = Names} = Part = part(P, Client),
    Own = #own{pid = Pid, token = Token, meta = Meta, on_lost = OnLost, part = P},
    effect({view, {name, Name}, {own, Pid, Token, Meta, P, OnLost}},
           put_part(P, Part#part{sum = Sum + Token, names = Names#{Name => []}},
                    Client#client{owned = Owned#{Name => Own}})).

released(Name, #client{owned = Owned} = Client) when not is_map_key(Name, Owned) ->
    Client;
released(Name, #client{owned = Owned0} = Client) ->
    {#own{pid = Pid, token = Token, part = P}, Owned} = maps:take(Name, Owned0),
    #part{sum = Sum, names = Names} = Part = part(P, Client),
    effect({view, {name, Name}, delete},
           unwatched(Pid, {name, Name},
                     put_part(P, Part#part{sum = Sum - Token,
                                                names = maps:remove(Name, Names)},
                                   Client#client{owned = Owned}))).

%% @doc A process is no more: its names are given back.
-spec gone(Pid :: term(), client(), env()) -> {client(), weft_core:effects()}.
gone(Pid, #client{pids = Pids} = Client0, Env) ->
    Held = lists:sort(maps:keys(maps:get(Pid, Pids, #{}))),
    Client = lists:foldl(fun(Id, C) -> failed(Id, noproc, C, Env) end,
                         Client0#client{pids = maps:remove(Pid, Pids)},
                         [Id || {request, Id} <- Held]),
    done(lists:foldl(fun(Name, C) -> given_back(Name, C, Env) end, Client,
                     [Name || {name, Name} <- Held])).

%% While something else is asked about the name, that or a renewal ends what the homes have.
given_back(Name, #client{busy = Busy} = Client, _Env) when is_map_key(Name, Busy) ->
    released(Name, Client);
given_back(Name, Client, Env) ->
    asked({unregister, Name, any, 0}, none, own_deadline(Env), Client, Env).

%% What this module does by itself is tried for a while; a later renewal shows if that did not do.
own_deadline(#{now_ms := NowMs, options := #{renew_ms := RenewMs}}) -> NowMs + RenewMs.

%% The lease counts from when the request was sent that is now known to be confirmed.
extended(SentMs, P, Client, #{options := #{lease_ms := LeaseMs}}) ->
    case part(P, Client) of
        #part{until_ms = UntilMs} = Part when SentMs + LeaseMs > UntilMs ->
            effect({view, {lease, P}, {SentMs + LeaseMs}},
                   put_part(P, Part#part{until_ms = SentMs + LeaseMs}, Client));
        #part{} -> Client
    end.

%% The next request begins a new life in this partition. A registration that may have been carried
%% out in this one must not be carried out again in the next.
lose(P, Client0, Env) ->
    #part{names = Names, requests = Ids} = part(P, Client0),
    Client1 = lists:foldl(fun(Name, C) -> lost(Name, C, Env) end, Client0,
                          lists:sort(maps:keys(Names))),
    Part = #part{count = Count, leader = Leader} = part(P, Client1),
    Client2 = effect({view, {lease, P}, delete},
                     put_part(P, #part{count = Count + 1, leader = Leader,
                                       requests = Part#part.requests}, Client1)),
    lists:foldl(fun(Id, C) -> failed_if_sent(Id, C, Env) end, Client2, lists:sort(maps:keys(Ids))).

failed_if_sent(Id, #client{requests = Requests} = Client, Env) ->
    case Requests of
        #{Id := #request{wire = {register, _, _, _, _}, sends = Sends}} when Sends > 0 ->
            failed(Id, no_quorum, Client, Env);
        #{} -> Client
    end.

lost(Name, #client{owned = Owned} = Client, _Env) when not is_map_key(Name, Owned) ->
    Client;
lost(Name, #client{owned = Owned} = Client0, #{scope := Scope}) ->
    #{Name := #own{pid = Pid, token = Token, on_lost = OnLost}} = Owned,
    Client = effect({notice, {lost, Name, Token}}, released(Name, Client0)),
    case OnLost of
        exit -> effect({exit, Pid, {weft_names_lost, Scope, Name}}, Client);
        kill -> effect({exit, Pid, kill}, Client);
        tell -> effect({tell, Pid, {weft_names_lost, Scope, Name, Token}}, Client)
    end.

%% Only what is older than the comparison and not just being changed is judged.
compared(same, _No, _P, Client, _Env) ->
    Client;
compared({names, Theirs}, No, P, #client{owned = Owned, busy = Busy} = Client0, Env) ->
    #part{names = Names} = part(P, Client0),
    Unknown = [Name || Name <- maps:keys(Names), not is_map_key(Name, Busy),
                       #{Name := #own{token = Token}} <- [Owned],
                       Token =< No, maps:get(Name, Theirs, none) =/= Token],
    Client = lists:foldl(fun(Name, C) -> lost(Name, C, Env) end, Client0, lists:sort(Unknown)),
    Orphans = [{Name, Token} || {Name, Token} <- maps:to_list(Theirs),
                                not is_map_key(Name, Busy), not is_map_key(Name, Names)],
    lists:foldl(fun({Name, Token}, C) -> remove(Name, Token, C, Env) end, Client,
                lists:sort(Orphans)).

remove(Name, Token, Client, Env) ->
    started(request(Name, {unregister, Name, Token}, none, none, own_deadline(Env), Env), Client,
            Env).

%% A renewal shows what the homes have too much.
reconciled(P, Client, Env) ->
    case part(P, Client) of
        #part{renewal = none} -> renew(P, Client, Env);
        #part{} -> Client
    end.

renew(P, #client{next = Id} = Client0, #{now_ms := NowMs} = Env) ->
    {Leader, Client} = leader(P, Client0#client{next = Id + 1}, Env),
    #part{lease = Lease, sum = Sum} = Part = part(P, Client),
    effect({send, Leader, {ask, P, {renew, life(Part, Env), Lease, Id, Sum}}},
           put_part(P, Part#part{renewal = {Id, NowMs}, renewed_ms = NowMs}, Client)).

%% --- links and time ---------------------------------------------------------------------------

%% @doc A node can be reached (again).
-spec up(node(), client(), env()) -> {client(), weft_core:effects()}.
up(Node, #client{parts = Parts} = Client, Env) ->
    Waiting = [P || {P, #part{leader = Leader, requests = Ids, renewal = Renewal}}
                        <- maps:to_list(Parts), Leader =:= Node,
                    map_size(Ids) > 0 orelse Renewal =/= none],
    done(lists:foldl(fun(P, C) -> resent(P, C, Env) end, Client, lists:sort(Waiting))).

%% @doc A node can not be reached any more: what it was asked goes to another home.
-spec down(node(), client(), env()) -> {client(), weft_core:effects()}.
down(Node, #client{parts = Parts} = Client, Env) ->
    Hit = [P || {P, #part{leader = Leader}} <- maps:to_list(Parts), Leader =:= Node],
    done(lists:foldl(fun(P, C) -> elsewhere(P, C, Env) end, Client, lists:sort(Hit))).

elsewhere(P, Client, #{places := Places}) ->
    #part{leader = Leader} = Part = part(P, Client),
    put_part(P, Part#part{leader = next(Leader, map_get(P, Places)), redirections = 0}, Client).

%% @doc Time passed: leases end or are renewed, requests are given up or sent again.
-spec tick(client(), env()) -> {client(), weft_core:effects()}.
tick(#client{parts = Parts, cache = Cache} = Client,
     #{now_ms := NowMs, options := #{cache_ms := CacheMs}} = Env) ->
    Swept = cache(weft_names_strong_cache:sweep(NowMs, CacheMs, Cache), Client),
    done(lists:foldl(fun(P, C) -> part_tick(P, C, Env) end, Swept, lists:sort(maps:keys(Parts)))).

part_tick(P, Client0, #{now_ms := NowMs, options := Options} = Env) ->
    #{renew_ms := RenewMs, lease_ms := LeaseMs} = Options,
    Client1 = given_up(P, leases(P, Client0, Env), Env),
    Client2 = again(P, Client1, Env),
    case part(P, Client2) of
        #part{lease = Lease, names = Names, renewed_ms = RenewedMs, renewal = none,
              until_ms = UntilMs}
          when Lease > 0, NowMs - RenewedMs >= RenewMs,
               (map_size(Names) > 0 orelse UntilMs - LeaseMs > RenewedMs) ->
            renew(P, Client2, Env);
        #part{} -> Client2
    end.

%% Without names there is nothing to lose, and an answer under way may extend it.
leases(P, Client, #{now_ms := NowMs} = Env) ->
    case part(P, Client) of
        #part{lease = Lease, until_ms = UntilMs, names = Names, requests = Ids}
          when Lease > 0, UntilMs =< NowMs, map_size(Names) > 0;
               Lease > 0, UntilMs =< NowMs, map_size(Ids) =:= 0 ->
            lose(P, Client, Env);
        #part{} -> Client
    end.

given_up(P, #client{requests = Requests} = Client, #{now_ms := NowMs} = Env) ->
    #part{requests = Ids} = part(P, Client),
    Due = [Id || Id <- maps:keys(Ids), (map_get(Id, Requests))#request.deadline_ms =< NowMs],
    lists:foldl(fun(Id, C) -> failed(Id, no_quorum, C, Env) end, Client, lists:sort(Due)).

again(P, #client{requests = Requests} = Client,
      #{now_ms := NowMs, options := #{retry_ms := RetryMs}} = Env) ->
    #part{requests = Ids, renewal = Renewal} = Part = part(P, Client),
    Late = [Id || Id <- maps:keys(Ids), #request{sent_ms = SentMs} <- [map_get(Id, Requests)],
                  SentMs =:= never orelse NowMs - SentMs >= RetryMs],
    case {Late, Renewal} of
        {[_ | _], _} -> resent(P, elsewhere(P, Client, Env), Env);
        {[], {_, SentMs}} when NowMs - SentMs >= 2 * RetryMs ->
            renew(P, elsewhere(P, put_part(P, Part#part{renewal = none}, Client), Env), Env);
        _ -> Client
    end.

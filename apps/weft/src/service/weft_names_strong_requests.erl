%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node has asked the homes of strong names and has no answer to yet, and the commands
%% that wait because something is asked about their name: a part of `weft_names_strong_client',
%% which decides what to ask and what an answer means. Pure.
%%
%% Numbers of requests go up and are used once, so the lowest one under way tells the homes what
%% they need not remember any more. Of one name there is one writing request at a time.
-module(weft_names_strong_requests).

-export([new/0, count/1, number/1, add/2, remove/2, find/2, ids/2, send/4,
         not_carried_out/2, over/3, is_late/3, registers/2, pid/1]).
-export([request/5]).
-export([is_busy/2, busy/1, wait/3, wait_all/3, free/2]).
-export_type([requests/0, request/0]).

%% Requests of one message.
-define(MESSAGE_MAX, 200).

-type wire() :: weft_names_strong_table:request() | {read, {name, term()} | names}.
-type request() :: #{name := term(), wire := wire(), part := non_neg_integer(), from := term(),
                     on_lost := weft_names_strong_holdings:on_lost() | none,
                     first_ms := integer(), deadline_ms := integer(),
                     sent_ms := integer() | never, sends := non_neg_integer()}.
%% `sends': how often it was sent and may have been carried out.
-type command() :: {Command :: tuple(), From :: term(), DeadlineMs :: integer()}.

-record(requests, {next = 1 :: pos_integer(),
                   under_way = #{} :: #{Id :: pos_integer() => request()},
                   parts = #{} :: #{non_neg_integer() => #{Id :: pos_integer() => []}},
                   waiting = 0 :: non_neg_integer(),
                   busy = #{} :: #{Name :: term() => queue:queue(command())}}).

-opaque requests() :: #requests{}.

%% @doc None.
-spec new() -> requests().
new() -> #requests{}.

%% @doc How many there are, those that wait included.
-spec count(requests()) -> non_neg_integer().
count(#requests{under_way = UnderWay, waiting = Waiting}) -> map_size(UnderWay) + Waiting.

%% @doc A number for something else that is asked.
-spec number(requests()) -> {pos_integer(), requests()}.
number(#requests{next = Next} = Requests) -> {Next, Requests#requests{next = Next + 1}}.

%% @doc A request: about which name of which partition, what goes to the homes, who asked, what
%% becomes of the process if the lease is lost, from when and until when.
-spec request({Name :: term(), P :: non_neg_integer()}, wire(), From :: term(),
              weft_names_strong_holdings:on_lost() | none,
              {NowMs :: integer(), DeadlineMs :: integer()}) -> request().
request({Name, P}, Wire, From, OnLost, {NowMs, DeadlineMs}) ->
    #{name => Name, part => P, wire => Wire, from => From, on_lost => OnLost, first_ms => NowMs,
      deadline_ms => DeadlineMs, sent_ms => never, sends => 0}.

%% @doc A request is under way from now on. If it writes, its name is busy.
-spec add(request(), requests()) -> {Id :: pos_integer(), requests()}.
add(#{part := P, name := Name, wire := Wire} = Request, Requests) ->
    #requests{next = Id, under_way = UnderWay, parts = Parts, busy = Busy0} = Requests,
    Busy = case Wire of
               {read, _} -> Busy0;
               _ -> Busy0#{Name => maps:get(Name, Busy0, queue:new())}
           end,
    Ids = maps:get(P, Parts, #{}),
    {Id, Requests#requests{next = Id + 1, under_way = UnderWay#{Id => Request},
                           parts = Parts#{P => Ids#{Id => []}}, busy = Busy}}.

%% @doc It is not any more. Its name is still busy.
-spec remove(Id :: pos_integer(), requests()) -> requests().
remove(Id, #requests{under_way = UnderWay0, parts = Parts} = Requests) ->
    {#{part := P}, UnderWay} = maps:take(Id, UnderWay0),
    Left = case maps:remove(Id, map_get(P, Parts)) of
               Ids when map_size(Ids) =:= 0 -> maps:remove(P, Parts);
               Ids -> Parts#{P := Ids}
           end,
    Requests#requests{under_way = UnderWay, parts = Left}.

%% @doc The request with a number; `none' if it was answered or given up.
-spec find(Id :: pos_integer(), requests()) -> request() | none.
find(Id, #requests{under_way = UnderWay}) -> maps:get(Id, UnderWay, none).

%% @doc Those of a partition.
-spec ids(P :: non_neg_integer(), requests()) -> [Id :: pos_integer()].
ids(P, #requests{parts = Parts}) -> lists:sort(maps:keys(maps:get(P, Parts, #{}))).

%% @doc Some of a partition are sent now: what writes and what reads, in messages that are not too
%% large, and the number of the oldest one that an answer is waited for.
-spec send(P :: non_neg_integer(), [Id :: pos_integer(), ...], NowMs :: integer(), requests()) ->
          {Oldest :: pos_integer(), [{write | read, [{Id :: pos_integer(), term()}, ...]}],
           requests()}.
send(P, Ids, NowMs, #requests{under_way = UnderWay0, parts = Parts} = Requests) ->
    UnderWay = lists:foldl(fun(Id, U) ->
                               #{Id := #{sends := Sends} = Request} = U,
                               U#{Id := Request#{sent_ms := NowMs, sends := Sends + 1}}
                           end, UnderWay0, Ids),
    Wires = [{Id, maps:get(wire, map_get(Id, UnderWay))} || Id <- Ids],
    {lists:min(maps:keys(map_get(P, Parts))), messages(Wires),
     Requests#requests{under_way = UnderWay}}.

messages(Wires) when length(Wires) > ?MESSAGE_MAX ->
    {Now, Later} = lists:split(?MESSAGE_MAX, Wires),
    messages(Now) ++ messages(Later);
messages(Wires) ->
    {Reads, Writes} = lists:partition(fun({_, Wire}) -> element(1, Wire) =:= read end, Wires),
    [{write, Writes} || Writes =/= []]
        ++ [{read, [{Id, What} || {Id, {read, What}} <- Reads]} || Reads =/= []].

%% @doc For certain these were not carried out, this time.
-spec not_carried_out([Id :: pos_integer()], requests()) -> requests().
not_carried_out(Ids, #requests{under_way = UnderWay} = Requests) ->
    Requests#requests{under_way = lists:foldl(
        fun(Id, U) ->
            case U of
                #{Id := #{sends := Sends} = R} when Sends > 0 -> U#{Id := R#{sends := Sends - 1}};
                #{} -> U
            end
        end, UnderWay, Ids)}.

%% @doc Those of a partition of which the time is over.
-spec over(P :: non_neg_integer(), NowMs :: integer(), requests()) -> [Id :: pos_integer()].
over(P, NowMs, Requests) ->
    [Id || Id <- ids(P, Requests),
           #{deadline_ms := DeadlineMs} <- [find(Id, Requests)], DeadlineMs =< NowMs].

%% @doc Whether one of a partition was not sent after SinceMs.
-spec is_late(P :: non_neg_integer(), SinceMs :: integer(), requests()) -> boolean().
is_late(P, SinceMs, Requests) ->
    lists:any(fun(Id) ->
                  #{sent_ms := SentMs} = find(Id, Requests),
                  SentMs =:= never orelse SentMs =< SinceMs
              end, ids(P, Requests)).

%% @doc Those of a partition that may have registered something.
-spec registers(P :: non_neg_integer(), requests()) -> [Id :: pos_integer()].
registers(P, Requests) ->
    [Id || Id <- ids(P, Requests),
           #{wire := Wire, sends := Sends} <- [find(Id, Requests)],
           lists:member(element(1, Wire), [register, update]), Sends > 0].

%% @doc The process that shall get a name, if the request is about that.
-spec pid(request()) -> {ok, Pid :: term()} | none.
pid(#{wire := {register, _, Pid, _, _}}) -> {ok, Pid};
pid(#{wire := {update, _, _, Pid, _}}) -> {ok, Pid};
pid(#{}) -> none.

%% --- names that something is asked about ------------------------------------------------------

%% @doc Whether a writing request for the name is under way.
-spec is_busy(Name :: term(), requests()) -> boolean().
is_busy(Name, #requests{busy = Busy}) -> is_map_key(Name, Busy).

%% @doc All such names are keys.
-spec busy(requests()) -> #{Name :: term() => term()}.
busy(#requests{busy = Busy}) -> Busy.

%% @doc A command waits until its name, which is busy, is not any more.
-spec wait(command(), Name :: term(), requests()) -> requests().
wait(Command, Name, Requests) ->
    wait_all(queue:from_list([Command]), Name, Requests).

%% @doc Many do, behind those that wait already.
-spec wait_all(queue:queue(command()), Name :: term(), requests()) -> requests().
wait_all(Commands, Name, #requests{busy = Busy, waiting = Waiting} = Requests) ->
    #{Name := Others} = Busy,
    Requests#requests{waiting = Waiting + queue:len(Commands),
                      busy = Busy#{Name := queue:join(Others, Commands)}}.

%% @doc The name is not busy any more; these have waited, and do not any more.
-spec free(Name :: term(), requests()) -> {queue:queue(command()), requests()}.
free(Name, #requests{busy = Busy0, waiting = Waiting} = Requests) ->
    {Commands, Busy} = maps:take(Name, Busy0),
    {Commands, Requests#requests{busy = Busy, waiting = Waiting - queue:len(Commands)}}.

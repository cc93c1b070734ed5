%% SPDX-License-Identifier: Apache-2.0
%% @doc Requests of a node to the replicas of strong names that are not answered yet, and the
%% commands that wait because a request about their name is in progress. A part of
%% `weft_names_strong_owner', which decides what to ask and what an answer means. Pure.
%%
%% Numbers of requests increase and are used once. So the lowest one in progress tells the replicas
%% which results they need not remember any more. For one name there is one writing request at a
%% time.
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

%% @doc No requests.
-spec new() -> requests().
new() -> #requests{}.

%% @doc How many requests there are, those that wait included.
-spec count(requests()) -> non_neg_integer().
count(#requests{under_way = UnderWay, waiting = Waiting}) -> map_size(UnderWay) + Waiting.

%% @doc A number for a question of another kind.
-spec number(requests()) -> {pos_integer(), requests()}.
number(#requests{next = Next} = Requests) -> {Next, Requests#requests{next = Next + 1}}.

%% @doc A request: its name and partition, what is sent to the replicas, who asked, what happens to
%% the process if the lease is lost, its beginning and its deadline.
-spec request({Name :: term(), P :: non_neg_integer()}, wire(), From :: term(),
              weft_names_strong_holdings:on_lost() | none,
              {NowMs :: integer(), DeadlineMs :: integer()}) -> request().
request({Name, P}, Wire, From, OnLost, {NowMs, DeadlineMs}) ->
    #{name => Name, part => P, wire => Wire, from => From, on_lost => OnLost, first_ms => NowMs,
      deadline_ms => DeadlineMs, sent_ms => never, sends => 0}.

%% @doc A request is in progress from now on. If it writes, its name is busy.
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

%% @doc A request is no longer in progress. Its name is still busy.
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

%% @doc The requests of a partition.
-spec ids(P :: non_neg_integer(), requests()) -> [Id :: pos_integer()].
ids(P, #requests{parts = Parts}) -> lists:sort(maps:keys(maps:get(P, Parts, #{}))).

%% @doc Some requests of a partition are sent now. Returns the number of the oldest one that waits
%% for an answer, and the writing and the reading ones in messages that are not too large.
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

%% @doc These were certainly not carried out this time.
-spec not_carried_out([Id :: pos_integer()], requests()) -> requests().
not_carried_out(Ids, #requests{under_way = UnderWay} = Requests) ->
    Requests#requests{under_way = lists:foldl(
        fun(Id, U) ->
            case U of
                #{Id := #{sends := Sends} = R} when Sends > 0 -> U#{Id := R#{sends := Sends - 1}};
                #{} -> U
            end
        end, UnderWay, Ids)}.

%% @doc The requests of a partition whose time is over.
-spec over(P :: non_neg_integer(), NowMs :: integer(), requests()) -> [Id :: pos_integer()].
over(P, NowMs, Requests) ->
    [Id || Id <- ids(P, Requests),
           #{deadline_ms := DeadlineMs} <- [find(Id, Requests)], DeadlineMs =< NowMs].

%% @doc Whether a request of a partition was not sent after SinceMs.
-spec is_late(P :: non_neg_integer(), SinceMs :: integer(), requests()) -> boolean().
is_late(P, SinceMs, Requests) ->
    lists:any(fun(Id) ->
                  #{sent_ms := SentMs} = find(Id, Requests),
                  SentMs =:= never orelse SentMs =< SinceMs
              end, ids(P, Requests)).

%% @doc The requests of a partition that may have registered a name.
-spec registers(P :: non_neg_integer(), requests()) -> [Id :: pos_integer()].
registers(P, Requests) ->
    [Id || Id <- ids(P, Requests),
           #{wire := Wire, sends := Sends} <- [find(Id, Requests)],
           lists:member(element(1, Wire), [register, update]), Sends > 0].

%% @doc The process that is to get a name, if the request is about that.
-spec pid(request()) -> {ok, Pid :: term()} | none.
pid(#{wire := {register, _, Pid, _, _}}) -> {ok, Pid};
pid(#{wire := {update, _, _, Pid, _}}) -> {ok, Pid};
pid(#{}) -> none.

%% --- names that something is asked about ------------------------------------------------------

%% @doc Whether a writing request for the name is in progress.
-spec is_busy(Name :: term(), requests()) -> boolean().
is_busy(Name, #requests{busy = Busy}) -> is_map_key(Name, Busy).

%% @doc All such names are keys.
-spec busy(requests()) -> #{Name :: term() => term()}.
busy(#requests{busy = Busy}) -> Busy.

%% @doc A command waits until its name is no longer busy.
-spec wait(command(), Name :: term(), requests()) -> requests().
wait(Command, Name, Requests) ->
    wait_all(queue:from_list([Command]), Name, Requests).

%% @doc The same for several commands, which come after those that wait already.
-spec wait_all(queue:queue(command()), Name :: term(), requests()) -> requests().
wait_all(Commands, Name, #requests{busy = Busy, waiting = Waiting} = Requests) ->
    #{Name := Others} = Busy,
    Requests#requests{waiting = Waiting + queue:len(Commands),
                      busy = Busy#{Name := queue:join(Others, Commands)}}.

%% @doc The name is no longer busy; returns the commands that have waited for it.
-spec free(Name :: term(), requests()) -> {queue:queue(command()), requests()}.
free(Name, #requests{busy = Busy0, waiting = Waiting} = Requests) ->
    {Commands, Busy} = maps:take(Name, Busy0),
    {Commands, Requests#requests{busy = Busy, waiting = Waiting - queue:len(Commands)}}.

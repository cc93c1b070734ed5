%% SPDX-License-Identifier: Apache-2.0
%% @doc From what users of strong names did and were told (`weft_sim_names_core') to one history for
%% each name, for `weft_sim_linearizability'. As an observer it only collects.
%%
%% A command without an answer, or with `no_quorum', may have been carried out or not, at any time;
%% so may a removal by anybody (`{remove, Name}') with any answer but `ok'.
%% Each registration is followed by the operation `{expire, Pid}': from the instant when its owner
%% stopped believing in it, the replicas may let go of it. He stops when he is told so, when the
%% lease as he knows it ends (he may be paused and not notice), or when his node crashes.
-module(weft_sim_name_history).
-behaviour(weft_sim_observer).

-export([new/0, sent/5, notice/5, histories/2, grants/2]).
-export_type([events/0, grant/0]).

-opaque events() :: [{NowUs :: non_neg_integer(), node(), term()}].
-type grant() :: {Name :: term(), CallUs :: non_neg_integer(), ReturnUs :: non_neg_integer(),
                  Token :: pos_integer()}.

%% @doc Nothing seen yet.
-spec new() -> events().
new() -> [].

%% @private
-spec sent(node(), atom(), term(), non_neg_integer(), events()) -> events().
sent(_Node, _Machine, _Msg, _NowUs, Events) -> Events.

%% @private
-spec notice(node(), atom(), term(), non_neg_integer(), events()) -> events().
notice(Node, _Machine, {history, Event}, NowUs, Events) -> [{NowUs, Node, Event} | Events];
notice(_Node, _Machine, _Notice, _NowUs, Events) -> Events.

%% @doc The history of each name. Crashes: when which node lost its memory. `PartitionOf': the
%% partition of a name.
-spec histories(events(), #{crashes := [{AtUs :: non_neg_integer(), node()}],
                            partition_of := fun((Name :: term()) -> non_neg_integer())}) ->
          #{Name :: term() => [weft_sim_linearizability:entry()]}.
histories(Events, #{crashes := Crashes} = Options) ->
    Entries = lists:append([of_incarnation(Own, EndUs, Options)
                            || {Own, EndUs} <- incarnations(Events, Crashes)]),
    Seen = maps:from_list([{Pid, []} || {_, Entry} <- Entries, Pid <- seen(Entry)]),
    lists:foldl(fun({Name, Entry}, Acc) ->
                    Acc#{Name => [Entry | maps:get(Name, Acc, [])]}
                end, #{}, [Named || {_, Entry} = Named <- Entries, matters(Entry, Seen)]).

%% @doc The names that were registered or handed over, with their tokens, in no order.
-spec grants(events(), Crashes :: [{AtUs :: non_neg_integer(), node()}]) -> [grant()].
grants(Events, Crashes) ->
    [{element(2, Command), Us, ReturnUs, Token}
     || {Own, _EndUs} <- incarnations(Events, Crashes),
        {ReturnUs, {return, Id, {ok, Token}}} <- Own,
        {Us, {call, Called, Command}} <- Own, Called =:= Id].

%% The events of each incarnation of each node, and when it ended.
incarnations(Events0, Crashes) ->
    %% A crash takes place before anything that the next incarnation does at the same instant.
    Events = lists:keysort(1, [{AtUs, Node, crash} || {AtUs, Node} <- Crashes]
                           ++ lists:reverse(Events0)),
    ByNode = lists:foldl(fun({Us, Node, Event}, Acc) ->
                             Acc#{Node => [{Us, Event} | maps:get(Node, Acc, [])]}
                         end, #{}, Events),
    lists:append([of_node(lists:reverse(List)) || {_, List} <- maps:to_list(ByNode)]).

%% A registration that may have been carried out or not, and whose process nobody ever saw, changes
%% nothing for anybody.
matters({_, never, {register, Pid, unknown}}, Seen) -> is_map_key(Pid, Seen);
matters({_, never, {update, _, Pid, unknown}}, Seen) -> is_map_key(Pid, Seen);
matters({_, never, {expire, Pid}}, Seen) -> is_map_key(Pid, Seen);
matters(_Entry, _Seen) -> true.

seen({_, _, {register, Pid, ok}}) -> [Pid];
seen({_, _, {register, _, {taken, Pid}}}) -> [Pid];
seen({_, _, {update, Pid, New, ok}}) -> [Pid, New];
seen({_, _, {update, Pid, _, unknown}}) -> [Pid];
seen({_, _, {whereis, Pid}}) -> [Pid];
seen(_Entry) -> [].

%% The commands of one node; after a crash numbers begin anew, so each incarnation is by itself.
of_node(Events) ->
    case lists:splitwith(fun({_, Event}) -> Event =/= crash end, Events) of
        {Own, []} -> [{Own, infinity}];
        {Own, [{Us, crash} | Rest]} -> [{Own, Us} | of_node(Rest)]
    end.

of_incarnation(Events, EndUs, Options) ->
    Returns = maps:from_list([{Id, {Us, Reply}} || {Us, {return, Id, Reply}} <- Events]),
    lists:append([entries(Us, Command, maps:get(Id, Returns, none), Events, EndUs, Options)
                  || {Us, {call, Id, Command}} <- Events]).

entries(Us, {whereis, Name}, {ReturnUs, {ok, Pid, _Token, _Meta}}, _, _, _) ->
    [{Name, {Us, ReturnUs, {whereis, Pid}}}];
entries(Us, {whereis, Name}, {ReturnUs, undefined}, _, _, _) ->
    [{Name, {Us, ReturnUs, {whereis, none}}}];
entries(_Us, {whereis, _Name}, _, _, _, _) ->
    [];
entries(Us, {register, Name, Pid}, {ReturnUs, {ok, _}}, Events, EndUs, Options) ->
    BelievedUs = believed_until(Name, Pid, ReturnUs, Events, EndUs, Options),
    [{Name, {Us, ReturnUs, {register, Pid, ok}}} | expiry(Name, Pid, BelievedUs)];
entries(Us, {register, Name, Pid}, {ReturnUs, {error, {taken, Holder}}}, _, _, _) ->
    [{Name, {Us, ReturnUs, {register, Pid, {taken, Holder}}}}];
entries(Us, {register, Name, Pid}, _Unknown, _, _, _) ->
    [{Name, {Us, never, {register, Pid, unknown}}} | expiry(Name, Pid, Us)];
entries(Us, {update, Name, Pid, New, _}, {ReturnUs, {ok, _}}, Events, EndUs, Options) ->
    BelievedUs = believed_until(Name, New, ReturnUs, Events, EndUs, Options),
    [{Name, {Us, ReturnUs, {update, Pid, New, ok}}} | expiry(Name, New, BelievedUs)];
%% It believes no more to be the owner; the replicas may not know that yet.
entries(_Us, {update, _Name, _Pid, _New, _}, {_, {error, not_owner}}, _, _, _) ->
    [];
entries(Us, {update, Name, Pid, New, _}, _Unknown, _, _, _) ->
    [{Name, {Us, never, {update, Pid, New, unknown}}} | expiry(Name, New, Us)];
entries(Us, {remove, Name}, {ReturnUs, ok}, _, _, _) ->
    [{Name, {Us, ReturnUs, remove}}];
entries(Us, {remove, Name}, _Unknown, _, _, _) ->
    [{Name, {Us, never, remove}}];
entries(Us, {unregister, Name, Pid, _}, {ReturnUs, ok}, _, _, _) ->
    [{Name, {Us, ReturnUs, {unregister, Pid}}}];
entries(_Us, {unregister, _Name, _Pid, _}, {_, {error, not_owner}}, _, _, _) ->
    [];
entries(Us, {unregister, Name, Pid, _}, _Unknown, _, _, _) ->
    [{Name, {Us, never, {unregister, Pid}}}].

expiry(_Name, _Pid, infinity) -> [];
expiry(Name, Pid, Us) -> [{Name, {Us, never, {expire, Pid}}}].

%% From an answer on: until it is told otherwise, or the last lease ends that it heard of before.
believed_until(Name, Pid, FromUs, Events, EndUs, #{partition_of := PartitionOf}) ->
    P = PartitionOf(Name),
    {Before, After} = lists:splitwith(fun({Us, _}) -> Us =< FromUs end, Events),
    Leases = [UntilMs * 1000 || {_, {lease, Q, {UntilMs}}} <- Before, Q =:= P],
    believed(Name, Pid, P, lists:last([FromUs | Leases]), After, EndUs).

believed(_Name, _Pid, _P, LeaseUs, [], EndUs) ->
    min(LeaseUs, EndUs);
believed(Name, Pid, _P, LeaseUs, [{Us, {lost, Name, Pid}} | _], _EndUs) ->
    min(LeaseUs, Us);
believed(_Name, _Pid, P, LeaseUs, [{Us, {lease, P, delete}} | _], _EndUs) ->
    min(LeaseUs, Us);
%% A belief that had ended comes back with an answer that was late.
believed(Name, Pid, P, _LeaseUs, [{_, {lease, P, {UntilMs}}} | Rest], EndUs) ->
    believed(Name, Pid, P, UntilMs * 1000, Rest, EndUs);
believed(Name, Pid, P, LeaseUs, [_ | Rest], EndUs) ->
    believed(Name, Pid, P, LeaseUs, Rest, EndUs).

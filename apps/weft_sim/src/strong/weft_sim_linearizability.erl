%% SPDX-License-Identifier: Apache-2.0
%% @doc Checks whether a history of concurrent operations on one object could have been carried out
%% one after the other, each at an instant between its call and its return.
%%
%% Goes through calls and returns in the order of time and keeps all <em>configurations</em> that
%% are possible: the state of the object, and which of the operations under way have taken effect.
%% When an operation returns, each configuration is led on by operations under way until that one
%% has taken effect; those where it can not are dropped. (Wing and Gong 1993, with the memory of
%% Lowe 2017: a configuration that was seen is not looked at twice.)
%%
%% An operation whose return is `never' may take effect at any time after its call, or not at all.
%% Of two configurations that differ only in that one has used up more of these, it is
%% superfluous: whatever can follow it can follow the other. Of operations under way that say the
%% same the one that returns first takes effect first: nobody can tell them apart, and the other one
%% may be late. What only reads takes effect as soon as it can. Without these rules each lost answer
%% doubles the work.
%%
%% The object is a module with `step(Operation, State) -> {ok, State} | impossible', where an
%% operation says what was asked and what was answered, and `kind(Operation)': `reads', it leaves
%% every state as it is; `ends', it ends a state that is never reached again, so if it does not
%% return nobody needs to know whether it took effect; or `changes'.
-module(weft_sim_linearizability).

-export([check/3]).
-export_type([entry/0]).

-type entry() :: {Call :: number(), Return :: number() | never, Operation :: term()}.

-callback step(Operation :: term(), State :: term()) -> {ok, State :: term()} | impossible.
-callback kind(Operation :: term()) -> reads | ends | changes.

-record(config, {state :: term(),
                 %% Operations under way that took effect: those that will return, and the others.
                 done = [] :: [integer()],
                 used = [] :: [integer()]}).

%% @doc Whether the history is linearizable from the initial state; else the first operation that
%% can have no instant, with the states that were possible before it.
-spec check([entry()], Model :: module(), Initial :: term()) ->
          ok | {error, {entry(), States :: [term()]}}.
check(History, Model, Initial) ->
    Entries = maps:from_list(lists:zip(lists:seq(1, length(History)), History)),
    %% At the same time calls come first: the weaker assumption.
    Events = lists:sort([{Call, 0, Id} || {Id, {Call, _, _}} <- maps:to_list(Entries)]
                        ++ [{Return, 1, Id} || {Id, {_, Return, _}} <- maps:to_list(Entries),
                                               Return =/= never]),
    walk(Events, [], [#config{state = Initial}], Entries, Model).

walk([], _Open, _Configs, _Entries, _Model) ->
    ok;
walk([{_, 0, Id} | Events], Open, Configs, Entries, Model) ->
    walk(Events, [Id | Open], Configs, Entries, Model);
walk([{_, 1, Id} | Events], Open, Configs, Entries, Model) ->
    case minimal(lead(Configs, Id, Open, Entries, Model)) of
        [] ->
            {error, {map_get(Id, Entries),
                     lists:usort([State || #config{state = State} <- Configs])}};
        Next ->
            walk(Events, lists:delete(Id, Open),
                 [C#config{done = lists:delete(Id, C#config.done)} || C <- Next], Entries, Model)
    end.

%% All configurations in which Id has taken effect, that follow from the given ones. Those with
%% fewer operations come first, so that what is superfluous is seen to be.
lead(Configs, Id, Open, Entries, Model) ->
    lead([read(Config, Open, Entries, Model) || Config <- Configs], [], Id, Open, Entries, Model,
         #{}, []).

lead([], [], _Id, _Open, _Entries, _Model, _Seen, Found) ->
    Found;
lead([], Later, Id, Open, Entries, Model, Seen, Found) ->
    lead(lists:reverse(Later), [], Id, Open, Entries, Model, Seen, Found);
lead([#config{state = State, done = Done, used = Used} = Config | Rest], Later, Id, Open, Entries,
     Model, Seen0, Found) ->
    Others = maps:get({State, Done}, Seen0, []),
    Seen = Seen0#{{State, Done} => [Used | Others]},
    case {lists:any(fun(Other) -> Other -- Used =:= [] end, Others), lists:member(Id, Done)} of
        {true, _} ->
            lead(Rest, Later, Id, Open, Entries, Model, Seen0, Found);
        {false, true} ->
            lead(Rest, Later, Id, Open, Entries, Model, Seen, [Config | Found]);
        {false, false} ->
            Next = successors(Config, Open, Entries, Model),
            lead(Rest, lists:reverse(Next, Later), Id, Open, Entries, Model, Seen, Found)
    end.

successors(#config{state = State, done = Done, used = Used} = Config, Open, Entries, Model) ->
    [read(case {Return, Kind} of
              {never, ends} -> Config#config{state = Next};
              {never, changes} -> Config#config{state = Next, used = lists:sort([Id | Used])};
              _ -> Config#config{state = Next, done = lists:sort([Id | Done])}
          end, Open, Entries, Model)
     || Id <- different(Open -- (Done ++ Used), Entries),
        {_, Return, Operation} <- [map_get(Id, Entries)],
        Kind <- [Model:kind(Operation)], Kind =/= reads,
        {ok, Next} <- [Model:step(Operation, State)],
        Return =/= never orelse Next =/= State].

%% With all that reads, and can have read this state.
read(#config{state = State, done = Done} = Config, Open, Entries, Model) ->
    Reads = [Id || Id <- Open -- Done, {_, Return, Operation} <- [map_get(Id, Entries)],
                   Return =/= never, Model:kind(Operation) =:= reads,
                   Model:step(Operation, State) =/= impossible],
    Config#config{done = lists:sort(Reads ++ Done)}.

%% Of each operation the one that returns first (`never' is greater than all numbers).
different(Ids, Entries) ->
    ByReturn = lists:sort([{Operation, Return, Id}
                           || Id <- Ids, {_, Return, Operation} <- [map_get(Id, Entries)]]),
    [Id || {_, _, Id} <- lists:ukeysort(1, ByReturn)].

minimal(Configs) ->
    Groups = lists:foldl(fun(#config{state = State, done = Done, used = Used}, Acc) ->
                             Acc#{{State, Done} => [Used | maps:get({State, Done}, Acc, [])]}
                         end, #{}, Configs),
    [#config{state = State, done = Done, used = Used}
     || {{State, Done}, All} <- maps:to_list(Groups), Used <- smallest(lists:usort(All))].

smallest(Sets) ->
    [Set || Set <- Sets, not lists:any(fun(Other) -> Other =/= Set andalso Other -- Set =:= [] end,
                                       Sets)].

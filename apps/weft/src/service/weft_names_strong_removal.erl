%% SPDX-License-Identifier: Apache-2.0
%% @doc Taking strong names away from whoever has them: the half of the node that asks, a part of
%% `weft_names_strong_client', which sends, and knows the time. Pure.
%%
%% Only the homes know whether a name is free, and only its owner can stop believing in it before
%% his lease ends. So the name is read, the home that leads tells the owner to give back exactly
%% this registration, and the owner asks the homes to remove it, as if it were his own wish; then
%% he says so, by the way he was asked. Nothing of that needs a path between the two nodes. It is
%% repeated until the removal is known: the owner said so, or the name was read as free. An owner
%% who is cut off from the homes loses the name when his lease ends.
%%
%% One registration at most is taken away, the one that was read first. If another one is there
%% then, the former may have been given back or handed over, and the owner's word may still come:
%% the name is read once more, and then nothing is claimed (`taken').
-module(weft_names_strong_removal).

-export([new/0, add/3, read/4, given_back/3, failed/2, due/2, count/1]).
-export_type([removals/0, step/0]).

-record(removal, {name :: term(),
                  from :: term(),
                  deadline_ms :: integer(),
                  %% The registration to be removed, once it was read.
                  token = none :: none | pos_integer(),
                  in_doubt = false :: boolean(),
                  %% When it is read again; not while that is under way.
                  next_ms = reading :: reading | integer()}).

-opaque removals() :: #{Ref :: pos_integer() => #removal{}}.
-type step() :: {done, From :: term(), Reply :: ok | {error, weft_names:reason()}}
              | {give_back, Name :: term(), Token :: pos_integer()}
              | wait.
%% What is to be done: answer; ask a home that the owner gives back; nothing.

%% @doc None.
-spec new() -> removals().
new() -> #{}.

%% @doc How many there are.
-spec count(removals()) -> non_neg_integer().
count(Removals) -> map_size(Removals).

%% @doc A removal begins; its name is being read.
-spec add(Ref :: pos_integer(), {Name :: term(), From :: term(), DeadlineMs :: integer()},
          removals()) -> removals().
add(Ref, {Name, From, DeadlineMs}, Removals) ->
    Removals#{Ref => #removal{name = Name, from = From, deadline_ms = DeadlineMs}}.

%% @doc The homes said who has the name; unless the step is the last one they are asked again at
%% NextMs.
-spec read(Ref :: pos_integer(),
           {Pid :: term(), Token :: pos_integer(), Meta :: term()} | undefined,
           NextMs :: integer(), removals()) -> {step(), removals()}.
read(Ref, Value, NextMs, Removals) ->
    case Removals of
        #{Ref := Removal} -> seen(Value, Removal#removal{next_ms = NextMs}, Ref, Removals);
        #{} -> {wait, Removals}
    end.

seen(undefined, Removal, Ref, Removals) ->
    done(ok, Removal, Ref, Removals);
seen({_Pid, Token, _Meta}, #removal{name = Name, token = Known} = Removal, Ref, Removals)
  when Known =:= none; Known =:= Token ->
    {{give_back, Name, Token}, Removals#{Ref := Removal#removal{token = Token}}};
seen(_Another, #removal{in_doubt = false} = Removal, Ref, Removals) ->
    {wait, Removals#{Ref := Removal#removal{in_doubt = true}}};
seen({Pid, _Token, _Meta}, Removal, Ref, Removals) ->
    done({error, {taken, Pid}}, Removal, Ref, Removals).

done(Reply, #removal{from = From}, Ref, Removals) ->
    {{done, From, Reply}, maps:remove(Ref, Removals)}.

%% @doc The owner gave it back, and the homes had it till then.
-spec given_back(Ref :: pos_integer(), Token :: pos_integer(), removals()) ->
          {step(), removals()}.
given_back(Ref, Token, Removals) ->
    case Removals of
        #{Ref := #removal{token = Token} = Removal} -> done(ok, Removal, Ref, Removals);
        #{} -> {wait, Removals}
    end.

%% @doc The name could not be read in time. Whoever asked, if he still waits.
-spec failed(Ref :: pos_integer(), removals()) -> {[From :: term()], removals()}.
failed(Ref, Removals) ->
    {[From || #{Ref := #removal{from = From}} <- [Removals]], maps:remove(Ref, Removals)}.

%% @doc Names to be read now, from then on under way, and who has waited to the end of his time.
-spec due(NowMs :: integer(), removals()) ->
          {Read :: [{Ref :: pos_integer(), Name :: term(), DeadlineMs :: integer()}],
           Over :: [From :: term()], removals()}.
due(NowMs, Removals) ->
    Due = [Entry || {_, #removal{next_ms = NextMs}} = Entry <- lists:sort(maps:to_list(Removals)),
                    is_integer(NextMs)],
    {Over, Waiting} = lists:partition(fun({_, #removal{deadline_ms = DeadlineMs}}) ->
                                          DeadlineMs =< NowMs
                                      end, Due),
    Now = [Entry || {_, #removal{next_ms = NextMs}} = Entry <- Waiting, NextMs =< NowMs],
    Left = lists:foldl(fun({Ref, _}, Map) -> maps:remove(Ref, Map) end, Removals, Over),
    {[{Ref, Name, DeadlineMs}
      || {Ref, #removal{name = Name, deadline_ms = DeadlineMs}} <- Now],
     [From || {_, #removal{from = From}} <- Over],
     lists:foldl(fun({Ref, Removal}, Map) -> Map#{Ref := Removal#removal{next_ms = reading}} end,
                 Left, Now)}.

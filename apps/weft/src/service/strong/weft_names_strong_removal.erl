%% SPDX-License-Identifier: Apache-2.0
%% @doc Taking strong names away from their owners: the part of the node that asks. Belongs to
%% `weft_names_strong_taking', which sends, and knows the time. Pure.
%%
%% Only the replicas know whether a name is free, and only its owner can stop believing in it before
%% its lease ends. So the name is read, and the replica that leads tells the owner to give up
%% exactly this registration. The owner asks the replicas to remove it, as if a process of its own
%% had asked, and then confirms it by the way that the order came. None of this needs a path between
%% the owner and the node that asks. It is repeated until the removal is known: the owner confirmed
%% it, or the name was read as free. An owner that is cut off from the replicas loses the name when
%% its lease ends.
%%
%% At most one registration is taken away, the one that was read first. If another one is there
%% later, the first may have been given up or handed over, and the confirmation of its owner may
%% still come. So the name is read once more, and after that the answer is `taken'.
-module(weft_names_strong_removal).

-export([new/0, add/3, read/4, given_back/3, failed/2, due/2, count/1]).
-export_type([removals/0, step/0]).

-record(removal, {name :: term(),
                  from :: term(),
                  deadline_ms :: integer(),
                  %% The registration to be removed, once it was read.
                  token = none :: none | pos_integer(),
                  in_doubt = false :: boolean(),
                  %% When it is read again; `reading' while a read is in progress.
                  next_ms = reading :: reading | integer()}).

-opaque removals() :: #{Ref :: pos_integer() => #removal{}}.
-type step() :: {done, From :: term(), Reply :: ok | {error, weft_names:reason()}}
              | {give_back, Name :: term(), Token :: pos_integer()}
              | wait.
%% What is to be done: answer; ask a replica that the owner gives the name up; nothing.

%% @doc No removals.
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

%% @doc The replicas said which process has the name; unless the step is the last one they are asked
%% again at NextMs.
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

%% @doc The owner gave it up, and the replicas had it until then.
-spec given_back(Ref :: pos_integer(), Token :: pos_integer(), removals()) ->
          {step(), removals()}.
given_back(Ref, Token, Removals) ->
    case Removals of
        #{Ref := #removal{token = Token} = Removal} -> done(ok, Removal, Ref, Removals);
        #{} -> {wait, Removals}
    end.

%% @doc The name could not be read in time. Answers the caller, if it still waits.
-spec failed(Ref :: pos_integer(), removals()) -> {[From :: term()], removals()}.
failed(Ref, Removals) ->
    {[From || #{Ref := #removal{from = From}} <- [Removals]], maps:remove(Ref, Removals)}.

%% @doc Names to be read now, which counts as in progress from then on, and the callers whose time
%% is over.
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

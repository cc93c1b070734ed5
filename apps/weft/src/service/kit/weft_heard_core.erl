%% SPDX-License-Identifier: Apache-2.0
%% @doc Who has heard of the changes of this node, and who waits for that. Part of
%% `weft_own_rows_core', called in place.
%%
%% Changes have numbers (Seq). Those who wait for changes of one flush are a round, with one
%% question to each other node, which goes after the changes. A node that answers has shown these
%% changes, and has sent before whatever it had changed itself. So who is answered at the end of a
%% round also knows what those nodes did before they heard of the change.
%%
%% No round lasts longer than `?TICKS' seconds, the last one begun. Nodes that have not answered by
%% then are late. They are not waited for until they answer, so a node that stands still costs the
%% wait once and not with each change. It answers the question that it has as soon as it goes on.
%% While `?ROUNDS_MAX' rounds last, the next ones are joined to the last one.
-module(weft_heard_core).

-export([new/0, wait/5, is_due/1, begun/3, heard/3, again/2, lost/2, tick/1, is_waiting/1]).
-export([is_awaited/4, is_waited/2, released/3]).
-export_type([heard/0, wait/0]).

-define(TICKS, 4).
-define(ROUNDS_MAX, 50).

-record(round, {seq :: non_neg_integer(),
                missing :: [node()],
                waits :: [wait()],
                left = ?TICKS :: non_neg_integer()}).

-record(heard, {new = [] :: [wait()],
                %% Oldest first.
                rounds = [] :: [#round{}],
                late = #{} :: #{node() => []}}).

-type wait() :: {Key :: term(), What :: term(), Ref :: term(), Reply :: term()}.
-opaque heard() :: #heard{}.

%% @doc Nobody waits.
-spec new() -> heard().
new() -> #heard{}.

%% @doc Reply is for Ref when the change of Key that was just made has been heard of; What is its
%% kind. Is it the first wait since the last flush?
-spec wait(Key :: term(), What :: term(), Ref :: term(), Reply :: term(), heard()) ->
          {IsFirst :: boolean(), heard()}.
wait(Key, What, Ref, Reply, #heard{new = New} = Heard) ->
    {New =:= [], Heard#heard{new = [{Key, What, Ref, Reply} | New]}}.

%% @doc Does anybody wait for the next flush?
-spec is_due(heard()) -> boolean().
is_due(#heard{new = New}) -> New =/= [].

%% @doc All changes up to Seq have been sent to these nodes. Answers whom to ask.
-spec begun(Seq :: non_neg_integer(), [node()], heard()) ->
          {Ask :: [node()], weft_core:effects(), heard()}.
begun(_Seq, _Nodes, #heard{new = []} = Heard) ->
    {[], [], Heard};
begun(Seq, Nodes, #heard{new = Waits, rounds = Rounds, late = Late} = Heard0) ->
    Missing = [Node || Node <- Nodes, not is_map_key(Node, Late)],
    Round = #round{seq = Seq, missing = Missing, waits = Waits},
    {Effects, Heard} = ended(Heard0#heard{new = [], rounds = joined(Round, Rounds)}),
    {Missing, Effects, Heard}.

joined(#round{waits = Waits} = Round, Rounds) ->
    case length(Rounds) >= ?ROUNDS_MAX andalso lists:last(Rounds) of
        #round{left = ?TICKS, waits = Before} ->
            lists:droplast(Rounds) ++ [Round#round{waits = Waits ++ Before}];
        _ ->
            Rounds ++ [Round]
    end.

%% @doc A node has heard of all changes up to Seq.
-spec heard(node(), Seq :: non_neg_integer(), heard()) -> {weft_core:effects(), heard()}.
heard(Node, Seq, #heard{rounds = Rounds, late = Late} = Heard) ->
    ended(Heard#heard{late = maps:remove(Node, Late),
                      rounds = [case Round of
                                    #round{seq = Asked} when Asked =< Seq -> without(Node, Round);
                                    _ -> Round
                                end || Round <- Rounds]}).

%% @doc A new session with a node begins; what has it still to be asked? It can not be late.
-spec again(node(), heard()) -> {{ok, Seq :: non_neg_integer()} | none, heard()}.
again(Node, #heard{rounds = Rounds, late = Late} = Heard) ->
    {case [Seq || #round{seq = Seq, missing = Missing} <- Rounds, lists:member(Node, Missing)] of
         [] -> none;
         Seqs -> {ok, lists:max(Seqs)}
     end, Heard#heard{late = maps:remove(Node, Late)}}.

%% @doc A node is not connected any more, or does not answer such questions.
-spec lost(node(), heard()) -> {weft_core:effects(), heard()}.
lost(Node, #heard{rounds = Rounds, late = Late} = Heard) ->
    ended(Heard#heard{late = maps:remove(Node, Late),
                      rounds = [without(Node, Round) || Round <- Rounds]}).

without(Node, #round{missing = Missing} = Round) ->
    Round#round{missing = lists:delete(Node, Missing)}.

%% @doc A second has passed.
-spec tick(heard()) -> {weft_core:effects(), heard()}.
tick(#heard{rounds = Rounds, late = Late} = Heard) ->
    Ticked = [Round#round{left = Left - 1} || #round{left = Left} = Round <- Rounds],
    Silent = [Node || #round{left = 0, missing = Missing} <- Ticked, Node <- Missing],
    ended(Heard#heard{late = maps:merge(Late, maps:from_keys(Silent, [])),
                      rounds = [Round#round{missing = Missing -- Silent}
                                || #round{missing = Missing} = Round <- Ticked]}).

ended(#heard{rounds = Rounds} = Heard) ->
    {Over, Going} = lists:partition(fun(#round{missing = Missing}) -> Missing =:= [] end, Rounds),
    {[{reply, Ref, Reply} || #round{waits = Waits} <- Over,
                             {_, _, Ref, Reply} <- lists:reverse(Waits)],
     Heard#heard{rounds = Going}}.

%% @doc Does anybody wait for an answer?
-spec is_waiting(heard()) -> boolean().
is_waiting(#heard{rounds = Rounds}) -> Rounds =/= [].

%% @doc Does anybody wait for this node to hear of a change of Key? What waits for its first flush
%% waits for all of Nodes.
-spec is_awaited(Key :: term(), node(), [node()], heard()) -> boolean().
is_awaited(Key, Node, Nodes, #heard{new = New, rounds = Rounds, late = Late}) ->
    lists:keymember(Key, 1, New) andalso lists:member(Node, Nodes)
        andalso not is_map_key(Node, Late)
        orelse lists:any(fun(#round{missing = Missing, waits = Waits}) ->
                                 lists:member(Node, Missing) andalso lists:keymember(Key, 1, Waits)
                         end, Rounds).

%% @doc Does anybody wait for a change of Key?
-spec is_waited(Key :: term(), heard()) -> boolean().
is_waited(Key, #heard{new = New, rounds = Rounds}) ->
    lists:any(fun(Waits) -> lists:keymember(Key, 1, Waits) end,
              [New | [Waits || #round{waits = Waits} <- Rounds]]).

%% @doc Those who wait for such a change of Key are answered by the caller.
-spec released(Key :: term(), What :: term(), heard()) -> {[wait()], heard()}.
released(Key, What, #heard{new = New, rounds = Rounds} = Heard) ->
    IsIts = fun({K, W, _, _}) -> K =:= Key andalso W =:= What end,
    {Its, Others} = lists:partition(IsIts, New),
    {[Wait || #round{waits = Waits} <- Rounds, Wait <- lists:filter(IsIts, Waits)] ++ Its,
     Heard#heard{new = Others,
                 rounds = [Round#round{waits = [W || W <- Waits, not IsIts(W)]}
                           || #round{waits = Waits} = Round <- Rounds]}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Somebody who sees all messages and notices of a simulated world and keeps a state of his
%% own: for what has to be counted while it happens.
%%
%% `sent' is called when a message leaves a node that has the link for it (it may be lost yet),
%% `notice' for each notice of a core; `happened', if there is that function, for each start of a
%% machine, what it is asked and told by the scenario, and its replies. Not here: changing anything.
-module(weft_sim_observer).

-callback sent(node(), Machine :: atom(), Msg :: term(), NowUs :: non_neg_integer(), State) -> State
              when State :: term().
-callback notice(node(), Machine :: atom(), Notice :: term(), NowUs :: non_neg_integer(), State) ->
              State when State :: term().
-callback happened(node(), Machine :: atom(), happening(), NowUs :: non_neg_integer(), State) ->
              State when State :: term().
-optional_callbacks([happened/5]).

-export_type([happening/0]).

-type happening() :: started
                   | {asked, Ref :: term(), Command :: term()}
                   | {replied, Ref :: term(), Reply :: term()}
                   | {told, Notice :: term()}.

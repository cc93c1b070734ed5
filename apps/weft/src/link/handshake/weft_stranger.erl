%% SPDX-License-Identifier: Apache-2.0
%% @doc The place of one connection among those that wait for their authentication. It is a word
%% that the process of the connection (the examiner) shares with the process that accepts
%% (`weft_strangers').
%%
%% The process that first changes the word to its last value decides: a connection is either
%% dropped, and its process killed, or it has settled, and the acceptor never touches it again.
%%
%% ```
%%   silent ──▶ heard ──▶ settled        by the examiner: `heard/1', `settle/2'
%%      └──────────┴────▶ dropped        by the acceptor: `drop/2'
%% '''
-module(weft_stranger).

-export([heard/1, settle/2]).
-export([new/0, state/1, drop/2]).
-export_type([place/0, word/0, state/0]).

-type word() :: atomics:atomics_ref().
%% `none': no newcomer can take its place.
-type place() :: {Acceptor :: pid(), word()} | none.
-type state() :: silent | heard | settled | dropped.

-define(SILENT, 0).
-define(HEARD, 1).
-define(SETTLED, 2).
-define(DROPPED, 3).

%% --- for the examiner -------------------------------------------------------------------------

%% @doc The peer has said what it wants, and was answered.
-spec heard(place()) -> ok.
heard(none) ->
    ok;
heard({_Acceptor, Word}) ->
    _ = atomics:compare_exchange(Word, 1, ?SILENT, ?HEARD),
    ok.

%% @doc The connection is about to be given to another process: from now on it is not dropped.
%% HasProven says whether the peer has authenticated itself. Ends the caller if the connection was
%% dropped just now. The acceptor gets `{weft_strangers, settled, Examiner, HasProven}'.
-spec settle(place(), HasProven :: boolean()) -> ok.
settle(none, _HasProven) ->
    ok;
settle({Acceptor, Word}, HasProven) ->
    %% Sent first: when the acceptor reads the word it has the message.
    Acceptor ! {weft_strangers, settled, self(), HasProven},
    case atomics:exchange(Word, 1, ?SETTLED) of
        ?DROPPED -> exit(normal);
        _ -> ok
    end.

%% --- for the acceptor -------------------------------------------------------------------------

%% @doc The word of a connection that has said nothing yet.
-spec new() -> word().
new() -> atomics:new(1, []).

-spec state(word()) -> state().
state(Word) -> name(atomics:get(Word, 1)).

%% @doc Drops a connection that is in this state; false if its state has changed.
-spec drop(silent | heard, word()) -> boolean().
drop(silent, Word) -> atomics:compare_exchange(Word, 1, ?SILENT, ?DROPPED) =:= ok;
drop(heard, Word) -> atomics:compare_exchange(Word, 1, ?HEARD, ?DROPPED) =:= ok.

name(?SILENT) -> silent;
name(?HEARD) -> heard;
name(?SETTLED) -> settled;
name(?DROPPED) -> dropped.

%% SPDX-License-Identifier: Apache-2.0
%% @doc An invariant that the simulator watches: one module per invariant.
%%
%% `view_changed' is called at once after a core wrote a view, with the world as it is at this
%% instant; for what must hold always. `settled' is called at the end of a run, after the faults
%% were healed and the time to converge has passed; for what must hold in the end. A checker has one
%% of the two, or both. A violation is told as text that names the nodes.
-module(weft_sim_checker).

-export([watching/1, asked_in_the_end/1]).
-export_type([verdict/0, checkers/0]).

-type verdict() :: ok | {violation, iolist()}.
-type checkers() :: [{module(), Options :: map()}].

-callback view_changed(Node :: node(), Key :: term(), Value :: term() | delete,
                       weft_sim_world:world(), Options :: map()) -> verdict().
-callback settled(weft_sim_world:world(), Options :: map()) -> verdict().

-optional_callbacks([view_changed/5, settled/2]).

%% @doc Those that want to know of each change.
-spec watching(checkers()) -> checkers().
watching(Checkers) ->
    with({view_changed, 5}, Checkers).

%% @doc Those that judge the end.
-spec asked_in_the_end(checkers()) -> checkers().
asked_in_the_end(Checkers) ->
    with({settled, 2}, Checkers).

with(Callback, Checkers) ->
    [Checker || {Module, _} = Checker <- Checkers,
                lists:member(Callback, Module:module_info(exports))].

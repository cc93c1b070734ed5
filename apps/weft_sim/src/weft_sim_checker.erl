%% SPDX-License-Identifier: Apache-2.0
%% @doc An invariant that the simulator watches: one module per invariant.
%%
%% `view_changed' is called at once after a core wrote a view, with the world as it is at this
%% instant; for what must hold always. `settled' is called at the end of a run, after the faults
%% were healed and the time to converge has passed; for what must hold in the end. A violation is
%% told as text that names the nodes.
-module(weft_sim_checker).

-export_type([verdict/0]).

-type verdict() :: ok | {violation, iolist()}.

-callback view_changed(Node :: node(), Key :: term(), Value :: term() | delete,
                       weft_sim_world:world(), Options :: map()) -> verdict().
-callback settled(weft_sim_world:world(), Options :: map()) -> verdict().

%% SPDX-License-Identifier: Apache-2.0
%% The circuits on one link: the state of weft_switch_state, for the modules that have their rules.

%% A circuit that ends here.
-record(local, {kind :: weft_wire:stream_kind(),
                session :: weft_switch_state:session(),
                input :: weft_switch_state:input(),
                far :: binary()}).

-record(switch, {link :: weft_switch_state:link(),
                 %% Of the node at the other end of the link.
                 name :: binary(),
                 next_label :: weft_wire:label(),
                 labels = #{} :: #{weft_wire:label() => #local{} | weft_relay:relay()},
                 lanes = [] :: weft_circuit_lanes:lanes(),
                 %% Who has asked for a circuit, and is told when the link comes up.
                 pending = [] :: weft_pending_circuits:pending(),
                 %% Sessions whose input is delivered by the process of this link.
                 hosted = #{} :: #{weft_switch_state:session() => []},
                 %% Whose end is told to this link.
                 watched = #{} :: #{weft_switch_state:session() | weft_switch_state:link() => []},
                 %% The lanes that streams of channels would have for themselves.
                 channels = #{} :: #{weft_switch_state:session() => weft_lane:key()},
                 relay_bytes_max :: pos_integer()}).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads the modules that the first connection of a node needs, once the node has booted.
%%
%% In interactive mode a module is loaded when it is first called. The carrier has many small
%% modules, so the first connection would wait for some forty files, and on a busy machine for a
%% second. They are loaded when the boot has ended: before, both would wait for the code server. A
%% module that is called earlier is loaded as usual. In embedded mode all modules are loaded
%% already. If a file is missing, the call that needs it fails.
-module(weft_preload).

-export([start/0, modules/1]).

-define(CARRIER,
        [weft_atom_cache, weft_bypass_queue, weft_circuit, weft_circuit_labels,
         weft_circuit_lanes, weft_counters, weft_dialer, weft_dist_socket, weft_ended_sessions,
         weft_epmd_client, weft_fair_queue_core, weft_fault_table, weft_fetch_core,
         weft_fragment_senders, weft_frame, weft_handshake, weft_handshake_core,
         weft_handshake_stream, weft_hello, weft_inbound_core, weft_input, weft_input_core,
         weft_input_proc, weft_lane, weft_lane_ping, weft_lane_plan, weft_lane_turns,
         weft_lane_watch, weft_lane_writer, weft_link, weft_link_admission, weft_link_check,
         weft_link_cores, weft_link_demand, weft_link_dial, weft_link_distribution,
         weft_link_handler, weft_link_lanes, weft_link_loss, weft_link_need, weft_link_peer,
         weft_link_rest, weft_link_state, weft_link_welcome, weft_next_hop, weft_outbound_core,
         weft_outlet, weft_outlet_core,
         weft_overlay, weft_parts, weft_path_search, weft_payload_fifo, weft_pending_circuits,
         weft_period, weft_relay, weft_sender_queues, weft_session, weft_session_core,
         weft_session_counters, weft_session_counts, weft_session_input, weft_session_memory,
         weft_session_socket, weft_stranger, weft_strangers, weft_strangers_core, weft_stream,
         weft_stream_core, weft_stream_end, weft_stream_tick, weft_switch, weft_switch_core,
         weft_switch_gateway, weft_switch_state, weft_tunnel, weft_view, weft_window_core,
         weft_wire]).
%% Modules of OTP that those, or the kernel, call for a connection.
-define(OTP, [crypto, dist_util, string, timer, unicode_util]).

%% The modules that TLS calls differ from release to release.
-define(TLS_APPLICATIONS, [crypto, public_key, ssl]).
-define(TLS, [asn1rt_nif, base64, calendar, sets]).

%% A boot may end with a function that does not return (`-eval').
-define(BOOT_MS, 5000).

%% @doc Loads the modules in a process of its own, soon.
-spec start() -> ok.
start() ->
    Transport = weft_config:get(transport),
    _ = spawn(fun() ->
                      await_boot(),
                      code:ensure_modules_loaded(modules(Transport))
              end),
    ok.

await_boot() ->
    case init:notify_when_started(self()) of
        started -> ok;
        ok -> receive {init, started} -> ok after ?BOOT_MS -> ok end
    end.

%% @doc The modules that a connection over that transport calls.
-spec modules(tcp | tls) -> [module()].
modules(tcp) ->
    ?CARRIER ++ ?OTP;
modules(tls) ->
    lists:usort(lists:append([modules(tcp), ?TLS | [of_application(App)
                                                    || App <- ?TLS_APPLICATIONS]])).

%% By its files: the application is not to be loaded before its time.
of_application(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> [];
        Dir -> beams(erl_prim_loader:list_dir(filename:join(Dir, "ebin")))
    end.

beams({ok, Files}) ->
    [list_to_atom(filename:rootname(File)) || File <- Files, filename:extension(File) =:= ".beam"];
beams(error) ->
    [].

%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads what the first connection of a node needs, once the node has booted.
%%
%% In interactive mode code is loaded when it is called first. The carrier has many small modules,
%% so the first connection would wait for some forty files, and on a busy machine for a second. They
%% are loaded when the boot has ended: before, both would wait for the code server. What is called
%% earlier is loaded as ever. In embedded mode all is there. A file that is missing is found out by
%% whoever calls it.
-module(weft_preload).

-export([start/0, modules/1]).

-define(CARRIER,
        [weft_apart, weft_atom_cache, weft_dialer, weft_dist_socket, weft_epmd_client,
         weft_fair_queue_core, weft_fault, weft_fragments, weft_frame, weft_handshake,
         weft_handshake_stream, weft_hello, weft_inbound_core, weft_input, weft_input_proc,
         weft_lane, weft_lane_plan, weft_lane_turns, weft_lane_watch, weft_lane_writer, weft_link,
         weft_link_cores, weft_link_dial, weft_link_lanes, weft_link_wish, weft_outbound_core,
         weft_outlet, weft_overlay, weft_parts, weft_path, weft_payload_fifo, weft_session,
         weft_session_counters, weft_strangers, weft_strangers_core, weft_stream, weft_switch,
         weft_tunnel, weft_view, weft_window_core, weft_wire]).
%% Of OTP, called by those or by the kernel for a connection.
-define(OTP, [crypto, dist_util, string, timer, unicode_util]).

%% What TLS calls differs from release to release.
-define(TLS_APPLICATIONS, [crypto, public_key, ssl]).
-define(TLS, [asn1rt_nif, base64, calendar, sets]).

%% A boot may end with a function that goes on and on (`-eval').
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

%% @doc What a connection over that transport calls.
-spec modules(tcp | tls) -> [module()].
modules(tcp) ->
    ?CARRIER ++ ?OTP;
modules(tls) ->
    lists:usort(lists:append([modules(tcp), ?TLS | [of_application(App)
                                                    || App <- ?TLS_APPLICATIONS]])).

%% By its files: an application is not to be loaded before its time.
of_application(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> [];
        Dir -> beams(erl_prim_loader:list_dir(filename:join(Dir, "ebin")))
    end.

beams({ok, Files}) ->
    [list_to_atom(filename:rootname(File)) || File <- Files, filename:extension(File) =:= ".beam"];
beams(error) ->
    [].

%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: gen_server, gen_statem and gen_event on the other node.
-module(weft_conformance_gen).

-include("weft_conformance.hrl").

-export([gen_server_call_by_name_and_by_pid/1, gen_server_cast/1,
         gen_server_casts_and_messages_in_order/1, gen_server_call_timeout_and_late_reply/1,
         gen_server_call_of_a_dead_server_is_noproc/1,
         gen_server_call_of_an_unregistered_name_is_noproc/1,
         gen_server_call_of_an_unknown_node_is_nodedown/1,
         gen_server_that_stops_in_a_call_replies_first/1, gen_server_that_dies_in_a_call/1,
         gen_server_multi_call/1, gen_server_multi_call_times_out/1, gen_server_abcast/1,
         gen_server_send_request/1, gen_server_request_collection/1, gen_server_stop/1,
         gen_server_start_monitor_from_afar/1, gen_server_large_call/1,
         gen_server_calls_by_many_processes/1, gen_statem_call_and_cast/1,
         gen_statem_postpones_until_the_state_changes/1, gen_statem_state_timeout/1,
         gen_statem_call_timeout/1, gen_event_notify_and_call/1, gen_event_sync_notify/1,
         gen_event_handler_added_and_deleted_from_afar/1,
         gen_event_supervised_handler_tells_of_its_end/1,
         sys_functions_on_a_far_process/1, proc_lib_start_link_from_afar/1]).

-define(SHORT_MS, 50).
-define(LARGE_BYTES, 1_000_000).

gen_server_call_by_name_and_by_pid(Context) ->
    {Far, Server} = server(Context),
    {hello, B} = gen_server:call(Server, {echo, hello}),
    {hello, B} = gen_server:call(Far, {echo, hello}, infinity),
    B = maps:get(b, Context).

gen_server_cast(Context) ->
    {Far, Server} = server(Context),
    ok = gen_server:cast(Server, {add, 1}),
    ok = gen_server:cast(Far, {add, 2}),
    [1, 2] = gen_server:call(Far, casts).

gen_server_casts_and_messages_in_order(Context) ->
    {Far, Server} = server(Context),
    [case N rem 3 of
         0 -> gen_server:cast(Far, {add, N});
         1 -> gen_server:cast(Server, {add, N});
         2 -> Server ! {add, N}
     end || N <- lists:seq(1, 300)],
    true = lists:seq(1, 300) =:= gen_server:call(Server, casts).

gen_server_call_timeout_and_late_reply(Context) ->
    {Far, Server} = server(Context),
    ?raises(exit, {timeout, {gen_server, call, [_, wait, ?SHORT_MS]}},
            gen_server:call(Server, wait, ?SHORT_MS)),
    gen_server:cast(Far, {release, too_late}),
    [] = gen_server:call(Far, casts),
    ?refute({_, too_late}).

gen_server_call_of_a_dead_server_is_noproc(Context) ->
    {Far, Server} = server(Context),
    ok = gen_server:stop(Server),
    ?raises(exit, {noproc, {gen_server, call, [Far, {echo, x}]}}, gen_server:call(Far, {echo, x})).

gen_server_call_of_an_unregistered_name_is_noproc(#{b := B}) ->
    Nobody = {conformance_nobody_has_this_name, B},
    ?raises(exit, {noproc, {gen_server, call, [Nobody, x]}}, gen_server:call(Nobody, x)).

gen_server_call_of_an_unknown_node_is_nodedown(_) ->
    ?raises(exit, {{nodedown, 'nobody@127.0.0.1'}, _},
            gen_server:call({any_name, 'nobody@127.0.0.1'}, x)).

gen_server_that_stops_in_a_call_replies_first(Context) ->
    {Far, Server} = server(Context),
    Monitor = monitor(process, Far),
    stopping = gen_server:call(Server, {stop, {shutdown, told}}),
    ?expect({'DOWN', Monitor, process, Far, {shutdown, told}}).

gen_server_that_dies_in_a_call(Context) ->
    {_, Server} = server(Context),
    ?raises(exit, {accident, {gen_server, call, _}}, gen_server:call(Server, {die, accident})).

gen_server_multi_call(#{a := A, b := B} = Context) ->
    {_, {Name, B}} = server(Context),
    {ok, Here} = weft_echo_server:start_link(Name),
    {Replies, ['nobody@127.0.0.1']} =
        gen_server:multi_call([A, B, 'nobody@127.0.0.1'], Name, {echo, x}),
    [{A, {x, A}}, {B, {x, B}}] = lists:sort(Replies),
    ok = gen_server:stop(Here).

gen_server_multi_call_times_out(Context) ->
    {Far, {Name, B}} = server(Context),
    {[], [B]} = gen_server:multi_call([B], Name, wait, ?SHORT_MS),
    gen_server:cast(Far, {release, too_late}),
    [] = gen_server:call(Far, casts),
    ?refute({_, too_late}).

gen_server_abcast(Context) ->
    {Far, {Name, B}} = server(Context),
    abcast = gen_server:abcast([B], Name, {add, x}),
    ok = weft_expect:until(fun() -> gen_server:call(Far, casts) =:= [x] end).

gen_server_send_request(Context) ->
    {Far, Server} = server(Context),
    Request = gen_server:send_request(Server, {echo, x}),
    {reply, {x, _}} = gen_server:receive_response(Request, ?DEADLINE_MS),
    Slow = gen_server:send_request(Server, wait),
    timeout = gen_server:wait_response(Slow, ?SHORT_MS),
    gen_server:cast(Far, {release, now}),
    {reply, now} = gen_server:wait_response(Slow, ?DEADLINE_MS),
    ok = gen_server:stop(Server),
    {error, {noproc, Server}} =
        gen_server:receive_response(gen_server:send_request(Server, {echo, x}), ?DEADLINE_MS).

gen_server_request_collection(Context) ->
    {_, Server} = server(Context),
    Add = fun(N, Ids) -> gen_server:send_request(Server, {echo, N}, N, Ids) end,
    Ids = lists:foldl(Add, gen_server:reqids_new(), lists:seq(1, 20)),
    ok = collect_echoes(Ids).

collect_echoes(Ids) ->
    case gen_server:receive_response(Ids, ?DEADLINE_MS, true) of
        {{reply, {N, _}}, N, Rest} -> collect_echoes(Rest);
        no_request -> ok
    end.

gen_server_stop(Context) ->
    {Far, Server} = server(Context),
    Monitor = monitor(process, Far),
    ok = gen_server:stop(Server, {shutdown, from_afar}, ?DEADLINE_MS),
    ?expect({'DOWN', Monitor, process, Far, {shutdown, from_afar}}),
    ?raises(exit, noproc, gen_server:stop(Server)).

gen_server_start_monitor_from_afar(#{b := B}) ->
    Start = fun() -> gen_server:start({local, name()}, weft_echo_server, [], []) end,
    {ok, Far} = erpc:call(B, Start),
    {error, {already_started, Far}} = erpc:call(B, fun() ->
        {registered_name, Name} = process_info(Far, registered_name),
        weft_echo_server:start(Name)
    end),
    ok = gen_server:stop(Far).

gen_server_large_call(Context) ->
    {Far, _} = server(Context),
    Bytes = rand:bytes(?LARGE_BYTES),
    {Bytes, _} = gen_server:call(Far, {echo, Bytes}, ?DEADLINE_MS).

gen_server_calls_by_many_processes(Context) ->
    {_, Server} = server(Context),
    Call = fun(N) -> fun() -> {N, _} = gen_server:call(Server, {echo, N}, ?DEADLINE_MS) end end,
    Callers = [spawn_monitor(Call(N)) || N <- lists:seq(1, 200)],
    [?expect({'DOWN', Monitor, process, Pid, normal}) || {Pid, Monitor} <- Callers].

gen_statem_call_and_cast(Context) ->
    Door = door(Context),
    shut = gen_statem:call(Door, state),
    ok = gen_statem:cast(Door, {note, 1}),
    ok = gen_statem:cast(Door, {note, 2}),
    [1, 2] = gen_statem:call(Door, notes),
    {reply, shut} =
        gen_statem:receive_response(gen_statem:send_request(Door, state), ?DEADLINE_MS).

gen_statem_postpones_until_the_state_changes(Context) ->
    Door = door(Context),
    First = gen_statem:send_request(Door, pass),
    Second = gen_statem:send_request(Door, pass),
    shut = gen_statem:call(Door, state),
    timeout = gen_statem:wait_response(First, 0),
    opened = gen_statem:call(Door, {open_for_ms, infinity}),
    {reply, passed} = gen_statem:wait_response(First, ?DEADLINE_MS),
    {reply, passed} = gen_statem:wait_response(Second, ?DEADLINE_MS).

gen_statem_state_timeout(Context) ->
    Door = door(Context),
    opened = gen_statem:call(Door, {open_for_ms, 1}),
    ok = weft_expect:until(fun() -> gen_statem:call(Door, state) =:= shut end).

gen_statem_call_timeout(Context) ->
    Door = door(Context),
    ?raises(exit, {timeout, {gen_statem, call, _}}, gen_statem:call(Door, pass, ?SHORT_MS)),
    opened = gen_statem:call(Door, {open_for_ms, infinity}),
    open = gen_statem:call(Door, state),
    ?refute({_, passed}).

gen_event_notify_and_call(Context) ->
    Manager = manager(Context),
    ok = gen_event:add_handler(Manager, weft_tally_handler, none),
    ok = gen_event:notify(Manager, one),
    ok = gen_event:notify(Manager, two),
    [one, two] = gen_event:call(Manager, weft_tally_handler, events),
    {error, bad_module} = gen_event:call(Manager, conformance_no_such_handler, events).

gen_event_sync_notify(Context) ->
    Manager = manager(Context),
    ok = gen_event:add_handler(Manager, {weft_tally_handler, x}, none),
    ok = gen_event:sync_notify(Manager, one),
    [one] = gen_event:call(Manager, {weft_tally_handler, x}, events).

gen_event_handler_added_and_deleted_from_afar(Context) ->
    Manager = manager(Context),
    ok = gen_event:add_handler(Manager, weft_tally_handler, self()),
    [weft_tally_handler] = gen_event:which_handlers(Manager),
    ok = gen_event:notify(Manager, one),
    ok = gen_event:delete_handler(Manager, weft_tally_handler, enough),
    ?expect({handler_ends, enough, [one]}),
    [] = gen_event:which_handlers(Manager).

gen_event_supervised_handler_tells_of_its_end(Context) ->
    Manager = manager(Context),
    ok = gen_event:add_sup_handler(Manager, weft_tally_handler, none),
    ok = gen_event:notify(Manager, crash),
    ?expect({gen_event_EXIT, weft_tally_handler, {'EXIT', crashed}}),
    [] = gen_event:which_handlers(Manager).

sys_functions_on_a_far_process(Context) ->
    {Far, Server} = server(Context),
    ok = sys:suspend(Server),
    ?raises(exit, {timeout, _}, gen_server:call(Far, {echo, x}, ?SHORT_MS)),
    ok = sys:resume(Server),
    {y, _} = gen_server:call(Far, {echo, y}),
    #{casts := [], waiting := none} = sys:get_state(Far),
    {status, Far, {module, gen_server}, _} = sys:get_status(Server).

proc_lib_start_link_from_afar(#{b := B}) ->
    process_flag(trap_exit, true),
    Init = fun(Parent) -> proc_lib:init_ack(Parent, {ok, self()}), ?expect(go), exit(gone) end,
    Near = self(),
    Far = proc_lib:spawn_link(B, fun() -> Init(Near) end),
    ?expect({ack, Far, {ok, Far}}),
    Far ! go,
    ?expect({'EXIT', Far, gone}).

%% ---- servers, which end with the case ----

server(#{b := B}) ->
    Name = name(),
    Far = started(B, fun() -> weft_echo_server:start(Name) end),
    {Far, {Name, B}}.

door(#{b := B}) ->
    Name = name(),
    _ = started(B, fun() -> weft_door_statem:start(Name) end),
    {Name, B}.

manager(#{b := B}) ->
    Name = name(),
    _ = started(B, fun() -> gen_event:start({local, Name}) end),
    {Name, B}.

started(Node, Start) ->
    {ok, Far} = erpc:call(Node, Start),
    Case = self(),
    spawn(Node, fun() -> end_with(Case, Far) end),
    Far.

end_with(Case, Server) ->
    Monitor = monitor(process, Case),
    receive {'DOWN', Monitor, process, Case, _} -> exit(Server, kill) end.

name() ->
    list_to_atom("conformance_" ++ integer_to_list(erlang:unique_integer([positive]))).

%% SPDX-License-Identifier: Apache-2.0
%% @doc The families `erlang_vm_dist_*' of prometheus.erl, under the same names, so that boards made
%% for them work: 25 gauges with the label peer, those of processes with a type, too. Pure.
%%
%% Counted things are gauges here because they are gauges there. What they are read from is gathered
%% by `weft_ops_peers'.
-module(weft_ops_dist_families).

-export([all/0]).

%% @doc All of them. They are read from the peers.
-spec all() -> [weft_ops_family:family()].
all() ->
    [family(Name, [peer], Help, of_part(inet, Key)) || {Name, Key, Help} <- sockets()] ++
        [family(Name, [peer], Help, of_part(port, Key)) || {Name, Key, Help} <- ports()] ++
        [family(Name, [peer, type], Help, of_processes(Key))
         || {Name, Key, Help} <- of_process()] ++
        [family(erlang_vm_dist_node_state, [peer],
                "State of the connection: 1 pending, 2 up_pending, 3 up.",
                fun(Peers) -> [{[Node], state(State)}
                               || #{node := Node, state := State} <- Peers] end),
         family(erlang_vm_dist_node_queue_size_bytes, [peer],
                "Bytes that wait between the Erlang code and the connection.",
                fun(Peers) -> [{[Node], Bytes}
                               || #{node := Node, queue_bytes := Bytes} <- Peers] end)].

family(Name, Labels, Help, Read) ->
    #{name => Name, type => gauge, labels => Labels, help => Help, from => peers, read => Read}.

of_part(Part, Key) ->
    fun(Peers) -> [{[Node], Value} || #{node := Node, Part := #{Key := Value}} <- Peers] end.

of_processes(Key) ->
    fun(Peers) -> [{[Node, Type], number(Value)}
                   || #{node := Node, processes := Processes} <- Peers,
                      {Type, #{Key := Value}} <- Processes]
    end.

sockets() ->
    [{erlang_vm_dist_recv_bytes, recv_oct, "Bytes that were received."},
     {erlang_vm_dist_recv_cnt, recv_cnt, "Packets that were received."},
     {erlang_vm_dist_recv_max_bytes, recv_max, "Size of the largest packet that was received."},
     {erlang_vm_dist_recv_avg_bytes, recv_avg, "Average size of packets that were received."},
     {erlang_vm_dist_recv_dvi_bytes, recv_dvi,
      "Average deviation of the size of packets that were received."},
     {erlang_vm_dist_send_bytes, send_oct, "Bytes that were sent."},
     {erlang_vm_dist_send_cnt, send_cnt, "Packets that were sent."},
     {erlang_vm_dist_send_max_bytes, send_max, "Size of the largest packet that was sent."},
     {erlang_vm_dist_send_avg_bytes, send_avg, "Average size of packets that were sent."},
     {erlang_vm_dist_send_pend_bytes, send_pend, "Bytes that wait to be sent by the socket."}].

ports() ->
    [{erlang_vm_dist_port_input_bytes, input, "Bytes that were read from the port."},
     {erlang_vm_dist_port_output_bytes, output, "Bytes that were written to the port."},
     {erlang_vm_dist_port_memory_bytes, memory, "Memory that the runtime system has for the port."},
     {erlang_vm_dist_port_queue_size_bytes, queue_size, "Bytes that wait in the port's queue."}].

of_process() ->
    [{erlang_vm_dist_proc_memory_bytes, memory, "Memory of the process."},
     {erlang_vm_dist_proc_heap_size_words, heap_size, "Size of the youngest heap generation."},
     {erlang_vm_dist_proc_min_heap_size_words, min_heap_size, "Least size of the heap."},
     {erlang_vm_dist_proc_min_bin_vheap_size_words, min_bin_vheap_size,
      "Least size of the virtual heap of binaries."},
     {erlang_vm_dist_proc_stack_size_words, stack_size, "Size of the stack."},
     {erlang_vm_dist_proc_total_heap_size_words, total_heap_size,
      "Size of all heap fragments, with the stack."},
     {erlang_vm_dist_proc_message_queue_len, message_queue_len, "Messages in the mailbox."},
     {erlang_vm_dist_proc_reductions, reductions, "Reductions of the process."},
     {erlang_vm_dist_proc_status, status,
      "Status of the process: 1 exiting, 2 suspended, 3 runnable, 4 garbage_collecting, "
      "5 running, 6 waiting."}].

number(Value) when is_integer(Value) -> Value;
number(exiting) -> 1;
number(suspended) -> 2;
number(runnable) -> 3;
number(garbage_collecting) -> 4;
number(running) -> 5;
number(waiting) -> 6.

state(pending) -> 1;
state(up_pending) -> 2;
state(up) -> 3;
state(_Other) -> undefined.

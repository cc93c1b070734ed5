%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft shell': an interactive Erlang shell that runs on a node of the cluster,
%% with this VM for its terminal, as `erl -remsh' has it.
%%
%% OTP 26 can start a shell in a VM that began without one. Before, the terminal driver is started
%% in place of the kernel's `user', which only could write.
-module(weft_cli_shell).

-export([shell/2]).

%% @doc weft shell NODE. Returns when the user leaves the shell.
-spec shell([string()], weft_argparse:given()) -> weft_cli:answer().
shell([Name], Options) ->
    weft_cli_cluster:with_nodes(
      Options, [Name],
      fun(_Cluster, [Node]) ->
              case net_kernel:connect_node(Node) of
                  true -> run(Node);
                  false -> {no_node, [Name, " is not running"]}
              end
      end).

run(Node) ->
    case weft_cli_terminal:is_terminal(input) of
        true -> on_terminal(Node);
        false -> {failed, "a shell needs a terminal; elsewhere use weft eval"}
    end.

%% When the shell is left nothing can be printed any more, so this is the end of the command.
-spec on_terminal(node()) -> no_return().
on_terminal(Node) ->
    io:format("Leave this shell of ~ts with ctrl-G q. (q() would stop the node.)~n", [Node]),
    {module, shell} = code:ensure_loaded(shell),
    Terminal = start(Node, shell, erlang:function_exported(shell, start_interactive, 1)),
    Monitor = monitor(process, Terminal),
    receive
        {'DOWN', Monitor, process, Terminal, _} -> halt(0)
    end.

%% The module is an argument because no function can be named that OTP 25 has not.
start(Node, Shell, true) ->
    ok = Shell:start_interactive({remote, atom_to_list(Node)}),
    whereis(user_drv);
start(Node, _Shell, false) ->
    _ = supervisor:terminate_child(kernel_sup, user),
    apply(user_drv, start, [['tty_sl -c -e', {Node, shell, start, []}]]).

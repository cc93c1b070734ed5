%% SPDX-License-Identifier: Apache-2.0
%% @doc Tools that show another node on a screen, for weft_tools_SUITE: what they print, and what
%% the windows of observer ask that node. Their reader is a process that plays the terminal.
%%
%% All of it runs on a node, and is about another one. That one has a process with much memory and
%% a name, by which it is known on a screen (`hold/1').
-module(weft_tools_screens).

-export([hold/1, etop/1, observer_cli/1, observer/1, observer_traces/1]).
%% Run on the node that is looked at.
-export([holder/2, probe/1]).

-define(WAIT_MS, 20000).
-define(HOLDER, much_memory).
-define(HELD_WORDS, 4000000).

%% @doc There is a process with that name, and more memory than any other, on the node.
-spec hold(node()) -> ?HOLDER.
hold(Node) ->
    _ = spawn(Node, ?MODULE, holder, [self(), ?HELD_WORDS div 2]),
    receive {?HOLDER, Pid} when node(Pid) =:= Node -> ?HOLDER
    after ?WAIT_MS -> error(no_holder)
    end.

%% @private
holder(From, Elements) ->
    Much = lists:seq(1, Elements),
    true = register(?HOLDER, self()),
    From ! {?HOLDER, self()},
    receive never -> Much end.

%% --- on a terminal ----------------------------------------------------------------------------

%% @doc Whether etop names the node, and the process.
-spec etop(node()) -> shown | {not_shown, string()}.
etop(Node) ->
    Etop = at_terminal(fun() -> etop:start([{node, Node}, {output, text}, {tracing, off},
                                            {interval, 1}]) end),
    Shown = until_said([atom_to_list(Node), atom_to_list(?HOLDER)], ""),
    exit(Etop, kill),
    Shown.

%% @doc What observer_cli returns after it has shown the process, and `q' was typed.
-spec observer_cli(node()) -> term().
observer_cli(Node) ->
    _ = at_terminal(fun() -> observer_cli:start(Node) end),
    case until_said([atom_to_list(?HOLDER)], "") of
        shown ->
            receive {asked, From, Ref} -> From ! {io_reply, Ref, "q\n"}
            after ?WAIT_MS -> error(no_line_is_read)
            end,
            receive {returned, What} -> What after ?WAIT_MS -> does_not_return end;
        NotShown ->
            NotShown
    end.

at_terminal(Run) ->
    Self = self(),
    Terminal = spawn_link(fun() -> terminal(Self) end),
    spawn(fun() -> group_leader(Terminal, self()), Self ! {returned, Run()} end).

%% The part of the io protocol that output needs, and lines that somebody else types.
terminal(To) ->
    receive
        {io_request, From, Ref, {put_chars, _, Text}} -> said(Text, From, Ref, To);
        {io_request, From, Ref, {put_chars, _, M, F, A}} -> said(apply(M, F, A), From, Ref, To);
        {io_request, From, Ref, {get_line, _, _}} -> To ! {asked, From, Ref};
        {io_request, From, Ref, _} -> From ! {io_reply, Ref, {error, request}}
    end,
    terminal(To).

said(Text, From, Ref, To) ->
    To ! {said, unicode:characters_to_list(Text)},
    From ! {io_reply, Ref, ok}.

until_said(Words, Said) ->
    case [Word || Word <- Words, string:find(Said, Word) =:= nomatch] of
        [] -> shown;
        _ ->
            receive {said, Text} -> until_said(Words, Said ++ Text)
            after ?WAIT_MS -> {not_shown, Said}
            end
    end.

%% --- windows of observer ----------------------------------------------------------------------

%% @doc What each of its windows asks a node, in the way it does (`observer_sys_wx' and others).
-spec observer(node()) -> #{atom() => term()}.
observer(Node) ->
    #{system => proplists:get_value(otp_release, asked(Node, sys_info, [])),
      load_charts => load(Node),
      applications => applications(Node),
      processes => processes(Node),
      ports => lists:usort([node(proplists:get_value(port_id, Port))
                            || Port <- asked(Node, get_port_list, [])]),
      sockets => is_list(asked(Node, socket_info, [])) andalso asked(Node, get_socket_list, []),
      tables => table(Node),
      process => process(Node)}.

asked(Node, Function, Arguments) ->
    rpc:call(Node, observer_backend, Function, Arguments).

load(Node) ->
    Pid = spawn_link(Node, observer_backend, fetch_stats, [self(), 100]),
    receive
        {stats, 1, Schedulers, {{input, _}, {output, _}}, Memory} ->
            Pid ! stop,
            {is_list(Schedulers), proplists:get_value(total, Memory) > 0}
    after ?WAIT_MS -> nothing
    end.

%% Its processes of weft, where the window draws a tree of them.
applications(Node) ->
    {ok, Pid} = appmon_info:start_link(Node, self(), []),
    appmon_info:app_ctrl(Pid, Node, true, []),
    Apps = receive {delivery, Pid, app_ctrl, Node, Told} -> [App || {_, App, _} <- Told]
           after ?WAIT_MS -> nothing
           end,
    appmon_info:app(Pid, weft, true, []),
    Root = receive {delivery, Pid, app, weft, {_Root, Names, _, _}} -> length(Names) > 1
           after ?WAIT_MS -> nothing
           end,
    unlink(Pid),
    exit(Pid, kill),
    {node(Pid), lists:member(weft, Apps), Root}.

processes(Node) ->
    Pid = spawn_link(Node, observer_backend, etop_collect, [self()]),
    receive
        {Pid, Info} when element(1, Info) =:= etop_info ->
            Rows = lists:last(tuple_to_list(Info)),
            {lists:usort([node(element(2, Row)) || Row <- Rows]),
             [] =/= [Row || Row <- Rows, lists:member(?HOLDER, tuple_to_list(Row))]}
    after ?WAIT_MS -> nothing
    end.

table(Node) ->
    Tables = asked(Node, get_table_list, [ets, [{unread_hidden, true}, {sys_hidden, false}]]),
    Pid = asked(Node, get_table, [self(), ac_tab, ets]),
    Rows = receive {Pid, [[_ | _] | _]} -> rows after ?WAIT_MS -> nothing end,
    {[] =/= [Table || Table <- Tables, proplists:get_value(name, Table) =:= ac_tab], Rows}.

%% The window of one process: its state, too. (The window waits for 200 ms.)
process(Node) ->
    Pid = rpc:call(Node, erlang, whereis, [kernel_sup]),
    {registered_name, Name} = rpc:call(Node, erlang, process_info, [Pid, registered_name]),
    {Name, element(1, rpc:call(Node, sys, get_status, [Pid, ?WAIT_MS]))}.

%% @doc A call there, as the trace window gets it. It comes by a TCP connection of its own, which
%% `ttb' opens to the host of the node.
-spec observer_traces(node()) -> {node(), called} | nothing.
observer_traces(Node) ->
    Self = self(),
    Write = fun(Trace) -> Self ! {traced, Trace} end,
    {ok, _} = ttb:tracer([Node], [{file, {local, "ttb"}}, {shell, {only, Write}}]),
    {ok, _} = ttb:p(all, [call]),
    {ok, _} = ttb:tpl(?MODULE, probe, 1, []),
    1 = rpc:call(Node, ?MODULE, probe, [1]),
    Seen = receive
               {traced, Trace} when element(3, Trace) =:= call ->
                   case element(2, Trace) of
                       {Pid, _, _} -> {node(Pid), called};
                       Pid -> {node(Pid), called}
                   end
           after ?WAIT_MS -> nothing
           end,
    _ = ttb:stop([nofetch]),
    Seen.

%% @private
probe(Term) -> Term.

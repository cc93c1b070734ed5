%% SPDX-License-Identifier: Apache-2.0
%% @doc What an interrupt (Ctrl-C) does to a command: it ends, what was measured is in its report if
%% it makes one, and the exit status is 130, as the shell has it.
%%
%% `bin/bench' makes SIGTERM of an interrupt. The command runs in a process of its own, which is
%% killed. Then what the command has said is to be done in this case (`afterwards/2') is done. A
%% command that can end by itself (`gently/0') gets the message `weft_bench_interrupt' first, and is
%% killed if it is interrupted again. Nodes end with the emulator, whose input they read, and the
%% emulator ends in the same way with `bin/bench', when nobody is left who could interrupt it.
-module(weft_bench_interrupt).
-behaviour(gen_event).

-export([run/1, at_end_of_input/0, afterwards/2, gently/0]).
-export([command/1, init/1, handle_event/2, handle_call/2]).

-define(INTERRUPTED, 130).
%% 2 is for arguments that are wrong, and for results that can not be written.
-define(CRASHED, 3).
-define(AGAIN_MS, 10000).

-type status() :: non_neg_integer().

%% @doc The exit status of a command: its own, 130 if it is interrupted, 3 if it crashes. Once in an
%% emulator, from which on SIGTERM is for the command.
-spec run(fun(() -> status())) -> status().
run(Command) ->
    true = register(?MODULE, self()),
    ok = gen_event:delete_handler(erl_signal_server, erl_signal_handler, []),
    ok = gen_event:add_handler(erl_signal_server, ?MODULE, self()),
    wait(spawn_monitor(?MODULE, command, [Command]), #{}).

%% @doc From now on the end of the standard input is an interrupt, and soon after it another one.
%% Whoever started this emulator holds the other end, and writes nothing to it.
-spec at_end_of_input() -> ok.
at_end_of_input() ->
    _ = spawn(fun() ->
                      Input = open_port({fd, 0, 0}, [in, eof]),
                      receive {Input, eof} -> interrupt_twice() end
              end),
    ok.

interrupt_twice() ->
    _ = whereis(?MODULE) =:= undefined andalso halt(?INTERRUPTED),
    say("~nbin/bench is gone", []),
    ?MODULE ! {?MODULE, interrupted},
    receive after ?AGAIN_MS -> ?MODULE ! {?MODULE, interrupted} end.

%% @private
-spec command(fun(() -> status())) -> no_return().
command(Command) -> exit({?MODULE, Command()}).

%% @doc What is to be done if the command is interrupted from now on, in place of what has the same
%% key. Does nothing where nobody waits for interrupts.
-spec afterwards(Key :: atom(), fun(() -> term())) -> ok.
afterwards(Key, Fun) -> tell({afterwards, Key, Fun}).

%% @doc The calling process, which is that of the command, ends soon after a message
%% `weft_bench_interrupt'.
-spec gently() -> ok.
gently() -> tell({gently, self()}).

tell(Message) ->
    case whereis(?MODULE) of
        undefined -> ok;
        Pid -> Pid ! {?MODULE, Message}, ok
    end.

wait({_, Monitor} = Command, Told) ->
    receive
        {?MODULE, {afterwards, Key, Fun}} ->
            wait(Command, Told#{Key => Fun});
        {?MODULE, {gently, Pid}} ->
            wait(Command, Told#{gently => Pid});
        {?MODULE, interrupted} ->
            interrupted(Command, Told);
        {'DOWN', Monitor, process, _, {?MODULE, Status}} ->
            Status;
        {'DOWN', Monitor, process, _, Reason} ->
            say("the command has crashed: ~0tp", [Reason]),
            ?CRASHED
    end.

interrupted(Command, #{gently := Pid} = Told) ->
    say("~ninterrupted; what is under way is ended. Interrupt again to end at once.", []),
    Pid ! ?MODULE,
    case wait(Command, maps:remove(gently, Told)) of
        %% 1: not all of it was well, such as operations that were due now.
        Status when Status =< 1 -> ?INTERRUPTED;
        Status -> Status
    end;
interrupted({Pid, Monitor}, Told) ->
    say("~ninterrupted", []),
    true = exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    ok = weft_bench_place:remove_own(),
    ok = weft_bench_quota:remove_own(),
    ok = weft_bench_tls:remove_own(),
    _ = [try Fun()
         catch Class:Reason -> say("~0tp", [{Class, Reason}])
         end || Fun <- maps:values(Told)],
    ?INTERRUPTED.

%% Whoever read it may be gone as well.
say(Format, Arguments) ->
    try io:put_chars(standard_error, [weft_bench_error:text(Format, Arguments), $\n])
    catch error:_ -> ok
    end.

%% --- the handler of signals -------------------------------------------------------------------

%% @private
init(Waiting) -> {ok, Waiting}.

%% @private Other signals do what they do in OTP.
handle_event(sigterm, Waiting) ->
    Waiting ! {?MODULE, interrupted},
    {ok, Waiting};
handle_event(Signal, Waiting) ->
    {ok, _} = erl_signal_handler:handle_event(Signal, []),
    {ok, Waiting}.

%% @private
handle_call(Request, Waiting) -> {ok, weft_stray:call(Request), Waiting}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node does to itself when a schedule says so. Called on that node.
%%
%% Faults of links that last are kept by `weft_chaos_keeper'. A pause is ended by a process of the
%% operating system; `wake/1', called on any node of the same machine, ends it early. Faults are
%% refused unless the node has them enabled; ending them is not.
-module(weft_chaos_agent).

-export([do/1, do/2, heal_all/0, wake/1, faults/0]).
-export_type([pause/0]).

%% So long an answer has to get out before this node ends, or stands still (the first sleep below):
%% only who has got it can end a pause early.
-define(ANSWER_MS, 200).

%% Somebody has to be awake to wake this node: a process of the system, given the file, the process
%% of the node, and how long, as a part of a second and in whole ones. It looks each second, so that
%% it does not outlive a pause that was ended early, or the node.
-define(KEEP_PAUSED,
        "sleep 0.2; [ -e $0 ] || exit; kill -STOP $1; [ -e $0 ] || kill -CONT $1; sleep $2; "
        "left=$3; while [ $left -gt 0 ] && [ -e $0 ] && kill -0 $1; do "
        "sleep 1; left=$((left - 1)); done; rm $0 && kill -CONT $1").

%% How long the node of the one who asks may take to say whether that still waits, which it does for
%% twice as long.
-define(ASKER_MS, 2000).

%% A pause that is under way. Who removes the file may end it: so its own end does not end a later
%% pause, and on a machine where the file is not nothing is done.
-type pause() :: #{os_pid := string(), file := file:filename()}.

%% @doc Carries out one verb, the side of this node of it, unless Asker has given up meanwhile, as
%% this node stood still: to a schedule that step has failed. The error is a text.
-spec do(weft_chaos_schedule:verb(), Asker :: pid()) -> {ok, term()} | {error, string()}.
do(Verb, Asker) ->
    try erpc:call(node(Asker), erlang, is_process_alive, [Asker], ?ASKER_MS) of
        true -> do(Verb);
        false -> {error, "it was asked for too late"}
    catch
        %% The answer would not get there either.
        _:_ -> {error, "nobody knows whether it is still asked for"}
    end.

%% @doc The same, whatever becomes of the one who asks: one of the version before.
-spec do(weft_chaos_schedule:verb()) -> {ok, term()} | {error, string()}.
do({heal, _, _} = Verb) ->
    enabled(Verb);
do(Verb) ->
    case application:get_env(weft_chaos, enabled, false) of
        true -> enabled(Verb);
        _ -> {error, "chaos is not enabled: set {weft_chaos, [{enabled, true}]}"}
    end.

enabled({crash, _Node}) ->
    %% As kill -9 does: no goodbye to anybody. The answer gets out first.
    _ = spawn(fun() -> receive after ?ANSWER_MS -> signal("KILL") end end),
    {ok, crashing};
enabled({pause, _Node, ForMs}) ->
    #{os_pid := OsPid, file := File} = Pause = pause(),
    case file:write_file(File, <<>>, [exclusive]) of
        ok ->
            _ = os:cmd(io_lib:format("sh -c '~ts' ~ts ~ts ~.3f ~b > /dev/null 2>&1 &",
                                     [?KEEP_PAUSED, File, OsPid, (ForMs rem 1000) / 1000,
                                      ForMs div 1000])),
            {ok, Pause};
        {error, Reason} ->
            {error, lists:flatten(io_lib:format("~ts: ~ts", [File, file:format_error(Reason)]))}
    end;
enabled({resume, _Node}) ->
    %% Whoever can answer is awake; the runner has woken this node before it asked.
    {ok, awake};
enabled({cut, A, B, ForMs}) ->
    answer(weft_chaos_keeper:keep({cut, other(A, B)}, [], ForMs));
enabled({cut_one_way, _From, To, ForMs}) ->
    answer(weft_chaos_keeper:keep({cut_one_way, To}, [], ForMs));
enabled({delay, A, B, MinMs, MaxMs, ForMs}) ->
    answer(weft_chaos_keeper:keep({delay, other(A, B)}, [MinMs, MaxMs], ForMs));
enabled({loss, A, B, Percent, ForMs}) ->
    answer(weft_chaos_keeper:keep({loss, other(A, B)}, [Percent], ForMs));
enabled({heal, A, B}) ->
    answer(weft_chaos_keeper:heal(other(A, B)));
enabled({break, A, B}) ->
    answer(weft_fault:break(other(A, B)));
enabled({kill, _Node, Options}) ->
    weft_chaos_monkey:kill_one(Options).

pause() ->
    OsPid = os:getpid(),
    #{os_pid => OsPid,
      file => lists:concat(["/tmp/weft_chaos_pause_", OsPid, "_", erlang:unique_integer([positive]),
                            "_", erlang:system_time()])}.

other(A, B) when A =:= node() -> B;
other(A, B) when B =:= node() -> A.

signal(Name) -> os:cmd(["kill -", Name, " ", os:getpid()]).

answer(ok) -> {ok, done};
answer({error, disabled}) ->
    {error, "faults on links are not enabled: set {weft, [{tuning, #{faults => true}}]}"}.

%% @doc Ends a pause of a node of this machine; `false' if it is over, or of another machine.
-spec wake(pause()) -> boolean().
wake(#{os_pid := OsPid, file := File}) ->
    case file:delete(File) of
        ok -> _ = os:cmd(["kill -CONT ", OsPid]), true;
        {error, _} -> false
    end.

%% @doc Ends all faults of links here, now.
-spec heal_all() -> ok.
heal_all() -> weft_chaos_keeper:heal_all().

%% @doc The faults of links that are kept here.
-spec faults() -> [weft_chaos_keeper:fault()].
faults() -> weft_chaos_keeper:faults().

%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node does to itself when a schedule says so. Called on that node.
%%
%% Each fault that lasts has a process here that ends it in time, whatever becomes of the caller.
%% Faults are refused unless the node has them enabled.
-module(weft_chaos_agent).

-export([do/1, heal_all/0, faults/0]).
-export([keep/3]).

%% @doc Carries out one verb, the side of this node of it. The error is a text.
-spec do(weft_chaos_schedule:verb()) -> {ok, term()} | {error, string()}.
do(Verb) ->
    case application:get_env(weft_chaos, enabled, false) of
        true -> enabled(Verb);
        _ -> {error, "chaos is not enabled: set {weft_chaos, [{enabled, true}]}"}
    end.

enabled({crash, _Node}) ->
    %% As kill -9 does: no goodbye to anybody. The answer gets out first.
    _ = spawn(fun() -> receive after 50 -> signal("KILL") end end),
    {ok, crashing};
enabled({pause, _Node, ForMs}) ->
    %% Somebody has to be awake to wake us.
    _ = os:cmd(io_lib:format("(sleep 0.05; kill -STOP ~ts; sleep ~.3f; kill -CONT ~ts) "
                             "> /dev/null 2>&1 &", [os:getpid(), ForMs / 1000, os:getpid()])),
    {ok, pausing};
enabled({cut, A, B, ForMs}) ->
    lasting({cut, other(A, B)}, ForMs, fun weft_fault:cut/1);
enabled({delay, A, B, MinMs, MaxMs, ForMs}) ->
    lasting({delay, other(A, B)}, ForMs, fun(Node) -> weft_fault:delay(Node, MinMs, MaxMs) end);
enabled({break, A, B}) ->
    answer(weft_fault:break(other(A, B)));
enabled({kill, _Node, Options}) ->
    weft_chaos_monkey:kill_one(Options).

other(A, B) when A =:= node() -> B;
other(A, B) when B =:= node() -> A.

signal(Name) -> os:cmd(["kill -", Name, " ", os:getpid()]).

answer(ok) -> {ok, done};
answer({error, disabled}) ->
    {error, "faults on links are not enabled: set {weft, [{faults, true}]}"}.

%% The process that keeps a fault is registered, for those who look.
lasting({_, Node} = Fault, ForMs, Begin) ->
    case Begin(Node) of
        ok ->
            Caller = self(),
            Keeper = spawn(?MODULE, keep, [Caller, Fault, ForMs]),
            receive {Keeper, kept} -> {ok, done} end;
        Error ->
            answer(Error)
    end.

%% @private A later fault of the same kind on the same link takes its place.
-spec keep(pid(), {cut | delay, node()}, pos_integer()) -> ok.
keep(Caller, {_, Node} = Fault, ForMs) ->
    Name = name(Fault),
    case whereis(Name) of
        undefined -> ok;
        Former -> exit(Former, kill), wait_gone(Former)
    end,
    true = register(Name, self()),
    Caller ! {self(), kept},
    receive heal -> ok after ForMs -> ok end,
    _ = weft_fault:heal(Node),
    ok.

wait_gone(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

name({What, Node}) -> list_to_atom(lists:concat(["weft_chaos_", What, "_", Node])).

%% @doc Ends all faults of links here, now.
-spec heal_all() -> ok.
heal_all() ->
    lists:foreach(fun(Name) -> whereis(Name) ! heal end, faults()),
    _ = weft_fault:heal(),
    ok.

%% @doc The faults that are kept here, by the names of their keepers.
-spec faults() -> [atom()].
faults() ->
    [Name || Name <- registered(), is_fault(atom_to_list(Name))].

is_fault(Name) ->
    lists:prefix("weft_chaos_cut_", Name) orelse lists:prefix("weft_chaos_delay_", Name).

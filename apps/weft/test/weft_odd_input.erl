%% SPDX-License-Identifier: Apache-2.0
%% @doc What a node is not made for: calls of exported functions with any kind of argument at each
%% place, and messages that nobody asked for. That a caller fails is as it should be; the registered
%% processes have to stay. For the node that is to run it.
-module(weft_odd_input).

-export([calls/1, calls/2, strays/0, strays/1, registered_of_weft/0]).

%% For those calls of a function that have not ended by then.
-define(CALL_MS, 300).
%% They end what is started, on purpose.
-define(NOT, [start_link, stop, leave, init, code_change, terminate, config_change]).
%% What a process of weft registers itself as.
-define(NAMES, ["weft_", "s_group"]).
%% How far apart in the list the arguments of one call are.
-define(STRIDES, [1, 7, 11]).

arguments() ->
    [atom, node(), 'a@nowhere', nonode@nohost, undefined, all, infinity, [a | b], [], "text",
     [node()], [node() | a], [{a, 1}], [{a, 1} | b], <<"key">>, <<1:3>>, {}, {a, b}, {via, a, b},
     {[a | b], c}, {add, [a | b]}, #{}, #{a => [b | c]}, #{[a | b] => c}, #{timeout_ms => -1},
     -1, 0, 1, 1.5, 1 bsl 70, self(), make_ref(), fun() -> ok end, fun(_) -> ok end,
     fun erlang:'+'/2].

%% @doc The registered processes that were ended by such calls, with the modules whose it was.
-spec calls([module()]) -> [{module(), [Name :: atom()]}].
calls(Modules) -> calls(Modules, []).

%% @doc The same without these functions.
-spec calls([module()], Not :: [atom()]) -> [{module(), [Name :: atom()]}].
calls(Modules, Not) ->
    [{Module, Ended} || Module <- Modules, Ended <- [ended_by(Module, Not ++ ?NOT)], Ended =/= []].

ended_by(Module, Not) ->
    ended_after(fun() ->
                    [ok = called(Module, Function, Arity)
                     || {Function, Arity} <- exported(Module), Arity >= 1,
                        not lists:member(Function, Not)]
                end).

%% What a process answers, it answers after what it was sent before.
ended_after(Do) ->
    %% That name belongs to a change while it is under way, also after its caller was ended.
    Before = [{Name, whereis(Name)} || Name <- registered(), Name =/= weft_one_change],
    Do(),
    [_ = catch gen_server:call(Name, foo) || Name <- registered_of_weft()],
    [Name || {Name, Pid} <- Before, whereis(Name) =/= Pid].

%% @doc What processes of weft are registered as.
-spec registered_of_weft() -> [atom()].
registered_of_weft() ->
    lists:sort([Name || Name <- registered(),
                        lists:any(fun(Start) -> lists:prefix(Start, atom_to_list(Name)) end,
                                  ?NAMES)]).

%% @doc The messages that have ended registered processes, with these.
-spec strays() -> [{Message :: term(), [Name :: atom()]}].
strays() ->
    [{Stray, Ended} || Stray <- forms(),
                       Ended <- [ended_after(fun() -> [Name ! Stray || Name <- registered_of_weft()]
                                             end)],
                       Ended =/= []].

%% @doc The messages that have ended processes of these modules, with the modules. (An exit of
%% somebody else may end them, as its signal does.)
-spec strays([module()]) -> [{Message :: term(), [module()]}].
strays(Modules) ->
    Processes = [{Module, Pid} || Pid <- processes(), {dictionary, Dictionary}
                                      <- [process_info(Pid, dictionary)],
                                  {_, {Module, _, _}} <- [lists:keyfind('$initial_call', 1,
                                                                        Dictionary)],
                                  lists:member(Module, Modules)],
    [] = Modules -- [Module || {Module, _} <- Processes],
    [{Stray, Ended} || Stray <- forms(), not is_tuple(Stray) orelse element(1, Stray) =/= 'EXIT',
                       Ended <- [[Module || {Module, Pid} <- Processes,
                                            not outlives(Pid, Stray)]],
                       Ended =/= []].

outlives(Pid, Stray) ->
    Pid ! Stray,
    _ = catch gen_server:call(Pid, foo),
    is_process_alive(Pid).

%% Such as come late, or of what the process did not ask.
forms() ->
    Ref = make_ref(),
    [{'DOWN', Ref, port, hd(erlang:ports()), normal},
     {'DOWN', Ref, process, self(), noproc},
     {'DOWN', Ref, process, {name, 'a@nowhere'}, noconnection},
     {'EXIT', self(), normal}, {'EXIT', self(), reason}, {Ref, late}, {timeout, Ref, late}, timeout,
     {nodeup, 'a@nowhere'}, {nodedown, 'a@nowhere'}, {nodeup, 'a@nowhere', #{}},
     {nodedown, 'a@nowhere', #{}}, {ssl_closed, none}, {tcp, none, <<>>},
     {'ETS-TRANSFER', none, self(), none}, look, check, tick, retry, attempt,
     {weft_link, message, 'a@nowhere', odd}, {timer, odd}].

%% In the source: for tests all is exported.
exported(Module) ->
    {ok, {Module, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(code:which(Module), [abstract_code]),
    lists:append([Functions || {attribute, _, export, Functions} <- Forms]).

called(Module, Function, Arity) ->
    Calls = [spawn_monitor(fun() ->
                               _ = apply(Module, Function, lists:sublist(Odd, Arity)),
                               exit(normal)
                           end) || Odd <- lines()],
    Deadline = erlang:monotonic_time(millisecond) + ?CALL_MS,
    [ok = ended(Call, max(0, Deadline - erlang:monotonic_time(millisecond))) || Call <- Calls],
    ok.

lines() ->
    Odd = arguments(),
    Count = length(Odd),
    [[lists:nth(1 + (First + Place * Stride) rem Count, Odd) || Place <- lists:seq(0, 7)]
     || Stride <- ?STRIDES, First <- lists:seq(0, Count - 1)].

ended({Pid, Ref}, WaitMs) ->
    receive {'DOWN', Ref, process, Pid, _} -> ok
    after WaitMs ->
        exit(Pid, kill),
        receive {'DOWN', Ref, process, Pid, _} -> ok end
    end.

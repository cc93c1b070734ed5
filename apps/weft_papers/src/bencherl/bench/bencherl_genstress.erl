%% SPDX-License-Identifier: Apache-2.0
%% @doc Calls to a server whose clients have many other messages in their mailboxes: plain request
%% and answer, and gen_server:call.
-module(bencherl_genstress).

-export([bench_args/2, run/3]).

-behaviour(gen_server).
-export([init/1, handle_call/3, handle_cast/2]).

%% @private
-spec bench_args(short | intermediate | long, list()) -> [list()].
bench_args(Version, Conf) ->
    Cores = proplists:get_value(number_of_cores, Conf),
    {Clients, Calls, Queued} = case Version of
                                   short -> {16, 400, 800};
                                   intermediate -> {16, 1000, 1100};
                                   long -> {16, 4700, 7900}
                               end,
    [[Kind, Clients, Calls * Cores, Queued] || Kind <- [proc_call, gen_call]].

%% @private
-spec run(list(), [node()], list()) -> ok | {error, term()}.
run([Kind, Clients, Calls, Queued], _Slaves, _Conf) ->
    Server = start(Kind),
    Starter = self(),
    Pids = [spawn_link(fun() -> client(Kind, Server, Calls, Queued, Starter) end)
            || _ <- lists:seq(1, Clients)],
    Sum = lists:sum([receive {done, Pid, Answers} -> Answers end || Pid <- Pids]),
    ok = stop(Kind, Server),
    io:format("answers sum up to ~b~n", [Sum]).

start(proc_call) -> spawn_link(fun server/0);
start(gen_call) -> {ok, Server} = gen_server:start_link(?MODULE, [], []), Server.

stop(proc_call, Server) -> Server ! stop, ok;
stop(gen_call, Server) -> gen_server:stop(Server).

client(Kind, Server, Calls, Queued, Starter) ->
    _ = [self() ! {queued, N} || N <- lists:seq(1, Queued)],
    Starter ! {done, self(), calls(Kind, Server, Calls, 0)}.

calls(_Kind, _Server, 0, Sum) -> Sum;
calls(Kind, Server, Left, Sum) ->
    calls(Kind, Server, Left - 1, Sum + call(Kind, Server, Left)).

call(gen_call, Server, Number) ->
    gen_server:call(Server, {echo, Number}, infinity);
call(proc_call, Server, Number) ->
    Ref = make_ref(),
    Server ! {Ref, self(), Number},
    receive {Ref, Answer} -> Answer end.

server() ->
    receive
        {Ref, From, Number} -> From ! {Ref, Number}, server();
        stop -> ok
    end.

%% @private
init([]) -> {ok, none}.

%% @private
handle_call({echo, Number}, _From, none) -> {reply, Number, none}.

%% @private
handle_cast(Request, none) -> {stop, {unexpected_cast, Request}, none}.

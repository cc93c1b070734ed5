%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps brokers running between the cases of a suite: each case is another process, and a
%% broker belongs to the one that started it.
-module(weft_amqp_test_keeper).

-export([start/1, stop/1, kill/2, start_again/2, join/1, ctl/2, url/1, url/3, port/1]).

-define(MS, 240000).

%% @doc Starts brokers, all at once, and a process that keeps them.
-spec start([weft_amqp_test_broker:broker()]) -> pid().
start(Brokers) ->
    Keeper = spawn(fun() -> keep([weft_amqp_test_broker:start(Broker) || Broker <- Brokers]) end),
    _ = ask(Keeper, fun(Running) -> {ok, Running} end),
    Keeper.

-spec stop(pid()) -> ok.
stop(Keeper) ->
    ask(Keeper, fun(Running) -> {ok, lists:map(fun weft_amqp_test_broker:stop/1, Running)} end).

%% @doc Kills the broker of that number.
-spec kill(pos_integer(), pid()) -> ok.
kill(Number, Keeper) -> change(Number, fun weft_amqp_test_broker:stop/1, Keeper).

-spec start_again(pos_integer(), pid()) -> ok.
start_again(Number, Keeper) -> change(Number, fun weft_amqp_test_broker:start/1, Keeper).

change(Number, Fun, Keeper) ->
    ask(Keeper, fun(Running) ->
                        {Before, [Broker | After]} = lists:split(Number - 1, Running),
                        {ok, Before ++ [Fun(Broker) | After]}
                end).

%% @doc All others join the first.
-spec join(pid()) -> ok.
join(Keeper) ->
    ask(Keeper, fun([#{name := First} | Others] = Running) ->
                        _ = [weft_amqp_test_broker:ctl(Args, Other)
                             || Other <- Others,
                                Args <- [["stop_app"], ["join_cluster", First], ["start_app"]]],
                        {ok, Running}
                end).

%% @doc rabbitmqctl for the first one.
-spec ctl([string()], pid()) -> string().
ctl(Args, Keeper) ->
    ask(Keeper, fun([First | _] = Running) ->
                        {weft_amqp_test_broker:ctl(Args, First), Running}
                end).

-spec url(pid()) -> string().
url(Keeper) ->
    ask(Keeper, fun([First | _] = Running) -> {weft_amqp_test_broker:url(First), Running} end).

-spec url(string(), string(), pid()) -> string().
url(User, Password, Keeper) ->
    ask(Keeper, fun([First | _] = Running) ->
                        {weft_amqp_test_broker:url(User, Password, First), Running}
                end).

-spec port(pid()) -> inet:port_number().
port(Keeper) ->
    ask(Keeper, fun([#{port := Port} | _] = Running) -> {Port, Running} end).

ask(Keeper, Fun) ->
    Monitor = monitor(process, Keeper),
    Keeper ! {do, self(), Monitor, Fun},
    receive
        {Monitor, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, Keeper, Reason} -> error({keeper, Reason})
    after ?MS -> error(keeper_does_not_answer)
    end.

keep(Running) ->
    receive
        {do, From, Ref, Fun} ->
            {Answer, Next} = Fun(Running),
            From ! {Ref, Answer},
            keep(Next)
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc One flow: follows its inputs, and does something with their values whenever one of them
%% changes. The store tells it one value of an input, and the next one when that is done with, so
%% they do not pile up while it works. When the store is started again, it follows them again. A
%% function that fails leaves the last result, and the failure is in the log. Functions run here and
%% nowhere else: how long they take concerns nobody else, and processes that they link do not end
%% the flow.
-module(weft_crdt_flow_worker).
-behaviour(gen_server).

-export([start_link/1, first/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2,
         format_status/1]).
-export_type([flow/0]).

-define(AGAIN_MS, 50).
%% Whoever has started a flow asks at once, but may have to wait for a processor.
-define(ASKED_MS, 5000).
%% One that was started again and fails has nobody whom it could tell.
-define(FAILED_AGAIN_MS, 1000).

-type flow() :: #{inputs := [weft_crdt:key()],
                  act := {module(), Function :: atom(), Arguments :: [term()]}
                       | fun((Values :: [term()]) -> again | done),
                  name := term()}.
%% `act': the function gets the values before its arguments, and returns `again' or `done'. A `fun'
%% is what code of before has left, also with the supervisor.

-record(worker, {flow :: flow(), store = none :: none | reference(),
                 values = #{} :: #{term() => term()},
                 first = none :: none | ok | {error, term()}}).

-spec start_link(flow()) -> {ok, pid()} | ignore | {error, term()}.
start_link(Flow) ->
    gen_server:start_link(?MODULE, Flow, []).

%% @doc Waits until the function was called for the first time. After an error the flow ends.
-spec first(pid()) -> ok | {error, term()}.
first(Worker) ->
    try gen_server:call(Worker, first, infinity)
    catch exit:{Reason, _} -> {error, {failed, Reason}}
    end.

%% @private
init(Flow) ->
    process_flag(trap_exit, true),
    {ok, #worker{flow = Flow}, {continue, first}}.

%% @private
handle_continue(first, #worker{flow = #{inputs := Inputs} = Flow} = Worker0) ->
    case followed(Inputs) of
        {ok, Store, Values} ->
            Worker = Worker0#worker{store = Store, values = Values},
            try act(Flow, Values) of
                again -> {noreply, Worker#worker{first = ok}};
                done -> done(Worker)
            catch
                throw:Reason -> failed(Reason, Worker);
                _:Reason -> failed({failed, Reason}, Worker)
            end;
        {error, Reason} -> failed(Reason, Worker0)
    end.

failed(Reason, Worker) ->
    _ = erlang:send_after(?FAILED_AGAIN_MS, self(), again),
    {noreply, Worker#worker{first = {error, Reason}}}.

%% Who asked for the flow hears that it was done.
done(Worker) ->
    receive {'$gen_call', From, first} -> gen_server:reply(From, ok)
    after ?ASKED_MS -> ok
    end,
    {stop, normal, Worker}.

act(#{inputs := Inputs, act := Act}, Values) ->
    InOrder = [map_get(Input, Values) || Input <- Inputs],
    case Act of
        {Module, Function, Arguments} -> apply(Module, Function, [InOrder | Arguments]);
        _ -> Act(InOrder)
    end.

followed(Inputs) ->
    Store = monitor(process, weft_crdt),
    followed(Inputs, Store, #{}).

followed([], Store, Values) ->
    {ok, Store, Values};
followed([Input | Rest], Store, Values) ->
    case follow(Input) of
        {ok, Value} -> followed(Rest, Store, Values#{Input => Value});
        {error, Reason} ->
            true = demonitor(Store, [flush]),
            {error, {Reason, Input}}
    end.

follow(Input) ->
    try weft_driver:command(weft_crdt, {follow, Input, self()}, infinity)
    catch exit:_Ended -> {error, not_running}
    end.

%% @private
handle_call(first, _From, #worker{first = ok} = Worker) ->
    {reply, ok, Worker};
handle_call(first, _From, #worker{first = Error} = Worker) ->
    {stop, normal, Error, Worker};
handle_call(Request, _From, Worker) ->
    {reply, weft_stray:call(Request), Worker}.

%% @private
handle_cast(Request, Worker) ->
    ok = weft_stray:message(Request),
    {noreply, Worker}.

%% @private
handle_info({weft_crdt, Input, Value}, #worker{values = Values} = Worker)
  when is_map_key(Input, Values) ->
    {Latest, Told} = latest(Values#{Input := Value}, [Input]),
    Acted = acted(Worker#worker{values = Latest}),
    lists:foreach(fun(One) -> ok = weft_driver:notice(weft_crdt, {next, One, self()}) end, Told),
    Acted;
handle_info({'DOWN', Store, process, _, _}, #worker{store = Store} = Worker) ->
    again(Worker);
handle_info(again, #worker{flow = #{inputs := Inputs}, store = Former} = Worker) ->
    _ = Former =:= none orelse demonitor(Former, [flush]),
    case followed(Inputs) of
        {ok, Store, Values} ->
            acted(Worker#worker{store = Store, values = Values});
        {error, _NotYet} -> again(Worker#worker{store = none})
    end;
%% Of a process that the function has linked.
handle_info({'EXIT', _, _}, Worker) ->
    {noreply, Worker};
handle_info(Message, Worker) ->
    ok = weft_stray:message(Message),
    {noreply, Worker}.

%% Those of other inputs that have come as well.
latest(Values, Told) ->
    receive {weft_crdt, Input, Value} when is_map_key(Input, Values) ->
        latest(Values#{Input := Value}, [Input | Told])
    after 0 -> {Values, Told}
    end.

again(Worker) ->
    _ = erlang:send_after(?AGAIN_MS, self(), again),
    {noreply, Worker}.

acted(#worker{flow = #{name := Name} = Flow, values = Values} = Worker) ->
    try act(Flow, Values) of
        again -> {noreply, Worker#worker{first = ok}};
        done -> {stop, normal, Worker}
    catch
        _:Reason ->
            logger:warning("weft_crdt: the flow ~0tp has failed and keeps its last result: ~0tP",
                           [Name, weft_redact:reason(Reason), 20]),
            {noreply, Worker}
    end.

%% What users have stored is not for logs.
%% @private
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> weft_redact:status(Status, ?MODULE).

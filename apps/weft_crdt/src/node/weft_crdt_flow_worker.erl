%% SPDX-License-Identifier: Apache-2.0
%% @doc One flow: subscribes to its inputs, and does something with their values whenever one of
%% them changes. Of values that came while it did so, one that takes the `latest' gets the last of
%% each input only, so they do not pile up. When the store is started again, it subscribes again. A
%% function that fails leaves the last result, and the failure is in the log.
-module(weft_crdt_flow_worker).
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([flow/0]).

-define(AGAIN_MS, 50).

-type flow() :: #{inputs := [weft_crdt:key()],
                  takes := latest | each,
                  act := fun((Values :: [term()]) -> again | done),
                  name := term()}.

-record(worker, {flow :: flow(), store :: reference(), values = #{} :: #{term() => term()}}).

-spec start_link(flow()) -> {ok, pid()} | ignore | {error, term()}.
start_link(Flow) ->
    gen_server:start_link(?MODULE, Flow, []).

%% @private
init(#{inputs := Inputs, act := Act} = Flow) ->
    case subscribed(Inputs) of
        {ok, Store, Values} ->
            try Act([map_get(Input, Values) || Input <- Inputs]) of
                again -> {ok, #worker{flow = Flow, store = Store, values = Values}};
                done -> ignore
            catch
                throw:Reason -> {stop, Reason};
                _:Reason -> {stop, {failed, Reason}}
            end;
        {error, Reason} -> {stop, Reason}
    end.

subscribed(Inputs) ->
    Store = monitor(process, weft_crdt),
    subscribed(Inputs, Store, #{}).

subscribed([], Store, Values) ->
    {ok, Store, Values};
subscribed([Input | Rest], Store, Values) ->
    case weft_crdt:subscribe(Input) of
        {ok, Value} -> subscribed(Rest, Store, Values#{Input => Value});
        {error, Reason} ->
            true = demonitor(Store, [flush]),
            {error, {Reason, Input}}
    end.

%% @private
handle_call(Request, _From, Worker) ->
    {reply, weft_stray:call(Request), Worker}.

%% @private
handle_cast(Request, Worker) ->
    ok = weft_stray:message(Request),
    {noreply, Worker}.

%% @private
handle_info({weft_crdt, Input, Value}, #worker{flow = Flow, values = Values} = Worker)
  when is_map_key(Input, Values) ->
    Next = Values#{Input := Value},
    acted(Worker#worker{values = case Flow of
                                     #{takes := latest} -> latest(Next);
                                     #{takes := each} -> Next
                                 end});
handle_info({'DOWN', Store, process, _, _}, #worker{store = Store} = Worker) ->
    again(Worker);
handle_info(again, #worker{flow = #{inputs := Inputs}} = Worker) ->
    case subscribed(Inputs) of
        {ok, Store, Values} -> acted(Worker#worker{store = Store, values = Values});
        {error, _NotYet} -> again(Worker)
    end;
handle_info(Message, Worker) ->
    ok = weft_stray:message(Message),
    {noreply, Worker}.

latest(Values) ->
    receive {weft_crdt, Input, Value} when is_map_key(Input, Values) ->
        latest(Values#{Input := Value})
    after 0 -> Values
    end.

again(Worker) ->
    _ = erlang:send_after(?AGAIN_MS, self(), again),
    {noreply, Worker}.

acted(#worker{flow = #{inputs := Inputs, act := Act, name := Name}, values = Values} = Worker) ->
    try Act([map_get(Input, Values) || Input <- Inputs]) of
        again -> {noreply, Worker};
        done -> {stop, normal, Worker}
    catch
        _:Reason ->
            logger:warning("weft_crdt: the flow ~0tp has failed and keeps its last result: ~0tP",
                           [Name, Reason, 20]),
            {noreply, Worker}
    end.

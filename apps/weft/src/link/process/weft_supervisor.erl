%% SPDX-License-Identifier: Apache-2.0
%% @doc OTP's supervisor, except that an unknown call is answered with an error, an unknown cast is
%% dropped, and both are logged (`weft_stray'). OTP's own supervisor crashes, and all below it ends.
%%
%% One that was killed is restarted only when its former children have ended. They end with it, but
%% a moment later, and until then they have its names and tables. OTP's supervisor would fail to
%% start, again and again.
%%
%% The only messages that it passes on are those that OTP's supervisor waits for: ends of children,
%% and, since OTP 29, the time after which it hibernates.
%%
%% The callback module is one of `supervisor', and the functions of `supervisor' work on it. All
%% else is done by OTP's code.
-module(weft_supervisor).
-behaviour(gen_server).

-export([start_link/2, start_link/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, code_change/3]).

-define(FORMER_MS, 3000).

%% @doc As `supervisor:start_link/2'.
-spec start_link(module(), Args :: term()) -> supervisor:startlink_ret().
start_link(Module, Args) ->
    gen_server:start_link(?MODULE, {self, Module, Args}, []).

%% @doc As `supervisor:start_link/3'.
-spec start_link({local, atom()}, module(), Args :: term()) -> supervisor:startlink_ret().
start_link(Name, Module, Args) ->
    gen_server:start_link(Name, ?MODULE, {Name, Module, Args}, []).

%% @private
init({Name, _Module, _Args} = NameModuleArgs) ->
    ok = await_former(Name),
    supervisor:init(NameModuleArgs).

await_former(self) ->
    ok;
await_former({local, Name}) ->
    case persistent_term:get({?MODULE, Name}, first) of
        first -> persistent_term:put({?MODULE, Name}, again);
        again -> await_ends([monitor(process, Pid) || Pid <- processes(), is_below(Name, Pid)])
    end.

is_below(Name, Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            lists:member(Name, proplists:get_value('$ancestors', Dictionary, []));
        undefined ->
            false
    end.

%% A process that was linked by another one may have been started below, and live on.
await_ends(Monitors) ->
    DeadlineMs = now_ms() + ?FORMER_MS,
    lists:foreach(fun(Monitor) ->
                          receive {'DOWN', Monitor, process, _, _} -> ok
                          after max(0, DeadlineMs - now_ms()) -> demonitor(Monitor, [flush])
                          end
                  end, Monitors).

now_ms() -> erlang:monotonic_time(millisecond).

%% @private
handle_call(Request, From, State) ->
    try supervisor:handle_call(Request, From, State)
    catch
        error:function_clause:Stack ->
            unknown(handle_call, Stack),
            {reply, weft_stray:call(Request), State}
    end.

%% @private
handle_cast(Request, State) ->
    try supervisor:handle_cast(Request, State)
    catch
        error:function_clause:Stack ->
            unknown(handle_cast, Stack),
            ok = weft_stray:message(Request),
            {noreply, State}
    end.

%% Distinguishes an unknown request from an error in a function that it calls.
unknown(Callback, [{supervisor, Callback, _, _} | _]) -> ok;
unknown(_Callback, Stack) -> erlang:raise(error, function_clause, Stack).

%% @private
handle_info({'EXIT', _Pid, _Reason} = Exit, State) ->
    supervisor:handle_info(Exit, State);
handle_info({hibernate, _Tag} = Timeout, State) ->
    supervisor:handle_info(Timeout, State);
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
terminate(Reason, State) -> supervisor:terminate(Reason, State).

%% @private
code_change(Version, State, Extra) -> supervisor:code_change(Version, State, Extra).

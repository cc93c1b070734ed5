%% SPDX-License-Identifier: Apache-2.0
%% @doc OTP's supervisor, but a call or cast that it does not know is answered with an error, or
%% dropped, and logged (`weft_stray'). OTP's own ends of it, and all below with it.
%%
%% The callback module is one of `supervisor', and so are the functions to use it. All is done by
%% OTP's; this stands before it only to find out what it does not know.
-module(weft_supervisor).
-behaviour(gen_server).

-export([start_link/2, start_link/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, code_change/3]).

%% @doc As `supervisor:start_link/2'.
-spec start_link(module(), Args :: term()) -> supervisor:startlink_ret().
start_link(Module, Args) ->
    gen_server:start_link(?MODULE, {self, Module, Args}, []).

%% @doc As `supervisor:start_link/3'.
-spec start_link({local, atom()}, module(), Args :: term()) -> supervisor:startlink_ret().
start_link(Name, Module, Args) ->
    gen_server:start_link(Name, ?MODULE, {Name, Module, Args}, []).

%% @private
init(NameModuleArgs) -> supervisor:init(NameModuleArgs).

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

%% Not a mistake in what is called below it?
unknown(Callback, [{supervisor, Callback, _, _} | _]) -> ok;
unknown(_Callback, Stack) -> erlang:raise(error, function_clause, Stack).

%% @private
handle_info({'EXIT', _Pid, _Reason} = Exit, State) ->
    supervisor:handle_info(Exit, State);
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% @private
terminate(Reason, State) -> supervisor:terminate(Reason, State).

%% @private
code_change(Version, State, Extra) -> supervisor:code_change(Version, State, Extra).

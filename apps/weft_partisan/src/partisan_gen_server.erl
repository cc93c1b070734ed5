%% SPDX-License-Identifier: Apache-2.0
%% @doc `gen_server' under the name that Partisan's copy has. Here OTP's own runs over any topology,
%% so this only passes calls on; those with a channel go over it.
-module(partisan_gen_server).

-export([start/3, start/4, start_link/3, start_link/4, start_monitor/3, start_monitor/4,
         stop/1, stop/3, call/2, call/3, cast/2, cast/3, reply/2, abcast/2, abcast/3,
         multi_call/2, multi_call/3, multi_call/4,
         send_request/2, send_request/3, wait_response/2, receive_response/2, check_response/2,
         enter_loop/3, enter_loop/4, enter_loop/5]).
-export([behaviour_info/1]).

%% @private A module with the behaviour `partisan_gen_server' is one for `gen_server'.
-spec behaviour_info(callbacks | optional_callbacks) -> [{atom(), arity()}].
behaviour_info(What) -> gen_server:behaviour_info(What).

-spec start(module(), term(), list()) -> {ok, pid()} | ignore | {error, term()}.
start(Module, Args, Options) -> gen_server:start(Module, Args, own(Options)).

-spec start(term(), module(), term(), list()) -> {ok, pid()} | ignore | {error, term()}.
start(Name, Module, Args, Options) -> gen_server:start(Name, Module, Args, own(Options)).

-spec start_link(module(), term(), list()) -> {ok, pid()} | ignore | {error, term()}.
start_link(Module, Args, Options) -> gen_server:start_link(Module, Args, own(Options)).

-spec start_link(term(), module(), term(), list()) -> {ok, pid()} | ignore | {error, term()}.
start_link(Name, Module, Args, Options) ->
    gen_server:start_link(Name, Module, Args, own(Options)).

-spec start_monitor(module(), term(), list()) ->
          {ok, {pid(), reference()}} | ignore | {error, term()}.
start_monitor(Module, Args, Options) -> gen_server:start_monitor(Module, Args, own(Options)).

-spec start_monitor(term(), module(), term(), list()) ->
          {ok, {pid(), reference()}} | ignore | {error, term()}.
start_monitor(Name, Module, Args, Options) ->
    gen_server:start_monitor(Name, Module, Args, own(Options)).

%% Partisan names here the channel on which the server answers; an answer goes by the distribution.
own(Options) -> [Option || Option <- Options, not is_of_partisan(Option)].

is_of_partisan({channel, _}) -> true;
is_of_partisan(_) -> false.

-spec stop(partisan:server_ref()) -> ok.
stop(Server) -> gen_server:stop(Server).

-spec stop(partisan:server_ref(), term(), timeout()) -> ok.
stop(Server, Reason, TimeoutMs) -> gen_server:stop(Server, Reason, TimeoutMs).

-spec call(partisan:server_ref(), term()) -> term().
call(Server, Request) -> gen_server:call(Server, Request).

%% @doc The last argument is the time in milliseconds, or a list of options: timeout, channel,
%% partition_key.
-spec call(partisan:server_ref(), term(), timeout() | weft_partisan_options:options()) -> term().
call(Server, Request, TimeoutOrOptions) ->
    case weft_partisan_options:call(TimeoutOrOptions) of
        {TimeoutMs, none} -> gen_server:call(Server, Request, TimeoutMs);
        {TimeoutMs, Options} -> weft:call(whole(Server, Request), Request, TimeoutMs, Options)
    end.

%% A server with a name in a registry is called by its pid.
whole({Kind, Name} = Server, Request) when Kind =:= global ->
    pid(global:whereis_name(Name), Server, Request);
whole({via, Module, Name} = Server, Request) -> pid(Module:whereis_name(Name), Server, Request);
whole(Server, _Request) -> Server.

pid(undefined, Server, Request) -> exit({noproc, {?MODULE, call, [Server, Request]}});
pid(Pid, _Server, _Request) -> Pid.

-spec send_request(partisan:server_ref(), term()) -> gen_server:request_id().
send_request(Server, Request) -> gen_server:send_request(Server, Request).

%% @doc The options are checked, and the request goes by the distribution.
-spec send_request(partisan:server_ref(), term(), weft_partisan_options:options()) ->
          gen_server:request_id().
send_request(Server, Request, Options) ->
    _ = weft_partisan_options:translate(Options),
    gen_server:send_request(Server, Request).

-spec wait_response(gen_server:request_id(), timeout()) ->
          {reply, term()} | timeout | {error, {term(), partisan:server_ref()}}.
wait_response(Id, TimeoutMs) -> gen_server:wait_response(Id, TimeoutMs).

-spec receive_response(gen_server:request_id(), timeout()) ->
          {reply, term()} | timeout | {error, {term(), partisan:server_ref()}}.
receive_response(Id, TimeoutMs) -> gen_server:receive_response(Id, TimeoutMs).

-spec check_response(Message :: term(), gen_server:request_id()) ->
          {reply, term()} | no_reply | {error, {term(), partisan:server_ref()}}.
check_response(Message, Id) -> gen_server:check_response(Message, Id).

-spec enter_loop(module(), list(), State :: term()) -> no_return().
enter_loop(Module, Options, State) -> gen_server:enter_loop(Module, own(Options), State).

-spec enter_loop(module(), list(), State :: term(), Name :: term()) -> no_return().
enter_loop(Module, Options, State, NameOrTimeout) ->
    gen_server:enter_loop(Module, own(Options), State, NameOrTimeout).

-spec enter_loop(module(), list(), State :: term(), Name :: term(), timeout()) -> no_return().
enter_loop(Module, Options, State, Name, TimeoutMs) ->
    gen_server:enter_loop(Module, own(Options), State, Name, TimeoutMs).

-spec cast(partisan:server_ref(), term()) -> ok.
cast(Server, Request) -> gen_server:cast(Server, Request).

-spec cast(partisan:server_ref(), term(), weft_partisan_options:options()) -> ok.
cast(Server, Request, Options) -> partisan:cast_message(Server, Request, Options).

-spec reply(gen_server:from(), term()) -> ok.
reply(From, Reply) -> gen_server:reply(From, Reply).

%% @doc To all nodes that can be reached, and this one.
-spec abcast(atom(), term()) -> abcast.
abcast(Name, Request) -> abcast(all(), Name, Request).

-spec abcast([node()], atom(), term()) -> abcast.
abcast(Nodes, Name, Request) -> gen_server:abcast(Nodes, Name, Request).

-spec multi_call(atom(), term()) -> {[{node(), term()}], [node()]}.
multi_call(Name, Request) -> multi_call(all(), Name, Request).

-spec multi_call([node()], atom(), term()) -> {[{node(), term()}], [node()]}.
multi_call(Nodes, Name, Request) -> gen_server:multi_call(Nodes, Name, Request).

-spec multi_call([node()], atom(), term(), timeout()) -> {[{node(), term()}], [node()]}.
multi_call(Nodes, Name, Request, TimeoutMs) ->
    gen_server:multi_call(Nodes, Name, Request, TimeoutMs).

all() -> [node() | partisan:nodes()].

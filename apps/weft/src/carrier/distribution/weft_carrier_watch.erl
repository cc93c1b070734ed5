%% SPDX-License-Identifier: Apache-2.0
%% @doc Has `weft_carrier_keeper' started again when it was killed. The kernel's network supervisor
%% cannot do that: for a process that it restarts, an end is the end of the node.
-module(weft_carrier_watch).
-behaviour(gen_server).

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-record(watch, {keeper :: reference()}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private
init([]) ->
    {ok, watch()}.

watch() -> #watch{keeper = monitor(process, weft_carrier_keeper)}.

%% @private
handle_call(Request, _From, Watch) ->
    {reply, weft_stray:call(Request), Watch}.

%% @private
handle_cast(Request, Watch) ->
    ok = weft_stray:message(Request),
    {noreply, Watch}.

%% @private
-spec handle_info(term(), #watch{}) -> {noreply, #watch{}}.
handle_info({'DOWN', Ref, process, _Keeper, shutdown}, #watch{keeper = Ref} = Watch) ->
    {noreply, Watch};
handle_info({'DOWN', Ref, process, _Keeper, _Killed}, #watch{keeper = Ref}) ->
    _ = [supervisor:start_child(net_sup, weft_carrier_keeper:child_spec())
         || whereis(net_sup) =/= undefined],
    {noreply, watch()};
handle_info(Message, Watch) ->
    ok = weft_stray:message(Message),
    {noreply, Watch}.

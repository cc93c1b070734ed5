%% SPDX-License-Identifier: Apache-2.0
%% @doc The only part of the carrier that the kernel's network supervisor sees.
%%
%% The kernel ends the node when a process of its network supervisor ends. So this process does next
%% to nothing. It starts the carrier's supervisor (`weft_carrier_sup'), which is not linked to it,
%% starts it again after a pause if it ends, and stops it with the network. It is a temporary child:
%% when it is killed the node lives on, and `weft_carrier_watch' has it started again; the new one
%% finds the supervisor.
-module(weft_carrier_keeper).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([child_spec/0, start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(PAUSE_MS, 500).
%% `net_kernel:stop/0' gives the whole network a second to stop.
-define(STOP_MS, 700).

-record(keeper, {carrier :: reference() | undefined}).

%% @doc For the kernel's network supervisor.
-spec child_spec() -> supervisor:child_spec().
child_spec() ->
    #{id => ?MODULE, start => {?MODULE, start_link, []}, restart => temporary, shutdown => 5000}.

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @private
init([]) ->
    process_flag(trap_exit, true),
    case whereis(weft_carrier_sup) of
        undefined ->
            ok = weft_config:load(),
            ok = weft_counters:init(),
            ok = weft_identity:init(false),
            ok = weft_stock:init(),
            ok = weft_preload:start(),
            started(weft_carrier_sup:start_link());
        Carrier ->
            {ok, watch(Carrier)}
    end.

started({ok, Carrier}) ->
    {ok, unlinked(Carrier)};
started({error, Reason}) ->
    {stop, Reason}.

%% The end of the supervisor is to come as a message, not as an exit signal.
unlinked(Carrier) ->
    true = unlink(Carrier),
    receive {'EXIT', Carrier, _} -> ok after 0 -> ok end,
    watch(Carrier).

watch(Carrier) -> #keeper{carrier = monitor(process, Carrier)}.

%% @private
handle_call(Request, _From, Keeper) ->
    {reply, weft_stray:call(Request), Keeper}.

%% @private
handle_cast(Request, Keeper) ->
    ok = weft_stray:message(Request),
    {noreply, Keeper}.

%% @private
-spec handle_info(term(), #keeper{}) -> {noreply, #keeper{}}.
handle_info({'DOWN', Ref, process, _Carrier, Reason}, #keeper{carrier = Ref}) ->
    ?LOG_ERROR("weft: the processes of the carrier have ended and are started again; sessions over "
               "their links end: ~0P", [Reason, 20]),
    {noreply, start_later()};
handle_info(start, #keeper{carrier = undefined} = Keeper) ->
    ok = weft_identity:renew(),
    case weft_carrier_sup:start_link() of
        {ok, Carrier} ->
            {noreply, unlinked(Carrier)};
        {error, Reason} ->
            ?LOG_ERROR("weft: the processes of the carrier do not start: ~0P", [Reason, 20]),
            _ = start_later(),
            {noreply, Keeper}
    end;
handle_info({'EXIT', _OfAnAttempt, _Reason}, Keeper) ->
    {noreply, Keeper};
handle_info(Message, Keeper) ->
    ok = weft_stray:message(Message),
    {noreply, Keeper}.

start_later() ->
    _ = erlang:send_after(?PAUSE_MS, self(), start),
    #keeper{carrier = undefined}.

%% @private
terminate(_Reason, _Keeper) ->
    case whereis(weft_carrier_sup) of
        undefined -> ok;
        Carrier -> stop(Carrier)
    end.

stop(Carrier) ->
    try proc_lib:stop(Carrier, shutdown, ?STOP_MS)
    catch exit:_GoneOrTooLate -> exit(Carrier, kill), ok
    end.

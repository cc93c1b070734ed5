%% SPDX-License-Identifier: Apache-2.0
%% @doc Ends the faults of a keeper (`weft_chaos_keeper') that was killed: nobody knows any more
%% when they are to end. One process per node, started by the first keeper.
-module(weft_chaos_healer).
-behaviour(gen_server).

-export([kept/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% What each keeper keeps now.
-type healer() :: #{pid() => {Monitor :: reference(), [weft_chaos_keeper:fault()]}}.

%% @doc The caller is a keeper, and keeps these faults from now on.
-spec kept([weft_chaos_keeper:fault()]) -> ok.
kept(Faults) ->
    _ = whereis(?MODULE) =/= undefined orelse gen_server:start({local, ?MODULE}, ?MODULE, [], []),
    gen_server:cast(?MODULE, {kept, self(), Faults}).

%% @private As a keeper, of no application.
-spec init([]) -> {ok, healer()}.
init([]) ->
    group_leader(whereis(init), self()),
    {ok, #{}}.

%% @private
-spec handle_call(term(), gen_server:from(), healer()) -> {reply, term(), healer()}.
handle_call(Request, _From, Healer) ->
    {reply, weft_stray:call(Request), Healer}.

%% @private
-spec handle_cast(term(), healer()) -> {noreply, healer()}.
handle_cast({kept, Keeper, Faults}, Healer) ->
    Monitor = case Healer of
                  #{Keeper := {Known, _}} -> Known;
                  #{} -> monitor(process, Keeper)
              end,
    {noreply, Healer#{Keeper => {Monitor, Faults}}};
handle_cast(Request, Healer) ->
    ok = weft_stray:message(Request),
    {noreply, Healer}.

%% @private
-spec handle_info(term(), healer()) -> {noreply, healer()}.
handle_info({'DOWN', _Monitor, process, Keeper, _}, Healer) when is_map_key(Keeper, Healer) ->
    {{_, Faults}, Left} = maps:take(Keeper, Healer),
    _ = [weft_fault:heal(Node, Kind) || {Kind, Node} <- Faults],
    {noreply, Left};
handle_info(Message, Healer) ->
    ok = weft_stray:message(Message),
    {noreply, Healer}.

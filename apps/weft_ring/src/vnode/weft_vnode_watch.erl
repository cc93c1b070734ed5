%% SPDX-License-Identifier: Apache-2.0
%% @doc Knows of partitions, here and on other nodes, that their process is there. Who asks one of
%% these needs no monitor of its own: on a connection, that is two messages and a packet for each
%% request. There is one monitor for each partition that was asked from this node, held by the
%% process of this module. Nobody waits for that: requests read a table, and who finds nothing there
%% makes a monitor (`weft_vnode:ask/5').
%%
%% Not here: who starts the process of a partition (`weft_vnodes').
-module(weft_vnode_watch).
-behaviour(gen_server).

-export([start_link/0, find/1, seen/1, lost/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([place/0, watch/0]).

-type place() :: {Name :: atom(), node()}.
%% Another one if it was lost meanwhile. On this node it says which process that is. What is sent to
%% the name may get to another process than the one that is watched.
-type watch() :: reference() | {reference(), pid()}.

%% So long it is known why a process ended.
-define(REMEMBERED_MS, 10000).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc The process is there, as far as this node has heard.
-spec find(place()) -> {ok, watch()} | unknown.
find(Place) ->
    case looked_up(Place) of
        [{_, up, Watch}] -> {ok, Watch};
        _ -> unknown
    end.

%% @doc Has the process ended since it was found, or the connection? Then why.
-spec lost(place(), watch()) -> false | {true, Reason :: term()}.
lost(Place, Watch) ->
    case looked_up(Place) of
        [{_, up, Watch}] -> false;
        [{_, {down, Reason}, Watch}] -> {true, Reason};
        _ -> {true, noproc}
    end.

%% @doc It has just answered, so it can be watched.
-spec seen(place()) -> ok.
seen(Place) ->
    case looked_up(Place) of
        [{_, Is, _}] when Is =:= up; Is =:= asked -> ok;
        %% One that asks for it is enough, so that few messages wait.
        _ -> asked(Place)
    end.

asked(Place) ->
    try ets:insert(?MODULE, {Place, asked, none}) of
        true -> gen_server:cast(?MODULE, {watch, Place})
    catch
        error:badarg -> ok
    end.

looked_up(Place) ->
    try ets:lookup(?MODULE, Place)
    catch
        %% Not started, or about to start again.
        error:badarg -> []
    end.

%% @private
init([]) ->
    _ = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    {ok, #{}}.

%% @private
handle_call(Request, _From, Watched) ->
    {reply, weft_stray:call(Request), Watched}.

%% @private
handle_cast({watch, Place}, Watched) ->
    New = case Watched of
              #{Place := _} -> Watched;
              #{} -> Watched#{Place => watched(Place)}
          end,
    true = ets:insert(?MODULE, {Place, up, map_get(Place, New)}),
    {noreply, New};
handle_cast(Request, Watched) ->
    ok = weft_stray:message(Request),
    {noreply, Watched}.

%% @private
handle_info({{down, Place}, _, process, _, Reason}, Watched) ->
    Watch = map_get(Place, Watched),
    true = ets:insert(?MODULE, {Place, {down, Reason}, Watch}),
    _ = erlang:send_after(?REMEMBERED_MS, self(), {forget, Place, Watch}),
    {noreply, maps:remove(Place, Watched)};
handle_info({forget, Place, Watch}, Watched) ->
    true = ets:match_delete(?MODULE, {Place, {down, '_'}, Watch}),
    {noreply, Watched};
handle_info(Message, Watched) ->
    ok = weft_stray:message(Message),
    {noreply, Watched}.

watched({Name, Node} = Place) when Node =:= node() ->
    case whereis(Name) of
        Pid when is_pid(Pid) -> {monitor(process, Pid, [{tag, {down, Place}}]), Pid};
        undefined -> monitor(process, Place, [{tag, {down, Place}}])
    end;
watched(Place) ->
    monitor(process, Place, [{tag, {down, Place}}]).

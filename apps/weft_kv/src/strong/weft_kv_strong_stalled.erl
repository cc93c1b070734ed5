%% SPDX-License-Identifier: Apache-2.0
%% @doc Bounds what waits before a replica of a strong bucket on this node that stands still: a disk
%% that hangs takes all its time in one call. A replica refuses what is too much when it comes to
%% it, and such a one comes to nothing, while the others answer in its place and the load goes on.
%% So its name is taken from it, and whoever asks is told at once that it is not there. It takes the
%% name again when it has come to the end of what waited until then (`weft_kv_strong_acceptor').
%%
%% Nor is it ended, as partitions of the ring are (`weft_vnode_stalled'): what it was writing may
%% still get to the file when the next process has read that, and too many ends would stop all
%% replicas of the node.
-module(weft_kv_strong_stalled).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, queue_max/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(QUEUE_MAX, 1000).
-define(LOOK_MS, 1000).
%% So many looks in a row without a step. What it costs to be wrong is that others are asked for a
%% while.
-define(LOOKS, 3).

%% @doc For the replicas of these buckets that are on this node, if there are any.
-spec start_link(#{atom() => map()}) -> {ok, pid()} | ignore | {error, term()}.
start_link(Buckets) ->
    case weft_kv_strong_bucket:on_node(node(), Buckets) of
        [] -> ignore;
        Here ->
            gen_server:start_link({local, ?MODULE}, ?MODULE,
                                  [weft_kv_strong_bucket:name(Bucket, Partition)
                                   || {Bucket, Partition, _} <- Here], [])
    end.

%% @doc So many messages may wait before a replica; what comes then is refused.
-spec queue_max() -> pos_integer().
queue_max() -> ?QUEUE_MAX.

%% @private
-spec init([atom()]) -> {ok, {[atom()], weft_vnode_stalled:before()}}.
init(Names) ->
    ok = look_soon(),
    {ok, {Names, #{}}}.

%% @private
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
handle_info(look, {Names, Before}) ->
    ok = look_soon(),
    Replicas = maps:from_list([{Pid, Name} || Name <- Names, Pid <- [whereis(Name)], is_pid(Pid)]),
    Standing = weft_vnode_stalled:standing(weft_vnode_stalled:looks(maps:keys(Replicas)),
                                           ?QUEUE_MAX, Before),
    lists:foreach(fun(Pid) -> ok = without_name(Pid, map_get(Pid, Replicas)) end,
                  [Pid || {Pid, {_, Times}} <- maps:to_list(Standing), Times >= ?LOOKS]),
    {noreply, {Names, Standing}};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

look_soon() ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    ok.

%% It may have ended meanwhile.
without_name(Pid, Name) ->
    try whereis(Name) =:= Pid andalso unregister(Name) of
        true ->
            ?LOG_ERROR("weft_kv: ~ts stood still for ~b s with too many messages before it, as "
                       "when a disk hangs; it is not asked until it goes on",
                       [Name, ?LOOKS * ?LOOK_MS div 1000]),
            Pid ! take_name,
            ok;
        false -> ok
    catch
        error:badarg -> ok
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Ends partitions of this node that stand still while messages pile up before them: a disk
%% that hangs takes all its time in one call. A partition refuses what is too much when it comes to
%% it, and such a one comes to nothing, while others answer in its place and the load goes on. So
%% what waits there would grow until the node has no memory left.
%%
%% Who waited for it is told that it has ended. The next request starts it again, and what waits for
%% the start is bounded (`weft_vnodes'). Answers that waited for the disk were given to nobody.
-module(weft_vnode_stalled).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, looks/1, stalled/3, standing/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([look/0, before/0]).

-define(LOOK_MS, 1000).
%% So many looks in a row without a step: most disks that are slow have answered by then.
-define(LOOKS, 15).

%% How many messages wait, and how many reductions there were so far.
-type look() :: {Waiting :: non_neg_integer(), Reductions :: non_neg_integer()}.
-type before() :: #{pid() => {Reductions :: non_neg_integer(), Looks :: pos_integer()}}.

-spec start_link(#{queue_max := pos_integer(), _ => _}) -> {ok, pid()} | {error, term()}.
start_link(#{queue_max := QueueMax}) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, QueueMax, []).

%% @private
-spec init(pos_integer()) -> {ok, {pos_integer(), before()}}.
init(QueueMax) ->
    ok = look_soon(),
    {ok, {QueueMax, #{}}}.

%% @private
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
handle_info(look, {QueueMax, Before}) ->
    ok = look_soon(),
    {Stalled, Next} = stalled(looks(partitions()), QueueMax, Before),
    lists:foreach(fun ended/1, Stalled),
    {noreply, {QueueMax, Next}};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

look_soon() ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    ok.

partitions() ->
    try weft_vnode_sup:processes()
    catch exit:_NotRunning -> []
    end.

%% @doc What is seen of these processes now, of those that have not ended.
-spec looks([pid()]) -> #{pid() => look()}.
looks(Pids) ->
    maps:from_list([{Pid, {Waiting, Reductions}}
                    || Pid <- Pids,
                       [{message_queue_len, Waiting}, {reductions, Reductions}]
                           <- [process_info(Pid, [message_queue_len, reductions])]]).

%% @doc Who has not moved for all these looks, of those before whom more messages wait than may.
-spec stalled(#{pid() => look()}, QueueMax :: pos_integer(), before()) -> {[pid()], before()}.
stalled(Looks, QueueMax, Before) ->
    Standing = standing(Looks, QueueMax, Before),
    {[Pid || {Pid, {_, Times}} <- maps:to_list(Standing), Times >= ?LOOKS], Standing}.

%% @doc Those before whom more messages wait than may, and for how many looks they have not moved.
-spec standing(#{pid() => look()}, QueueMax :: pos_integer(), before()) -> before().
standing(Looks, QueueMax, Before) ->
    maps:filtermap(fun(Pid, {Waiting, Reductions}) when Waiting > QueueMax ->
                           {true, {Reductions, looked(Reductions, Pid, Before)}};
                      (_, _) -> false
                   end, Looks).

looked(Reductions, Pid, Before) ->
    case Before of
        #{Pid := {Reductions, Times}} -> Times + 1;
        #{} -> 1
    end.

ended(Pid) ->
    ?LOG_ERROR("weft_ring: ~0tp stood still for ~b s with too many messages before it, as when a "
               "disk hangs; it is ended, and starts again when it is asked for",
               [named(Pid), ?LOOKS * ?LOOK_MS div 1000]),
    exit(Pid, kill).

named(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> Pid
    end.

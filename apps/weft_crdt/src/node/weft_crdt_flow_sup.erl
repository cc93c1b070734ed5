%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of flows, one child each, named after what it makes. A flow that crashes is
%% started again, and computes its value anew. No function of users runs here.
-module(weft_crdt_flow_sup).
-behaviour(supervisor).

-export([start_link/0, start_flow/3, stop_flow/1]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 10, period => 10}, []}}.

%% @doc Starts a flow. One that ends normally is forgotten if it is `once'.
-spec start_flow(Id :: term(), always | once, weft_crdt_flow_worker:flow()) ->
          ok | {error, term()}.
start_flow(Id, Often, Flow) ->
    Child = #{id => Id, start => {weft_crdt_flow_worker, start_link, [Flow]},
              %% A function may run for long.
              shutdown => brutal_kill,
              restart => case Often of always -> transient; once -> temporary end},
    try supervisor:start_child(?MODULE, Child) of
        {ok, Pid} -> begun(Id, weft_crdt_flow_worker:first(Pid));
        {error, {already_started, _}} -> {error, already_started};
        {error, Reason} -> {error, Reason}
    catch exit:_NotRunning -> {error, not_running}
    end.

begun(_Id, ok) ->
    ok;
begun(Id, {error, Reason}) ->
    _ = stop_flow(Id),
    {error, Reason}.

%% @doc Ends a flow.
-spec stop_flow(Id :: term()) -> ok | {error, not_found | not_running}.
stop_flow(Id) ->
    try supervisor:terminate_child(?MODULE, Id) of
        ok ->
            _ = supervisor:delete_child(?MODULE, Id),
            ok;
        {error, not_found} -> {error, not_found}
    catch exit:_NotRunning -> {error, not_running}
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What a service needs to run: options that all drivers of services have, and a place below
%% the supervisor of the services, under its registered name (`weft_service_sup').
%%
%% What is started there later is a row of `weft_view', which outlives that supervisor: one that is
%% started again starts it, too.
-module(weft_services).

-export([options/1, start/1, stop/1, added/0]).

-define(SUPERVISOR, weft_service_sup).

%% @doc Options for `weft_driver:start_link/3', completed with what all services have in common.
-spec options(map()) -> map().
options(Options) ->
    maps:merge(#{link_module => weft_node_links, incarnation => erlang:system_time(microsecond)},
               Options).

%% @doc Starts a child, or finds it started. `not_started' if the application does not run.
-spec start(supervisor:child_spec()) -> {ok, pid()} | {error, term()}.
start(Child) ->
    try supervisor:start_child(?SUPERVISOR, Child) of
        {ok, Pid} ->
            ok = weft_view:put(?MODULE, row(maps:get(id, Child)),
                               {erlang:unique_integer([monotonic]), Child}),
            {ok, Pid};
        {error, {already_started, Pid}} -> {ok, Pid};
        {error, Reason} -> {error, Reason}
    catch
        exit:_NoSupervisor -> {error, not_started}
    end.

%% @doc Ends a child that was started with start/1.
-spec stop(Id :: term()) -> ok.
stop(Id) ->
    _ = weft_view:lookup(row(Id)) =/= undefined andalso weft_view:delete(?MODULE, row(Id)),
    try
        _ = supervisor:terminate_child(?SUPERVISOR, Id),
        _ = supervisor:delete_child(?SUPERVISOR, Id),
        ok
    catch
        exit:_NoSupervisor -> ok
    end.

%% @doc What was started with start/1 and not stopped, the first one first.
-spec added() -> [supervisor:child_spec()].
added() ->
    [Child || {_Number, Child} <- lists:sort([Row || {_Id, Row} <- weft_view:all(?MODULE)])].

row(Id) -> {?MODULE, Id}.

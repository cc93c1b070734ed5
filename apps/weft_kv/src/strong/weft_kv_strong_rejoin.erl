%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_kv_strong_rejoin_core' for a replica that has lost its file, in a process beside
%% it, which ends when the replica votes again, or ends itself.
-module(weft_kv_strong_rejoin).

-export([start/4]).

-define(PAUSE_MS, 1000).
%% So a partition is filled with fifty pages, of about a megabyte, in a second at most.
-define(REST_MS, 20).
%% A page is written and synced.
-define(FILL_MS, 60000).

-record(context, {replica :: pid(),
                  bucket :: atom(),
                  partition :: non_neg_integer(),
                  options :: weft_kv_strong_bucket:options()}).

%% @doc Begins to fill the replica that calls this. The reference is that of a monitor.
-spec start(atom(), non_neg_integer(), weft_kv_strong_bucket:options(),
            weft_kv_strong_acceptor_core:identity()) -> reference().
start(Bucket, Partition, #{timeout_ms := TimeoutMs} = Options, Identity) ->
    Context = #context{replica = self(), bucket = Bucket, partition = Partition,
                       options = Options},
    Others = weft_kv_strong_bucket:replicas(Partition, Options) -- [node()],
    Begun = weft_kv_strong_rejoin_core:init(#{self => node(), identity => Identity,
                                              others => Others, timeout_ms => TimeoutMs,
                                              pause_ms => ?PAUSE_MS, rest_ms => ?REST_MS}),
    {_Pid, Ref} = spawn_monitor(fun() ->
                                    _ = monitor(process, Context#context.replica),
                                    weft_redact:run(fun() -> effects(Begun, Context) end)
                                end),
    Ref.

effects({State, []}, #context{replica = Replica} = Context) ->
    receive
        {timer, _} = Event ->
            effects(weft_kv_strong_rejoin_core:handle(Event, State), Context);
        {'DOWN', _, process, Replica, _} -> ok
    end;
effects({_State, [done]}, _Context) ->
    ok;
effects({State, [{after_ms, Ms, Timer} | Effects]}, Context) ->
    _ = erlang:send_after(Ms, self(), {timer, Timer}),
    effects({State, Effects}, Context);
effects({State0, [Effect | Effects]}, Context) ->
    {State, More} = weft_kv_strong_rejoin_core:handle(carried_out(Effect, Context), State0),
    effects({State, Effects ++ More}, Context).

%% There is one of these at a time.
carried_out({register, Request}, #context{bucket = Bucket, partition = Partition,
                                          options = Options}) ->
    {registered, weft_kv_strong_request:members(Bucket, Partition, Request, Options)};
carried_out({ask, Node, Tag, Members, Message},
            #context{bucket = Bucket, partition = Partition,
                     options = #{timeout_ms := TimeoutMs} = Options}) ->
    {reply, Node, Tag,
     weft_kv_strong_request:ask(Node, Bucket, Partition, Options, {Members, Message}, TimeoutMs)};
carried_out({fill, Step}, #context{replica = Replica}) ->
    {stored, gen_server:call(Replica, {fill, Step}, ?FILL_MS)}.

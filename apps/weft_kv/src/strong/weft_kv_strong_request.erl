%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_kv_strong_proposer_core' for one request, in a process of its own, which ends
%% with
%% the answer. If the caller ends before that, the request goes on.
-module(weft_kv_strong_request).

-export([run/5, call/3]).

-define(MARGIN_MS, 1000).

%% @doc The result, within the time of the bucket. At most `Max' requests run on a node.
-spec run(atom(), binary(), weft_kv_strong_proposer_core:request(), weft_kv_strong_bucket:options(),
          {counters:counters_ref(), Max :: pos_integer()}) ->
          weft_kv_strong_proposer_core:result() | {error, overload | {unknown, term()}}.
run(Bucket, Key, Request, Options, {Running, Max}) ->
    case counters:get(Running, 1) >= Max of
        true -> {error, overload};
        false -> started(Bucket, Key, Request, Options, Running)
    end.

started(Bucket, Key, Request, #{timeout_ms := TimeoutMs} = Options, Running) ->
    Alias = alias([reply]),
    {Pid, Monitor} =
        spawn_monitor(fun() ->
                          ok = counters:add(Running, 1, 1),
                          try weft_redact:run(fun() ->
                                                  proposed(Bucket, Key, Request, Options, Alias)
                                              end)
                          after counters:sub(Running, 1, 1)
                          end
                      end),
    receive
        {Alias, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            _ = unalias(Alias),
            {error, {unknown, Reason}}
    after TimeoutMs + ?MARGIN_MS ->
        _ = unalias(Alias),
        true = demonitor(Monitor, [flush]),
        receive {Alias, Answer} -> Answer after 0 -> {error, {unknown, timeout}} end
    end.

proposed(Bucket, Key, Request, #{timeout_ms := TimeoutMs} = Options, Alias) ->
    Partition = weft_kv_strong_bucket:partition(Key, Options),
    {State, Effects} = weft_kv_strong_proposer_core:init(
                         Request, #{key => Key, id => crypto:strong_rand_bytes(16),
                                    homes => weft_kv_strong_bucket:homes(Partition, Options),
                                    counter => max(1, erlang:system_time(microsecond)),
                                    timeout_ms => TimeoutMs}),
    Name = weft_kv_strong_bucket:name(Bucket, Partition),
    effects(Effects, State, {Name, weft_kv_strong_bucket:configuration(Bucket, Options), TimeoutMs,
                             Alias}).

effects([], State0, Context) ->
    receive
        Event when element(1, Event) =:= reply; element(1, Event) =:= timer ->
            {State, Effects} = weft_kv_strong_proposer_core:handle(Event, State0),
            effects(Effects, State, Context)
    end;
effects([{ask, Node, Tag, Message} | Effects], State, {Name, Configuration, Ms, _} = Context) ->
    Self = self(),
    Ask = fun() ->
              Self ! {reply, Node, Tag, call({Name, Node}, {vote, 1, Configuration, Message}, Ms)}
          end,
    _ = spawn(weft_redact, run, [Ask]),
    effects(Effects, State, Context);
effects([{after_ms, Ms, Timer} | Effects], State, Context) ->
    _ = erlang:send_after(Ms, self(), {timer, Timer}),
    effects(Effects, State, Context);
effects([{answer, Result} | _], _State, {_, _, _, Alias}) ->
    Alias ! {Alias, Result},
    ok.

%% @doc Asks a replica. That it does not answer is an error, and ends nobody.
-spec call({atom(), node()}, term(), pos_integer()) -> term() | {error, term()}.
call(Server, Request, TimeoutMs) ->
    try gen_server:call(Server, Request, TimeoutMs)
    catch
        exit:{noproc, _} -> {error, not_running};
        exit:{timeout, _} -> {error, timeout};
        exit:{{nodedown, _}, _} -> {error, nodedown};
        exit:{Reason, _} -> {error, {unknown, Reason}}
    end.

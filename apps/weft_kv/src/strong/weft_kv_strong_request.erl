%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_kv_strong_proposer_core' for one request, in a process of its own, which ends
%% with the answer. If the caller ends before that, the request goes on.
-module(weft_kv_strong_request).

-export([run/5, members/4, ask/6, call/3]).

-define(MARGIN_MS, 1000).

%% @doc The result, within the time of the bucket. At most `Max' requests run on a node.
-spec run(atom(), binary(), weft_kv_strong_proposer_core:request(), weft_kv_strong_bucket:options(),
          {counters:counters_ref(), Max :: pos_integer()}) ->
          weft_kv_strong_proposer_core:result() | {error, overload | {unknown, term()}}.
run(Bucket, Key, Request, Options, {Running, Max}) ->
    case counters:get(Running, 1) >= Max of
        true -> {error, overload};
        false ->
            Partition = weft_kv_strong_bucket:partition(Key, Options),
            started({Bucket, Partition, Key}, Request, Options, {Running, Max})
    end.

%% @doc A request for the members of a partition.
-spec members(atom(), non_neg_integer(), weft_kv_strong_proposer_core:request(),
              weft_kv_strong_bucket:options()) ->
          weft_kv_strong_proposer_core:result() | {error, {unknown, term()}}.
members(Bucket, Partition, Request, Options) ->
    started({Bucket, Partition, weft_kv_strong_members:key()}, Request, Options,
            {counters:new(1, []), 1}).

started(Place, Request, #{timeout_ms := TimeoutMs} = Options, {Running, Max}) ->
    Alias = alias([reply]),
    {Pid, Monitor} =
        spawn_monitor(fun() ->
                          %% Callers of the same moment have not seen each other. It counts
                          %% itself, so nothing stays counted of a caller that is killed.
                          ok = counters:add(Running, 1, 1),
                          try
                              case counters:get(Running, 1) > Max of
                                  true -> Alias ! {Alias, {error, overload}};
                                  false ->
                                      weft_redact:run(fun() ->
                                          proposed(Place, Request, Options, Alias)
                                      end)
                              end
                          after counters:sub(Running, 1, 1)
                          end
                      end),
    receive
        {Alias, Answer} ->
            true = demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            _ = unalias(Alias),
            ok = uncounted(Reason, Running),
            {error, {unknown, Reason}}
    after TimeoutMs + ?MARGIN_MS ->
        _ = unalias(Alias),
        true = demonitor(Monitor, [flush]),
        receive {Alias, Answer} -> Answer after 0 -> {error, {unknown, timeout}} end
    end.

%% Who is killed, for too large a heap, for example, has not said that it ends.
uncounted(killed, Running) -> counters:sub(Running, 1, 1);
uncounted(_, _Running) -> ok.

proposed({Bucket, Partition, Key} = Place, Request, #{timeout_ms := TimeoutMs} = Options, Alias) ->
    {State, Effects} = weft_kv_strong_proposer_core:init(
                         Request, #{key => Key, id => crypto:strong_rand_bytes(16),
                                    replicas => weft_kv_strong_bucket:replicas(Partition, Options),
                                    members => weft_kv_strong_known:members(Bucket, Partition),
                                    counter => max(1, erlang:system_time(microsecond)),
                                    timeout_ms => TimeoutMs}),
    effects(Effects, State, {Place, Options, Alias}).

effects([], State0, Context) ->
    receive
        Event when element(1, Event) =:= reply; element(1, Event) =:= timer ->
            {State, Effects} = weft_kv_strong_proposer_core:handle(Event, State0),
            effects(Effects, State, Context)
    end;
effects([{ask, Node, Tag, Members, Message} | Effects], State,
        {{Bucket, Partition, _}, #{timeout_ms := Ms} = Options, _} = Context) ->
    Self = self(),
    Ask = fun() ->
              Self ! {reply, Node, Tag,
                      ask(Node, Bucket, Partition, Options, {Members, Message}, Ms)}
          end,
    _ = spawn(weft_redact, run, [Ask]),
    effects(Effects, State, Context);
effects([{learned, Members} | Effects], State, {{Bucket, Partition, _}, _, _} = Context) ->
    ok = weft_kv_strong_known:learned(Bucket, Partition, Members),
    effects(Effects, State, Context);
effects([{after_ms, Ms, Timer} | Effects], State, Context) ->
    _ = erlang:send_after(Ms, self(), {timer, Timer}),
    effects(Effects, State, Context);
effects([{answer, Result} | _], _State, {_, _, Alias}) ->
    Alias ! {Alias, Result},
    ok.

%% @doc Asks the replica of a partition on a node, on behalf of these members.
-spec ask(node(), atom(), non_neg_integer(), weft_kv_strong_bucket:options(),
          {weft_kv_strong_members:members(), weft_kv_strong_acceptor_core:message()},
          TimeoutMs :: pos_integer()) -> weft_kv_strong_acceptor_core:reply() | {error, term()}.
ask(Node, Bucket, Partition, Options, Question, TimeoutMs) ->
    call({weft_kv_strong_bucket:name(Bucket, Partition), Node},
         {vote, 2, weft_kv_strong_bucket:configuration(Bucket, Options), Question}, TimeoutMs).

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

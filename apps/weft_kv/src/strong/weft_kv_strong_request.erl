%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs `weft_kv_strong_proposer_core' for one request, in a process of its own, which ends
%% with the answer. If the caller ends before that, the request goes on.
-module(weft_kv_strong_request).

-export([run/5, members/4, ask/6, call/3]).

%% @doc The result, within the time of the bucket.
-spec run(atom(), binary(), weft_kv_strong_proposer_core:request(), weft_kv_strong_bucket:options(),
          weft_kv_admission:running()) ->
          weft_kv_strong_proposer_core:result() | {error, overload | {unknown, term()}}.
run(Bucket, Key, Request, Options, Running) ->
    case weft_kv_admission:is_full(Running) of
        true -> {error, overload};
        false ->
            Partition = weft_kv_strong_bucket:partition(Key, Options),
            started({Bucket, Partition, Key}, Request, Options, Running)
    end.

%% @doc A request for the members of a partition.
-spec members(atom(), non_neg_integer(), weft_kv_strong_proposer_core:request(),
              weft_kv_strong_bucket:options()) ->
          weft_kv_strong_proposer_core:result() | {error, {unknown, term()}}.
members(Bucket, Partition, Request, Options) ->
    started({Bucket, Partition, weft_kv_strong_members:key()}, Request, Options,
            weft_kv_admission:new(infinity)).

started(Place, Request, #{timeout_ms := TimeoutMs} = Options, Running) ->
    Propose = fun(To) -> proposed(Place, Request, Options, To) end,
    case weft_kv_admission:run(Propose, fun erlang:spawn_monitor/1, TimeoutMs, Running) of
        {answer, Answer} -> Answer;
        overload -> {error, overload};
        timeout -> {error, {unknown, timeout}};
        {ended, Reason} -> {error, {unknown, Reason}}
    end.

proposed({Bucket, Partition, Key} = Place, Request, #{timeout_ms := TimeoutMs} = Options, To) ->
    {State, Effects} = weft_kv_strong_proposer_core:init(
                         Request, #{key => Key, id => crypto:strong_rand_bytes(16),
                                    replicas => weft_kv_strong_bucket:replicas(Partition, Options),
                                    members => weft_kv_strong_known:members(Bucket, Partition),
                                    counter => max(1, erlang:system_time(microsecond)),
                                    timeout_ms => TimeoutMs}),
    effects(Effects, State, {Place, Options, To}).

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
effects([{answer, Result} | _], _State, {_, _, To}) ->
    weft_kv_admission:answer(To, Result).

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

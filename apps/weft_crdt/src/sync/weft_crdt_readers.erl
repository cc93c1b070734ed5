%% SPDX-License-Identifier: Apache-2.0
%% @doc Who waits for a threshold, and who wants to hear of changes. Changes of a key within
%% `?NOTIFY_MS' are told once, so a subscriber that is slow gets at most that many messages.
-module(weft_crdt_readers).

-export([new/0, read/6, wait/5, timer/2, changed/3, subscribe/3, unsubscribe/3, gone/2, info/1]).
-export_type([readers/0]).

-define(NOTIFY_MS, 20).
%% Readers that may wait on a node.
-define(WAITING_MAX, 10000).
%% Fifty days: a timer does not take any number.
-define(TIMEOUT_MS_MAX, 16#FFFFFFFF).

-record(readers, {
    last = 0 :: non_neg_integer(),
    waiting = #{} :: #{Key :: term() => #{Number :: pos_integer() =>
                                              {Ref :: term(), weft_crdt_threshold:threshold()}}},
    count = 0 :: non_neg_integer(),
    subscribers = #{} :: #{Key :: term() => #{pid() => []}},
    %% Keys whose subscribers are told soon.
    changed = #{} :: #{Key :: term() => []}}).

-opaque readers() :: #readers{}.
-type value_of() :: fun((Key :: term()) -> {ok, Value :: term()} | error).

-spec new() -> readers().
new() -> #readers{}.

%% @doc Replies to Ref with the value if it passes the threshold, or waits.
-spec read(Key :: term(), {ok, Value :: term()} | error, weft_crdt_threshold:threshold() | term(),
           TimeoutMs :: non_neg_integer(), Ref :: term(), readers()) ->
          {readers(), weft_core:effects()}.
read(Key, Now, Threshold, TimeoutMs, Ref, Readers) ->
    case weft_crdt_threshold:is_valid(Threshold) andalso Now of
        false -> {Readers, [{reply, Ref, {error, {bad_threshold, Threshold}}}]};
        error -> {Readers, [{reply, Ref, {error, undeclared}}]};
        {ok, Value} ->
            case weft_crdt_threshold:is_passed(Threshold, Value) of
                true -> {Readers, [{reply, Ref, {ok, Value}}]};
                false -> wait(Key, Threshold, TimeoutMs, Ref, Readers)
            end
    end.

%% @doc Replies to Ref as soon as the threshold is passed, or after the time.
-spec wait(Key :: term(), weft_crdt_threshold:threshold(), TimeoutMs :: non_neg_integer(),
           Ref :: term(), readers()) -> {readers(), weft_core:effects()}.
wait(_, _, _, Ref, #readers{count = Count} = Readers) when Count >= ?WAITING_MAX ->
    {Readers, [{reply, Ref, {error, busy}}]};
wait(Key, Threshold, TimeoutMs, Ref, #readers{last = Last, waiting = Waiting} = Readers) ->
    Number = Last + 1,
    ForKey = maps:get(Key, Waiting, #{}),
    {Readers#readers{last = Number, count = Readers#readers.count + 1,
                     waiting = Waiting#{Key => ForKey#{Number => {Ref, Threshold}}}},
     [{after_ms, min(TimeoutMs, ?TIMEOUT_MS_MAX), {read, Key, Number}}]}.

%% @doc A timer of this module: `notify' or `{read, Key, Number}'.
-spec timer(term(), {value_of(), readers()}) -> {readers(), weft_core:effects()}.
timer({read, Key, Number}, {_, #readers{waiting = Waiting} = Readers}) ->
    case Waiting of
        #{Key := #{Number := {Ref, _}} = ForKey} ->
            {without([Number], Key, ForKey, Readers), [{reply, Ref, {error, timeout}}]};
        #{} -> {Readers, []}
    end;
timer(notify, {ValueOf, #readers{changed = Changed, subscribers = Subscribers} = Readers}) ->
    {Readers#readers{changed = #{}},
     [{tell, Pid, {weft_crdt, Key, Value}}
      || Key <- maps:keys(Changed), is_map_key(Key, Subscribers), {ok, Value} <- [ValueOf(Key)],
         Pid <- maps:keys(map_get(Key, Subscribers))]}.

without(Numbers, Key, ForKey, #readers{waiting = Waiting, count = Count} = Readers) ->
    Left = maps:without(Numbers, ForKey),
    Readers#readers{count = Count - length(Numbers),
                    waiting = case map_size(Left) of
                                  0 -> maps:remove(Key, Waiting);
                                  _ -> Waiting#{Key := Left}
                              end}.

%% @doc A key has changed. Its value is looked at only if somebody wants it.
-spec changed(Key :: term(), value_of(), readers()) -> {readers(), weft_core:effects()}.
changed(Key, ValueOf, #readers{waiting = Waiting} = Readers0) ->
    {Readers, Replies} = case Waiting of
                             #{Key := ForKey} -> passed(Key, ForKey, ValueOf(Key), Readers0);
                             #{} -> {Readers0, []}
                         end,
    {Noted, Timer} = noted(Key, Readers),
    {Noted, Replies ++ Timer}.

passed(Key, ForKey, {ok, Value}, Readers) ->
    Passed = [{Number, Ref} || {Number, {Ref, Threshold}} <- maps:to_list(ForKey),
                               weft_crdt_threshold:is_passed(Threshold, Value)],
    {without([Number || {Number, _} <- Passed], Key, ForKey, Readers),
     [{reply, Ref, {ok, Value}} || {_, Ref} <- Passed]}.

noted(Key, #readers{changed = Changed, subscribers = Subscribers} = Readers)
  when is_map_key(Key, Subscribers) ->
    {Readers#readers{changed = Changed#{Key => []}},
     [{after_ms, ?NOTIFY_MS, notify} || map_size(Changed) =:= 0]};
noted(_, Readers) ->
    {Readers, []}.

%% @doc A process gets `{weft_crdt, Key, Value}' after changes of the key.
-spec subscribe(Key :: term(), pid(), readers()) -> {readers(), weft_core:effects()}.
subscribe(Key, Pid, #readers{subscribers = Subscribers} = Readers) ->
    ForKey = maps:get(Key, Subscribers, #{}),
    {Readers#readers{subscribers = Subscribers#{Key => ForKey#{Pid => []}}}, [{watch, Pid}]}.

-spec unsubscribe(Key :: term(), pid(), readers()) -> readers().
unsubscribe(Key, Pid, #readers{subscribers = Subscribers} = Readers) ->
    Left = maps:remove(Pid, maps:get(Key, Subscribers, #{})),
    Readers#readers{subscribers = case map_size(Left) of
                                      0 -> maps:remove(Key, Subscribers);
                                      _ -> Subscribers#{Key => Left}
                                  end}.

%% @doc A process has ended.
-spec gone(pid(), readers()) -> readers().
gone(Pid, #readers{subscribers = Subscribers} = Readers0) ->
    lists:foldl(fun(Key, Readers) -> unsubscribe(Key, Pid, Readers) end, Readers0,
                [Key || {Key, Pids} <- maps:to_list(Subscribers), is_map_key(Pid, Pids)]).

%% @doc How many readers wait, and how many subscriptions there are.
-spec info(readers()) -> #{waiting | subscriptions := non_neg_integer()}.
info(#readers{count = Count, subscribers = Subscribers}) ->
    #{waiting => Count,
      subscriptions => lists:sum([map_size(Pids) || Pids <- maps:values(Subscribers)])}.

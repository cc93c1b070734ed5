%% SPDX-License-Identifier: Apache-2.0
%% @doc Who waits for a threshold, and who wants to hear of changes. A part of `weft_crdt_core'.
%%
%% The value of a key may cost much, so it is not looked at with each change. A reader hears at once
%% if the key was quiet before. Changes that follow each other within `?NOTIFY_MS' are told once,
%% after that time, and so is a value that passes a threshold then.
%%
%% A subscriber that is slow gets at most that many messages, each with the value. One that follows
%% a key instead gets one message, and the next one, with the value of then, when it has said that
%% it is done with it (the notice `{next, Key, Pid}').
%%
%% Readers and subscribers have their places as long as they live.
%%
%% Commands: `{value, Key}', `{read, Key, Threshold, TimeoutMs, Pid}', `{subscribe, Key, Pid}',
%% `{follow, Key, Pid}', `{unsubscribe, Key, Pid}'.
-module(weft_crdt_readers).

-export([new/0, current/1, command/4, timer/3, changed/3, next/4, gone/2, info/1]).
-export_type([readers/0]).

-define(NOTIFY_MS, 20).
%% Readers that may wait on a node.
-define(WAITING_MAX, 10000).
%% A timer can not be cancelled. That of a read which was answered soon is there for so long.
-define(SLICE_MS, 5000).

%% How a process hears of a key: always, or as a follower, which waits for a message, or has one,
%% perhaps of an earlier value.
-type how() :: [] | ready | busy | behind.
-type place() :: {read, Key :: term(), Number :: pos_integer()} | {subscribed, Key :: term()}.

-record(readers, {
    last = 0 :: non_neg_integer(),
    waiting = #{} :: #{Key :: term() => #{Number :: pos_integer() =>
                                              {Ref :: term(), weft_crdt_threshold:threshold(),
                                               pid() | none}}},
    count = 0 :: non_neg_integer(),
    subscribers = #{} :: #{Key :: term() => #{pid() => how()}},
    %% Keys of which is told soon, and those of which was told just now.
    changed = #{} :: #{Key :: term() => [] | told},
    %% What ends with each process.
    places = #{} :: #{pid() => #{place() => []}},
    %% Timers of keys that have changed: the number of the last one.
    timer = 0 :: non_neg_integer()}).

-opaque readers() :: #readers{}.
-type value_of() :: fun((Key :: term()) -> {ok, Value :: term()} | error).

-spec new() -> readers().
new() -> #readers{}.

%% @doc What code of before has left: it did not number its timer, or knew nobody's places.
-spec current(readers() | tuple()) -> readers().
current(#readers{} = Readers) ->
    Readers;
current({readers, Last, Waiting, Count, Subscribers, Changed, Places}) ->
    #readers{last = Last, waiting = Waiting, count = Count, subscribers = Subscribers,
             changed = Changed, places = Places};
current({readers, Last, Waiting, Count, Subscribers, Changed}) ->
    OfNobody = fun(_, {Ref, Threshold}) -> {Ref, Threshold, none} end,
    maps:fold(fun(Key, Pids, Readers) ->
                  lists:foldl(fun(Pid, R) -> element(1, placed(Pid, {subscribed, Key}, R)) end,
                              Readers, maps:keys(Pids))
              end,
              #readers{last = Last, count = Count, subscribers = Subscribers, changed = Changed,
                       waiting = maps:map(fun(_, ForKey) -> maps:map(OfNobody, ForKey) end,
                                          Waiting)},
              Subscribers).

%% @doc A command, of which some wait for their reply.
-spec command(term(), Ref :: term(), value_of(), readers()) -> {readers(), weft_core:effects()}.
command({value, Key}, Ref, ValueOf, Readers) ->
    {Readers, [{reply, Ref, known(ValueOf(Key))}]};
command({read, Key, Threshold, TimeoutMs, Pid}, Ref, ValueOf, Readers) ->
    case weft_crdt_threshold:is_valid(Threshold) andalso ValueOf(Key) of
        false -> {Readers, [{reply, Ref, {error, {bad_threshold, Threshold}}}]};
        error -> {Readers, [{reply, Ref, known(error)}]};
        {ok, Value} ->
            case weft_crdt_threshold:is_passed(Threshold, Value) of
                true -> {Readers, [{reply, Ref, {ok, Value}}]};
                false -> wait(Key, TimeoutMs, {Ref, Threshold, Pid}, Readers)
            end
    end;
command({subscribe, Key, Pid}, Ref, ValueOf, Readers) ->
    subscribe(Key, Pid, [], Ref, ValueOf(Key), Readers);
command({follow, Key, Pid}, Ref, ValueOf, Readers) ->
    subscribe(Key, Pid, ready, Ref, ValueOf(Key), Readers);
command({unsubscribe, Key, Pid}, Ref, _, Readers0) ->
    {Readers, Unwatch} = unsubscribed(Key, Pid, Readers0),
    {Readers, Unwatch ++ [{reply, Ref, ok}]};
command(Unknown, Ref, _, Readers) ->
    {Readers, [{reply, Ref, {error, {unknown_command, Unknown}}}]}.

known({ok, Value}) -> {ok, Value};
known(error) -> {error, undeclared}.

%% --- readers ----------------------------------------------------------------------------------

wait(_, _, {Ref, _, _}, #readers{count = Count} = Readers) when Count >= ?WAITING_MAX ->
    {Readers, [{reply, Ref, {error, busy}}]};
wait(Key, TimeoutMs, {_, _, Pid} = Reader, #readers{last = Last, waiting = Waiting,
                                                    count = Count} = Readers) ->
    Number = Last + 1,
    ForKey = maps:get(Key, Waiting, #{}),
    {Placed, Watch} = placed(Pid, {read, Key, Number}, Readers),
    {Placed#readers{last = Number, count = Count + 1,
                    waiting = Waiting#{Key => ForKey#{Number => Reader}}},
     [slice(Key, Number, TimeoutMs) | Watch]}.

slice(Key, Number, LeftMs) ->
    Ms = min(LeftMs, ?SLICE_MS),
    {after_ms, Ms, {read, Key, Number, LeftMs - Ms}}.

%% @doc A timer of this module: `{notify, Number}' or `{read, Key, Number, LeftMs}'.
-spec timer(term(), value_of(), readers()) -> {readers(), weft_core:effects()}.
timer({read, Key, Number, LeftMs}, _, #readers{waiting = Waiting} = Readers0) ->
    case Waiting of
        #{Key := #{Number := _}} when LeftMs > 0 ->
            {Readers0, [slice(Key, Number, LeftMs)]};
        #{Key := #{Number := {Ref, _, _}}} ->
            {Readers, Unwatch} = over([Number], Key, Readers0),
            {Readers, [{reply, Ref, {error, timeout}} | Unwatch]};
        #{} -> {Readers0, []}
    end;
%% Of code of before, which had one timer for the whole time.
timer({read, Key, Number}, ValueOf, Readers) ->
    timer({read, Key, Number, 0}, ValueOf, Readers);
%% Of code of before, which had one at a time.
timer(notify, ValueOf, Readers) ->
    timer({notify, 0}, ValueOf, Readers);
%% When a change can not be written, the readers are again what they were before it, but its timer
%% has been set. It counts for nothing once a later one with its number has come.
timer({notify, Number}, _, #readers{timer = Last} = Readers) when Number < Last ->
    {Readers, []};
timer({notify, Number}, ValueOf, #readers{changed = Changed} = Readers0) ->
    Keys = [Key || {Key, []} <- maps:to_list(Changed)],
    {Effects, Readers} = lists:mapfoldl(fun(Key, R0) ->
                                            {R, Told} = told(Key, ValueOf, R0),
                                            {Told, R}
                                        end, Readers0#readers{changed = maps:from_keys(Keys, told),
                                                              timer = Number},
                                        Keys),
    {Timed, Timer} = case Keys of [] -> {Readers, []}; _ -> notify_later(Readers) end,
    {Timed, lists:append(Effects) ++ Timer}.

notify_later(#readers{timer = Last} = Readers) ->
    {Readers#readers{timer = Last + 1}, [{after_ms, ?NOTIFY_MS, {notify, Last + 1}}]}.

%% These reads of a key are over.
over(Numbers, Key, #readers{waiting = Waiting, count = Count} = Readers) ->
    #{Key := ForKey} = Waiting,
    Left = maps:without(Numbers, ForKey),
    lists:foldl(fun(Number, {R0, Effects}) ->
                    {_, _, Pid} = map_get(Number, ForKey),
                    {R, Unwatch} = left(Pid, {read, Key, Number}, R0),
                    {R, Unwatch ++ Effects}
                end, {Readers#readers{count = Count - length(Numbers),
                                      waiting = put_some(Key, Left, Waiting)}, []}, Numbers).

put_some(Key, Left, All) when map_size(Left) =:= 0 -> maps:remove(Key, All);
put_some(Key, Left, All) -> All#{Key => Left}.

%% @doc A key has changed. Its value is looked at only if somebody wants it.
-spec changed(Key :: term(), value_of(), readers()) -> {readers(), weft_core:effects()}.
changed(Key, ValueOf, #readers{waiting = Waiting, subscribers = Subscribers,
                               changed = Changed} = Readers0) ->
    case {is_map_key(Key, Waiting), is_map_key(Key, Subscribers)} of
        {false, false} -> {Readers0, []};
        {IsRead, _} ->
            {Readers, Replies} = case IsRead andalso not is_map_key(Key, Changed) of
                                     true -> passed(Key, ValueOf(Key), Readers0);
                                     false -> {Readers0, []}
                                 end,
            {Timed, Timer} = case map_size(Changed) of
                                 0 -> notify_later(Readers);
                                 _ -> {Readers, []}
                             end,
            {Timed#readers{changed = Changed#{Key => []}}, Replies ++ Timer}
    end.

passed(Key, {ok, Value}, #readers{waiting = Waiting} = Readers0) ->
    Passed = [{Number, Ref} || {Number, {Ref, Threshold, _}}
                                   <- maps:to_list(maps:get(Key, Waiting, #{})),
                               weft_crdt_threshold:is_passed(Threshold, Value)],
    {Readers, Unwatch} = case Passed of
                             [] -> {Readers0, []};
                             _ -> over([Number || {Number, _} <- Passed], Key, Readers0)
                         end,
    {Readers, [{reply, Ref, {ok, Value}} || {_, Ref} <- Passed] ++ Unwatch}.

%% What was derived may be forgotten meanwhile.
told(Key, ValueOf, #readers{waiting = Waiting} = Readers0) ->
    {Whom, Readers1} = due(Key, Readers0),
    case (Whom =/= [] orelse is_map_key(Key, Waiting)) andalso ValueOf(Key) of
        {ok, Value} ->
            {Readers, Replies} = passed(Key, {ok, Value}, Readers1),
            {Readers, Replies ++ [{tell, Pid, {weft_crdt, Key, Value}} || Pid <- Whom]};
        false -> {Readers1, []};
        error -> {Readers0, []}
    end.

due(Key, #readers{subscribers = Subscribers} = Readers) ->
    ForKey = maps:get(Key, Subscribers, #{}),
    Next = maps:map(fun(_, []) -> [];
                       (_, ready) -> busy;
                       (_, _) -> behind
                    end, ForKey),
    {[Pid || {Pid, How} <- maps:to_list(ForKey), How =:= [] orelse How =:= ready],
     Readers#readers{subscribers = put_some(Key, Next, Subscribers)}}.

%% --- subscribers ------------------------------------------------------------------------------

subscribe(_, _, _, Ref, error, Readers) ->
    {Readers, [{reply, Ref, known(error)}]};
subscribe(Key, Pid, How, Ref, Known, #readers{subscribers = Subscribers} = Readers) ->
    ForKey = maps:get(Key, Subscribers, #{}),
    {Placed, Watch} = placed(Pid, {subscribed, Key}, Readers),
    {Placed#readers{subscribers = Subscribers#{Key => ForKey#{Pid => How}}},
     Watch ++ [{reply, Ref, Known}]}.

unsubscribed(Key, Pid, #readers{subscribers = Subscribers} = Readers) ->
    Left = maps:remove(Pid, maps:get(Key, Subscribers, #{})),
    left(Pid, {subscribed, Key},
         Readers#readers{subscribers = put_some(Key, Left, Subscribers)}).

%% @doc A process that follows the key is done with the value that it was told.
-spec next(Key :: term(), pid(), value_of(), readers()) -> {readers(), weft_core:effects()}.
next(Key, Pid, ValueOf, #readers{subscribers = Subscribers} = Readers) ->
    case Subscribers of
        #{Key := #{Pid := How} = ForKey} when How =:= busy; How =:= behind ->
            Tell = [{tell, Pid, {weft_crdt, Key, Value}} || How =:= behind,
                                                            {ok, Value} <- [ValueOf(Key)]],
            Next = case Tell of [] -> ready; _ -> busy end,
            {Readers#readers{subscribers = Subscribers#{Key := ForKey#{Pid := Next}}}, Tell};
        #{} -> {Readers, []}
    end.

%% --- processes --------------------------------------------------------------------------------

%% A process is watched as long as it has a place.
placed(Pid, Place, #readers{places = Places} = Readers) ->
    Of = maps:get(Pid, Places, #{}),
    {Readers#readers{places = Places#{Pid => Of#{Place => []}}},
     [{watch, Pid} || map_size(Of) =:= 0]}.

left(Pid, Place, #readers{places = Places} = Readers) ->
    case Places of
        #{Pid := Of} ->
            Rest = maps:remove(Place, Of),
            {Readers#readers{places = put_some(Pid, Rest, Places)},
             [{unwatch, Pid} || map_size(Rest) =:= 0]};
        #{} -> {Readers, []}
    end.

%% @doc A process has ended.
-spec gone(pid(), readers()) -> readers().
gone(Pid, #readers{places = Places} = Readers) ->
    lists:foldl(fun(Place, R) -> element(1, without(Place, Pid, R)) end,
                Readers#readers{places = maps:remove(Pid, Places)},
                maps:keys(maps:get(Pid, Places, #{}))).

without({read, Key, Number}, _, Readers) -> over([Number], Key, Readers);
without({subscribed, Key}, Pid, Readers) -> unsubscribed(Key, Pid, Readers).

%% @doc How many readers wait, and how many subscriptions there are.
-spec info(readers()) -> #{waiting | subscriptions := non_neg_integer()}.
info(#readers{count = Count, subscribers = Subscribers}) ->
    #{waiting => Count,
      subscriptions => lists:sum([map_size(Pids) || Pids <- maps:values(Subscribers)])}.

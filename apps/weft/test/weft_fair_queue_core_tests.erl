%% SPDX-License-Identifier: Apache-2.0
%% @doc The fair queue against a model: nothing is lost, doubled or out of order for its sender,
%% bytes are shared, nobody starves, who is suspended is resumed.
-module(weft_fair_queue_core_tests).

-export([is_in_order/2]).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(KIB, 1024).
-define(MIB, 1048576).
-define(PROGRESS_BYTES, 4194304).
-define(SENDERS, 6).

%% What went in: {Mark, Sender}, newest first; what came out: marks, newest first.
-record(model, {fair = weft_fair_queue_core:new(8 * ?MIB),
                next = 1 :: pos_integer(),
                in = [] :: [{pos_integer(), integer() | last | ordered}],
                out = [] :: [pos_integer()],
                fragments = #{} :: #{integer() => {integer(), pos_integer()}},
                suspended = [] :: [integer()]}).

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, Count}, quiet]))}}
     || {Name, Count, Property} <- [{"order", times(600), prop_order()},
                                    {"fair by bytes", times(120), prop_fair_by_bytes()},
                                    {"signals without sender", times(120),
                                     prop_last_does_not_starve()}]].

%% So often with FULL=1, and a sixth of it usually.
times(Count) ->
    case os:getenv("FULL") of false -> Count div 6; _ -> Count end.

%% --- order, loss, effects ---------------------------------------------------------------------

prop_order() ->
    ?FORALL(Steps, ?SIZED(Size, resize(30 * Size, list(step()))),
            begin
                Model = drain(lists:foldl(fun(Step, M) -> checked(Step, M) end, #model{}, Steps)),
                ?WHENFAIL(io:format("~p~n~p~n", [Model#model.in, Model#model.out]),
                          is_in_order(lists:reverse(Model#model.in), lists:reverse(Model#model.out))
                          andalso Model#model.suspended =:= []
                          andalso weft_fair_queue_core:bytes(Model#model.fair) =:= 0)
            end).

step() ->
    frequency([{10, {whole, sender(), size()}},
               {4, {fragment, sender()}},
               {1, last}, {1, {last, burst}}, {1, ordered},
               {3, {batch, range(1, 20)}}, {3, {at_once, range(1, 20)}},
               {6, {take, oneof([all, all, express])}}]).

sender() -> range(1, ?SENDERS).
size() -> frequency([{6, range(0, 500)}, {3, range(16384, 70000)}, {1, range(70000, 400000)}]).

%% Senders 5 and 6 have a class of their own.
classes() -> #{5 => control, 6 => bulk}.

checked(Step, Model0) ->
    Model = effects(step(Step, Model0)),
    #model{fair = Fair, in = In, out = Out} = Model,
    true = weft_fair_queue_core:ready(all, Fair) =:= (length(Out) < length(In)),
    Model.

step({whole, Sender, Size}, #model{next = Mark} = Model) ->
    add(Sender, weft_test_frames:whole(Sender, Mark, Size), Model);
%% A message of four fragments, the last one short.
step({fragment, Sender}, #model{next = Mark, fragments = Fragments} = Model) ->
    {Part, Left} = maps:get(Sender, Fragments, {first, 4}),
    Bytes = case Left of 1 -> 100; _ -> 65580 end,
    Frame = weft_test_frames:fragment(Sender, 1000 + Sender, {Part, Left}, Mark, Bytes),
    Next = case Left of
               1 -> maps:remove(Sender, Fragments);
               _ -> Fragments#{Sender => {later, Left - 1}}
           end,
    add(Sender, Frame, Model#model{fragments = Next});
step(last, #model{next = Mark} = Model) ->
    add(last, weft_test_frames:from_name(Mark, 100), Model);
step({last, burst}, Model) ->
    lists:foldl(fun(_, M) -> step(last, M) end, Model, [1, 2, 3]);
step(ordered, #model{next = Mark} = Model) ->
    add(ordered, weft_test_frames:ordered(Mark, 100), Model);
step({batch, Count}, #model{fair = Fair} = Model) ->
    case weft_fair_queue_core:fast(Fair) of
        true -> batch(Count, Model);
        false -> Model
    end;
%% What passes the queue is out at once, and the same as if it had been through it.
step({at_once, Count}, #model{fair = Fair, out = Out} = Model) ->
    case weft_fair_queue_core:is_idle(Fair) of
        true ->
            #model{in = In, next = Next, fair = Full} = batch(Count, Model),
            Marks = lists:seq(Model#model.next, Next - 1),
            {Payload, _, frames, _} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Full),
            Marks = weft_test_frames:marks(Payload),
            Model#model{in = In, next = Next, out = lists:reverse(Marks, Out)};
        false ->
            Model
    end;
step({take, Room}, #model{fair = Fair0, out = Out} = Model) ->
    Ready = weft_fair_queue_core:ready(Room, Fair0),
    case weft_fair_queue_core:take(Room, ?PROGRESS_BYTES, Fair0) of
        {Payload, Bytes, _, Fair} ->
            true = Ready,
            true = Bytes =:= iolist_size(Payload),
            true = Bytes =:= weft_fair_queue_core:bytes(Fair0) - weft_fair_queue_core:bytes(Fair),
            Marks = weft_test_frames:marks(Payload),
            Model#model{fair = Fair, out = lists:reverse(Marks, Out)};
        empty ->
            false = Ready,
            Model
    end.

add(Sender, Frame, #model{fair = Fair, next = Mark, in = In} = Model) ->
    Model#model{fair = weft_fair_queue_core:add(iolist_size(Frame), Frame, classes(), Fair),
                next = Mark + 1, in = [{Mark, Sender} | In]}.

%% Small frames of several senders that nobody looks at.
batch(Count, #model{fair = Fair, next = Mark, in = In} = Model) ->
    New = [{M, 1 + M rem 4} || M <- lists:seq(Mark, Mark + Count - 1)],
    Frames = [begin
                  [Frame] = weft_test_frames:whole(Sender, M, 100),
                  <<(byte_size(Frame)):32, Frame/binary>>
              end || {M, Sender} <- New],
    Model#model{fair = weft_fair_queue_core:add_batch(Frames, iolist_size(Frames), Count, Fair),
                next = Mark + Count, in = lists:reverse(New, In)}.

%% Suspend and resume take turns for each sender.
effects(#model{fair = Fair0, suspended = Suspended0} = Model) ->
    {Effects, Fair} = weft_fair_queue_core:effects(Fair0),
    Suspended = lists:foldl(fun({suspend, Key}, Keys) ->
                                    false = lists:member(Key, Keys),
                                    [Key | Keys];
                               ({resume, Key}, Keys) ->
                                    true = lists:member(Key, Keys),
                                    lists:delete(Key, Keys)
                            end, Suspended0, Effects),
    #{suspended := Count} = weft_fair_queue_core:info(Fair),
    Count = length(Suspended),
    Model#model{fair = Fair, suspended = Suspended}.

drain(Model) ->
    case checked({take, all}, Model) of
        #model{out = Out} = Same when Out =:= Model#model.out -> Same;
        Next -> drain(Next)
    end.

%% The order of what went in, as far as it matters: per sender; all before and after `ordered'; all
%% before `last'.
is_in_order(In, Out) ->
    Position = maps:from_list(lists:zip(Out, lists:seq(1, length(Out)))),
    length(In) =:= length(Out)
        andalso lists:sort(Out) =:= [Mark || {Mark, _} <- In]
        andalso is_in_order(In, Position, #{}, 0, 0).

%% Newest: the largest position so far; Least: what all that follows has to be behind.
is_in_order([], _Position, _PerSender, _Newest, _Least) ->
    true;
is_in_order([{Mark, Sender} | In], Position, PerSender, Newest, Least) ->
    #{Mark := At} = Position,
    Behind = case is_integer(Sender) of
                 true -> max(Least, maps:get(Sender, PerSender, 0));
                 false -> Newest
             end,
    At > Behind andalso
        is_in_order(In, Position, PerSender#{Sender => At}, max(At, Newest),
                    case Sender of ordered -> At; _ -> Least end).

%% --- fairness ---------------------------------------------------------------------------------

%% Senders that always have something waiting get the same number of bytes, whatever the size of
%% their messages, up to what one may send in a row, a message and payloads.
prop_fair_by_bytes() ->
    ?FORALL(Sizes, [message(), message() | list(message())],
            begin
                Taken = backlogged(30 * ?MIB, maps:from_list(lists:enumerate(Sizes)), #{}),
                Bytes = maps:values(Taken),
                Bound = ?PROGRESS_BYTES + lists:max(Sizes) + 4 * 131072,
                ?WHENFAIL(io:format("~p ~p~n", [Sizes, Taken]),
                          lists:max(Bytes) - lists:min(Bytes) =< Bound)
            end).

message() -> oneof([range(20000, 60000), 1048576, range(60000, 3000000)]).

%% Senders that always have several messages waiting, #{Key => Bytes}. What each has got when so
%% many bytes are out.
backlogged(Bytes, Senders, Classes) ->
    Full = refill(Senders, Classes, #{}, {weft_fair_queue_core:new(64 * ?MIB), #{}}),
    backlogged(Bytes, Senders, Classes, maps:map(fun(_, _) -> 0 end, Senders), Full).

backlogged(Left, _Senders, _Classes, Got, _Full) when Left =< 0 ->
    Got;
backlogged(Left, Senders, Classes, Got0, {Fair0, Put}) ->
    {Payload, Bytes, _, Fair} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0),
    Got = lists:foldl(fun({Key, Size}, Acc) -> maps:update_with(Key, fun(B) -> B + Size end, Acc)
                      end, Got0, senders(Payload)),
    backlogged(Left - Bytes, Senders, Classes, Got, refill(Senders, Classes, Got, {Fair, Put})).

refill(Senders, Classes, Got, FairPut) ->
    maps:fold(fun(Key, Bytes, Acc) -> refill(Key, Bytes, Classes, Got, Acc) end, FairPut, Senders).

refill(Key, Bytes, Classes, Got, {Fair0, Put}) ->
    case maps:get(Key, Put, 0) - maps:get(Key, Got, 0) < Bytes + 4 * 131072 of
        true ->
            Fair = lists:foldl(fun(F, Acc) -> add_frame(F, Classes, Acc) end, Fair0,
                               message(Key, Bytes)),
            refill(Key, Bytes, Classes, Got, {Fair, Put#{Key => maps:get(Key, Put, 0) + Bytes}});
        false ->
            {Fair0, Put}
    end.

%% The mark is the sender.
message(Key, Bytes) when Bytes < 65536 ->
    [weft_test_frames:whole(Key, Key, Bytes)];
message(Key, Bytes) ->
    Count = 1 + Bytes div 65536,
    [weft_test_frames:fragment(Key, Key, {case Left of Count -> first; _ -> later end, Left}, Key,
                               case Left of 1 -> Bytes rem 65536; _ -> 65536 end)
     || Left <- lists:seq(Count, 1, -1)].

add_frame(Frame, Classes, Fair) ->
    weft_fair_queue_core:add(iolist_size(Frame), Frame, Classes, Fair).

senders(Payload) ->
    [{binary:decode_unsigned(binary:part(Frame, byte_size(Frame), -8)), Size}
     || <<Size:32, Frame:Size/binary>> <= iolist_to_binary(Payload)].

%% Who has nothing waiting for a moment does not begin anew with each frame.
who_comes_back_at_once_has_paid_for_nothing_test() ->
    Frame = fun(Sender, Fair) ->
                add_frame(weft_test_frames:whole(Sender, Sender, 140000), #{}, Fair)
            end,
    Waiting = lists:foldl(fun(_, Fair) -> Frame(2, Fair) end, weft_fair_queue_core:new(8 * ?MIB),
                          lists:seq(1, 20)),
    {_, Served} = lists:foldl(fun(_, {Fair0, Got}) ->
                                  {Payload, _, _, Fair} =
                                      weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0),
                                  case senders(Payload) of
                                      [{1, _}] -> {Frame(1, Fair), [1 | Got]};
                                      [{2, _}] -> {Fair, [2 | Got]}
                                  end
                              end, {Frame(1, Waiting), []}, lists:seq(1, 20)),
    ?assert(length([Sender || Sender <- Served, Sender =:= 2]) >= 8).

%% Control senders get most, bulk senders least, nobody nothing.
classes_have_weights_test() ->
    Got = backlogged(40 * ?MIB, #{1 => 50000, 2 => 50000, 3 => 50000}, #{1 => control, 3 => bulk}),
    #{1 := Control, 2 := Default, 3 := Bulk} = Got,
    ?assert(abs(Control - 4 * Default) < 16 * 131072),
    ?assert(abs(Default - 4 * Bulk) < 16 * 131072),
    ?assert(Bulk > ?MIB).

%% Also of senders that were pinned, or no longer are, while they had something waiting.
classes_of_those_who_wait_test() ->
    Waiting = lists:foldl(fun(Key, Fair) ->
                                  add_frame(weft_test_frames:whole(Key, Key, 60000), #{}, Fair)
                          end, weft_fair_queue_core:new(64 * ?MIB),
                          lists:append(lists:duplicate(60, [1, 2]))),
    Pinned = weft_fair_queue_core:repinned(#{}, #{1 => bulk}, Waiting),
    Unpinned = weft_fair_queue_core:repinned(#{1 => bulk}, #{}, Pinned),
    Of1 = fun(Fair) -> length([1 || 1 <- first_senders(16, Fair)]) end,
    ?assertEqual(Of1(Waiting), Of1(Unpinned)),
    ?assert(Of1(Pinned) * 2 =< Of1(Waiting)).

%% A large message of the class control does not wait for one of another class to end.
control_takes_the_line_test() ->
    Fair0 = lists:foldl(fun(F, Acc) -> add_frame(F, #{2 => control}, Acc) end,
                        weft_fair_queue_core:new(64 * ?MIB), message(1, 4 * ?MIB)),
    {_, _, _, Fair1} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0),
    Fair = add_frame(weft_test_frames:whole(2, 2, 30000), #{2 => control}, Fair1),
    ?assertMatch([2 | _], first_senders(1, Fair)),
    ?assertMatch([1, 1, 1], first_senders(3, add_frame(weft_test_frames:whole(2, 2, 30000), #{},
                                                       Fair1))).

%% Who gets the next payloads.
first_senders(0, _Fair) ->
    [];
first_senders(Count, Fair0) ->
    {Payload, _, _, Fair} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0),
    [{Sender, _} | _] = senders(Payload),
    [Sender | first_senders(Count - 1, Fair)].

%% A sender in the middle of a message stays first, until it has had ProgressBytes.
the_line_is_kept_within_a_message_test() ->
    Fair = lists:foldl(fun(F, Acc) -> add_frame(F, #{}, Acc) end,
                       weft_fair_queue_core:new(64 * ?MIB),
                       message(1, 2 * ?MIB) ++ message(2, 6 * ?MIB)),
    [{1, First}, {2, Second} | _] = runs(first_senders(60, Fair)),
    ?assert(First >= 16 andalso First =< 18),
    ?assert(Second >= 32).

runs([]) -> [];
runs([S | Rest]) ->
    {Same, Others} = lists:splitwith(fun(Other) -> Other =:= S end, Rest),
    [{S, 1 + length(Same)} | runs(Others)].

%% --- nobody starves ---------------------------------------------------------------------------

%% A signal without a sender waits for what was there before it, and not for what comes later.
prop_last_does_not_starve() ->
    ?FORALL({Senders, Size}, {range(1, 20), message()},
            begin
                Sizes = maps:from_list([{Key, Size} || Key <- lists:seq(1, Senders)]),
                {Fair0, Put} = refill(Sizes, #{}, #{}, {weft_fair_queue_core:new(64 * ?MIB), #{}}),
                Before = weft_fair_queue_core:bytes(Fair0),
                Frame = weft_test_frames:from_name(1000, 100),
                Waited = bytes_until(1000, Sizes, add_frame(Frame, #{}, Fair0), Put, #{}, 0),
                ?WHENFAIL(io:format("~p of ~p~n", [Waited, Before]),
                          Waited =< 2 * Before + Senders * (Size + 131072))
            end).

bytes_until(Mark, Sizes, Fair0, Put0, Got0, Waited) ->
    {Payload, Bytes, _, Fair1} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0),
    Out = senders(Payload),
    case lists:keymember(Mark, 1, Out) of
        true ->
            Waited;
        false ->
            Got = lists:foldl(fun({Key, Size}, Acc) -> Acc#{Key => maps:get(Key, Acc, 0) + Size}
                              end, Got0, Out),
            {Fair, Put} = refill(Sizes, #{}, Got, {Fair1, Put0}),
            bytes_until(Mark, Sizes, Fair, Put, Got, Waited + Bytes)
    end.

%% Express goes first, but in turn with the queues, however much there is of it; and beyond the
%% window only so far.
express_and_queues_take_turns_test() ->
    Fair0 = lists:foldl(fun(F, Acc) -> add_frame(F, #{}, Acc) end,
                        weft_fair_queue_core:new(64 * ?MIB), message(1, 4 * ?MIB)),
    Fair = lists:foldl(fun(Key, Acc) -> add_frame(weft_test_frames:whole(Key, Key, 3000), #{}, Acc)
                       end, Fair0, lists:seq(10, 2000)),
    Turns = [S >= 10 || S <- first_senders(40, Fair)],
    ?assertEqual(lists:flatten(lists:duplicate(20, [true, false])), Turns),
    ?assert(express_bytes(Fair) < ?MIB + 3 * 66560).

express_bytes(Fair0) ->
    case weft_fair_queue_core:take(express, ?PROGRESS_BYTES, Fair0) of
        {_, Bytes, _, Fair} -> Bytes + express_bytes(Fair);
        empty -> 0
    end.

%% Senders that flood with small messages get queues of their own, so a lone small message does not
%% wait for all of the flood.
a_call_beside_floods_of_small_messages_test_() ->
    {timeout, 60, fun a_call_beside_floods_of_small_messages/0}.

a_call_beside_floods_of_small_messages() ->
    Flooders = 128,
    Flood = fun(Key, Acc) -> add_frame(weft_test_frames:whole(Key, Key, 100), #{}, Acc) end,
    Rounds = lists:append(lists:duplicate(300, lists:seq(1, Flooders))),
    Fair0 = lists:foldl(Flood, weft_fair_queue_core:new(64 * ?MIB), Rounds),
    ?assert(weft_fair_queue_core:bytes(Fair0) > 3 * ?MIB),
    First = bytes_until(1000, #{}, lone(Fair0), #{}, #{}, 0),
    %% What came before the flood was seen, once, and each time a queue has its turn.
    ?assert(First < 131072 + Flooders * 4200 * 3),
    Fair1 = skip(First + 131072, Fair0),
    Second = bytes_until(1000, #{}, lone(Fair1), #{}, #{}, 0),
    ?assert(Second < 2 * 131072).

lone(Fair) -> add_frame(weft_test_frames:whole(1000, 1000, 100), #{}, Fair).

skip(Bytes, Fair) when Bytes =< 0 -> Fair;
skip(Bytes, Fair0) ->
    {_, Taken, _, Fair} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0),
    skip(Bytes - Taken, Fair).

%% Queues of many senders with little in each travel together.
small_payloads_travel_together_test() ->
    Classes = maps:from_list([{Key, bulk} || Key <- lists:seq(1, 100)]),
    Fair = lists:foldl(fun(Key, Acc) -> add_frame(weft_test_frames:whole(Key, Key, 500), Classes,
                                                  Acc) end,
                       weft_fair_queue_core:new(?MIB), lists:seq(1, 100)),
    {Payload, _, _, _} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair),
    ?assert(length(senders(Payload)) > 60).

%% --- pressure ---------------------------------------------------------------------------------

%% The more senders wait, the smaller the share of each, but 128 KiB it is always.
the_share_of_a_sender_test_() ->
    [?_assertEqual(Expected, suspended_at(Others)) || {Others, Expected} <- [{0, 1024}, {63, 256},
                                                                              {500, 128}]].

%% The backlog of one sender, in KiB, at which it is suspended, beside others.
suspended_at(Others) ->
    Fair = lists:foldl(fun(Key, Acc) -> add_frame(weft_test_frames:whole(Key, Key, 20000), #{}, Acc)
                       end, weft_fair_queue_core:new(64 * ?MIB), lists:seq(2, Others + 1)),
    suspended_at(0, Fair).

suspended_at(KiB, Fair0) ->
    case weft_fair_queue_core:effects(Fair0) of
        {[{suspend, 1}], _} -> KiB - KiB rem 64;
        {[], Fair} ->
            Frame = weft_test_frames:whole(1, 1, 17404),
            suspended_at(KiB + 17, add_frame(Frame, #{}, Fair))
    end.

it_is_full_at_the_bound_test() ->
    Fair = fill_up(weft_fair_queue_core:new(?MIB)),
    ?assert(weft_fair_queue_core:bytes(Fair) >= ?MIB),
    ?assert(weft_fair_queue_core:bytes(Fair) < ?MIB + 20000),
    {_, _, _, Less} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair),
    ?assertNot(weft_fair_queue_core:full(Less)).

fill_up(Fair) ->
    case weft_fair_queue_core:full(Fair) of
        true -> Fair;
        false -> fill_up(add_frame(weft_test_frames:whole(1, 1, 17000), #{}, Fair))
    end.

%% Nothing may go ahead of a frame that is `ordered', so more would only wait, and who sends too
%% much would not be stopped.
it_is_full_behind_what_holds_up_all_test() ->
    Waiting = add_frame(weft_test_frames:whole(1, 1, 17000), #{},
                        weft_fair_queue_core:new(64 * ?MIB)),
    Held = add_frame(weft_test_frames:ordered(2, 100), #{}, Waiting),
    ?assertNot(weft_fair_queue_core:full(Waiting)),
    ?assert(weft_fair_queue_core:full(Held)),
    {_, _, _, Free} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Held),
    ?assertNot(weft_fair_queue_core:full(Free)).

%% With nobody waiting small frames need not be looked at; one large frame changes that until it is
%% out.
%% Nor while something holds up all others, or a sender is to be suspended or resumed.
idle_while_nothing_waits_test() ->
    New = weft_fair_queue_core:new(?MIB),
    ?assert(weft_fair_queue_core:is_idle(New)),
    Batch = weft_fair_queue_core:add_batch(<<0:800>>, 100, 1, New),
    ?assertNot(weft_fair_queue_core:is_idle(Batch)),
    {_, 100, frames, Taken} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Batch),
    ?assert(weft_fair_queue_core:is_idle(Taken)),
    ?assertNot(weft_fair_queue_core:is_idle(add_frame(weft_test_frames:ordered(1, 100), #{}, New))),
    Frames = lists:duplicate(20, weft_test_frames:whole(1, 1, 60000)),
    Over = lists:foldl(fun(Frame, Fair) -> add_frame(Frame, #{}, Fair) end, New, Frames),
    {Suspended, _} = drained(Over),
    ?assertNot(weft_fair_queue_core:is_idle(Suspended)),
    {[{suspend, 1}, {resume, 1}], Told} = weft_fair_queue_core:effects(Suspended),
    ?assert(weft_fair_queue_core:is_idle(Told)).

drained(Fair0) ->
    case weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Fair0) of
        {_, Bytes, _, Fair} -> {Last, More} = drained(Fair), {Last, Bytes + More};
        empty -> {Fair0, 0}
    end.

%% A small frame gives a slot another atom, and overtakes the large one that has defined it before.
%% When both are out the peer has the atom of the large one, and the VM does not.
not_idle_while_the_peer_knows_other_atoms_test() ->
    Large = defining(1, $a, 20000),
    Small = defining(2, $b, 100),
    InOrder = lists:foldl(fun add_defining/2, weft_fair_queue_core:new(?MIB), [Small, Small]),
    {Known, _} = drained(InOrder),
    ?assert(weft_fair_queue_core:is_idle(Known)),
    Overtaken = lists:foldl(fun add_defining/2, weft_fair_queue_core:new(?MIB), [Large, Small]),
    {Other, _} = drained(Overtaken),
    ?assertEqual(0, weft_fair_queue_core:bytes(Other)),
    ?assertNot(weft_fair_queue_core:is_idle(Other)).

%% A frame of the sender that gives slot 7 an atom of one letter.
defining(Sender, Letter, Bytes) ->
    [<<131, 68, 1, 16#08, 7, 1, Letter>>,
     <<104, 3, 97, 22, 88, 82, 0, Sender:32, 0:32, 1:32, 0:(8 * Bytes)>>].

add_defining(Frame, Fair) ->
    weft_fair_queue_core:add(iolist_size(Frame), Frame, #{}, Fair).

fast_while_nobody_waits_test() ->
    New = weft_fair_queue_core:new(?MIB),
    ?assert(weft_fair_queue_core:fast(New)),
    Waiting = add_frame(weft_test_frames:whole(1, 1, 17000), #{}, New),
    ?assertNot(weft_fair_queue_core:fast(Waiting)),
    {_, _, _, Taken} = weft_fair_queue_core:take(all, ?PROGRESS_BYTES, Waiting),
    ?assert(weft_fair_queue_core:fast(Taken)),
    ?assertNot(weft_fair_queue_core:full(Taken)),
    Batch = weft_fair_queue_core:add_batch(binary:copy(<<0>>, 262144), 262144, 1, New),
    ?assert(weft_fair_queue_core:fast(Batch)),
    ?assert(weft_fair_queue_core:full(Batch)).

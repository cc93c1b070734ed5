%% SPDX-License-Identifier: Apache-2.0
%% @doc Whatever overtakes whatever, the peer reads the atoms that the sender meant.
-module(weft_atom_cache_tests).

-export([vm_writes/3, distinct_slots/1, text/1, without_body/2]).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-include("../src/carrier/queue/weft_frame_sizes.hrl").

properties_test_() ->
    [{Name, {timeout, 120, ?_assert(proper:quickcheck(Property, [{numtests, Count}, quiet]))}}
     || {Name, Count, Property} <- [{"any order", 1500, prop_any_order()},
                                    {"through the fair queue", 150, prop_fair_queue()},
                                    {"damaged", 1000, prop_damaged_is_no_error()}]].

%% --- any order --------------------------------------------------------------------------------

%% Frames leave one by one or joined, any of those that wait.
prop_any_order() ->
    ?FORALL({Messages, Choices}, {list(message()), list({range(0, 20), range(1, 4)})},
            begin
                {Frames, Cache} = fetched(Messages),
                Payloads = payloads(shuffled(Choices, Frames), Choices),
                {Read, _Have, _} = lists:foldl(fun peer_reads/2, {[], #{}, Cache}, Payloads),
                ?WHENFAIL(io:format("~p~n~p~n", [Payloads, Read]),
                          lists:sort(Read) =:= lists:sort(expected(Messages)))
            end).

%% A message uses some atoms; the slot is a function of the atom, as in the VM, and there are fewer
%% slots than atoms. Mostly the same ones.
message() ->
    ?LET({Kind, Atoms}, {oneof([whole, first, later]),
                         frequency([{20, list(range(1, 40))}, {1, list(range(1, 2000))}])},
         {Kind, lists:sublist(distinct_slots(lists:usort(Atoms)), 255)}).

slot(Atom) -> (Atom * 37) rem 300 + 7 * (Atom rem 2).

distinct_slots(Atoms) -> maps:values(maps:from_list([{slot(Atom), Atom} || Atom <- Atoms])).

text(Atom) when Atom rem 17 =:= 0 -> binary:copy(integer_to_binary(Atom), 200);
text(Atom) -> integer_to_binary(Atom).

expected(Messages) ->
    [{Number, case Kind of later -> []; _ -> [text(Atom) || Atom <- Atoms] end}
     || {Number, {Kind, Atoms}} <- lists:enumerate(Messages)].

%% As the VM makes them, with the stamps of the module under test.
fetched(Messages) ->
    {Frames, {_, Cache}} =
        lists:mapfoldl(fun({Number, Message}, {Vm0, Cache0}) ->
                               {Frame, Vm} = vm_writes(Number, Message, Vm0),
                               {Stamp, Cache} = weft_atom_cache:fetched(Frame, Cache0),
                               {{Frame, Stamp}, {Vm, Cache}}
                       end, {#{}, weft_atom_cache:new()}, lists:enumerate(Messages)),
    {Frames, Cache}.

vm_writes(Number, {later, _}, Vm) ->
    {[<<131, 70, 1:64, 2:64>>, <<Number:32>>], Vm};
vm_writes(Number, {Kind, Atoms}, Vm) ->
    Header = header([{slot(Atom), text(Atom), maps:get(slot(Atom), Vm, none) =/= Atom}
                     || Atom <- Atoms]),
    Before = case Kind of
                 whole -> <<131, 68>>;
                 first -> <<131, 69, 1:64, 3:64>>
             end,
    {[<<Before/binary, Header/binary>>, <<Number:32>>],
     lists:foldl(fun(Atom, Acc) -> Acc#{slot(Atom) => Atom} end, Vm, Atoms)}.

%% Written after the ERTS User's Guide, and on purpose not as in the module under test.
header([]) ->
    <<0>>;
header(Entries) ->
    Count = length(Entries),
    Long = lists:any(fun({_, Text, _}) -> byte_size(Text) > 255 end, Entries),
    Nibbles = [case New of true -> 8; false -> 0 end + Slot div 256 || {Slot, _, New} <- Entries]
        ++ [case Long of true -> 1; false -> 0 end] ++ [0 || Count rem 2 =:= 0],
    iolist_to_binary([Count, bytes(Nibbles), [reference(Entry, Long) || Entry <- Entries]]).

bytes([Low, High | Nibbles]) -> [Low + 16 * High | bytes(Nibbles)];
bytes([]) -> [].

reference({Slot, _Text, false}, _Long) -> Slot rem 256;
reference({Slot, Text, true}, true) -> [Slot rem 256, <<(byte_size(Text)):16>>, Text];
reference({Slot, Text, true}, false) -> [Slot rem 256, byte_size(Text), Text].

shuffled(_, []) -> [];
shuffled([], Frames) -> Frames;
shuffled([{At, _} | Choices], Frames) ->
    {Before, [Frame | After]} = lists:split(At rem length(Frames), Frames),
    [Frame | shuffled(Choices, Before ++ After)].

payloads([], _) -> [];
payloads(Frames, []) -> payloads(Frames, [{0, 3}]);
payloads(Frames, [{_, Count} | Choices]) ->
    {Now, Later} = lists:split(min(Count, length(Frames)), Frames),
    [Now | payloads(Later, Choices)].

%% What the peer's VM makes of a payload: the number of each frame, and its atoms. All that a header
%% names beyond what the frame uses is defined there.
peer_reads(Frames, {Read, Have0, Cache0}) ->
    Payload = [[<<(iolist_size(Frame)):32>> | Frame] || {Frame, _} <- Frames],
    Stamps = lists:foldl(fun({_, Stamp}, Acc) -> weft_atom_cache:joined([{1, Stamp}], Acc) end,
                         [], Frames),
    Bytes0 = iolist_size(Payload),
    {Sent, Bytes, Cache} = weft_atom_cache:sent(Payload, Bytes0, Stamps, Cache0),
    Bytes = iolist_size(Sent),
    {New, Have} = lists:mapfoldl(fun peer_reads_frame/2, Have0,
                                 [F || <<Size:32, F:Size/binary>> <= iolist_to_binary(Sent)]),
    Used = [length_of(Frame) || {Frame, _} <- Frames],
    {Read ++ [{Number, lists:sublist(Texts, Count)}
              || {{Number, Texts}, Count} <- lists:zip(New, Used)], Have, Cache}.

length_of([<<131, 68, Count, _/binary>> | _]) -> Count;
length_of([<<131, 69, _:128, Count, _/binary>> | _]) -> Count;
length_of(_) -> 0.

peer_reads_frame(<<131, 70, _:128, Number:32>>, Have) -> {{Number, []}, Have};
peer_reads_frame(<<131, 68, Header/binary>>, Have) -> peer_reads_header(Header, Have);
peer_reads_frame(<<131, 69, _:128, Header/binary>>, Have) -> peer_reads_header(Header, Have).

peer_reads_header(<<0, Number:32>>, Have) ->
    {{Number, []}, Have};
peer_reads_header(<<Count, Rest/binary>>, Have) ->
    FlagBytes = Count div 2 + 1,
    <<Flags:FlagBytes/binary, References/binary>> = Rest,
    Nibbles = lists:append([[Byte rem 16, Byte div 16] || <<Byte>> <= Flags]),
    LengthBits = 8 + 8 * (lists:nth(Count + 1, Nibbles) band 1),
    peer_reads_references(lists:sublist(Nibbles, Count), LengthBits, References, [], Have).

peer_reads_references([], _, <<Number:32>>, Texts, Have) ->
    {{Number, lists:reverse(Texts)}, Have};
peer_reads_references([Flag | Flags], Bits, <<Index, Rest/binary>>, Texts, Have)
  when Flag >= 8 ->
    <<Length:Bits, Text:Length/binary, More/binary>> = Rest,
    peer_reads_references(Flags, Bits, More, [Text | Texts],
                          Have#{(Flag - 8) * 256 + Index => Text});
peer_reads_references([Flag | Flags], Bits, <<Index, Rest/binary>>, Texts, Have) ->
    peer_reads_references(Flags, Bits, Rest, [maps:get(Flag * 256 + Index, Have) | Texts], Have).

%% --- through the fair queue -------------------------------------------------------------------

%% Large and small messages of several senders; the atoms of each are read as they were meant.
prop_fair_queue() ->
    ?FORALL(Steps, ?SIZED(Size, resize(10 * Size, list(queue_step()))),
            begin
                {_, _, Read, Meant} = drained(lists:foldl(fun queue_step/2,
                                                          {weft_fair_queue_core:new(8388608),
                                                           {1, #{}, #{}}, [], []}, Steps)),
                ?WHENFAIL(io:format("~p~n~p~n", [lists:sort(Read), lists:sort(Meant)]),
                          length(Read) =:= length(Meant)
                          andalso lists:all(fun({{Number, Texts}, {Number, Used}}) ->
                                                    lists:prefix(Used, Texts)
                                            end, lists:zip(lists:sort(Read), lists:sort(Meant))))
            end).

queue_step() ->
    frequency([{6, {add, range(1, 6), oneof([100, 100, 100, 30000]), list(range(1, 40))}},
               {2, {take, oneof([all, express])}}]).

queue_step({add, Sender, Bytes, Atoms0}, {Fair, {Number, Vm0, Have}, Read, Meant}) ->
    Atoms = distinct_slots(lists:usort(Atoms0)),
    {[Header, _], Vm} = vm_writes(Number, {whole, Atoms}, Vm0),
    Control = weft_test_frames:control([<<97, 22>>, weft_test_frames:pid(Sender),
                                        weft_test_frames:pid(1)]),
    Frame = [Header, Control, <<0:Bytes/unit:8, Number:32>>],
    {enqueue(Frame, Fair), {Number + 1, Vm, Have}, Read,
     [{Number, [text(Atom) || Atom <- Atoms]} | Meant]};
queue_step({take, Room}, {Fair0, {Number, Vm, Have0}, Read, Meant} = Same) ->
    case weft_fair_queue_core:take(Room, 4194304, Fair0) of
        {Payload, Bytes, _, Fair} ->
            Bytes = iolist_size(Payload),
            {New, Have} = lists:mapfoldl(fun without_body/2, Have0,
                                         [F || <<S:32, F:S/binary>> <= iolist_to_binary(Payload)]),
            {Fair, {Number, Vm, Have}, New ++ Read, Meant};
        empty ->
            Same
    end.

%% Not looked at when that is allowed, as the outlet does.
enqueue(Frame, Fair) ->
    Size = iolist_size(Frame),
    case weft_fair_queue_core:fast(Fair) andalso Size < ?SMALL_BYTES
        andalso not weft_atom_cache:defines(Frame) of
        true -> weft_fair_queue_core:add_batch([<<Size:32>> | Frame], Size + 4, 1, Fair);
        false -> weft_fair_queue_core:add(Size, Frame, #{}, Fair)
    end.

%% The number behind the body, and the atoms; control messages of this test use none.
without_body(Frame, Have) ->
    HeaderBytes = case weft_atom_cache:header_bytes(Frame) of none -> 3; Bytes -> Bytes end,
    Number = binary:part(Frame, byte_size(Frame), -4),
    peer_reads_frame(<<(binary:part(Frame, 0, HeaderBytes))/binary, Number/binary>>, Have).

drained(State) ->
    case queue_step({take, all}, State) of
        State -> State;
        Next -> drained(Next)
    end.

%% --- cases ------------------------------------------------------------------------------------

prop_damaged_is_no_error() ->
    ?FORALL({Atoms, At, Byte}, {list(range(1, 40)), range(2, 100), byte()},
            begin
                {[Header, _], _} = vm_writes(1, {whole, distinct_slots(lists:usort(Atoms))}, #{}),
                Place = min(At, byte_size(Header) - 1),
                <<Before:Place/binary, _, After/binary>> = Header,
                Bytes = weft_atom_cache:header_bytes(<<Before/binary, Byte, After/binary>>),
                Bytes =:= none orelse is_integer(Bytes)
            end).

%% What does not overtake passes as it is, definitions too.
in_order_nothing_is_written_anew_test() ->
    Messages = [{whole, [1, 2]}, {whole, [1, 2, 3]}, {whole, [4]}, {whole, [1, 4]}],
    {Frames, Cache0} = fetched(Messages),
    lists:foldl(fun({Frame, Stamp}, Cache) ->
                        Payload = [<<(iolist_size(Frame)):32>> | Frame],
                        {Payload, _, Next} = weft_atom_cache:sent(Payload, iolist_size(Payload),
                                                                  [{1, Stamp}], Cache),
                        Next
                end, Cache0, Frames).

%% After an overtaking frames are passed as they are again: both ends agree.
both_ends_agree_again_test() ->
    {[Overtaken, Overtaking, Third, Fourth], Cache0} =
        fetched([{whole, [1, 2, 3]}, {whole, [1]}, {whole, [4]}, {whole, [1, 2, 3, 4]}]),
    {_, _, Cache1} = send(Overtaking, Cache0),
    {_, _, Cache2} = send(Overtaken, Cache1),
    {_, _, Cache3} = send(Third, Cache2),
    {Payload, _, _} = send(Fourth, Cache3),
    {Frame, _} = Fourth,
    ?assertEqual([<<(iolist_size(Frame)):32>> | Frame], Payload).

send({Frame, Stamp}, Cache) ->
    Payload = [<<(iolist_size(Frame)):32>> | Frame],
    weft_atom_cache:sent(Payload, iolist_size(Payload), [{1, Stamp}], Cache).

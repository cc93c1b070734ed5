%% SPDX-License-Identifier: Apache-2.0
%% @doc The sender of every control message, in every encoding; and of nonsense.
-module(weft_frame_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(weft_test_frames, [pid/2, atom/2, control/1]).

properties_test_() ->
    [{atom_to_list(Name), {timeout, 60, ?_assert(proper:quickcheck(Property,
                                                                   [{numtests, 2000}, quiet]))}}
     || {Name, Property} <- [{sender_is_found, prop_sender_is_found()},
                             {nonsense, prop_nonsense_is_no_error()},
                             {damaged, prop_damaged_is_no_error()}]].

%% Wherever the pieces are cut, whatever the node is called.
prop_sender_is_found() ->
    ?FORALL({Key, Node, {_, Shape}, Header, Cuts},
            {key(), node_name(), shape(), header(), list(pos_integer())},
            begin
                Sender = pid(Key, Node),
                Other = pid(7, atom(119, <<"other@host">>)),
                Elements = case Shape of
                               {second, Op} -> [op(Op), Sender, Other];
                               {third_int, Op, Int} -> [op(Op), Int, Sender, Other];
                               {third_ref, Op} -> [op(Op), ref(Node), Sender, Other];
                               {fifth, Op} -> [op(Op), ref(Node), Other, <<97, 0>>, Sender]
                           end,
                Data = cut(Cuts, [head(Header), control(Elements), <<131, 100, 0, 1, $m>>]),
                ?WHENFAIL(io:format("~p~n", [Data]),
                          weft_frame:read(Data) =:= expected(Header, Key))
            end).

key() ->
    ?LET({Id, Serial}, {range(0, 16#ffffffff), range(0, 16#ffffffff)}, (Serial bsl 32) bor Id).

node_name() ->
    ?LET({Tag, Name}, {oneof([119, 118, 100, 115]), ?SUCHTHAT(B, binary(), byte_size(B) < 256)},
         atom(Tag, Name)).

shape() ->
    oneof([{second, {second, oneof([1, 3, 4, 6, 7, 8, 13, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26,
                                    27, 28, 33, 34])}},
           {third, {third_int, oneof([35, 36, 37]),
                    oneof([<<97, 5>>, <<98, 1:32>>, <<110, 8, 0, 1:64>>])}},
           {third, {third_ref, oneof([29, 30])}},
           {fifth, {fifth, oneof([31, 32])}}]).

header() ->
    oneof([whole, strict, {only_fragment, pos_integer()}, {first_fragment, pos_integer()}]).

head(whole) -> <<131, 68, 0>>;
head(strict) -> <<112, 131>>;
head({only_fragment, Sequence}) -> <<131, 69, Sequence:64, 1:64, 0>>;
head({first_fragment, Sequence}) -> <<131, 69, Sequence:64, 3:64, 0>>.

expected({first_fragment, Sequence}, Key) -> {first, Sequence, Key};
expected(_, Key) -> {whole, Key}.

op(Op) -> <<97, Op>>.

ref(Node) -> <<90, 3:16, Node/binary, 9:32, 1:32, 2:32, 3:32>>.

cut(Cuts, Data) ->
    cut_at(Cuts, iolist_to_binary(Data)).

cut_at([At | Cuts], Bin) when At < byte_size(Bin) ->
    <<Piece:At/binary, Rest/binary>> = Bin,
    [Piece | cut_at(Cuts, Rest)];
cut_at(_, Bin) ->
    [Bin].

prop_nonsense_is_no_error() ->
    ?FORALL({Head, Rest}, {oneof([<<>>, <<131, 68, 0>>, <<131, 68, 0, 104>>, <<112, 131>>]),
                           list(binary())},
            is_part(weft_frame:read([Head | Rest]))).

%% One byte of a good frame is changed.
prop_damaged_is_no_error() ->
    ?FORALL({At, Byte}, {range(0, 60), byte()},
            begin
                [Bin] = weft_test_frames:whole(5, 1, 80),
                <<Before:At/binary, _, After/binary>> = Bin,
                is_part(weft_frame:read([<<Before/binary, Byte, After/binary>>]))
            end).

is_part({whole, Sender}) -> is_sender(Sender);
is_part({first, Sequence, Sender}) -> is_integer(Sequence) andalso is_sender(Sender);
is_part({more, Sequence}) -> is_integer(Sequence);
is_part({final, Sequence}) -> is_integer(Sequence).

is_sender(Sender) -> is_integer(Sender) orelse Sender =:= last orelse Sender =:= ordered.

read(Elements) ->
    weft_frame:read([<<131, 68, 0>>, control(Elements)]).

a_process_monitored_by_name_is_last_test() ->
    Name = atom(119, <<"server">>),
    Other = pid(7, atom(119, <<"other@host">>)),
    [?assertEqual({whole, last}, read([op(Op), Name, Other])) || Op <- [21, 28]],
    ?assertEqual({whole, last}, read([op(31), ref(Name), Other, <<97, 0>>, Name])).

a_message_without_sender_is_ordered_test() ->
    Other = pid(7, atom(119, <<"other@host">>)),
    [?assertEqual({whole, ordered}, read([op(Op), atom(119, <<>>), Other])) || Op <- [2, 12, 22]],
    ?assertEqual({whole, ordered}, read([op(5)])).

%% Newer releases bring new control messages.
an_unknown_control_message_is_ordered_test() ->
    Other = pid(7, atom(119, <<"other@host">>)),
    [?assertEqual({whole, ordered}, read([op(Op), Other, Other])) || Op <- [0, 9, 38, 200, 255]].

%% References to atoms in the control message, definitions in the header, as the VM sends them.
with_the_atom_cache_test() ->
    Control = <<104, 3, 97, 22, 88, 82, 0, 9:32, 1:32, 7:32, 88, 82, 1, 0:96>>,
    Uses = <<131, 68, 3, 49, 1, 181, 125, 5>>,
    Defines = <<131, 68, 3, 49, 9, 181, 125, 5, 5, "hello">>,
    Text = binary:copy(<<$a>>, 300),
    Long = <<131, 69, 4:64, 3:64, 2, 16#80, 1, 181, 125, 300:16, Text/binary>>,
    First = <<131, 69, 4:64, 3:64, 3, 49, 1, 181, 125, 5>>,
    Only = <<131, 69, 4:64, 1:64, 3, 49, 1, 181, 125, 5>>,
    Key = 1 bsl 32 + 9,
    [?assertEqual(Expected, weft_frame:read(Frame))
     || {Expected, Header} <- [{{whole, Key}, Uses}, {{whole, Key}, Defines},
                               {{first, 4, Key}, Long}, {{first, 4, Key}, First},
                               {{whole, Key}, Only}],
        Frame <- [[Header, Control, <<82, 2>>], [<<Header/binary, Control/binary>>, <<82, 2>>],
                  [Header, binary:part(Control, 0, 3),
                   binary:part(Control, 3, byte_size(Control) - 3)]]].

later_fragments_refer_to_the_first_test() ->
    ?assertEqual({more, 9}, weft_frame:read([<<131, 70, 9:64, 2:64>>, <<"bytes">>])),
    ?assertEqual({final, 9}, weft_frame:read([<<131, 70, 9:64>>, <<1:64, "bytes">>])).

the_key_leads_back_to_the_process_test() ->
    Pid = spawn(fun() -> ok end),
    ?assertEqual(Pid, weft_frame:pid(weft_frame:key(Pid), self())),
    <<131, External/binary>> = term_to_binary(Pid),
    ?assertEqual({whole, weft_frame:key(Pid)}, read([op(22), External, External])).

%% --- fragments under way ----------------------------------------------------------------------

fragments_of_many_senders_test() ->
    Begun = lists:foldl(fun(N, F) -> weft_fragment_senders:first(N, {key, N}, F) end,
                        weft_fragment_senders:new(), lists:seq(1, 100)),
    {{key, 50}, More} = weft_fragment_senders:more(50, Begun),
    {{key, 50}, Ended} = weft_fragment_senders:final(50, More),
    ?assertEqual(99, weft_fragment_senders:size(Ended)),
    ?assertMatch({ordered, _}, weft_fragment_senders:more(50, Ended)).

%% A sender that dies in the middle leaves its entry; those that go on keep theirs.
fragments_that_never_end_are_forgotten_test() ->
    Step = fun(N, F0) ->
                   {1, F} = weft_fragment_senders:more(0, weft_fragment_senders:first(N, dead, F0)),
                   F
           end,
    Fragments = lists:foldl(Step, weft_fragment_senders:first(0, 1, weft_fragment_senders:new()),
                            lists:seq(1, 50000)),
    ?assert(weft_fragment_senders:size(Fragments) =< 2 * 4096),
    ?assertMatch({ordered, _}, weft_fragment_senders:more(1, Fragments)).

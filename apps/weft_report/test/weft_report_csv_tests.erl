%% SPDX-License-Identifier: Apache-2.0
-module(weft_report_csv_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

numbers_and_text_test() ->
    ?assertEqual(<<"small,12,0.5,\"a, b\",\"say \"\"no\"\"\"\n">>,
                 weft_report_csv:line([small, 12, 0.5, "a, b", <<"say \"no\"">>])).

an_unfinished_last_line_is_left_out_test() ->
    ?assertEqual([[<<"a">>, <<"b">>]], weft_report_csv:parse(<<"a,b\nc,">>)),
    ?assertEqual([[<<"a">>]], weft_report_csv:parse(<<"a\n\"c">>)).

empty_fields_are_kept_test() ->
    ?assertEqual([[<<"a">>, <<>>, <<>>], [<<>>, <<"b">>]],
                 weft_report_csv:parse(<<"a,,\r\n\r\n,b\n">>)).

what_is_written_is_read_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_round_trip(), [{numtests, 300},
                                                                 {to_file, user}]))}.

prop_round_trip() ->
    ?FORALL(Lines, list(?LET({First, Rest}, {non_empty(text()), list(text())}, [First | Rest])),
            Lines =:= weft_report_csv:parse(iolist_to_binary(
                                              [weft_report_csv:line(Line) || Line <- Lines]))).

%% Carriage returns end lines for a reader, so text does not have them.
text() ->
    ?LET(Bytes, list(oneof([$a, $b, $,, $", $\n, $\s])), list_to_binary(Bytes)).

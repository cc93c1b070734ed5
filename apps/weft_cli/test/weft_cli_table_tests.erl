%% SPDX-License-Identifier: Apache-2.0
-module(weft_cli_table_tests).

-include_lib("eunit/include/eunit.hrl").

format(Rows) -> unicode:characters_to_list(weft_cli_table:format(Rows)).

columns_are_as_wide_as_their_widest_cell_test() ->
    ?assertEqual("a     b\nlong  x\n", format([["a", "b"], ["long", "x"]])).

rows_may_be_short_and_cells_nested_test() ->
    ?assertEqual("node  pid\nn01\nn2    7\n",
                 format([["node", "pid"], [["n", "01"]], ["n2", "7"]])).

bytes_test() ->
    ?assertEqual(["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "2.5 MB"],
                 [weft_cli_table:bytes(B) || B <- [0, 999, 1000, 999949, 999950, 2500000]]),
    ?assertEqual(["999.9 MB", "1.0 GB", "999.9 GB", "1.0 TB", "12345.7 TB"],
                 [weft_cli_table:bytes(B) || B <- [999949999, 999950000, 999949999999, 999950000000,
                                                   12345678900000000]]).

milliseconds_test() ->
    ?assertEqual(["-", "0.3 ms", "12.0 ms"],
                 [weft_cli_table:milliseconds(Us) || Us <- [undefined, 250, 12000]]).

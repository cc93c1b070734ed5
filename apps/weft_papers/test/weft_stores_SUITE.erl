%% SPDX-License-Identifier: Apache-2.0
%% @doc A small run of `bin/bench stores': the file has a row of each measurement, and none of a
%% store whose program is not installed. FULL=1 takes all stores.
-module(weft_stores_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([stores_are_measured/1, wrong_arguments_are_refused/1]).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [stores_are_measured, wrong_arguments_are_refused].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

stores_are_measured(Config) ->
    Dir = ?config(priv_dir, Config),
    Stores = case os:getenv("FULL") of
                 false -> [weft, redis_disk];
                 _ -> [weft, weft_disk, weft_strong, mnesia_dirty, mnesia, mnesia_disc, redis,
                       redis_disk, etcd]
             end,
    ?assertEqual(0, run(["--stores", lists:flatten(lists:join(",", [atom_to_list(Store)
                                                                    || Store <- Stores])),
                         "--clients", "2", "--seconds", "1", "--repetitions", "1",
                         "--out", Dir])),
    Expected = [{atom_to_binary(Store), Operation}
                || Store <- Stores, weft_stores_program:missing(Store) =:= none,
                   Operation <- [<<"put">>, <<"get">>]],
    Rows = rows(filename:join(Dir, "stores.csv")),
    ?assertEqual(Expected, [{Store, Operation} || #{<<"store">> := Store,
                                                    <<"operation">> := Operation} <- Rows]),
    [begin
         ?assert(binary_to_integer(Calls) > 0),
         ?assertEqual({Row, <<"0">>}, {Row, Errors})
     end || #{<<"calls">> := Calls, <<"errors">> := Errors} = Row <- Rows],
    %% What it has started is over, and so is what they had on disk.
    ?assertEqual([], filelib:wildcard(filename:join([Dir, "data", "*"]))).

wrong_arguments_are_refused(_Config) ->
    [?assertEqual({Arguments, 2}, {Arguments, run(Arguments)})
     || Arguments <- [["--stores", "mongo"], ["--clients", "0"], ["--seconds", "x"], ["--store"]]].

run(Arguments) -> weft_argparse:run(Arguments, weft_stores:command(), "bin/bench stores").

rows(File) ->
    {ok, Text} = file:read_file(File),
    [Header | Lines] = [string:lexemes(Line, ",") || Line <- string:lexemes(Text, "\n")],
    [maps:from_list(lists:zip(Header, Line)) || Line <- Lines].

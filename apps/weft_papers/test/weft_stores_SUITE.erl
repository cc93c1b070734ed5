%% SPDX-License-Identifier: Apache-2.0
%% @doc A small run of `bin/bench stores': the file has a row of each measurement, and none of a
%% store whose program or library is not installed. FULL=1 takes all stores.
-module(weft_stores_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([stores_are_measured/1, a_store_that_fails_costs_its_own_rows/1,
         a_store_that_is_not_there_is_left_out/1, wrong_arguments_are_refused/1]).

suite() -> [{timetrap, {minutes, 5}}].

all() ->
    [stores_are_measured, a_store_that_is_not_there_is_left_out, wrong_arguments_are_refused]
        ++ [a_store_that_fails_costs_its_own_rows || os:getenv("FULL") =/= false].

init_per_suite(Config) -> weft_bench_test_cluster:begin_suite(Config).

end_per_suite(Config) -> weft_bench_test_cluster:end_suite(Config).

stores_are_measured(Config) ->
    Dir = ?config(priv_dir, Config),
    Stores = case os:getenv("FULL") of
                 false -> [weft, redis_disk];
                 _ -> [weft, weft_disk, weft_strong, mnesia_dirty, mnesia, mnesia_disc, khepri,
                       khepri_consistent, redis, redis_disk, etcd]
             end,
    ?assertEqual(0, run(["--stores", lists:flatten(lists:join(",", [atom_to_list(Store)
                                                                    || Store <- Stores])),
                         "--clients", "2", "--seconds", "1", "--repetitions", "1",
                         "--out", Dir])),
    Expected = [{atom_to_binary(Store), Operation}
                || Store <- Stores, is_there(Store),
                   Operation <- [<<"put">>, <<"get">>, <<"killed">>]],
    Rows = rows(filename:join(Dir, "stores.csv")),
    ?assertEqual(Expected, [{Store, Operation} || #{<<"store">> := Store,
                                                    <<"operation">> := Operation} <- Rows]),
    [begin
         ?assert(binary_to_integer(Calls) > 0),
         ?assertEqual({Row, <<"0">>}, {Row, Errors})
     end || #{<<"calls">> := Calls, <<"errors">> := Errors} = Row <- Rows],
    %% Two have what they acknowledge.
    ?assertEqual([], [Row || #{<<"operation">> := <<"killed">>, <<"lost">> := Lost} = Row <- Rows,
                             Lost =/= <<"0">>, not may_lose(Row)]),
    %% What it has started is over, and so is what they had on disk.
    ?assertEqual([], filelib:wildcard(filename:join([Dir, "data", "*"]))).

may_lose(#{<<"store">> := Store}) -> lists:member(Store, [<<"mnesia_dirty">>, <<"redis">>]).

is_there(Store) when Store =:= khepri; Store =:= khepri_consistent ->
    weft_stores_khepri:missing() =:= none;
is_there(Store) ->
    weft_stores_program:missing(Store) =:= none.

%% Libraries of these names, with which Khepri can not start. Its rows say so by having no numbers.
a_store_that_fails_costs_its_own_rows(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "fails"),
    Libraries = [khepri, ra, horus],
    Path = code:get_path(),
    ok = filelib:ensure_path(Dir),
    try
        [begin
             {ok, Library, Beam} = compile:forms([{attribute, 1, module, Library}]),
             ok = file:write_file(filename:join(Dir, atom_to_list(Library) ++ ".beam"), Beam)
         end || Library <- Libraries],
        true = code:add_patha(Dir),
        ok = forget(Libraries),
        Out = filename:join(Dir, "out"),
        ?assertEqual(1, run(["--stores", "khepri,weft", "--clients", "1", "--seconds", "1",
                             "--repetitions", "1", "--out", Out])),
        Rows = rows(filename:join(Out, "stores.csv")),
        [?assertEqual({Store, [<<"put">>, <<"get">>, <<"killed">>]},
                      {Store, [Operation || #{<<"store">> := Of, <<"operation">> := Operation}
                                                <- Rows, Of =:= Store]})
         || Store <- [<<"khepri">>, <<"weft">>]],
        [?assertEqual({Row, Store =:= <<"khepri">>}, {Row, Calls =:= <<"none">>})
         || #{<<"store">> := Store, <<"calls">> := Calls} = Row <- Rows]
    after
        true = code:set_path(Path),
        ok = forget(Libraries)
    end.

forget(Modules) ->
    lists:foreach(fun(Module) -> code:purge(Module), code:delete(Module), code:purge(Module) end,
                  Modules).

%% Khepri where it is not on the code path, and where it is that of a later OTP.
a_store_that_is_not_there_is_left_out(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "absent"),
    Path = code:get_path(),
    try
        true = code:set_path([P || P <- Path, string:find(P, "khepri") =:= nomatch]),
        ok = forget([khepri]),
        told_what_is_missing(filename:join(Dir, "not_there")),
        ok = filelib:ensure_path(Dir),
        ok = file:write_file(filename:join(Dir, "khepri.beam"), <<"FOR1 of a later release">>),
        true = code:add_patha(Dir),
        told_what_is_missing(filename:join(Dir, "later"))
    after
        true = code:set_path(Path)
    end.

told_what_is_missing(Dir) ->
    ok = ct:capture_start(),
    Status = run(["--stores", "khepri", "--out", Dir]),
    ok = ct:capture_stop(),
    Told = lists:append(ct:capture_get()),
    ?assertEqual({0, []}, {Status, rows(filename:join(Dir, "stores.csv"))}),
    [?assertNotEqual({Text, nomatch}, {Text, string:find(Told, Text)})
     || Text <- ["khepri is not measured: no library khepri for OTP ", "hex.pm", "ERL_LIBS",
                 "RabbitMQ 4"]].

wrong_arguments_are_refused(_Config) ->
    [?assertEqual({Arguments, 2}, {Arguments, run(Arguments)})
     || Arguments <- [["--stores", "mongo"], ["--clients", "0"], ["--seconds", "x"], ["--store"]]].

run(Arguments) -> weft_argparse:run(Arguments, weft_stores:command(), "bin/bench stores").

rows(File) ->
    {ok, Text} = file:read_file(File),
    [Header | Lines] = [string:lexemes(Line, ",") || Line <- string:lexemes(Text, "\n")],
    [maps:from_list(lists:zip(Header, Line)) || Line <- Lines].

%% SPDX-License-Identifier: Apache-2.0
%% @doc A load on two hosts, which are emulators of this machine: it is one load for all that is
%% counted, and what a host did before it was lost is part of it.
-module(weft_load_hosts_tests).

-include_lib("eunit/include/eunit.hrl").

-export([joined/1, new/1, run/4]).

-define(RUN_S, 120).

%% --- on the hosts -----------------------------------------------------------------------------

joined(ok) -> ok;
joined(Text) -> {error, Text}.

%% The workers of the first host have the first numbers.
new(Id) -> {ok, Id}.

run(take, Key, _Value, Id) ->
    _ = Key(),
    {ok, Id};
run(go_on, _Key, _Value, 1 = Id) ->
    {ok, Id};
run(go_on, _Key, _Value, 2 = Id) ->
    case filelib:is_regular(basho_bench_config:get(end_file)) of
        true -> halt(1);
        false -> {ok, Id}
    end.

%% --- here -------------------------------------------------------------------------------------

%% Each key is taken once: workers are numbered through all hosts. Then there is none left. The
%% clock of the second host is many seconds ahead, but it begins with the first one.
workers_share_the_keys_test_() ->
    {timeout, ?RUN_S, fun() ->
        in_dir(fun(Dir) ->
            Config = config([{duration, infinity}, {mode, {rate, 200}}, {operations, [{take, 1}]},
                             {key_generator, {partitioned_sequential_int, 101}}]),
            {ok, #{total := #{take := Meter}, lost := [], errors := [], finished := 2,
                   elapsed_us := ElapsedUs}} =
                weft_load_hosts:run(Config, Dir, ahead(place(Dir, [ok, ok])), fun tell/2),
            ?assertEqual(101, done(Meter)),
            ?assert(ElapsedUs < ?RUN_S * 1000000),
            ?assertEqual([50, 51], lists:sort([counted(filename:join(Dir, Number), "total.csv")
                                               || Number <- ["1", "2"]])),
            [?assertEqual({File, 101}, {File, counted(Dir, File)})
             || File <- ["total.csv", "series.csv"]],
            Environment = environment(Dir),
            ?assertEqual("1: one, 2: two", proplists:get_value("hosts", Environment)),
            ?assertEqual("shop", proplists:get_value("deployment", Environment)),
            ?assertEqual("[a@one,b@two]", proplists:get_value("config_nodes", Environment)),
            %% They have it in common.
            ?assertNotEqual(undefined, proplists:get_value("cores", Environment)),
            ?assert(list_to_integer(proplists:get_value("start_spread_us", Environment)) < 3000000)
        end)
    end}.

%% The other one goes on, and is ended by an interrupt. What both did is in the sum.
a_host_is_lost_and_the_load_is_interrupted_test_() ->
    {timeout, ?RUN_S, fun() ->
        in_dir(fun(Dir) ->
            End = filename:join(Dir, "end"),
            Self = self(),
            Tell = fun(2, _Second) -> file:write_file(End, "");
                      (1, _Second) -> Self ! weft_bench_interrupt
                   end,
            %% An interval is longer than all this takes.
            Config = config([{duration, infinity}, {mode, {rate, 100}}, {operations, [{go_on, 1}]},
                             {end_file, End}, {report_interval, ?RUN_S}]),
            {ok, #{total := #{go_on := Meter}, lost := [Lost]}} =
                weft_load_hosts:run(Config, Dir, place(Dir, [ok, ok]), Tell),
            ok = no_more_interrupts(),
            ?assertEqual("two was lost: its emulator has ended", Lost),
            Each = [counted(filename:join(Dir, Number), "series.csv") || Number <- ["1", "2"]],
            ?assertEqual([], [Number || Number <- Each, Number =:= 0]),
            ?assertEqual(lists:sum(Each), done(Meter)),
            ?assertEqual(Lost, proplists:get_value("not_measured_to_the_end", environment(Dir)))
        end)
    end}.

a_host_that_can_not_be_used_is_named_test_() ->
    {timeout, ?RUN_S, fun() ->
        in_dir(fun(Dir) ->
            #{hosts := [First, Second]} = Place = place(Dir, ["it has no key", ok]),
            Run = fun(Hosts) ->
                          weft_load_hosts:run(config([{operations, [{take, 1}]}]), Dir,
                                              Place#{hosts := Hosts}, fun tell/2)
                  end,
            ?assertEqual({error, "one: it has no key"}, Run([First])),
            ?assertEqual({error, "two: no emulator starts: it ends with status 1"},
                         Run([Second#{command := fun(_) -> {"/bin/false", []} end}])),
            ?assertEqual([], filelib:wildcard("*/series.csv", Dir))
        end)
    end}.

tell(_Count, _Second) -> ok.

%% One for each second that was told, which would interrupt the tests after this one.
no_more_interrupts() ->
    receive weft_bench_interrupt -> no_more_interrupts()
    after 0 -> ok
    end.

place(Dir, Joins) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    #{deployment => "shop", nodes => [a@one, b@two], source_dir => undefined,
      hosts => [#{address => Name, erl => Erl, arguments => ["+S", "1:1"],
                  code => weft_bench_nodes:code_path(), results => filename:join([Dir, at, Name]),
                  command => fun([Program | Arguments]) -> {Program, Arguments} end,
                  join => {?MODULE, joined, [Join]}}
                || {Name, Join} <- lists:zip(["one", "two"], Joins)]}.

%% Needs root, or the right to make a time namespace; elsewhere the clock is the same.
ahead(#{hosts := [First, #{command := Command} = Second]} = Place) ->
    Ahead = ["unshare", "--time", "--monotonic", "1000"],
    case os:cmd(lists:join(" ", Ahead ++ ["true", "&&", "echo", "yes"])) of
        "yes\n" ->
            Unshare = os:find_executable("unshare"),
            Within = fun(Words) ->
                         {Program, Arguments} = Command(Words),
                         {Unshare, tl(Ahead) ++ [Program | Arguments]}
                     end,
            Place#{hosts := [First, Second#{command := Within}]};
        _ ->
            Place
    end.

config(Pairs) ->
    {ok, Config} = weft_load_config:check(
                     Pairs ++ [{driver, ?MODULE}, {concurrent, 1}, {report_interval, 1},
                               {operation_timeout_s, 5}]),
    Config.

done(#{service := Service}) -> weft_load_histogram:count(Service).

%% Of the only operation.
counted(Dir, File) ->
    {ok, Text} = file:read_file(filename:join(Dir, File)),
    lists:sum([binary_to_integer(Count) || [_, _, Count | _] <- tl(weft_report_csv:parse(Text))]).

environment(Dir) ->
    {ok, Environment} = weft_report_record:read_environment(Dir),
    [{binary_to_list(Key), binary_to_list(Value)} || {Key, Value} <- maps:to_list(Environment)].

in_dir(Test) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["weft-load-hosts-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try Test(Dir) after ok = file:del_dir_r(Dir) end.

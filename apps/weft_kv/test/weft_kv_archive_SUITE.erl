%% SPDX-License-Identifier: Apache-2.0
%% @doc Backups of real nodes: one that is taken while clients write, and brought into another
%% cluster; and imports into a store that is used.
-module(weft_kv_archive_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([a_backup_under_writes_is_a_new_cluster/1, an_import_loses_nothing/1]).
-export([writer/1, number/1]).

suite() -> [{timetrap, {minutes, 4}}].

all() -> [an_import_loses_nothing, a_backup_under_writes_is_a_new_cluster].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% The import leaves its cluster, with buckets of its own, to the other case.
end_per_testcase(Case, Config) ->
    case {Case, ?config(tc_status, Config)} of
        {an_import_loses_nothing, ok} -> ok;
        _ -> weft_test_nodes:stop_all()
    end.

%% --- a backup under writes ---------------------------------------------------------------------

%% What was acknowledged before it began is in it, though a node dies meanwhile.
a_backup_under_writes_is_a_new_cluster(Config) ->
    Dir = filename:join(?config(priv_dir, Config), "backups"),
    [A, B, C] = cluster(first, [a, b, c], Config),
    {ok, _} = call(A, weft_kv, put, [carts, <<"ann">>, <<"bread">>]),
    {ok, _} = call(B, weft_kv, put, [carts, <<"ann">>, <<"milk">>]),
    {ok, _} = call(A, weft_kv, put, [carts, <<"gone">>, <<"soon">>]),
    {ok, _} = call(A, weft_kv, delete, [carts, <<"gone">>]),
    {ok, _} = call(A, weft_kv, put, [accounts, <<"ann">>, <<"100">>]),
    {ok, _} = call(A, weft_kv, put, [pages, <<"/">>, <<"<html>">>,
                                     #{content_type => <<"text/html">>}]),
    Writers = [{Ref, call(Ref, ?MODULE, writer, [Name])} || {Name, Ref} <- [{<<"a">>, A},
                                                                            {<<"b">>, B}]],
    weft_test_nodes:until(fun() -> lists:min(numbers(Writers)) > 150 end, 60000),
    Before = lists:zip([<<"a">>, <<"b">>], numbers(Writers)),
    Taking = weft_test_nodes:name(A),
    {Backup, Ref} = spawn_monitor(fun() ->
                                      exit({done, call(A, weft_kv, backup, [Dir, #{keep => 1}])})
                                  end),
    ok = weft_test_nodes:kill(C),
    {ok, #{file := File, buckets := Counts, about := #{node := TakenAt}}} =
        receive {'DOWN', Ref, process, Backup, {done, Result}} -> Result end,
    ?assertEqual(atom_to_binary(Taking), TakenAt),
    ?assertMatch(#{<<"pages">> := #{records := 1}, <<"accounts">> := #{records := 1}}, Counts),
    {ok, #{file := Later}} = call(A, weft_kv, backup, [Dir, #{keep => 1}], 60000),
    ?assertEqual([filename:basename(Later)], element(2, file:list_dir(Dir))),
    ?assertNotEqual(File, Later),
    ok = weft_test_nodes:stop_all(),
    Refs = [D, E, _] = cluster(second, [d, e, f], Config),
    {ok, _} = call(E, weft_kv, put, [carts, <<"ann">>, <<"eggs">>]),
    {ok, #{buckets := Imported}} = call(D, weft_kv, import, [Later, #{}], 60000),
    ?assertMatch(#{<<"carts">> := #{records := Count}} when Count > 300, Imported),
    [?assertMatch({Key, {ok, Key, _}}, {Key, call(E, weft_kv, get, [carts, Key])})
     || {Name, Last} <- Before, N <- lists:seq(1, Last), Key <- [key(Name, N)]],
    restored(Refs).

restored([D, E, F]) ->
    {siblings, [<<"bread">>, <<"eggs">>, <<"milk">>], Context} =
        call(F, weft_kv, get, [carts, <<"ann">>]),
    {ok, _} = call(E, weft_kv, put, [carts, <<"ann">>, <<"all">>, #{context => Context}]),
    ?assertMatch({ok, <<"all">>, _}, call(D, weft_kv, get, [carts, <<"ann">>])),
    ?assertEqual({error, not_found}, call(D, weft_kv, get, [carts, <<"gone">>])),
    ?assertMatch({ok, <<"100">>, _}, call(F, weft_kv, get, [accounts, <<"ann">>])),
    ?assertMatch({ok, [#{value := <<"<html>">>, content_type := <<"text/html">>}], _},
                 call(F, weft_kv, read, [pages, <<"/">>, #{}])).

numbers(Writers) -> [call(Ref, ?MODULE, number, [Pid]) || {Ref, Pid} <- Writers].

writer(Name) -> spawn(fun() -> writing(Name, 1) end).

writing(Name, N) ->
    Key = key(Name, N),
    case weft_kv:put(carts, Key, Key) of
        {ok, _} ->
            _ = put(number, N),
            %% pacing: a client does other things, too
            receive after 2 -> writing(Name, N + 1) end;
        {error, _} -> writing(Name, N)
    end.

key(Name, N) -> <<Name/binary, (integer_to_binary(N))/binary>>.

number(Pid) ->
    {dictionary, Dictionary} = process_info(Pid, dictionary),
    proplists:get_value(number, Dictionary, 0).

%% --- into a store that is used ------------------------------------------------------------------

an_import_loses_nothing(Config) ->
    [A, B, C] = cluster(first, [a, b, c], Config),
    File = filename:join(?config(priv_dir, Config), "some.archive"),
    [{ok, _} = call(A, weft_kv, put, [stalls, Key, <<"old">>])
     || Key <- [<<"replaced">>, <<"deleted">>, <<"beside">>]],
    [{ok, _} = call(A, weft_kv, put, [ledgers, Key, <<"1">>]) || Key <- [<<"x">>, <<"y">>]],
    {ok, _} = call(A, weft_kv, export, [File, #{buckets => [<<"stalls">>, <<"ledgers">>]}]),
    {ok, <<"old">>, Context} = call(B, weft_kv, get, [stalls, <<"replaced">>]),
    {ok, _} = call(B, weft_kv, put, [stalls, <<"replaced">>, <<"new">>, #{context => Context}]),
    {ok, _} = call(B, weft_kv, delete, [stalls, <<"deleted">>]),
    {ok, _} = call(B, weft_kv, put, [stalls, <<"beside">>, <<"other">>]),
    {ok, _} = call(B, weft_kv, put, [stalls, <<"later">>, <<"later">>]),
    {ok, _} = call(B, weft_kv, cas, [ledgers, <<"x">>, <<"1">>, <<"2">>]),
    {ok, _} = call(B, weft_kv, delete, [ledgers, <<"y">>]),
    %% Twice is as once.
    [?assertMatch({ok, #{buckets := #{<<"stalls">> := #{records := 3, kept := 0},
                                      <<"ledgers">> := #{records := 2, kept := 1}}}},
                  call(Ref, weft_kv, import, [File, #{}], 60000)) || Ref <- [A, C]],
    Get = fun(Bucket, Key) -> call(C, weft_kv, get, [Bucket, Key]) end,
    ?assertMatch({ok, <<"new">>, _}, Get(stalls, <<"replaced">>)),
    ?assertEqual({error, not_found}, Get(stalls, <<"deleted">>)),
    ?assertMatch({siblings, [<<"old">>, <<"other">>], _}, Get(stalls, <<"beside">>)),
    ?assertMatch({ok, <<"later">>, _}, Get(stalls, <<"later">>)),
    ?assertMatch({ok, <<"2">>, _}, Get(ledgers, <<"x">>)),
    ?assertMatch({ok, <<"1">>, _}, Get(ledgers, <<"y">>)),
    {ok, _} = call(A, weft_kv, import, [File, #{buckets => [<<"ledgers">>], overwrite => true}]),
    ?assertMatch({ok, <<"1">>, _}, Get(ledgers, <<"x">>)),
    elsewhere(File, A),
    bad_files(File, A).

%% Into a bucket of another name, of other options.
elsewhere(File, A) ->
    {ok, _} = call(A, weft_kv, import, [File, #{buckets => [<<"stalls">>], into => <<"sheets">>}]),
    ?assertMatch({ok, <<"old">>, _}, call(A, weft_kv, get, [sheets, <<"replaced">>])),
    [?assertEqual({error, Reason}, call(A, weft_kv, import, [File, Options]))
     || {Reason, Options} <-
            [{{unknown_bucket, <<"no">>}, #{buckets => [<<"stalls">>], into => <<"no">>}},
             {{file, File, {not_in_the_file, <<"sheets">>}}, #{buckets => [<<"sheets">>]}},
             {{file, File, {into_is_for_one_bucket, [<<"ledgers">>, <<"stalls">>]}},
              #{into => <<"stalls">>}},
             {{other_consistency, #{bucket => <<"ledgers">>, there => strong,
                                    in_the_file => eventual}},
              #{buckets => [<<"stalls">>], into => <<"ledgers">>}}]],
    ?assertMatch({error, {bucket, <<"small">>, {key, _, {too_large, 2}}}},
                 call(A, weft_kv, import,
                      [File, #{buckets => [<<"stalls">>], into => <<"small">>}])).

%% Nothing of them is taken, though what is before the damage could be.
bad_files(File, A) ->
    {ok, Bytes} = file:read_file(File),
    Bad = File ++ ".bad",
    Half = byte_size(Bytes) * 3 div 4,
    <<Before:Half/binary, Byte, Behind/binary>> = Bytes,
    Import = fun(Written) ->
                 ok = file:write_file(Bad, Written),
                 call(A, weft_kv, import, [Bad, #{buckets => [<<"stalls">>], into => <<"empty">>}])
             end,
    ?assertMatch({error, {file, Bad, {truncated, #{byte := Half}}}}, Import(Before)),
    ?assertMatch({error, {file, Bad, {damaged, _}}},
                 Import([Before, Byte bxor 1, Behind])),
    ?assertMatch({error, {file, Bad, {later_version, 2}}}, Import("weft_kv archive 2\n")),
    ?assertMatch({error, {file, "/no/file", enoent}}, call(A, weft_kv, import, ["/no/file", #{}])),
    ?assertMatch({error, {file, _, enoent}}, call(A, weft_kv, export, ["/no/dir/file", #{}])),
    ?assertEqual({error, {unknown_bucket, <<"no">>}},
                 call(A, weft_kv, export, [Bad, #{buckets => [<<"no">>]}])),
    ?assertEqual({ok, []}, call(A, weft_kv, list, [empty])),
    {ok, _} = Import(Bytes),
    {ok, [_, _, _]} = call(A, weft_kv, list, [empty]).

%% --- nodes ------------------------------------------------------------------------------------

cluster(Place, Names, Config) ->
    weft_test_nodes:shared(Names, fun() -> new_cluster(Place, Names, Config) end).

new_cluster(Place, Names, Config) ->
    [A | Others] = Refs = [start(Name, Place, Names, Config) || Name <- Names],
    ok = call(A, weft_ring, create, []),
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]) || Ref <- Others],
    weft_test_nodes:until(fun() ->
                              lists:all(fun(Ref) ->
                                            ok =:= call(A, weft_ring, stage,
                                                        [weft_test_nodes:name(Ref), join])
                                        end, Others)
                          end),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    weft_test_nodes:until(fun() -> lists:all(fun is_settled/1, Refs) end, 60000),
    weft_test_nodes:until(fun() ->
                              lists:all(fun({Ref, Bucket, P}) ->
                                            voting =:= call(Ref, weft_kv_strong_acceptor, status,
                                                            [Bucket, P])
                                        end, [{Ref, Bucket, P} || Ref <- Refs, P <- [0, 1],
                                                                  Bucket <- [accounts, ledgers]])
                          end),
    Refs.

is_settled(Ref) ->
    #{moving := Moving, owned := Owned} = call(Ref, weft_ring, status, []),
    Moving =:= 0 andalso map_size(Owned) =:= 3.

start(Name, Place, Names, Config) ->
    Dir = filename:join([?config(priv_dir, Config), Place, Name]),
    Voters = [weft_test_nodes:node_name(Voter) || Voter <- Names],
    Carts = #{nodes => 2, retries => 10},
    Pages = #{siblings => false},
    Accounts = #{consistency => strong, voters => Voters, dir => Dir, partitions => 2},
    Buckets = #{carts => Carts, pages => Pages, accounts => Accounts,
                stalls => Carts, sheets => Pages, ledgers => Accounts,
                empty => #{}, small => #{value_max => 2}},
    Keys = [{weft_ring, partitions, 8}, {weft_ring, sync_ms, 300},
            {weft_ring, vnodes, [weft_kv_vnode]}, {weft_kv, buckets, Buckets}],
    Args = weft_kv_test_args:args(?MODULE, Keys),
    Ref = weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

call(Ref, Module, Function, Arguments) -> call(Ref, Module, Function, Arguments, 30000).

call(Ref, Module, Function, Arguments, TimeoutMs) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, TimeoutMs).

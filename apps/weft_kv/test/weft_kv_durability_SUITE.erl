%% SPDX-License-Identifier: Apache-2.0
%% @doc Buckets of different durability in one ring, on real nodes whose files stay when they are
%% killed: the buckets of the guide, and one that asks for something else after a start.
-module(weft_kv_durability_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([each_bucket_of_the_guide_keeps_what_it_says/1, a_bucket_leaves_the_files_and_comes_back/1,
         a_node_without_a_disk_promises_none/1]).

-define(KEY, <<"key">>).
%% With these a value is there, or not, whatever copies nodes bring each other.
-define(ALL, #{r => all}).
-define(TRIES, 200).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [each_bucket_of_the_guide_keeps_what_it_says, a_bucket_leaves_the_files_and_comes_back,
     a_node_without_a_disk_promises_none].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(Case, Config) ->
    [{files, filename:join(?config(priv_dir, Config), Case)} | Config].

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- killed -----------------------------------------------------------------------------------

%% Both nodes at once, so nobody has a copy in memory.
each_bucket_of_the_guide_keeps_what_it_says(Config) ->
    Buckets = #{orders := #{durability := synced}, clicks := #{durability := written},
                sessions := #{durability := memory}} = of_the_guide(),
    Nodes = [A, _] = joined(started(Buckets, Config)),
    [{ok, _} = call(A, weft_kv, put, [Bucket, ?KEY, value(Bucket)])
     || Bucket <- maps:keys(Buckets)],
    {ok, _} = call(A, weft_kv, put, [sessions, <<"another">>, <<"one">>]),
    {ok, _} = call(A, weft_kv, delete, [sessions, <<"another">>]),
    ?assertEqual([clicks, orders], in_files(Buckets, Config)),
    [_, B] = again(Nodes, Buckets, Config),
    ?assertEqual([{clicks, value(clicks)}, {orders, value(orders)}, {sessions, none}],
                 [{Bucket, found(B, Bucket)} || Bucket <- lists:sort(maps:keys(Buckets))]),
    ?assertEqual([clicks, orders], in_files(Buckets, Config)).

of_the_guide() ->
    [Text] = [Text || Text <- weft_guide:page("kv.md", "erlang config"),
                      string:find(Text, "durability") =/= nomatch],
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, {weft_kv, [{buckets, Buckets}]}} = erl_parse:parse_term(Tokens),
    Buckets.

%% --- changed ----------------------------------------------------------------------------------

%% What was deleted while the bucket was in memory only is not found in an old file, and what was
%% written is lost with the nodes.
a_bucket_leaves_the_files_and_comes_back(Config) ->
    Asks = fun(Durability) -> #{box => #{n => 2, w => 2, durability => Durability}} end,
    First = [A, _] = joined(started(Asks(synced), Config)),
    {ok, _} = call(A, weft_kv, put, [box, ?KEY, value(box)]),
    ?assertEqual([box], in_files(Asks(synced), Config)),
    Second = [A2, B2] = again(First, Asks(memory), Config),
    until(fun() -> in_files(Asks(memory), Config) =:= [] end),
    ?assertEqual(value(box), found(B2, box)),
    {ok, _} = call(A2, weft_kv, delete, [box, ?KEY]),
    {ok, _} = call(A2, weft_kv, put, [box, <<"other">>, <<"other">>]),
    Third = [A3, B3] = again(Second, Asks(synced), Config),
    ?assertEqual(none, found(B3, box)),
    ?assertEqual({ok, []}, call(B3, weft_kv, list, [box])),
    {ok, _} = call(A3, weft_kv, put, [box, ?KEY, value(again)]),
    [_, B4] = again(Third, Asks(synced), Config),
    ?assertEqual(value(again), found(B4, box)).

%% --- no disk ----------------------------------------------------------------------------------

a_node_without_a_disk_promises_none(Config) ->
    Ref = started(a, [weft_kv_vnode], #{box => #{durability => synced}}, Config),
    {error, {weft_kv, {{weft_kv, Reason}, _}}} =
        call(Ref, application, ensure_all_started, [weft_kv]),
    ?assertEqual({bucket, box, {durability, synced, {not_in_the_configuration_of, weft_ring,
                                                     {vnodes, weft_kv_vnode, dir}}}}, Reason),
    ok = call(Ref, application, set_env, [weft_kv, buckets, #{box => #{}}]),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    ?assertMatch({ok, #{bucket := #{durability := memory}}}, call(Ref, weft_kv, info, [box])).

%% --- values -----------------------------------------------------------------------------------

value(Of) -> iolist_to_binary(["the value of ", atom_to_list(Of)]).

found(Ref, Bucket) -> found(Ref, Bucket, ?TRIES).

%% Not to be found is an answer; any other error is a reason to ask again, as just after a start.
found(Ref, Bucket, Tries) ->
    case call(Ref, weft_kv, get, [Bucket, ?KEY, ?ALL]) of
        {ok, Value, _} -> Value;
        {error, not_found} -> none;
        {error, _} when Tries > 0 ->
            %% pacing: a client that has an error waits a little
            receive after 50 -> found(Ref, Bucket, Tries - 1) end
    end.

%% The buckets of which a file of either node has anything: a value, or the name.
in_files(Buckets, Config) ->
    Names = filelib:wildcard(filename:join([?config(files, Config), "kv", "*", "*.log"])),
    Files = iolist_to_binary([Bytes || Name <- Names, {ok, Bytes} <- [file:read_file(Name)]]),
    [Bucket || Bucket <- lists:sort(maps:keys(Buckets)),
               binary:match(Files, [value(Bucket), atom_to_binary(Bucket)]) =/= nomatch].

%% --- nodes ------------------------------------------------------------------------------------

started(Buckets, Config) ->
    [begin
         Dir = filename:join([?config(files, Config), "kv", atom_to_list(Name)]),
         Ref = started(Name, [{weft_kv_vnode, #{dir => Dir}}], Buckets, Config),
         {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
         Ref
     end || Name <- [a, b]].

started(Name, Vnodes, Buckets, Config) ->
    Ring = filename:join([?config(files, Config), "ring", atom_to_list(Name)]),
    Keys = [{weft_ring, partitions, 8}, {weft_ring, sync_ms, 300}, {weft_ring, dir, Ring},
            {weft_ring, vnodes, Vnodes}, {weft_kv, buckets, Buckets}],
    weft_test_nodes:start(Name, #{args => weft_kv_test_args:args(?MODULE, Keys)},
                          ?config(place, Config)).

again(Refs, Buckets, Config) ->
    [ok = weft_test_nodes:kill(Ref) || Ref <- Refs],
    New = started(Buckets, Config),
    until(fun() -> settled(New) end),
    New.

joined([A, B] = Refs) ->
    ok = call(A, weft_ring, create, []),
    ok = call(B, weft_ring, join, [name(A)]),
    until(fun() -> call(A, weft_ring, stage, [name(B), join]) =:= ok end),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    until(fun() -> settled(Refs) end),
    Refs.

settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    length(lists:usort(Statuses)) =:= 1
        andalso lists:all(fun(#{moving := 0, owned := Owned}) -> map_size(Owned) =:= length(Refs);
                             (_) -> false
                          end, Statuses)
        andalso lists:all(fun(Ref) -> length(call(Ref, erlang, nodes, [])) =:= 1 end, Refs).

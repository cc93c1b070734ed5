%% SPDX-License-Identifier: Apache-2.0
%% @doc Disks of real nodes: one that gets full and has room again, and one on which a file was
%% damaged. What was acknowledged is there in the end, in the node's own files.
-module(weft_kv_disk_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([a_full_disk_is_an_error_and_no_end/1, a_damaged_file_is_filled_from_other_copies/1]).
%% On a node.
-export([partitions/0]).

%% The small disk, what is left of it at first, and what is written.
-define(DISK_KB, 512).
-define(ROOM_KB, 128).
-define(VALUE, <<0:16000>>).
-define(KEYS, 200).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [a_full_disk_is_an_error_and_no_end, a_damaged_file_is_filled_from_other_copies].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% The disk is mounted in a namespace of its own, and is gone with what runs there.
init_per_testcase(Case, Config0) ->
    Config = [{files, filename:join(?config(priv_dir, Config0), Case)} | Config0],
    Dir = directory(b, Config),
    ok = filelib:ensure_path(Dir),
    case Case =:= a_full_disk_is_an_error_and_no_end andalso mounted(Dir) of
        Why when is_list(Why), Why =/= "" -> {skip, "needs a small file system: " ++ Why};
        _ -> Config
    end.

mounted(Dir) -> os:cmd("unshare -m sh -c '" ++ mounting() ++ "' " ++ Dir ++ " true 2>&1").

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- full -------------------------------------------------------------------------------------

%% Both nodes have to have each write, so that each one needs room on the small disk.
a_full_disk_is_an_error_and_no_end(Config) ->
    Dir = directory(b, Config),
    Filling = filename:join(Dir, "filling"),
    [A, B] = Refs = [start(a, #{}, Config), start(b, around(Dir), Config)],
    joined(Refs),
    ok = call(B, file, write_file, [Filling, binary:copy(<<1>>, (?DISK_KB - ?ROOM_KB) * 1024)]),
    {First, Error} = until_an_error(A, 1, []),
    Partitions = call(B, ?MODULE, partitions, []),
    NameOfB = name(B),
    {error, {too_few, #{needed := #{w := 2}, answered := 1,
                        failed := [{NameOfB, {failed, {enospc, File}}}]}}} = Error,
    ?assertEqual(Dir, filename:dirname(File)),
    %% There may be room behind what other partitions have.
    {Meanwhile, Refused} = lists:partition(fun(Key) -> is_ok(write(A, Key)) end,
                                           keys("full", 40)),
    ?assertNotEqual([], Refused),
    until(fun() -> unwritable(B) > 0 end),
    %% What is in memory only needs no room.
    ?assertEqual([], [Key || Key <- keys("cached", 40),
                             not (is_ok(write(A, cache, Key)) andalso is_there(A, cache, Key))]),
    Full = First ++ Meanwhile,
    ?assertEqual([], [Key || Key <- Full, not is_there(B, box, Key)]),
    ok = call(B, file, delete, [Filling]),
    Later = keys("later", 20),
    [until(fun() -> is_ok(write(A, Key)) end) || Key <- Later],
    until(fun() -> unwritable(B) =:= 0 end),
    Last = keys("last", 20),
    ?assertEqual([], [Key || Key <- Last, not is_ok(write(A, Key))]),
    All = Full ++ Later ++ Last,
    ct:pal("~b writes before the error, ~b of 40 after it: ~0p",
           [length(First), length(Meanwhile), Error]),
    ?assertEqual([], call(B, weft_kv_test_copies, lacking, [box, All])),
    ?assertEqual([], All -- written(B, Dir, Config)),
    ?assertEqual(Partitions, call(B, ?MODULE, partitions, [])).

%% Writes one key after the other.
until_an_error(A, N, Keys) ->
    Key = key("first", N),
    case write(A, Key) of
        {ok, _} -> until_an_error(A, N + 1, [Key | Keys]);
        Error -> {Keys, Error}
    end.

unwritable(Ref) -> map_get(unwritable, call(Ref, weft_kv_stats, read, [])).

%% Those that run, by their names.
partitions() ->
    [{Name, Pid} || Partition <- weft_ring:mine(),
                    {ok, Name} <- [weft_vnode_names:name(weft_kv_vnode, Partition)],
                    Pid <- [whereis(Name)]].

%% --- damaged ----------------------------------------------------------------------------------

a_damaged_file_is_filled_from_other_copies(Config) ->
    Dir = directory(b, Config),
    [A, B] = Refs = [start(Name, #{}, Config) || Name <- [a, b]],
    joined(Refs),
    Keys = keys("key", ?KEYS),
    [{ok, _} = write(A, Key) || Key <- Keys],
    ok = weft_test_nodes:kill(B),
    {_, File} = lists:max([{filelib:file_size(Name), Name}
                           || Name <- filelib:wildcard(filename:join(Dir, "*.log"))]),
    Before = in_file(File, Config),
    ok = damaged(File),
    ?assert(length(in_file(File, Config)) < length(Before)),
    #{log := Log} = Again = start(b, #{}, Config),
    until(fun() ->
              {ok, Text} = file:read_file(Log),
              string:find(Text, File ++ " is damaged at byte") =/= nomatch
          end),
    ?assertMatch([_], filelib:wildcard(File ++ ".damaged.*")),
    until(fun() -> settled([A, Again]) end),
    until(fun() -> call(Again, weft_kv_test_copies, lacking, [box, Keys]) =:= [] end),
    ?assertEqual(Before, in_file(File, Config)).

%% A byte in the middle.
damaged(File) ->
    {ok, Bytes} = file:read_file(File),
    At = byte_size(Bytes) div 2,
    <<Left:At/binary, Byte, Right/binary>> = Bytes,
    file:write_file(File, [Left, Byte bxor 255, Right]).

%% --- files ------------------------------------------------------------------------------------

written(Ref, Dir, Config) ->
    {ok, Names} = call(Ref, file, list_dir, [Dir]),
    lists:usort(lists:append([begin
                                  {ok, Bytes} = call(Ref, file, read_file,
                                                     [filename:join(Dir, Name)]),
                                  keys_of(Bytes, Config)
                              end || Name <- Names, filename:extension(Name) =:= ".log"])).

in_file(File, Config) ->
    {ok, Bytes} = file:read_file(File),
    keys_of(Bytes, Config).

%% What a node would find there, in a copy.
keys_of(Bytes, Config) ->
    Copies = filename:join(?config(priv_dir, Config), "copies"),
    Copy = filename:join(Copies, "0.log"),
    ok = filelib:ensure_dir(Copy),
    ok = file:write_file(Copy, Bytes),
    {ok, Log, Entries} = weft_kv_log:open(Copies, 0, ?MODULE),
    ok = weft_kv_log:close(Log),
    lists:usort([Key || {stored, {_, box, Key}, _, _} <- Entries]).

%% --- nodes ------------------------------------------------------------------------------------

write(Ref, Key) -> write(Ref, box, Key).

write(Ref, Bucket, Key) -> call(Ref, weft_kv, put, [Bucket, Key, ?VALUE]).

is_ok({ok, _}) -> true;
is_ok({error, _}) -> false.

is_there(Ref, Bucket, Key) ->
    case call(Ref, weft_kv, get, [Bucket, Key]) of
        {ok, ?VALUE, _} -> true;
        Other -> ct:pal("~ts: ~p", [Key, Other]), false
    end.

keys(Name, Count) -> [key(Name, N) || N <- lists:seq(1, Count)].

key(Name, N) -> iolist_to_binary([Name, $., integer_to_list(N)]).

joined([A, B] = Refs) ->
    ok = call(A, weft_ring, create, []),
    ok = call(B, weft_ring, join, [name(A)]),
    until(fun() -> call(A, weft_ring, stage, [name(B), join]) =:= ok end),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    until(fun() -> settled(Refs) end).

settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    length(lists:usort(Statuses)) =:= 1
        andalso lists:all(fun(#{moving := 0, owned := Owned}) -> map_size(Owned) =:= length(Refs);
                             (_) -> false
                          end, Statuses)
        andalso lists:all(fun(Ref) -> length(call(Ref, erlang, nodes, [])) =:= 1 end, Refs).

directory(Name, Config) -> filename:join([?config(files, Config), "kv", atom_to_list(Name)]).

mounting() ->
    "mount -t tmpfs -o size=" ++ integer_to_list(?DISK_KB) ++ "k none \"$0\" && exec \"$@\"".

around(Dir) ->
    #{around => {os:find_executable("unshare"), ["-m", "sh", "-c", mounting(), Dir]}}.

start(Name, Around, Config) ->
    Dir = directory(Name, Config),
    Keys = [{weft_ring, partitions, 8}, {weft_ring, sync_ms, 300},
            {weft_ring, dir, filename:join([?config(files, Config), "ring", atom_to_list(Name)])},
            {weft_ring, vnodes, [{weft_kv_vnode, #{dir => Dir}}]},
            {weft_kv, buckets, #{box => #{n => 2, w => 2, r => 1},
                                 cache => #{n => 2, w => 2, r => 2, durability => memory}}},
            {weft_kv, entropy_ms, 20}],
    Args = weft_kv_test_args:args(?MODULE, Keys),
    Ref = weft_test_nodes:start(Name, Around#{args => Args}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

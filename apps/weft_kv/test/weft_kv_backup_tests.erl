%% SPDX-License-Identifier: Apache-2.0
%% @doc Which backups stay in a directory.
-module(weft_kv_backup_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OLD, "weft_kv_20200101T000000.000Z.archive").
%% They were made before the clock went back.
-define(LATER, "weft_kv_29990101T000000.000Z.archive").
-define(LATEST, "weft_kv_29990102T000000.000Z.archive").

a_backup_does_not_delete_itself_test() ->
    [?assertEqual({Keep, Stay}, {Keep, others_after(#{keep => Keep})})
     || {Keep, Stay} <- [{1, []}, {2, [?LATEST]}, {3, [?LATER, ?LATEST]},
                         {4, [?OLD, ?LATER, ?LATEST]}, {9, [?OLD, ?LATER, ?LATEST]}]],
    ?assertEqual([?OLD, ?LATER, ?LATEST], others_after(#{})).

%% Those that are there beside the new one.
others_after(Options) ->
    Dir = filename:join(filename:basedir(user_cache, atom_to_list(?MODULE)),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, ?OLD)),
    [ok = file:write_file(filename:join(Dir, Name), "") || Name <- [?OLD, ?LATER, ?LATEST]],
    try
        {ok, #{file := File}} = weft_kv_archive_file:backup(Dir, Options, fun no_buckets/3),
        {ok, Names} = file:list_dir(Dir),
        ?assert(lists:member(filename:basename(File), Names)),
        lists:sort(Names) -- [filename:basename(File)]
    after file:del_dir_r(Dir)
    end.

no_buckets(weft_kv_app, buckets, []) -> {ok, {ok, #{}}};
no_buckets(erlang, node, []) -> {ok, node()}.

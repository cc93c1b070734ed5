%% SPDX-License-Identifier: Apache-2.0
%% @doc Which backups stay in a directory.
-module(weft_kv_backup_tests).

-include_lib("eunit/include/eunit.hrl").

-define(OLD, "weft_kv_20200101T000000.000Z.archive").
-define(LAST, "weft_kv_20200102T000000.000Z.archive").
%% They were made before the clock went back.
-define(LATER, "weft_kv_29990101T000000.000Z.archive").
-define(LATEST, "weft_kv_29990102T000000.000Z.archive").

%% Nor those before it in place of those that are named as if they came after it.
a_backup_does_not_delete_itself_test() ->
    [?assertEqual({Keep, Stay ++ [?LATER, ?LATEST], [?LATER, ?LATEST]},
                  begin
                      {Others, #{later := Later}} = backup(#{keep => Keep}),
                      {Keep, Others, [filename:basename(File) || File <- Later]}
                  end)
     || {Keep, Stay} <- [{1, []}, {2, [?LAST]}, {3, [?OLD, ?LAST]}, {9, [?OLD, ?LAST]}]],
    {All, Report} = backup(#{}),
    ?assertEqual({[?OLD, ?LAST, ?LATER, ?LATEST], error}, {All, maps:find(later, Report)}).

%% Nor does it take the place of an earlier one.
a_backup_that_can_not_be_read_is_none_test() ->
    in_directory(fun(Dir) ->
                     [?assertMatch({error, _},
                                   weft_kv_archive_file:backup(Dir, #{keep => 1},
                                                               fun an_unknown_record/3))
                      || _Again <- [1, 2]],
                     {ok, Names} = file:list_dir(Dir),
                     ?assertEqual([?OLD, ?LAST, ?LATER, ?LATEST, "weft_kv_unchecked.archive"],
                                  lists:sort(Names)),
                     {ok, #{file := File}} =
                         weft_kv_archive_file:backup(Dir, #{keep => 1}, fun no_buckets/3),
                     {ok, Left} = file:list_dir(Dir),
                     ?assertEqual([filename:basename(File), ?LATER, ?LATEST], lists:sort(Left))
                 end).

an_unknown_record(weft_kv_app, buckets, []) -> {ok, {ok, #{b => #{}}}};
an_unknown_record(erlang, node, []) -> {ok, node()};
an_unknown_record(weft_kv_export, page, [b, start]) -> {ok, {ok, [<<255>>], done}}.

%% Those that are there beside the new one, and what is said.
backup(Options) ->
    in_directory(fun(Dir) ->
                     {ok, #{file := File} = Report} =
                         weft_kv_archive_file:backup(Dir, Options, fun no_buckets/3),
                     {ok, Names} = file:list_dir(Dir),
                     ?assert(lists:member(filename:basename(File), Names)),
                     {lists:sort(Names) -- [filename:basename(File)], Report}
                 end).

in_directory(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, atom_to_list(?MODULE)),
                        integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(filename:join(Dir, ?OLD)),
    [ok = file:write_file(filename:join(Dir, Name), "")
     || Name <- [?OLD, ?LAST, ?LATER, ?LATEST]],
    try Fun(Dir)
    after file:del_dir_r(Dir)
    end.

no_buckets(weft_kv_app, buckets, []) -> {ok, {ok, #{}}};
no_buckets(erlang, node, []) -> {ok, node()}.

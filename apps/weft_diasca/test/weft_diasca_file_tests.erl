%% SPDX-License-Identifier: Apache-2.0
%% @doc What a checkpoint that can not be written leaves behind.
-module(weft_diasca_file_tests).
-include_lib("eunit/include/eunit.hrl").

%% A directory has the name of the file, so the last step fails.
nothing_is_left_of_what_failed_test() ->
    Directory = filename:join(["/tmp", ?MODULE_STRING ++ "." ++ os:getpid()]),
    File = filename:join(Directory, "checkpoint"),
    ok = filelib:ensure_dir(filename:join(File, "x")),
    try
        ?assertMatch({error, _}, weft_diasca_file:write(File, term)),
        ?assertEqual({ok, ["checkpoint"]}, file:list_dir(Directory))
    after
        ok = file:del_dir_r(Directory)
    end.

what_was_written_is_read_test() ->
    Directory = filename:join(["/tmp", ?MODULE_STRING ++ "." ++ os:getpid()]),
    File = filename:join(Directory, "checkpoint"),
    try
        ?assertEqual(ok, weft_diasca_file:write(File, #{a => 1})),
        ?assertEqual({ok, #{a => 1}}, weft_diasca_file:read(File)),
        ?assertEqual({ok, ["checkpoint"]}, file:list_dir(Directory))
    after
        ok = file:del_dir_r(Directory)
    end.

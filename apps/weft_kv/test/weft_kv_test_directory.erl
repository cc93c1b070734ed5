%% SPDX-License-Identifier: Apache-2.0
%% @doc A directory for files of partitions, which is gone afterwards.
-module(weft_kv_test_directory).

-export([within/1]).

%% @doc What is damaged on purpose is not said in the log meanwhile.
-spec within(fun((Dir :: file:filename()) -> Result)) -> Result.
within(Fun) ->
    Name = os:getpid() ++ "." ++ integer_to_list(erlang:unique_integer([positive])),
    Dir = filename:join(filename:basedir(user_cache, "weft_kv_tests"), Name),
    ok = filelib:ensure_dir(filename:join(Dir, "x")),
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, critical),
    try Fun(Dir)
    after
        ok = logger:set_primary_config(level, Level),
        file:del_dir_r(Dir)
    end.

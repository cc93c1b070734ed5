%% SPDX-License-Identifier: Apache-2.0
%% @doc What is saved is what is loaded, whatever the names; what can not be loaded is an error.
-module(weft_group_file_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

what_is_saved_is_loaded_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_saved(), [{numtests, 100}, {to_file, user}]))}.

prop_saved() ->
    ?FORALL(Names, list(oneof([atom(), string(), binary(), {atom(), integer()}, float()])),
            begin
                Table = lists:foldl(
                          fun(Name, T) ->
                              Created = weft_group_table:create({Name, ['a@h', 'b@h']}, {'a@h', 7},
                                                                T),
                              weft_group_table:change({Name, out}, ['b@h'], {'a@h', 7}, Created)
                          end, weft_group_table:new(), Names),
                in_a_file(fun(Path) ->
                              ok = weft_group_file:save(Path, Table),
                              {ok, Table} =:= weft_group_file:load(Path)
                          end)
            end).

no_file_is_no_groups_test() ->
    ?assertEqual({ok, weft_group_table:new()}, weft_group_file:load(undefined)),
    ?assertEqual({ok, weft_group_table:new()}, weft_group_file:load("no/such/file")).

what_is_no_file_of_groups_is_an_error_that_says_so_test_() ->
    [fun() ->
         in_a_file(fun(Path) ->
                       ok = file:write_file(Path, Text),
                       {error, Words} = weft_group_file:load(Path),
                       ?assertNotEqual({nomatch, Words}, {string:find(Words, Expected), Words}),
                       ?assertNotEqual(nomatch, string:find(Words, Path))
                   end)
     end || {Text, Expected} <- [{"{weft_groups, 1, 7, [", "syntax error"},
                                 {"hello.", "no file of groups"},
                                 {"{weft_groups, 2, 7, []}.", "no file of groups"},
                                 {"{weft_groups, 1, 7, [x]}.", "malformed"}]].

what_can_not_be_written_is_an_error_test() ->
    ?assertEqual({error, enoent}, weft_group_file:save("no/such/directory/file",
                                                       weft_group_table:new())).

in_a_file(Fun) ->
    Path = filename:join(filename:basedir(user_cache, "weft_group_file_tests"),
                         integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(Path),
    try Fun(Path)
    after
        _ = file:delete(Path),
        file:del_dir(filename:dirname(Path))
    end.

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

%% As after a full disk; here the directory is missing at first. The times are over when the test
%% says so.
what_could_not_be_written_is_written_later_test_() ->
    {spawn, fun() -> in_a_file(fun what_could_not_be_written_is_written_later/1) end}.

what_could_not_be_written_is_written_later(Directory) ->
    Path = filename:join(Directory, "groups"),
    Table = weft_group_table:create({g, ['a@h', 'b@h']}, {'a@h', 7}, weft_group_table:new()),
    Driver = spawn_link(fun() -> driver(Table) end),
    true = register(weft_groups, Driver),
    ok = weft_view:new(),
    ok = application:set_env(weft, groups_file, Path),
    ok = logger:set_module_level(weft_group_file, all),
    ok = logger:add_primary_filter(?MODULE, {fun logged/2, self()}),
    try
        {ok, Pid} = weft_group_file:start_link(),
        receive {logged, First} -> ?assertEqual(error, First) after 10000 -> error(not_tried) end,
        ok = interval(Pid),
        ok = file:make_dir(Directory),
        ok = interval(Pid),
        ?assertEqual({ok, Table}, weft_group_file:load(Path)),
        %% Each of both is logged once, and it is not written again without a reason.
        receive {logged, Second} -> ?assertEqual(notice, Second) after 0 -> error(not_logged) end,
        ok = file:delete(Path),
        ok = interval(Pid),
        ?assertEqual({error, enoent}, file:read_file_info(Path)),
        receive {logged, Third} -> error(Third) after 0 -> ok end,
        true = unlink(Pid),
        ok = gen_server:stop(Pid)
    after
        ok = logger:remove_primary_filter(?MODULE),
        ok = logger:unset_module_level(weft_group_file),
        ok = application:unset_env(weft, groups_file),
        ok = weft_view:clear(weft_group_file),
        true = unlink(Driver),
        _ = file:delete(Path),
        file:del_dir(Directory),
        exit(Driver, kill)
    end.

interval(Pid) ->
    Pid ! interval,
    _ = sys:get_state(Pid),
    ok.

logged(#{level := Level, meta := #{mfa := {weft_group_file, _, _}}}, Test) ->
    Test ! {logged, Level},
    stop;
logged(Event, _Test) ->
    Event.

driver(Table) ->
    receive
        {'$gen_call', From, {subscribe, _}} -> gen_server:reply(From, ok);
        {'$gen_call', From, {command, table}} -> gen_server:reply(From, Table)
    end,
    driver(Table).

in_a_file(Fun) ->
    Path = filename:join(filename:basedir(user_cache, "weft_group_file_tests"),
                         integer_to_list(erlang:unique_integer([positive])) ++ os:getpid()),
    ok = filelib:ensure_dir(Path),
    try Fun(Path)
    after
        _ = file:delete(Path),
        file:del_dir(filename:dirname(Path))
    end.

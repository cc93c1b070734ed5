%% SPDX-License-Identifier: Apache-2.0
%% Commands of two machines: two directories of what is remembered, and one of the host.
-module(weft_deploy_host_lock_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LOCK, weft_deploy_host_lock).

one_holder_has_the_lock_until_it_is_given_back_test_() ->
    {timeout, 60, fun one_holder_has_the_lock_until_it_is_given_back/0}.

one_holder_has_the_lock_until_it_is_given_back() ->
    with(fun(Dir) ->
        Take = fun(Holder, Break) ->
                   ?LOCK:taken(run(?LOCK:take(Dir, Holder, #{make => true, break => Break})))
               end,
        ?assertEqual(ok, Take("it's me:/a", false)),
        {held, By} = Take("other:/b", false),
        ?assertMatch({0, _}, binary:match(By, <<"it's me:/a (process ">>)),
        %% The command that had it was ended, and is repeated.
        ?assertEqual(ok, Take("it's me:/a", false)),
        %% Only its own is given back.
        _ = run(?LOCK:give_back(Dir, "other:/b")),
        ?assertMatch({held, _}, Take("other:/b", false)),
        _ = run(?LOCK:give_back(Dir, "it's me:/a")),
        ?assertEqual(ok, Take("other:/b", false)),
        ?assertEqual(ok, Take("it's me:/a", true)),
        ?assertMatch({held, _}, Take("other:/b", false)),
        ?assertEqual({ok, ["lock"]}, file:list_dir_all(Dir))
    end).

%% Of many that want it at once one gets it.
one_of_many_gets_the_lock_test_() ->
    {timeout, 60, fun one_of_many_gets_the_lock/0}.

one_of_many_gets_the_lock() ->
    with(fun(Dir) ->
        Take = fun(Number) ->
                   Holder = "holder:/" ++ integer_to_list(Number),
                   ?LOCK:taken(run(?LOCK:take(Dir, Holder, #{make => true, break => false})))
               end,
        Answers = weft_deploy_parallel:map(10, Take, lists:seq(1, 20)),
        ?assertEqual(1, length([ok || ok <- Answers])),
        ?assertEqual(19, length([By || {held, By} <- Answers]))
    end).

who_only_ends_nodes_makes_no_directory_test_() ->
    {timeout, 60, fun who_only_ends_nodes_makes_no_directory/0}.

who_only_ends_nodes_makes_no_directory() ->
    with(fun(Dir) ->
        None = Dir ++ "/none",
        Take = ?LOCK:take(None, "a:/", #{make => false, break => false}),
        ?assertEqual(ok, ?LOCK:taken(run(Take))),
        ?assertNot(filelib:is_dir(None))
    end).

%% All that changes something; what only looks goes on.
a_command_of_another_machine_is_told_and_nothing_is_changed_test_() ->
    {timeout, 60, fun a_command_of_another_machine_is_told_and_nothing_is_changed/0}.

a_command_of_another_machine_is_told_and_nothing_is_changed() ->
    with(fun(Dir) ->
        Host = Dir ++ "/host",
        ok = file:make_dir(Host),
        File = deployment(Dir, Host),
        Options = #{root => Dir ++ "/weft"},
        _ = run(?LOCK:take(Host, "other:/b", #{make => true, break => false})),
        [?assertMatch({Action, {match, _}},
                      {Action, re:run(refused(Action, File, Options),
                                      "^127.0.0.1: another weft deploy works on this, other:/b "
                                      "\\(process [0-9]+\\), since 20.*--break-lock")})
         || Action <- [apply, upgrade, down]],
        ?assertMatch({ok, _, _}, weft_deploy:plan(File, Options)),
        ?assertEqual({ok, ["lock"]}, file:list_dir_all(Host)),
        ?assertMatch({ok, _, _}, weft_deploy:apply(File, Options#{break_lock => true})),
        ?assertNot(filelib:is_file(Host ++ "/lock")),
        ?assertMatch({ok, _, _}, weft_deploy:down(File, Options))
    end).

%% A command that works without it would not be seen by one of another machine. Here, no directory
%% can be made.
a_host_that_can_not_be_locked_is_told_and_left_alone_test_() ->
    {timeout, 60, fun a_host_that_can_not_be_locked_is_told_and_left_alone/0}.

a_host_that_can_not_be_locked_is_told_and_left_alone() ->
    with(fun(Dir) ->
        Host = Dir ++ "/host",
        File = deployment(Dir, Host),
        Options = #{root => Dir ++ "/weft"},
        {ok, _, _} = weft_deploy:apply(File, Options),
        {ok, Before} = file:read_file(Host ++ "/state"),
        ok = with_full_disk(Dir ++ "/bin", fun() ->
            {wanting, #{failed := [#{what := What, why := Why}]}, _} =
                weft_deploy:apply(File, Options),
            ?assertEqual(<<"127.0.0.1">>, What),
            ?assertMatch({match, _}, re:run(Why, "^it can not be locked: .*: no space left"))
        end),
        ?assertEqual({ok, Before}, file:read_file(Host ++ "/state")),
        ?assertMatch({ok, #{failed := []}, _}, weft_deploy:apply(File, Options))
    end).

with_full_disk(Bin, Fun) ->
    ok = file:make_dir(Bin),
    ok = file:write_file(Bin ++ "/mkdir", "#!/bin/sh\necho 'no space left' >&2\nexit 1\n"),
    ok = file:change_mode(Bin ++ "/mkdir", 8#700),
    Path = os:getenv("PATH"),
    true = os:putenv("PATH", Bin ++ ":" ++ Path),
    try Fun(), ok
    after os:putenv("PATH", Path)
    end.

deployment(Dir, Host) ->
    File = Dir ++ "/shop.deploy",
    ok = file:write_file(File, [io_lib:format("~p.~n", [T])
                                || T <- [{name, shop}, {dir, Host},
                                         {family, web, #{paths => [], count => 0}}]]),
    File.

refused(Action, File, Options) ->
    {failed, Text} = weft_deploy:Action(File, Options),
    Text.

run(Script) ->
    Dir = directory(),
    {ok, _} = weft_deploy_local:open("127.0.0.1", #{dir => Dir}),
    {ok, 0, Output} = weft_deploy_local:run(Dir, unicode:characters_to_binary(Script), 20000),
    ok = file:del_dir_r(Dir),
    Output.

with(Fun) ->
    Dir = directory(),
    ok = file:make_dir(Dir),
    Fun(Dir),
    ok = file:del_dir_r(Dir).

directory() ->
    filename:join("/tmp", lists:concat(["weft deploy's lock-", os:getpid(), "-",
                                        erlang:unique_integer([positive])])).

%% SPDX-License-Identifier: Apache-2.0
%% What a command remembers is on the hosts, too: here those who work on a deployment have a
%% directory of their own each, as on several machines, and one host.
-module(weft_deploy_remembered_tests).

-include_lib("eunit/include/eunit.hrl").

-define(SECONDS, 60).

%% The other one took the nodes for ones that shall not be there, and stopped them.
what_another_one_has_scaled_is_known_test_() ->
    {timeout, ?SECONDS, fun what_another_one_has_scaled_is_known/0}.

what_another_one_has_scaled_is_known() ->
    with(fun(Dir) ->
        prepared(Dir),
        Count = fun(Who) ->
                    {ok, #{start := Nodes}, _} = as(Who, plan, #{}, Dir),
                    length(Nodes)
                end,
        remember(ann, #{scaled => #{web => {0, 2}}, bad => [], placed => #{}}, Dir),
        ?assertEqual({2, 0}, {Count(ann), Count(bob)}),
        %% It holds until the number is changed in the file.
        {ok, _, _} = as(ann, down, #{}, Dir),
        ?assertEqual({2, 2}, {Count(ann), Count(bob)}),
        %% Who was the last one counts, and not who is asked.
        remember(bob, #{scaled => #{web => {0, 3}}, bad => [], placed => #{}, revision => 5}, Dir),
        {ok, _, _} = as(bob, down, #{}, Dir),
        ?assertEqual({3, 3}, {Count(ann), Count(bob)}),
        %% A host that has something older, as it was silent then, is passed over.
        Copy = host(Dir) ++ "/state",
        {ok, Old} = file:read_file(Copy),
        {ok, _, _} = as(ann, down, #{}, Dir),
        ok = file:write_file(Copy, Old),
        remember(ann, #{scaled => #{web => {0, 4}}, bad => [], placed => #{}, revision => 8}, Dir),
        ?assertEqual({4, 3}, {Count(ann), Count(bob)}),
        {ok, _, _} = as(ann, down, #{purge => true}, Dir),
        ?assertEqual(0, Count(ann)),
        ?assertNot(filelib:is_file(Copy))
    end).

%% It may be that an earlier version has started them, which left nothing on hosts.
nodes_of_which_nothing_is_remembered_are_left_alone_test_() ->
    {timeout, ?SECONDS, fun nodes_of_which_nothing_is_remembered_are_left_alone/0}.

nodes_of_which_nothing_is_remembered_are_left_alone() ->
    with(fun(Dir) ->
        prepared(Dir),
        Id = host(Dir) ++ "/nodes/web1@127.0.0.1/id",
        ok = filelib:ensure_dir(Id),
        ok = file:write_file(Id, "old-1\n"),
        [begin
             {failed, Text} = as(bob, Action, #{}, Dir),
             ?assertMatch({Action, {match, _}},
                          {Action, re:run(Text, "^127.0.0.1 has nodes of shop, and nothing is "
                                                "remembered of them, .*/bob/deploy/shop: .*"
                                                "--adopt")})
         end || Action <- [plan, apply, upgrade]],
        ?assert(filelib:is_file(Id)),
        ?assertNot(filelib:is_file(host(Dir) ++ "/lock")),
        ?assertMatch({wanting, #{nodes := [_]}, _}, as(bob, status, #{}, Dir)),
        ?assertMatch({ok, #{forget := [_]}, _}, as(bob, plan, #{adopt => true}, Dir)),
        ?assertMatch({ok, _, _}, as(bob, apply, #{adopt => true}, Dir)),
        ?assertNot(filelib:is_file(Id)),
        %% From now on it is known.
        ok = filelib:ensure_dir(Id),
        ok = file:write_file(Id, "old-1\n"),
        ?assertMatch({ok, #{forget := [_]}, _}, as(ann, plan, #{}, Dir))
    end).

%% It may have nodes, which would run twice.
nothing_is_started_while_a_host_is_silent_of_which_nothing_is_known_test_() ->
    {timeout, ?SECONDS, fun nothing_is_started_while_a_host_is_silent/0}.

nothing_is_started_while_a_host_is_silent() ->
    with(fun(Dir) ->
        ok = file:write_file(host(Dir), "where the directory should be"),
        {failed, Text} = as(ann, apply, #{}, Dir),
        ?assertMatch({match, _},
                     re:run(Text, "^127.0.0.1 does not answer: can not make .*--adopt")),
        ?assertMatch({wanting, #{lost := [_]}, _}, as(ann, plan, #{}, Dir)),
        ?assertMatch({wanting, #{failed := [_]}, _}, as(ann, apply, #{adopt => true}, Dir)),
        ?assertMatch({wanting, #{failed := [_]}, _}, as(ann, apply, #{}, Dir))
    end).

a_copy_that_can_not_be_read_is_told_test_() ->
    {timeout, ?SECONDS, fun a_copy_that_can_not_be_read_is_told/0}.

a_copy_that_can_not_be_read_is_told() ->
    with(fun(Dir) ->
        prepared(Dir),
        ok = file:write_file(host(Dir) ++ "/state", "%% 9\n{2, of_a_later_version}.\n"),
        {failed, Text} = as(ann, plan, #{}, Dir),
        ?assertMatch({match, _}, re:run(Text, "^127.0.0.1: .*/host/state is no state of a dep"))
    end).

%% Two deployments may have been given one directory.
nothing_is_written_where_another_deployment_is_test_() ->
    {timeout, ?SECONDS, fun nothing_is_written_where_another_deployment_is/0}.

nothing_is_written_where_another_deployment_is() ->
    with(fun(Dir) ->
        Remember = fun(Name, Text) ->
                       script(Dir, weft_deploy_shell:remember(host(Dir), Name, Text)),
                       file:read_file(host(Dir) ++ "/state")
                   end,
        ?assertEqual({error, enoent}, Remember("shop", "%% 1\nit's one")),
        ok = file:make_dir(host(Dir)),
        ?assertEqual({ok, <<"%% 1\nit's one">>}, Remember("shop", "%% 1\nit's one")),
        ?assertEqual({ok, <<"shop\n">>}, file:read_file(host(Dir) ++ "/deployment")),
        ?assertEqual({ok, <<"%% 1\nit's one">>}, Remember("other", "%% 2\nother")),
        ?assertEqual({ok, <<"%% 12\ntwo">>}, Remember("shop", "%% 12\ntwo")),
        Seen = weft_deploy_shell:parse(script(Dir, weft_deploy_shell:observe(host(Dir)))),
        ?assertMatch(#{deployment := "shop", revision := 12}, Seen)
    end).

%% --- who works on it ----------------------------------------------------------------------------

as(Who, Action, Options, Dir) ->
    weft_deploy:Action(Dir ++ "/shop.deploy", Options#{root => root(Who, Dir)}).

root(Who, Dir) -> filename:join(Dir, Who).

remember(Who, State, Dir) ->
    {ok, _} = weft_deploy_state:save(root(Who, Dir) ++ "/deploy/shop", State).

host(Dir) -> Dir ++ "/host".

prepared(Dir) -> script(Dir, weft_deploy_shell:prepare(host(Dir), "shop", "cookie")).

script(Dir, Script) ->
    {ok, Connection} = weft_deploy_host:open(local, "127.0.0.1", #{dir => Dir}),
    {ok, Output} = weft_deploy_host:script(Connection, Script),
    ok = weft_deploy_host:close(Connection),
    Output.

with(Fun) ->
    Dir = filename:join("/tmp", lists:concat(["weft deploy's memory-", os:getpid(), "-",
                                              erlang:unique_integer([positive])])),
    ok = file:make_dir(Dir),
    ok = file:write_file(Dir ++ "/shop.deploy",
                         [io_lib:format("~p.~n", [Term])
                          || Term <- [{name, shop}, {dir, host(Dir)},
                                      {family, web, #{paths => [], count => 0}}]]),
    Fun(Dir),
    ok = file:del_dir_r(Dir).

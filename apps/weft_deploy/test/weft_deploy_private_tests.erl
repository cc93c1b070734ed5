%% SPDX-License-Identifier: Apache-2.0
%% Files with secrets are looked at all the time while they are written: at no moment may others
%% open one, as who has it open reads also what is written later.
-module(weft_deploy_private_tests).

-include_lib("kernel/include/file.hrl").
-include_lib("eunit/include/eunit.hrl").

%% In so many writes each moment of one that lasts is met.
-define(WRITES, 400).
-define(OTHERS, 8#077).

who_looks_at_the_right_moment_sees_an_open_file_test_() ->
    {timeout, 60, fun who_looks_at_the_right_moment_sees_an_open_file/0}.

%% That this test could fail: what was done before is seen.
who_looks_at_the_right_moment_sees_an_open_file() ->
    Write = fun(Dir) ->
                File = filename:join(Dir, "file"),
                ok = file:write_file(File, <<>>),
                ok = file:change_mode(File, 8#600),
                ok = file:write_file(File, "secret"),
                ok = file:delete(File)
            end,
    ?assertMatch([_ | _], seen_open(Write)).

a_file_is_never_open_to_others_test_() ->
    {timeout, 60, fun a_file_is_never_open_to_others/0}.

a_file_is_never_open_to_others() ->
    Put = fun(Dir) ->
              File = filename:join(Dir, "file"),
              ok = weft_deploy_local:put(Dir, File, <<"secret">>),
              ok = file:delete(File)
          end,
    ?assertEqual([], seen_open(Put)).

a_cookie_is_never_open_to_others_test_() ->
    {timeout, 60, fun a_cookie_is_never_open_to_others/0}.

a_cookie_is_never_open_to_others() ->
    Make = fun(Dir) ->
               {ok, _} = weft_deploy_state:cookie(Dir, default),
               ok = file:delete(filename:join(Dir, "cookie")),
               {ok, _} = weft_deploy_state:save(Dir, #{scaled => #{}, bad => [], placed => #{}}),
               ok
           end,
    ?assertEqual([], seen_open(Make)).

what_a_host_is_given_is_never_open_to_others_test_() ->
    {timeout, 60, fun what_a_host_is_given_is_never_open_to_others/0}.

what_a_host_is_given_is_never_open_to_others() ->
    Definition = #{node => "n1@h", id => "one", words => ["true"], environment => [],
                   config => "[].", healthy => "{[], none}."},
    Give = fun(Dir) ->
               Shell = weft_deploy_shell,
               {ok, 0, _} = weft_deploy_local:run(Dir, Shell:prepare(Dir, "shop", "secret"), 20000),
               {ok, 0, _} = weft_deploy_local:run(Dir, Shell:define(Dir, Definition), 20000),
               ok = file:delete(Dir ++ "/.erlang.cookie"),
               ok = file:del_dir_r(Dir ++ "/nodes")
           end,
    ?assertEqual([], seen_open(Give, ?WRITES div 40)).

what_is_there_is_replaced_and_nothing_stays_beside_it_test() ->
    Dir = directory(),
    File = filename:join(Dir, "cookie"),
    ok = weft_deploy_private:write(File, "old", 8#400),
    ok = weft_deploy_private:write(File, ["n", <<"ew">>], 8#400),
    ?assertEqual({ok, <<"new">>}, file:read_file(File)),
    ?assertEqual(8#400, mode(File)),
    ?assertEqual({ok, ["cookie"]}, file:list_dir_all(Dir)),
    %% A directory is in the way.
    ok = file:make_dir(filename:join(Dir, "taken")),
    ?assertMatch({error, _}, weft_deploy_private:write(filename:join(Dir, "taken"), "x", 8#600)),
    ?assertMatch({error, enoent}, weft_deploy_private:write(Dir ++ "/none/x", "x", 8#600)),
    ?assertEqual(["cookie", "taken"], lists:sort(element(2, file:list_dir_all(Dir)))),
    ok = file:del_dir_r(Dir).

a_directory_is_closed_to_others_test() ->
    Dir = directory(),
    Inner = filename:join(Dir, "inner"),
    ok = file:make_dir(Inner),
    ok = file:change_mode(Inner, 8#755),
    ok = weft_deploy_private:directory(Inner),
    ?assertEqual(8#700, mode(Inner)),
    ok = file:del_dir_r(Dir).

%% --- who looks ----------------------------------------------------------------------------------

%% What another process has seen that others could open, while a directory is written to.
seen_open(Write) -> seen_open(Write, ?WRITES).

seen_open(Write, Times) ->
    Dir = directory(),
    {Looker, Monitor} = spawn_monitor(fun() -> look(Dir, []) end),
    lists:foreach(fun(_) -> ok = Write(Dir) end, lists:seq(1, Times)),
    Looker ! stop,
    Seen = receive {'DOWN', Monitor, process, Looker, {seen, Open}} -> Open end,
    ok = file:del_dir_r(Dir),
    Seen.

look(Dir, Seen) ->
    receive
        stop -> exit({seen, lists:usort(Seen)})
    after 0 ->
        {ok, Names} = prim_file:list_dir_all(Dir),
        look(Dir, lists:append([open(filename:join(Dir, Name)) || Name <- Names]) ++ Seen)
    end.

%% Not by way of the server for files: who writes would have his turns with who looks, and would not
%% be seen between them. The mode of the directory is read after that of the file in it: others are
%% kept out of it before there is a file.
open(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{type = regular, mode = Mode}} when Mode band ?OTHERS =/= 0 -> [Path];
        {ok, #file_info{type = directory}} ->
            {Answer, Names} = prim_file:list_dir_all(Path),
            Files = [File || Answer =:= ok, Name <- Names,
                             File <- open(filename:join(Path, Name))],
            [File || File <- Files, mode(Path) band ?OTHERS =/= 0];
        _ClosedOrGone -> []
    end.

mode(Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, #file_info{mode = Mode}} -> Mode band 8#777;
        {error, _Gone} -> 0
    end.

directory() ->
    Dir = filename:join("/tmp", lists:concat(["weft_private-", os:getpid(), "-",
                                              erlang:unique_integer([positive])])),
    ok = file:make_dir(Dir),
    Dir.

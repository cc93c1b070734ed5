%% SPDX-License-Identifier: Apache-2.0
%% How a command gets to a host.
-module(weft_deploy_host_tests).

-include_lib("eunit/include/eunit.hrl").

%% Whatever words are added at the end, those are what the program ssh is given as one.
words_are_quoted_for_the_shell_of_the_host_test_() ->
    {timeout, 60, fun words_are_quoted_for_the_shell_of_the_host/0}.

words_are_quoted_for_the_shell_of_the_host() ->
    Dir = filename:join("/tmp", "weft-host-" ++ os:getpid()),
    ok = filelib:ensure_path(Dir),
    Ssh = filename:join(Dir, "ssh"),
    ok = file:write_file(Ssh, "#!/bin/sh\nfor last; do :; done\neval \"$last\"\n"),
    ok = file:change_mode(Ssh, 8#755),
    Provider = {ssh, #{keys => Dir, user => "me", port => 22}},
    {Program, Arguments} = weft_deploy_host:command(Provider, "host", ["printf", "[%s]"]),
    Words = ["a b", "it's", "$HOME", "\"{q,\\\"x\\\"}\"", "*", "~", "\\n"],
    Path = Dir ++ ":" ++ os:getenv("PATH"),
    Port = open_port({spawn_executable, Program},
                     [{args, Arguments ++ Words}, {env, [{"PATH", Path}]}, binary, exit_status]),
    ?assertEqual(iolist_to_binary([[$[, Word, $]] || Word <- Words]), printed(Port, <<>>)),
    ok = file:del_dir_r(Dir).

printed(Port, Before) ->
    receive
        {Port, {data, Data}} -> printed(Port, <<Before/binary, Data/binary>>);
        {Port, {exit_status, 0}} -> Before
    end.

%% SPDX-License-Identifier: Apache-2.0
%% What is uploaded of directories of compiled code.
-module(weft_deploy_artifact_tests).

-include_lib("kernel/include/file.hrl").
-include_lib("eunit/include/eunit.hrl").

programs_stay_programs_test() ->
    in_directory(fun(Dir) ->
        Family = family(Dir),
        {ok, Version} = weft_deploy_artifact:version(Family, []),
        ok = file:change_mode(program(Dir), 8#755),
        {ok, Other} = weft_deploy_artifact:version(Family, []),
        ?assertNotEqual(Version, Other),
        {ok, Content} = weft_deploy_artifact:content(Family, []),
        ok = erl_tar:extract({binary, Content}, [compressed, {cwd, Dir ++ "/there"}]),
        ?assertEqual([true, false], [is_program(Dir ++ "/there/lib/shop/priv/" ++ Name)
                                     || Name <- ["port", "data"]]),
        {ok, Headers} = erl_tar:table({binary, Content}, [compressed, verbose]),
        ?assertEqual([{0, 0}], lists:usort([{Uid, Gid} || {_, _, _, _, _, Uid, Gid} <- Headers]))
    end).

%% Wherever it is.
the_same_code_is_the_same_version_test() ->
    Version = fun(Dir) ->
                  ok = file:change_mode(program(Dir), 8#755),
                  {ok, Version} = weft_deploy_artifact:version(family(Dir), []),
                  Version
              end,
    ?assertEqual(in_directory(Version), in_directory(Version)).

family(Dir) -> #{name => shop, version => derived, release => none, paths => [Dir ++ "/shop/ebin"]}.

program(Dir) -> Dir ++ "/shop/priv/port".

in_directory(Fun) ->
    Dir = lists:concat(["/tmp/weft_deploy_artifact-", os:getpid(), "-",
                        erlang:unique_integer([positive])]),
    [begin
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, Content)
     end || {File, Content} <- [{Dir ++ "/shop/ebin/shop.app", "{application, shop, []}.\n"},
                                {program(Dir), "#!/bin/sh\n"}, {Dir ++ "/shop/priv/data", "x"}]],
    try Fun(Dir) after ok = file:del_dir_r(Dir) end.

is_program(File) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(File),
    Mode band 8#100 =/= 0.

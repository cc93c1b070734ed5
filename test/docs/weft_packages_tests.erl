%% SPDX-License-Identifier: Apache-2.0
%% @doc Each application can be published as a package of its own: it says what it is and under
%% which licence, all have one version, and it depends on what a reader can get. `weft' depends on
%% OTP alone. What `bin/package' makes of them is looked into, by the format that Hex documents and
%% not with the library that made it; with FULL=1 what is in it is compiled. Nothing is sent.
-module(weft_packages_tests).

-include_lib("eunit/include/eunit.hrl").

%% What a package of hex may have.
-define(BYTES_MAX, 8 * 1024 * 1024).
%% Of an example: the repository has no public address.
-define(REPOSITORY, "https://host.example/weft").

packages_are_described_test_() ->
    [{atom_to_list(App),
      ?_assertMatch({[_ | _], ["Apache-2.0"]},
                    {proplists:get_value(description, Keys), proplists:get_value(licenses, Keys)})}
     || {App, Keys} <- applications()].

%% The address of the repository is said once, to `bin/package', and not in each of them.
no_application_has_links_of_its_own_test_() ->
    [{atom_to_list(App), ?_assertNot(proplists:is_defined(links, Keys))}
     || {App, Keys} <- applications()].

all_have_one_version_test() ->
    ?assertMatch([_], lists:usort([proplists:get_value(vsn, Keys) || {_, Keys} <- applications()])).

weft_depends_on_otp_alone_test() ->
    {weft, Keys} = lists:keyfind(weft, 1, applications()),
    ?assertEqual([], [App || App <- proplists:get_value(applications, Keys), not is_otp(App)]).

%% The others depend on OTP, on each other, and on what rebar.config names or brings along.
what_packages_depend_on_can_be_had_test_() ->
    {ok, Config} = file:consult("rebar.config"),
    Deps = [element(1, Dep) || Dep <- proplists:get_value(deps, Config)]
        ++ [rabbit_common, ranch, cowlib],
    Own = [App || {App, _} <- applications()],
    [{atom_to_list(App),
      ?_assertEqual([], [Other || Other <- proplists:get_value(applications, Keys),
                                  not is_otp(Other), not lists:member(Other, Own ++ Deps)])}
     || {App, Keys} <- applications()].

%% --- what bin/package makes --------------------------------------------------------------------

packages_are_made_test_() ->
    {setup, fun made/0, fun removed/1,
     fun(Dir) ->
             [{atom_to_list(App), {timeout, 60, fun() -> looked_into(App, Keys, Dir) end}}
              || {App, Keys} <- applications()]
                 ++ [{"without an address", {timeout, 60, fun() -> no_links(Dir) end}},
                     {"with documentation", {timeout, 60, fun() -> documented(Dir) end}},
                     {"a wrong word", {timeout, 60, fun refused/0}}]
                 ++ [{"what is in it compiles", {timeout, 600, fun() -> compiles(Dir) end}}
                     || os:getenv("FULL") =:= "1"]
     end}.

made() ->
    Dir = string:trim(os:cmd("mktemp -d")),
    ?assertEqual(0, package(["--repository", ?REPOSITORY], Dir)),
    Dir.

package(Words, Dir) ->
    status(open_port({spawn_executable, "bin/package"},
                     [exit_status, stderr_to_stdout, {args, Words},
                      {env, [{"REBAR_BASE_DIR", Dir}]}])).

no_links(Dir) ->
    Place = filename:join(Dir, "without"),
    ?assertEqual(0, package(["weft"], Place)),
    {weft, Keys} = lists:keyfind(weft, 1, applications()),
    {ok, Outer} = erl_tar:extract(file(weft, Keys, Place), [memory]),
    Said = terms(proplists:get_value("metadata.config", Outer)),
    ?assertEqual({<<"weft">>, none}, {proplists:get_value(<<"name">>, Said),
                                      proplists:get_value(<<"links">>, Said, none)}).

%% What was made for the shell is where the shell looks for it.
documented(Dir) ->
    Place = filename:join(Dir, "documented"),
    Chunk = filename:join(Place, "default/lib/weft/doc/chunks/weft.chunk"),
    ok = filelib:ensure_dir(Chunk),
    ok = file:write_file(Chunk, <<"a chunk">>),
    ?assertEqual(0, package(["weft"], Place)),
    {weft, Keys} = lists:keyfind(weft, 1, applications()),
    {ok, Outer} = erl_tar:extract(file(weft, Keys, Place), [memory]),
    {ok, Files} = erl_tar:extract({binary, proplists:get_value("contents.tar.gz", Outer)},
                                  [memory, compressed]),
    ?assertEqual(<<"a chunk">>, proplists:get_value("doc/chunks/weft.chunk", Files)).

refused() ->
    [?assertEqual({Words, 1}, {Words, package(Words, "_build")})
     || Words <- [["--repository", "somewhere"], ["--repositry", ?REPOSITORY], ["no_such_app"]]].

status(Port) ->
    receive
        {Port, {exit_status, Status}} -> Status;
        {Port, {data, _}} -> status(Port)
    end.

removed(Dir) -> os:cmd("rm -r " ++ Dir).

looked_into(App, Keys, Dir) ->
    File = file(App, Keys, Dir),
    ?assert(filelib:file_size(File) =< ?BYTES_MAX),
    {ok, Outer} = erl_tar:extract(File, [memory]),
    #{"VERSION" := <<"3">>, "metadata.config" := Metadata, "contents.tar.gz" := Contents,
      "CHECKSUM" := Sum} = maps:from_list(Outer),
    ?assertEqual(Sum, binary:encode_hex(crypto:hash(sha256, [<<"3">>, Metadata, Contents]))),
    Said = maps:from_list(terms(Metadata)),
    Name = atom_to_binary(App),
    ?assertMatch(#{<<"name">> := Name, <<"app">> := Name, <<"licenses">> := [<<"Apache-2.0">>],
                   <<"build_tools">> := [<<"rebar3">>]}, Said),
    ?assertEqual(proplists:get_value(vsn, Keys), binary_to_list(map_get(<<"version">>, Said))),
    ?assertEqual([{<<"Repository">>, <<?REPOSITORY>>}], map_get(<<"links">>, Said)),
    {ok, Files} = erl_tar:extract({binary, Contents}, [memory, compressed]),
    Names = [binary_to_list(Of) || Of <- map_get(<<"files">>, Said)],
    ?assertEqual(Names, lists:sort([Of || {Of, _} <- Files])),
    ?assertEqual([], ["src/" ++ atom_to_list(App) ++ ".app.src", "rebar.config", "LICENSE",
                      "CHANGELOG.md"] -- Names),
    ?assertEqual([], [Of || Of <- Names, lists:prefix("test", Of)]),
    needs(App, Keys, Said, proplists:get_value("rebar.config", Files)).

%% It asks for what its application file names, of this project in this version, and the
%% configuration with which it is built asks for the same.
needs(App, Keys, Said, RebarConfig) ->
    Wanted = [{Other, Requirement} || {Other, Needed} <- map_get(<<"requirements">>, Said),
                                      {<<"requirement">>, Requirement} <- Needed],
    Own = [Other || {Other, _} <- applications()],
    ?assertEqual(lists:sort([atom_to_binary(Other)
                             || Other <- proplists:get_value(applications, Keys),
                                lists:member(Other, Own)]),
                 lists:sort([Other || {Other, Requirement} <- Wanted,
                                      Requirement =:= <<"~> 0.1.0">>])),
    App =:= weft andalso ?assertEqual([], Wanted),
    ?assertEqual([{binary_to_atom(Other), binary_to_list(Requirement)}
                  || {Other, Requirement} <- lists:sort(Wanted)],
                 lists:sort(proplists:get_value(deps, terms(RebarConfig)))).

terms(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
    parsed(Tokens).

parsed([]) -> [];
parsed(Tokens) ->
    {Term, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    {ok, Parsed} = erl_parse:parse_term(Term ++ [Dot]),
    [Parsed | parsed(Rest)].

file(App, Keys, Dir) ->
    filename:join([Dir, "packages", lists:concat([App, "-", proplists:get_value(vsn, Keys),
                                                  ".tar"])]).

%% `weft' and what depends on it alone, outside of this project.
compiles(Dir) ->
    [?assertEqual({App, 0}, {App, compiled(App, Dir)}) || App <- [weft, sd_erlang, weft_partisan]].

compiled(App, Dir) ->
    {App, Keys} = lists:keyfind(App, 1, applications()),
    Place = filename:join(Dir, App),
    {ok, Outer} = erl_tar:extract(file(App, Keys, Dir), [memory]),
    ok = erl_tar:extract({binary, proplists:get_value("contents.tar.gz", Outer)},
                         [compressed, {cwd, Place}]),
    ok = filelib:ensure_dir(filename:join([Place, "_checkouts", "x"])),
    _ = App =:= weft orelse file:make_symlink("../../weft", filename:join([Place, "_checkouts",
                                                                           "weft"])),
    Port = open_port({spawn_executable, os:find_executable("rebar3")},
                     [exit_status, stderr_to_stdout, {args, ["compile"]}, {cd, Place},
                      {env, [{"REBAR_BASE_DIR", false}, {"ERL_LIBS", false}]}]),
    status(Port).

applications() ->
    [begin
         {ok, [{application, App, Keys}]} = file:consult(File),
         {App, Keys}
     end || File <- [_ | _] = filelib:wildcard("apps/*/src/*.app.src")].

is_otp(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> false;
        Dir -> lists:prefix(code:lib_dir() ++ "/", Dir)
                   andalso filelib:is_regular(filename:join([Dir, "ebin", atom_to_list(App)
                                                             ++ ".app"]))
    end.

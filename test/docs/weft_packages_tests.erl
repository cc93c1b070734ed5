%% SPDX-License-Identifier: Apache-2.0
%% @doc Each application can be published as a package of its own: it says what it is and under
%% which licence, all have one version, and it depends on what a reader can get. `weft' depends on
%% OTP alone. Nothing is built or sent here.
-module(weft_packages_tests).

-include_lib("eunit/include/eunit.hrl").

%% What a package of hex may have; the files are larger than the package.
-define(BYTES_MAX, 8 * 1024 * 1024).
%% What of an application goes into a package.
-define(PARTS, ["src", "include", "priv", "c_src"]).

packages_are_described_test_() ->
    [{atom_to_list(App),
      ?_assertMatch({[_ | _], ["Apache-2.0"], true},
                    {proplists:get_value(description, Keys), proplists:get_value(licenses, Keys),
                     is_list(proplists:get_value(links, Keys))})}
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

packages_are_small_test_() ->
    [{atom_to_list(App),
      fun() ->
          Files = files(App),
          ?assertEqual([], [File || File <- Files, string:find(File, "_build") =/= nomatch]),
          ?assert(length(Files) > 1),
          ?assert(lists:sum([filelib:file_size(File) || File <- Files]) < ?BYTES_MAX)
      end} || {App, _} <- applications()].

applications() ->
    [begin
         {ok, [{application, App, Keys}]} = file:consult(File),
         {App, Keys}
     end || File <- [_ | _] = filelib:wildcard("apps/*/src/*.app.src")].

files(App) ->
    [File || Part <- ?PARTS,
             File <- filelib:wildcard(filename:join(["apps", App, Part, "**"])),
             filelib:is_regular(File)].

is_otp(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> false;
        Dir -> lists:prefix(code:lib_dir() ++ "/", Dir)
                   andalso filelib:is_regular(filename:join([Dir, "ebin", atom_to_list(App)
                                                             ++ ".app"]))
    end.

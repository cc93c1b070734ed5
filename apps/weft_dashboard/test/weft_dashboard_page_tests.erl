%% SPDX-License-Identifier: Apache-2.0
-module(weft_dashboard_page_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PAGE, "apps/weft_dashboard/page").
-define(WWW, "apps/weft_dashboard/priv/www").

%% As page/build computes it.
what_is_served_was_built_of_these_sources_test() ->
    Files = [filename:join(".", File) || File <- lists:sort(filelib:wildcard("**", ?PAGE)),
                                         filelib:is_regular(filename:join(?PAGE, File)),
                                         filename:basename(File) =/= "README.md"],
    Hash = crypto:hash(sha256, [[File, "\n", read(filename:join(?PAGE, File))] || File <- Files]),
    Version = string:slice(string:lowercase(binary:encode_hex(Hash)), 0, 16),
    [?assertMatch({File, {_, _}}, {File, binary:match(read(filename:join(?WWW, File)), Version)})
     || File <- ["app.js", "app.css", "index.html"]].

each_package_in_it_has_its_licence_there_test() ->
    {ok, #{<<"packages">> := Packages}} =
        weft_json:decode(read(filename:join(?PAGE, "package-lock.json"))),
    Licences = read(filename:join(?WWW, "LICENSES")),
    Served = [string:prefix(Path, "node_modules/")
              || {<<"node_modules/", _/binary>> = Path, Package} <- maps:to_list(Packages),
                 not is_map_key(<<"dev">>, Package)],
    ?assert(length(Served) > 3),
    [?assertMatch({Name, {_, _}},
                  {Name, binary:match(Licences, <<"--- ", Name/binary, " ---">>)})
     || Name <- Served].

%% The policy of the server would refuse them.
nothing_is_inline_test() ->
    Index = read(filename:join(?WWW, "index.html")),
    ?assertEqual(nomatch, re:run(Index, "<style|style=|\\son[a-z]+=|<script[^>]*>[^<]")).

read(File) ->
    {ok, Text} = file:read_file(File),
    Text.

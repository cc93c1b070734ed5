#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu
%% Chooses places to be read by hand (docs/guide/migrate.md):
%%
%%   test/migrate/sites.escript SEED REWRITTEN LEFT FILE.json...
%%
%% The files are what `weft migrate rewrite . --json' says of programs, named as these. It prints as
%% many rewritten and left places, chosen at random: project, file, line, column, rule, what.
-mode(compile).

main([Seed, Rewritten, Left | Files]) ->
    true = code:add_patha("_build/default/lib/weft_command/ebin"),
    Places = lists:append([places(File) || File <- Files]),
    Start = rand:seed_s(exsss, list_to_integer(Seed)),
    io:format("project,file,line,column,rule,what~n"),
    lists:foldl(fun({What, Count}, Random) ->
                        print(What, list_to_integer(Count),
                              lists:sort([Place || {Is, Place} <- Places, Is =:= What]), Random)
                end, Start, [{<<"rewritten">>, Rewritten}, {<<"left">>, Left}]);
main(_) ->
    io:format(standard_error, "usage: sites.escript SEED REWRITTEN LEFT FILE.json...~n", []),
    halt(2).

places(File) ->
    {ok, Text} = file:read_file(File),
    {ok, #{<<"results">> := Results}} = weft_json:decode(Text),
    [{What, {filename:basename(File, ".json"), Name, Line, Column, Rule}}
     || #{<<"file">> := Name} = Result <- Results, What <- [<<"rewritten">>, <<"left">>],
        #{<<"line">> := Line, <<"column">> := Column, <<"rule">> := Rule}
            <- maps:get(What, Result)].

%% All of them in a random order, of which the first are taken.
print(What, Count, Places, Random0) ->
    {Drawn, Random} = lists:mapfoldl(fun(Place, State0) ->
                                             {Number, State} = rand:uniform_s(State0),
                                             {{Number, Place}, State}
                                     end, Random0, Places),
    [io:format("~ts,~ts,~w,~w,~ts,~ts~n", [Project, Name, Line, Column, Rule, What])
     || {_, {Project, Name, Line, Column, Rule}}
            <- lists:sort(fun({_, A}, {_, B}) -> A =< B end,
                          lists:sublist(lists:sort(Drawn), Count))],
    Random.

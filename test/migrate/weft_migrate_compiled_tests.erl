%% SPDX-License-Identifier: Apache-2.0
%% @doc That foreign sources are compiled as far as they go, and that what rewriting may break is
%% found.
-module(weft_migrate_compiled_tests).

-include_lib("eunit/include/eunit.hrl").

%% The parse transform and the behaviour are compiled after those that need them.
-define(FILES,
        [{"a/include/a.hrl", "-define(SCOPE, shop).\n"},
         {"a/src/a.erl", "-module(a).\n-behaviour(z).\n-compile({parse_transform, y}).\n"
          "-export([run/1, z/0]).\n-include_lib(\"a/include/a.hrl\").\n"
          "run(X) -> pg:join(orders, self()), pg:leave(?SCOPE, X, self()).\nz() -> ok.\n"},
         {"a/src/y.erl", "-module(y).\n-export([parse_transform/2]).\n"
          "parse_transform(Forms, _) -> Forms.\n"},
         {"a/src/z.erl", "-module(z).\n-callback z() -> ok.\n"},
         {"a/src/w.erl", "-module(w).\n-export([f/1]).\nf(X) -> ok.\n"},
         {"a/test/v.erl", "-module(v).\n-include(\"none.hrl\").\n"}]).

sources_are_compiled_before_and_after_test_() ->
    {timeout, 60, fun() -> in_a_directory(fun compiled/1) end}.

compiled(Dir) ->
    [begin
         ok = filelib:ensure_dir(filename:join([Dir, "shop", File])),
         ok = file:write_file(filename:join([Dir, "shop", File]), Text)
     end || {File, Text} <- ?FILES],
    ?assertMatch(
       #{files := 6, scanned := 6, sources := 5, compiled := 4, warnings := 1, rewritten := 2,
         left := 0, problems := [], errors := [{_, "v.erl: can't find include file" ++ _}],
         changed := Changed} when map_size(Changed) =:= 2,
       weft_migrate_compiled:run(filename:join(Dir, "shop"),
                                 #{work => filename:join(Dir, "work"), partial => false,
                                   build => #{}})).

in_a_directory(Fun) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    try Fun(Dir) after file:del_dir_r(Dir) end.

what_may_not_differ_is_a_problem_test_() ->
    Module = #{exports => [{f, 0}], calls => [{pg, join, 2}, {lists, map, 2}], warnings => ["w"]},
    [?_assertEqual(Expected, weft_migrate_compiled:compared(#{"f.erl" => {ok, Module}},
                                                            #{"f.erl" => After}))
     || {After, Expected} <-
            [{{ok, Module}, []},
             {{ok, Module#{calls := [{weft_pg, join, 2}, {lists, map, 2}]}}, []},
             {{error, "e"}, ["f.erl: does not compile any more: e"]},
             {{ok, Module#{warnings := ["w", "v"]}},
              ["f.erl: other warnings: [\"v\"] instead of []"]},
             {{ok, Module#{exports := []}}, ["f.erl: other exports: [] instead of [{f,0}]"]},
             {{ok, Module#{calls := [{pg, join, 2}]}}, ["f.erl: calls lists:map/2 no more"]},
             {{ok, Module#{calls := [{pg, join, 2}, {lists, map, 2}, {a, b, 1}]}},
              ["f.erl: calls a:b/1"]},
             {{ok, Module#{calls := [{weft_pg, jion, 2}, {lists, map, 2}]}},
              ["there is no weft_pg:jion/2"]}]].

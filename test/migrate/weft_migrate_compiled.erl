%% SPDX-License-Identifier: Apache-2.0
%% @doc A copy of foreign sources, compiled before and after `weft migrate rewrite'. What could be
%% compiled before has to compile after, with the same warnings and exports; it calls what it called
%% before, or a function of weft in the place of one of an old module; bytes outside of edits are
%% the same (`weft_migrate_bytes'); a second run edits nothing.
-module(weft_migrate_compiled).

-export([run/2, compared/2]).
-export_type([outcome/0]).

-type outcome() :: #{files := non_neg_integer(), scanned := non_neg_integer(),
                     findings := non_neg_integer(), sources := non_neg_integer(),
                     compiled := non_neg_integer(), warnings := non_neg_integer(),
                     rewritten := non_neg_integer(), left := non_neg_integer(),
                     changed := #{{mfa(), mfa()} => pos_integer()}, problems := [string()],
                     errors := [{file:filename(), string()}]}.

-define(OLD, [global, pg, pg2, global_group, s_group, rpc]).
-define(NEW, [weft_global, weft_pg, weft_group, erpc, maps, lists]).

%% @doc Work gets a copy of the sources and the beams; it is made anew.
-spec run(Sources :: file:filename(),
          #{work := file:filename(), partial := boolean(),
            build := weft_migrate_build:options()}) -> outcome().
run(Sources, #{work := Work, partial := IsPartial, build := Options}) ->
    _ = file:del_dir_r(Work),
    Tree = filename:join([Work, "sources", filename:basename(Sources)]),
    ok = filelib:ensure_dir(Tree),
    "" = os:cmd(lists:flatten(io_lib:format("cp -R '~ts' '~ts'", [Sources, Tree]))),
    {ok, #{files := Files, findings := Findings, failed := Unscanned}} = weft_migrate:scan([Tree]),
    Before = weft_migrate_build:tree(Tree, {filename:join(Work, "before"), Options}),
    Rewrite = #{write => true, partial => IsPartial},
    {ok, #{results := Results, failed := Refused}} = weft_migrate:rewrite([Tree], Rewrite),
    {ok, #{results := Again}} = weft_migrate:rewrite([Tree], Rewrite),
    Changed = [File || #{file := File, rewritten := [_ | _]} <- Results],
    After = weft_migrate_build:again(Changed, Before, Tree,
                                     {filename:join(Work, "after"), Options}),
    #{files => Files, scanned => Files - length(Unscanned), findings => length(Findings),
      sources => map_size(Before), compiled => length(compiled(Before)),
      warnings => length(lists:append([Warnings || #{warnings := Warnings} <- compiled(Before)])),
      rewritten => count(rewritten, Results), left => count(left, Results),
      changed => changed(Before, After),
      problems => [text("~ts: not rewritten: ~ts", [File, Why]) || {File, Why} <- Refused]
          ++ [text("a second run rewrites ~w places", [count(rewritten, Again)])
              || count(rewritten, Again) > 0]
          ++ lists:append([weft_migrate_bytes:problems(Result) || Result <- Results])
          ++ compared(Before, After),
      errors => [{File, Error} || {File, {error, Error}} <- lists:sort(maps:to_list(Before))]}.

compiled(Built) -> [Facts || {ok, Facts} <- maps:values(Built)].

count(Kind, Results) -> lists:sum([length(maps:get(Kind, Result)) || Result <- Results]).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).

%% @doc What differs between the sources compiled before and after and should not.
-spec compared(weft_migrate_build:tree(), weft_migrate_build:tree()) -> [string()].
compared(Before, After) ->
    lists:append([different(File, maps:get(File, Before), maps:get(File, After))
                  || File <- lists:sort(maps:keys(Before))]) ++ missing(After).

different(_File, {error, _}, {error, _}) ->
    [];
different(File, {error, _}, {ok, _}) ->
    [text("~ts: compiles only after it was rewritten", [File])];
different(File, {ok, _}, {error, Error}) ->
    [text("~ts: does not compile any more: ~ts", [File, Error])];
different(File, {ok, Before}, {ok, After}) ->
    [text("~ts: other ~ts: ~0tp instead of ~0tp", [File, Kind, New -- Old, Old -- New])
     || Kind <- [warnings, exports],
        {Old, New} <- [{maps:get(Kind, Before), maps:get(Kind, After)}],
        lists:sort(Old) =/= lists:sort(New)]
        ++ other_calls(File, calls_gone(Before, After), calls_gone(After, Before)).

calls_gone(#{calls := Old}, #{calls := New}) -> Old -- New.

other_calls(File, Gone, New) ->
    [text("~ts: calls ~w:~ts/~w no more", [File, M, F, A])
     || {M, F, A} <- Gone, not lists:member(M, ?OLD)]
        ++ [text("~ts: calls ~w:~ts/~w", [File, M, F, A])
            || {M, F, A} <- New, not lists:member(M, ?NEW)].

%% What is called newly, and what no longer for it, in how many modules.
changed(Before, After) ->
    lists:foldl(
      fun({Old, New}, Counts) ->
              maps:update_with({Old, New}, fun(Count) -> Count + 1 end, 1, Counts)
      end, #{},
      [{Old, New} || {File, {ok, Facts}} <- maps:to_list(Before),
                     {ok, Now} <- [maps:get(File, After)],
                     {_, Function, Arity} = New <- calls_gone(Now, Facts),
                     Old <- [Call || {_, F, A} = Call <- calls_gone(Facts, Now),
                                     F =:= Function, A =:= Arity]]).

%% Functions of weft that are called and are not there.
missing(After) ->
    [text("there is no ~w:~ts/~w", [Module, Function, Arity])
     || {Module, Function, Arity} <- lists:usort(lists:append([Calls || #{calls := Calls}
                                                                            <- compiled(After)])),
        lists:member(Module, ?NEW), {module, Module} =/= code:ensure_loaded(Module)
            orelse not erlang:function_exported(Module, Function, Arity)].

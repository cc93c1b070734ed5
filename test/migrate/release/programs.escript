#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%%! -noinput +sbtu
%% Programs of the RELEASE project for SD Erlang, before and after `weft migrate'
%% (docs/guide/migrate.md):
%%
%%   test/migrate/release/programs.escript orbit|im BENCHMARKS [CLIENTS MESSAGES]
%%
%% BENCHMARKS is a clone of the project's repository of that name. Before, the sources run as they
%% are on the application sd_erlang; only a function that OTP 20 removed is another one. After, they
%% run on weft_group. Both run over weft. The exit code is 0 if the results are equal.
-mode(compile).

-define(HERE, "test/migrate/release").

main(["orbit", Benchmarks]) ->
    compared("Orbit/SD-Orbit/src", Benchmarks, fun orbit/3);
main(["im", Benchmarks]) ->
    main(["im", Benchmarks, "20", "3"]);
main(["im", Benchmarks, Clients, Messages]) ->
    Traffic = {list_to_integer(Clients), list_to_integer(Messages)},
    compared("IM/RSD-IM", Benchmarks,
             fun(Application, Paths, _Dir) -> weft_release_im:run(Application, Paths, Traffic) end);
main(_) ->
    io:format(standard_error, "usage: programs.escript orbit|im BENCHMARKS [CLIENTS MESSAGES]~n",
              []),
    halt(2).

compared(Place, Benchmarks, Run) ->
    Base = filename:absname(os:getenv("REBAR_BASE_DIR", "_build")),
    Weft = [filename:join([Base, "default/lib", App, "ebin"])
            || App <- ["weft", "sd_erlang", "weft_migrate"]],
    ok = code:add_pathsa(Weft),
    Work = filename:join([Base, "migrate", "release", filename:dirname(Place)]),
    _ = file:del_dir_r(Work),
    Runner = compiled(filelib:wildcard(?HERE ++ "/weft_release_*.erl"), filename:join(Work, "run")),
    true = code:add_patha(Runner),
    Results = [begin
                   io:format("~n~ts~n", [When]),
                   Dir = sources(When, filename:join(Benchmarks, Place), Work),
                   Ebin = compiled(filelib:wildcard(Dir ++ "/*.erl"), Dir),
                   Result = Run(Application, [Ebin, Runner | Weft], Dir),
                   io:format("~0tp~n", [Result]),
                   Result
               end || {When, Application} <- [{"before", sd_erlang}, {"after", weft}]],
    case Results of
        [Same, Same] -> io:format("~nequal~n");
        _ -> io:format("~ndifferent~n"), halt(1)
    end.

compiled(Files, Dir) ->
    ok = filelib:ensure_path(Dir),
    [{ok, _, _} = compile:file(File, [{outdir, Dir}, return]) || File <- Files],
    Dir.

%%% Sources

%% The module logger is left out: OTP has one of that name since release 21, and nothing that runs
%% here calls it.
sources(When, From, Work) ->
    Dir = filename:join(Work, When),
    ok = filelib:ensure_path(Dir),
    [{ok, _} = file:copy(File, filename:join(Dir, filename:basename(File)))
     || File <- filelib:wildcard(From ++ "/*.erl"), filename:basename(File) =/= "logger.erl"],
    _ = rewrite(Dir, #{only => [], adaptors => [?HERE ++ "/im_crypto_adaptor.erl"]}),
    [migrated(Dir) || When =:= "after"],
    Dir.

migrated(Dir) ->
    _ = rewrite(Dir, #{only => [s_group]}),
    Left = rewrite(Dir, #{only => [], adaptors => [?HERE ++ "/im_groups_adaptor.erl"]}),
    [io:format("left ~ts:~w: ~ts~n", [filename:basename(File), Line, Reason])
     || {File, #{line := Line, reason := Reason}} <- Left],
    {ok, _} = file:copy(?HERE ++ "/im_names.erl", filename:join(Dir, "im_names.erl")).

rewrite(Dir, Options) ->
    {ok, #{results := Results, failed := []}} =
        weft_migrate:rewrite([Dir], Options#{write => true}),
    Left = [{File, One} || #{file := File, left := Left} <- Results, One <- Left],
    io:format("~w places rewritten, ~w left~n",
              [lists:sum([length(Rewritten) || #{rewritten := Rewritten} <- Results]),
               length(Left)]),
    Left.

%%% SD-Orbit: a master, and two groups of three nodes

orbit(Application, Paths, Dir) ->
    ok = file:write_file(filename:join(Dir, "bench.config"),
                         "{separate_node_for_submasters, true}.\n"),
    weft_release_nodes:with(
      [master, a1, a2, a3, b1, b2, b3], Paths,
      fun(#{master := Master} = Peers) ->
              [{ok, _} = weft_release_nodes:call(Peer, application, ensure_all_started,
                                                 [Application])
               || Peer <- maps:values(Peers)],
              [ok = weft_release_nodes:call(Peer, file, set_cwd, [Dir])
               || Peer <- maps:values(Peers)],
              Workers = [element(2, maps:get(Name, Peers)) || Name <- [a1, a2, a3, b1, b2, b3]],
              weft_release_nodes:call(Master, weft_release_orbit, run, [20000, Workers, 2])
      end).

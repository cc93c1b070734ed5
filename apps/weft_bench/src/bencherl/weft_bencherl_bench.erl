%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmarks there are: those that come with weft, and those of a directory.
%%
%% The twelve synthetic ones of the BenchErl paper (Aronis et al. 2012), written anew after its
%% description, its two for ETS tables, and the load of Dialyzer on several cores.
-module(weft_bencherl_bench).

-export([find/1, load/2]).

%% @doc Name and module of those that come with weft.
-spec own() -> [{string(), module()}].
own() ->
    [{"bang", bencherl_bang}, {"big", bencherl_big}, {"dialyzer", bencherl_dialyzer},
     {"ehb", bencherl_ehb}, {"ets_test", bencherl_ets_test}, {"ets_bench", bencherl_ets_bench},
     {"ets_random_ops", bencherl_ets_random_ops},
     {"genstress", bencherl_genstress}, {"mbrot", bencherl_mbrot},
     {"orbit_int", bencherl_orbit_int}, {"parallel", bencherl_parallel},
     {"pcmark", bencherl_pcmark}, {"ran", bencherl_ran}, {"serialmsg", bencherl_serialmsg},
     {"timer_wheel", bencherl_timer_wheel}].

%% @doc Those of a run, in order. An unknown name is an error.
-spec find(weft_bencherl_config:config()) -> {ok, [{string(), module()}]} | {error, string()}.
find(#{include := Include, exclude := Exclude, bench_dir := Dir}) ->
    All = lists:sort(own() ++ of_dir(Dir)),
    Names = [Name || {Name, _} <- All],
    Wanted = case Include of all -> Names; _ -> Include end,
    case (Wanted ++ Exclude) -- Names of
        [] -> {ok, [Bench || {Name, _} = Bench <- All, lists:member(Name, Wanted),
                             not lists:member(Name, Exclude)]};
        Unknown -> {error, lists:flatten(io_lib:format("no benchmark ~ts; there are ~ts",
                                                       [lists:join(", ", Unknown),
                                                        lists:join(", ", Names)]))}
    end.

of_dir(none) -> [];
of_dir(Dir) ->
    [{filename:basename(File, ".erl"), list_to_atom(filename:basename(File, ".erl"))}
     || File <- filelib:wildcard("*.erl", Dir) ++ filelib:wildcard("*/src/*.erl", Dir),
        is_main(File)].

%% In the layout of BenchErl a benchmark has the name of its directory.
is_main(File) ->
    case filename:split(File) of
        [_] -> true;
        [Bench, "src", Name] -> Bench ++ ".erl" =:= Name
    end.

%% @doc On the node that runs it: makes a benchmark ready, with the modules beside it.
-spec load(module(), Dir :: string() | none) -> ok | {error, string()}.
load(Module, Dir) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> ok;
        {error, _} when Dir =/= none -> compile_all(Module, Dir);
        {error, Reason} -> {error, lists:flatten(io_lib:format("~ts: ~0tp", [Module, Reason]))}
    end.

compile_all(Module, Dir) ->
    Name = atom_to_list(Module),
    Files = case filelib:wildcard(filename:join([Dir, Name, "src", "*.erl"])) of
                [] -> [filename:join(Dir, Name ++ ".erl")];
                Found -> Found
            end,
    lists:foldl(fun(File, ok) -> weft_load_source:compile(File);
                   (_File, Error) -> Error
                end, ok, Files).

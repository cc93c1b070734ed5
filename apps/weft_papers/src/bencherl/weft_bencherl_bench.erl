%% SPDX-License-Identifier: Apache-2.0
%% @doc The benchmarks there are: those that come with weft, and those of a directory, which replace
%% ours of the same name.
%%
%% The twelve synthetic ones of the BenchErl paper (Aronis et al. 2012), written anew after its
%% description, its two for ETS tables, and the load of Dialyzer on several cores.
-module(weft_bencherl_bench).

-export([find/1, unknown/1, load/1, data/2, configuration/1]).
-export_type([bench/0]).

%% Where its source is: nowhere for ours, which are compiled; a file; or a directory as BenchErl has
%% them, with src, and data and conf if it needs them.
-type bench() :: #{name := string(), module := module(),
                   source := none | {file | directory, file:filename()}}.

%% Name and module of those that come with weft.
own() ->
    [{"bang", bencherl_bang}, {"big", bencherl_big}, {"dialyzer", bencherl_dialyzer},
     {"ehb", bencherl_ehb}, {"ets_test", bencherl_ets_test}, {"ets_bench", bencherl_ets_bench},
     {"ets_random_ops", bencherl_ets_random_ops},
     {"genstress", bencherl_genstress}, {"mbrot", bencherl_mbrot},
     {"orbit_int", bencherl_orbit_int}, {"parallel", bencherl_parallel},
     {"pcmark", bencherl_pcmark}, {"ran", bencherl_ran}, {"serialmsg", bencherl_serialmsg},
     {"timer_wheel", bencherl_timer_wheel}].

%% @doc Those of a run, in order. It is an error if none is left.
-spec find(weft_bencherl_config:config()) -> {ok, [bench()]} | {error, string()}.
find(#{bench_dir := Dir, include := Include, exclude := Exclude} = Config) ->
    case Dir =:= none orelse filelib:is_dir(Dir) of
        true ->
            case [Bench || {Name, Bench} <- lists:sort(maps:to_list(all(Dir))),
                           Include =:= all orelse lists:member(Name, Include),
                           not lists:member(Name, Exclude)] of
                [] -> {error, lists:flatten(lists:join("; ", ["no benchmark is left"
                                                              | unknown(Config)]))};
                Benches -> {ok, Benches}
            end;
        false ->
            {error, lists:flatten(["BENCH_DIR wants a directory; ", Dir, " is none"])}
    end.

%% @doc What a run names and there is not, in a line if it is something. A run.conf may be of
%% another BenchErl, with benchmarks of its own.
-spec unknown(weft_bencherl_config:config()) -> [string()].
unknown(#{bench_dir := Dir, include := Include, exclude := Exclude}) ->
    Known = lists:sort(maps:keys(all(Dir))),
    Named = [Name || Names <- [Include, Exclude], Names =/= all, Name <- Names],
    [lists:flatten(io_lib:format("no benchmark ~ts; there are ~ts", [lists:join(", ", Unknown),
                                                                     lists:join(", ", Known)]))
     || [_ | _] = Unknown <- [[Name || Name <- lists:usort(Named), not lists:member(Name, Known)]]].

all(Dir) -> maps:merge(by_name(own(), fun(_) -> none end), of_dir(Dir)).

by_name(Benches, Source) ->
    maps:from_list([{Name, #{name => Name, module => Module, source => Source(Name)}}
                    || {Name, Module} <- Benches]).

%% In the layout of BenchErl a benchmark has the name of its directory.
of_dir(none) -> #{};
of_dir(Dir) ->
    Files = [filename:basename(File, ".erl") || File <- filelib:wildcard("*.erl", Dir)],
    Directories = [Name || Source <- filelib:wildcard("*/src/*.erl", Dir),
                           [Name, _, File] <- [filename:split(Source)], Name ++ ".erl" =:= File],
    maps:merge(
      by_name(with_modules(Files), fun(Name) -> {file, filename:join(Dir, Name ++ ".erl")} end),
      by_name(with_modules(Directories), fun(Name) -> {directory, filename:join(Dir, Name)} end)).

with_modules(Names) -> [{Name, list_to_atom(Name)} || Name <- Names].

%% @doc On the node that runs it: makes a benchmark ready, with the modules beside it.
-spec load(bench()) -> ok | {error, string()}.
load(#{module := Module, source := none}) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> ok;
        {error, Reason} -> {error, lists:flatten(io_lib:format("~ts: ~0tp", [Module, Reason]))}
    end;
load(#{source := {file, File}}) -> weft_load_source:compile(File);
load(#{source := {directory, Dir}}) ->
    lists:foldl(fun(File, ok) -> weft_load_source:compile(File);
                   (_File, Error) -> Error
                end, ok, filelib:wildcard(filename:join([Dir, "src", "*.erl"]))).

%% @doc What it finds its data in, or writes them to: its own directory, or one of the results.
-spec data(bench(), Results :: file:filename()) -> file:filename().
data(#{source := {directory, Dir}}, _Results) -> filename:absname(filename:join(Dir, "data"));
data(#{name := Name}, Results) -> filename:join([Results, Name, "data"]).

%% @doc The directory of a benchmark that can have a configuration of its own.
-spec configuration(bench()) -> {ok, file:filename()} | none.
configuration(#{source := {directory, Dir}}) ->
    Conf = filename:join(Dir, "conf"),
    case filelib:is_dir(Conf) of
        true -> {ok, Conf};
        false -> none
    end;
configuration(#{}) -> none.

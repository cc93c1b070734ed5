%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes ready the modules that a configuration of a load names: its driver, its hooks, and
%% what else is in its directory of sources.
-module(weft_load_modules).

-export([prepare/1]).

%% @doc Loads them and checks what the load calls. The error is a text.
-spec prepare(weft_load_config:config()) -> ok | {error, string()}.
prepare(#{driver := Driver, code_paths := Paths, source_dir := SourceDir, pairs := Pairs,
          pre_hook := Before, post_hook := After}) ->
    ok = basho_bench_config:load(Pairs),
    ok = code:add_paths(lists:append([beams(Path) || Path <- Paths, is_list(Path)])),
    ok = weft_load_source:load_others(SourceDir, Driver),
    first_error([fun() -> driver(Driver, SourceDir) end,
                 fun() -> hook("pre_hook", Before, SourceDir) end,
                 fun() -> hook("post_hook", After, SourceDir) end]).

%% Basho Bench names the directory above the beams; they may also be in it.
beams(Path) -> [Path, filename:join(Path, "ebin")].

first_error([]) -> ok;
first_error([Check | Checks]) ->
    case Check() of
        ok -> first_error(Checks);
        {error, Text} -> {error, Text}
    end.

driver(Driver, SourceDir) ->
    case weft_load_source:load(Driver, SourceDir) of
        ok ->
            case erlang:function_exported(Driver, new, 1)
                andalso erlang:function_exported(Driver, run, 4) of
                true -> ok;
                false -> text("driver ~ts has no new/1 and run/4", [Driver])
            end;
        {error, Text} ->
            text("driver ~ts: ~ts", [Driver, Text])
    end.

hook(_Key, none, _SourceDir) ->
    ok;
hook(Key, {Module, Function}, SourceDir) ->
    case weft_load_source:load(Module, SourceDir) of
        ok ->
            case erlang:function_exported(Module, Function, 0) of
                true -> ok;
                false -> text("~ts: there is no function ~ts:~ts/0", [Key, Module, Function])
            end;
        {error, Text} ->
            text("~ts: ~ts", [Key, Text])
    end.

text(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

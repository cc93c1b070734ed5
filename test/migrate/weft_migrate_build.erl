%% SPDX-License-Identifier: Apache-2.0
%% @doc Compiles the sources of foreign programs as far as they can be compiled without their own
%% build, and tells of each what the compiler says and what the result calls.
%%
%% A directory with a `src' in it is an application; all its `.erl' are compiled, those of tests
%% too, and grammars before. Sources are compiled again as long as more of them can be, as they need
%% each other's parse transforms and behaviours.
-module(weft_migrate_build).

-export([tree/2, again/4]).
-export_type([tree/0, options/0, module_facts/0]).

-type call() :: {module(), atom(), arity()}.
-type module_facts() :: #{exports := [{atom(), arity()}], calls := [call()],
                          warnings := [string()]}.
%% By the file of the source. Of those that cannot be compiled, the first error.
-type tree() :: #{file:filename() => {ok, module_facts()} | {error, string()}}.
%% Where headers are looked for besides, and macros that are defined.
-type options() :: #{include => [file:filename()], define => [atom() | {atom(), term()}]}.

-define(ROUNDS_MAX, 5).
-define(SKIPPED, ["_build", ".git", "node_modules"]).

%% @doc Compiles what is below Dir; beams are below Out. Libraries are those of the code path.
-spec tree(Dir :: file:filename(), {Out :: file:filename(), options()}) -> tree().
tree(Dir, {Out, Options}) ->
    built(tasks(Dir, Out, Options)).

%% @doc Compiles it once more, after some files have changed. Where these can have no influence on
%% the others, the compiler would be given the same as before, and only they are compiled.
-spec again([Changed :: file:filename()], tree(), Dir :: file:filename(),
            {Out :: file:filename(), options()}) -> tree().
again(Changed, Before, Dir, {Out, Options}) ->
    Tasks = tasks(Dir, Out, Options),
    case lists:all(fun(File) -> is_alone(maps:get(File, Before, none)) end, Changed) of
        true -> maps:merge(Before, built([Task || #{file := File} = Task <- Tasks,
                                                  lists:member(File, Changed)]));
        false -> built(Tasks)
    end.

%% Not a header, nor a parse transform or a behaviour that others are compiled with.
is_alone({ok, #{exports := Exports}}) ->
    not lists:member({parse_transform, 2}, Exports)
        andalso not lists:member({behaviour_info, 1}, Exports);
is_alone({error, _}) ->
    true;
is_alone(none) ->
    false.

tasks(Dir, Out, Options) ->
    lists:append([tasks(Dir, Out, Application, Options) || Application <- applications(Dir, Dir)]).

built(Tasks) ->
    Ebins = lists:usort([Ebin || #{out := Ebin} <- Tasks]),
    [true = code:add_pathz(Ebin) || Ebin <- Ebins],
    rounds(Tasks, Ebins, #{}, ?ROUNDS_MAX).

%% Once more, what may have missed a module that there is now.
rounds([], _Ebins, Tree, _Rounds) ->
    Tree;
rounds(_Tasks, _Ebins, Tree, 0) ->
    Tree;
rounds(Tasks, Ebins, Tree0, Rounds) ->
    New = maps:from_list(in_parallel(Tasks, erlang:system_info(schedulers_online))),
    Tree = maps:merge(Tree0, New),
    [code:purge(Module) || {Module, Beam} <- code:all_loaded(), is_list(Beam),
                           lists:member(filename:dirname(Beam), Ebins), code:delete(Module)],
    case [File || {File, Result} <- maps:to_list(New), Result =/= maps:get(File, Tree0, none)] of
        [] -> Tree;
        _ -> rounds([Task || #{file := File} = Task <- Tasks, is_unfinished(maps:get(File, New))],
                    Ebins, Tree, Rounds - 1)
    end.

is_unfinished({error, _}) -> true;
is_unfinished({ok, #{warnings := Warnings}}) ->
    lists:any(fun(Warning) -> string:find(Warning, "behaviour ") =/= nomatch end, Warnings).

%%% Sources

%% Directories with a src, and the whole for what is in none of them.
applications(Root, Dir) ->
    {ok, Names} = file:list_dir(Dir),
    Below = [Path || Name <- lists:sort(Names), not lists:member(Name, ?SKIPPED), Name =/= "src",
                     Path <- [filename:join(Dir, Name)], filelib:is_dir(Path)],
    Found = lists:append([applications(Root, Path) || Path <- Below]),
    case Dir =:= Root orelse lists:member("src", Names) of
        true -> [Dir | Found];
        false -> Found
    end.

tasks(Root, Out, Dir, Options) ->
    Ebin = filename:join([Out, string:prefix(Dir, filename:dirname(Root) ++ "/"), "ebin"]),
    ok = filelib:ensure_path(Ebin),
    Own = own(Dir, Dir),
    [ok = generated(File) || File <- Own, filename:extension(File) =/= ".erl"],
    Include = [Dir, filename:join(Dir, "include"), filename:join(Dir, "src"), filename:dirname(Dir)]
        ++ maps:get(include, Options, []),
    [#{file => File, out => Ebin,
       options => [{i, Path} || Path <- [filename:dirname(File) | Include]]
           ++ [define(Macro) || Macro <- maps:get(define, Options, [])]}
     || File <- own(Dir, Dir), filename:extension(File) =:= ".erl"].

define({Name, Value}) -> {d, Name, Value};
define(Name) -> {d, Name}.

%% What is below this directory and not below another application in it.
own(Application, Dir) ->
    {ok, Names} = file:list_dir(Dir),
    Is = Dir =/= Application andalso lists:member("src", Names),
    lists:append([found(Application, filename:join(Dir, Name))
                  || not Is, Name <- lists:sort(Names), not lists:member(Name, ?SKIPPED)]).

found(Application, Path) ->
    case filelib:is_dir(Path) of
        true -> own(Application, Path);
        false -> [Path || lists:member(filename:extension(Path), [".erl", ".yrl", ".xrl"])]
    end.

generated(File) ->
    Make = case filename:extension(File) of ".yrl" -> yecc; ".xrl" -> leex end,
    _ = Make:file(File, []),
    ok.

%%% Compiling

%% Workers take every n-th task.
in_parallel(Tasks, Workers) ->
    Numbered = lists:enumerate(Tasks),
    Refs = [spawn_monitor(fun() ->
                                  exit({done, [{maps:get(file, Task), one(Task)}
                                               || {Number, Task} <- Numbered,
                                                  Number rem Workers =:= Worker]})
                          end) || Worker <- lists:seq(0, Workers - 1)],
    lists:append([receive {'DOWN', Ref, process, Pid, {done, Results}} -> Results end
                  || {Pid, Ref} <- Refs]).

one(#{file := File, out := Out, options := Options}) ->
    case compile:file(File, [return, debug_info, {outdir, Out} | Options]) of
        {ok, Module, Warnings} ->
            Beam = filename:join(Out, atom_to_list(Module)),
            {ok, {Module, [{imports, Calls}, {exports, Exports}]}} =
                beam_lib:chunks(Beam, [imports, exports]),
            {ok, #{exports => Exports, calls => Calls, warnings => texts(Warnings)}};
        {error, Errors, _} ->
            {error, hd(texts(Errors) ++ ["no reason given"])};
        error ->
            {error, "no reason given"}
    end.

%% Without lines, as these may move.
texts(Messages) ->
    [lists:flatten([filename:basename(File), ": ", Module:format_error(What)])
     || {File, List} <- Messages, {_, Module, What} <- with_place(List)].

with_place(List) -> [case Message of {Module, What} -> {none, Module, What}; _ -> Message end
                     || Message <- List].

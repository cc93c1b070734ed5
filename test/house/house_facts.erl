%% SPDX-License-Identifier: Apache-2.0
%% @doc Facts about the compiled applications: who calls whom, from the abstract code in the beam
%% files (so macros, includes and imports are resolved), and what the .app.src files declare.
-module(house_facts).

-export([read/2, module/2]).
-export_type([facts/0, module_facts/0, call/0]).

-type call() :: {Caller :: {atom(), arity()}, Line :: non_neg_integer(), Callee :: mfa()}.
%% A send and a receive are shown as calls of erlang:'!'/2 and erlang:'receive'/0. Names are the
%% atoms of functions, but for the module of a call: some are names of modules and processes.
-type module_facts() :: #{module := module(), app := atom(), file := string(), calls := [call()],
                          names := [{Line :: non_neg_integer(), atom()}],
                          behaviours := [module()], callbacks := [{atom(), arity()}],
                          without_spec := [{Line :: non_neg_integer(), {atom(), arity()}}]}.
-type facts() :: #{modules := #{module() => module_facts()},
                   apps := #{atom() => {File :: string(), DependsOn :: [atom()]}}}.

%% @doc Facts of all applications in `Root'/apps, compiled in `LibDir'.
-spec read(file:filename(), file:filename()) -> facts().
read(Root, LibDir) ->
    Sources = filelib:wildcard("apps/*/src/**/*.erl", Root),
    AppFiles = filelib:wildcard("apps/*/src/*.app.src", Root),
    #{modules => maps:from_list([{module_name(F), read_module(LibDir, F)} || F <- Sources]),
      apps => maps:from_list([app(Root, File) || File <- AppFiles])}.

app(Root, File) ->
    {ok, [{application, App, Keys}]} = file:consult(filename:join(Root, File)),
    {App, {File, proplists:get_value(applications, Keys, [])}}.

module_name(File) ->
    list_to_atom(filename:basename(File, ".erl")).

read_module(LibDir, File) ->
    ["apps", App | _] = filename:split(File),
    Beam = filename:join([LibDir, App, "ebin", filename:basename(File, ".erl")]),
    case beam_lib:chunks(Beam, [abstract_code]) of
        {ok, {_, [{abstract_code, {raw_abstract_v1, Forms}}]}} ->
            (module(File, Forms))#{app => list_to_atom(App)};
        Other ->
            error({not_compiled_with_debug_info, Beam, Other})
    end.

%% @doc The facts that are in the abstract forms of one module.
-spec module(string(), [erl_parse:abstract_form()]) -> module_facts().
module(File, Forms) ->
    Local = [{Name, Arity} || {function, _, Name, Arity, _} <- Forms],
    Imported = [{FA, M} || {attribute, _, import, {M, FAs}} <- Forms, FA <- FAs],
    Resolve = fun(FA) -> resolve(FA, module_name(File), Local, Imported) end,
    #{module => module_name(File), app => none, file => File,
      calls => [{{Name, Arity}, Line, callee(Call, Resolve)}
                || {function, _, Name, Arity, Clauses} <- Forms, {Line, Call} <- calls(Clauses)],
      names => lists:usort([Name || {function, _, _, _, Clauses} <- Forms,
                                    Name <- names(Clauses)]),
      behaviours => [B || {attribute, _, Kind, B} <- Forms,
                          Kind =:= behaviour orelse Kind =:= behavior],
      callbacks => [FA || {attribute, _, callback, {FA, _}} <- Forms],
      without_spec => without_spec(Forms)}.

without_spec(Forms) ->
    Specified = [FA || {attribute, _, spec, {FA, _}} <- Forms],
    Exported = lists:append([FAs || {attribute, _, export, FAs} <- Forms]) -- Specified,
    [{line(Anno), {Name, Arity}} || {function, Anno, Name, Arity, _} <- Forms,
                                    lists:member({Name, Arity}, Exported)].

callee({local, FA}, Resolve) -> Resolve(FA);
callee({_, _, _} = MFA, _) -> MFA.

resolve({Name, Arity} = FA, Module, Local, Imported) ->
    case {lists:member(FA, Local), lists:keyfind(FA, 1, Imported)} of
        {true, _} -> {Module, Name, Arity};
        {false, {FA, From}} -> {From, Name, Arity};
        {false, false} -> {erlang, Name, Arity}
    end.

calls({call, Anno, {remote, _, {atom, _, M}, {atom, _, F}}, Args}) ->
    [{line(Anno), {M, F, length(Args)}} | calls(Args)];
calls({call, Anno, {atom, _, F}, Args}) ->
    [{line(Anno), {local, {F, length(Args)}}} | calls(Args)];
calls({'fun', Anno, {function, F, A}}) ->
    [{line(Anno), {local, {F, A}}}];
calls({'fun', Anno, {function, {atom, _, M}, {atom, _, F}, {integer, _, A}}}) ->
    [{line(Anno), {M, F, A}}];
calls({op, Anno, '!', To, Message}) ->
    [{line(Anno), {erlang, '!', 2}} | calls([To, Message])];
calls(Receive) when is_tuple(Receive), element(1, Receive) =:= 'receive' ->
    [_, Anno | Parts] = tuple_to_list(Receive),
    [{line(Anno), {erlang, 'receive', 0}} | calls(Parts)];
calls(Tuple) when is_tuple(Tuple) ->
    calls(tuple_to_list(Tuple));
calls([First | Rest]) ->
    calls(First) ++ calls(Rest);
calls(_) ->
    [].

names({remote, _, {atom, _, _}, Function}) -> names(Function);
names({function, {atom, _, _}, _, _}) -> [];
names({atom, Anno, Name}) -> [{line(Anno), Name}];
names(Tuple) when is_tuple(Tuple) -> names(tuple_to_list(Tuple));
names([First | Rest]) -> names(First) ++ names(Rest);
names(_) -> [].

line(Anno) ->
    erl_anno:line(Anno).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Erlang that documents show: it can be read, and the functions that it calls are there with
%% as many arguments.
-module(weft_snippets_erlang).

-export([expressions/2, module/2, span/2]).

%% @doc Expressions as for the shell. The last one needs no dot.
-spec expressions(string(), weft_snippets:known()) -> [string()].
expressions(Text, Known) ->
    case erl_scan:string(Text) of
        {ok, Tokens, _} ->
            lists:append([expression(Expression, Known) || Expression <- split(Tokens, [])]);
        {error, Reason, _} ->
            [said(Reason)]
    end.

split([], []) -> [];
split([], Tokens) -> [lists:reverse(Tokens, [{dot, 1}])];
split([{dot, _} = Dot | Rest], Tokens) -> [lists:reverse(Tokens, [Dot]) | split(Rest, [])];
split([Token | Rest], Tokens) -> split(Rest, [Token | Tokens]).

expression(Tokens, Known) ->
    case erl_parse:parse_exprs(Tokens) of
        {ok, Forms} -> called(Forms, Known);
        {error, Reason} -> [said(Reason)]
    end.

said({Line, Module, Reason}) ->
    io_lib:format("line ~0p: ~ts", [Line, Module:format_error(Reason)]).

%% @doc A module. It may export nothing.
-spec module(string(), weft_snippets:known()) -> [string()].
module(Text, Known) ->
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, unicode:characters_to_binary(Text)),
    {ok, Forms} = epp:parse_file(File, []),
    ok = file:delete(File),
    compiled(compile:noenv_forms(Forms, [return_errors])) ++ called(Forms, Known).

compiled({error, Errors, _}) -> [said(Error) || {_, Of} <- Errors, Error <- Of];
compiled(_Compiled) -> [].

%% @doc A call between backquotes, or `Module:Function/Arity'. What is between its brackets may be
%% words; then a function of this name is enough.
-spec span(string(), weft_snippets:known()) -> [string()].
span(Span, Known) ->
    {match, [Module, Function, Rest]} = re:run(Span, "^([a-z]\\w*):([a-z]\\w*)(.*)$",
                                               [dotall, unicode, {capture, all_but_first, list}]),
    Name = {list_to_atom(Module), list_to_atom(Function)},
    case {re:run(Rest, "^/[0-9]+(,[0-9]+)*$"), expressions(Span, Known)} of
        {{match, _}, _} ->
            lists:append([missing(Name, list_to_integer(Arity), Known)
                          || Arity <- string:lexemes(Rest, "/,")]);
        {nomatch, []} ->
            [];
        {nomatch, Problems} ->
            case string:find(Rest, "..") of
                nomatch -> Problems;
                _ -> missing(Name, any, Known)
            end
    end.

called(Forms, Known) ->
    lists:usort(lists:append([missing(Name, Arity, Known) || {Name, Arity} <- calls(Forms)])).

calls({call, _, {remote, _, {atom, _, Module}, {atom, _, Function}}, Arguments}) ->
    [{{Module, Function}, length(Arguments)} | calls(Arguments)];
calls({'fun', _, {function, {atom, _, Module}, {atom, _, Function}, {integer, _, Arity}}}) ->
    [{{Module, Function}, Arity}];
calls(Form) when is_tuple(Form) -> calls(tuple_to_list(Form));
calls([Form | Forms]) -> calls(Form) ++ calls(Forms);
calls(_) -> [].

missing({Module, Function}, Arity, #{modules := Own}) ->
    _ = code:ensure_loaded(Module),
    Found = [A || {F, A} <- exports(Module), F =:= Function],
    case lists:member(Module, Own) orelse lists:member(Arity, Found)
        orelse (Arity =:= any andalso Found =/= []) of
        true -> [];
        false -> [io_lib:format("there is no ~ts:~ts/~0p", [Module, Function, Arity])]
    end.

exports(Module) ->
    try Module:module_info(exports) ++ [{F, A} || {F, A} <- built_in(Module)]
    catch error:undef -> []
    end.

built_in(erlang) -> [{F, A} || F <- [apply, '!'], A <- [2, 3]];
built_in(_) -> [].

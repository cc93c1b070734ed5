%% SPDX-License-Identifier: Apache-2.0
%% @doc The length of function clauses, in lines that hold code (comments and blank lines are free).
%% Works on tokens, so that macros stay what the reader sees.
-module(house_shape).

-export([rules/0, check/2]).

-define(CLAUSE_LINES_MAX, 40).

-spec rules() -> [atom()].
rules() ->
    [clause_lines].

-spec check(string(), binary()) -> [house:problem()].
check(File, Text) ->
    case filename:extension(File) of
        ".erl" -> long_clauses(File, tokens(Text));
        ".escript" -> long_clauses(File, tokens(without_shebang(Text)));
        _ -> []
    end.

without_shebang(Text) ->
    [First, Rest] = binary:split(Text, <<"\n">>),
    <<"%", First/binary, "\n", Rest/binary>>.

tokens(Text) ->
    case erl_scan:string(unicode:characters_to_list(Text), 1) of
        {ok, Tokens, _} -> Tokens;
        {error, _, Line} -> error({not_erlang_at_line, Line})
    end.

long_clauses(File, Tokens) ->
    [problem(File, Clause, Count)
     || Form <- forms(Tokens, []), Clause <- clauses(Form),
        Count <- [length(lists:usort([line(Token) || Token <- Clause]))],
        Count > ?CLAUSE_LINES_MAX].

problem(File, [{atom, Line, Name} | _], Count) ->
    Text = io_lib:format("a clause of ~ts has ~w lines, at most ~w: give its parts names",
                         [Name, Count, ?CLAUSE_LINES_MAX]),
    Subject = lists:concat([filename:basename(File, ".erl"), ":", Name]),
    (house:problem(clause_lines, File, Line, Subject, Text))#{value := Count}.

forms([], _) ->
    [];
forms([{dot, _} = Dot | Rest], Form) ->
    [lists:reverse(Form, [Dot]) | forms(Rest, [])];
forms([Token | Rest], Form) ->
    forms(Rest, [Token | Form]).

clauses([{atom, _, _}, {'(', _} | _] = Function) ->
    clauses(Function, 0, []);
clauses(_Attribute) ->
    [].

%% A semicolon outside of all brackets and `end's separates the clauses of a function.
clauses([], _, Clause) ->
    [lists:reverse(Clause)];
clauses([{';', _} | Rest], 0, Clause) ->
    [lists:reverse(Clause) | clauses(Rest, 0, [])];
clauses([Token | Rest], Depth, Clause) ->
    clauses(Rest, Depth + nesting(Token, Rest), [Token | Clause]).

nesting({'fun', _}, [{'(', _} | _]) -> 1;
nesting({'fun', _}, [{var, _, _}, {'(', _} | _]) -> 1;
nesting(Token, _) ->
    Name = element(1, Token),
    case {lists:member(Name, ['(', '[', '{', '<<', 'begin', 'case', 'if', 'receive', 'try']),
          lists:member(Name, [')', ']', '}', '>>', 'end'])} of
        {true, _} -> 1;
        {_, true} -> -1;
        _ -> 0
    end.

line(Token) ->
    erl_anno:line(element(2, Token)).

%% SPDX-License-Identifier: Apache-2.0
%% @doc What documents show: each block of code has a kind, which says how it is checked.
%%
%%   erlang               expressions: they can be read, and what they call is there
%%   erlang shell         the same after prompts (`1> '); other lines are answers
%%   erlang module        compiles, and what it calls is there
%%   erlang config APP    a sys.config, or some of its keys for APP; the application accepts it
%%   erlang terms WHAT    a file of terms; what reads such a file accepts it
%%   elixir               can be read, if Elixir is there (with FULL=1)
%%   sh                   a script: sh can read it, and its commands have these options
%%   console              the same after `$ ', and expressions after prompts; the rest is output
%%   args                 a vm.args
%%   ini bencherl         a run.conf of BenchErl; what reads it accepts it
%%   json                 can be decoded
%%   output, text         what was printed, or a picture: nothing to check
%%
%% In the text itself, what is between backquotes and is a call or a command is checked as well.
%% A block without a kind is a problem. This reads and judges, it runs nothing.
-module(weft_snippets).

-export([blocks/2, spans/2, is_output/1, problems/2, span_problems/2]).
-export_type([known/0]).

%% Modules and programs that belong to the reader.
-type known() :: #{modules := [module()], programs := [string()]}.

%% @doc The blocks of a page, those that are output among them.
-spec blocks(file:filename(), Root :: file:filename()) -> [weft_guide:block()].
blocks(File, Root) -> weft_guide:blocks(filename:join(Root, File)).

%% @doc What is between backquotes in the text outside of blocks, with its line.
-spec spans(file:filename(), Root :: file:filename()) -> [{Line :: pos_integer(), string()}].
spans(File, Root) ->
    {ok, Binary} = file:read_file(filename:join(Root, File)),
    Lines = string:split(unicode:characters_to_list(Binary), "\n", all),
    text(lists:zip(lists:seq(1, length(Lines)), Lines)).

text([]) -> [];
text([{_, "```" ++ _} | Lines]) ->
    text(tl(lists:dropwhile(fun({_, Line}) -> Line =/= "```" end, Lines)));
text([{Number, Line} | Lines]) ->
    [{Number, Span} || Span <- between(Line)] ++ text(Lines).

between(Line) ->
    case re:run(Line, "`([^`]+)`", [global, unicode, {capture, [1], list}]) of
        {match, Found} -> [Span || [Span] <- Found];
        nomatch -> []
    end.

%% @doc Whether there is nothing in it to check.
-spec is_output(weft_guide:block()) -> boolean().
is_output(#{info := [Kind]}) -> Kind =:= "output" orelse Kind =:= "text";
is_output(_) -> false.

%% @doc What is wrong with a block.
-spec problems(weft_guide:block(), known()) -> [string()].
problems(#{info := Info, text := Text}, Known) -> problems(Info, Text, Known).

problems(["erlang"], Text, Known) ->
    weft_snippets_erlang:expressions(Text, Known);
problems(["erlang", "shell"], Text, Known) ->
    prompts(Text, Known);
problems(["erlang", "module"], Text, Known) ->
    weft_snippets_erlang:module(Text, Known);
problems(["erlang", "config" | App], Text, _Known) when length(App) =< 1 ->
    weft_snippets_terms:config(Text, App);
problems(["erlang", "terms", What], Text, _Known) ->
    weft_snippets_terms:terms(Text, What);
problems(["elixir"], Text, _Known) ->
    weft_snippets_terms:elixir(Text);
problems(["sh"], Text, Known) ->
    weft_snippets_commands:script(Text, Known);
problems(["console"], Text, Known) ->
    Lines = string:split(Text, "\n", all),
    weft_snippets_commands:script(lists:append([Command ++ "\n" || "$ " ++ Command <- Lines]),
                                  Known)
        ++ prompts(Text, Known);
problems(["args"], Text, _Known) ->
    weft_snippets_terms:args(Text);
problems(["ini", "bencherl"], Text, _Known) ->
    weft_snippets_terms:run_conf(Text);
problems(["json"], Text, _Known) ->
    case weft_json:decode(unicode:characters_to_binary(Text)) of
        {ok, _} -> [];
        Error -> [io_lib:format("~0tp", [Error])]
    end;
problems(Info, Text, _Known) ->
    case is_output(#{info => Info, text => Text}) of
        true -> [];
        false -> ["a block needs a kind (see weft_snippets), it has \"" ++ lists:join(" ", Info)
                  ++ "\""]
    end.

%% Each line after a prompt; it may go on after a comma.
prompts(Text, Known) ->
    {match, Lines} = re:run(Text, "^(?:\\([a-z0-9@]+\\) ?)?[0-9]+> (.*)$|^.*$",
                            [global, multiline, unicode, {capture, [1], list}]),
    weft_snippets_erlang:expressions(lists:append([Line ++ "\n" || [Line] <- Lines]), Known).

%% @doc What is wrong with what is between backquotes.
-spec span_problems(string(), known()) -> [string()] | none.
span_problems(Span, Known) ->
    case {re:run(Span, "^[a-z][a-zA-Z0-9_]*:[a-z][a-zA-Z0-9_]*[/(]", [unicode]),
          re:run(Span, "^(weft|make|bin/[a-z]+) [a-z-]|^bin/[a-z]+$", [unicode])} of
        {{match, _}, _} -> weft_snippets_erlang:span(Span, Known);
        {nomatch, {match, _}} -> weft_snippets_commands:span(Span, Known);
        {nomatch, nomatch} -> none
    end.

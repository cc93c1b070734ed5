%% SPDX-License-Identifier: Apache-2.0
%% @doc What the documents show is so: each block of code is run by a test, or checked, or is marked
%% as output; calls and commands in the text are there.
-module(weft_snippets_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PAGES, ["*.md", "docs/guide/*.md", "docs/internals/*.md", "apps/**/README.md",
                "examples/**/README.md"]).
-define(CONFIG, "test/docs/snippets.config").

what_documents_show_is_so_test_() ->
    Known = known(),
    [{File, {timeout, 60, fun() -> ?assertEqual([], problems(File, Known)) end}}
     || File <- pages()].

problems(File, Known) ->
    [told(File, Line, Problem) || #{line := Line} = Block <- weft_snippets:blocks(File, "."),
                                  Problem <- weft_snippets:problems(Block, Known)]
        ++ [told(File, Line, [Span, ": ", Problem])
            || {Line, Span} <- weft_snippets:spans(File, "."),
               Problems <- [weft_snippets:span_problems(Span, Known)], Problems =/= none,
               Problem <- Problems].

told(File, Line, Problem) ->
    lists:flatten(io_lib:format("~ts:~b: ~ts", [File, Line, Problem])).

%% Each block that is no output is run by a test, which is there and names its page, or the reason
%% why it is not is written down. The sum is printed.
all_are_accounted_for_test_() ->
    {timeout, 60, fun all_are_accounted_for/0}.

all_are_accounted_for() ->
    Known = known(),
    Blocks = [{File, Block} || File <- pages(), Block <- weft_snippets:blocks(File, ".")],
    Runs = [Said || {run, _, _, _} = Said <- config()],
    Not = [Said || {not_run, _, _, _} = Said <- config()],
    [?assertEqual({Page, Test, true}, {Page, Test, names(Test, Page)})
     || {run, Page, _, Test} <- Runs],
    {Output, Code} = lists:partition(fun({_, Block}) -> weft_snippets:is_output(Block) end, Blocks),
    [?assertMatch({Said, Part, [_ | _]}, {Said, Part, [Block || Block <- Code,
                                                               is_meant(Block, Page, Part)]})
     || {_, Page, Parts, _} = Said <- Runs ++ Not, Part <- Parts],
    {Run, Rest} = lists:partition(fun(Block) -> is_said(Block, Runs) end, Code),
    ?assertEqual([], [place(Block) || Block <- Run, is_said(Block, Not)]),
    ?assertEqual([], [place(Block) || Block <- Rest, not is_said(Block, Not)]),
    Spans = [Span || File <- pages(), {_, Span} <- weft_snippets:spans(File, "."),
                     weft_snippets:span_problems(Span, Known) =/= none],
    io:format(user, "~nblocks of ~b documents: ~b run, ~b checked, ~b output; "
              "~b calls and commands in the text~n",
              [length(pages()), length(Run), length(Rest), length(Output), length(Spans)]),
    ?assertMatch([_ | _], Run).

is_said(Block, All) ->
    lists:any(fun({_, Page, Parts, _}) ->
                      lists:any(fun(Part) -> is_meant(Block, Page, Part) end, Parts)
              end, All).

%% Blocks of a page: those of a kind, or those among them with these words.
is_meant({Page, #{info := Info, text := Text}}, Page, {Info, Words}) ->
    string:find(Text, Words) =/= nomatch;
is_meant({Page, #{info := Info}}, Page, Info) -> true;
is_meant(_, _, _) -> false.

place({File, #{line := Line}}) -> told(File, Line, "").

names(Test, Page) ->
    {ok, Source} = file:read_file(Test),
    string:find(Source, filename:basename(Page)) =/= nomatch.

pages() -> lists:append([filelib:wildcard(Pattern) || Pattern <- ?PAGES]).

config() ->
    {ok, Terms} = file:consult(?CONFIG),
    Terms.

known() -> maps:from_list([Own || {_, _} = Own <- config()]).

%% ---- the check itself finds what is wrong ----

what_is_not_so_is_told_test_() ->
    [{Text, {timeout, 60, ?_assertMatch({_, true}, checked(Part, Info, Text))}}
     || {Info, Text, Part} <-
            [{[], "x", "needs a kind"}, {["erlang", "nothing"], "x", "needs a kind"},
             {["output"], "???", none},
             {["erlang"], "A = lists:reverse([1]),\nA", none},
             {["erlang"], "lists:reverse([1]). lists:reverse(1, 2, 3).", "lists:reverse/3"},
             {["erlang"], "f(fun lists:no_such/1)", "lists:no_such/1"},
             {["erlang"], "nobody:is(here)", "nobody:is/1"}, {["erlang"], "own:is(here)", none},
             {["erlang"], "receive ... end", "syntax error"},
             {["erlang", "shell"], "1> no_such:f().\nok", "no_such:f/0"},
             {["erlang", "shell"], "1> A = 1.\n2> net_adm:ping(A).\npong", none},
             {["erlang", "module"], "-module(a).\n-export([f/0]).\nf() -> g().", "g/0"},
             {["erlang", "module"], "-module(a).\n-export([f/0]).\nf() -> own:g().", none},
             {["erlang", "config"], "[{weft, [{lanes, 0}]}].", "lanes is 0"},
             {["erlang", "config"], "{lanes, 2}   % here\n{topology, full_mesh}", none},
             {["erlang", "config", "weft_ring"], "{partitions, 7}", "bad_value"},
             {["erlang", "terms", "cluster"], "{groups, 1}.", "cluster: "},
             {["erlang", "terms", "app"], "{application, a}.", "nothing_reads_it"},
             {["args"], "-proto_dist weft\n-sname a", none},
             {["args"], "-proto_dist woof", "woof_dist"},
             {["json"], "{\"a\": }", "error"},
             {["sh"], "if", "yntax error"}, {["sh"], "weft up -n 3 && make test ONLY=x", none},
             {["sh"], "weft up --node 3", "--node"}, {["sh"], "weft upp", "upp"},
             {["sh"], "make bench VARIANTS=stock,weft_1 QUICK=1", none},
             {["sh"], "make bench VARIANTS='stock weft_1'", "stock weft_1"},
             {["sh"], "make tset", "tset"}, {["sh"], "make test ONYL=x", "ONYL"},
             {["sh"], "bin/bench load", "CONFIG"}, {["sh"], "bin/bench --list   # all", none},
             {["sh"], "bin/nothing", "no bin/nothing"}, {["sh"], "test/nothing", "no test/nothing"},
             {["sh"], "bin/matrix --olny 27", "--olny"},
             {["sh"], "frobnicate", "frobnicate"},
             {["console"], "$ weft statsu\nup", "statsu"}]].

checked(Part, Info, Text) ->
    Block = #{info => Info, text => Text, line => 1, before => ""},
    Problems = lists:flatten(weft_snippets:problems(Block, #{modules => [own], programs => []})),
    {Problems, is_told(Part, Problems)}.

what_is_not_so_in_the_text_is_told_test_() ->
    [{Span, {timeout, 60, ?_assertMatch({_, true}, checked_span(Part, Span))}}
     || {Span, Part} <-
            [{"lists:reverse/1,2", none}, {"lists:reverse/1,3", "lists:reverse/3"},
             {"weft:send(Pid, Msg, bulk)", none}, {"weft:send(Pid)", "weft:send/1"},
             {"erpc:call(Node, os, cmd, [..])", none}, {"erpc:clal(Node, [..])", "erpc:clal"},
             {"weft cut", none}, {"weft cat", "cat"}, {"make chekc", "chekc"},
             {"bin/no", "bin/no"}]].

checked_span(Part, Span) ->
    Found = weft_snippets:span_problems(Span, #{modules => [], programs => []}),
    {Found, is_told(Part, lists:flatten(Found))}.

is_told(none, Problems) -> Problems =:= [];
is_told(Part, Problems) -> string:find(Problems, Part) =/= nomatch.

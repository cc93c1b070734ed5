%% SPDX-License-Identifier: Apache-2.0
%% @doc Rules about the text of a file: licence line, width, length, header, words and calls that
%% must not be there. The patterns below are written so that they do not match themselves.
-module(house_text).

-export([rules/0, check/2]).

-define(COLUMNS_MAX, 100).
-define(SOURCE_LINES_MAX, 450).
-define(TEST_LINES_MAX, 700).
-define(HEADER_LINES_MIN, 2).
%% A module that others implement, or whose bytes or messages others read, must say more.
-define(CONTRACT_HEADER_LINES_MIN, 4).

-spec rules() -> [atom()].
rules() ->
    [licence, columns, module_lines, header, marker, machine_path, kill_by_name, keyword, sleep].

-spec check(string(), binary()) -> [house:problem()].
check(File, Text) ->
    Lines = number(string:split(Text, "\n", all)),
    Everywhere = marker(File, Lines) ++ machine_path(File, Lines),
    case is_code(File) of
        false -> Everywhere;
        true -> Everywhere ++ licence(File, Lines) ++ columns(File, Lines)
                    ++ module_lines(File, Lines) ++ header(File, Lines)
                    ++ kill_by_name(File, Lines) ++ keyword(File, Lines) ++ sleep(File, Lines)
    end.

number(Lines) ->
    lists:zip(lists:seq(1, length(Lines)), Lines).

is_code(File) ->
    filename:extension(File) =/= ".md".

is_module(File) ->
    filename:extension(File) =:= ".erl".

is_test(File) ->
    lists:member("test", filename:split(File)).

licence(File, Lines) ->
    Head = lists:sublist(Lines, 5),
    NeedsOne = not lists:member(filename:extension(File), [".src", ".yml"]),
    case NeedsOne andalso not matches("SPDX-License-Identifier: Apache-2\\.0", Head) of
        true -> [house:problem(licence, File, 1, File,
                               "put `SPDX-License-Identifier: Apache-2.0' on top")];
        false -> []
    end.

columns(File, Lines) ->
    [house:problem(columns, File, N, File,
                   io_lib:format("~w columns, break the line at ~w", [Width, ?COLUMNS_MAX]))
     || {N, Line} <- Lines, Width <- [string:length(Line)], Width > ?COLUMNS_MAX].

module_lines(File, Lines) ->
    Max = case is_test(File) of true -> ?TEST_LINES_MAX; false -> ?SOURCE_LINES_MAX end,
    %% Behind the end of the last line there is nothing.
    case length(Lines) - 1 of
        Count when Count > Max ->
            Text = io_lib:format("~w lines, at most ~w: move one concept out", [Count, Max]),
            [(house:problem(module_lines, File, 1, File, Text))#{value := Count}];
        _ -> []
    end.

header(File, Lines) ->
    case is_module(File) andalso not is_test(File) of
        true -> header_is_long_enough(File, Lines) ++ header_has_a_purpose(File, Lines);
        false -> []
    end.

header_has_a_purpose(File, Lines) ->
    Head = lists:takewhile(fun({_, Line}) -> is_head(Line) end, Lines),
    case matches("^%% @(doc|private|hidden)\\b", lists:sublist(Head, 2)) of
        true -> [];
        false -> [house:problem(header, File, 2, File,
                                "begin the comment on top with `@doc' and the purpose")]
    end.

header_is_long_enough(File, Lines) ->
    Head = lists:takewhile(fun({_, Line}) -> is_head(Line) end, Lines),
    Comments = [Line || {_, <<"%", _/binary>>} = Line <- Head],
    Count = length([Line || Line <- Comments, not matches("SPDX", [Line])]),
    Min = case is_contract(File, Lines) of
        true -> ?CONTRACT_HEADER_LINES_MIN;
        false -> ?HEADER_LINES_MIN
    end,
    Text = "the comment on top has ~w lines, write at least ~w: purpose, protocol, non-goals",
    [house:problem(header, File, 1, File, io_lib:format(Text, [Count, Min])) || Count < Min].

is_head(<<>>) -> true;
is_head(<<"%", _/binary>>) -> true;
is_head(<<"-module", _/binary>>) -> true;
is_head(_) -> false.

is_contract(File, Lines) ->
    matches("^-callback ", Lines)
        orelse re:run(filename:basename(File, ".erl"), "_(core|wire)$") =/= nomatch.

marker(File, Lines) ->
    found(marker, "\\b(TO[D]O|FI[X]ME|XX[X])\\b", File, Lines,
          "finish it, or put it in the issue tracker").

machine_path(File, Lines) ->
    found(machine_path, "(^|[^\\w/.])/([w]ork|[r]oot)/|/tmp/b[a]sh_jobs|/tmp/b[u]ild_",
          File, Lines, "a path of one machine: make it relative or configurable").

kill_by_name(File, Lines) ->
    found(kill_by_name, "\\b(pk[i]ll|kill[a]ll)\\b", File, Lines,
          "ends processes of others: keep the pid or port of what you start, and end that").

%% An atom on OTP 25 and 26, and no longer one afterwards: such a file does not compile there.
keyword(File, Lines) ->
    found(keyword, "^[^%\"]*(?<![\\w'])may[b]e(?![\\w'])", File, Lines,
          "a keyword since OTP 27: put the atom in quotes").

found(Rule, Pattern, File, Lines, Advice) ->
    [house:problem(Rule, File, N, File, Advice)
     || {N, Line} <- Lines, matches(Pattern, [{N, Line}])].

%% A sleep is no synchronisation. Where time itself is the matter (load at a given rate, letting a
%% timer fire) a comment `pacing: why' on the line or on the one before says so.
sleep(File, Lines) ->
    case is_module(File) andalso is_test(File) of
        true -> sleeps_without_reason(File, Lines);
        false -> []
    end.

sleeps_without_reason(File, Lines) ->
    Pairs = lists:zip([{0, <<>>} | lists:droplast(Lines)], Lines),
    Sleep = "^[^%]*(timer:slee[p]\\(|receive\\s+after\\s+(?!infinity|0\\s))",
    [house:problem(sleep, File, N, File,
                   "wait for a condition with a deadline, or say `% pacing: why'")
     || {Before, {N, Line}} <- Pairs,
        matches(Sleep, [{N, Line}]),
        not matches("% pacing: \\S", [Before, {N, Line}])].

matches(Pattern, Lines) ->
    lists:any(fun({_, Line}) -> re:run(Line, Pattern, [{capture, none}]) =:= match end, Lines).

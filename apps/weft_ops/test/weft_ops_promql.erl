%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads expressions of Prometheus, as far as tests need: which there are in files that are
%% shipped, and which metrics they ask for.
-module(weft_ops_promql).

-export([shipped/0, exprs/1, metrics/1]).

%% What could be taken for a metric: strings, comments, matchers of labels, ranges, and the labels
%% of groupings and joins.
-define(NO_METRICS, ["\"(?:[^\"\\\\]|\\\\.)*\"", "#[^\n]*", "\\{[^}]*\\}", "\\[[^]]*\\]",
                     "\\b(?:by|without|on|ignoring|group_left|group_right)\\s*\\([^)]*\\)"]).
-define(WORDS, [<<"and">>, <<"or">>, <<"unless">>, <<"bool">>, <<"offset">>, <<"by">>,
                <<"without">>, <<"group_left">>, <<"group_right">>, <<"inf">>, <<"nan">>]).

%% @doc The files that are shipped: alerts, and the board of Grafana.
-spec shipped() -> [file:filename()].
shipped() ->
    filelib:wildcard(filename:join([code:lib_dir(weft_ops), "priv", "prometheus", "*-alerts.yml"]))
        ++ filelib:wildcard(filename:join([code:lib_dir(weft_ops), "priv", "grafana", "*.json"])).

%% @doc The expressions in a file.
-spec exprs(file:filename()) -> [binary()].
exprs(File) ->
    {ok, Text} = file:read_file(File),
    {Pattern, Quote} = case filename:extension(File) of
                           ".yml" -> {"(?m)^ +expr: (.*)$", <<"\"">>};
                           ".json" -> {"\"expr\": \"((?:[^\"\\\\]|\\\\.)*)\"", <<"\\\"">>}
                       end,
    {match, Found} = re:run(Text, Pattern, [global, {capture, all_but_first, binary}]),
    [binary:replace(Expr, Quote, <<"\"">>, [global]) || [Expr] <- Found].

%% @doc The names of all metrics in an expression, whoever exports them. A name before a parenthesis
%% is that of a function.
-spec metrics(iodata()) -> [binary()].
metrics(Expr) ->
    Bare = lists:foldl(fun(Pattern, Text) ->
                           re:replace(Text, Pattern, " ", [global, caseless, {return, binary}])
                       end, iolist_to_binary(Expr), ?NO_METRICS),
    Name = "(?<![\\w:.])[a-zA-Z_:][\\w:]*+(?!\\s*\\()",
    case re:run(Bare, Name, [global, {capture, all, binary}]) of
        {match, Names} -> lists:usort([N || [N] <- Names]) -- ?WORDS;
        nomatch -> []
    end.

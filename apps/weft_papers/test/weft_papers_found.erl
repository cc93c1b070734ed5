%% SPDX-License-Identifier: Apache-2.0
%% @doc What figures find in results that are made up: verdicts, and what their texts say.
-module(weft_papers_found).

-include_lib("eunit/include/eunit.hrl").

-export([findings/2, says/3]).

-type verdict() :: agrees | differs | open.
-type rows() :: [tuple()].

%% @doc The findings of a figure.
-spec findings(Figure :: string(), rows()) -> [{verdict(), string()}].
findings(Wanted, Rows) ->
    [Findings] = [Read(weft_report_sample:results(Rows))
                  || #{id := Id, findings := Read} <- weft_papers_figures:figures(), Id =:= Wanted],
    [{Verdict, unicode:characters_to_list(Text)} || {Verdict, Text} <- Findings].

%% @doc Has the figure these findings, in this order, and do they say all this?
-spec says([{verdict(), [weft_report_said:part()]}], Figure :: string(), rows()) -> ok.
says(Expected, Wanted, Rows) ->
    ?assertEqual(Expected, as_expected(Expected, findings(Wanted, Rows))).

%% A finding that is another one is shown as it is, with what it lacks.
as_expected([{Verdict, Parts} = Same | Expected], [{Verdict, Text} | Findings]) ->
    case weft_report_said:missing(Parts, Text) of
        [] -> [Same | as_expected(Expected, Findings)];
        Missing -> [{Verdict, Text, {missing, Missing}} | as_expected(Expected, Findings)]
    end;
as_expected([_ | Expected], [Other | Findings]) ->
    [Other | as_expected(Expected, Findings)];
as_expected(_, Others) ->
    Others.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The run that a figure is read from: its numbers, when, where and how they were measured, and
%% what makes them doubtful.
-module(weft_papers_run).

-export([new/2, read/1, results/1, name/1, has_failed/1, doubted/2]).
-export([measured/1, sharing/1, warnings/1, doubts/1]).
-export_type([run/0, outcome/0]).

-opaque run() :: #{name := string(), outcome := outcome(),
                   environment := weft_report_warnings:environment(),
                   doubts := [weft_papers_doubts:doubt()]}.
-type outcome() :: {ok, [weft_report_record:row()]} | {error, Text :: unicode:chardata()}.

%% @doc A run of which nothing else is known.
-spec new(Name :: string(), outcome()) -> run().
new(Name, Outcome) ->
    #{name => Name, outcome => Outcome, environment => #{}, doubts => []}.

%% @doc The run in a directory, of which it has the name. Without numbers it has an error; without
%% an environment or doubts it is a run all the same.
-spec read(Dir :: file:filename()) -> run().
read(Dir) ->
    Run = new(filename:basename(Dir), weft_report_record:read(Dir)),
    Known = case weft_report_record:read_environment(Dir) of
                {ok, Environment} -> Run#{environment := Environment};
                {error, _NoneWritten} -> Run
            end,
    case weft_papers_doubts:read(Dir) of
        {ok, Doubts} -> Known#{doubts := Doubts};
        {error, _} = Error -> Known#{outcome := Error}
    end.

%% @doc What the directory of the run is called.
-spec name(run()) -> string().
name(#{name := Name}) -> Name.

%% @doc Its numbers.
-spec results(run()) -> {ok, weft_report_results:results()} | {error, unicode:chardata()}.
results(#{outcome := {ok, Rows}}) -> {ok, weft_report_results:new(Rows)};
results(#{outcome := {error, _} = Error}) -> Error.

%% @doc Did a repetition fail, or all of it?
-spec has_failed(run()) -> boolean().
has_failed(#{outcome := {ok, Rows}}) ->
    lists:any(fun(#{metric := Metric}) -> Metric =:= <<"failed">> end, Rows);
has_failed(#{outcome := {error, _Why}}) ->
    true.

%% @doc What was found in it, as far as there is no doubt about it.
-spec doubted([weft_papers_verdict:finding()], run()) -> [weft_papers_verdict:finding()].
doubted(Findings, #{doubts := Doubts}) -> weft_papers_doubts:findings(Findings, Doubts).

%% ---- in words ----

%% @doc When the run was made, from which commit, on what machine, and whether it was a quick one,
%% if that was recorded.
-spec measured(run()) -> [unicode:chardata()].
measured(#{environment := Environment}) when map_size(Environment) =:= 0 ->
    [];
measured(#{environment := Environment}) ->
    Of = fun(Key) -> maps:get(Key, Environment, <<>>) end,
    Said = [string:slice(Of(<<"date">>), 0, 10), ["commit ", Of(<<"commit">>)],
            Of(<<"processor">>), [Of(<<"cores">>), " cores"],
            ["OTP ", Of(<<"otp_release">>)]]
        ++ [["quota: ", Quota] || Quota <- [Of(<<"quota">>)], Quota =/= <<>>, Quota =/= <<"none">>]
        ++ ["a quick run, smaller and shorter than what is said here"
            || Of(<<"scope">>) =:= <<"quick">>],
    [lists:join(", ", [One || One <- Said, One =/= <<>>])].

%% @doc How many nodes shared a core, where there are clusters and that was recorded.
-spec sharing(run()) -> [unicode:chardata()].
sharing(Run) ->
    case results(Run) of
        {ok, Results} ->
            Cells = weft_report_results:cells(Results),
            [Words || Words <- [weft_report_words:sharing(
                                  weft_report_results:sharing(Cells, Results))], Words =/= []];
        {error, _Why} ->
            []
    end.

%% @doc What makes numbers of the run doubtful, as far as the run tells it itself.
-spec warnings(run()) -> [unicode:chardata()].
warnings(#{environment := Environment} = Run) ->
    case results(Run) of
        {ok, Results} -> weft_report_warnings:all(Results, Environment);
        {error, _Why} -> []
    end.

%% @doc And what others know of it.
-spec doubts(run()) -> [unicode:chardata()].
doubts(#{doubts := Doubts}) -> weft_papers_doubts:texts(Doubts).

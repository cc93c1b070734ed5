%% SPDX-License-Identifier: Apache-2.0
%% @doc The report of a scan as SARIF 2.1.0, which editors and the hosts of repositories show beside
%% the code. Pure.
-module(weft_migrate_sarif).

-export([report/1]).

-define(SCHEMA, <<"https://json.schemastore.org/sarif-2.1.0.json">>).

-spec report(weft_migrate:report()) -> weft_json:json().
report(#{findings := Findings, failed := Failed}) ->
    Driver = #{name => <<"weft migrate">>, rules => [rule(Entry)
                                                     || Entry <- weft_migrate_catalogue:all()]},
    Run = #{tool => #{driver => Driver}, columnKind => <<"unicodeCodePoints">>,
            results => [result(Finding) || Finding <- Findings],
            invocations => [#{executionSuccessful => true,
                              toolExecutionNotifications => [failed(One) || One <- Failed]}]},
    #{'$schema' => ?SCHEMA, version => <<"2.1.0">>, runs => [Run]}.

rule(#{id := Id, level := Level, title := Title, why := Why, cost := Cost, todo := Todo}) ->
    #{id => Id, name => Id, shortDescription => text(Title), fullDescription => text(Why),
      help => text(["Cost: ", Cost, ". To do: ", Todo, "."]),
      defaultConfiguration => #{level => Level}}.

result(#{id := Id, file := File, line := Line, column := Column, text := Text} = Finding) ->
    #{level := Level, title := Title, todo := Todo} = weft_migrate_catalogue:entry(Id),
    Note = case Finding of #{note := Said} -> [" (", Said, ")"]; #{} -> "" end,
    #{ruleId => Id, level => Level, message => text([Title, Note, ": ", Todo]),
      locations => [#{physicalLocation =>
                          #{artifactLocation => #{uri => uri(File)},
                            region => #{startLine => Line, startColumn => Column,
                                        snippet => text(Text)}}}]}.

failed({File, Reason}) ->
    #{level => error, message => text(["cannot read ", File, ": ", Reason])}.

text(Text) -> #{text => unicode:characters_to_binary(Text)}.

uri(File) ->
    unicode:characters_to_binary(uri_string:quote(unicode:characters_to_list(File), "/")).

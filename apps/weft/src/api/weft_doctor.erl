%% SPDX-License-Identifier: Apache-2.0
%% @doc Examines a running system and says what is wrong with it, why that matters, and what to do.
%%
%% All nodes are asked at the same time for their facts (`weft_doctor_facts'), each for five seconds
%% at most; `weft_doctor_checks' makes findings of them. It changes nothing. To be called in a
%% shell of any node; the command `weft doctor' does the same for clusters and deployments that it
%% has started.
-module(weft_doctor).

-export([examine/0, report/0, report/1, report/2, configured/1, text/1]).
-export([tell/4]).
-export_type([report/0, call/0]).

-import(weft_doctor_checks, [host/1]).

-type report() :: #{nodes := [node()], answered := [node()], ms := non_neg_integer(),
                    errors := non_neg_integer(), warnings := non_neg_integer(),
                    notes := non_neg_integer(), findings := [weft_doctor_checks:finding()]}.

%% How a function is called on a node: `erpc:call/5', or another one that answers and fails as it.
-type call() :: fun((node(), module(), Function :: atom(), [term()], timeout()) -> term()).

-define(TIMEOUT_MS, 5000).
%% Of so many questions for the time the one with the shortest round trip counts.
-define(CLOCK_SAMPLES, 3).
-define(COLUMNS, 90).

%% @doc Examines all members of the cluster, those that have failed among them, or all connected
%% nodes if there is no topology, and prints what it has found.
-spec examine() -> ok.
examine() ->
    io:put_chars(text(report())).

%% @doc The same as data.
-spec report() -> report().
report() ->
    report(lists:usort([node() | weft_overlay:members() ++ weft_overlay:failed() ++ nodes()])).

%% @doc The report about these nodes, as the calling node reaches them.
-spec report([node()]) -> report().
report(Nodes) ->
    report(Nodes, fun erpc:call/5).

%% @doc The same of nodes that are called in another way.
-spec report([node()], call()) -> report().
report(Nodes, Call) ->
    BegunMs = erlang:monotonic_time(millisecond),
    reported(ask_all(lists:usort(Nodes), BegunMs + ?TIMEOUT_MS, Call), BegunMs).

%% @doc The report about nodes that do not run yet, of their configuration. What other nodes or a
%% node itself would have to be asked for is not in it.
-spec configured([weft_doctor_configured:configured(), ...]) -> report().
configured(Nodes) ->
    BegunMs = erlang:monotonic_time(millisecond),
    reported(weft_doctor_configured:answers(Nodes), BegunMs).

reported(Answers, BegunMs) ->
    Findings = weft_doctor_checks:findings(Answers),
    #{nodes => lists:sort(maps:keys(Answers)),
      answered => [Node || {Node, {ok, _}} <- lists:sort(maps:to_list(Answers))],
      ms => erlang:monotonic_time(millisecond) - BegunMs,
      errors => count(error, Findings), warnings => count(warning, Findings),
      notes => count(note, Findings), findings => Findings}.

count(Severity, Findings) ->
    length([S || #{severity := S} <- Findings, S =:= Severity]).

%% --- asking -------------------------------------------------------------------------------------

ask_all(Nodes, Deadline, Call) ->
    Asked = [{Node, spawn_monitor(?MODULE, tell, [Node, Nodes, Deadline, Call])}
             || Node <- Nodes],
    maps:from_list([{Node, answer(Asker, Deadline)} || {Node, Asker} <- Asked]).

%% @private
-spec tell(node(), [node()], Deadline :: integer(), call()) -> no_return().
tell(Node, Nodes, Deadline, Call) ->
    exit({told, ask(Node, Nodes, Deadline, Call)}).

answer({Pid, Monitor}, Deadline) ->
    receive
        {'DOWN', Monitor, process, Pid, {told, Answer}} -> Answer;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, {crashed, Reason}}
    after left(Deadline) ->
            demonitor(Monitor, [flush]),
            exit(Pid, kill),
            {error, timeout}
    end.

ask(Node, Nodes, Deadline, Call) ->
    try
        Clock = clock(Node, Deadline, Call),
        Facts = Call(Node, weft_doctor_facts, gather, [Nodes], left(Deadline)),
        {ok, Facts#{clock => Clock}}
    catch
        error:{erpc, Reason} -> {error, Reason};
        error:{exception, undef, [{weft_doctor_facts, gather, _, _} | _]} -> {error, not_known};
        Class:Reason -> {error, {Class, Reason}}
    end.

%% How far the clock of the node is ahead of ours, and how far that may be wrong.
clock(Node, Deadline, Call) ->
    lists:min([sample(Node, Deadline, Call) || _ <- lists:seq(1, ?CLOCK_SAMPLES)]).

sample(Node, Deadline, Call) ->
    BeforeUs = erlang:system_time(microsecond),
    ThereUs = Call(Node, erlang, system_time, [microsecond], left(Deadline)),
    AfterUs = erlang:system_time(microsecond),
    {max(0, AfterUs - BeforeUs) div 2, ThereUs - (BeforeUs + AfterUs) div 2}.

left(Deadline) ->
    max(0, Deadline - erlang:monotonic_time(millisecond)).

%% --- words --------------------------------------------------------------------------------------

%% @doc The report for people.
-spec text(report()) -> unicode:chardata().
text(#{nodes := Nodes, answered := Answered, ms := Ms, findings := Findings} = Report) ->
    [io_lib:format("~ts examined in ~.1f s: ~ts~n",
                   [of_all(length(Answered), length(Nodes)), Ms / 1000, sums(Report)])
     | findings_text(Findings, Nodes)].

of_all(1, 1) -> "1 node";
of_all(All, All) -> io_lib:format("~b nodes", [All]);
of_all(Some, All) -> io_lib:format("~b of ~b nodes", [Some, All]).

sums(#{findings := []}) -> "nothing found";
sums(#{errors := Errors, warnings := Warnings, notes := Notes}) ->
    lists:join(", ", [number(Count, Word) || {Count, Word} <- [{Errors, "error"},
                                                              {Warnings, "warning"},
                                                              {Notes, "note"}], Count > 0]).

number(1, Word) -> ["1 ", Word];
number(Count, Word) -> [integer_to_list(Count), " ", Word, "s"].

%% What several findings have in common is said once, after the last of them.
findings_text([], _All) ->
    [];
findings_text([Finding | Others], All) ->
    #{check := Check, severity := Severity, nodes := Nodes, found := Found, why := Why,
      advice := Advice} = Finding,
    [$\n, wrapped([atom_to_list(Severity), " on ", named(Nodes, All), ": ", Found], "  "),
     case Others of
         [#{check := Check, severity := Severity} | _] -> "";
         _ -> [wrapped(["  why: ", Why], "       "), wrapped(["  do:  ", Advice], "       ")]
     end
     | findings_text(Others, All)].

%% In lines that fit most terminals.
wrapped(Text, Indent) ->
    Characters = unicode:characters_to_list(Text),
    {Spaces, Rest} = string:take(Characters, " "),
    [Word | Words] = string:split(Rest, " ", all),
    {Lines, Last} = lists:foldl(fun(Next, Lines) -> wrap(Next, Lines, Indent) end,
                                {[], Spaces ++ Word}, Words),
    [Lines, Last, $\n].

wrap(Word, {Lines, Line}, Indent) ->
    case string:length(Line) + 1 + string:length(Word) > ?COLUMNS of
        true -> {[Lines, Line, $\n], Indent ++ Word};
        false -> {Lines, Line ++ " " ++ Word}
    end.

%% On one host the names before the @ are enough. Not more are named than a line takes.
named(Nodes, Nodes) when length(Nodes) > 2 ->
    "all nodes";
named(Nodes, All) ->
    Names = case lists:usort([host(Node) || Node <- All]) of
                [_One] -> [hd(string:split(atom_to_list(Node), "@")) || Node <- Nodes];
                _Several -> [atom_to_list(Node) || Node <- Nodes]
            end,
    case length(Names) of
        Many when Many > 8 ->
            [lists:join(" ", lists:sublist(Names, 6)), io_lib:format(" and ~b more", [Many - 6])];
        _Few ->
            lists:join(" ", Names)
    end.

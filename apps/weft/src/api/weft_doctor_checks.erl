%% SPDX-License-Identifier: Apache-2.0
%% @doc What the facts of all nodes say about the system: findings, the worst first. Pure.
%%
%% A check is one line in checks/0 and one small function. Those of `node' see the facts of one node
%% (`weft_doctor_node_checks'), those of `system' all facts, and the nodes that told none. A fact
%% that is missing gives no finding, except that it is missing. What one cause explains is found
%% once: what leads to a node that does not answer is not found again as a link that is down.
-module(weft_doctor_checks).

-export([findings/1, host/1]).
-export_type([answers/0, severity/0, check/0, finding/0]).

-type facts() :: #{atom() => term()}.
%% With `clock' besides the facts of `weft_doctor_facts': how far the clock of the node is ahead of
%% that of who asked, and how far this may be wrong, in microseconds.
-type answers() :: #{node() => {ok, facts()} | {error, Reason :: term()}}.
-type severity() :: error | warning | note.
-type check() :: answers | no_weft | kernel_flags | start | paths | cuts | links | resuming | lanes
               | suspended | configuration | ticktime | versions | otp | clocks | schedulers
               | limits | listener | names | cookie | cookie_file | certificates | full_mesh
               | global | incomplete | settings | ports | port_use | cookie_told.
-type finding() :: #{check := check(), severity := severity(), nodes := [node()],
                     found := string(), why := string(), advice := string()}.
%% What the checks see: all facts, by node, and the nodes without.
-type system() :: {[{node(), facts()}], [{node(), Reason :: term()}]}.

%% Offsets that programs may suffer from, and those that they surely do.
-define(CLOCK_WARNING_US, 100000).
-define(CLOCK_ERROR_US, 1000000).
-define(FULL_MESH_NODES, 50).
-define(GLOBAL_NAMES, 100).
%% OTP promises that nodes so many releases apart understand each other.
-define(OTP_RELEASES, 2).
%% Nodes that differ in one of these act differently in the same situation.
-define(HARMFUL, [transport, circuits, family, ports, cluster_name, resume_timeout_ms]).

-define(SEVERITIES, [error, warning, note]).

checks() ->
    [{answers, system, fun answers/1},
     {settings, node, fun weft_doctor_node_checks:settings/1},
     {start, node, fun weft_doctor_node_checks:start/1},
     {kernel_flags, node, fun weft_doctor_node_checks:kernel_flags/1},
     {paths, system, fun paths/1},
     {cuts, system, fun cuts/1},
     {links, system, fun links/1},
     {resuming, system, fun resuming/1},
     {lanes, system, fun lanes/1},
     {suspended, node, fun weft_doctor_node_checks:suspended/1},
     {configuration, system, fun configuration/1},
     {ticktime, system, fun ticktime/1},
     {versions, system, fun versions/1},
     {otp, system, fun otp/1},
     {clocks, system, fun clocks/1},
     {schedulers, node, fun weft_doctor_node_checks:schedulers/1},
     {limits, node, fun weft_doctor_node_checks:limits/1},
     {listener, node, fun weft_doctor_node_checks:listener/1},
     {ports, system, fun weft_doctor_ports:too_few/1},
     {port_use, node, fun weft_doctor_ports:in_use/1},
     {names, system, fun names/1},
     {cookie, node, fun weft_doctor_node_checks:cookie/1},
     {cookie_told, node, fun weft_doctor_node_checks:cookie_told/1},
     {cookie_file, node, fun weft_doctor_node_checks:cookie_file/1},
     {certificates, node, fun weft_doctor_node_checks:certificates/1},
     {full_mesh, system, fun full_mesh/1},
     {global, system, fun global/1},
     {no_weft, system, fun no_weft/1},
     {incomplete, node, fun weft_doctor_node_checks:incomplete/1}].

%% @doc All that is to be said about these answers.
-spec findings(answers()) -> [finding()].
findings(Answers) ->
    System = {[{Node, Facts} || {Node, {ok, Facts}} <- lists:sort(maps:to_list(Answers))],
              [{Node, Reason} || {Node, {error, Reason}} <- lists:sort(maps:to_list(Answers))]},
    Findings = [finding(Check, One) || {Check, Scope, Function} <- checks(),
                                       One <- merged(results(Scope, Function, System))],
    [Finding || Severity <- ?SEVERITIES, #{severity := S} = Finding <- Findings, S =:= Severity].

-spec results(system | node, fun((system() | facts()) -> [tuple()]), system()) ->
          [{severity(), [node()], unicode:chardata()}].
results(system, Function, System) ->
    Function(System);
results(node, Function, {All, _Silent}) ->
    [{Severity, [Node], Found} || {Node, Facts} <- All, {Severity, Found} <- Function(Facts)].

%% What is the same on several nodes is one finding.
merged(Results) ->
    Texts = [{Severity, Nodes, text(Found)} || {Severity, Nodes, Found} <- Results],
    [{Severity, lists:usort(lists:append([N || {S, N, F} <- Texts, {S, F} =:= {Severity, Found}])),
      Found}
     || {Severity, Found} <- unique([{S, F} || {S, _, F} <- Texts])].

unique([]) -> [];
unique([First | Others]) -> [First | unique([Other || Other <- Others, Other =/= First])].

finding(Check, {Severity, Nodes, Found}) ->
    {Why, Advice} = weft_doctor_advice:about(Check),
    #{check => Check, severity => Severity, nodes => Nodes, found => Found,
      why => Why, advice => Advice}.

%% @doc The part of a node name behind the `@'.
-spec host(node()) -> string().
host(Node) ->
    lists:last(string:split(atom_to_list(Node), "@")).

%% --- who answers --------------------------------------------------------------------------------

answers({_All, Silent}) ->
    [{error, [Node], silence(Reason)} || {Node, Reason} <- Silent, Reason =/= not_known].

silence(noconnection) -> "does not answer: it is not running, or can not be reached from here";
silence(timeout) -> "did not answer in time: it is reached, but stands still or is overloaded";
silence(Reason) -> io_lib:format("can not be examined: ~0tp", [Reason]).

no_weft({_All, Silent}) ->
    [{note, [Node], "has no weft, or one that knows no weft_doctor; it was not examined"}
     || {Node, not_known} <- Silent].

%% --- paths, links, sessions ---------------------------------------------------------------------

%% In a topology each node that takes part knows a way to every other one. One that has left the
%% cluster takes no part.
paths({All, _Silent}) ->
    Takes = [{Node, Facts} || {Node, #{topology := Topology, is_started := true} = Facts} <- All,
                              Topology =/= undefined, not maps:get(has_left, Facts, false)],
    [{error, [Node], ["has no path to ", nodes_text(Missing)]}
     || {Node, #{routes := Routes, links := Links}} <- Takes,
        Missing <- [[Other || {Other, _} <- Takes, Other =/= Node]
                    -- (Routes ++ [Peer || #{node := Peer, state := up} <- Links])],
        Missing =/= []].

%% One finding for a pair, though both say so.
links({All, _Silent} = System) ->
    Known = [Node || {Node, _} <- All],
    Down = [{lists:sort([Node, Peer]), LastError}
            || {Node, #{links := Links}} <- All,
               #{node := Peer, state := State, wanted := true, last_error := LastError} <- Links,
               State =/= up, lists:member(Peer, Known)],
    [{warning, Pair, ["the link between ", nodes_text(Pair), " is down. Last error: ",
                      lists:join("; ", lists:usort([Error || {P, Error} <- Down, P =:= Pair]))]}
     || Pair <- lists:usort([Pair || {Pair, _} <- Down]) -- cut_pairs(System)].

cuts(System) ->
    [{warning, Pair, ["the link between ", nodes_text(Pair), " is cut on purpose"]}
     || Pair <- cut_pairs(System)].

cut_pairs({All, _Silent}) ->
    Known = [Node || {Node, _} <- All],
    lists:usort([lists:sort([Node, Peer]) || {Node, #{cuts := Cuts}} <- All, Peer <- Cuts,
                                             lists:member(Peer, Known)]).

resuming({All, _Silent}) ->
    Known = [Node || {Node, _} <- All],
    [{warning, [Node, Peer], ["the session between ", nodes_text(lists:sort([Node, Peer])),
                              " has lost its path and looks for another one"]}
     || {Node, #{sessions := Sessions}} <- All, #{node := Peer, state := resuming} <- Sessions,
        lists:member(Peer, Known)].

%% The side that dialled brings up as many as it is configured for, and it is not known which one
%% that was.
lanes({All, _Silent}) ->
    Configured = maps:from_list([{Node, Lanes} || {Node, #{lanes := Lanes}} <- All]),
    [{warning, Pair, io_lib:format("the link between ~ts has ~b of ~b lanes",
                                   [nodes_text(Pair), Lanes, Wanted])}
     || {Node, #{links := Links}} <- All, #{node := Peer, state := up, lanes := Lanes} <- Links,
        #{Node := Here, Peer := There} <- [Configured], Pair <- [lists:sort([Node, Peer])],
        Wanted <- [min(Here, There)], Lanes < Wanted].

%% --- the same everywhere ------------------------------------------------------------------------

configuration({All, _Silent}) ->
    Topologies = [{Node, Topology} || {Node, #{topology := Topology}} <- All],
    Keys = lists:usort(lists:append([maps:keys(Settings) || {_, #{settings := Settings}} <- All])),
    differences(warning, "topology", Topologies)
        ++ [Result || Key <- Keys,
                      Result <- differences(harm(Key), atom_to_list(Key),
                                            [{Node, Value}
                                             || {Node, #{settings := #{Key := Value}}} <- All])].

harm(Key) ->
    case lists:member(Key, ?HARMFUL) of true -> warning; false -> note end.

ticktime({All, _Silent}) ->
    differences(warning, "net_ticktime (s)",
                [{Node, Seconds} || {Node, #{net_ticktime_s := Seconds}} <- All]).

otp({All, _Silent}) ->
    Releases = [{Node, Release} || {Node, #{otp := Release}} <- All],
    Numbers = [list_to_integer(Release) || {_, Release} <- Releases],
    IsFar = Numbers =/= [] andalso lists:max(Numbers) - lists:min(Numbers) > ?OTP_RELEASES,
    differences(case IsFar of true -> warning; false -> note end, "release of OTP", Releases).

versions({All, _Silent}) ->
    Versions = [{Node, Version} || {Node, #{weft := Version}} <- All],
    Wire = [Range || {_, #{wire := Range}} <- All],
    Severity = case are_neighbours([Version || {_, Version} <- Versions])
                   andalso speak_one(Wire) of
                   true -> note;
                   false -> error
               end,
    differences(Severity, "version of weft", Versions).

%% See "Versions in one cluster": the version before and after, and none with another major number.
are_neighbours(Versions) ->
    case lists:usort([major_minor(Version) || Version <- Versions]) of
        [{Major, Least} | _] = Numbers ->
            {LastMajor, Most} = lists:last(Numbers),
            LastMajor =:= Major andalso Most - Least =< 1;
        [] ->
            true
    end.

major_minor(Version) ->
    {Major, Rest} = string:to_integer(Version),
    {Minor, _} = string:to_integer(string:trim(Rest, leading, ".")),
    {Major, Minor}.

speak_one(Ranges) ->
    lists:all(fun({A, B}) -> weft_hello:choose_version(A, B) =/= error end,
              [{A, B} || A <- Ranges, B <- Ranges]).

%% All values are named, that first which most nodes have. The finding is about the others, or about
%% all if there is no majority.
differences(Severity, What, Values) ->
    case lists:usort([Value || {_, Value} <- Values]) of
        [_, _ | _] = Different ->
            Groups = [{Value, [Node || {Node, V} <- Values, V =:= Value]} || Value <- Different],
            Sorted = lists:sort(fun({_, A}, {_, B}) -> length(A) >= length(B) end, Groups),
            [{Severity, lists:append([Nodes || {_, Nodes} <- fewer(Sorted)]),
              ["differs: ", What, " is ",
               lists:join("; ", [[value_text(Value), " on ", nodes_text(Nodes)]
                                 || {Value, Nodes} <- Sorted])]}];
        _NoneOrOne ->
            []
    end.

fewer([{_, First}, {_, Second} | _] = All) when length(First) =:= length(Second) -> All;
fewer([_Most | Others]) -> Others.

value_text(Text) when is_list(Text) -> io_lib:format("~ts", [Text]);
value_text(Value) -> io_lib:format("~0tP", [Value, 20]).

%% --- clocks, names of hosts ---------------------------------------------------------------------

%% Compared with the clock in the middle, so that it is the one wrong node that is named. Only what
%% is beyond the errors of both measurements counts.
clocks({All, _Silent}) ->
    case lists:sort([{OffsetUs, ErrorUs} || {_, #{clock := {ErrorUs, OffsetUs}}} <- All]) of
        [] ->
            [];
        Clocks ->
            {MiddleUs, MiddleErrorUs} = lists:nth((length(Clocks) + 1) div 2, Clocks),
            [{Severity, [Node], ["the clock is ", seconds(abs(AwayUs)),
                                 case AwayUs > 0 of true -> " ahead"; false -> " behind" end]}
             || {Node, #{clock := {ErrorUs, OffsetUs}}} <- All,
                AwayUs <- [OffsetUs - MiddleUs],
                Severity <- clock_severity(abs(AwayUs) - ErrorUs - MiddleErrorUs)]
    end.

clock_severity(AwayUs) when AwayUs > ?CLOCK_ERROR_US -> [error];
clock_severity(AwayUs) when AwayUs > ?CLOCK_WARNING_US -> [warning];
clock_severity(_AwayUs) -> [].

seconds(Us) -> io_lib:format("~.2f s", [Us / 1000000]).

%% A host that the nodes are on must lead there from every node. Its own name may be that of the
%% loopback address (Debian has it so).
names({All, Silent}) ->
    Hosts = lists:usort([host(Node) || {Node, _} <- All ++ Silent]),
    [{Severity, [Node], Found}
     || {Node, #{hosts := Known}} <- All, {Host, Told} <- lists:sort(maps:to_list(Known)),
        {Severity, Found} <- name(Host, Told, length(Hosts) > 1 andalso Host =/= host(Node))].

name(Host, #{error := Reason}, _IsElsewhere) ->
    [{error, io_lib:format("the host ~ts can not be resolved: ~0tp", [Host, Reason])}];
name(Host, #{is_loopback := true, address := Address}, true) ->
    [{warning, io_lib:format("the host ~ts is ~ts, the loopback address, though nodes are on "
                             "several hosts", [Host, Address])}];
name(_Host, _Told, _IsElsewhere) ->
    [].

%% --- size ---------------------------------------------------------------------------------------

full_mesh({All, _Silent}) ->
    Sizes = [{Node, meshed(Facts)} || {Node, Facts} <- All],
    case lists:max([0 | [Size || {_, Size} <- Sizes]]) of
        Size when Size >= ?FULL_MESH_NODES ->
            [{note, [Node || {Node, S} <- Sizes, S >= ?FULL_MESH_NODES],
              io_lib:format("a full mesh of ~b nodes, that is ~b links, ~b on each node",
                            [Size, Size * (Size - 1) div 2, Size - 1])}];
        _ ->
            []
    end.

%% Without a topology the links show whether all are connected with all.
meshed(#{is_partial := true}) -> 0;
meshed(#{topology := undefined, links := Links}) ->
    length([up || #{state := up} <- Links]) + 1;
meshed(#{topology := _, members := Members}) -> length(Members);
meshed(#{}) -> 0.

global({All, _Silent}) ->
    Partial = [Node || {Node, #{is_partial := true, circuits := hidden, global := Global}} <- All,
                       maps:get(names, Global) > 0],
    Many = [{Names, Node} || {Node, #{global := #{names := Names}}} <- All, Names > ?GLOBAL_NAMES],
    [{warning, Partial, "names are registered in `global', which sees neighbours only: nodes that "
      "are no neighbours do not see these names"} || Partial =/= []]
        ++ [{warning, [Node || {_, Node} <- Many],
             io_lib:format("`global' has ~b names", [lists:max([Names || {Names, _} <- Many])])}
            || Many =/= []]
        ++ [{note, [Node], io_lib:format("~b locks of `global' are held", [Locks])}
            || {Node, #{global := #{locks := Locks}}} <- All, is_integer(Locks), Locks > 0].

%% --- words --------------------------------------------------------------------------------------

nodes_text([A, B]) -> io_lib:format("~ts and ~ts", [A, B]);
nodes_text(Nodes) when length(Nodes) > 6 ->
    [nodes_text(lists:sublist(Nodes, 3)), io_lib:format(" and ~b more", [length(Nodes) - 3])];
nodes_text(Nodes) -> lists:join(", ", [atom_to_list(Node) || Node <- Nodes]).

text(Characters) ->
    unicode:characters_to_list(Characters).

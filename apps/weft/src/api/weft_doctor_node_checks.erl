%% SPDX-License-Identifier: Apache-2.0
%% @doc The checks of the doctor that need the facts of one node only. Pure. Each answers what it
%% has found, mostly nothing; a fact that is missing is no reason to find something.
-module(weft_doctor_node_checks).

-export([settings/1, cookie_told/1]).
-export([start/1, kernel_flags/1, suspended/1, schedulers/1, limits/1, listener/1, cookie/1,
         cookie_file/1, certificates/1, incomplete/1]).

-type facts() :: #{atom() => term()}.
-type results() :: [{weft_doctor_checks:severity(), unicode:chardata()}].

%% A cookie can be tried as fast as connections are made.
-define(COOKIE_LENGTH, 16).
-define(OTHERS_BITS, 8#077).
%% Keepalives and ticks suffer from waking up so late, calls even before.
-define(LATE_NOTE_MS, 10).
-define(LATE_WARNING_MS, 50).
%% Processes that wait for each scheduler, in the mean.
-define(WAITING_NOTE, 4).
%% A part of the limit that is better left free, for files and clients.
-define(FREE_PART, 5).
-define(EXPIRES_WARNING_DAYS, 30).
-define(EXPIRES_ERROR_DAYS, 7).

%% @doc Settings with which weft would not start. It is looked at before it is tried.
-spec settings(facts()) -> results().
settings(#{settings_error := Text}) -> [{error, Text}];
settings(#{}) -> [].

%% @doc The carrier and the application that a topology needs.
-spec start(facts()) -> results().
start(#{carrier := stock}) ->
    [{note, "runs on the stock carrier, without -proto_dist weft"}];
start(#{topology := Topology, is_started := false}) when Topology =/= undefined ->
    [{error, "a topology is configured, but the application weft is not started"}];
start(#{}) ->
    [].

%% @doc Flags of the kernel that are at odds with the topology; the rule is that of the boot.
-spec kernel_flags(facts()) -> results().
kernel_flags(#{boot := {error, Text}}) -> [{error, Text}];
kernel_flags(#{}) -> [].

-spec suspended(facts()) -> results().
suspended(#{sessions := Sessions}) ->
    [{note, io_lib:format("~b processes that send to ~ts are suspended, because more waits for it "
                          "than their queues hold", [Count, Peer])}
     || #{node := Peer, suspended := Count} <- Sessions, Count > 0];
suspended(#{}) ->
    [].

-spec schedulers(facts()) -> results().
schedulers(#{schedulers := #{late_ms := LateMs, run_queue := RunQueue, online := Online}}) ->
    Found = io_lib:format("processes wake up ~b ms late in the median, and ~.1f wait for ~b "
                          "schedulers in the mean", [round(LateMs), RunQueue / 1, Online]),
    if
        LateMs >= ?LATE_WARNING_MS -> [{warning, Found}];
        LateMs >= ?LATE_NOTE_MS; RunQueue >= ?WAITING_NOTE * Online -> [{note, Found}];
        true -> []
    end;
schedulers(#{}) ->
    [].

%% @doc What is open now, and the lanes that are still to come.
-spec limits(facts()) -> results().
limits(#{limits := #{ports := Ports, ports_max := PortsMax, descriptors_max := DescriptorsMax}}
       = Facts) ->
    Max = min(PortsMax, DescriptorsMax),
    Needed = Ports + missing_lanes(Facts),
    Found = io_lib:format("needs ~b sockets and files, there may be ~b (~ts)",
                          [Needed, Max, which(PortsMax, DescriptorsMax)]),
    if
        Needed > Max -> [{error, Found}];
        Needed > Max - Max div ?FREE_PART -> [{warning, Found}];
        true -> []
    end;
limits(#{}) ->
    [].

which(PortsMax, DescriptorsMax) when PortsMax < DescriptorsMax -> "+Q";
which(_PortsMax, _DescriptorsMax) -> "ulimit -n".

missing_lanes(#{links := Links, lanes := Lanes} = Facts) ->
    Present = lists:sum([Count || #{lanes := Count} <- Links]),
    max(0, neighbours(Facts) * Lanes - Present);
missing_lanes(#{}) ->
    0.

neighbours(#{is_partial := false, topology := Topology, members := Members})
  when Topology =/= undefined ->
    length(Members) - 1;
neighbours(#{links := Links}) ->
    length([wanted || #{wanted := true} <- Links]).

-spec listener(facts()) -> results().
listener(#{listener := {error, Unknown}}) when Unknown =:= no_such_node; Unknown =:= no_epmd ->
    [{error, "epmd does not answer, or does not know this node"}];
listener(#{listener := {error, {nobody_listens, Port}}}) ->
    [{error, io_lib:format("others are sent to port ~b, where this node does not listen", [Port])}];
listener(#{listener := {error, Reason}}) ->
    [{error, io_lib:format("its address can not be found: ~0tp", [Reason])}];
listener(#{}) ->
    [].

-spec cookie(facts()) -> results().
cookie(#{cookie := #{is_known := true}}) ->
    [{error, "the cookie is one that stands in examples"}];
cookie(#{cookie := #{length := Length}}) when Length < ?COOKIE_LENGTH ->
    [{warning, io_lib:format("the cookie has ~b characters only", [Length])}];
cookie(#{}) ->
    [].

%% @doc A cookie that every user of the machine sees among the processes.
-spec cookie_told(facts()) -> results().
cookie_told(#{cookie_told := true}) -> [{warning, "the cookie is on the command line"}];
cookie_told(#{}) -> [].

-spec cookie_file(facts()) -> results().
cookie_file(#{cookie_file := #{file := File, mode := Mode}}) when Mode band ?OTHERS_BITS =/= 0 ->
    [{error, io_lib:format("other users may read the cookie: ~ts has mode ~3.8.0b", [File, Mode])}];
cookie_file(#{}) ->
    [].

-spec certificates(facts()) -> results().
certificates(#{certificates := Certificates}) ->
    lists:append([certificate(Certificate) || Certificate <- Certificates]);
certificates(#{}) ->
    [].

certificate(#{file := File, error := Text}) ->
    [{error, [File, ": ", Text]}];
certificate(#{file := File, role := Role, days := Days}) ->
    Found = [what(Role), File, until(Days)],
    if
        Days < ?EXPIRES_ERROR_DAYS -> [{error, Found}];
        Days < ?EXPIRES_WARNING_DAYS -> [{warning, Found}];
        true -> []
    end.

what(own) -> "the certificate of the node, ";
what(authority) -> "the certificate of the authority, ".

until(Days) when Days < 0 -> io_lib:format(", expired ~b days ago", [-Days]);
until(Days) -> io_lib:format(", expires in ~b days", [Days]).

-spec incomplete(facts()) -> results().
incomplete(#{failed := Failed}) ->
    [{note, io_lib:format("the fact ~ts can not be told: ~0tP", [Fact, Reason, 10])}
     || {Fact, Reason} <- Failed];
incomplete(#{}) ->
    [].

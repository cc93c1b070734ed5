%% SPDX-License-Identifier: Apache-2.0
%% @doc Records on several nodes at once and fetches what they recorded, as the owner of the
%% recordings: a process of its own, so that messages of the nodes do not come to the caller. If the
%% caller ends, it ends too, and then the nodes end their recordings by themselves.
%%
%% The modules that a node needs are loaded there if it does not have them, and removed again unless
%% another recording is there by then. Their code is that of this node, or is given, if this one has
%% them without a file.
-module(weft_profile_collect).

-export([record/2, code/0]).
-export_type([failure/0, code/0]).

-type failure() :: {node(), string()}.
-type code() :: #{module() => {File :: file:filename(), binary()}}.

-define(MODULES, [weft_profile_sampler, weft_profile_switch, weft_profile_tracer]).
-define(CALL_MS, 15000).
%% From telling the nodes to the begin.
-define(GO_NS, 10000000).
%% Questions to a clock, before and after the recording.
-define(QUESTIONS, 20).
%% More than the time of the recording: the start, and what ends it if the node is very busy.
-define(GRACE_MS, 30000).

%% @doc The code of the modules that a node needs.
-spec code() -> code().
code() ->
    maps:from_list([{Module, {File, Binary}}
                    || Module <- ?MODULES,
                       {_, Binary, File} <- [code:get_object_code(Module)]]).

%% @doc Records on all nodes; returns what was recorded, and the nodes where it failed, with a text.
-spec record([node()], #{code => code(), atom() => term()}) ->
          {[weft_profile_recording:part()], [failure()]}.
record(Nodes, Given) ->
    Caller = self(),
    Code = maps:get(code, Given, #{}),
    Options = maps:remove(code, Given),
    {Owner, Monitor} = spawn_monitor(fun() -> owner(Caller, Nodes, Options, Code) end),
    receive
        {recorded, Owner, Result} -> demonitor(Monitor, [flush]), Result;
        {'DOWN', Monitor, process, Owner, Reason} -> error({recording_failed, Reason})
    end.

owner(Caller, Nodes, Options, Code) ->
    Watch = monitor(process, Caller),
    Recorder = self(),
    Asked = [{Node, started(Node, Recorder, Options#{nodes => Nodes}, Code)} || Node <- Nodes],
    Started = [{Node, with_clock(Node, Start)} || {Node, Start} <- Asked],
    Guards = [{Node, Guard, Clock, Loaded} || {Node, {ok, Guard, Clock, Loaded}} <- Started],
    ok = all_go(Guards),
    Ms = maps:get(ms, maps:merge(weft_profile_tracer:defaults(), Options)) + ?GRACE_MS,
    ok = all_ended([Guard || {_, Guard, _, _} <- Guards], Watch,
                   erlang:monotonic_time(millisecond) + Ms),
    Parts = [part(Running) || Running <- Guards],
    Failed = [{Node, Text} || {Node, {error, Text}} <- Started]
        ++ [Failure || {error, Failure} <- Parts],
    Caller ! {recorded, Recorder, {[Part || {ok, Part} <- Parts], Failed}},
    ok.

started(Node, Owner, Options, Code) ->
    try
        case loaded(Node, Code) of
            {ok, Loaded} ->
                case erpc:call(Node, weft_profile_tracer, start, [Owner, Options], ?CALL_MS) of
                    {ok, Guard} -> {ok, Guard, Loaded};
                    {error, Text} -> unloaded(Node, Loaded), {error, Text}
                end;
            {error, Text} ->
                {error, Text}
        end
    catch Class:Reason -> {error, failure(Node, Class, Reason)}
    end.

%% It may have ended since.
with_clock(Node, {ok, Guard, Loaded}) ->
    try {ok, Guard, clock(Guard), Loaded}
    catch Class:Reason -> {error, failure(Node, Class, Reason)}
    end;
with_clock(_Node, {error, Text}) ->
    {error, Text}.

failure(Node, error, {erpc, noconnection}) ->
    text("~ts does not answer", [Node]);
failure(Node, error, {erpc, timeout}) ->
    text("~ts did not answer in time", [Node]);
failure(Node, exit, {recording_lost, _, Reason}) ->
    text("~ts lost its recording: ~0tp", [Node, Reason]);
failure(Node, Class, Reason) ->
    text("~ts: ~0tp", [Node, {Class, Reason}]).

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).

%% --- code -------------------------------------------------------------------------------------

%% Those that were not there and are now.
loaded(Node, Code) ->
    Missing = [Module || Module <- ?MODULES,
                         {error, _} <- [erpc:call(Node, code, ensure_loaded, [Module], ?CALL_MS)]],
    case [Error || Module <- Missing, {error, Error} <- [load(Node, Module, Code)]] of
        [] -> same(Node, Missing);
        [Text | _] -> unloaded(Node, Missing), {error, Text}
    end.

load(Node, Module, Code) ->
    case object_code(Module, Code) of
        {Module, Binary, File} ->
            case erpc:call(Node, code, load_binary, [Module, File, Binary], ?CALL_MS) of
                {module, Module} -> ok;
                {error, Reason} ->
                    {error, text("~ts can not load the code of the recording (~ts): is its OTP "
                                 "older than the one here (~ts)?",
                                 [Node, Reason, erlang:system_info(otp_release)])}
            end;
        error ->
            {error, text("the code of ~ts is not found here", [Module])}
    end.

object_code(Module, Code) ->
    case Code of
        #{Module := {File, Binary}} -> {Module, Binary, File};
        #{} -> code:get_object_code(Module)
    end.

%% The node may have another version of weft.
same(Node, Missing) ->
    Here = [versions(Module) || Module <- ?MODULES],
    case [erpc:call(Node, Module, module_info, [attributes], ?CALL_MS) || Module <- ?MODULES] of
        Here -> {ok, Missing};
        _Others -> {error, text("~ts has another version of weft_profile than this one", [Node])}
    end.

versions(Module) -> Module:module_info(attributes).

%% Not under another recording: it calls these modules. In this order, and no process is killed.
unloaded(Node, Loaded) ->
    try
        _ = [erpc:call(Node, code, Function, [Module], ?CALL_MS)
             || Loaded =/= [], guards(Node) =:= [], Module <- Loaded,
                Function <- [soft_purge, delete, soft_purge]],
        ok
    catch _:_NodeIsGone -> ok
    end.

%% Without that module nothing is recorded.
guards(Node) ->
    try erpc:call(Node, weft_profile_tracer, guards, [], ?CALL_MS)
    catch error:{exception, undef, _} -> []
    end.

%% --- clocks and the end -----------------------------------------------------------------------

clock(Guard) ->
    [question(Guard) || _ <- lists:seq(1, ?QUESTIONS)].

question(Guard) ->
    Asked = erlang:monotonic_time(nanosecond),
    There = weft_profile_tracer:clock(Guard),
    {Asked, There, erlang:monotonic_time(nanosecond)}.

%% At the same time, as well as the clocks are known, and not before the slowest has been told.
all_go(Guards) ->
    Estimates = [{Guard, weft_profile_clock:estimate(Asked)} || {_, Guard, Asked, _} <- Guards],
    Slowest = lists:max([0 | [Error || {_, #{error := Error}} <- Estimates]]),
    At = erlang:monotonic_time(nanosecond) + ?GO_NS + 4 * Slowest * length(Guards),
    lists:foreach(fun({Guard, Clock}) ->
                          There = weft_profile_clock:there(At, Clock),
                          %% Who is gone is told by its part.
                          try weft_profile_tracer:go(Guard, There)
                          catch exit:{recording_lost, _, _} -> ok
                          end
                  end, Estimates).

all_ended([], _Watch, _Until) ->
    ok;
all_ended(Guards, Watch, Until) ->
    Watches = [{Guard, monitor(process, Guard)} || Guard <- Guards],
    wait(Watches, Watch, Until).

%% One that is gone is found out when its recording is fetched.
wait([], _Watch, _Until) ->
    ok;
wait(Guards, Watch, Until) ->
    receive
        {weft_profile, Guard, ended, _Why} ->
            {value, {_, Monitor}, Rest} = lists:keytake(Guard, 1, Guards),
            demonitor(Monitor, [flush]),
            wait(Rest, Watch, Until);
        {'DOWN', Watch, process, _, _} ->
            exit(normal);
        {'DOWN', Monitor, process, _, _} ->
            wait(lists:keydelete(Monitor, 2, Guards), Watch, Until)
    after max(0, Until - erlang:monotonic_time(millisecond)) ->
        ok
    end.

part({Node, Guard, Before, Loaded}) ->
    try
        After = clock(Guard),
        {Events, Info} = fetched(Guard, []),
        ok = gone(Guard),
        ok = unloaded(Node, Loaded),
        {ok, #{node => Node, clock => weft_profile_clock:estimate(Before ++ After),
               events => Events, info => Info}}
    catch Class:Reason -> {error, {Node, failure(Node, Class, Reason)}}
    end.

%% It ends after the last part.
gone(Guard) ->
    Monitor = monitor(process, Guard),
    receive {'DOWN', Monitor, process, Guard, _} -> ok
    after ?CALL_MS -> demonitor(Monitor, [flush]), ok
    end.

fetched(Guard, Parts) ->
    case weft_profile_tracer:fetch(Guard) of
        {events, Events} -> fetched(Guard, [Events | Parts]);
        {done, Info} -> {lists:append(lists:reverse(Parts)), Info}
    end.

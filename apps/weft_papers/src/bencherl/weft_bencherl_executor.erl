%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs one benchmark on the node it is called on, as BenchErl does: each set of arguments in a
%% process of its own whose output goes to a file.
%%
%% A benchmark has the interface of BenchErl: `bench_args(Version, Conf) -> [Args]' and
%% `run(Args, Slaves, Conf) -> ok | {error, Reason}', or, in phases that are timed one by one,
%% `{{continue, Name | ignore}, State}', after which `run([State | Args], ..)' is called again, and
%% `{{done, Name | ignore}, State}'. Conf has number_of_cores, slaves, schedulers, master and
%% datadir. Only run/3 is timed.
-module(weft_bencherl_executor).

-export([emulator/0, sets/2, run/3, what/1]).
-export_type([timing/0, options/0]).

%% What was run, as text (arguments, and the phase if there are any), and how long it took.
-type timing() :: {What :: string(), Ms :: float()}.

-type options() :: #{version := short | intermediate | long, slaves := [node()],
                     schedulers := pos_integer(), output := file:filename(),
                     datadir := file:filename(), timeout_ms := pos_integer()}.

%% @doc What this emulator says of itself. Labels are only what somebody calls it.
-spec emulator() -> {ok, #{otp_release := string(), erts := string(), emulator := atom(),
                           schedulers_online := pos_integer()}}.
emulator() ->
    Flavour = try erlang:system_info(emu_flavor) catch error:badarg -> emu end,
    {ok, #{otp_release => erlang:system_info(otp_release), erts => erlang:system_info(version),
           emulator => Flavour, schedulers_online => erlang:system_info(schedulers_online)}}.

%% @doc The sets of arguments. The error is a text.
-spec sets(module(), options()) -> {ok, [[term()]]} | {error, string()}.
sets(Module, #{version := Version, timeout_ms := TimeoutMs} = Options) ->
    Conf = conf(Options),
    %% What it may have started for later needs it alive.
    Sets = fun(Answer) ->
                   Answer(Module:bench_args(Version, Conf)),
                   receive end_of_run -> ok end
           end,
    case within(TimeoutMs, Sets, io_lib:format("~ts:bench_args/2", [Module])) of
        {ok, List} ->
            case is_list(List) andalso lists:all(fun is_list/1, List) of
                true -> {ok, List};
                false -> failed("~ts:bench_args/2 answers no list of lists: ~0tP",
                                [Module, List, 20])
            end;
        {error, Text} ->
            {error, Text}
    end.

conf(#{slaves := Slaves, schedulers := Schedulers, datadir := DataDir}) ->
    [{number_of_cores, erlang:system_info(logical_processors_available)}, {slaves, Slaves},
     {schedulers, Schedulers}, {master, node()}, {datadir, DataDir}].

%% @doc One set of arguments, once. Output is added to the file. The error is a text.
-spec run(module(), Args :: [term()], options()) -> {ok, [timing()]} | {error, string()}.
run(Module, Args, #{output := Output, slaves := Slaves, timeout_ms := TimeoutMs} = Options) ->
    Conf = conf(Options),
    case file:open(Output, [append, {encoding, utf8}]) of
        {ok, Device} ->
            Phases = fun(Answer) ->
                             group_leader(Device, self()),
                             Answer(phases(Module, Args, Args, Slaves, Conf, [])),
                             %% With what is still linked to it.
                             exit(self(), kill)
                     end,
            try within(TimeoutMs, Phases, io_lib:format("~ts~0tp", [Module, Args]))
            after file:close(Device)
            end;
        {error, Reason} ->
            failed("~ts: ~ts", [Output, file:format_error(Reason)])
    end.

%% In a process of its own, which hands over what it found by the function it is given.
within(TimeoutMs, Do, What) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> Do(fun(Found) -> Self ! {self(), Found} end) end),
    receive
        {Pid, Found} ->
            true = demonitor(Monitor, [flush]),
            {ok, Found};
        {'DOWN', Monitor, process, Pid, {bench_failed, Reason}} ->
            failed("~ts failed: ~0tP", [What, Reason, 20]);
        {'DOWN', Monitor, process, Pid, Reason} ->
            failed("~ts crashed: ~0tP", [What, Reason, 20])
    after TimeoutMs ->
        true = demonitor(Monitor, [flush]),
        true = exit(Pid, kill),
        failed("~ts did not end within ~b s", [What, TimeoutMs div 1000])
    end.

failed(Format, Arguments) -> {error, lists:flatten(io_lib:format(Format, Arguments))}.

phases(Module, Args, Given, Slaves, Conf, Timings) ->
    Start = erlang:monotonic_time(),
    Answer = Module:run(Given, Slaves, Conf),
    Ms = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond) / 1.0e6,
    case Answer of
        ok -> [{what(Args), Ms}];
        {error, Reason} -> exit({bench_failed, Reason});
        {{continue, Name}, State} ->
            phases(Module, Args, [State | Args], Slaves, Conf, timed(Args, Name, Ms, Timings));
        {{done, Name}, _State} -> lists:reverse(timed(Args, Name, Ms, Timings));
        Other -> exit({bench_failed, {unknown_answer, Other}})
    end.

timed(_Args, ignore, _Ms, Timings) -> Timings;
timed(Args, Name, Ms, Timings) -> [{what(Args) ++ " " ++ name(Name), Ms} | Timings].

%% @doc A set of arguments as text. Lists of numbers are no text here.
-spec what(Args :: [term()]) -> string().
what(Args) -> lists:flatten(io_lib:format("~tw", [Args])).

name(Name) -> lists:flatten(io_lib:format("~ts", [Name])).

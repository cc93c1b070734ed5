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

-export([run/3]).
-export_type([timing/0]).

%% What was run, as text (arguments, and the phase if there are any), and how long it took.
-type timing() :: {What :: string(), Ms :: float()}.

-type options() :: #{version := short | intermediate | long, slaves := [node()],
                     schedulers := pos_integer(), output := file:filename(),
                     datadir := file:filename(), timeout_ms := pos_integer()}.

%% @doc All sets of arguments, so many times. The error is a text.
-spec run(module(), Iterations :: pos_integer(), options()) ->
          {ok, [timing()]} | {error, string()}.
run(Module, Iterations, #{version := Version, output := Output} = Options) ->
    Conf = conf(Options),
    try
        Sets = Module:bench_args(Version, Conf),
        ok = filelib:ensure_dir(Output),
        {ok, Device} = file:open(Output, [write, {encoding, utf8}]),
        try {ok, lists:append([one(Module, Args, Conf, Device, N, Options)
                               || Args <- Sets, N <- lists:seq(1, Iterations)])}
        after file:close(Device)
        end
    catch
        throw:{failed, Text} -> {error, Text};
        Class:Reason:Stack ->
            {error, lists:flatten(io_lib:format("~0tp ~0tP ~0tP", [Class, Reason, 20,
                                                                   hd(Stack ++ [none]), 20]))}
    end.

conf(#{slaves := Slaves, schedulers := Schedulers, datadir := DataDir}) ->
    [{number_of_cores, erlang:system_info(logical_processors_available)}, {slaves, Slaves},
     {schedulers, Schedulers}, {master, node()}, {datadir, DataDir}].

%% Only the output of the first iteration is kept; the others print the same.
one(Module, Args, Conf, Device, Iteration, #{slaves := Slaves, timeout_ms := TimeoutMs}) ->
    {ok, Nowhere} = file:open("/dev/null", [write]),
    Leader = case Iteration of 1 -> Device; _ -> Nowhere end,
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
                                           group_leader(Leader, self()),
                                           Self ! {self(), phases(Module, Args, Args, Slaves, Conf,
                                                                  [])},
                                           %% With what is still linked to it.
                                           exit(self(), kill)
                                   end),
    try
        receive
            {Pid, Timings} -> demonitor(Monitor, [flush]), Timings;
            {'DOWN', Monitor, process, Pid, {bench_failed, Reason}} ->
                failed("~ts~0tp failed: ~0tP", [Module, Args, Reason, 20]);
            {'DOWN', Monitor, process, Pid, Reason} ->
                failed("~ts~0tp crashed: ~0tP", [Module, Args, Reason, 20])
        after TimeoutMs ->
            exit(Pid, kill),
            failed("~ts~0tp did not end within ~b s", [Module, Args, TimeoutMs div 1000])
        end
    after
        file:close(Nowhere)
    end.

-spec failed(io:format(), [term()]) -> no_return().
failed(Format, Arguments) ->
    throw({failed, lists:flatten(io_lib:format(Format, Arguments))}).

phases(Module, Args, Given, Slaves, Conf, Timings) ->
    Start = erlang:monotonic_time(),
    Answer = Module:run(Given, Slaves, Conf),
    Ms = erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond) / 1.0e6,
    case Answer of
        ok -> [{text(Args), Ms}];
        {error, Reason} -> exit({bench_failed, Reason});
        {{continue, Name}, State} ->
            phases(Module, Args, [State | Args], Slaves, Conf, timed(Args, Name, Ms, Timings));
        {{done, Name}, _State} -> lists:reverse(timed(Args, Name, Ms, Timings));
        Other -> exit({bench_failed, {unknown_answer, Other}})
    end.

timed(_Args, ignore, _Ms, Timings) -> Timings;
timed(Args, Name, Ms, Timings) -> [{text(Args) ++ " " ++ name(Name), Ms} | Timings].

%% Lists of numbers are no text here.
text(Term) -> lists:flatten(io_lib:format("~tw", [Term])).

name(Name) -> lists:flatten(io_lib:format("~ts", [Name])).

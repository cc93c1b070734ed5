%% SPDX-License-Identifier: Apache-2.0
%% @doc A load on several hosts at the same time, as one (`bin/bench load --cluster').
%%
%% On each host an emulator runs the configuration (`weft_load_instance'). It is ruled by its
%% standard input and output, and a node that reaches those that the load is for. All get ready, and
%% begin at the same moment. What each second brought is fetched at once and written here, to DIR/1,
%% DIR/2 ...: so what a host did before it was lost, or before an interrupt, is kept. The sum is in
%% DIR (`weft_load_sum').
%%
%% Clocks of hosts differ. By how much is measured before the load begins.
-module(weft_load_hosts).

-export([run/4]).
%% The process of a host.
-export([done/2]).
-export_type([place/0, host/0]).

%% `command': the program and arguments that run a command there, and are its input and output.
%% `join': makes the emulator a node that reaches the others. `results': a directory there.
-type host() :: #{address := string(), erl := string(), code := [string()],
                  arguments := [string()], results := string(),
                  command := fun(([string(), ...]) -> {string(), [string()]}),
                  join := {module(), Function :: atom(), Arguments :: [term()]}}.
%% `source_dir': where the sources of drivers are on the hosts.
-type place() :: #{deployment := string(), nodes := [node(), ...], hosts := [host(), ...],
                   source_dir := string() | undefined}.

-define(BOOT_MS, 60000).
-define(CALL_MS, 30000).
-define(READY_MS, 120000).
%% Beyond what operations may take at the end.
-define(GRACE_MS, 120000).
%% What it takes to tell all hosts when to begin.
-define(HEAD_START_US, 300000).
-define(MORE_PER_HOST_US, 10000).

-type emulator() :: #{address := string(), number := pos_integer(), peer := pid(), _ => _}.

-record(run, {config :: weft_load_config:config(),
              dir :: file:filename(),
              environment :: [{string(), string()}],
              tell :: fun((Hosts :: pos_integer(), weft_load_second:second()) -> term()),
              following :: #{pid() => emulator()},
              files = #{} :: #{Number :: pos_integer() => weft_load_files:files()},
              %% Seconds that are not shown yet, the first ones first.
              waiting = #{} :: #{Number :: pos_integer() => [weft_load_second:second()]},
              answers = #{} :: #{Number :: pos_integer() => weft_load_sum:answer()}}).

%% @doc Runs a configuration on each host and adds up. Tell gets what the hosts did in each second.
%% A host that is lost while it runs is `lost' of the outcome, and the others go on. The error is a
%% text. The process that calls it ends the load soon after a message `weft_bench_interrupt'.
-spec run(weft_load_config:config(), file:filename(), place(),
          fun((Hosts :: pos_integer(), weft_load_second:second()) -> term())) ->
          {ok, weft_load:outcome()} | {error, string()}.
run(Config0, Dir, #{hosts := Hosts} = Place, Tell) ->
    Config = there(Config0, Place),
    Booted = on_each(fun boot/1, [Host#{number => Number}
                                  || {Number, Host} <- lists:enumerate(Hosts)]),
    try
        Emulators = well(on_each(fun joined/1, well(Booted))),
        Environment = environment(Config, Place, Emulators),
        _ = well(on_each(fun(Emulator) ->
                             ready(Emulator, length(Emulators), Config, Environment)
                         end, Emulators)),
        ok = weft_bench_interrupt:gently(),
        followed(#run{config = Config, dir = Dir, environment = Environment, tell = Tell,
                      following = begun(Emulators, Config)})
    catch
        throw:{load, Text} -> {error, lists:flatten(io_lib:format("~ts", [Text]))}
    after
        on_each(fun(#{peer := Peer}) -> {ok, peer:stop(Peer)} end, [E || {ok, E} <- Booted])
    end.

%% Code is on the path of the emulators already. Nodes that the configuration has are meant.
there(#{pairs := Pairs} = Config, #{nodes := Nodes, source_dir := SourceDir}) ->
    Config#{code_paths := [], source_dir := SourceDir,
            pairs := Pairs ++ [{nodes, Nodes} || not lists:keymember(nodes, 1, Pairs)]}.

%% What the function says of each, at the same time. An error has the name of the host.
on_each(Function, Hosts) ->
    Running = [{Address, spawn_monitor(?MODULE, done, [Function, Host])}
               || #{address := Address} = Host <- Hosts],
    [receive
         {'DOWN', Monitor, process, Pid, Why} -> answer(Why, Address)
     end || {Address, {Pid, Monitor}} <- Running].

%% @private
-spec done(fun((Host) -> term()), Host) -> no_return().
done(Function, Host) -> exit({done, Function(Host)}).

answer({done, {error, Text}}, Address) -> {error, [Address, ": ", Text]};
answer({done, {ok, Result}}, _Address) -> {ok, Result};
answer(Why, Address) -> {error, weft_load_sum:lost(Address, Why)}.

well(Answers) ->
    [throw({load, Text}) || {error, Text} <- Answers],
    [Result || {ok, Result} <- Answers].

call(#{peer := Peer}, Module, Function, Arguments, TimeoutMs) ->
    peer:call(Peer, Module, Function, Arguments, TimeoutMs).

%% --- until all are ready ----------------------------------------------------------------------

%% It is a node only once it has joined the others. Busy waiting would take time from nodes there.
boot(#{erl := Erl, code := Code, command := Command, arguments := Arguments} = Host) ->
    Options = #{connection => standard_io, wait_boot => ?BOOT_MS, exec => Command([Erl]),
                args => weft_bench_nodes:paths(Code) ++ Arguments
                    ++ ["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]},
    try peer:start(Options) of
        {ok, Peer} -> {ok, Host#{peer => Peer}};
        {ok, Peer, _Node} -> {ok, Host#{peer => Peer}};
        {error, Reason} -> {error, not_started(Reason)}
    catch
        exit:Reason -> {error, not_started(Reason)}
    end.

not_started({boot_failed, {exit_status, Status}}) ->
    io_lib:format("no emulator starts: it ends with status ~b", [Status]);
not_started(timeout) ->
    io_lib:format("no emulator starts within ~b s", [?BOOT_MS div 1000]);
not_started(Reason) ->
    weft_bench_error:text("no emulator starts: ~0tP", [Reason, 20]).

joined(#{join := {Module, Function, Arguments}} = Emulator) ->
    Release = call(Emulator, erlang, system_info, [otp_release], ?CALL_MS),
    case is_old(Release) orelse call(Emulator, Module, Function, Arguments, ?CALL_MS) of
        true ->
            {error, ["it has OTP ", Release, ", and the code is compiled for OTP ",
                     erlang:system_info(otp_release), " and later"]};
        ok ->
            {ok, Emulator#{clock => clock(Emulator),
                           environment => call(Emulator, weft_bench_environment, gather, [[]],
                                               ?CALL_MS)}};
        {error, Text} ->
            {error, Text}
    end.

is_old(Release) -> list_to_integer(Release) < list_to_integer(erlang:system_info(otp_release)).

clock(Emulator) ->
    weft_bench_clock:ahead(fun() -> call(Emulator, os, perf_counter, [microsecond], ?CALL_MS) end).

%% What all hosts have in common is there once.
environment(Config, #{deployment := Deployment}, Emulators) ->
    Here = weft_load_files:environment(Config),
    {ErrorsUs, _} = lists:unzip([Clock || #{clock := Clock} <- Emulators]),
    [Pair || {Key, _} = Pair <- Here, lists:member(Key, ["date", "commit"])]
        ++ [{"deployment", Deployment},
            {"hosts", lists:append(lists:join(", ", [integer_to_list(Number) ++ ": " ++ Address
                                                     || #{number := Number, address := Address}
                                                            <- Emulators]))},
            {"start_error_us", integer_to_list(lists:max(ErrorsUs))}]
        ++ weft_bench_environment:of_hosts([{Address, Environment}
                                            || #{address := Address, environment := Environment}
                                                   <- Emulators])
        ++ [Pair || {"config_" ++ _, _} = Pair <- Here].

%% Workers are numbered through all hosts, so that each has keys and random numbers of its own.
ready(#{number := Number, results := Results} = Emulator, Count,
      #{concurrent := Workers} = Config, Environment) ->
    Options = #{dir => Results, environment => Environment,
                numbers => #{before => (Number - 1) * Workers, all => Count * Workers}},
    case call(Emulator, weft_load_instance, ready, [Config, Options], ?READY_MS) of
        ok -> {ok, ready};
        {error, Text} -> {error, Text}
    end.

begun(Emulators, #{warm_up_ms := WarmUpMs, operation_timeout_ms := TimeoutMs}) ->
    SlowestUs = lists:max([ErrorUs || #{clock := {ErrorUs, _}} <- Emulators]),
    AtUs = os:perf_counter(microsecond) + ?HEAD_START_US + 2 * SlowestUs
        + length(Emulators) * ?MORE_PER_HOST_US,
    _ = well(on_each(fun(#{clock := {_, AheadUs}} = Emulator) ->
                         case call(Emulator, weft_load_instance, begin_at, [AtUs + AheadUs],
                                   ?CALL_MS) of
                             ok -> {ok, begun};
                             {error, Text} -> {error, Text}
                         end
                     end, Emulators)),
    maps:from_list([{follow(Emulator, WarmUpMs + TimeoutMs + ?GRACE_MS), Emulator}
                    || Emulator <- Emulators]).

%% Monitored; its end is that of the load there.
follow(Emulator, TimeoutMs) ->
    Self = self(),
    {Pid, _} = spawn_monitor(fun() -> follow(Self, Emulator, TimeoutMs) end),
    Pid.

follow(Parent, Emulator, TimeoutMs) ->
    case call(Emulator, weft_load_instance, news, [], TimeoutMs) of
        {seconds, Seconds} ->
            Parent ! {news, self(), Seconds},
            follow(Parent, Emulator, TimeoutMs);
        {ended, Answer} ->
            exit({done, Answer})
    end.

%% --- while it runs ----------------------------------------------------------------------------

followed(#run{following = Following, answers = Answers, config = Config, dir = Dir,
              environment = Environment}) when map_size(Following) =:= 0 ->
    InOrder = [Answer || {_Number, Answer} <- lists:sort(maps:to_list(Answers))],
    weft_load_sum:write(Dir, Config, Environment, InOrder);
followed(#run{following = Following} = Run) ->
    receive
        {news, Pid, Seconds} when is_map_key(Pid, Following) ->
            #{Pid := Emulator} = Following,
            Write = fun(Second, Acc) -> second(Second, Emulator, Acc) end,
            followed(shown(lists:foldl(Write, Run, Seconds)));
        {'DOWN', _Monitor, process, Pid, Why} when is_map_key(Pid, Following) ->
            {#{address := Address} = Emulator, Left} = maps:take(Pid, Following),
            Ended = ended(answer(Why, Address), Emulator, Run),
            followed(shown(Ended#run{following = Left}));
        weft_bench_interrupt ->
            %% One that does not answer holds up nobody.
            [spawn(fun() -> call(Emulator, weft_load_instance, interrupt, [], ?CALL_MS) end)
             || Emulator <- maps:values(Following)],
            followed(Run)
    end.

second(#{elapsed_us := ElapsedUs, window := Window} = Second, #{number := Number},
       #run{files = All, waiting = Waiting} = Run) ->
    Files = opened(Number, maps:keys(Window), Run),
    case weft_load_files:window(ElapsedUs, Window, Files) of
        {ok, New} ->
            Run#run{files = All#{Number => New},
                    waiting = Waiting#{Number => maps:get(Number, Waiting, []) ++ [Second]}};
        {error, Text} -> throw({load, Text})
    end.

opened(Number, Labels, #run{config = Config, environment = Environment, files = All} = Run) ->
    case All of
        #{Number := Files} -> Files;
        #{} ->
            case weft_load_files:open(own(Number, Run), Config, lists:sort(Labels), Environment) of
                {ok, Files} -> Files;
                {error, Text} -> throw({load, Text})
            end
    end.

own(Number, #run{dir = Dir}) -> filename:join(Dir, integer_to_list(Number)).

ended({ok, #{total := Total, began_us := BeganUs} = Outcome},
      #{number := Number, clock := {_, AheadUs}}, #run{answers = Answers} = Run) ->
    Files = opened(Number, maps:keys(Total), Run),
    case weft_load_files:finish(Outcome, Files) of
        ok -> ok = weft_load_files:close(Files);
        {error, Text} -> throw({load, Text})
    end,
    Here = Outcome#{began_us := BeganUs - AheadUs},
    Run#run{answers = Answers#{Number => {own(Number, Run), {ok, Here}}}};
ended({error, Text}, #{number := Number}, #run{answers = Answers, files = All} = Run) ->
    [ok = weft_load_files:close(Files) || #{Number := Files} <- [All]],
    Run#run{answers = Answers#{Number => {own(Number, Run), {error, lists:flatten(Text)}}}}.

%% One line for a second that all have told of that are still there.
shown(#run{following = Following, waiting = Waiting, tell = Tell} = Run) ->
    Running = [maps:get(Number, Waiting, []) || #{number := Number} <- maps:values(Following)],
    case Running =/= [] andalso not lists:member([], Running) of
        true ->
            Firsts = [First || [First | _] <- maps:values(Waiting)],
            Tell(length(Firsts), weft_load_second:together(Firsts)),
            shown(Run#run{waiting = maps:map(fun(_, Seconds) -> rest(Seconds) end, Waiting)});
        false ->
            Run
    end.

rest([]) -> [];
rest([_ | Seconds]) -> Seconds.

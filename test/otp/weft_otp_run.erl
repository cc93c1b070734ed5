%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs one of OTP's suites once, in an emulator of its own, with an epmd, a home and a
%% directory of its own, in one of five variants:
%%
%%   stock      all nodes have the carrier that OTP brings
%%   weft       all nodes have weft: the nodes that a test starts find it in ERL_AFLAGS
%%   from_weft  the node that runs the tests has weft, those that it starts are stock
%%   to_weft    the reverse
%%   migrated   as weft, and the application weft runs on all nodes: the suite calls it
%%
%% What becomes of each case is told by `weft_otp_hook'. A suite that takes too long is ended, and
%% so are, after each, the processes that it left, which are found by a variable of their
%% environment.
-module(weft_otp_run).

-export([suite/2, inside/1, results/1]).
-export_type([variant/0, result/0, results/0, task/0]).

-type variant() :: stock | weft | from_weft | to_weft | migrated.
-type status() :: passed | failed | skipped.
%% `groups' are those that have the case, `none' if it is in none.
-type result() :: #{status := status(), reason := string(), groups := [atom()]}.
-type results() :: #{atom() => result()}.
%% `cases' are all, or lists of cases by the group that they are in; those in `except' are skipped.
%% Cases get `patience' times the time that they ask for. `boot' is the script of nodes,
%% `original' where the suite is as it was before.
-type task() :: #{suite := string(), variant := variant(), beams := file:filename(),
                  weft := file:filename(), logs := file:filename(), minutes := pos_integer(),
                  cases := all | [{atom(), all | [atom()]}], except := #{atom() => string()},
                  patience := pos_integer(), boot => file:filename(), original => file:filename()}.

-define(MARK, "WEFT_OTP_SUITE").
%% What the nodes of a suite get to end in an orderly way.
-define(GRACE_MS, 5_000).
-define(POLL_MS, 100).
%% Nodes that wait leave the processor to others.
-define(WAITING, "+sbwt none +sbwtdcpu none +sbwtdio none").

%% @doc The results of its cases, or why there are none of some; the latter as told by the exit
%% of the emulator.
-spec suite(task(), Try :: string()) -> {done | string(), results()}.
suite(#{suite := Suite, variant := Variant, logs := Logs} = Task, Try) ->
    Dir = filename:join([Logs, Variant, Suite ++ Try]),
    _ = file:del_dir_r(Dir),
    ok = filelib:ensure_dir(filename:join([Dir, "home", "x"])),
    Mark = lists:concat([os:getpid(), "-", erlang:unique_integer([positive])]),
    {Epmd, EpmdPort} = start_epmd(Dir, Mark),
    Exit = emulator(Dir, environment(Variant, Dir, EpmdPort, Mark, Task), Task),
    wait_for_leftovers(deadline(?GRACE_MS), Mark, Epmd),
    [kill(Pid) || Pid <- marked(Mark)],
    {Exit, results(filename:join(Dir, "events"))}.

emulator(Dir, Environment, #{suite := Suite, variant := Variant, beams := Beams, weft := Weft,
                             minutes := Minutes, cases := Cases, except := Except,
                             patience := Patience}) ->
    Inside = #{suite => list_to_atom(Suite ++ "_SUITE"), beams => Beams, dir => Dir,
               cases => Cases, except => Except, patience => Patience,
               variables => variables_inside(Variant, Weft)},
    Call = lists:flatten(io_lib:format("weft_otp_run:inside(~0tp).", [Inside])),
    %% Cases of applications want to find SASL, as where OTP runs them.
    Boot = case Variant of migrated -> []; _ -> ["-boot", "start_sasl"] end,
    Arguments = Boot ++ ["-noinput", "-sname", "test_server", "-pa", Beams,
                         filename:dirname(code:which(?MODULE)), "-eval", Call],
    Port = start([executable("erl") | Arguments], filename:join(Dir, "output"), Dir, Environment),
    wait(Port, os_pid(Port), Minutes).

wait(Port, Pid, Minutes) ->
    receive
        {Port, {exit_status, 0}} -> done;
        {Port, {exit_status, Status}} -> lists:concat(["the emulator ended with ", Status])
    after Minutes * 60_000 ->
        kill(Pid),
        receive {Port, {exit_status, _}} -> ok end,
        lists:concat(["ended after ", Minutes, " minutes"])
    end.

%%% The environment of a variant

%% Whatever the caller has set for his own nodes is not for these.
environment(Variant, Dir, EpmdPort, Mark, #{weft := Weft} = Task) ->
    Path = filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH"),
    Flags = case Variant of
                weft -> carrier(Weft);
                from_weft -> carrier(Weft);
                migrated -> carrier(Weft) ++ " -boot \"" ++ maps:get(boot, Task) ++ "\"";
                _ -> ?WAITING
            end,
    [{"PATH", Path}, {"HOME", filename:join(Dir, "home")}, {"XDG_CONFIG_HOME", false},
     {"ERL_EPMD_PORT", integer_to_list(EpmdPort)}, {"ERL_AFLAGS", Flags}, {"ERL_FLAGS", false},
     {"ERL_ZFLAGS", false}, {"ERL_LIBS", false}, {"ERL_CRASH_DUMP", filename:join(Dir, "dump")},
     {"TERM", "dumb"}, {?MARK, Mark}].

%% What the nodes that a test starts get, if it is not what its own node has.
variables_inside(from_weft, _Weft) -> [{"ERL_AFLAGS", ?WAITING}];
variables_inside(to_weft, Weft) -> [{"ERL_AFLAGS", carrier(Weft)}];
variables_inside(_Same, _Weft) -> [].

carrier(Weft) ->
    ?WAITING ++ " -proto_dist weft -pa \"" ++ Weft ++ "\"".

%%% In the emulator of the suite

%% @doc Runs the suite with Common Test.
-spec inside(map()) -> no_return().
inside(#{suite := Suite, beams := Beams, dir := Dir, cases := Cases, except := Except,
         patience := Patience, variables := Variables}) ->
    [set(Name, Value) || {Name, Value} <- Variables],
    Logs = filename:join(Dir, "html"),
    ok = filelib:ensure_dir(filename:join(Logs, "x")),
    %% After the hooks that suites name: these cannot stand that a case is skipped before.
    Hook = {weft_otp_hook, #{events => filename:join(Dir, "events"), except => Except}, 1000},
    Common = [{dir, Beams}, {suite, Suite}, {auto_compile, false}, {logdir, Logs},
              {multiply_timetraps, Patience},
              {ct_hooks, [Hook]}],
    [io:format("~tp~n", [ct:run_test(Common ++ Part)]) || Part <- parts(Cases)],
    halt().

set(Name, false) -> os:unsetenv(Name);
set(Name, Value) -> os:putenv(Name, Value).

parts(all) -> [[]];
parts(Cases) -> [part(Group, Chosen) || {Group, Chosen} <- Cases].

part(none, Cases) -> [{testcase, Cases}];
part(Group, all) -> [{group, Group}];
part(Group, Cases) -> [{group, Group}, {testcase, Cases}].

%%% What was told

%% @doc The results in a file of events. A case that is in several groups has its worst one.
-spec results(file:filename()) -> results().
results(Events) ->
    Told = case file:consult(Events) of
               {ok, Terms} -> Terms;
               {error, enoent} -> []
           end,
    lists:foldl(fun add/2, #{}, Told).

add({Case, Group, Status, Reason}, Results) ->
    New = #{status => Status, reason => Reason, groups => [Group]},
    maps:update_with(Case, fun(Old) -> worse(Old, New) end, New, Results).

worse(#{groups := Before} = Old, #{groups := [Group]} = New) ->
    [Worst | _] = lists:sort(fun(A, B) -> rank(A) >= rank(B) end, [Old, New]),
    Worst#{groups := lists:usort([Group | Before])}.

rank(#{status := failed}) -> 2;
rank(#{status := skipped}) -> 1;
rank(#{status := passed}) -> 0.

%%% Processes of the operating system

%% Its output goes past this emulator: a pipe would be held open by nodes that outlive it.
start(Command, Output, Dir, Environment) ->
    open_port({spawn_executable, os:find_executable("sh")},
              [{args, ["-c", "exec \"$@\" > \"$0\" 2>&1", Output | Command]},
               {cd, Dir}, {env, Environment}, exit_status, hide]).

os_pid(Port) ->
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    integer_to_list(Pid).

executable(Name) ->
    filename:join([code:root_dir(), "bin", Name]).

%% Somebody else may take the port before epmd does: then it ends at once.
start_epmd(Dir, Mark) ->
    EpmdPort = free_port(),
    Epmd = start([executable("epmd"), "-port", integer_to_list(EpmdPort)],
                 filename:join(Dir, "epmd.log"), Dir, [{?MARK, Mark}]),
    ok = await_epmd(Epmd, EpmdPort),
    case erlang:port_info(Epmd, os_pid) of
        {os_pid, _} -> {os_pid(Epmd), EpmdPort};
        undefined -> start_epmd(Dir, Mark)
    end.

await_epmd(Epmd, EpmdPort) ->
    receive
        {Epmd, {exit_status, _}} -> ok
    after ?POLL_MS -> % pacing: of attempts
        case gen_tcp:connect({127, 0, 0, 1}, EpmdPort, []) of
            {ok, Socket} -> gen_tcp:close(Socket);
            {error, _} -> await_epmd(Epmd, EpmdPort)
        end
    end.

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, []),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% All but epmd, which ends when it is killed.
wait_for_leftovers(Deadline, Mark, Epmd) ->
    case {marked(Mark) -- [Epmd], erlang:monotonic_time(millisecond) < Deadline} of
        {[_ | _], true} ->
            receive after ?POLL_MS -> wait_for_leftovers(Deadline, Mark, Epmd) end; % pacing: looks
        _ ->
            ok
    end.

deadline(Ms) ->
    erlang:monotonic_time(millisecond) + Ms.

%% The processes that have the mark in their environment (on Linux).
marked(Mark) ->
    Variable = iolist_to_binary([?MARK, "=", Mark, 0]),
    [filename:basename(Dir) || Dir <- filelib:wildcard("/proc/[0-9]*"),
                               is_marked(filename:join(Dir, "environ"), Variable)].

is_marked(File, Variable) ->
    case file:read_file(File) of
        {ok, Environment} -> binary:match(Environment, Variable) =/= nomatch;
        {error, _} -> false
    end.

kill(Pid) ->
    os:cmd("kill -KILL " ++ Pid).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Kills one process of this node now and then, after chaos_monkey (Daniel Luna) and rhesus of
%% the Instant Messenger benchmark.
%%
%% Options:
%%   ms       5000: pause between two kills, times a random factor of 0.7 to 1.3
%%   apps     all_but_otp: [App] | all | all_but_otp: processes of these applications; those of none
%%            are left alone
%%   weights  none: [{Kind, Weight}]: a kind is drawn by its weight, then one of its processes.
%%            Kinds are {registered, Name}, {initial_call, Module} and {dictionary, Key}.
%%   spare    []: names and modules that are left alone
%%   seed     none: a number that decides about pauses and victims. Of the same processes, told
%%            apart by application, name and module, the same seed draws the same ones
%%
%% Spared always: supervisors, what belongs to the kernel, logging, the code server and shells, the
%% carrier and overlay of weft, and this process: their death is the node's. Kills are `kill', as a
%% process that crashes has no time to tidy up either.
-module(weft_chaos_monkey).
-behaviour(gen_server).

-export([start/1, stop/0, status/0, kill_one/1, candidates/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([options/0, kind/0]).

-type kind() :: {registered, atom()} | {initial_call, module()} | {dictionary, term()}.
-type options() :: #{ms => pos_integer(), apps => all | all_but_otp | [atom()],
                     weights => [{kind(), pos_integer()}], spare => [atom()],
                     seed => integer()}.

-define(PAUSE_MS, 5000).
-define(KEPT, 100).
%% The applications of OTP. Where they are does not tell: in a release that has its own emulator all
%% applications are in one directory.
-define(OTP, [asn1, common_test, compiler, crypto, debugger, dialyzer, diameter, edoc, eldap,
              erl_docgen, erl_interface, et, eunit, ftp, inets, jinterface, kernel, megaco, mnesia,
              observer, odbc, os_mon, parsetools, public_key, reltool, runtime_tools, sasl, snmp,
              ssh, ssl, stdlib, syntax_tools, tftp, tools, wx, xmerl]).
-define(SPARED_APPS, [kernel, stdlib, sasl, runtime_tools, compiler, weft, weft_amqp, weft_chaos]).

-record(monkey, {options :: options(),
                 rand :: rand:state(),
                 killed = [] :: [map()],
                 error = none :: none | string(),
                 count = 0 :: non_neg_integer()}).

%% @doc Starts it on this node. The error is a text.
-spec start(options()) -> {ok, pid()} | {error, string()}.
start(Options) ->
    case {application:get_env(weft_chaos, enabled, false), check(Options)} of
        {true, ok} ->
            case gen_server:start({local, ?MODULE}, ?MODULE, Options, []) of
                {ok, Pid} -> {ok, Pid};
                {error, {already_started, _}} -> {error, "it runs already"}
            end;
        {true, Error} -> Error;
        _ -> {error, "chaos is not enabled: set {weft_chaos, [{enabled, true}]}"}
    end.

-spec stop() -> ok | {error, not_running}.
stop() ->
    case whereis(?MODULE) of
        undefined -> {error, not_running};
        Pid -> gen_server:stop(Pid)
    end.

%% @doc How many were killed, and the last ones; and why nobody was killed the last time, `none' if
%% somebody was.
-spec status() -> none | #{count := non_neg_integer(), last := [map()], error := none | string()}.
status() ->
    case whereis(?MODULE) of
        undefined -> none;
        Pid -> gen_server:call(Pid, status)
    end.

check(Options) ->
    Wrong = [Pair || {Key, Value} = Pair <- maps:to_list(Options), not is_option(Key, Value)],
    case Wrong of
        [] -> ok;
        [{Key, Value} | _] ->
            {error, lists:flatten(io_lib:format("~0tp => ~0tp is no option; they are on top of "
                                                "weft_chaos_monkey", [Key, Value]))}
    end.

is_option(ms, Ms) -> is_integer(Ms) andalso Ms > 0;
is_option(apps, Apps) -> lists:member(Apps, [all, all_but_otp]) orelse is_atoms(Apps);
is_option(spare, Names) -> is_atoms(Names);
is_option(seed, Seed) -> is_integer(Seed);
is_option(weights, Weights) ->
    is_list(Weights) andalso Weights =/= []
        andalso lists:all(fun({{Kind, _}, Weight}) ->
                                  lists:member(Kind, [registered, initial_call, dictionary])
                                      andalso is_integer(Weight) andalso Weight > 0;
                             (_) -> false
                          end, Weights);
is_option(_, _) -> false.

is_atoms(List) -> is_list(List) andalso lists:all(fun is_atom/1, List).

%% @private
init(Options) ->
    {ok, later(#monkey{options = Options, rand = rand_of(Options)})}.

rand_of(#{seed := Seed}) -> rand:seed_s(exsss, Seed);
rand_of(_Options) -> rand:seed_s(exsss).

later(#monkey{options = Options, rand = Rand0} = Monkey) ->
    Ms = maps:get(ms, Options, ?PAUSE_MS),
    {Share, Rand} = rand:uniform_s(Rand0),
    _ = erlang:send_after(max(1, round(Ms * (0.7 + 0.6 * Share))), self(), kill),
    Monkey#monkey{rand = Rand}.

%% @private
handle_call(status, _From, #monkey{killed = Killed, count = Count, error = Error} = Monkey) ->
    {reply, #{count => Count, last => Killed, error => Error}, Monkey};
handle_call(Request, _From, Monkey) ->
    {reply, weft_stray:call(Request), Monkey}.

%% @private
handle_cast(Request, Monkey) ->
    ok = weft_stray:message(Request),
    {noreply, Monkey}.

%% @private
handle_info(kill, #monkey{options = Options, killed = Killed, count = Count,
                          rand = Rand0} = Monkey0) ->
    {Outcome, Rand} = kill_one(Options, Rand0),
    Monkey = Monkey0#monkey{rand = Rand},
    {noreply, later(case Outcome of
                        {ok, Victim} -> Monkey#monkey{killed = lists:sublist([Victim | Killed],
                                                                             ?KEPT),
                                                      count = Count + 1, error = none};
                        {error, Nobody} -> Monkey#monkey{error = Nobody}
                    end)};
handle_info(Message, Monkey) ->
    ok = weft_stray:message(Message),
    {noreply, Monkey}.

%% @doc Kills one process now, and tells which. The error is a text: nobody is left, a wrong option.
-spec kill_one(options()) -> {ok, map()} | {error, string()}.
kill_one(Options) ->
    case check(Options) of
        ok -> element(1, kill_one(Options, rand_of(Options)));
        Error -> Error
    end.

kill_one(Options, Rand) ->
    case application:get_env(weft_chaos, enabled, false) of
        true -> kill_any(drawn(Options, Rand));
        _ -> {{error, "chaos is not enabled: set {weft_chaos, [{enabled, true}]}"}, Rand}
    end.

kill_any({[], Rand}) ->
    {{error, "there is no process that may be killed"}, Rand};
kill_any({Candidates, Rand0}) ->
    {Victim, Rand} = pick(lists:sort([about(Pid) || Pid <- Candidates]), Rand0),
    {{ok, killed(Victim)}, Rand}.

%% Pids say when a process was started, which is another order each time. So they come last.
about(Pid) -> {application_of(Pid), name(Pid), initial_module(Pid), Pid}.

killed({Application, Name, Module, Pid}) ->
    exit(Pid, kill),
    #{pid => Pid, application => Application, name => Name, initial_call => Module}.

pick(List, Rand0) ->
    {N, Rand} = rand:uniform_s(length(List), Rand0),
    {lists:nth(N, List), Rand}.

%% A kind that has nobody is no kind.
drawn(#{weights := Weights} = Options, Rand) ->
    Candidates = candidates(maps:remove(weights, Options)),
    ByKind = [{Weight, Of} || {Kind, Weight} <- Weights,
                              Of <- [[Pid || Pid <- Candidates, is_of(Kind, Pid)]], Of =/= []],
    case lists:append([lists:duplicate(Weight, Of) || {Weight, Of} <- ByKind]) of
        [] -> {[], Rand};
        Weighted -> pick(Weighted, Rand)
    end;
drawn(Options, Rand) ->
    {candidates(Options), Rand}.

is_of({registered, Name}, Pid) -> whereis(Name) =:= Pid;
is_of({initial_call, Module}, Pid) -> initial_module(Pid) =:= Module;
is_of({dictionary, Key}, Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> lists:keymember(Key, 1, Dictionary);
        undefined -> false
    end.

%% @doc The processes that may be killed.
-spec candidates(options()) -> [pid()].
candidates(Options) ->
    Apps = maps:get(apps, Options, all_but_otp),
    Spare = maps:get(spare, Options, []),
    Leaders = leaders(Apps),
    [Pid || Pid <- processes(), Pid =/= self(), is_allowed(Pid, Apps, Leaders),
            not is_spared(Pid, Spare)].

%% Group leaders of applications: the process that an application's master is.
leaders(Apps) ->
    [{application_controller:get_master(App), App}
     || {App, _, _} <- application:which_applications(), Apps =:= all orelse Apps =:= all_but_otp
            orelse lists:member(App, Apps)].

is_allowed(Pid, Apps, Leaders) ->
    case process_info(Pid, group_leader) of
        {group_leader, Leader} ->
            case lists:keyfind(Leader, 1, Leaders) of
                {_, App} -> not lists:member(App, ?SPARED_APPS)
                                andalso (Apps =/= all_but_otp
                                         orelse not lists:member(App, ?OTP));
                %% Of another application, or of none, as the processes of the emulator and shells.
                false -> false
            end;
        undefined -> false
    end.

is_spared(Pid, Spare) ->
    Module = initial_module(Pid),
    lists:member(name(Pid), Spare) orelse lists:member(Module, Spare)
        orelse lists:member(Module, [supervisor, supervisor_bridge, weft_supervisor,
                                     application_master])
        orelse is_supervisor(Pid).

is_supervisor(Pid) ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} ->
            case lists:keyfind('$initial_call', 1, Dictionary) of
                {_, {supervisor, _, _}} -> true;
                _ -> false
            end;
        undefined -> false
    end.

name(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> undefined
    end.

%% What proc_lib has written down, as the initial call of all its processes is its own.
initial_module(Pid) ->
    case proc_lib:translate_initial_call(Pid) of
        {proc_lib, init_p, _} -> initial_call(Pid);
        {Module, _, _} -> Module
    end.

initial_call(Pid) ->
    case process_info(Pid, initial_call) of
        {initial_call, {Module, _, _}} -> Module;
        undefined -> undefined
    end.

application_of(Pid) ->
    case application:get_application(Pid) of
        {ok, App} -> App;
        undefined -> none
    end.

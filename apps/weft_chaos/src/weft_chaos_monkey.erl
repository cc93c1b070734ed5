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
                     weights => [{kind(), pos_integer()}], spare => [atom()]}.

-define(PAUSE_MS, 5000).
-define(KEPT, 100).
-define(SPARED_APPS, [kernel, stdlib, sasl, runtime_tools, compiler, weft, weft_amqp, weft_chaos]).

-record(monkey, {options :: options(),
                 killed = [] :: [map()],
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

%% @doc How many were killed, and the last ones.
-spec status() -> none | #{count := non_neg_integer(), last := [map()]}.
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
    _ = rand:seed(exsss),
    {ok, later(#monkey{options = Options})}.

later(#monkey{options = Options} = Monkey) ->
    Ms = maps:get(ms, Options, ?PAUSE_MS),
    _ = erlang:send_after(max(1, round(Ms * (0.7 + 0.6 * rand:uniform()))), self(), kill),
    Monkey.

%% @private
handle_call(status, _From, #monkey{killed = Killed, count = Count} = Monkey) ->
    {reply, #{count => Count, last => Killed}, Monkey}.

%% @private
handle_cast(Request, Monkey) -> {stop, {unexpected_cast, Request}, Monkey}.

%% @private
handle_info(kill, #monkey{options = Options, killed = Killed, count = Count} = Monkey) ->
    {noreply, later(case kill_one(Options) of
                        {ok, Victim} -> Monkey#monkey{killed = lists:sublist([Victim | Killed],
                                                                             ?KEPT),
                                                      count = Count + 1};
                        {error, _Nobody} -> Monkey
                    end)}.

%% @doc Kills one process now, and tells which. The error is a text: nobody is left, a wrong option.
-spec kill_one(options()) -> {ok, map()} | {error, string()}.
kill_one(Options) ->
    case {application:get_env(weft_chaos, enabled, false), check(Options)} of
        {true, ok} -> kill_any(drawn(Options));
        {true, Error} -> Error;
        _ -> {error, "chaos is not enabled: set {weft_chaos, [{enabled, true}]}"}
    end.

kill_any([]) ->
    {error, "there is no process that may be killed"};
kill_any(Candidates) ->
    Pid = lists:nth(rand:uniform(length(Candidates)), Candidates),
    Victim = #{pid => Pid, application => application_of(Pid), name => name(Pid),
               initial_call => initial_module(Pid)},
    exit(Pid, kill),
    {ok, Victim}.

%% A kind that has nobody is no kind.
drawn(#{weights := Weights} = Options) ->
    Candidates = candidates(maps:remove(weights, Options)),
    ByKind = [{Weight, Of} || {Kind, Weight} <- Weights,
                              Of <- [[Pid || Pid <- Candidates, is_of(Kind, Pid)]], Of =/= []],
    case lists:append([lists:duplicate(Weight, Of) || {Weight, Of} <- ByKind]) of
        [] -> [];
        Weighted -> lists:nth(rand:uniform(length(Weighted)), Weighted)
    end;
drawn(Options) ->
    candidates(Options).

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
                                andalso (Apps =/= all_but_otp orelse not is_otp(App));
                %% Of another application, or of none, as the processes of the emulator and shells.
                false -> false
            end;
        undefined -> false
    end.

is_otp(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> false;
        Dir -> lists:prefix(code:lib_dir(), Dir)
    end.

is_spared(Pid, Spare) ->
    Module = initial_module(Pid),
    lists:member(name(Pid), Spare) orelse lists:member(Module, Spare)
        orelse lists:member(Module, [supervisor, supervisor_bridge, application_master])
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

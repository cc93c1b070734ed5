%% SPDX-License-Identifier: Apache-2.0
%% @doc Runs suites of RabbitMQ on what weft_migrate_broker has built, each in an emulator of its
%% own, as their project does: in the directory of the application, on a hidden node, with the
%% project's script that starts and stops brokers. All have an epmd and a cookie of their own.
-module(weft_migrate_suites).

-export([run/3, results/1, different/2]).
-export_type([results/0, carrier/0]).

%% A case may run several times.
-type results() :: #{{Case :: atom(), Group :: atom()} => [{status(), Reason :: string()}]}.
-type status() :: passed | failed | skipped.
-type carrier() :: stock | weft.

%% @doc Runs a suite. With weft as carrier the application weft runs on the node of the suite, too.
-spec run({App :: string(), Suite :: string()}, Dir :: file:filename(), carrier()) ->
          {results(), Logs :: file:filename()}.
run({App, Suite}, Dir, Carrier) ->
    Logs = filename:join([Dir, "logs", Suite]),
    _ = file:del_dir_r(Logs),
    ok = filelib:ensure_path(Logs),
    Events = filename:join(Logs, "events"),
    Options = [{dir, filename:join([Dir, "apps", App, "test"])}, {suite, Suite ++ "_SUITE"},
               {auto_compile, false}, {logdir, Logs},
               {ct_hooks, [{weft_otp_hook, #{events => Events, except => #{}}}]}],
    Eval = io_lib:format("~ts ct:run_test(~0tp), halt().", [started(Carrier), Options]),
    Paths = [filename:dirname(code:which(weft_otp_hook)), filename:join(Dir, "command")
             | filelib:wildcard(filename:join(Dir, "apps/*/ebin"))],
    EpmdPort = integer_to_list(free_port()),
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, ["-noinput", "-sname", "suites@localhost", "-hidden", "-pa" | Paths]
                       ++ carrier(Carrier) ++ ["-eval", lists:flatten(Eval)]},
                      {env, env(Dir, App, Carrier, EpmdPort)}, {cd, source(Dir, App)},
                      exit_status, binary, stderr_to_stdout]),
    ok = ended(Port, filename:join(Logs, "output")),
    _ = os:cmd("epmd -port " ++ EpmdPort ++ " -kill"),
    {results(Events), Logs}.

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

carrier(stock) -> [];
carrier(weft) -> ["-proto_dist", "weft"].

started(stock) -> "";
started(weft) -> "{ok, _} = application:ensure_all_started(weft),".

source(Dir, App) -> filename:join([Dir, "sources/deps", App]).

env(Dir, App, Carrier, EpmdPort) ->
    Server = filename:join(Dir, "server"),
    User = filename:join(Dir, "user"),
    ok = filelib:ensure_path(User),
    [{"HOME", User}, {"PWD", source(Dir, App)}, {"LANG", "C.UTF-8"},
     {"ERL_EPMD_PORT", EpmdPort},
     {"ERL_LIBS", filename:join(Server, "plugins")},
     {"RABBITMQ_SERVER_ERL_ARGS",
      lists:flatten(lists:join(" ", ["+P 1048576 +t 5000000 +stbt db +zdbbl 128000"
                                     | carrier(Carrier)]))},
     {"RABBITMQ_ENABLED_PLUGINS", App}, {"RABBITMQ_CONF_ENV_FILE", "/dev/null"},
     {"RABBITMQ_CT_SKIP_AS_ERROR", "true"}, {"SKIP_MAKE_TEST_DIST", "true"},
     {"TEST_SRCDIR", Dir}, {"TEST_WORKSPACE", "."},
     {"RABBITMQ_RUN", run_script(Dir)}
     | [{Name, filename:join([Server, "sbin", Script])}
        || {Name, Script} <- [{"RABBITMQCTL", "rabbitmqctl"},
                              {"RABBITMQ_PLUGINS", "rabbitmq-plugins"},
                              {"RABBITMQ_QUEUES", "rabbitmq-queues"}]]].

%% The project's own, which its build fills in.
run_script(Dir) ->
    {ok, Text} = file:read_file(filename:join(Dir, "sources/scripts/bazel/rabbitmq-run.sh")),
    Script = filename:join(Dir, "rabbitmq-run"),
    Filled = lists:foldl(fun({Word, Place}, Rest) -> string:replace(Rest, Word, Place, all) end,
                         Text, [{"{RABBITMQ_HOME}", "server"}, {"{ERL_LIBS}", "server/plugins"}]),
    ok = file:write_file(Script, Filled),
    ok = file:change_mode(Script, 8#755),
    Script.

ended(Port, Output) ->
    receive
        {Port, {data, Data}} -> ok = file:write_file(Output, Data, [append]), ended(Port, Output);
        {Port, {exit_status, _}} -> ok
    end.

%% @doc What the hook wrote down. A case is called passed before its failure is known.
-spec results(Events :: file:filename()) -> results().
results(Events) ->
    Told = case file:consult(Events) of
               {ok, Terms} -> Terms;
               {error, enoent} -> []
           end,
    maps:map(fun(_, Results) -> final(lists:reverse(Results)) end,
             lists:foldl(fun({Case, Group, Status, Reason}, All) ->
                                 maps:update_with({Case, Group},
                                                  fun(Others) -> [{Status, Reason} | Others] end,
                                                  [{Status, Reason}], All)
                         end, #{}, Told)).

final([{passed, _}, {Status, Reason} | Rest]) when Status =/= passed ->
    [{Status, Reason} | final(Rest)];
final([Result | Rest]) -> [Result | final(Rest)];
final([]) -> [].

%% @doc The cases that do not have the same result, with both.
-spec different(results(), results()) -> [{{atom(), atom()}, Before :: [{status(), string()}],
                                           After :: [{status(), string()}]}].
different(Before, After) ->
    [{Case, Old, New} || Case <- lists:usort(maps:keys(Before) ++ maps:keys(After)),
                         {Old, New} <- [{maps:get(Case, Before, []), maps:get(Case, After, [])}],
                         statuses(Old) =/= statuses(New)].

statuses(Results) -> lists:sort([Status || {Status, _} <- Results]).

%% SPDX-License-Identifier: Apache-2.0
%% @doc A real Prometheus for suites: it scrapes nodes of this machine each second and evaluates the
%% rules that are shipped, with short times, in the long form as they are too, or only so.
-module(weft_ops_prometheus).

-export([find/0, start/3, as_shipped/3, rules/1, alerts/1, fires/2, firing/2, sum/2]).

-define(WINDOW, "10s").
-define(FIRES_MS, 60000).

%% @doc The program; what it needs of OTP runs.
find() ->
    {ok, _} = application:ensure_all_started(inets),
    os:find_executable("prometheus").

%% @doc Its address. It ends with its standard input, which is this process's.
start(Rules, Ports, Dir) ->
    start(["short.yml" | ["shipped.yml" || os:getenv("FULL") =/= false]], Rules, Ports, Dir).

%% @doc The same, with the times that are shipped and no others.
as_shipped(Rules, Ports, Dir) -> start(["shipped.yml"], Rules, Ports, Dir).

start(Named, Rules, Ports, Dir) ->
    File = fun(Name, Text) ->
               Path = filename:join(Dir, Name),
               ok = filelib:ensure_dir(Path),
               ok = file:write_file(Path, Text),
               Path
           end,
    _ = File("short.yml", shorter(Rules)),
    _ = File("shipped.yml", Rules),
    Targets = [io_lib:format("\"127.0.0.1:~b\"", [Port]) || Port <- Ports],
    Main = File("main.yml",
                io_lib:format("global: {scrape_interval: 1s, scrape_timeout: 900ms, "
                              "evaluation_interval: 1s}~n"
                              "rule_files: [~ts]~n"
                              "scrape_configs:~n- job_name: weft~n"
                              "  static_configs: [{targets: [~ts]}]~n",
                              [lists:join(", ", Named), lists:join(", ", Targets)])),
    Port = weft_test_nodes:free_port(),
    Words = [find(), "--config.file=" ++ Main,
             "--storage.tsdb.path=" ++ filename:join(Dir, "data"), "--log.level=warn",
             "--web.listen-address=127.0.0.1:" ++ integer_to_list(Port)],
    Script = "\"$@\" > \"$LOG\" 2>&1 & P=$!; read -r _; kill $P; wait $P",
    _ = open_port({spawn_executable, "/bin/sh"},
                  [{args, ["-c", Script, "sh" | Words]},
                   {env, [{"LOG", filename:join(Dir, "log")}]}]),
    lists:concat(["http://127.0.0.1:", Port]).

%% @doc The text of a file of rules that is shipped.
rules(Name) ->
    {ok, Text} = file:read_file(filename:join([code:lib_dir(weft_ops), "priv", "prometheus",
                                               Name])),
    Text.

%% @doc The names of the alerts in it.
alerts(Rules) ->
    {match, Names} = re:run(Rules, "alert: (\\w+)", [global, {capture, all_but_first, list}]),
    lists:append(Names).

%% Of the times that a condition has to hold, and of the windows over which is counted.
shorter(Rules) ->
    lists:foldl(fun({From, To}, Text) -> re:replace(Text, From, To, [global]) end, Rules,
                [{"for: \\S+", "for: 1s"}, {"\\[\\d+m\\]", "[" ?WINDOW "]"}]).

%% @doc Waits until all of these alerts have fired within the last seconds.
fires(Names, Server) ->
    weft_test_nodes:until(
      fun() ->
          receive after 300 -> ok end, % pacing: rules are evaluated each second
          Missing = Names -- firing("[" ?WINDOW "]", Server),
          ct:log("~s: ~p do not fire yet", [calendar:system_time_to_rfc3339(os:system_time(1)),
                                            Missing]),
          Missing =:= []
      end, ?FIRES_MS),
    Names.

%% @doc The names of the alerts that fired at some time within the range.
firing(Range, Server) ->
    {ok, Series} = asked("count_over_time(ALERTS{alertstate=\"firing\"}" ++ Range ++ ")", Server),
    lists:usort([binary_to_list(Name) || #{<<"metric">> := #{<<"alertname">> := Name}} <- Series]).

%% @doc {ok, The sum of a metric over all nodes}, or what came in its place.
sum(Metric, Server) ->
    case asked("sum(" ++ Metric ++ ")", Server) of
        {ok, [#{<<"value">> := [_, Text]}]} -> {ok, 1.0 * binary_to_integer(Text)};
        Other -> Other
    end.

asked(Query, Server) ->
    Url = Server ++ "/api/v1/query?" ++ uri_string:compose_query([{"query", Query}]),
    case httpc:request(get, {Url, []}, [{timeout, 10000}], [{body_format, binary}]) of
        {ok, {{_, 200, _}, _, Body}} ->
            {ok, #{<<"data">> := #{<<"result">> := Series}}} = weft_json:decode(Body),
            {ok, Series};
        NotYet -> NotYet
    end.

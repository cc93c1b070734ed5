%% SPDX-License-Identifier: Apache-2.0
%% @doc Who may do what with each configuration, by requests to a real listener: closed unless it is
%% opened. And the token is in nothing that is logged, whatever crashes.
-module(weft_dashboard_access_tests).

-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_browser, [request/2, request/4, json/1, open/2, frame/1]).

%% A handler of logger, a middleware.
-export([log/2, execute/2]).

-define(TOKEN, "correct-horse-battery").
-define(RIGHT, {"authorization", "Bearer " ?TOKEN}).
-define(JSON, {"content-type", "application/json"}).
-define(KILL, <<"{\"action\":\"kill_node\",\"node\":\"b@h\"}">>).
-define(BREAK, <<"{\"action\":\"break_link\",\"from\":\"a@h\",\"to\":\"b@h\"}">>).
-define(ACKNOWLEDGE, <<"{\"id\":\"busy b@h\",\"comment\":\"on my way\"}">>).
-define(LOOPBACK, {127, 0, 0, 1}).
%% Also of this machine, but not the address that is configured.
-define(BESIDE, {127, 0, 0, 2}).
-define(CONNECT_MS, 5000).

%% --- configurations ---------------------------------------------------------------------------

what_is_not_configured_is_closed_test() ->
    {ok, Config} = weft_dashboard_config:parse([]),
    ?assertMatch(#{ip := ?LOOPBACK, port := 9470, token := none, chaos := false, origins := [],
                   recording := none, browsers_max := 32, period_ms := 1000}, Config).

a_wrong_configuration_is_told_test() ->
    [?assertEqual({match, Env}, {told(Env, Words), Env})
     || {Env, Words} <-
            [{[{tokn, ?TOKEN}], "the key tokn is unknown.*browsers_max, chaos, ip"},
             {[{chaos, true}], "chaos is true without a token.*set token"},
             {[{chaos, on}, {token, ?TOKEN}], "chaos is on: make it true or false"},
             {[{token, "secret"}], "token is too short: make it at least 16"},
             {[{token, secret}], "token is no string"},
             {[{token, {file, "/nowhere/token"}}], "/nowhere/token: no such file"},
             {[{ip, "127.0.0.1"}], "ip is .*make it an address as a tuple"},
             {[{ip, {127, 0, 0, 256}}], "ip is .*make it an address as a tuple"},
             {[{port, -1}], "port is -1: make it an integer from 0 to 65535"},
             {[{period_ms, 199}], "period_ms is 199: .*at least 200"},
             {[{browsers_max, 0}], "browsers_max is 0: .*at least 1"},
             {[{origins, "https://weft.example.org"}], "origins is .*a list of strings"},
             {[{origins, ["https://weft.example.org" | x]}], "origins is .*a list of strings"},
             {[{origins, ["weft.example.org"]}], "the origin weft.example.org is none"},
             {[{origins, ["https://weft.example.org/path"]}], "is none: write it as browsers do"},
             {[{recording, ""}], "recording is .*the directory of the recording"}]],
    ?assertMatch({ok, _}, weft_dashboard_config:parse([{chaos, true}, {token, ?TOKEN}])).

%% And no text has what may be nearly the token.
told(Env, Words) ->
    {error, Text} = weft_dashboard_config:parse(Env),
    ?assertMatch({match, _}, re:run(Text, "in the environment of weft_dashboard")),
    [?assertEqual(nomatch, string:find(Text, Secret)) || Secret <- [?TOKEN, "secret"]],
    re:run(Text, Words, [{capture, none}]).

with_a_wrong_one_the_application_does_not_start_test() ->
    ok = application:set_env(weft_dashboard, tokn, ?TOKEN),
    {error, {weft_dashboard, Text}} = weft_dashboard_app:start(normal, []),
    ok = application:unset_env(weft_dashboard, tokn),
    ?assertMatch({match, _}, re:run(Text, "the key tokn is unknown")),
    ?assertEqual(nomatch, string:find(Text, ?TOKEN)),
    ?assertEqual(undefined, whereis(weft_dashboard_sup)).

%% --- where it listens -------------------------------------------------------------------------

only_this_machine_can_connect_test() ->
    with([], fun(Port) ->
                 ?assertEqual(ok, connects(?LOOPBACK, Port)),
                 [?assertEqual({Address, {error, econnrefused}}, {Address, connects(Address, Port)})
                  || Address <- [?BESIDE | addresses()]]
             end),
    with([{ip, {0, 0, 0, 0}}], fun(Port) -> ?assertEqual(ok, connects(?BESIDE, Port)) end).

%% Those by which others reach this machine, if there are any.
addresses() ->
    {ok, Interfaces} = inet:getifaddrs(),
    [Address || {_, Options} <- Interfaces, {addr, {A, _, _, _} = Address} <- Options, A =/= 127].

connects(Address, Port) ->
    case gen_tcp:connect(Address, Port, [], ?CONNECT_MS) of
        {ok, Socket} -> gen_tcp:close(Socket);
        Error -> Error
    end.

%% --- who may act ------------------------------------------------------------------------------

%% Whatever is sent as a token.
without_a_token_it_only_looks_test() ->
    with([], fun(Port) ->
        [?assertMatch({Path, Header, {403, #{<<"error">> := <<"this dashboard only looks",
                                                             _/binary>>}}},
                      {Path, Header, post(Path, [?JSON | Header], Body, Port)})
         || {Path, Body} <- actions(),
            Header <- [[], [?RIGHT], [{"authorization", "Bearer "}],
                       [{"authorization", "Bearer none"}]]],
        ?assertMatch({200, #{<<"nodes">> := #{<<"b@h">> := _}}}, get("/api/model", Port)),
        ?assertMatch({200, #{<<"acts">> := false, <<"chaos">> := false}}, get("/api/about", Port)),
        ?assertEqual(nothing, broken())
    end).

actions() ->
    [{"/api/chaos", ?KILL}, {"/api/acknowledge", ?ACKNOWLEDGE}, {"/api/nothing", <<"{}">>}].

%% The token is taken for what else it may do.
nothing_is_broken_where_chaos_is_off_test() ->
    with([{token, ?TOKEN}], fun(Port) ->
        ?assertMatch({200, #{<<"acts">> := true, <<"chaos">> := false}}, get("/api/about", Port)),
        ?assertMatch({403, #{<<"error">> := <<"chaos is off", _/binary>>}},
                     post("/api/chaos", [?JSON, ?RIGHT], ?KILL, Port)),
        ?assertMatch({409, _}, post("/api/acknowledge", [?JSON, ?RIGHT], ?ACKNOWLEDGE, Port)),
        ?assertEqual(nothing, broken())
    end).

a_wrong_token_is_refused_test() ->
    with_chaos(fun(Port) ->
        [?assertMatch({Path, Wrong, {403, #{<<"error">> := <<"this is not the token">>}}},
                      {Path, Wrong, post(Path, [?JSON, {"authorization", Wrong}], Body, Port)})
         || {Path, Body} <- actions(),
            Wrong <- ["Bearer " ?TOKEN "y", "Bearer correct-horse-batter", "Bearer ", "Bearer",
                      "Basic " ?TOKEN, ?TOKEN]],
        [?assertMatch({Path, {401, _}}, {Path, post(Path, [?JSON], Body, Port)})
         || {Path, Body} <- actions()],
        ?assertEqual(nothing, broken()),
        ?assertMatch({200, #{<<"done">> := true}},
                     post("/api/chaos", [?JSON, ?RIGHT], ?KILL, Port)),
        ?assertEqual({crash, b@h}, broken())
    end).

%% --- what is logged ---------------------------------------------------------------------------

after_the_guard_no_request_has_the_token_test() ->
    {ok, Config} = weft_dashboard_config:parse([{token, ?TOKEN}]),
    Env = #{access => weft_dashboard_guard:access(Config)},
    Request = #{host => <<"127.0.0.1">>, path => <<"/api/chaos">>,
                headers => #{<<"authorization">> => <<"Bearer " ?TOKEN>>}},
    {ok, Passed, _} = weft_dashboard_guard:execute(Request, Env),
    ?assertEqual(yes, weft_dashboard_guard:may_act(Passed)),
    ?assertNot(has_token({Passed, Env, Config})).

%% A request is refused, an action fails, what is to be shown can not be, for a request and for a
%% websocket; processes are killed; and a request crashes as an argument.
the_token_is_not_logged_whatever_crashes_test() ->
    Logged = logged(fun() ->
        with_chaos(fun(Port) ->
            {500, _} = post("/api/chaos", [?JSON, ?RIGHT], ?BREAK, Port),
            {403, _} = post("/api/chaos", [?JSON, {"authorization", "Basic " ?TOKEN}], ?KILL, Port),
            {400, _, _} = request(Port, {"GET", "/api/model"}, [?RIGHT, {"no header", "x"}], <<>>),
            killed(weft_dashboard_model)
        end),
        with([{token, ?TOKEN}], seen({no, text}), fun(Port) ->
            {500, _, _} = request(Port, {"GET", "/api/model"}, [?RIGHT], <<>>),
            {ok, Browser} = open(Port, [?RIGHT]),
            ?assertEqual({close, 1011}, frame(Browser))
        end),
        crashed_as_an_argument()
    end),
    %% All of it was logged.
    [?assertNotEqual({[], Words}, {[Event || Event <- Logged, has(Words, Event)], Words})
     || Words <- [<<"failed: ~0tP">>, <<"child_terminated">>, <<"weft_json">>,
                  <<"crash_as_argument">>]],
    ?assertEqual([], [Event || Event <- Logged, has_token(Event)]).

%% Its supervisor gives up, and is started again.
however_often_its_process_ends_it_is_back_test_() ->
    {timeout, 60, fun() ->
        with([], fun(Port) ->
            [killed(weft_dashboard_model) || _ <- lists:seq(1, 5)],
            true = exit(whereis(weft_dashboard_model), kill),
            weft_test_nodes:until(fun() -> whereis(weft_dashboard_parts_sup) =:= undefined end),
            ?assertMatch({503, _}, get("/api/model", Port)),
            weft_test_nodes:until(fun() -> whereis(weft_dashboard_model) =/= undefined end),
            ?assertMatch({200, _}, get("/api/model", Port))
        end)
    end}.

killed(Name) ->
    Pid = whereis(Name),
    true = exit(Pid, kill),
    weft_test_nodes:until(fun() -> lists:member(whereis(Name), [undefined, Pid]) =:= false end).

%% Behind the guard of the dashboard.
crashed_as_an_argument() ->
    {ok, Config} = weft_dashboard_config:parse([{token, ?TOKEN}]),
    ok = weft_http_listener:start(?MODULE, #{ip => ?LOOPBACK, port => 0, what => "test"}, #{},
                                  #{env => #{access => weft_dashboard_guard:access(Config)},
                                    middlewares => [weft_dashboard_guard, ?MODULE]}),
    {500, _, _} = request(weft_http_listener:port(?MODULE), {"GET", "/crash_as_argument"}, [?RIGHT],
                          <<>>),
    ok = weft_http_listener:stop(?MODULE).

%% @private Is never given that, so it crashes, and the report has its arguments.
execute(#{method := <<"CRASH">>} = Request, _Env) -> {stop, Request}.

%% What is logged meanwhile, of all levels.
logged(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{level => all, config => self()}),
    ok = logger:set_primary_config(level, all),
    try Fun()
    after
        ok = logger:set_primary_config(level, Level),
        ok = logger:remove_handler(?MODULE)
    end,
    collected().

%% @private
log(Event, #{config := Test}) -> Test ! {logged, Event}.

collected() -> receive {logged, Event} -> [Event | collected()] after 0 -> [] end.

has_token(Term) -> has(<<?TOKEN>>, Term).

%% Whole terms are searched: what formatters leave out, too.
has(Bytes, Term) -> binary:match(term_to_binary(Term), Bytes) =/= nomatch.

%% --- steps ------------------------------------------------------------------------------------

with(Env, Fun) -> with(Env, seen(<<"late">>), Fun).

with(Env, Seen, Fun) -> run(parsed(Env), Seen, Fun).

with_chaos(Fun) ->
    Config = parsed([{token, ?TOKEN}]),
    run(Config#{chaos := breaks(self())}, seen(<<"late">>), Fun).

parsed(Env) ->
    {ok, Config} = weft_dashboard_config:parse([{port, 0} | Env]),
    Config.

%% Of another fault it knows nothing.
breaks(Test) -> fun({crash, _} = Fault) -> Test ! {broken, Fault}, ok end.

broken() -> receive {broken, Fault} -> Fault after 0 -> nothing end.

run(Config, Seen, Fun) ->
    {ok, _} = application:ensure_all_started(cowboy),
    {ok, Supervisor} = weft_dashboard:start(Config#{source => fun(_) -> {Seen, known} end}),
    try
        {ok, _} = weft_dashboard_model:current(),
        Fun(weft_dashboard:port())
    after weft_dashboard_made_up:stop(Supervisor)
    end.

seen(Text) ->
    #{nodes => #{a@h => silent, b@h => silent}, agents => #{}, groups => #{},
      alarms => [#{id => {busy, b@h, b@h}, severity => warning, text => Text}]}.

post(Path, Headers, Body, Port) -> json(request(Port, {"POST", Path}, Headers, Body)).

get(Path, Port) -> json(request(Port, Path)).

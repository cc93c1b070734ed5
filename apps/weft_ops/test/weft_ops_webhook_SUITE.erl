%% SPDX-License-Identifier: Apache-2.0
%% @doc A webhook with a real receiver: one that is well, slow, absent, angry, or refuses; the
%% alarms of a real node; and what is written to the log meanwhile.
-module(weft_ops_webhook_SUITE).
-behaviour(cowboy_handler).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [node_name/1, call/4, until/1]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([what_happens_to_an_alarm_is_told/1, a_slow_receiver/1, an_absent_receiver/1,
         an_angry_receiver/1, a_receiver_that_refuses/1, too_many_wait/1,
         without_its_secret_nothing_is_told/1, its_url_is_read_from_a_file/1, tls_is_verified/1,
         without_certificates_it_waits/1,
         a_client_that_ended_is_started_again/1, a_killed_process_comes_back/1,
         no_secret_is_in_the_log/1]).
-export([init/2, log/2]).

%% The first byte begins no character.
-define(WORDS, "kept to ourselves").
-define(SECRET, <<255, ?WORDS>>).
-define(PATH, "/unsaid").
-define(QUICK, #{timeout_ms => 10000, retry_ms => 20, retry_max_ms => 80, tries_max => 3}).
-define(PARTIAL, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false"]).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [what_happens_to_an_alarm_is_told, a_slow_receiver, an_absent_receiver, an_angry_receiver,
     a_receiver_that_refuses, too_many_wait, without_its_secret_nothing_is_told,
     its_url_is_read_from_a_file, tls_is_verified, without_certificates_it_waits,
     a_client_that_ended_is_started_again, a_killed_process_comes_back, no_secret_is_in_the_log].

init_per_suite(Config) ->
    [{ok, _} = application:ensure_all_started(App) || App <- [cowboy, inets, ssl]],
    File = filename:join(?config(priv_dir, Config), "secret"),
    ok = file:write_file(File, [?SECRET, $\n]),
    weft_test_nodes:begin_suite([{secret_file, File} | Config]).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_testcase(_Case, Config) ->
    Heard = ets:new(heard, [public, ordered_set]),
    Before = weft_ops_webhook:counts(),
    [{heard, Heard}, {before, Before} | Config].

end_per_testcase(_Case, _Config) ->
    _ = [gen_server:stop(Pid) || Pid <- [whereis(weft_ops_webhook)], is_pid(Pid)],
    ok = application:unset_env(weft_ops, webhook),
    ok = weft_ops_webhook:close(),
    ok = weft_http_listener:stop(?MODULE),
    weft_test_nodes:stop_all().

%% --- a real node ------------------------------------------------------------------------------

what_happens_to_an_alarm_is_told(Config) ->
    Url = url(receives(200, Config)),
    [A, B] = [node(Name, Url, Config) || Name <- [a, b]],
    until(fun() -> call(A, net_kernel, connect_node, [node_name(b)]) end),
    %% It reports to the agent, and is missed.
    until(fun() -> maps:is_key(node_name(b), maps:get(nodes, call(A, weft_ops, picture, []))) end),
    until(fun() -> call(A, weft_ops, alarms, []) =:= [] end),
    ok = weft_test_nodes:kill(B),
    Kinds = [unreachable, silent],
    Id = {Kind, Of, _} =
        until_one(fun() -> [I || #{id := {K, _, _} = I} <- call(A, weft_ops, alarms, []),
                                 lists:member(K, Kinds)] end),
    ok = call(A, weft_ops, acknowledge, [Id, "going to look"]),
    _ = node(b, Url, Config),
    Told = fun() -> [{Event, Comment} || #{<<"event">> := Event, <<"kind">> := K,
                                           <<"node">> := N, <<"comment">> := Comment}
                                             <- bodies(Config),
                                         {K, N} =:= {atom_to_binary(Kind), atom_to_binary(Of)}]
           end,
    until(fun() -> lists:member({<<"cleared">>, <<"going to look">>}, Told()) end),
    %% Before, while the nodes found each other, there may have been others.
    ?assertMatch([{<<"cleared">>, <<"going to look">>}, {<<"acknowledged">>, <<"going to look">>},
                  {<<"raised">>, null} | _], lists:reverse(Told())),
    ?assert(lists:all(fun({_, _, IsSigned}) -> IsSigned end, heard(Config))).

until_one(Fun) ->
    Ref = make_ref(),
    until(fun() ->
              [self() ! {Ref, One} || One <- lists:sublist(Fun(), 1)] =/= []
          end),
    receive {Ref, One} -> One end.

%% --- receivers --------------------------------------------------------------------------------

%% The agent does not wait for it. What it answers too late is told again.
a_slow_receiver(Config) ->
    Gate = receives({held, self()}, Config),
    ok = begin_hook(#{timeout_ms => 5000}, Gate, Config),
    {Us, ok} = timer:tc(fun() -> tell([1, 2]) end),
    ?assert(Us < 4000000),
    First = held(),
    until(fun() -> count(failed, Config) >= 1 end),
    First ! {answer, 200},
    [held() ! {answer, 200} || _ <- [1, 2]],
    until(fun() -> {count(sent, Config), count(queued, Config)} =:= {2, 0} end),
    ?assertEqual([1, 1, 2], told(Config)).

held() -> receive {held, Handler} -> Handler end.

%% It is told everything when it comes, in order.
an_absent_receiver(Config) ->
    Port = weft_test_nodes:free_port(),
    ok = begin_hook(#{}, Port, Config),
    ok = tell([1, 2, 3]),
    until(fun() -> count(failed, Config) > 5 end),
    ?assertEqual({0, 3}, {count(dropped, Config), count(queued, Config)}),
    Port = receives(200, Port, Config),
    until(fun() -> count(sent, Config) =:= 3 end),
    ?assertEqual([1, 2, 3], told(Config)).

%% It gets each event so often and no more, and the next one after it.
an_angry_receiver(Config) ->
    ok = begin_hook(#{}, receives(500, Config), Config),
    ok = tell([1, 2]),
    until(fun() -> count(dropped, Config) =:= 2 end),
    ?assertEqual({[1, 1, 1, 2, 2, 2], 6, 0},
                 {told(Config), count(failed, Config), count(sent, Config)}).

a_receiver_that_refuses(Config) ->
    ok = begin_hook(#{}, receives(403, Config), Config),
    ok = tell([1, 2]),
    until(fun() -> count(dropped, Config) =:= 2 end),
    ?assertEqual([1, 2], told(Config)).

%% One is under way, and three may wait.
too_many_wait(Config) ->
    Gate = receives({held, self()}, Config),
    ok = begin_hook(#{queue_max => 3, timeout_ms => 60000}, Gate, Config),
    ok = tell([1]),
    First = held(),
    ok = tell(lists:seq(2, 9)),
    until(fun() -> count(dropped, Config) =:= 5 end),
    ?assertEqual(4, count(queued, Config)),
    First ! {answer, 200},
    [held() ! {answer, 200} || _ <- [7, 8, 9]],
    until(fun() -> count(sent, Config) =:= 4 end),
    ?assertEqual([1, 7, 8, 9], told(Config)).

%% It may come later.
without_its_secret_nothing_is_told(Config) ->
    File = filename:join(?config(priv_dir, Config), "later"),
    ok = begin_hook(#{secret_file => File}, receives(200, Config), Config),
    ok = tell([1]),
    until(fun() -> count(failed, Config) > 2 end),
    ?assertEqual([], heard(Config)),
    ok = file:write_file(File, ?SECRET),
    until(fun() -> heard(Config) =/= [] end),
    ?assertMatch([{1, _, true}], heard(Config)).

%% It may come later, or be nonsense at first.
its_url_is_read_from_a_file(Config) ->
    File = filename:join(?config(priv_dir, Config), "url"),
    Port = receives(200, Config),
    ok = begin_hook(#{url => {file, File}}, Port, Config),
    ok = tell([1]),
    until(fun() -> count(failed, Config) > 1 end),
    ok = file:write_file(File, "127.0.0.1" ?PATH),
    Failed = count(failed, Config),
    until(fun() -> count(failed, Config) > Failed + 1 end),
    ok = file:write_file(File, [url(Port), 255]),
    More = count(failed, Config),
    until(fun() -> count(failed, Config) > More + 1 end),
    ok = file:write_file(File, [url(Port), $\n]),
    until(fun() -> count(sent, Config) =:= 1 end),
    ?assertMatch([{1, _, true}], heard(Config)).

%% A certificate of somebody else is none; with the right one for all it works.
tls_is_verified(Config) ->
    Dir = ?config(priv_dir, Config),
    [Ours, Others] = [weft_interop_certificates:options(filename:join(Dir, Name), ours, [ours])
                      || Name <- ["ours", "others"],
                         ok <- [filelib:ensure_dir(filename:join([Dir, Name, "x"]))]],
    File = fun(Key, Options) -> proplists:get_value(Key, Options) end,
    Port = listens(fun(Dispatch) ->
                       cowboy:start_tls(?MODULE, [{port, 0}, {ip, {127, 0, 0, 1}}
                                                  | [Option || {Key, _} = Option <- Ours,
                                                               lists:member(Key, [certfile,
                                                                                  keyfile])]],
                                        Dispatch)
                   end, 200, Config),
    ok = begin_hook(#{url => url("https", Port), cacert_file => File(cacertfile, Others)}, Port,
                    Config),
    ok = tell([1]),
    until(fun() -> count(failed, Config) > 2 end),
    ?assertEqual([], heard(Config)),
    ok = gen_server:stop(weft_ops_webhook),
    ok = begin_hook(#{url => url("https", Port), cacert_file => File(cacertfile, Ours)}, Port,
                    Config),
    ok = tell([2]),
    until(fun() -> told(Config) =:= [2] end).

%% --- inside -----------------------------------------------------------------------------------

%% As in an image that has none of the system's.
without_certificates_it_waits(Config) ->
    Module = pubkey_os_cacerts,
    {Module, Real, File} = code:get_object_code(Module),
    {ok, Module, None} = compile:forms([{attribute, 1, module, Module},
                                        {attribute, 1, export, [{get, 0}]},
                                        {function, 1, get, 0,
                                         [{clause, 1, [], [],
                                           [{call, 1, {atom, 1, error}, [{atom, 1, enoent}]}]}]}]),
    {module, Module} = code:load_binary(Module, "none", None),
    try
        Port = receives(200, Config),
        ok = begin_hook(#{url => url("https", Port)}, Port, Config),
        Hook = whereis(weft_ops_webhook),
        ok = tell([1, 2]),
        until(fun() -> count(failed, Config) > 2 end),
        ?assertEqual({Hook, 2}, {whereis(weft_ops_webhook), count(queued, Config)})
    after
        _ = code:purge(Module),
        {module, Module} = code:load_binary(Module, File, Real)
    end.

a_client_that_ended_is_started_again(Config) ->
    ok = begin_hook(#{}, receives(200, Config), Config),
    Hook = whereis(weft_ops_webhook),
    ok = inets:stop(httpc, weft_ops_webhook),
    ok = tell([1, 2]),
    until(fun() -> count(sent, Config) =:= 2 end),
    ?assertEqual({Hook, [1, 2]}, {whereis(weft_ops_webhook), told(Config)}).

%% What it has counted stays, and what waited is lost.
a_killed_process_comes_back(Config) ->
    Port = receives(200, Config),
    ok = begin_hook(#{}, Port, Config),
    ok = tell([1]),
    until(fun() -> count(sent, Config) =:= 1 end),
    Hook = whereis(weft_ops_webhook),
    stray = erlang:send(Hook, stray),
    ok = gen_server:cast(Hook, stray),
    ?assertMatch({error, _}, gen_server:call(Hook, stray)),
    ?assertEqual(Hook, whereis(weft_ops_webhook)),
    Ref = monitor(process, Hook),
    true = exit(Hook, kill),
    receive {'DOWN', Ref, process, _, killed} -> ok end,
    ok = tell([2]),
    ok = begin_hook(#{}, Port, Config),
    ok = tell([3]),
    until(fun() -> count(sent, Config) =:= 2 end),
    ?assertEqual([1, 3], told(Config)).

%% Neither when it fails, nor when it crashes, nor when somebody asks for its state.
no_secret_is_in_the_log(Config) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{level => all, config => #{to => self()}}),
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, all),
    try
        ok = begin_hook(#{}, receives(500, Config), Config),
        ok = tell([1]),
        until(fun() -> count(failed, Config) >= 1 end),
        Hook = whereis(weft_ops_webhook),
        Status = io_lib:format("~p", [sys:get_status(Hook)]),
        Ref = monitor(process, Hook),
        ok = gen_server:cast(Hook, {tell, nothing, 0}),
        receive {'DOWN', Ref, process, _, _} -> ok end,
        Said = [Status | logged()],
        ?assertMatch({match, _}, re:run(Said, "it answered 500")),
        ?assertMatch({match, _}, re:run(Said, "weft_ops_webhook")),
        [?assertEqual(nomatch, re:run(Said, Word)) || Word <- [?WORDS, "unsaid"]]
    after
        ok = logger:set_primary_config(level, Level),
        ok = logger:remove_handler(?MODULE)
    end.

log(#{level := _} = Event, #{config := #{to := Test}}) ->
    Test ! {logged, logger_formatter:format(Event, #{})}.

%% The report of the crash comes last, and from another process.
logged() ->
    receive
        {logged, Text} ->
            case re:run(Text, "crasher|terminating") of
                {match, _} -> [Text | rest()];
                nomatch -> [Text | logged()]
            end
    end.

rest() -> receive {logged, Text} -> [Text | rest()] after 300 -> [] end. % pacing: none is late

%% --- the receiver -----------------------------------------------------------------------------

receives(Answer, Config) -> receives(Answer, 0, Config).

receives(Answer, Port, Config) ->
    listens(fun(Protocol) ->
                cowboy:start_clear(?MODULE, [{port, Port}, {ip, {127, 0, 0, 1}}], Protocol)
            end, Answer, Config).

listens(Start, Answer, Config) ->
    State = {Answer, ?config(heard, Config)},
    Dispatch = cowboy_router:compile([{'_', [{?PATH, ?MODULE, State}]}]),
    {ok, _} = Start(#{env => #{dispatch => Dispatch}}),
    ranch:get_port(?MODULE).

%% @private
init(Request0, {Answer, Heard} = State) ->
    {ok, Body, Request} = cowboy_req:read_body(Request0),
    {ok, Said} = weft_json:decode(Body),
    [{_, Signature}] = weft_ops_webhook_message:headers(Body, ?SECRET) -- [{"user-agent", "weft"}],
    IsSigned = cowboy_req:header(<<"x-weft-signature">>, Request) =:= list_to_binary(Signature),
    true = ets:insert(Heard, {erlang:unique_integer([monotonic]), Said, IsSigned}),
    Status = case Answer of
                 {held, Test} ->
                     Test ! {held, self()},
                     receive {answer, Late} -> Late end;
                 _ -> Answer
             end,
    {ok, cowboy_req:reply(Status, #{}, <<>>, Request), State}.

heard(Config) ->
    [{about(Said), Said, IsSigned} || {_, Said, IsSigned} <- ets:tab2list(?config(heard, Config))].

bodies(Config) -> [Said || {_, Said, _} <- heard(Config)].

told(Config) -> [About || {About, _, _} <- heard(Config)].

about(#{<<"about">> := About}) ->
    try binary_to_integer(About) catch error:badarg -> About end.

%% --- steps ------------------------------------------------------------------------------------

begin_hook(Set, Port, Config) ->
    Webhook = maps:merge((?QUICK)#{url => url(Port),
                                   secret_file => ?config(secret_file, Config)}, Set),
    ok = application:set_env(weft_ops, webhook, Webhook),
    {ok, Hook} = weft_ops_webhook:start_link(),
    true = unlink(Hook),
    ok.

tell(Numbers) ->
    lists:foreach(fun(N) ->
                      weft_ops_webhook:tell({raised, #{id => {busy, node(), N}, text => <<"late">>,
                                                       severity => note, raised_ms => 1,
                                                       acknowledged => no}})
                  end, Numbers).

%% In this case.
count(queued, _Config) ->
    maps:get(queued, weft_ops_webhook:counts());
count(Name, Config) ->
    maps:get(Name, weft_ops_webhook:counts()) - maps:get(Name, ?config(before, Config), 0).

url(Port) -> url("http", Port).

url(Scheme, Port) -> lists:concat([Scheme, "://127.0.0.1:", Port, ?PATH]).

node(Name, Url, Config) ->
    Nodes = [node_name(N) || N <- [a, b]],
    Options = #{config => [{topology, {groups, #{g => Nodes}}}],
                args => ?PARTIAL ++ weft_ops_test_args:args([])},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    Env = [{sample_ms, 200}, {clear_ms, 400}, {grace_ms, #{default => 200, unreachable => 200}},
           {webhook, (?QUICK)#{url => Url, secret_file => ?config(secret_file, Config)}}],
    [ok = call(Node, application, set_env, [weft_ops, Key, Value]) || {Key, Value} <- Env],
    {ok, _} = call(Node, application, ensure_all_started, [weft_ops]),
    Node.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Strong buckets on real nodes: the guide as it stands there, disks that are lost one after
%% the other, and clients on all nodes while nodes are killed (SIGKILL), lose their disks, are
%% stopped and cut off. What clients asked and were told is in files that survive their node, and is
%% checked for linearizability.
%%
%% The faults are drawn from a seed, which is printed; SEED=<number> repeats them. FULL=1 makes
%% twenty histories with more faults.
-module(weft_kv_strong_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([the_guide/1, lost_disks_are_filled/1, histories_are_linearizable/1]).
-export([evaluate/1, clients/2, stop/0]).

-define(KEYS, [<<"x">>, <<"y">>, <<"z">>]).
%% Seldom used, so that what was forgotten of one is not soon covered by another write.
-define(COLD_KEYS, [<<"cold ", At>> || At <- lists:seq($a, $o)]).
-define(TIMEOUT_MS, 1000).
-define(CLIENTS, 2).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 4; _ -> 60 end}}].

all() -> [the_guide, lost_disks_are_filled, histories_are_linearizable].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

end_per_testcase(_Case, _Config) -> weft_test_nodes:stop_all().

%% --- the guide --------------------------------------------------------------------------------

the_guide(Config) ->
    [Environment, Use, Alone] = weft_guide:page("kv_strong.md", "erlang"),
    [{weft_ring, [{vnodes, [weft_kv_vnode]}]}, {weft_kv, [{buckets, #{accounts := Bucket}}]}] =
        parsed(Environment),
    ?assertMatch(#{voters := ['a@h1', 'b@h2', 'c@h3']}, Bucket),
    [A, B, C] = Refs = [start(Name, #{accounts => Bucket}, the_guide, Config) || Name <- [a, b, c]],
    weft_test_nodes:until(fun() -> are_voting(accounts, 16, Refs) end),
    %% Whatever hangs here later is seen.
    ?assert(is_pid(call(A, erlang, whereis, [weft_kv_strong_stalled]))),
    ok = call(A, ?MODULE, evaluate, [Use]),
    ?assertMatch({error, {only_with, {consistency, eventual}}},
                 call(C, weft_kv, list, [accounts])),
    ?assertMatch({ok, <<"50">>, _}, call(B, weft_kv, get, [accounts, <<"ann">>])),
    [ok = weft_test_nodes:kill(Ref) || Ref <- [B, C]],
    ok = call(A, ?MODULE, evaluate, [Alone]),
    %% Another list of voters is refused, where the bucket has been and by its voters.
    ok = call(A, application, stop, [weft_kv]),
    ok = call(A, application, set_env,
              [weft_kv, buckets, changed(call(A, application, get_env, [weft_kv, buckets]))]),
    {error, Refused} = call(A, application, ensure_all_started, [weft_kv]),
    ?assertNotEqual(nomatch, string:find(io_lib:format("~p", [Refused]),
                                         "strong_buckets_stay_as_they_were")).

changed({ok, #{accounts := Bucket}}) -> #{accounts => Bucket#{partitions => 4}}.

parsed(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% Runs the expressions of a block one after the other, as in a shell.
evaluate(Block) ->
    {ok, Tokens, _} = erl_scan:string(Block),
    evaluate(Tokens, [], []).

evaluate([], [], _Bindings) ->
    ok;
evaluate([{dot, _} = Dot | Tokens], Expression, Bindings) ->
    {ok, Parsed} = erl_parse:parse_exprs(lists:reverse([Dot | Expression])),
    {value, _, New} = erl_eval:exprs(Parsed, Bindings),
    evaluate(Tokens, [], New);
evaluate([Token | Tokens], Expression, Bindings) ->
    evaluate(Tokens, [Token | Expression], Bindings).

%% --- a lost disk ------------------------------------------------------------------------------

lost_disks_are_filled(Config) ->
    Buckets = #{box => bucket()},
    Start = fun(Name) -> start(Name, Buckets, lost, Config) end,
    [A, B, C] = Refs = [Start(Name) || Name <- [a, b, c]],
    weft_test_nodes:until(fun() -> are_voting(box, 2, Refs) end),
    %% Two of three know it, one of which loses that; the third one is away.
    ok = weft_test_nodes:kill(C),
    [weft_test_nodes:until(fun() -> is_put(A, Key) end) || Key <- ?KEYS ++ ?COLD_KEYS],
    B2 = lost(b, B, Start, Config),
    weft_test_nodes:until(fun() -> are(forgotten, box, 2, [B2]) end),
    [?assertMatch({error, {not_done, {no_quorum, #{failed := [_ | _]}}}},
                  call(B2, weft_kv, get, [box, Key])) || Key <- ?KEYS],
    %% With the third one it is filled by a majority, also with what that one does not know.
    C2 = Start(c),
    weft_test_nodes:until(fun() -> are_voting(box, 2, [A, B2, C2]) end),
    ok = weft_test_nodes:kill(A),
    has_all(C2),
    %% Each disk was lost once in the end.
    A2 = Start(a),
    weft_test_nodes:until(fun() -> are_voting(box, 2, [A2, B2, C2]) end),
    C3 = lost(c, C2, Start, Config),
    weft_test_nodes:until(fun() -> are_voting(box, 2, [C3]) end),
    A3 = lost(a, A2, Start, Config),
    weft_test_nodes:until(fun() -> are_voting(box, 2, [A3]) end),
    ok = weft_test_nodes:kill(B2),
    has_all(C3),
    %% What it was filled with is on its own disk.
    ok = weft_test_nodes:kill(A3),
    A4 = Start(a),
    weft_test_nodes:until(fun() -> are_voting(box, 2, [A4]) end),
    has_all(A4),
    ?assertEqual(length(?KEYS ++ ?COLD_KEYS), exported(A4, start)).

exported(Ref, Cursor) ->
    case call(Ref, weft_kv_export, page, [box, Cursor]) of
        {ok, Records, done} -> length(Records);
        {ok, Records, Next} -> length(Records) + exported(Ref, Next)
    end.

%% The same value, so that it does not matter whether it happens once more.
is_put(Ref, Key) ->
    case call(Ref, weft_kv, put, [box, Key, Key]) of
        {ok, _} -> true;
        {error, {Why, _}} when Why =:= not_done; Why =:= unknown -> false
    end.

has_all(Ref) ->
    [?assertMatch({ok, Key, _}, got(Ref, Key, 100)) || Key <- ?KEYS ++ ?COLD_KEYS].

%% Not to be found is an answer; any other error is a reason to ask again, as a disk may be slow.
got(Ref, Key, Tries) ->
    case call(Ref, weft_kv, get, [box, Key]) of
        {error, Reason} when Reason =/= not_found, Tries > 0 ->
            %% pacing: a client that has an error waits a little
            receive after 50 -> got(Ref, Key, Tries - 1) end;
        Answer -> Answer
    end.

%% Killed, and started with an empty directory.
lost(Name, Ref, Start, Config) ->
    ok = weft_test_nodes:kill(Ref),
    ok = file:del_dir_r(filename:join(dir(lost, Config), Name)),
    Start(Name).

%% --- histories --------------------------------------------------------------------------------

histories_are_linearizable(Config) ->
    Seed = weft_test_nodes:seed(),
    _ = rand:seed(exsss, Seed),
    {Count, Faults} = case os:getenv("FULL") of false -> {1, 3}; _ -> {20, 10} end,
    Sums = [history(N, Faults, Config) || N <- lists:seq(1, Count)],
    ct:pal("{operations, without an answer or unknown} of each history: ~w", [Sums]),
    ?assert(lists:min([Done || {Done, _} <- Sums]) > 100).

history(N, Faults, Config) ->
    Place = list_to_atom("history_" ++ integer_to_list(N)),
    Buckets = #{box => bucket()},
    Start = fun(Name) ->
                Ref = start(Name, Buckets, Place, Config),
                ok = call(Ref, ?MODULE, clients, [dir(Place, Config), ?CLIENTS]),
                {Name, Ref}
            end,
    Nodes = [Start(Name) || Name <- [a, b, c, d]],
    weft_test_nodes:until(fun() -> are_voting(box, 2, refs(Nodes, [a, b, c])) end),
    Kinds = [chaos, most, lose | [lists:nth(rand:uniform(5), [kill, pause, chaos, most, lose])
                                  || _ <- lists:seq(4, Faults)]],
    Left = lists:foldl(fun(Kind, Now) ->
                           after_fault(fault(Kind, Now, Start, dir(Place, Config)))
                       end, Nodes, Kinds),
    %% What is asked among working nodes has an answer.
    weft_test_nodes:until(fun() -> lists:all(fun is_served/1, [Ref || {_, Ref} <- Left]) end,
                          60000),
    [ok = call(Ref, ?MODULE, stop, []) || {_, Ref} <- Left],
    ok = weft_test_nodes:stop_all(),
    checked(dir(Place, Config)).

%% What a fault has done to a key shows only when somebody asks for it.
after_fault(Nodes) ->
    weft_test_nodes:until(fun() -> are_voting(box, 2, refs(Nodes, [a, b, c])) end),
    ok = lasting(1200),
    Nodes.

refs(Nodes, Names) -> [Ref || {Name, Ref} <- Nodes, lists:member(Name, Names)].

is_served(Ref) ->
    lists:all(fun(Key) ->
                  case call(Ref, weft_kv, get, [box, Key]) of
                      {ok, _, _} -> true;
                      {error, Reason} -> Reason =:= not_found
                  end
              end, ?KEYS).

fault(kill, Nodes, Start, _Dir) ->
    restarted([lists:nth(rand:uniform(3), [a, b, c])], Nodes, Start);
fault(most, Nodes, Start, _Dir) ->
    restarted([a, b, c] -- [lists:nth(rand:uniform(3), [a, b, c])], Nodes, Start);
fault(pause, Nodes, _Start, _Dir) ->
    [{_, Ref}] = [Pair || {Name, _} = Pair <- Nodes, Name =:= b],
    ok = weft_test_nodes:pause(Ref),
    ok = lasting(1500),
    ok = weft_test_nodes:continue(Ref),
    Nodes;
fault(lose, Nodes, Start, Dir) ->
    Name = lists:nth(rand:uniform(3), [a, b, c]),
    ct:pal("~w loses its disk", [Name]),
    [ok = weft_test_nodes:kill(Ref) || Ref <- refs(Nodes, [Name])],
    ok = file:del_dir_r(filename:join(Dir, Name)),
    lists:keydelete(Name, 1, Nodes) ++ [Start(Name)];
%% Of `weft_chaos', run by the node that is not killed.
fault(chaos, Nodes, _Start, _Dir) ->
    [A, B, C, D] = [weft_test_nodes:name(Ref) || {_, Ref} <- lists:sort(Nodes)],
    [One | _] = Others = [A, B, C],
    Alone = lists:nth(rand:uniform(3), Others),
    Schedule = [{0, {partition, [[Alone], [D | Others -- [Alone]]], 1000}},
                {1300, {cut, B, C, 700}}, {1400, {break, A, B}},
                {2200, {pause, One, 400}}, {2300, {cut_one_way, C, B, 500}}],
    [Runner] = refs(Nodes, [d]),
    {ok, #{done := Done, failed := Failed}} = call(Runner, weft_chaos, run, [Schedule]),
    %% A step for a node that just can not be reached fails.
    ct:pal("done ~0p~nfailed ~0p", [Done, Failed]),
    ?assert(length(Done) > 2),
    Nodes.

restarted(Names, Nodes, Start) ->
    ct:pal("~w killed", [Names]),
    [ok = weft_test_nodes:kill(Ref) || Ref <- refs(Nodes, Names)],
    ok = lasting(300),
    [Pair || {Name, _} = Pair <- Nodes, not lists:member(Name, Names)]
        ++ [Start(Name) || Name <- Names].

lasting(Ms) -> receive after Ms -> ok end. % pacing: how long a fault lasts

checked(Dir) ->
    Files = filelib:wildcard(filename:join(Dir, "*.events")),
    Events = lists:append([lines(File) || File <- Files]),
    Returns = maps:from_list([{Id, {Ns, Result}} || {return, Id, Result, Ns} <- Events]),
    Histories = [{Key, [Entry || {call, Id, K, Request, Ns} <- Events, K =:= Key,
                                 {Return, Result} <- [maps:get(Id, Returns, {never, never})],
                                 Entry <- weft_sim_register_model:entry(Request, Ns, Return,
                                                                        Result)]}
                 || Key <- ?KEYS ++ ?COLD_KEYS],
    lists:foreach(fun({Key, History}) ->
                      case weft_sim_linearizability:check(History, weft_sim_register_model,
                                                          not_found) of
                          ok -> ok;
                          {error, Where} ->
                              ct:fail("~s is not linearizable: ~0p~n~p",
                                      [Key, Where, lists:sort(History)])
                      end
                  end, Histories),
    All = lists:append([History || {_, History} <- Histories]),
    {length(All), length([never || {_, never, _} <- All])}.

%% The last line may be half of one.
lines(File) ->
    {ok, Bytes} = file:read_file(File),
    Whole = lists:droplast(binary:split(Bytes, <<"\n">>, [global])),
    [binary_to_term(base64:decode(Line)) || Line <- Whole].

%% --- clients, on the nodes --------------------------------------------------------------------

clients(Dir, Count) ->
    [begin
         Id = {node(), os:getpid(), N},
         File = lists:concat([node(), "_", os:getpid(), "_", N, ".events"]),
         Pid = spawn(fun() ->
                         {ok, Device} = file:open(filename:join(Dir, File), [raw, append]),
                         client(Device, Id, 1, #{})
                     end),
         true = register(client(N), Pid)
     end || N <- lists:seq(1, Count)],
    ok.

client(N) -> list_to_atom("client_" ++ integer_to_list(N)).

stop() ->
    lists:foreach(fun(N) ->
                      Ref = monitor(process, client(N)),
                      client(N) ! stop,
                      receive {'DOWN', Ref, process, _, normal} -> ok end
                  end, lists:seq(1, ?CLIENTS)).

client(Device, {_, _, _} = Client, N, Seen) ->
    Keys = case rand:uniform(3) of 1 -> ?COLD_KEYS; _ -> ?KEYS end,
    Key = lists:nth(rand:uniform(length(Keys)), Keys),
    Value = iolist_to_binary(io_lib:format("~0p ~b", [Client, N])),
    Request = case rand:uniform(16) of
                  1 -> {put, not_found};
                  Draw when Draw < 7 -> get;
                  Draw when Draw < 11 -> {put, Value};
                  _ -> {cas, maps:get(Key, Seen, not_found), Value}
              end,
    ok = noted(Device, {call, {Client, N}, Key, Request, os:system_time(nanosecond)}),
    Result = result(asked(Key, Request)),
    ok = noted(Device, {return, {Client, N}, Result, os:system_time(nanosecond)}),
    New = case {Result, Request} of
              {{ok, Found}, get} -> Seen#{Key => Found};
              {{error, {conflict, Found}}, _} -> Seen#{Key => Found};
              _ -> Seen#{Key => Value}
          end,
    %% pacing: a client has other things to do, too
    receive stop -> ok after 20 -> client(Device, Client, N + 1, New) end.

noted(Device, Event) ->
    file:write(Device, [base64:encode(term_to_binary(Event)), "\n"]).

asked(Key, get) -> weft_kv:get(box, Key);
asked(Key, {put, not_found}) -> weft_kv:delete(box, Key);
asked(Key, {put, Value}) -> weft_kv:put(box, Key, Value);
asked(Key, {cas, Expected, Value}) -> weft_kv:cas(box, Key, Expected, Value).

result({ok, Value, <<>>}) -> {ok, Value};
result({ok, <<>>}) -> ok;
result({error, not_found}) -> {ok, not_found};
result({error, Reason}) -> {error, Reason}.

%% --- nodes ------------------------------------------------------------------------------------

bucket() ->
    #{consistency => strong, voters => ['a@h1', 'b@h2', 'c@h3'], dir => "", partitions => 2,
      timeout_ms => ?TIMEOUT_MS}.

dir(Place, Config) -> filename:join(?config(priv_dir, Config), Place).

start(Name, Buckets0, Place, Config) ->
    Voters = [weft_test_nodes:node_name(Voter) || Voter <- [a, b, c]],
    Dir = filename:join(dir(Place, Config), Name),
    Buckets = maps:map(fun(_, Bucket) -> Bucket#{voters := Voters, dir := Dir} end, Buckets0),
    Args = lists:append([["-pa", weft_test_nodes:ebin(Module)]
                         || Module <- [?MODULE, weft_ring, weft_kv, weft_chaos]])
        ++ ["-kernel", "prevent_overlapping_partitions", "false"]
        ++ lists:append([["-" ++ atom_to_list(App), atom_to_list(Key),
                          lists:flatten(io_lib:format("~0p", [Value]))]
                         || {App, Key, Value} <- [{weft_ring, vnodes, [weft_kv_vnode]},
                                                  {weft_kv, buckets, Buckets}]]),
    Settings = #{args => Args, config => [{faults, true}, {resume_timeout_ms, 800},
                                          {keepalive_ms, 200}, {link_timeout_ms, 1500}]},
    Ref = weft_test_nodes:start(Name, Settings, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    ok = call(Ref, application, set_env, [weft_chaos, enabled, true]),
    Ref.

are_voting(Bucket, Partitions, Refs) -> are(voting, Bucket, Partitions, Refs).

are(Status, Bucket, Partitions, Refs) ->
    lists:all(fun(Ref) ->
                  lists:all(fun(P) ->
                                call(Ref, weft_kv_strong_acceptor, status, [Bucket, P]) =:= Status
                            end, lists:seq(0, Partitions - 1))
              end, Refs).

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 30000).

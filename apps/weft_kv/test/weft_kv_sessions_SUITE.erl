%% SPDX-License-Identifier: Apache-2.0
%% @doc Sessions outside of the store, while two of its nodes are killed (with FULL=1 each of them,
%% and more), with the requests that they coordinate. Each session adds numbers to sets, of which
%% several sessions write each, and reads what it has added: a read has to have all of its numbers
%% that were acknowledged before. In the end the sets have all that were. Where the last write wins
%% the same check fails.
-module(weft_kv_sessions_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([sessions_read_their_own_writes/1, where_the_last_write_wins_the_check_fails/1]).
-export([session/2, number/1, stop/1]).

-define(CLIENT, sessions_client).
-define(SESSIONS, 4).
-define(KEYS, 8).

suite() -> [{timetrap, {minutes, case is_long() of false -> 4; true -> 30 end}}].

all() -> [sessions_read_their_own_writes, where_the_last_write_wins_the_check_fails].

is_long() -> os:getenv("FULL") =/= false.

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% Both cases leave their nodes as they were.
end_per_testcase(_Case, Config) ->
    ?config(tc_status, Config) =:= ok orelse weft_test_nodes:stop_all(),
    ok.

sessions_read_their_own_writes(Config) ->
    Faults = [{kill, Name} || Name <- case is_long() of false -> [a, c]; true -> [a, b, c, d] end],
    More = [{Fault, Name} || is_long(), _ <- lists:seq(1, 5),
                             {_, Fault, Name} <- lists:sort([{rand:uniform(), Fault, Name}
                                                             || Fault <- [kill, pause],
                                                                Name <- [a, b, c, d]])],
    Outcome = during(sets, Faults ++ More, Config),
    #{acknowledged := Acknowledged, reads := Reads} = Outcome,
    ct:pal("~b writes acknowledged, ~b reads", [Acknowledged, Reads]),
    ?assert(Acknowledged > 0 andalso Reads > 0),
    ?assertMatch(#{lost := [], missed := []}, Outcome).

%% Of two writes at the same time one is lost, and its session may read that.
where_the_last_write_wins_the_check_fails(Config) ->
    #{lost := Lost, missed := Missed} = during(last, [{kill, b}], Config),
    ct:pal("~b writes lost, ~b reads without one's own", [length(Lost), length(Missed)]),
    ?assertNotEqual([], Lost),
    ?assertNotEqual([], Missed).

%% What became of what all sessions did while these faults happened, one after the other.
during(Bucket, Faults, Config) ->
    Names = [a, b, c, d],
    [Outside | Refs] = weft_test_nodes:shared([outside | Names],
                                              fun() -> store(Names, Config) end),
    Nodes = maps:from_list(lists:zip(Names, Refs)),
    Sessions = [{Outside, call(Outside, ?MODULE, session, [Bucket, Number])}
                || Number <- lists:seq(1, ?SESSIONS)],
    ok = more(Sessions),
    Last = lists:foldl(fun(Fault, Now) -> fault(Fault, Now, Sessions, Config) end, Nodes, Faults),
    Said = [call(Outside, ?MODULE, stop, [Pid]) || {_, Pid} <- Sessions],
    Found = maps:from_list([{Key, found(map_get(a, Last), Bucket, Key)}
                            || Key <- lists:usort([Key || #{added := Added} <- Said,
                                                          {Key, _} <- Added])]),
    All = lists:append([Added || #{added := Added} <- Said]),
    #{acknowledged => length(All),
      lost => [Number || {Key, Number} <- All, not lists:member(Number, map_get(Key, Found))],
      reads => lists:sum([Reads || #{reads := Reads} <- Said]),
      missed => lists:append([Missed || #{missed := Missed} <- Said])}.

%% With what was acknowledged on its disk it comes back. No other node is like that by then.
fault({kill, Name}, Nodes, Sessions, Config) ->
    ok = complete(maps:values(Nodes)),
    Dir = dir(map_get(Name, Nodes)),
    ok = weft_test_nodes:kill(map_get(Name, Nodes)),
    ok = more(Sessions),
    Again = started(Name, Dir, Config),
    ok = more(Sessions),
    Nodes#{Name := Again};
fault({pause, Name}, Nodes, Sessions, _Config) ->
    ok = weft_test_nodes:pause(map_get(Name, Nodes)),
    ok = more(Sessions),
    ok = weft_test_nodes:continue(map_get(Name, Nodes)),
    ok = more(Sessions),
    Nodes.

complete(Refs) ->
    weft_test_nodes:until(fun() ->
                              lists:all(fun(Ref) ->
                                            #{incomplete := Incomplete} =
                                                call(Ref, weft_kv_entropy, info, []),
                                            Incomplete =:= 0
                                        end, Refs)
                          end, 60000).

%% Each of them has done something meanwhile.
more(Sessions) ->
    Before = [{Session, so_far(Session) + 10} || Session <- Sessions],
    weft_test_nodes:until(fun() ->
                              lists:all(fun({Session, Least}) -> so_far(Session) >= Least end,
                                        Before)
                          end, 90000).

so_far({Ref, Pid}) -> call(Ref, ?MODULE, number, [Pid]).

%% Until the node that was started last answers.
found(Ref, Bucket, Key) ->
    weft_test_nodes:until(fun() ->
                              case call(Ref, weft_kv, get, [Bucket, Key, #{r => 3}]) of
                                  {error, not_found} -> true;
                                  {error, _} -> false;
                                  _ -> true
                              end
                          end, 60000),
    numbers(call(Ref, weft_kv, get, [Bucket, Key])).

numbers({ok, Value, _}) -> binary_to_term(Value);
numbers({siblings, Values, _}) -> lists:append([binary_to_term(Value) || Value <- Values]);
numbers({error, not_found}) -> [].

%% --- sessions, on the node outside ------------------------------------------------------------

session(Bucket, Session) ->
    spawn(fun() ->
              goes_on(#{bucket => Bucket, session => Session, added => [], reads => 0,
                        missed => []}, 1)
          end).

number(Pid) ->
    {dictionary, Dictionary} = process_info(Pid, dictionary),
    proplists:get_value(number, Dictionary, 0).

stop(Pid) ->
    Ref = make_ref(),
    Pid ! {stop, self(), Ref},
    receive {Ref, State} -> State after 20000 -> error(process_info(Pid)) end.

goes_on(#{session := Session, added := Added} = State, N) ->
    _ = put(number, N),
    Key = integer_to_binary(N * Session rem ?KEYS),
    true = added(State, Key, {Session, N}, 200),
    Next = looked(Key, State#{added := [{Key, {Session, N}} | Added]}),
    receive {stop, From, Ref} -> From ! {Ref, Next}
    after 0 -> goes_on(Next, N + 1)
    end.

%% Whoever tries again adds the same number.
added(_, _, _, 0) ->
    false;
added(#{bucket := Bucket} = State, Key, Number, Tries) ->
    Add = fun(Values) ->
              term_to_binary(lists:usort([Number | lists:append([binary_to_term(Value)
                                                                 || Value <- Values])]))
          end,
    case weft_kv_client:update(?CLIENT, Bucket, Key, Add) of
        {ok, _} -> true;
        %% pacing: a client that has an error waits a little
        {error, _} -> receive after 50 -> added(State, Key, Number, Tries - 1) end
    end.

%% A read that has no answer says nothing.
looked(Key, #{bucket := Bucket, added := Added, reads := Reads, missed := Missed} = State) ->
    case weft_kv_client:get(?CLIENT, Bucket, Key) of
        {error, Reason} when Reason =/= not_found -> State;
        Answer ->
            Own = [Number || {Of, Number} <- Added, Of =:= Key],
            State#{reads := Reads + 1,
                   missed := [{Key, Number} || Number <- Own -- numbers(Answer)] ++ Missed}
    end.

%% --- nodes ------------------------------------------------------------------------------------

%% A node outside, and those of the store.
store(Names, Config) ->
    Dir = filename:join(?config(priv_dir, Config),
                        integer_to_list(erlang:unique_integer([positive]))),
    Refs = [A | Others] = [started(Name, filename:join(Dir, Name), Config) || Name <- Names],
    ok = call(A, weft_ring, create, []),
    ok = joined(A, Others, Refs),
    Args = weft_kv_test_args:args(?MODULE, []),
    [weft_kv_test_outside:start(?CLIENT, #{args => Args, config => link()}, Refs, Config) | Refs].

%% Where a node has its files.
dir(Ref) ->
    {ok, Ring} = call(Ref, application, get_env, [weft_ring, dir]),
    filename:dirname(Ring).

started(Name, Dir, Config) ->
    Options = #{n => 3, nodes => 2, pr => 2, pw => 2, timeout_ms => 2000, retries => 10},
    Keys = [{weft_ring, dir, filename:join(Dir, "ring")}, {weft_ring, partitions, 16},
            {weft_ring, sync_ms, 300},
            {weft_ring, vnodes, [{weft_kv_vnode, #{dir => filename:join(Dir, "kv")}}]},
            {weft_kv, buckets, #{sets => Options, last => Options#{siblings => false}}}],
    Args = weft_kv_test_args:args(?MODULE, Keys),
    Ref = weft_test_nodes:start(Name, #{args => Args, config => link()}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

%% A node that was killed is soon known to be gone.
link() -> [{resume_timeout_ms, 800}, {keepalive_ms, 200}, {link_timeout_ms, 1500}].

joined(A, Others, All) ->
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]) || Ref <- Others],
    weft_test_nodes:until(fun() ->
                              lists:all(fun(Ref) ->
                                            Name = weft_test_nodes:name(Ref),
                                            call(A, weft_ring, stage, [Name, join]) =:= ok
                                        end, Others)
                          end, 60000),
    {ok, Plan} = call(A, weft_ring, plan, []),
    ok = call(A, weft_ring, commit, [Plan]),
    weft_test_nodes:until(fun() -> is_settled(All) end, 90000).

is_settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    #{moving := Moving, owned := Owned} = hd(Statuses),
    length(lists:usort(Statuses)) =:= 1 andalso Moving =:= 0
        andalso map_size(Owned) =:= length(Refs).

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 30000).

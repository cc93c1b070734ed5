%% SPDX-License-Identifier: Apache-2.0
%% @doc The store on real nodes: the examples of its guide as they stand there, and writers who note
%% what was acknowledged while nodes join, leave and are killed.
-module(weft_kv_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).
-export([the_guide/1, nothing_acknowledged_is_lost/1, all_nodes_die_one_after_the_other/1,
         all_nodes_die_at_once/1, a_hint_reaches_its_owner/1,
         what_was_deleted_stays_so_with_another_n/1, one_node_that_hangs/1,
         schedules_of_faults/1]).
-export([asked/2, evaluate/2, count/2, count_outside/2, stop/1, number/1, noted/2, copies/1]).

-define(KEYS, 60).
-define(SCHEDULES, 30).
-define(CLIENT, outside_client).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 4; _ -> 120 end}}].

all() -> [the_guide, nothing_acknowledged_is_lost, all_nodes_die_one_after_the_other,
          all_nodes_die_at_once, a_hint_reaches_its_owner, one_node_that_hangs]
        ++ [Case || os:getenv("FULL") =/= false,
                    Case <- [what_was_deleted_stays_so_with_another_n, schedules_of_faults]].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% The case after that one has the same three nodes, with a bucket of its own.
end_per_testcase(Case, Config) ->
    case {Case, ?config(tc_status, Config)} of
        {a_hint_reaches_its_owner, ok} -> ok;
        _ -> weft_test_nodes:stop_all()
    end.

%% --- the guide --------------------------------------------------------------------------------

the_guide(Config) ->
    %% Those on disk are what weft_kv_durability_SUITE is about.
    [Environment, Ring, Use, StoreKeys, Carts, Update, OnDisk, Durability, Client] =
        weft_guide:page("kv.md", "erlang"),
    [{weft_ring, RingKeys}, {weft_kv, KvKeys}] = parsed(Environment),
    {weft_kv, [{buckets, Store}]} = parsed([StoreKeys, "."]),
    [{buckets, Cache}] = KvKeys,
    {vnodes, [{weft_kv_vnode, #{dir := _}}]} = parsed([OnDisk, "."]),
    {weft_kv, [{buckets, #{sessions := #{durability := memory}}}]} = parsed([Durability, "."]),
    Keys = [{weft_ring, lists:keydelete(dir, 1, RingKeys)},
            {weft_kv, [{buckets, maps:merge(Cache, Store)}]}],
    [A, B] = Refs = [start(Name, Keys, Config) || Name <- [a, b]],
    ?assertEqual({error, no_ring}, call(A, weft_kv, get, [pages, <<"/index">>])),
    [Create, Join | Rest] = lines(Ring, Refs),
    _ = on(A, [Create]),
    _ = on(B, [Join]),
    weft_test_nodes:until(fun() -> is_joining(A, B) end),
    _ = on(A, Rest),
    weft_test_nodes:until(fun() -> settled(Refs) end),
    _ = on(A, lines(Use, Refs)),
    _ = on(B, lines(Carts, Refs)),
    _ = on(A, lines(Update, Refs)),
    _ = on(A, lines(Client, Refs)),
    bad_input(A).

bad_input(A) ->
    [?assertEqual({Arguments, {error, Reason}}, {Arguments, call(A, weft_kv, put, Arguments)})
     || {Arguments, Reason} <-
            [{[nothing, <<"k">>, <<"v">>], unknown_bucket},
             {[pages, <<>>, <<"v">>], bad_key},
             {[pages, key, <<"v">>], bad_key},
             {[pages, <<0:32776>>, <<"v">>], bad_key},
             {[pages, <<"k">>, value], bad_value},
             {[pages, <<"k">>, <<0:8388616>>], {too_large, 1048576}},
             {[pages, <<"k">>, <<"v">>, #{context => <<"mine">>}], bad_context},
             {[pages, <<"k">>, <<"v">>, #{w => 3}], {bad_option, {w, 3, {from, 1, to, 2}}}},
             {[pages, <<"k">>, <<"v">>, #{n => 3}], {unknown_option, n}}]],
    Put = fun(Key, Value, Options) -> call(A, weft_kv, put, [carts, Key, Value, Options]) end,
    {ok, Context} = Put(<<"k">>, <<"0">>, #{}),
    ?assertEqual({error, bad_context}, Put(<<"other">>, <<"v">>, #{context => Context})),
    [{ok, _} = Put(<<"k">>, integer_to_binary(N), #{}) || N <- lists:seq(1, 99)],
    ?assertEqual({error, {too_many_siblings, 100}}, Put(<<"k">>, <<"100">>, #{})),
    {siblings, Values, Seen} = call(A, weft_kv, get, [carts, <<"k">>]),
    ?assertEqual(100, length(Values)),
    {ok, _} = Put(<<"k">>, <<"v">>, #{context => Seen}),
    ?assertMatch({ok, <<"v">>, _}, call(A, weft_kv, get, [carts, <<"k">>])).

parsed(Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten([Text])),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

%% The expressions of a block, with the names that the nodes have here.
lines(Block, [A, B]) ->
    Named = lists:foldl(fun({Name, Ref}, Text) ->
                            string:replace(Text, Name, atom_to_list(weft_test_nodes:name(Ref)), all)
                        end, Block, [{"a@h1", A}, {"b@h2", B}]),
    expressions(lists:flatten(Named)).

expressions(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    split(Tokens, []).

split([], []) -> [];
split([{dot, _} = Dot | Tokens], Expression) ->
    [lists:reverse([Dot | Expression]) | split(Tokens, [])];
split([Token | Tokens], Expression) -> split(Tokens, [Token | Expression]).

on(Ref, Expressions) -> call(Ref, ?MODULE, evaluate, [Expressions, []]).

evaluate(Expressions, Bindings) ->
    lists:foldl(fun(Tokens, B) ->
                    {ok, Parsed} = erl_parse:parse_exprs(Tokens),
                    {value, _, New} = erl_eval:exprs(Parsed, B),
                    New
                end, Bindings, Expressions).

%% --- under load -------------------------------------------------------------------------------

%% Each key has a set of numbers, to which writers on each node add. In the end the set has all of
%% which the writer was told that they were added.
nothing_acknowledged_is_lost(Config) ->
    Keys = [{weft_ring, [{partitions, 16}, {sync_ms, 300}, {handoff_items, 5},
                         {vnodes, [weft_kv_vnode]}]},
            {weft_kv, [{buckets, #{sets => #{n => 3, nodes => 2, timeout_ms => 2000}}}]}],
    [A, B, C, D] = Refs = [start(Name, Keys, Config) || Name <- [a, b, c, d]],
    ok = call(A, weft_ring, create, []),
    changed(A, [B, C, D], Refs, join),
    Writers = [{Ref, call(Ref, ?MODULE, count, [Number, ?KEYS])}
               || {Number, Ref} <- [{1, A}, {2, B}, {3, C}]],
    %% One is killed, and comes back with nothing but its ring.
    written(A, Writers, 30),
    ok = weft_test_nodes:kill(D),
    written(A, Writers, 30),
    D2 = start(d, Keys, Config),
    written(A, Writers, 30),
    %% 4, 3, 2 nodes: the others hold all there is.
    changed(A, [D2], [A, B, C], leave),
    changed(A, [C], [A, B], leave),
    Added = lists:append([call(Ref, ?MODULE, stop, [Pid], 30000) || {Ref, Pid} <- Writers]),
    Found = found(A),
    Lost = [Number || {Key, Number} <- Added, not lists:member(Number, maps:get(Key, Found, []))],
    ct:pal("~b writes acknowledged", [length(Added)]),
    ?assertEqual([], Lost),
    {ok, Listed} = call(B, weft_kv, list, [sets]),
    ?assertEqual(lists:usort([Key || {Key, _} <- Added]), lists:sort(Listed)).

%% What was acknowledged was on disk.
all_nodes_die_at_once(Config) ->
    Keys = fun(Name) ->
               Dir = filename:join([?config(priv_dir, Config), "kv", atom_to_list(Name)]),
               [{weft_ring, [{partitions, 8}, {sync_ms, 300}, {handoff_items, 5},
                             {vnodes, [{weft_kv_vnode, #{dir => Dir}}]}]},
                {weft_kv, [{buckets, #{sets => #{n => 2, w => 1, r => 2}}}]}]
           end,
    [A, B] = Refs = [start(Name, Keys(Name), Config) || Name <- [a, b]],
    ok = call(A, weft_ring, create, []),
    changed(A, [B], Refs, join),
    Writers = [{Ref, call(Ref, ?MODULE, noted, [Number, ?config(priv_dir, Config)])}
               || {Number, Ref} <- [{1, A}, {2, B}]],
    weft_test_nodes:until(fun() -> so_far(Writers) > 100 end, 60000),
    [ok = weft_test_nodes:kill(Ref) || Ref <- Refs],
    [A2, B2] = Again = [start(Name, Keys(Name), Config) || Name <- [a, b]],
    weft_test_nodes:until(fun() ->
                              call(A2, weft_kv, get, [sets, <<"x">>, #{r => all}])
                                  =:= {error, not_found} andalso settled(Again)
                          end),
    Noted = lists:append([acknowledged(Number, Config) || Number <- [1, 2]]),
    ?assert(length(Noted) >= 90),
    ?assertEqual([], [Key || Key <- Noted, not is_there(B2, Key)]),
    %% And what is left of a node that leaves is nothing.
    changed(A2, [A2], [B2], leave),
    weft_test_nodes:until(fun() ->
                              [] =:= filelib:wildcard(filename:join([?config(priv_dir, Config),
                                                                     "kv", "a", "*.log"]))
                          end),
    ?assertEqual([], [Key || Key <- Noted, not is_there(B2, Key)]).

%% Not to be found is an answer; any other error is a reason to ask again, as just after a start.
is_there(Ref, Key) -> is_there(Ref, Key, 100).

is_there(Ref, Key, Tries) ->
    case call(Ref, weft_kv, get, [sets, Key]) of
        {ok, Key, _} -> true;
        {error, Reason} when Reason =/= not_found, Tries > 0 ->
            %% pacing: a client that has an error waits a little
            receive after 50 -> is_there(Ref, Key, Tries - 1) end;
        Other ->
            ct:pal("~ts: ~p", [Key, Other]),
            false
    end.

%% A writer notes what was acknowledged where it is found after a kill.
noted(Number, Dir) ->
    spawn(fun() ->
              {ok, File} = file:open(notes(Number, Dir), [raw, append]),
              noting(Number, 1, File)
          end).

noting(Number, N, File) ->
    _ = put(number, N),
    Key = iolist_to_binary(io_lib:format("~b.~b", [Number, N])),
    case weft_kv:put(sets, Key, Key) of
        {ok, _} -> ok = file:write(File, [Key, "\n"]);
        {error, _} -> ok
    end,
    noting(Number, N + 1, File).

acknowledged(Number, Config) ->
    {ok, Bytes} = file:read_file(notes(Number, ?config(priv_dir, Config))),
    binary:split(Bytes, <<"\n">>, [global, trim]).

notes(Number, Dir) -> filename:join(Dir, "notes" ++ integer_to_list(Number)).

%% Nobody reads a key, and each node loses all it had, when the one before has it again.
all_nodes_die_one_after_the_other(Config) ->
    Names = case os:getenv("FULL") of false -> [a, b]; _ -> [a, b, c] end,
    Keys = [{weft_ring, [{partitions, 8}, {sync_ms, 300}, {handoff_items, 50},
                         {vnodes, [weft_kv_vnode]}]},
            {weft_kv, [{buckets, #{sets => #{n => length(Names), nodes => 2, retries => 10}}},
                       {entropy_ms, 5}]}],
    [A, B | _] = Refs = [start(Name, Keys, Config) || Name <- Names],
    ok = call(A, weft_ring, create, []),
    changed(A, tl(Refs), Refs, join),
    Written = [integer_to_binary(N) || N <- lists:seq(1, 150)],
    [{ok, _} = call(B, weft_kv, put, [sets, Key, Key]) || Key <- Written],
    {ok, _} = call(A, weft_kv, delete, [sets, <<"7">>]),
    Again = lists:foldl(fun({Name, Ref}, Nodes) ->
                            ok = weft_test_nodes:kill(Ref),
                            New = start(Name, Keys, Config),
                            Now = [New | lists:delete(Ref, Nodes)],
                            weft_test_nodes:until(fun() -> complete(Now) end),
                            Now
                        end, Refs, lists:zip(Names, Refs)),
    {ok, Found} = call(hd(Again), weft_kv, list, [sets]),
    ?assertEqual(lists:sort(Written -- [<<"7">>]), lists:sort(Found)),
    ?assert(lists:sum([maps:get(repaired, call(Ref, weft_kv_entropy, info, []))
                       || Ref <- Again]) > 100).

%% All pairs were alike, one after the other.
complete(Refs) ->
    lists:all(fun(Ref) ->
                  #{alike := Alike, pairs := Pairs} = call(Ref, weft_kv_entropy, info, []),
                  Pairs > 0 andalso Alike > 2 * Pairs
              end, Refs).

%% What others take in place of an owner that is away is brought to it, by nothing else: copies are
%% not compared, and nobody reads.
a_hint_reaches_its_owner(Config) ->
    [A, B, C] = three_that_compare_nothing(Config),
    Others = stats(objects, [A, B]),
    ok = weft_test_nodes:kill(C),
    Gone = weft_test_nodes:name(C),
    weft_test_nodes:until(fun() ->
                              not lists:member(Gone, call(A, erlang, nodes, [])
                                                         ++ call(B, erlang, nodes, []))
                          end),
    Written = [integer_to_binary(N) || N <- lists:seq(1, 60)],
    [{ok, _} = call(A, weft_kv, put, [sets, Key, Key]) || Key <- Written],
    Owed = [Place || {_, Node, _} = Place <- lists:append([owners(A, Key) || Key <- Written]),
                     Node =:= Gone],
    ?assert(length(Owed) > 20),
    %% For each copy that it would have had.
    weft_test_nodes:until(fun() -> hints([A, B]) =:= length(Owed) end),
    %% It has nothing when it is back but its ring.
    C2 = start(c, that_compare_nothing(), Config),
    weft_test_nodes:until(fun() -> hints([A, B]) =:= 0 end),
    ?assertEqual([], [Key || Key <- Written, {P, Node, primary} <- owners(A, Key), Node =:= Gone,
                             call(C2, ?MODULE, copies, [{P, Key}]) =/= [Key]]),
    %% And who stood in keeps nothing of it.
    weft_test_nodes:until(fun() ->
                              stats(objects, [A, B, C2]) =:= Others + 2 * length(Written)
                          end).

three_that_compare_nothing(Config) ->
    Names = [a, b, c],
    weft_test_nodes:shared(Names, fun() ->
        [A | Others] = Refs = [start(Name, that_compare_nothing(), Config) || Name <- Names],
        ok = call(A, weft_ring, create, []),
        changed(A, Others, Refs, join),
        Refs
    end).

that_compare_nothing() ->
    Buckets = #{sets => #{n => 2, w => 2, retries => 10}, slow => #{n => 3, timeout_ms => 8000}},
    [{weft_ring, [{partitions, 8}, {sync_ms, 300}, {vnodes, [weft_kv_vnode]}]},
     {weft_kv, [{buckets, Buckets}, {requests_max, 5}, {entropy_ms, infinity}]}].

%% Two of three replicas answer, and the third one hangs for all that time: the others serve as
%% before, though far more requests wait for it than may run, and than may wait.
one_node_that_hangs(Config) ->
    [A, _, C] = three_that_compare_nothing(Config),
    Names = [integer_to_binary(N) || N <- lists:seq(1, 60)],
    {AllFirst, Others} = lists:partition(fun(Name) ->
                                             {_, Owner, _} = hd(owners(A, slow, Name, 3)),
                                             Owner =:= weft_test_nodes:name(C)
                                         end, Names),
    First = lists:sublist(AllFirst, 6),
    ?assert(length(First) =:= 6 andalso length(Others) > 20),
    ok = weft_test_nodes:pause(C),
    ?assertEqual([], call(A, ?MODULE, asked, [put, Others])),
    %% For the one that would be written first a write waits two seconds, and the next ones do not.
    {Us, []} = timer:tc(fun() -> call(A, ?MODULE, asked, [put, First]) end),
    ?assert(Us >= 2_000_000 andalso Us < 6_000_000, Us),
    ?assertEqual([], call(A, ?MODULE, asked, [get, First ++ Others])),
    #{running := 0, lingering := Lingering} = call(A, weft_kv_stats, read, []),
    ?assert(Lingering >= 1 andalso Lingering =< 5),
    ok = weft_test_nodes:continue(C),
    weft_test_nodes:until(fun() -> stats(lingering, [A]) =:= 0 end).

%% What was not answered as it should be, of one request after the other.
asked(put, Names) ->
    [{Name, Error} || Name <- Names, {error, _} = Error <- [weft_kv:put(slow, Name, Name)]];
asked(get, Names) ->
    [{Name, Answer} || Name <- Names, Answer <- [weft_kv:get(slow, Name)],
                       not is_value(Name, Answer)].

is_value(Name, {ok, Name, _}) -> true;
is_value(_, _) -> false.

owners(Ref, Key) -> owners(Ref, sets, Key, 2).

owners(Ref, Bucket, Key, N) ->
    {ok, Owners} = call(Ref, weft_ring, primaries, [{atom_to_binary(Bucket), Key}, N]),
    Owners.

hints(Refs) -> stats(hints, Refs).

stats(What, Refs) ->
    lists:sum([map_get(What, call(Ref, weft_kv_stats, read, [])) || Ref <- Refs]).

%% What this very node has of a key, in this partition.
copies({P, Key}) ->
    {ok, KeyPartition} = weft_ring:partition({<<"sets">>, Key}),
    Kind = #{n => 2, evict => false, siblings => true},
    {ok, {ok, Object}} = weft_vnode:ask(weft_kv_vnode, {P, node(), primary},
                                        {KeyPartition, sets, Key}, {read, Kind, primary}, 5000),
    weft_kv_object:values(Object).

%% With a smaller `n' there is a copy that does not hear of it. It may not bring it back: by
%% comparison, as another bucket has the former `n', nor when that is the bucket's own again.
what_was_deleted_stays_so_with_another_n(Config) ->
    Buckets = fun(N) -> #{sets => #{n => N, retries => 10}, others => #{n => 3}} end,
    Keys = [{weft_ring, [{partitions, 8}, {sync_ms, 300},
                         {vnodes, [{weft_kv_vnode, #{grace_ms => 3000}}]}]},
            {weft_kv, [{buckets, Buckets(3)}, {entropy_ms, 5}]}],
    [A, B, C] = Refs = [start(Name, Keys, Config) || Name <- [a, b, c]],
    ok = call(A, weft_ring, create, []),
    changed(A, [B, C], Refs, join),
    Written = [integer_to_binary(N) || N <- lists:seq(1, 60)],
    [{ok, _} = call(A, weft_kv, put, [sets, Key, Key, #{w => all}]) || Key <- Written],
    weft_test_nodes:until(fun() -> stats(objects, Refs) =:= 180 end),
    %% The third node may still ask for three.
    [ok = configured(Ref, Buckets(2)) || Ref <- [A, B]],
    ok = looked_for_left_over([A, B]),
    ?assertEqual([], [Key || Key <- Written,
                             {P, Node, primary} <- owners(A, sets, Key, 3),
                             Ref <- Refs, weft_test_nodes:name(Ref) =:= Node,
                             call(Ref, ?MODULE, copies, [{P, Key}]) =/= [Key]]),
    ok = configured(C, Buckets(2)),
    ok = looked_for_left_over(Refs),
    weft_test_nodes:until(fun() -> stats(objects, Refs) =:= 120 end),
    [{ok, _} = call(A, weft_kv, delete, [sets, Key, #{w => all}]) || Key <- Written],
    weft_test_nodes:until(fun() -> stats(objects, Refs) =:= 0 end),
    [ok = configured(Ref, Buckets(3)) || Ref <- Refs],
    weft_test_nodes:until(fun() -> complete(Refs) end),
    ?assertEqual({{ok, []}, 0}, {call(A, weft_kv, list, [sets]), stats(objects, Refs)}).

%% The partitions go on.
configured(Ref, Buckets) ->
    ok = call(Ref, application, stop, [weft_kv]),
    ok = call(Ref, application, set_env, [weft_kv, buckets, Buckets]),
    call(Ref, application, start, [weft_kv]).

%% All partitions of these nodes, now and not some seconds later.
looked_for_left_over(Refs) ->
    [round = call(Ref, erlang, send, [weft_kv_left_over, round]) || Ref <- Refs],
    weft_test_nodes:until(fun() ->
                              [] =:= [Ref || Ref <- Refs,
                                             {_, _, {[_ | _], _, _}} <-
                                                 [call(Ref, sys, get_state, [weft_kv_left_over])]]
                          end).

%% --- schedules --------------------------------------------------------------------------------

%% The long form: on disk, nodes are killed, stand still, are cut off from each other, lose the end
%% of what they have written, join and leave, in an order by chance. Writers are on a node outside,
%% so that each node dies with requests that it coordinates. A node that joins or leaves is not
%% waited for: it dies, or one of those from which it gets what moves, or their link is cut.
%% SEED=<number> tries only that one.
schedules_of_faults(Config) ->
    Seeds = case os:getenv("SEED") of
                false -> lists:seq(1, ?SCHEDULES);
                Seed -> [list_to_integer(Seed)]
            end,
    lists:foreach(fun(Seed) ->
                      schedule(Seed, Config),
                      ok = weft_test_nodes:stop_all()
                  end, Seeds).

schedule(Seed, Config) ->
    _ = rand:seed(exsss, Seed),
    Start = fun(Name) -> on_disk(Name, Seed, Config) end,
    Refs = [A | _] = [Start(Name) || Name <- [a, b, c, d]],
    ok = call(A, weft_ring, create, []),
    changed(A, tl(Refs), Refs, join),
    Outside = weft_kv_test_outside:start(?CLIENT, #{args => weft_kv_test_args:args(?MODULE, []),
                                                    config => link()}, Refs, Config),
    Writers = [{Outside, call(Outside, ?MODULE, count_outside, [Number, ?KEYS])}
               || Number <- [1, 2]],
    Faults = shuffled([{kill, a}, {kill, b}, {pause, b}, {kill, c}, {pause, c}, {kill, d},
                       {pause, d}, {cut, c, d}, {cut, b, c}, {cut, a, d}, {tear, c},
                       {midst, join}]) ++ [{midst, leave}],
    Nodes = lists:foldl(fun(Fault, Now) -> fault(Fault, Now, Writers, Start) end,
                        maps:from_list(lists:zip([a, b, c, d], Refs)), Faults),
    Members = [Ref || {Name, Ref} <- maps:to_list(Nodes), Name =/= e],
    weft_test_nodes:until(fun() -> owns_nothing(maps:get(e, Nodes)) andalso settled(Members) end,
                          120000),
    Added = lists:append([call(Ref, ?MODULE, stop, [Pid], 30000) || {Ref, Pid} <- Writers]),
    %% What was torn off comes back by comparison.
    Before = compared(Members),
    weft_test_nodes:until(fun() -> alike(Members, Before) end, 120000),
    Found = found(map_get(a, Nodes)),
    ct:pal("schedule ~b: ~p: ~b writes acknowledged", [Seed, Faults, length(Added)]),
    ?assertEqual({Seed, []}, {Seed, [Number || {Key, Number} <- Added,
                                               not lists:member(Number,
                                                                maps:get(Key, Found, []))]}).

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

on_disk(Name, Seed, Config) ->
    Dir = log_dir(Name, Seed, Config),
    start(Name, [{weft_ring, [{partitions, 16}, {sync_ms, 300}, {handoff_items, 1},
                              {handoff_pace_ms, 50}, {vnodes, [{weft_kv_vnode, #{dir => Dir}}]}]},
                 {weft_kv, [{buckets, #{sets => #{n => 3, nodes => 2, timeout_ms => 2000}}},
                            {entropy_ms, 20}]}],
          [{faults, true} | link()], Config).

link() -> [{resume_timeout_ms, 800}, {keepalive_ms, 200}, {link_timeout_ms, 1500}].

log_dir(Name, Seed, Config) ->
    filename:join([?config(priv_dir, Config), integer_to_list(Seed), atom_to_list(Name)]).

fault({kill, Name}, Nodes, Writers, Start) ->
    ok = weft_test_nodes:kill(maps:get(Name, Nodes)),
    more(Writers, 20),
    back(Name, Nodes, Writers, Start);
%% Of each file some bytes are missing at its end, also such that were acknowledged: so only on one
%% node, as one copy on another one is all that is sure to be left.
fault({tear, Name}, Nodes, Writers, Start) ->
    Ref = maps:get(Name, Nodes),
    {ok, [{weft_kv_vnode, #{dir := Dir}}]} = call(Ref, application, get_env, [weft_ring, vnodes]),
    ok = weft_test_nodes:kill(Ref),
    Torn = [torn(File) || File <- filelib:wildcard(filename:join(Dir, "*.log"))],
    ct:pal("bytes cut off: ~w", [Torn]),
    ?assert(lists:sum(Torn) > 0),
    more(Writers, 20),
    back(Name, Nodes, Writers, Start);
fault({pause, Name}, Nodes, Writers, _Start) ->
    ok = weft_test_nodes:pause(maps:get(Name, Nodes)),
    more(Writers, 20),
    ok = weft_test_nodes:continue(maps:get(Name, Nodes)),
    more(Writers, 20),
    Nodes;
fault({cut, One, Other}, Nodes, Writers, _Start) ->
    Ref = maps:get(One, Nodes),
    ok = call(Ref, weft_fault, cut, [weft_test_nodes:name(maps:get(Other, Nodes))]),
    receive after 1200 -> ok end, % pacing: how long a fault lasts
    more(Writers, 20),
    ok = call(Ref, weft_fault, heal, []),
    Nodes;
fault({midst, join}, #{a := A} = Nodes, Writers, Start) ->
    New = Start(e),
    ok = call(New, weft_ring, join, [weft_test_nodes:name(A)]),
    begun(A, New, join),
    moving(Nodes#{e => New}, Writers, Start);
fault({midst, leave}, #{a := A, e := E} = Nodes, Writers, Start) ->
    %% If it is still joining that is over first.
    weft_test_nodes:until(fun() -> settled(maps:values(Nodes)) end, 120000),
    begun(A, E, leave),
    moving(Nodes, Writers, Start).

back(Name, Nodes, Writers, Start) ->
    New = Start(Name),
    more(Writers, 20),
    Nodes#{Name := New}.

torn(File) ->
    Size = filelib:file_size(File),
    Less = min(max(0, Size - 10), rand:uniform(60)),
    {ok, Device} = file:open(File, [raw, read, write]),
    {ok, _} = file:position(Device, Size - Less),
    ok = file:truncate(Device),
    ok = file:close(Device),
    Less.

%% Either end dies while partitions move, and their link is cut.
moving(#{a := A} = Nodes, Writers, Start) ->
    lists:foldl(fun(Fault, Now) ->
                    receive after rand:uniform(300) -> ok end, % pacing: any moment of a handoff
                    ct:pal("~p while ~b partitions move",
                           [Fault, map_get(moving, call(A, weft_ring, status, []))]),
                    fault(Fault, Now, Writers, Start)
                end, Nodes, shuffled([{kill, e}, {kill, lists:nth(rand:uniform(2), [c, d])},
                                      {cut, e, lists:nth(rand:uniform(2), [c, d])}])).

begun(A, Ref, Change) ->
    Name = weft_test_nodes:name(Ref),
    weft_test_nodes:until(fun() ->
                              call(A, weft_ring, stage, [Name, Change]) =:= ok andalso begin
                                  {ok, Plan} = call(A, weft_ring, plan, []),
                                  call(A, weft_ring, commit, [Plan]) =:= ok
                              end
                          end).

%% All pairs were compared since, and were alike.
alike(Refs, Before) ->
    lists:all(fun({Ref, Compared}) ->
                  #{alike := Alike, pairs := Pairs} = Info = call(Ref, weft_kv_entropy, info, []),
                  Pairs > 0 andalso Alike >= 2 * Pairs
                      andalso map_get(compared, Info) >= Compared + 2 * Pairs
              end, lists:zip(Refs, Before)).

compared(Refs) -> [map_get(compared, call(Ref, weft_kv_entropy, info, [])) || Ref <- Refs].

owns_nothing(Ref) -> call(Ref, weft_ring, mine, []) =:= [].

changed(A, Others, Members, Change) ->
    Names = [weft_test_nodes:name(Ref) || Ref <- Others],
    [ok = call(Ref, weft_ring, join, [weft_test_nodes:name(A)]) || Change =:= join,
                                                                  Ref <- Others],
    weft_test_nodes:until(fun() ->
                              lists:all(fun(Name) ->
                                            call(A, weft_ring, stage, [Name, Change]) =:= ok
                                        end, Names)
                          end),
    ok = committed(A),
    weft_test_nodes:until(fun() -> settled(Members) end, 90000).

%% A node that was to leave before may say just now that it is gone.
committed(A) ->
    {ok, Plan} = call(A, weft_ring, plan, []),
    case call(A, weft_ring, commit, [Plan]) of
        {error, changed} -> committed(A);
        Answer -> Answer
    end.

settled(Refs) ->
    Statuses = [call(Ref, weft_ring, status, []) || Ref <- Refs],
    Owned = lists:append([call(Ref, weft_ring, mine, []) || Ref <- Refs]),
    length(lists:usort(Statuses)) =:= 1 andalso maps:get(moving, hd(Statuses)) =:= 0
        andalso length(Owned) =:= lists:sum(maps:values(maps:get(owned, hd(Statuses)))).

is_joining(A, B) ->
    #{members := Members} = call(A, weft_ring, status, []),
    maps:get(weft_test_nodes:name(B), Members, none) =:= joining.

%% So many more writes, whatever else goes on. A list of keys is not tried again by itself.
written(A, Writers, More) ->
    more(Writers, More),
    weft_test_nodes:until(fun() -> element(1, call(A, weft_kv, list, [sets])) =:= ok end).

more(Writers, More) ->
    Before = so_far(Writers),
    weft_test_nodes:until(fun() -> so_far(Writers) >= Before + More end, 90000).

so_far(Writers) ->
    lists:sum([call(Ref, ?MODULE, number, [Pid]) || {Ref, Pid} <- Writers]).

number(Pid) ->
    {dictionary, Dictionary} = process_info(Pid, dictionary),
    proplists:get_value(number, Dictionary, 0).

found(A) ->
    {ok, Keys} = call(A, weft_kv, list, [sets]),
    maps:from_list([{Key, numbers(call(A, weft_kv, get, [sets, Key]))} || Key <- Keys]).

numbers({ok, Value, _}) -> binary_to_term(Value);
numbers({siblings, Values, _}) -> lists:append([binary_to_term(Value) || Value <- Values]).

count(Writer, Keys) ->
    Update = fun(Key, Add) -> weft_kv:update(sets, Key, Add) end,
    spawn(fun() -> writing(Update, Writer, Keys, 1, []) end).

count_outside(Writer, Keys) ->
    Update = fun(Key, Add) -> weft_kv_client:update(?CLIENT, sets, Key, Add) end,
    spawn(fun() -> writing(Update, Writer, Keys, 1, []) end).

writing(Update, Writer, Keys, N, Added) ->
    _ = put(number, N),
    Number = {Writer, N},
    Key = integer_to_binary(N * Writer rem Keys),
    Add = fun(Values) ->
              term_to_binary(lists:usort([Number | lists:append([binary_to_term(V)
                                                                 || V <- Values])]))
          end,
    Acknowledged = tried(Update, Key, Add, 100),
    receive
        {stop, From, Ref} -> From ! {Ref, [{Key, Number} | Added]}
    after 5 ->
        true = Acknowledged,
        writing(Update, Writer, Keys, N + 1, [{Key, Number} | Added])
    end.

%% A client that tries again has no error.
tried(_, _, _, 0) -> false;
tried(Update, Key, Add, Tries) ->
    case Update(Key, Add) of
        {ok, _} -> true;
        %% pacing: a client that has an error waits a little
        {error, _} -> receive after 50 -> tried(Update, Key, Add, Tries - 1) end
    end.

stop(Pid) ->
    Ref = make_ref(),
    Pid ! {stop, self(), Ref},
    receive {Ref, Added} -> Added after 20000 -> error(process_info(Pid)) end.

%% --- nodes ------------------------------------------------------------------------------------

start(Name, Keys, Config) -> start(Name, Keys, [], Config).

start(Name, Keys, Weft, Config) ->
    Dir = filename:join([?config(priv_dir, Config), integer_to_list(erlang:phash2(Keys)),
                         atom_to_list(Name)]),
    All = [{App, Key, Value} || {App, Pairs} <- Keys, {Key, Value} <- Pairs]
        ++ [{weft_ring, dir, Dir}],
    Args = weft_kv_test_args:args(?MODULE, All),
    Ref = weft_test_nodes:start(Name, #{args => Args, config => Weft}, ?config(place, Config)),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv]),
    Ref.

call(Ref, Module, Function, Arguments) -> call(Ref, Module, Function, Arguments, 20000).

call(Ref, Module, Function, Arguments, TimeoutMs) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, TimeoutMs).

%% SPDX-License-Identifier: Apache-2.0
%% @doc A session between neighbours that also have a gateway in common: when it goes around, when
%% it comes back, and that others do not suffer from what is wrong with one.
-module(weft_detour_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4]).

-export([suite/0, all/0, groups/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([cut_link_is_left_and_taken_again/1, session_begun_around_comes_back/1,
         neighbour_that_stands_still_stops_nobody_else/1]).
-export([flood/1, slowest_call_ms/2]).

%% Less than it takes to find out by a timeout that a link is dead, and more than what has to happen
%% takes on a busy machine. Who stands still does so for longer than that timeout.
-define(SOON_MS, 7000).
-define(LINK_TIMEOUT_MS, 10000).
-define(STILL_MS, 12000).
-define(CUTS, 5).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [{group, detour}, {group, flood}].

groups() ->
    [{detour, [], [cut_link_is_left_and_taken_again, session_begun_around_comes_back]},
     {flood, [], [neighbour_that_stands_still_stops_nobody_else]}].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

init_per_group(detour, Config) ->
    [{nodes, start([{a, g}, {g, b}, {a, b}], Config)} | Config];
init_per_group(flood, Config) ->
    [{nodes, start([{a, g}, {g, b}, {g, c}], Config)} | Config].

end_per_group(_Group, _Config) -> weft_test_nodes:stop_all().

%% By either end, so that once it is the initiator, which opens another path, and once the acceptor,
%% which waits for the initiator to do so.
cut_link_is_left_and_taken_again(Config) ->
    #{a := A, b := B} = ?config(nodes, Config),
    weft_test_nodes:until(fun() -> way(A, B) =:= direct end),
    [cut_and_heal(Side, A, B) || _ <- lists:seq(1, ?CUTS), Side <- [{A, B}, {B, A}]],
    ok.

cut_and_heal({Here, There}, A, B) ->
    ok = call(Here, weft_fault, cut, [name(There)]),
    weft_test_nodes:until(fun() -> way(A, B) =:= around end, ?SOON_MS),
    ok = call(Here, weft_fault, heal, [name(There)]),
    weft_test_nodes:until(fun() -> way(A, B) =:= direct end).

session_begun_around_comes_back(Config) ->
    #{a := A, b := B} = ?config(nodes, Config),
    ok = call(A, weft_fault, cut, [name(B)]),
    true = call(A, erlang, disconnect_node, [name(B)]),
    connect(A, B),
    weft_test_nodes:until(fun() -> way(A, B) =:= around end),
    #{pid := Session} = session(A, B),
    ok = call(A, weft_fault, heal, [name(B)]),
    weft_test_nodes:until(fun() -> way(A, B) =:= direct end),
    ?assertMatch(#{pid := Session}, session(A, B)).

%% a floods b through g; b stops in its tracks; a goes on talking to c, through g too.
neighbour_that_stands_still_stops_nobody_else(Config) ->
    #{a := A, b := B, c := C} = ?config(nodes, Config),
    connect(A, C),
    ok = call(A, ?MODULE, flood, [name(B)]),
    weft_test_nodes:until(fun() -> maps:get(bytes_out, session(A, B)) > 10_000_000 end),
    ok = weft_test_nodes:pause(B),
    SlowestMs = call(A, ?MODULE, slowest_call_ms, [name(C), ?STILL_MS]),
    ct:pal("slowest call: ~b ms", [SlowestMs]),
    ?assert(SlowestMs < ?SOON_MS).

%% @private Runs on a node: sends as much as the connection takes.
-spec flood(node()) -> ok.
flood(Node) ->
    _ = spawn(fun() ->
                      Sink = spawn(Node, timer, sleep, [infinity]),
                      flood(Sink, binary:copy(<<0>>, 60_000))
              end),
    ok.

flood(Sink, Payload) ->
    Sink ! Payload,
    flood(Sink, Payload).

%% @private Runs on a node: calls another again and again, for this time.
-spec slowest_call_ms(node(), pos_integer()) -> non_neg_integer().
slowest_call_ms(Node, ForMs) ->
    slowest_call_ms(Node, now_ms() + ForMs, 0).

slowest_call_ms(Node, EndMs, SlowestMs) ->
    StartMs = now_ms(),
    case StartMs >= EndMs of
        true ->
            SlowestMs;
        false ->
            Node = erpc:call(Node, erlang, node, []),
            Ms = now_ms() - StartMs,
            receive after 5 -> slowest_call_ms(Node, EndMs, max(SlowestMs, Ms)) end % pacing: calls
    end.

%% --- steps ------------------------------------------------------------------------------------

%% Nodes of these names and links; those called a and b are connected.
start(NamedLinks, Config) ->
    Names = lists:usort(lists:append([[X, Y] || {X, Y} <- NamedLinks])),
    Unique = integer_to_list(erlang:unique_integer([positive])),
    Short = maps:from_list([{N, list_to_atom(atom_to_list(N) ++ Unique)} || N <- Names]),
    Full = maps:map(fun(_, N) -> node_name(N) end, Short),
    Links = [{maps:get(X, Full), maps:get(Y, Full)} || {X, Y} <- NamedLinks],
    Nodes = maps:map(fun(_, N) -> start_node(N, Links, Config) end, Short),
    #{a := A, b := B} = Nodes,
    connect(A, B),
    Nodes.

start_node(Name, Links, Config) ->
    Options = #{config => [{topology, {static, #{links => Links}}}, {faults, true},
                           {link_timeout_ms, ?LINK_TIMEOUT_MS}, {window_bytes, 16_777_216}],
                args => ["-kernel", "prevent_overlapping_partitions", "false",
                         "-connect_all", "false"]},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

connect(A, B) ->
    weft_test_nodes:until(fun() -> call(A, net_kernel, connect_node, [name(B)]) =:= true end).

way(A, B) ->
    {ok, Direct} = call(A, weft_links, lookup, [name(B)]),
    case sessions(A, B) of
        [#{link := undefined}] -> none;
        [#{link := Direct}] -> direct;
        [#{link := _}] -> around;
        _OneIsEnding -> none
    end.

session(A, B) ->
    [Session] = sessions(A, B),
    Session.

sessions(A, #{node := Node}) ->
    [Info#{pid => Pid} || Pid <- call(A, weft_sessions, list, []),
                          #{node := N} = Info <- info(A, Pid), N =:= Node].

%% Another session may be ending.
info(A, Pid) ->
    try [call(A, weft_session, info, [Pid])]
    catch _:{noproc, _} -> []
    end.

now_ms() -> erlang:monotonic_time(millisecond).

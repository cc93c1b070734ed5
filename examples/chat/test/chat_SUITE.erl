%% SPDX-License-Identifier: Apache-2.0
%% @doc The chat on three nodes.
-module(chat_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_testcase/2, end_per_testcase/2]).
-export([town_is_delivered_in_order_exactly_once/1, shipped_town_is_as_generated/1,
         room_notices_a_killed_user/1, users_rejoin_a_lost_room/1, lost_node_is_accounted_for/1,
         unknown_node_in_a_conversation_is_refused/1, failed_direct_message_is_counted/1]).

all() ->
    [town_is_delivered_in_order_exactly_once, shipped_town_is_as_generated,
     room_notices_a_killed_user, users_rejoin_a_lost_room, lost_node_is_accounted_for,
     unknown_node_in_a_conversation_is_refused, failed_direct_message_is_counted].

init_per_testcase(shipped_town_is_as_generated, Config) ->
    Config;
init_per_testcase(Case, Config) ->
    [{cluster, chat_nodes:start(names(Case))} | Config].

names(room_notices_a_killed_user) -> [n01, n02];
names(users_rejoin_a_lost_room) -> [n01, n03];
names(unknown_node_in_a_conversation_is_refused) -> [n01];
names(failed_direct_message_is_counted) -> [n01, n02];
names(_Case) -> [n01, n02, n03].

end_per_testcase(_Case, Config) ->
    case proplists:get_value(cluster, Config) of
        undefined -> ok;
        Cluster -> chat_nodes:stop(Cluster)
    end.

town_is_delivered_in_order_exactly_once(Config) ->
    Cluster = cluster(Config),
    open_town(Cluster, #{nodes => 3, users_per_node => 4, lines => 600, seconds => 20}, Config),
    chat_nodes:all(Cluster, chat, play, [#{speed => 10, rounds => 2}]),
    chat_nodes:wait(fun() -> settled(Cluster) end, conversation_over),
    Sum = #{expected := Expected} = verdict(Cluster),
    ct:pal("~p", [Sum]),
    ?assertMatch(#{ok := true, sent := 1200, delivered := Expected, gaps := 0, duplicates := 0,
                   out_of_order := 0, nodedowns := 0, rejoins := 0}, Sum),
    %% Rooms and direct messages both crossed nodes.
    Relayed = maps:get(relayed, Sum),
    ?assert(Relayed > 1200 andalso Relayed < Expected),
    %% Every node had its part.
    [?assertMatch(#{users := 4, sent := S, delivered := D} when S > 200 andalso D > S, Report)
     || Report <- chat_nodes:all(Cluster, chat, report, [])].

shipped_town_is_as_generated(_Config) ->
    Source = proplists:get_value(source, chat:module_info(compile)),
    App = filename:dirname(filename:dirname(Source)),
    {ok, Shipped} = file:read_file(filename:join([App, "conversations", "town.txt"])),
    ?assertEqual(chat_town:text(#{}), Shipped).

room_notices_a_killed_user(Config) ->
    Cluster = cluster(Config),
    {Home, Away} = {'n01@127.0.0.1', 'n02@127.0.0.1'},
    market(Cluster, Home),
    ok = chat_nodes:call(Cluster, Away, chat, start_user, [ada, [market]]),
    ok = chat_nodes:call(Cluster, Home, chat, start_user, [ben, [market]]),
    Who = fun() -> chat_nodes:call(Cluster, Home, chat, who, [market, Home]) end,
    chat_nodes:wait(fun() -> length(Who()) =:= 2 end, both_joined),
    [{{ada, Away}, Pid}, _] = Who(),
    true = chat_nodes:call(Cluster, Away, erlang, exit, [remote(Cluster, Away, ada), kill]),
    chat_nodes:wait(fun() -> tally(Cluster, Home, departures) =:= 1 end, departure_noticed),
    %% Her supervisor starts her anew, and she joins again as another process.
    chat_nodes:wait(fun() -> length(Who()) =:= 2 end, she_is_back),
    ?assertMatch([{{ada, Away}, Other}, _] when Other =/= Pid, Who()),
    ok = chat_nodes:call(Cluster, Home, chat, say, [ben, market, "welcome back"]),
    Heard = fun() -> chat_nodes:call(Cluster, Away, chat, history, [ada]) end,
    chat_nodes:wait(fun() -> Heard() =:= [{{room, market}, {ben, Home}, "welcome back"}] end,
                    ada_hears_ben),
    ?assertEqual(0, tally(Cluster, Away, gaps)).

users_rejoin_a_lost_room(Config) ->
    Cluster = cluster(Config),
    {Home, Away} = {'n01@127.0.0.1', 'n03@127.0.0.1'},
    market(Cluster, Home),
    ok = chat_nodes:call(Cluster, Away, chat, start_user, [ada, [market]]),
    Ready = fun() -> chat_nodes:call(Cluster, Away, chat, ready, []) end,
    chat_nodes:wait(Ready, joined),
    true = chat_nodes:call(Cluster, Home, erlang, disconnect_node, [Away]),
    chat_nodes:wait(fun() -> tally(Cluster, Away, rejoins) =:= 1 end, rejoined),
    chat_nodes:wait(Ready, joined_again),
    ?assertMatch(#{rooms_lost := 1, nodedowns := 1},
                 chat_nodes:call(Cluster, Away, chat, counters, [])),
    chat_nodes:wait(fun() -> tally(Cluster, Home, nodedowns) =:= 1 end, room_saw_nodedown).

lost_node_is_accounted_for(Config) ->
    Cluster = cluster(Config),
    Options = #{nodes => 3, users_per_node => 2, lines => 400, seconds => 10},
    open_town(Cluster, Options, Config),
    chat_nodes:all(Cluster, chat, play, [#{speed => 5}]),
    {Here, There} = {'n02@127.0.0.1', 'n03@127.0.0.1'},
    chat_nodes:wait(fun() -> tally(Cluster, Here, sent) > 20 end, under_way),
    Rest = chat_nodes:stop_node(Cluster, There),
    chat_nodes:wait(fun() -> tally(Rest, Here, nodedowns) > 0 end, noticed),
    chat_nodes:wait(fun() -> said(Rest) end, all_said),
    #{ok := Ok, expected := Expected, delivered := Delivered} = verdict(Rest),
    ?assertNot(Ok),
    ?assert(Delivered < Expected).

unknown_node_in_a_conversation_is_refused(Config) ->
    Cluster = cluster(Config),
    File = write_town(#{nodes => 2, lines => 10}, Config),
    ?assertEqual({error, {no_node_for, <<"n02">>}},
                 chat_nodes:call(Cluster, 'n01@127.0.0.1', chat, open, [File, nodes_of(Cluster)])).

failed_direct_message_is_counted(Config) ->
    Cluster = cluster(Config),
    {Here, There} = {'n01@127.0.0.1', 'n02@127.0.0.1'},
    ok = chat_nodes:call(Cluster, Here, chat, start_user, [ada, []]),
    ok = chat_nodes:call(Cluster, There, chat, start_user, [ben, []]),
    [ok = chat_nodes:call(Cluster, Here, chat, tell, [ada, {Name, There}, "hello"])
     || Name <- [nobody, ben]],
    chat_nodes:wait(fun() -> tally(Cluster, There, delivered) =:= 1 end, ben_got_his),
    ?assertMatch(#{sent := 2, failed := 1}, chat_nodes:call(Cluster, Here, chat, counters, [])).

cluster(Config) ->
    proplists:get_value(cluster, Config).

nodes_of(#{peers := Peers}) ->
    maps:keys(Peers).

write_town(Options, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "town.txt"),
    ok = chat_town:write(File, Options),
    File.

open_town(Cluster, Options, Config) ->
    File = write_town(Options, Config),
    [ok, ok, ok] = chat_nodes:all(Cluster, chat, open, [File, nodes_of(Cluster)]),
    chat_nodes:wait(fun() -> lists:all(fun(Ready) -> Ready end,
                                       chat_nodes:all(Cluster, chat, ready, [])) end, all_joined).

market(Cluster, Home) ->
    chat_nodes:all(Cluster, chat, open_rooms, [#{market => Home}]).

remote(Cluster, Node, User) ->
    {Name, Node} = chat_address:user(User, Node),
    chat_nodes:call(Cluster, Node, erlang, whereis, [Name]).

tally(Cluster, Node, Key) ->
    maps:get(Key, chat_nodes:call(Cluster, Node, chat, counters, [])).

verdict(Cluster) ->
    chat:verdict(chat_nodes:all(Cluster, chat, report, [])).

said(Cluster) ->
    lists:all(fun(#{replay := #{playing := Playing}}) -> not Playing end,
              chat_nodes:all(Cluster, chat, report, [])).

%% Whether all is said comes first: a line in between would be expected, but not counted here.
settled(Cluster) ->
    said(Cluster) andalso all_delivered(verdict(Cluster)).

all_delivered(#{expected := Expected, delivered := Delivered}) -> Delivered >= Expected.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Each kind of process of weft is killed on a cluster that works: six nodes in two groups, two
%% of them gateways, 1,000 messages a second, links, monitors, channels, names, process groups and
%% broadcast. No node ends, only the connection whose process it was, and the services are whole
%% again in a moment.
%%
%% Once each; with FULL=1 twenty times. SEED repeats a run.
-module(weft_chaos_inside_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(weft_test_nodes, [name/1, node_name/1, call/4, until/1, until/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([every_kind_of_process_is_killed/1]).

-define(NODES, [n1, n2, n3, n4, n5, n6]).
-define(T, weft_chaos_inside).
%% Each node sends to five.
-define(PERIOD_MS, 30).
%% Asked: 5 s, on a machine that does nothing else.
-define(WHOLE_MS, 20000).

suite() -> [{timetrap, {minutes, case os:getenv("FULL") of false -> 6; _ -> 60 end}}].

all() -> [every_kind_of_process_is_killed].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% --- the case ---------------------------------------------------------------------------------

every_kind_of_process_is_killed(Config) ->
    _ = rand:seed(exsss, weft_test_nodes:seed()),
    Nodes = [start(Name, Config) || Name <- ?NODES],
    Names = lists:sort([name(Node) || Node <- Nodes]),
    [ok = call(Node, ?T, start, [Names -- [name(Node)], ?PERIOD_MS]) || Node <- Nodes],
    _ = whole(Nodes),
    until(fun() -> lists:all(fun(Node) -> hears_all(Node, Names) end, Nodes) end),
    _ = [call(Node, ?T, events, []) || Node <- Nodes],
    Kills = shuffled(lists:append(lists:duplicate(times(), kinds(Nodes)))),
    {_, Log} = lists:foldl(fun(Kind, {Before, Log}) ->
                                   {Victims, Line} = kill(Kind, Before, Nodes),
                                   {Victims, [Line | Log]}
                           end, {[], []}, Kills),
    ct:pal("~b kinds, ~b kills; ms until whole, kind, what was lost or ended:~n~p",
           [length(lists:usort(Kills)), length(Log), lists:reverse(lists:sort(Log))]),
    ?assert(length(lists:usort([Kind || {_, Kind, {ok, _}} <- Log])) >= 60),
    ?assertEqual([], [Line || {_, _, {wrong, _}} = Line <- Log]),
    %% Only who has no name may have been there for a moment.
    ?assertEqual([], [Kind || {_, Kind, not_there} <- Log, is_atom(Kind)]),
    all_arrived(Nodes).

times() ->
    case os:getenv("FULL") of
        false -> 1;
        _ -> 20
    end.

%% Of what can be found at rest; whoever lives for a moment only is hit by chance elsewhere.
kinds(Nodes) ->
    lists:usort(lists:append([maps:keys(call(Node, ?T, kinds, [])) || Node <- Nodes])).

%% What a kill costs may be heard of only after the next one.
kill(Kind, Before, Nodes) ->
    case [{Node, Pids} || Node <- shuffled(Nodes),
                          #{Kind := Pids} <- [call(Node, ?T, kinds, [])]] of
        [] ->
            {Before, {0, Kind, not_there}};
        [{Node, Pids} | _] ->
            Pid = lists:nth(rand:uniform(length(Pids)), Pids),
            Victims = {name(Node), call(Node, ?T, victims, [Pid])},
            true = call(Node, erlang, exit, [Pid, kill]),
            Ms = try ended(Kind, Pid, Node), whole(Nodes)
                 catch error:Reason -> erlang:error({Kind, name(Node), Reason})
                 end,
            ok = moved(Nodes),
            Events = [{name(N), Event} || N <- Nodes, Event <- call(N, ?T, events, [])],
            {[Victims], {Ms, Kind, judged(Events, [Victims | Before])}}
    end.

%% Who has a name has been started again.
ended(Kind, Pid, Node) when is_atom(Kind) ->
    until(fun() ->
                  ok = call(Node, ?T, again, []),
                  not lists:member(call(Node, erlang, whereis, [Kind]), [Pid, undefined])
          end, ?WHOLE_MS);
ended(_Kind, Pid, Node) ->
    until(fun() -> not call(Node, erlang, is_process_alive, [Pid]) end).

%% Each has heard of each other again, and so of what is missing.
moved(Nodes) ->
    Before = [{Node, call(Node, ?T, received, [])} || Node <- Nodes],
    until(fun() ->
                  lists:all(fun({Node, Then}) ->
                                    Now = call(Node, ?T, received, []),
                                    [] =:= [Key || {Key, Next} <- maps:to_list(Then),
                                                   map_get(Key, Now) =< Next]
                            end, Before)
          end).

judged(Events, Victims) ->
    case [Event || Event <- Events, not is_explained(Event, Victims)] of
        [] -> {ok, length(Events)};
        Wrong -> {wrong, #{events => Wrong, victims => Victims}}
    end.

%% The end of a connection is the end of the channels there, too.
is_explained({Here, {Way, There, _What}}, Victims) ->
    lists:any(fun({Node, Of}) ->
                      Peers = maps:get(Way, Of),
                      (Here =:= Node andalso is_one(There, Peers))
                          orelse (There =:= Node andalso is_one(Here, Peers))
              end, Victims).

is_one(_Peer, all) -> true;
is_one(Peer, Peers) -> lists:member(Peer, Peers).

%% --- whole again ------------------------------------------------------------------------------

%% Everybody sees everybody, and a broadcast of each gateway reaches all. In milliseconds.
whole(Nodes) ->
    Names = lists:sort([name(Node) || Node <- Nodes]),
    {Us, ok} = timer:tc(fun() ->
                                try until(fun() -> missing(Nodes, Names) =:= [] end, ?WHOLE_MS)
                                catch error:_ -> erlang:error({missing, missing(Nodes, Names)})
                                end,
                                until(fun() -> reaches_all(Nodes) end, ?WHOLE_MS)
                        end),
    Us div 1000.

missing(Nodes, Names) ->
    _ = [ok = call(Node, ?T, again, []) || Node <- Nodes],
    [{name(Node), Service, Seen} || Node <- Nodes,
                                    {Service, Seen} <- maps:to_list(call(Node, ?T, seen, [])),
                                    Seen =/= Names].

reaches_all(Nodes) ->
    _ = [ok = call(Node, ?T, again, []) || Node <- Nodes],
    Ids = [{name(Node), erlang:unique_integer()} || Node <- lists:sublist(shuffled(Nodes), 2)],
    lists:all(fun({Name, _} = Id) ->
                      [Node] = [N || N <- Nodes, name(N) =:= Name],
                      call(Node, ?T, broadcast, [Id])
              end, Ids)
        andalso are_heard(Ids, Nodes, 100).

are_heard(_Ids, _Nodes, 0) ->
    false;
are_heard(Ids, Nodes, Looks) ->
    lists:all(fun({Node, Id}) -> call(Node, ?T, broadcast, [{heard, Id}]) end,
              [{Node, Id} || Node <- Nodes, Id <- Ids])
        orelse are_heard(Ids, Nodes, Looks - 1).

hears_all(Node, Names) ->
    Received = call(Node, ?T, received, []),
    lists:all(fun(Name) -> is_map_key({dist, Name}, Received) andalso
                               is_map_key({channel, Name}, Received)
              end, Names -- [name(Node)]).

all_arrived(Nodes) ->
    Sent = [{{name(From), To}, Numbers}
            || From <- Nodes, {To, Numbers} <- maps:to_list(call(From, ?T, stop, []))],
    Messages = lists:sum([Number - 1 || {_, {Number, _}} <- Sent]),
    until(fun() ->
                  Received = maps:from_list([{name(Node), call(Node, ?T, received, [])}
                                             || Node <- Nodes]),
                  [] =:= [Pair || {{From, To} = Pair, {Next, NextOfChannel}} <- Sent,
                                  {Way, Number} <- [{dist, Next}, {channel, NextOfChannel}],
                                  maps:get({Way, From}, maps:get(To, Received), 1) =/= Number]
          end),
    ct:pal("~b messages", [Messages]).

%% --- nodes ------------------------------------------------------------------------------------

start(Name, Config) ->
    [N1, N2, N3, N4, N5, N6] = [node_name(N) || N <- ?NODES],
    Groups = #{one => [N1, N2, N3, N4], two => [N3, N4, N5, N6]},
    Options = #{config => [{topology, {groups, Groups}}, {resume_timeout_ms, 60000},
                           {scopes, #{chaos => #{}, safe => #{kind => strong,
                                                              voters => [N1, N3, N6]}}}],
                args => ["-kernel", "prevent_overlapping_partitions", "false",
                         "-connect_all", "false"]},
    Node = weft_test_nodes:start(Name, Options, ?config(place, Config)),
    {ok, _} = call(Node, application, ensure_all_started, [weft]),
    Node.

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

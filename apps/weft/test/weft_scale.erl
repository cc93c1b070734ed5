%% SPDX-License-Identifier: Apache-2.0
%% @doc Many real nodes that start all at once on one machine: how soon they are a cluster, what
%% each of them costs, and whether those that talk hear of it when others are killed.
%%
%% `run/2' does one run for a suite; `main/0' is `make scale': environment NODES, KILLS, TOPOLOGY
%% (peer_to_peer, full_mesh or swim), prints what it does and a table. With OUT it adds a line to
%% that file (CSV).
-module(weft_scale).

-export([main/0, run/2]).

-define(ARGS, ["-kernel", "prevent_overlapping_partitions", "false", "-connect_all", "false",
               "-boot", "start_clean"]).
-define(STARTERS, 4).
-define(PARTNERS, 4).
-define(FORM_MS, 300000).
-define(KILL_EVERY_MS, 500).
-define(SETTLE_MS, 300000).
%% Each node makes a broadcast every so many of its rounds of half a second, and has so many rounds.
-define(NEWS_EVERY, 10).
-define(ROUNDS, 20).

-type options() :: #{nodes := pos_integer(), kills := non_neg_integer(), topology => atom(),
                     say => fun((io:format(), [term()]) -> ok)}.
-type result() :: #{boot_ms := non_neg_integer(), form_ms := non_neg_integer(),
                    formed := [map()], after_kills := [map()], repair_ms := non_neg_integer(),
                    overflows := non_neg_integer() | unknown, messages := non_neg_integer(),
                    news := non_neg_integer(), wrong := [term()]}.
%% form_ms: from the moment at which all begin to join until each has a route to each. formed,
%% after_kills: `weft_scale_node:info/0' of all nodes. overflows: calls that found the queue of some
%% listener of this machine full while they joined. wrong: what the talkers of the nodes that
%% live have to complain of; empty if all messages came, in order and once, and nobody who lives was
%% taken for dead.

%% @doc `make scale'.
-spec main() -> no_return().
main() ->
    Number = fun(Name, Default) -> list_to_integer(os:getenv(Name, Default)) end,
    Topology = os:getenv("TOPOLOGY", "peer_to_peer"),
    Dir = string:trim(os:cmd("mktemp -d")),
    Place = #{epmd => weft_test_nodes:start_epmd(), dir => Dir},
    Result = try run(#{nodes => Number("NODES", "100"), kills => Number("KILLS", "20"),
                       topology => list_to_atom(Topology), say => fun io:format/2}, Place)
             after weft_test_nodes:stop_epmd(maps:get(epmd, Place))
             end,
    report(Result),
    ok = append(os:getenv("OUT", ""), Topology, Result),
    io:format("Logs of the nodes: ~ts~n", [Dir]),
    halt(case Result of #{wrong := []} -> 0; _ -> 1 end).

%% @doc Starts the nodes, lets them join, talk, and be killed. The caller stops those that are left.
-spec run(options(), weft_test_nodes:place()) -> result().
run(#{nodes := Count, kills := Kills} = Options, Place) ->
    Say = maps:get(say, Options, fun(_, _) -> ok end),
    {BootMs, Nodes} = timed(fun() -> boot(Count, Options, Place, Say) end),
    Say("~b emulators started in ~.1f s~n", [Count, BootMs / 1000]),
    Before = overflows(),
    {FormMs, ok} = timed(fun() -> join(Nodes) end),
    Overflows = case Before of unknown -> unknown; _ -> overflows() - Before end,
    Formed = infos(Nodes),
    Say("a cluster after ~.1f s: ~b routes each~n", [FormMs / 1000, Count - 1]),
    ok = talk(Nodes),
    {Dead, Living} = lists:split(Kills, shuffled(Nodes)),
    kill(Dead, Say),
    {RepairMs, ok} = timed(fun() -> until_all_route_all(Living, ?SETTLE_MS) end),
    Say("routes of all that live are right ~.1f s after the last kill~n", [RepairMs / 1000]),
    ok = until_said(?ROUNDS, Living),
    {Messages, News, Wrong} = accounts(Living),
    #{boot_ms => BootMs, form_ms => FormMs, formed => Formed, after_kills => infos(Living),
      repair_ms => RepairMs, overflows => Overflows, messages => Messages, news => News,
      wrong => Wrong}.

%% --- steps ------------------------------------------------------------------------------------

boot(Count, Options, Place, Say) ->
    Names = [list_to_atom("w" ++ integer_to_list(N)) || N <- lists:seq(1, Count)],
    Seeds = [weft_test_nodes:node_name(Name) || Name <- [w1, w2]],
    Topology = topology(maps:get(topology, Options, peer_to_peer), Seeds),
    Start = fun(Name) ->
                    Node = weft_test_nodes:start(Name, #{config => [{topology, Topology}],
                                                         args => ?ARGS}, Place),
                    Say("\r~ts ", [Name]),
                    Node
            end,
    lists:append(in_parallel(fun(Part) -> [Start(Name) || Name <- Part] end,
                             dealt(?STARTERS, Names))).

topology(swim, Seeds) -> {full_mesh, #{seeds => Seeds, detector => swim}};
topology(Name, Seeds) -> {Name, #{seeds => Seeds}}.

%% All at once.
join(Nodes) ->
    _ = in_parallel(fun(Node) -> {ok, _} = call(Node, application, ensure_all_started, [weft]) end,
                    Nodes),
    until_all_route_all(Nodes, ?FORM_MS).

until_all_route_all(Nodes, TimeoutMs) ->
    Names = [name(Node) || Node <- Nodes],
    Results = in_parallel(fun(Node) ->
                              call(Node, weft_scale_node, until_routes,
                                   [lists:delete(name(Node), Names), TimeoutMs], infinity)
                          end, Nodes),
    case [Node || {#{node := Node}, false} <- lists:zip(Nodes, Results)] of
        [] -> ok;
        Lacking -> error({no_routes_to_all, Lacking})
    end.

%% Each talks to the next ones in a ring that has nothing to do with who is whose neighbour.
talk(Nodes) ->
    Names = [name(Node) || Node <- shuffled(Nodes)],
    Partners = fun(Name) ->
                       {Before, [Name | After]} = lists:splitwith(fun(N) -> N =/= Name end, Names),
                       lists:sublist(After ++ Before, ?PARTNERS)
               end,
    _ = in_parallel(fun(Node) -> ok = call(Node, weft_scale_node, start, []) end, Nodes),
    _ = in_parallel(fun(Node) ->
                            ok = call(Node, weft_scale_node, talk,
                                      [Partners(name(Node)), ?NEWS_EVERY])
                    end, Nodes),
    ok.

%% Those that live go on for as long as it takes to say so much.
until_said(Rounds, Nodes) ->
    _ = in_parallel(fun(Node) ->
                            weft_test_nodes:until(
                              fun() -> maps:get(rounds, account(Node)) >= Rounds end, ?SETTLE_MS)
                    end, Nodes),
    ok.

kill(Nodes, Say) ->
    lists:foreach(fun(Node) ->
                          ok = weft_test_nodes:kill(Node),
                          Say("\rkilled ~ts ", [name(Node)]),
                          receive after ?KILL_EVERY_MS -> ok end % pacing: one kill after another
                  end, Nodes),
    Say("~n", []).

%% --- what became of the messages --------------------------------------------------------------

accounts(Nodes) ->
    _ = in_parallel(fun(Node) -> ok = call(Node, weft_scale_node, stop, []) end, Nodes),
    Deadline = now_ms() + ?SETTLE_MS,
    settled(Nodes, lists:sort([name(Node) || Node <- Nodes]), Deadline).

settled(Nodes, Names, Deadline) ->
    Accounts = maps:from_list(lists:zip([name(Node) || Node <- Nodes],
                                        in_parallel(fun account/1, Nodes))),
    Lacking = lacking(Names, Accounts),
    case Lacking =:= [] orelse now_ms() > Deadline of
        true ->
            {heard_count(Names, Accounts), news_count(Names, Accounts),
             Lacking ++ wrong(Names, Accounts)};
        false ->
            receive after 200 -> settled(Nodes, Names, Deadline) end % pacing: of this very loop
    end.

account(Node) -> call(Node, weft_scale_node, account, []).

%% Messages, and broadcasts, of those that live that have not come.
lacking(Names, Accounts) ->
    [{said, From, to, To, Heard, 'of', Rounds}
     || To <- Names, #{heard := All} <- [map_get(To, Accounts)], {From, Heard} <- maps:to_list(All),
        lists:member(From, Names), #{rounds := Rounds} <- [map_get(From, Accounts)], Heard < Rounds]
        ++ [{news, From, to, To, length(Got), 'of', Made}
            || To <- Names, #{news := News} <- [map_get(To, Accounts)], From <- Names,
               Made <- [made(From, Accounts)], Got <- [maps:get(From, News, [])],
               length(Got) < Made].

made(From, Accounts) ->
    #{rounds := Rounds} = map_get(From, Accounts),
    Rounds div ?NEWS_EVERY.

wrong(Names, Accounts) ->
    [{order, To, What} || To <- Names, #{wrong := Wrong} <- [map_get(To, Accounts)],
                          {{said, From}, _, _} = What <- Wrong, lists:member(From, Names)]
        ++ [{down, At, Node, Reason} || At <- Names, #{downs := Downs} <- [map_get(At, Accounts)],
                                        {Node, Reason} <- Downs, lists:member(Node, Names)]
        ++ [{twice, From, to, To} || To <- Names, #{news := News} <- [map_get(To, Accounts)],
                                     {From, Got} <- maps:to_list(News),
                                     length(Got) =/= length(lists:usort(Got))].

heard_count(Names, Accounts) ->
    lists:sum([N || To <- Names, #{heard := Heard} <- [map_get(To, Accounts)],
                    {From, N} <- maps:to_list(Heard), lists:member(From, Names)]).

news_count(Names, Accounts) ->
    lists:sum([length(Got) || To <- Names, #{news := News} <- [map_get(To, Accounts)],
                              {From, Got} <- maps:to_list(News), lists:member(From, Names)]).

%% --- report -----------------------------------------------------------------------------------

infos(Nodes) -> in_parallel(fun(Node) -> call(Node, weft_scale_node, info, []) end, Nodes).

report(#{formed := Formed, after_kills := Later} = Result) ->
    io:format("~n~-44s ~10s ~10s ~10s~n", ["", "mean", "least", "most"]),
    [row(Title, [Value(Info) || Info <- Infos])
     || {When, Infos} <- [{"when formed", Formed}, {"in the end", Later}],
        {What, Value} <- columns(), Title <- [What ++ ", " ++ When]],
    #{boot_ms := BootMs, form_ms := FormMs, repair_ms := RepairMs, overflows := Overflows,
      messages := Messages, news := News, wrong := Wrong} = Result,
    io:format("~n~b nodes: emulators started in ~.1f s, then a cluster in ~.1f s (listen queues "
              "overflowed ~w times)~n~b were killed, routes repaired in ~.1f s~n",
              [length(Formed), BootMs / 1000, FormMs / 1000, Overflows,
               length(Formed) - length(Later), RepairMs / 1000]),
    io:format("~b messages and ~b broadcasts between those that live, ~b complaints~n",
              [Messages, News, length(Wrong)]),
    [io:format("  ~0p~n", [Complaint]) || Complaint <- lists:sublist(Wrong, 20)].

append("", _Topology, _Result) ->
    ok;
append(File, Topology, #{form_ms := FormMs, repair_ms := RepairMs, overflows := Overflows,
                         messages := Messages, news := News, wrong := Wrong, formed := Formed,
                         after_kills := Later}) ->
    Columns = [{"topology", Topology}, {"nodes", length(Formed)},
               {"killed", length(Formed) - length(Later)}, {"formed_s", FormMs / 1000},
               {"connections_mean", mean(connections, Formed)},
               {"connections_max", lists:max([value(connections, Info) || Info <- Formed])},
               {"memory_mb", mean(memory, Formed)}, {"memory_end_mb", mean(memory, Later)},
               {"memory_with_share_mb", mean(shared, Formed)},
               {"routes_right_s", RepairMs / 1000}, {"listen_overflows", Overflows},
               {"messages", Messages}, {"broadcasts", News}, {"complaints", length(Wrong)}],
    Header = case filelib:file_size(File) of
                 0 -> [line([Name || {Name, _} <- Columns])];
                 _ -> []
             end,
    file:write_file(File, [Header, line([Value || {_, Value} <- Columns])], [append]).

line(Values) -> [lists:join(",", [text(Value) || Value <- Values]), $\n].

text(Value) when is_float(Value) -> io_lib:format("~.3f", [Value]);
text(Value) -> io_lib:format("~ts", [lists:concat([Value])]).

mean(What, Infos) -> lists:sum([value(What, Info) || Info <- Infos]) / length(Infos).

value(connections, #{connections := Count}) -> Count;
value(memory, #{memory_bytes := Bytes}) -> Bytes / 1.0e6;
value(shared, #{memory_kb := Kb}) -> maps:get(with_share, Kb, 0) / 1000.

columns() ->
    [{"TCP connections of a node", fun(Info) -> value(connections, Info) end},
     {"neighbours", fun(#{neighbours := N}) -> N end},
     {"sessions", fun(#{sessions := N}) -> N end},
     {"memory of the emulator, MB", fun(Info) -> value(memory, Info) end},
     {"memory with its share of common pages, MB", fun(Info) -> value(shared, Info) end}].

row(Title, Values) ->
    io:format("~-44s ~10.1f ~10.1f ~10.1f~n",
              [Title, lists:sum(Values) / length(Values), float(lists:min(Values)),
               float(lists:max(Values))]).

%% Of the system, as Linux counts it.
overflows() ->
    case file:read_file("/proc/net/netstat") of
        {ok, Text} ->
            [Names, Values] = [string:lexemes(Line, " ")
                               || <<"TcpExt: ", Line/binary>> <- string:lexemes(Text, "\n")],
            #{<<"ListenOverflows">> := Count} = maps:from_list(lists:zip(Names, Values)),
            binary_to_integer(Count);
        {error, _} ->
            unknown
    end.

%% --- helpers ----------------------------------------------------------------------------------

in_parallel(Fun, List) ->
    Refs = [spawn_monitor(fun() -> exit({done, Fun(Element)}) end) || Element <- List],
    [receive {'DOWN', Ref, process, Pid, {done, Result}} -> Result;
             {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
     end || {Pid, Ref} <- Refs].

dealt(Count, List) ->
    [[Element || {N, Element} <- lists:zip(lists:seq(1, length(List)), List), N rem Count =:= I]
     || I <- lists:seq(0, Count - 1)].

shuffled(List) ->
    [Element || {_, Element} <- lists:sort([{rand:uniform(), Element} || Element <- List])].

timed(Fun) ->
    Before = now_ms(),
    Result = Fun(),
    {now_ms() - Before, Result}.

now_ms() -> erlang:monotonic_time(millisecond).

name(#{node := Name}) -> Name.

call(Node, Module, Function, Args) -> weft_test_nodes:call(Node, Module, Function, Args, 120000).
call(Node, Module, Function, Args, Timeout) ->
    weft_test_nodes:call(Node, Module, Function, Args, Timeout).

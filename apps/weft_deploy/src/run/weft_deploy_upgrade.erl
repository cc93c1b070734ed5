%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries out what `weft_deploy_upgrade_core' decides, and drains nodes that go for good. One
%% node is away at a time.
-module(weft_deploy_upgrade).

-export([run/3, resume/3, finish/3, drain/3, remember_bad/2]).

%% @doc Nodes become new, or what they were. What is rolled back is remembered as soon as it is
%% known.
-spec run(define | undo, [weft_deploy_nodes:desired()], weft_deploy_session:session()) ->
          weft_deploy_upgrade_core:outcome().
run(define, Nodes, Session) ->
    resume({[], [], []}, Nodes, Session);
run(undo, Nodes, Session) ->
    loop(weft_deploy_upgrade_core:new(undo, items(Nodes)), by_name(Nodes), Session).

%% @doc Nodes become new. Before them come those that are down, and those of which an upgrade that
%% was ended before did not see whether they are healthy; if one is not, those go back with it that
%% had become the same.
-spec resume({Unproven :: [weft_deploy_nodes:desired()], Along :: [weft_deploy_nodes:desired()],
              Down :: [weft_deploy_nodes:desired()]},
             [weft_deploy_nodes:desired()], weft_deploy_session:session()) ->
          weft_deploy_upgrade_core:outcome().
resume({Unproven, Along, Down}, Nodes, #{seen := Seen} = Session) ->
    case weft_deploy_apply:upload(weft_deploy_plan:uploads(Down ++ Nodes, Seen), Session) of
        [] ->
            Core = weft_deploy_upgrade_core:resumed({items(Unproven), items(Along)}, items(Down),
                                                    items(Nodes)),
            loop(Core, by_name(Unproven ++ Along ++ Down ++ Nodes), Session);
        [{Host, Version, Why} | _] ->
            #{done => [], undone => [], failed => {Host, Version ++ ": " ++ Why}, bad => [],
              killed => [], left => [Name || #{node := Name} <- Unproven ++ Down ++ Nodes]}
    end.

items(Nodes) -> [{Name, Id} || #{node := Name, id := Id} <- Nodes].

by_name(Nodes) -> maps:from_list([{Name, Node} || #{node := Name} = Node <- Nodes]).

%% @doc Goes on with a rollback that was ended before: nodes that have become what they were start,
%% as others may be the only way without them, and those that have not follow. All of them are done.
-spec finish(Return :: [weft_deploy_nodes:desired()], Back :: [weft_deploy_nodes:desired()],
             weft_deploy_session:session()) -> weft_deploy_upgrade_core:outcome().
finish(Return, Back, Session) ->
    case weft_deploy_apply:start(Return, fun(_, _) -> false end, Session) of
        {Started, []} ->
            #{done := Done} = Outcome = run(undo, Back, Session),
            Outcome#{done := [Name || {Name, _Ms} <- Started] ++ Done};
        {Started, [Failed | _]} ->
            #{done => [Name || {Name, _Ms} <- Started], undone => [], failed => Failed, bad => [],
              killed => [], left => [Name || #{node := Name} <- Back]}
    end.

loop(State, ByName, Session) ->
    case weft_deploy_upgrade_core:next(State) of
        {{Step, Name}, Going} ->
            Node = map_get(Name, ByName),
            Result = step(Step, Node, Session),
            _ = [weft_deploy_session:progress([Name, ": ", atom_to_list(Step), " failed: ", Why],
                                              Session) || {_Kind, Why} <- [Result]],
            _ = [remember_bad([maps:get(id, Node)], Session) || {start, {error, _}} <-
                                                                    [{Step, Result}]],
            loop(weft_deploy_upgrade_core:result(Result, Going), ByName,
                 seen({Step, Result}, Node, Session));
        {done, Outcome} ->
            Outcome
    end.

%% One that was down counts among the others when the next one is drained.
seen({Step, ok}, #{host := Host, node := Name}, #{seen := Seen} = Session)
  when Step =:= start; Step =:= return ->
    case Seen of
        #{Host := {ok, #{nodes := #{Name := #{up := true, left := false}}}}} -> Session;
        #{} -> weft_deploy_session:look(Session)
    end;
seen(_Other, _Node, Session) ->
    Session.

%% @doc Remembers that these ids are not to be tried again unasked, in case that this is ended.
-spec remember_bad([Id :: string()], weft_deploy_session:session()) ->
          {ok, weft_deploy_session:session()} | {error, string()}.
remember_bad(Ids, #{state := #{bad := Bad} = State} = Session) ->
    New = lists:usort(Ids),
    weft_deploy_session:save(State#{bad := New ++ (Bad -- New)}, Session).

%% If this is ended before the node is healthy, the next upgrade looks at it. Those before it are.
remember_unproven(Name, #{state := State} = Session) ->
    Before = maps:get(unproven, State, []),
    weft_deploy_session:save(State#{unproven => [Name | Before -- [Name]]}, Session).

step(drain, Node, Session) ->
    case drain(Node, false, Session) of
        ok -> ok;
        {error, Why} ->
            {case weft_deploy_control:is_only_way(Why) of true -> needed; false -> error end, Why}
    end;
step(stop, #{host := Host, node := Name} = Node, Session) ->
    case weft_deploy_apply:stop([{Host, Name}], Session) of
        {[_], [], []} -> ok;
        {[_], [_], []} -> killed;
        {_, _, [{_, Why}]} -> failed(Why, Node, Session)
    end;
step(define, #{node := Name} = Node, #{dir := Dir} = Session) ->
    case remember_unproven(Name, Session) of
        {ok, _} ->
            script(Node, weft_deploy_shell:define(Dir, weft_deploy_apply:definition(Node)),
                   Session);
        Error ->
            Error
    end;
step(undo, #{node := Name} = Node, #{dir := Dir} = Session) ->
    case script(Node, weft_deploy_shell:undo(Dir, Name), Session) of
        ok -> ok;
        {error, Why} -> failed(Why, Node, Session)
    end;
step(return, Node, Session) ->
    started(Node, Session);
step(start, Node, Session) ->
    case started(Node, Session) of
        ok -> ok;
        {error, Why} -> failed(Why, Node, Session)
    end.

failed(Why, Node, Session) ->
    case script(Node, "exit 0\n", Session) of
        ok -> {error, Why};
        {error, Gone} -> {lost, "its host does not answer: " ++ Gone}
    end.

started(Node, Session) ->
    case weft_deploy_apply:start([Node], fun(_, _) -> false end, Session) of
        {[_], []} -> ok;
        {_, [{_, Why} | _]} -> {error, Why}
    end.

script(#{host := Host}, Script, Session) ->
    case weft_deploy_session:on([Host],
                                fun(_, Connection) -> weft_deploy_host:script(Connection, Script)
                                end, Session) of
        [{_, {ok, _}}] -> ok;
        [{_, {error, Why}}] -> {error, Why}
    end.

%% @doc Leads all traffic of others around a node. With Leaves it goes for good, and the others are
%% told. A deployment without a topology has no such traffic.
-spec drain(#{node := string(), host := string(), _ => _}, Leaves :: boolean(),
            weft_deploy_session:session()) -> ok | {error, string()}.
drain(_Node, _Leaves, #{spec := #{topology := none}}) ->
    ok;
drain(#{node := Name, host := Host}, Leaves, #{seen := Seen, spec := #{drain_s := DrainS}} =
          Session) ->
    Others = [list_to_atom(Other) || {ok, #{nodes := Nodes}} <- maps:values(Seen),
                                     {Other, #{up := true}} <- maps:to_list(Nodes),
                                     Other =/= Name],
    Request = #{do => drain, nodes => [list_to_atom(Name)], others => Others, leaves => Leaves,
                within_ms => DrainS * 1000},
    case weft_deploy_session:connection(Host, Session) of
        {ok, Connection} ->
            drained(weft_deploy_ask:ask(Connection, weft_deploy_session:place(Host, Session),
                                        Request, DrainS * 1000 + 60000), Name, Session);
        {error, Why} ->
            {error, Why}
    end.

drained({ok, [{Name, ok, Ms, Note}]}, Name, Session) ->
    Text = io_lib:format("~ts: drained in ~.1f s~ts",
                         [Name, Ms / 1000, case Note of "" -> ""; _ -> ": " ++ Note end]),
    weft_deploy_session:progress(Text, Session);
drained({ok, [{Name, bad, _, Why}]}, Name, _Session) -> {error, Why};
drained({ok, _Other}, _Name, _Session) -> {error, "nobody on the host could talk to it"};
drained({error, Why}, _Name, _Session) -> {error, Why}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Carries out a plan: uploads, starts some nodes at a time and waits until they are healthy,
%% then stops what shall not be there.
%%
%% What fails on one host or node is told and does not stop the rest. Each step may be repeated.
-module(weft_deploy_apply).

-export([run/2, reopen/2, recheck/2, upload/2, definition/1, start/3, stop/2, prune/1]).
-export_type([outcome/0]).

-type outcome() :: #{started := [{Node :: string(), Ms :: non_neg_integer()}],
                     %% killed: those of stopped that did not end in time.
                     stopped := [string()], killed := [string()],
                     failed := [{Where :: string(), Why :: string()}],
                     %% Of which others do not know in which groups they are.
                     ungrouped => [Node :: string()]}.

%% Nodes that end at once share the processors of their host.
-define(ENDING_IN_A_SECOND, 8).
-define(UPLOAD_MS, 600000).
-define(CALLS_MS, 60000).

%% @doc All of a plan.
-spec run(weft_deploy_plan:plan(), weft_deploy_session:session()) -> outcome().
run(#{start := Start, restart := Restart, upload := Uploads, stop := Stop, forget := Forget,
      lost := Lost, reopen := Reopen, recheck := Recheck}, #{state := State} = Session) ->
    NotOpened = reopen(Reopen, Session),
    NotRechecked = recheck(Recheck, Session),
    Bad = upload(Uploads, Session),
    Missing = [{Host, Version} || {Host, Version, _} <- Bad],
    Ready = [Node || #{host := Host, version := Version} = Node <- Start ++ Restart,
                     not lists:member({Host, Version}, Missing)],
    {Started, NotStarted} = start(Ready, fun is_to_be_defined/2, Session),
    {NotIn, AgainIn} = weft_deploy_groups:follow(maps:get(ungrouped, State, [])
                                                     ++ [Node || {Node, _Ms} <- Started], Session),
    {Stopped, Killed, NotStopped} = retire(Stop, Session),
    Gone = Forget ++ [Pair || {_, Node} = Pair <- Stop, lists:member(Node, Stopped)],
    _ = forget(Gone, Session),
    {NotOut, AgainOut} = weft_deploy_groups:follow([Node || {_, Node} <- Gone], Session),
    #{started => Started, stopped => Stopped, killed => Killed,
      ungrouped => lists:usort(AgainIn ++ AgainOut),
      failed => Lost ++ NotOpened ++ NotRechecked
          ++ [{Host, Version ++ ": " ++ Why} || {Host, Version, Why} <- Bad]
          ++ NotStarted ++ NotIn ++ NotStopped ++ NotOut}.

%% @doc Nodes lead traffic of others again; those that do not.
-spec reopen([{Host :: string(), Node :: string()}], weft_deploy_session:session()) ->
          [{Where :: string(), Why :: string()}].
reopen(Nodes, Session) ->
    Results = weft_deploy_session:on(
                lists:usort([Host || {Host, _} <- Nodes]),
                fun(Host, Connection) ->
                    Here = [list_to_atom(Node) || {At, Node} <- Nodes, At =:= Host],
                    weft_deploy_ask:ask(Connection, weft_deploy_session:place(Host, Session),
                                        #{do => open, nodes => Here}, ?CALLS_MS)
                end, Session),
    Told = [Result || {_, {ok, Here}} <- Results, Result <- Here],
    _ = [weft_deploy_session:progress([Node, ": lets others pass again"], Session)
         || {Node, ok, _, _} <- Told],
    [{Host, Why} || {Host, {error, Why}} <- Results]
        ++ [{Node, "its transit is closed: " ++ Why} || {Node, bad, _, Why} <- Told].

%% @doc Nodes run on, and are asked in another way whether they are healthy; those of which that
%% could not be written.
-spec recheck([weft_deploy_nodes:desired()], weft_deploy_session:session()) ->
          [{Host :: string(), Why :: string()}].
recheck(Nodes, #{dir := Dir} = Session) ->
    Results = weft_deploy_session:on(
                lists:usort([Host || #{host := Host} <- Nodes]),
                fun(Host, Connection) ->
                    Scripts = [weft_deploy_shell:recheck(Dir, definition(Node))
                               || #{host := At} = Node <- Nodes, At =:= Host],
                    weft_deploy_host:script(Connection, Scripts)
                end, Session),
    Failed = [{Host, Why} || {Host, {error, Why}} <- Results],
    _ = [weft_deploy_session:progress([Node, ": has another health check"], Session)
         || #{node := Node, host := Host} <- Nodes, not lists:keymember(Host, 1, Failed)],
    Failed.

%% One whose new state was rolled back starts again as it is.
is_to_be_defined(#{id := Id, host := Host, node := Node},
                 #{state := #{bad := Bad}, seen := Seen}) ->
    #{Host := {ok, #{nodes := Nodes}}} = Seen,
    not (is_map_key(Node, Nodes) andalso lists:member(Id, Bad)).

%% @doc Puts versions on hosts that lack them; what failed.
-spec upload([{Host :: string(), Version :: string()}], weft_deploy_session:session()) ->
          [{Host :: string(), Version :: string(), Why :: string()}].
upload(Uploads, #{dir := Dir, versions := Versions, own_code := Code,
                  spec := #{families := Families}} = Session) ->
    Needed = lists:usort([Version || {_, Version} <- Uploads]),
    Contents = maps:from_list([{Version, weft_deploy_artifact:content(Family, Code)}
                               || Version <- Needed, #{name := Name} = Family <- Families,
                                  map_get(Name, Versions) =:= Version]),
    Results = weft_deploy_session:on(
                lists:usort([Host || {Host, _} <- Uploads]),
                fun(Host, Connection) ->
                    Prepared = prepare(Connection, Session),
                    [{Version, then(Prepared, fun() ->
                                                  one(Connection, Dir, Version,
                                                      map_get(Version, Contents))
                                              end)}
                     || {To, Version} <- Uploads, To =:= Host]
                end, Session),
    lists:append([upload_result(Result, Uploads, Session) || Result <- Results]).

prepare(Connection, #{dir := Dir, cookie := Cookie, spec := #{name := Name}}) ->
    weft_deploy_host:script(Connection, weft_deploy_shell:prepare(Dir, Name, Cookie)).

one(Connection, Dir, Version, {ok, Content}) ->
    case weft_deploy_host:put(Connection, Dir ++ "/upload/" ++ Version, Content) of
        ok -> weft_deploy_host:run(Connection, weft_deploy_shell:unpack(Dir, Version),
                                   ?UPLOAD_MS);
        Error -> Error
    end;
one(_Connection, _Dir, _Version, Error) ->
    Error.

then({ok, _}, Fun) -> Fun();
then(Error, _Fun) -> Error.

upload_result({Host, {error, Why}}, Uploads, _Session) ->
    [{Host, Version, Why} || {To, Version} <- Uploads, To =:= Host];
upload_result({Host, Results}, _Uploads, Session) ->
    _ = [weft_deploy_session:progress([Host, ": release ", Version], Session)
         || {Version, {ok, _}} <- Results],
    [{Host, Version, Why} || {Version, {error, Why}} <- Results].

%% --- start --------------------------------------------------------------------------------------

%% @doc Starts nodes, as many at a time as the deployment says, and waits until they are healthy.
%% Those that run and have left the cluster are stopped before.
-spec start([weft_deploy_nodes:desired()],
            fun((weft_deploy_nodes:desired(), weft_deploy_session:session()) -> boolean()),
            weft_deploy_session:session()) ->
          {[{string(), non_neg_integer()}], Failed :: [{string(), string()}]}.
start(Nodes, IsDefined, #{spec := #{parallel := Parallel}} = Session) ->
    Hosts = lists:usort([Host || #{host := Host} <- Nodes]),
    Results = weft_deploy_session:on(
                Hosts,
                fun(_Host, Connection) -> prepare(Connection, Session) end, Session),
    {_, _, NotStopped} = stop(have_left(Nodes, Session), Session),
    Unready = lists:usort([{Host, Why} || {Host, {error, Why}} <- Results] ++ NotStopped),
    Rest = [Node || #{host := Host, node := Name} = Node <- Nodes,
                    not lists:keymember(Host, 1, Unready),
                    not lists:keymember(Name, 1, Unready)],
    {Parts, Failed} = parts(Parallel, Rest, IsDefined, are_others_up(Rest, Session), Session, [],
                            Unready),
    Unlinked = unlinked(Parts, Rest, Session),
    {[Pair || {Node, _Ms} = Pair <- lists:append(Parts), not lists:keymember(Node, 1, Unlinked)],
     Failed ++ Unlinked}.

parts(_Parallel, [], _IsDefined, _AreOthersUp, _Session, Started, Failed) ->
    {lists:reverse(Started), Failed};
parts(Parallel, Nodes, IsDefined, AreOthersUp, Session, Started, Failed) ->
    {Now, Later} = lists:split(min(Parallel, length(Nodes)), Nodes),
    %% The first one alone has nobody to be linked with.
    IsLinked = (AreOthersUp orelse Started =/= [] orelse length(Now) > 1)
        andalso (Later =:= [] orelse not has_later_links(Session)),
    {Good, Bad} = part(Now, IsDefined, IsLinked, Session),
    parts(Parallel, Later, IsDefined, AreOthersUp, Session, [Good | Started], Failed ++ Bad).

have_left(Nodes, #{seen := Seen}) ->
    [{Host, Node} || #{host := Host, node := Node} <- Nodes,
                     {ok, #{nodes := #{Node := #{up := true, left := true}}}}
                         <- [maps:get(Host, Seen)]].

%% All that a node is to be linked with may be in a later part.
has_later_links(#{spec := #{topology := Topology}}) ->
    not lists:member(Topology, [full_mesh, none]).

%% Those of the parts before the last one that have no link when all are there.
unlinked([_, _ | _] = Parts, Nodes, Session) ->
    Before = lists:append(lists:droplast(Parts)),
    Again = [Node || #{node := Name} = Node <- Nodes, lists:keymember(Name, 1, Before),
                     has_later_links(Session)],
    Results = weft_deploy_session:on(
                lists:usort([Host || #{host := Host} <- Again]),
                fun(Host, _Connection) ->
                    Here = [Node || #{host := At} = Node <- Again, At =:= Host],
                    since(fun() -> healthy(Here, true, Session) end)
                end, Session),
    Each = lists:append([each(Host, Result, Again, Session) || {Host, Result} <- Results]),
    [{Node, Why} || {Node, bad, _, Why} <- told([Bad || {_, bad, _, _} = Bad <- Each], Session)];
unlinked(_Parts, _Nodes, _Session) ->
    [].

%% One that is upgraded was seen to run, too.
are_others_up(Nodes, #{seen := Seen}) ->
    Up = [Node || {ok, #{nodes := Here}} <- maps:values(Seen),
                  {Node, #{up := true}} <- maps:to_list(Here)],
    Up -- [Node || #{node := Node} <- Nodes] =/= [].

part(Nodes, IsDefined, IsLinked, #{dir := Dir} = Session) ->
    Results = weft_deploy_session:on(
                lists:usort([Host || #{host := Host} <- Nodes]),
                fun(Host, Connection) ->
                    Here = [Node || #{host := At} = Node <- Nodes, At =:= Host],
                    Scripts = [weft_deploy_shell:define(Dir, definition(Node))
                               || Node <- Here, IsDefined(Node, Session)],
                    Names = [Name || #{node := Name} <- Here],
                    Launch = weft_deploy_shell:launch(Dir, Names),
                    %% Before `||' the shell would not end at the first failure.
                    All = [["(", Script, ")\n[ $? -eq 0 ] || exit 1\n"] || Script <- Scripts]
                        ++ [Launch],
                    since(fun() ->
                              then(weft_deploy_host:script(Connection, All),
                                   fun() -> healthy(Here, IsLinked, Session) end)
                          end)
                end, Session),
    Each = told(lists:append([each(Host, Result, Nodes, Session) || {Host, Result} <- Results]),
                Session),
    {[{Node, Ms} || {Node, ok, Ms, _} <- Each], [{Node, Why} || {Node, bad, _, Why} <- Each]}.

%% @doc What is written of a node on its host.
-spec definition(weft_deploy_nodes:desired()) -> weft_deploy_shell:definition().
definition(#{start := Start, health := Health} = Node) ->
    Healthy = unicode:characters_to_binary(io_lib:format("%% coding: utf-8~n~0tp.~n",
                                                         [{Start, Health}])),
    (maps:with([node, id, words, environment, config], Node))#{healthy => Healthy}.

since(Fun) ->
    Started = erlang:monotonic_time(millisecond),
    {Fun(), Started}.

each(Host, {error, Why}, Nodes, _Session) ->
    [{Node, bad, 0, Why} || #{node := Node, host := At} <- Nodes, At =:= Host];
each(Host, {{error, Why}, _Started}, Nodes, Session) ->
    each(Host, {error, Why}, Nodes, Session);
each(Host, {{ok, Results}, Started}, Nodes, #{dir := Dir} = Session) ->
    %% Times are those since the start of the part, as far as they can be told apart from here.
    Spent = erlang:monotonic_time(millisecond) - Started,
    Longest = lists:max([0 | [Ms || {_, _, Ms, _} <- Results]]),
    [case lists:keyfind(Node, 1, Results) of
         {Node, ok, Ms, _} -> {Node, ok, Spent - Longest + Ms, ""};
         {Node, bad, Ms, Why} -> {Node, bad, Ms, Why ++ log(Host, Node, Dir, Session)};
         false -> {Node, bad, 0, "nothing is known of it: the host did not say"}
     end || #{node := Node, host := At} <- Nodes, At =:= Host].

told(Results, Session) ->
    lists:foreach(fun({Node, ok, Ms, _}) ->
                          Text = io_lib:format("~ts: up after ~.1f s", [Node, Ms / 1000]),
                          weft_deploy_session:progress(Text, Session);
                     ({Node, bad, _, Why}) ->
                          weft_deploy_session:progress([Node, ": failed: ", Why], Session)
                  end, Results),
    Results.

log(Host, Node, Dir, Session) ->
    {ok, Connection} = weft_deploy_session:connection(Host, Session),
    case weft_deploy_host:script(Connection, weft_deploy_shell:log_tail(Dir, Node)) of
        {ok, <<>>} -> "";
        {ok, Text} -> lists:flatten(io_lib:format(". Its log ends with:~n~ts",
                                                  [string:trim(Text)]));
        {error, _} -> ""
    end.

%% Waits until nodes of one host are healthy.
healthy([#{host := Host} | _] = Nodes, IsLinked,
        #{spec := #{healthy_s := HealthyS, stable_s := StableS} = Spec} = Session) ->
    {ok, Connection} = weft_deploy_session:connection(Host, Session),
    WithinMs = HealthyS * 1000,
    StableMs = round(StableS * 1000),
    IsTopology = maps:get(topology, Spec) =/= none,
    weft_deploy_ask:ask(Connection, weft_deploy_session:place(Host, Session),
                        #{do => healthy, linked => IsLinked andalso IsTopology,
                          nodes => [list_to_atom(Node) || #{node := Node} <- Nodes],
                          within_ms => WithinMs, stable_ms => StableMs}, WithinMs + 2 * StableMs).

%% --- stop ---------------------------------------------------------------------------------------

%% Nodes that go for good, one by one: nobody loses a message, and nobody waits for them. One that
%% is the only way between others stays, and is told.
retire(Nodes, #{seen := Seen} = Session0) ->
    Staying = maps:map(fun(Host, {ok, #{nodes := Here} = Now}) ->
                               Going = [Node || {At, Node} <- Nodes, At =:= Host],
                               {ok, Now#{nodes := maps:without(Going, Here)}};
                          (_Host, Lost) -> Lost
                       end, Seen),
    Session = Session0#{seen := Staying},
    lists:foldl(
      fun({Host, Node} = Pair, {Stopped, Killed, Failed}) ->
          case weft_deploy_upgrade:drain(#{host => Host, node => Node}, true, Session) of
              ok ->
                  {Gone, ByForce, NotGone} = stop([Pair], Session),
                  {Gone ++ Stopped, ByForce ++ Killed, Failed ++ NotGone};
              {error, Why} ->
                  weft_deploy_session:progress([Node, ": not stopped: ", Why], Session),
                  {Stopped, Killed, Failed ++ [{Node, "not stopped: " ++ Why}]}
          end
      end, {[], [], []}, Nodes).

%% @doc Stops nodes, on all hosts at once. Those that do not end in time are killed; they are among
%% those that are stopped.
-spec stop([{Host :: string(), Node :: string()}], weft_deploy_session:session()) ->
          {Stopped :: [string()], Killed :: [string()], Failed :: [{string(), string()}]}.
stop(Nodes, #{dir := Dir, spec := #{stop_s := StopS}} = Session) ->
    Results = weft_deploy_session:on(
                lists:usort([Host || {Host, _} <- Nodes]),
                fun(Host, Connection) ->
                    Here = [Node || {At, Node} <- Nodes, At =:= Host],
                    GraceS = StopS + length(Here) div ?ENDING_IN_A_SECOND,
                    weft_deploy_host:run(Connection, weft_deploy_shell:stop(Dir, Here, GraceS),
                                         GraceS * 1000 + ?CALLS_MS)
                end, Session),
    Left = [Node || {_, {ok, Output}} <- Results, Node <- weft_deploy_shell:left(Output)],
    Stopped = [Node || {Host, {ok, _}} <- Results, {At, Node} <- Nodes, At =:= Host,
                       not lists:member(Node, Left)],
    Killed = [Node || {_, {ok, Output}} <- Results, Node <- weft_deploy_shell:killed(Output),
                      lists:member(Node, Stopped)],
    _ = [weft_deploy_session:progress([Node, ": stopped",
                                       [weft_deploy_text:by_force() || lists:member(Node, Killed)]],
                                      Session) || Node <- Stopped],
    {Stopped, Killed, [{Host, Why} || {Host, {error, Why}} <- Results]
         ++ [{Node, "it can not be stopped, and runs on"} || Node <- Left]}.

forget(Nodes, #{dir := Dir} = Session) ->
    weft_deploy_session:on(
      lists:usort([Host || {Host, _} <- Nodes]),
      fun(Host, Connection) ->
          Here = [Node || {At, Node} <- Nodes, At =:= Host],
          weft_deploy_host:script(Connection, weft_deploy_shell:remove(Dir, Here))
      end, Session).

%% --- releases -----------------------------------------------------------------------------------

%% @doc Removes releases that hosts need no more. What can not be removed is left to the next time.
-spec prune(weft_deploy_session:session()) -> ok.
prune(#{dir := Dir, seen := Seen, versions := Versions,
        spec := #{keep_releases := Keep}} = Session) ->
    Old = weft_deploy_plan:surplus_releases(maps:values(Versions), Keep, Seen),
    Results = weft_deploy_session:on(
                [Host || {Host, _} <- Old],
                fun(Host, Connection) ->
                    {Host, Here} = lists:keyfind(Host, 1, Old),
                    weft_deploy_host:script(Connection, weft_deploy_shell:prune(Dir, Here))
                end, Session),
    lists:foreach(fun({{Host, Here}, {Host, {ok, _}}}) ->
                          weft_deploy_session:progress([Host, ": removed ", lists:join(", ", Here)],
                                                       Session);
                     (_) -> ok
                  end, lists:zip(Old, Results)).

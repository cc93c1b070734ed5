%% SPDX-License-Identifier: Apache-2.0
%% @doc Deploys nodes as a file of Erlang terms says: what `weft deploy' does
%% (docs/guide/deploy.md).
%%
%% Each function reads the file, asks the hosts what is there, and brings about the difference. What
%% it answers is for people and, as data, for programs; it never has the cookie in it. Options:
%% `root' (".weft"), where the command keeps what it remembers; `progress', a function that gets
%% lines while something goes on.
-module(weft_deploy).

-export([plan/2, apply/2, scale/3, status/2, upgrade/2, rollback/3, drain/3, down/2,
         export/3, reach/3]).
-export_type([options/0, answer/0]).

-type options() :: #{root => string(), progress => weft_deploy_session:progress(),
                     again => boolean(), purge => boolean(), break_lock => boolean(),
                     adopt => boolean(), atom() => term()}.
%% wanting: something failed, and the rest was done.
-type answer() :: {ok | wanting, Json :: term(), unicode:chardata()}
                | {failed | usage, unicode:chardata()}.

%% @doc What apply/2 would do. Nothing is changed.
-spec plan(File :: string(), options()) -> answer().
plan(File, Options) ->
    with(File, Options, {unlocked, code},
         fun(Session) ->
             Plan = weft_deploy_session:plan(Session, again(Options)),
             Kind = case Plan of #{lost := []} -> ok; _ -> wanting end,
             {Kind, weft_deploy_text:json(Plan), weft_deploy_text:plan(Plan)}
         end).

%% @doc Starts what is missing, and what has failed; stops what shall not be there.
-spec apply(File :: string(), options()) -> answer().
apply(File, Options) ->
    with(File, Options, {locked, code}, fun(Session) -> applied(Session, Options) end).

applied(Session, Options) ->
    #{start := Start} = Plan = weft_deploy_session:plan(Session, again(Options)),
    case weft_deploy_session:place_all(Start, Session) of
        {ok, Placed} -> brought_about(Plan, Placed);
        {error, Text} -> {failed, Text}
    end.

brought_about(#{changed := Changed} = Plan, Session) ->
    Outcome = #{failed := Failed, ungrouped := Ungrouped} = weft_deploy_apply:run(Plan, Session),
    #{state := State} = Looked = weft_deploy_session:look(Session),
    ok = weft_deploy_apply:prune(Looked),
    case weft_deploy_session:save(State#{ungrouped => Ungrouped}, Looked) of
        {ok, _} ->
            {case Failed of [] -> ok; _ -> wanting end,
             weft_deploy_text:outcome_json(Outcome, Changed),
             weft_deploy_text:outcome(Outcome, Changed)};
        {error, Text} ->
            {failed, Text}
    end.

%% @doc Remembers other numbers of nodes, such as `["web=5"]', and applies. A number in the file
%% counts again as soon as it is changed there.
-spec scale(File :: string(), [string()], options()) -> answer().
scale(File, Words, Options) ->
    with(File, Options, {locked, code},
         fun(#{spec := #{families := Families}, state := #{scaled := Scaled} = State} = Session) ->
             case weft_deploy_text:numbers(Words, Families) of
                 {ok, Numbers} ->
                     New = State#{scaled := maps:merge(Scaled, Numbers)},
                     case weft_deploy_session:save(New, Session) of
                         {ok, Saved} -> applied(Saved, Options);
                         {error, Text} -> {failed, Text}
                     end;
                 {error, Text} ->
                     {usage, Text}
             end
         end).

%% @doc Nodes that differ from the file become what it says, one by one; see
%% `weft_deploy_upgrade_core'. A rollback that was ended half-way is finished before.
-spec upgrade(File :: string(), options()) -> answer().
upgrade(File, Options) ->
    with(File, Options, {locked, code},
         fun(Session) ->
             case asked(again(Options), Session) of
                 {ok, Asked} -> finished(weft_deploy_session:plan(Asked, false), Asked);
                 {error, Text} -> {failed, Text}
             end
         end).

%% Before the first node is touched: if this is ended, too, what is tried again is not rolled back.
asked(false, Session) ->
    {ok, Session};
asked(true, #{state := #{bad := Bad} = State} = Session) ->
    Ids = [Id || #{id := Id} <- weft_deploy_session:desired(Session)],
    weft_deploy_session:save(State#{bad := [Id || Id <- Bad, not lists:member(Id, Ids)]}, Session).

finished(#{back := [], return := []} = Plan, Session) ->
    forward({[], []}, Plan, Session);
finished(#{back := Back, return := Return, reopen := Reopen, lost := Lost}, Session) ->
    ok = weft_deploy_session:progress("a rollback was not finished: it goes on", Session),
    _ = weft_deploy_apply:reopen(Reopen, Session),
    case weft_deploy_upgrade:finish(Return, Back, Session) of
        #{failed := none, done := Undone, killed := Killed} ->
            Looked = weft_deploy_session:look(Session),
            forward({Undone, Killed}, weft_deploy_session:plan(Looked, false), Looked);
        #{done := Undone} = Outcome ->
            upgraded(Outcome#{done := [], undone := Undone}, [], Lost, Session)
    end.

%% Before: nodes that the rest of a rollback has made what they were, and those that were killed.
forward(Before, #{reopen := Reopen, recheck := Recheck, as_is := Down} = Plan, Session) ->
    _ = weft_deploy_apply:reopen(Reopen, Session),
    _ = weft_deploy_apply:recheck(Recheck, Session),
    case revived(Down, Plan, Session) of
        {ok, Now, Looked} -> onward(Before, Now, Looked);
        {Failed, Now, Looked} -> stays_down(Before, Failed, Now, Looked)
    end.

%% Before a node that runs is stopped, those that are down start as they are, if there is nothing
%% new for them, or it was rolled back. The others have to know in which groups they are.
revived([], Plan, Session) ->
    {ok, Plan, Session};
revived(Down, _Plan, #{state := State} = Session) ->
    ok = are_down(Down, Session),
    {Started, Failed} = weft_deploy_apply:start(Down, fun(_, _) -> false end, Session),
    Ungrouped = [Name || {Name, _Ms} <- Started] ++ maps:get(ungrouped, State, []),
    Looked = weft_deploy_session:look(Session#{state := State#{ungrouped => Ungrouped}}),
    #{as_is := Still} = Now = weft_deploy_session:plan(Looked, false),
    case Failed ++ [{Name, "it was started, and is down again"} || #{node := Name} <- Still] of
        [] -> {ok, Now, Looked};
        [First | _] -> {First, Now, Looked}
    end.

are_down(Nodes, Session) ->
    lists:foreach(fun(#{node := Name}) ->
                      weft_deploy_session:progress([Name, ": it is down, and starts before others "
                                                          "are stopped"], Session)
                  end, Nodes).

stays_down({Undone, Killed}, Failed, #{as_is := Down, anew := Anew, unproven := Unproven,
                                       changed := Changed, refused := Refused, lost := Lost},
           Session) ->
    upgraded(#{done => [], undone => Undone, killed => Killed, failed => Failed, bad => [],
               left => [Name || #{node := Name} <- Down ++ Anew ++ Unproven ++ Changed]},
             Refused, Lost, Session).

onward({Before, KilledBefore}, #{changed := Changed, refused := Refused, lost := Lost,
                                 unproven := Unproven, along := Along, anew := Anew}, Session) ->
    ok = are_down(Anew, Session),
    _ = [weft_deploy_session:progress([Name, ": an upgrade was ended before it was healthy: it is "
                                             "looked at again"], Session)
         || #{node := Name} <- Unproven],
    #{undone := Undone, killed := Killed} = Outcome =
        weft_deploy_upgrade:resume({Unproven, Along, Anew}, Changed, Session),
    upgraded(Outcome#{undone := Before ++ Undone, killed := KilledBefore ++ Killed}, Refused, Lost,
             Session).

upgraded(#{bad := New, done := Done, undone := Undone} = Made, Refused, Lost, Session) ->
    #{state := #{bad := Bad} = State} = Session,
    Looked = weft_deploy_session:look(Session),
    {NotGrouped, Ungrouped} = weft_deploy_groups:follow(maps:get(ungrouped, State, [])
                                                            ++ Done ++ Undone, Looked),
    ok = weft_deploy_apply:prune(Looked),
    Saved = weft_deploy_session:save(State#{bad := New ++ (Bad -- New),
                                            unproven => maps:get(unproven, Made, [])
                                                ++ unproven(State, Made, Lost),
                                            ungrouped => lists:usort(Ungrouped)}, Looked),
    Failures = [Failed || Failed <- [maps:get(failed, Made)], Failed =/= none] ++ NotGrouped,
    case Saved of
        {ok, _} ->
            {case Failures ++ Lost of [] -> ok; _ -> wanting end,
             weft_deploy_text:upgrade_json(Made, Refused, {Lost, Failures}),
             weft_deploy_text:upgrade(Made, Refused, {Lost, Failures})};
        {error, Text} ->
            {failed, Text}
    end.

%% Of what was unproven before, what was not looked at stays so. Of the others it is known what they
%% are, or what they are made of now is bad.
unproven(State, #{done := Done, undone := Undone, left := Left} = Made, Lost) ->
    [Name || Name <- maps:get(unproven, State, [])
                         -- (Done ++ Undone ++ maps:get(unproven, Made, [])),
             Lost =/= [] orelse lists:member(Name, Left)].

%% @doc Nodes of these families, or of all, become what they were before their last upgrade, one by
%% one. What they were upgraded to is not tried again unasked.
-spec rollback(File :: string(), [Family :: string()], options()) -> answer().
rollback(File, Words, Options) ->
    with(File, Options, {locked, code},
         fun(#{spec := #{families := Families}} = Session) ->
             Known = [atom_to_list(Name) || #{name := Name} <- Families],
             case Words -- Known of
                 [] -> rolled_back(Words, Session);
                 [Other | _] -> {usage, ["no family ", Other, " in the file: it has ",
                                         lists:join(", ", Known)]}
             end
         end).

rolled_back(Words, #{seen := Seen} = Session) ->
    #{return := Return} = weft_deploy_session:plan(Session, false),
    IsMeant = fun(#{family := Family}) ->
                  Words =:= [] orelse lists:member(atom_to_list(Family), Words)
              end,
    Nodes = [Node#{id := Id}
             || #{host := Host, node := Name} = Node
                    <- lists:reverse(weft_deploy_session:desired(Session)),
                IsMeant(Node),
                {ok, #{nodes := #{Name := #{id := Id, previous := Previous}}}}
                    <- [maps:get(Host, Seen)],
                Previous =/= none],
    %% Known before the first one is stopped: `apply' makes none of them again what it is now.
    case weft_deploy_upgrade:remember_bad([Id || #{id := Id} <- Nodes], Session) of
        {ok, _} -> undone(lists:filter(IsMeant, Return), Nodes, Session);
        {error, Text} -> {failed, Text}
    end.

undone(Return, Nodes, #{seen := Seen} = Session) ->
    _ = weft_deploy_apply:reopen(weft_deploy_plan:closed(Seen), Session),
    #{done := Done} = Outcome = weft_deploy_upgrade:finish(Return, Nodes, Session),
    Bad = lists:usort([Id || #{node := Name, id := Id} <- Nodes, lists:member(Name, Done)]),
    Lost = [{Host, Why} || {Host, {error, Why}} <- lists:sort(maps:to_list(Seen))],
    upgraded(Outcome#{bad := Bad, done := [], undone := Done}, [], Lost, Session).

%% @doc Leads the traffic of others around a node, then stops it. `apply' starts it again.
-spec drain(File :: string(), [Node :: string()], options()) -> answer().
drain(File, [Name], Options) ->
    with(File, Options, {locked, nothing},
         fun(#{seen := Seen} = Session) ->
             case [{Host, Node} || {Host, {ok, #{nodes := Nodes}}} <- maps:to_list(Seen),
                                   {Node, #{up := true}} <- maps:to_list(Nodes),
                                   Node =:= Name orelse hd(string:split(Node, "@")) =:= Name] of
                 [Pair] -> drained(Pair, Session);
                 [] -> {usage, ["no node ", Name, " runs; see weft deploy status"]};
                 _ -> {usage, [Name, " is on several hosts: write the whole name"]}
             end
         end);
drain(_File, _Words, _Options) ->
    {usage, "say which node is to be drained"}.

drained({Host, Node} = Pair, #{seen := Seen} = Session) ->
    _ = weft_deploy_apply:reopen(weft_deploy_plan:closed(Seen), Session),
    case weft_deploy_upgrade:drain(#{host => Host, node => Node}, false, Session) of
        ok ->
            {Stopped, Killed, Failed} = weft_deploy_apply:stop([Pair], Session),
            Outcome = #{started => [], stopped => Stopped, killed => Killed, failed => Failed},
            {case Failed of [] -> ok; _ -> wanting end,
             weft_deploy_text:outcome_json(Outcome, []), weft_deploy_text:outcome(Outcome, [])};
        {error, Why} ->
            {failed, [Node, " goes on: ", Why]}
    end.

%% @doc Which nodes there are, on which hosts, made of what.
-spec status(File :: string(), options()) -> answer().
status(File, Options) ->
    with(File, Options, {unlocked, nothing},
         fun(#{seen := Seen, unbuilt := Unbuilt} = Session) ->
             Rows = weft_deploy_text:rows(weft_deploy_session:desired(Session), Seen),
             IsWhole = lists:all(fun(#{state := State}) -> State =:= up end, Rows)
                 andalso lists:all(fun(Host) -> element(1, Host) =:= ok end, maps:values(Seen)),
             {case IsWhole of true -> ok; false -> wanting end,
              weft_deploy_text:status_json(Rows, Seen, Unbuilt),
              [weft_deploy_text:status(Rows, Seen),
               [[Text, ": which of its nodes differ from the file is not known\n"]
                || Text <- Unbuilt]]}
         end).

%% @doc Fun is called with a way to the nodes (`weft_deploy_reach'), and its answer is the answer.
%% `not_up': none of them runs.
-spec reach(File :: string(), options(), fun((weft_deploy_reach:reach()) -> Answer)) ->
          Answer | {failed | usage | not_up, unicode:chardata()}.
reach(File, Options, Fun) ->
    with(File, Options, {unlocked, nothing},
         fun(Session) ->
             case weft_deploy_reach:open(Session) of
                 {ok, Reach} -> try Fun(Reach) after weft_deploy_reach:close(Reach) end;
                 {none, Text} -> {not_up, Text};
                 {error, Text} -> {failed, Text}
             end
         end).

%% @doc Stops all nodes of the deployment, and nothing else. Releases and logs stay on the hosts,
%% unless they are to be removed too; then numbers that were changed by scale/3 are forgotten.
-spec down(File :: string(), options()) -> answer().
down(File, Options) ->
    with(File, Options, {locked, nothing}, fun(Session) -> stopped(Session, Options) end).

stopped(#{seen := Seen, dir := Dir, erl := Erl, spec := #{epmd_port := Port}} = Session,
        Options) ->
    Nodes = [{Host, Node} || {Host, {ok, #{nodes := Here}}} <- lists:sort(maps:to_list(Seen)),
                             Node <- lists:sort(maps:keys(Here))],
    {Stopped, Killed, Failed} = weft_deploy_apply:stop(Nodes, Session),
    IsPurged = maps:get(purge, Options, false),
    Last = case IsPurged of true -> weft_deploy_shell:purge(Dir); false -> "" end,
    Running = [Host || {Host, Node} <- Nodes, not lists:member(Node, Stopped)],
    Hosts = [Host || {Host, {ok, _}} <- maps:to_list(Seen)] -- lists:usort(Running),
    _ = weft_deploy_session:on(
          Hosts, fun(Host, Connection) ->
                     Here = [Node || {At, Node} <- Nodes, At =:= Host],
                     [weft_deploy_host:script(Connection, Script)
                      || Script <- [weft_deploy_shell:remove(Dir, Here),
                                    weft_deploy_shell:end_epmd(Dir, Erl, Port), Last],
                         Script =/= ""]
                 end, Session),
    Lost = [{Host, Why} || {Host, {error, Why}} <- lists:sort(maps:to_list(Seen))],
    _ = forgotten(IsPurged, Hosts, Session),
    Outcome = #{started => [], stopped => Stopped, killed => Killed, failed => Lost ++ Failed},
    {case Lost ++ Failed of [] -> ok; _ -> wanting end,
     weft_deploy_text:outcome_json(Outcome, []), weft_deploy_text:outcome(Outcome, [])}.

%% No node is anywhere but on hosts that do not answer. Hosts of which all was removed, or that
%% never had anything, get no copy of that.
forgotten(IsPurged, Done, #{state := State, seen := Seen, hosts := Hosts} = Session) ->
    #{placed := Placed, scaled := Scaled} = State,
    Kept = maps:filter(fun(_Name, Host) -> element(1, maps:get(Host, Seen, {none})) =:= error end,
                       Placed),
    Own = [Host || {Host, {ok, #{deployment := _}}} <- maps:to_list(Seen),
                   not IsPurged orelse not lists:member(Host, Done)],
    weft_deploy_session:save(State#{placed := Kept,
                                    scaled := case IsPurged of true -> #{}; false -> Scaled end},
                             Session#{seen := #{}, hosts := maps:with(Own, Hosts)}).

%% @doc Writes the deployment as files of other tools: [Kind] of `weft_deploy_export:kinds/0', to
%% the directory of the option `out'. Files that are there are not written over.
-spec export(File :: string(), [Kind :: string()], options()) -> answer().
export(File, [Kind], #{out := Out} = Options) ->
    case lists:member(Kind, weft_deploy_export:kinds()) of
        true -> with(File, Options, {unlocked, code},
                     fun(Session) -> exported(Kind, Out, Session) end);
        false -> {usage, ["there is no export to ", Kind, ": there are ",
                          lists:join(", ", weft_deploy_export:kinds())]}
    end;
export(_File, [_Kind], _Options) ->
    {usage, "say by --out in which directory the files are to be written"};
export(_File, _Words, _Options) ->
    {usage, ["say what to export to: ", lists:join(", ", weft_deploy_export:kinds())]}.

exported(Kind, Out, #{spec := Spec} = Session) ->
    case weft_deploy_export:check(Kind, Spec) of
        ok -> write_all(Kind, Out, Session);
        {error, Text} -> {usage, Text}
    end.

%% Which nodes hosts have that do not answer is not known.
write_all(Kind, Out, #{spec := Spec, seen := Seen} = Session) ->
    Lost = [{Host, Why} || {Host, {error, Why}} <- lists:sort(maps:to_list(Seen)),
                           weft_deploy_export:has_hosts(Kind)],
    Files = [{filename:join(Out, Name), Content}
             || {Name, Content} <- weft_deploy_export:files(Kind, Spec, [Host || {Host, _} <- Lost],
                                                            weft_deploy_session:facts(Session))],
    case {Lost, [Name || {Name, _} <- Files, filelib:is_file(Name)]} of
        {[], []} ->
            written(Files, []);
        {[], [There | _]} ->
            {failed, [There, " is there already: choose another directory by --out"]};
        {_, _} ->
            {failed, ["nothing is exported: ",
                      lists:join("; ", [[Host, " does not answer: ", Why] || {Host, Why} <- Lost])]}
    end.

written([], Done) ->
    Names = lists:reverse(Done),
    {ok, #{files => Names}, [[Name, $\n] || Name <- Names]};
written([{Name, Content} | Files], Done) ->
    Written = case filelib:ensure_dir(Name) of
                  ok -> file:write_file(Name, unicode:characters_to_binary(Content));
                  Error -> Error
              end,
    case Written of
        ok -> written(Files, [unicode:characters_to_binary(Name) | Done]);
        {error, Reason} -> {failed, [Name, ": ", file:format_error(Reason)]}
    end.

%% ------------------------------------------------------------------------------------------------

again(Options) -> maps:get(again, Options, false).

with(File, Options, {Locking, Needs}, Fun) ->
    Root = maps:get(root, Options, ".weft"),
    Progress = maps:get(progress, Options, fun(_) -> ok end),
    OnHosts = case Options of
                  #{break_lock := true} when Locking =:= locked -> breaking;
                  #{} -> Locking
              end,
    case weft_deploy_session:read(File, Root) of
        {ok, #{root := Own} = Read} ->
            Known = Read#{adopts => maps:get(adopt, Options, false)},
            Open = fun() -> weft_deploy_session:open(Known, OnHosts, Needs, Progress) end,
            locked(Locking, Own, fun() -> opened(Open(), Fun) end);
        {error, Kind, Text} ->
            {Kind, Text}
    end.

opened({ok, Session}, Fun) ->
    try weft_deploy_session:hide(Fun(Session), Session)
    after weft_deploy_session:close(Session)
    end;
opened({error, Kind, Text}, _Fun) ->
    {Kind, Text}.

locked(unlocked, _Own, Fun) -> Fun();
locked(locked, Own, Fun) ->
    case weft_deploy_state:lock(Own) of
        ok -> try Fun() after weft_deploy_state:unlock(Own) end;
        {error, Text} -> {failed, Text}
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What is to be done: the nodes that shall be there, beside those that are. Pure.
%%
%% A node that runs is never restarted by `apply': where it differs, it is `changed', and `upgrade'
%% changes it. A host that does not answer is named; nothing is decided about it. Applied twice,
%% there is nothing to do the second time.
-module(weft_deploy_plan).

-export([new/5, uploads/2, closed/1, surplus_releases/3, is_empty/1]).
-export_type([plan/0, seen/0]).

-type seen() :: #{Host :: string() => {ok, weft_deploy_shell:observed()} | {error, string()}}.
%% upload: versions that hosts lack. start: nodes that are not there; restart: that are there and do
%% not run, or have left the cluster. stop: nodes that run, and shall not; forget: that do not even
%% run. as_is and anew: those of restart that `upgrade' starts before it stops others: as they are,
%% since there is nothing new for them or it was rolled back, or made of what is new.
%% changed: nodes that differ; refused: those whose new state was rolled back. back and return
%% are what is left of a rollback that was not finished: nodes that still are what was rolled back,
%% with that id, the last ones first; and those of restart that have become what they were.
%% unproven: nodes that an upgrade has changed, which was ended before they were seen to be healthy;
%% along: others that have become the same, the last ones first, which are rolled back with them.
%% reopen: nodes that run and lead no traffic of others, since a drain was not finished. recheck:
%% nodes that run as they should, and whose health is to be asked in another way.
-type plan() :: #{upload := [{Host :: string(), Version :: string()}],
                  start := [weft_deploy_nodes:desired()],
                  restart := [weft_deploy_nodes:desired()],
                  as_is := [weft_deploy_nodes:desired()],
                  anew := [weft_deploy_nodes:desired()],
                  stop := [{Host :: string(), Node :: string()}],
                  forget := [{Host :: string(), Node :: string()}],
                  changed := [weft_deploy_nodes:desired()],
                  refused := [weft_deploy_nodes:desired()],
                  back := [weft_deploy_nodes:desired()],
                  return := [weft_deploy_nodes:desired()],
                  unproven := [weft_deploy_nodes:desired()],
                  along := [weft_deploy_nodes:desired()],
                  reopen := [{Host :: string(), Node :: string()}],
                  recheck := [weft_deploy_nodes:desired()],
                  same := non_neg_integer(),
                  lost := [{Host :: string(), Reason :: string()}]}.

%% @doc Bad are the ids that were rolled back; Again says to try them all the same. Unproven are
%% nodes that were not seen to be healthy since they were changed.
-spec new([weft_deploy_nodes:desired()], seen(), Bad :: [string()], Unproven :: [string()],
          Again :: boolean()) -> plan().
new(Desired, Seen, Bad, Unproven, Again) ->
    Barred = case Again of true -> []; false -> Bad end,
    {Begun, Along} = begun(Desired, Seen, Barred, Unproven),
    Sorted = [{case lists:member(Node, Begun) of
                   true -> begun(Node, Seen);
                   false -> kind(Node, Seen, Barred)
               end, Node} || Node <- Desired],
    Of = fun(Kind) -> [Node || {K, Node} <- Sorted, K =:= Kind] end,
    Ways = [way_back(Node, Seen, Barred) || Node <- Desired],
    Recheck = [Node || {Kind, Node} <- Sorted, lists:member(Kind, [same, unproven]),
                       has_other_check(Node, Seen)],
    {AsIs, Anew} = lists:partition(fun(Node) -> is_nothing_new(Node, Seen, Barred) end,
                                   Of(restart) -- Begun),
    Plan = #{start => Of(start), restart => Of(restart), as_is => AsIs, anew => Anew,
             changed => Of(changed), refused => Of(refused),
             same => length(Of(same) -- Recheck), recheck => Recheck,
             back => lists:reverse([Node || {back, Node} <- Ways]),
             return => [Node || {return, Node} <- Ways],
             unproven => Begun, along => lists:reverse(Along),
             lost => [{Host, Reason} || {Host, {error, Reason}} <- lists:sort(maps:to_list(Seen))]},
    Surplus = surplus(Desired, Seen),
    Going = [{Host, Node} || {_, Host, Node} <- Surplus],
    Plan#{reopen => closed(Seen) -- Going,
          stop => [{Host, Node} || {up, Host, Node} <- Surplus],
          forget => [{Host, Node} || {down, Host, Node} <- Surplus],
          upload => uploads(maps:get(start, Plan) ++ maps:get(restart, Plan), Seen)}.

kind(#{host := Host, node := Node, id := Id} = Desired, Seen, Barred) ->
    IsBarred = lists:member(Id, Barred),
    case Seen of
        #{Host := {ok, #{nodes := #{Node := #{up := true, left := false, id := Own}}}}} ->
            case way_back(Desired, Seen, Barred) of
                {back, _} -> back;
                none when Own =:= Id -> same;
                none when IsBarred -> refused;
                none -> changed
            end;
        #{Host := {ok, #{nodes := #{Node := _}}}} -> restart;
        #{Host := {ok, _}} -> start;
        #{} -> lost
    end.

is_nothing_new(#{host := Host, node := Node, id := Id}, Seen, Barred) ->
    #{Host := {ok, #{nodes := #{Node := #{id := Own}}}}} = Seen,
    Own =:= Id orelse lists:member(Id, Barred).

%% The id of a node does not tell of it.
has_other_check(#{host := Host, node := Node, health := Health}, Seen) ->
    case Seen of
        #{Host := {ok, #{health := #{Node := Own}}}} -> Own =/= Health;
        #{} -> false
    end.

%% If the file names something else by now, that is what a node becomes.
way_back(#{host := Host, node := Node, id := Id} = Desired, Seen, Barred) ->
    case Seen of
        #{Host := {ok, #{nodes := #{Node := #{up := Up, left := Left, id := Own,
                                              previous := Previous}}}}} ->
            case {lists:member(Id, Barred), lists:member(Own, Barred)} of
                {true, true} when Previous =/= none -> {back, Desired#{id := Own}};
                {true, false} when not Up; Left -> {return, Desired};
                _ -> none
            end;
        #{} ->
            none
    end.

%% Nodes that an upgrade has made what they are to be, and of which nobody knows whether they are
%% healthy; and the others that it has made the same.
begun(Desired, Seen, Barred, Unproven) ->
    Made = [Node || #{host := Host, node := Name, id := Id} = Node <- Desired,
                    not lists:member(Id, Barred),
                    {ok, #{nodes := #{Name := #{id := Own, previous := Previous}}}}
                        <- [maps:get(Host, Seen, none)],
                    Own =:= Id, Previous =/= none],
    {Begun, Others} = lists:partition(fun(#{node := Name}) -> lists:member(Name, Unproven) end,
                                      Made),
    Ids = [Id || #{id := Id} <- Begun],
    {Begun, [Node || #{id := Id} = Node <- Others, lists:member(Id, Ids)]}.

%% One that does not run is started by `apply', too.
begun(#{host := Host, node := Node}, Seen) ->
    case Seen of
        #{Host := {ok, #{nodes := #{Node := #{up := true, left := false}}}}} -> unproven;
        #{} -> restart
    end.

surplus(Desired, Seen) ->
    Wanted = maps:from_list([{{Host, Node}, []} || #{host := Host, node := Node} <- Desired]),
    [{case Up of true -> up; false -> down end, Host, Node}
     || {Host, {ok, #{nodes := Nodes}}} <- lists:sort(maps:to_list(Seen)),
        {Node, #{up := Up}} <- lists:sort(maps:to_list(Nodes)),
        not is_map_key({Host, Node}, Wanted)].

%% @doc Nodes that run and lead no traffic of others, since a drain was not finished.
-spec closed(seen()) -> [{Host :: string(), Node :: string()}].
closed(Seen) ->
    [{Host, Node} || {Host, {ok, #{closed := Closed}}} <- lists:sort(maps:to_list(Seen)),
                     Node <- lists:sort(Closed)].

%% @doc Releases that no host needs to keep: nothing there is made of them, or would be after a
%% rollback, the file does not name them, and there are Keep newer ones of this kind.
-spec surplus_releases([Version :: string()], Keep :: non_neg_integer(), seen()) ->
          [{Host :: string(), [Version :: string(), ...]}].
surplus_releases(InFile, Keep, Seen) ->
    [{Host, Old}
     || {Host, {ok, #{releases := Releases, nodes := Nodes}}} <- lists:sort(maps:to_list(Seen)),
        Ids <- [lists:append([[Id, Previous] || #{id := Id, previous := Previous}
                                                    <- maps:values(Nodes)])],
        Used <- [InFile ++ [weft_deploy_nodes:version(Id) || Id <- Ids, Id =/= none]],
        [_ | _] = Old <- [lists:nthtail(min(Keep, length(Releases -- Used)), Releases -- Used)]].

%% @doc The versions that hosts lack for these nodes.
-spec uploads([weft_deploy_nodes:desired()], seen()) -> [{string(), string()}].
uploads(Nodes, Seen) ->
    lists:usort([{Host, Version} || #{host := Host, version := Version} <- Nodes,
                                    {ok, #{releases := Releases}} <- [maps:get(Host, Seen)],
                                    not lists:member(Version, Releases)]).

%% @doc Is there nothing that `apply' would do?
-spec is_empty(plan()) -> boolean().
is_empty(Plan) ->
    lists:all(fun(Key) -> map_get(Key, Plan) =:= [] end,
              [reopen, recheck, start, restart, stop, forget]).

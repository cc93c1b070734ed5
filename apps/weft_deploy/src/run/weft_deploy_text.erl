%% SPDX-License-Identifier: Apache-2.0
%% @doc What `weft deploy' says, in words and as data for JSON: plans, what became of them, the
%% state of nodes. Pure.
-module(weft_deploy_text).

-export([plan/1, json/1, outcome/2, outcome_json/2, upgrade/3, upgrade_json/3, rows/2, status/2,
         status_json/3, numbers/2, table/1, by_force/0]).

%% @doc A plan in words: a line for each node that it is about.
-spec plan(weft_deploy_plan:plan()) -> unicode:chardata().
plan(#{same := Same, lost := Lost} = Plan) ->
    Kinds = [{reopen, "lets others pass again: a drain was not finished"},
             {recheck, "gets another health check, and runs on"}, {start, "start"},
             {restart, "start again"}, {stop, "stop"}, {forget, "forget"},
             {changed, "changed: weft deploy upgrade"},
             {refused, "stays: what it would become was rolled back"},
             {back, "is what was rolled back: weft deploy upgrade goes on with that"},
             {unproven, "was not seen to be healthy: weft deploy upgrade looks at it again"}],
    Rows = [[name(Node), Text, version(Node)]
            || {Kind, Text} <- Kinds, Node <- map_get(Kind, Plan)],
    Changes = lists:sum([length(map_get(Kind, Plan))
                         || Kind <- [reopen, recheck, start, restart, stop, forget]]),
    [table(Rows), lost(Lost),
     io_lib:format("~ts, ~b as they should be~n", [plural(Changes, "change"), Same])].

name({_Host, Node}) -> Node;
name(#{node := Node}) -> Node.

version(#{id := Id}) -> Id;
version(_) -> "".

lost(Lost) -> [io_lib:format("~ts does not answer: ~ts~n", [Host, Why]) || {Host, Why} <- Lost].

%% @doc A plan as data.
-spec json(weft_deploy_plan:plan()) -> map().
json(#{same := Same, lost := Lost, upload := Uploads} = Plan) ->
    Kinds = [reopen, recheck, start, restart, stop, forget, changed, refused, back, unproven],
    maps:merge(maps:from_list([{Kind, [bin(name(Node)) || Node <- map_get(Kind, Plan)]}
                               || Kind <- Kinds]),
               #{same => Same, lost => failed(Lost),
                 upload => [#{host => bin(Host), version => bin(Version)}
                            || {Host, Version} <- Uploads]}).

failed(Failed) -> [#{what => bin(What), why => bin(Why)} || {What, Why} <- Failed].

%% @doc What was done, in words. Changed are nodes that still are to be upgraded.
-spec outcome(weft_deploy_apply:outcome(), [weft_deploy_nodes:desired()]) -> unicode:chardata().
outcome(#{started := Started, stopped := Stopped, killed := Killed, failed := Failed}, Changed) ->
    [[io_lib:format("~ts: ~ts~n", [What, Why]) || {What, Why} <- Failed],
     killed(Killed),
     case Changed of
         [] -> "";
         _ -> io_lib:format("~ts changed in the file: weft deploy upgrade changes them, one by "
                            "one~n", [verb(length(Changed))])
     end,
     io_lib:format("~b started, ~b stopped, ~b failed~n",
                   [length(Started), length(Stopped), length(Failed)])].

killed(Nodes) -> [[Node, ": stopped", by_force(), $\n] || Node <- Nodes].

%% @doc What is said of a node that was killed.
-spec by_force() -> string().
by_force() -> " by force: it did not end in time (stop_s), and was killed".

verb(1) -> "1 node is";
verb(Count) -> io_lib:format("~b nodes are", [Count]).

%% @doc The same as data.
-spec outcome_json(weft_deploy_apply:outcome(), [weft_deploy_nodes:desired()]) -> map().
outcome_json(#{started := Started, stopped := Stopped, killed := Killed, failed := Failed},
             Changed) ->
    #{started => [#{node => bin(Node), ms => Ms} || {Node, Ms} <- Started],
      stopped => names(Stopped), killed => names(Killed), failed => failed(Failed),
      changed => [bin(Node) || #{node := Node} <- Changed]}.

%% @doc How an upgrade or a rollback went.
-spec upgrade(weft_deploy_upgrade_core:outcome(), [weft_deploy_nodes:desired()],
              {Lost :: [{string(), string()}], Failed :: [{string(), string()}]}) ->
          unicode:chardata().
upgrade(#{done := Done, undone := Undone, left := Left, bad := Bad, killed := Killed}, Refused,
        {Lost, Failed}) ->
    [lost(Lost),
     [io_lib:format("~ts: ~ts~n", [Where, Why]) || {Where, Why} <- Failed],
     killed(Killed),
     [io_lib:format("~ts was rolled back, and is tried again with --again only~n", [Id])
      || Id <- lists:usort(Bad ++ [Id || #{id := Id} <- Refused])],
     io_lib:format("~b upgraded, ~b rolled back, ~b left as they are~n",
                   [length(Done), length(Undone), length(Left) + length(Refused)])].

%% @doc The same as data.
-spec upgrade_json(weft_deploy_upgrade_core:outcome(), [weft_deploy_nodes:desired()],
                   {Lost :: [{string(), string()}], Failed :: [{string(), string()}]}) -> map().
upgrade_json(#{done := Done, undone := Undone, left := Left, bad := Bad, killed := Killed},
             Refused, {Lost, Failed}) ->
    #{upgraded => names(Done), rolled_back => names(Undone), left => names(Left),
      bad => names(Bad), refused => names([Node || #{node := Node} <- Refused]),
      killed => names(Killed), failed => failed(Lost ++ Failed)}.

names(Texts) -> [bin(Text) || Text <- Texts].

%% @doc A row for each node that is there or shall be.
-spec rows([weft_deploy_nodes:desired()], weft_deploy_plan:seen()) -> [map()].
rows(Desired, Seen) ->
    Wanted = maps:from_list([{{Host, Node}, D} || #{host := Host, node := Node} = D <- Desired]),
    There = maps:from_list([{{Host, Node}, N} || {Host, {ok, #{nodes := Nodes}}} <-
                                                     maps:to_list(Seen),
                                                 {Node, N} <- maps:to_list(Nodes)]),
    Keys = lists:usort(maps:keys(Wanted) ++ maps:keys(There)),
    [row(Host, Node, maps:get(Key, Wanted, none), maps:get(Key, There, none), map_get(Host, Seen))
     || {Host, Node} = Key <- Keys].

row(Host, Node, _Wanted, none, {error, _}) ->
    #{node => Node, host => Host, state => unknown, os_pid => 0, id => "-"};
row(Host, Node, #{}, none, _) ->
    #{node => Node, host => Host, state => missing, os_pid => 0, id => "-"};
row(Host, Node, Wanted, #{up := Up, left := Left, os_pid := OsPid, id := Id}, _) ->
    #{node => Node, host => Host, os_pid => OsPid, id => Id,
      state => case {Up, Wanted} of
                   {false, _} -> down;
                   {true, none} -> surplus;
                   {true, _} when Left -> left;
                   {true, #{id := Id}} -> up;
                   {true, #{id := unknown}} -> up;
                   {true, _} -> changed
               end}.

%% @doc Status in words.
-spec status([map()], weft_deploy_plan:seen()) -> unicode:chardata().
status(Rows, Seen) ->
    [table([["node", "state", "pid", "made of"]
            | [[Node, atom_to_list(State), case OsPid of 0 -> "-"; _ -> integer_to_list(OsPid) end,
                Id] || #{node := Node, state := State, os_pid := OsPid, id := Id} <- Rows]]),
     lost([{Host, Why} || {Host, {error, Why}} <- lists:sort(maps:to_list(Seen))]),
     io_lib:format("~b of ~ts up~n",
                   [length([up || #{state := State} <- Rows, lists:member(State, [up, changed])]),
                    plural(length(Rows), "node")])].

%% @doc The same as data.
-spec status_json([map()], weft_deploy_plan:seen(), Unbuilt :: [string()]) -> map().
status_json(Rows, Seen, Unbuilt) ->
    #{nodes => [Row#{node := bin(Node), host := bin(Host), id := bin(Id)}
                || #{node := Node, host := Host, id := Id} = Row <- Rows],
      unbuilt => [bin(Text) || Text <- Unbuilt],
      lost => failed([{Host, Why} || {Host, {error, Why}} <- lists:sort(maps:to_list(Seen))])}.

%% @doc Reads `web=5' for each word.
-spec numbers([string()], [weft_deploy_spec:family()]) ->
          {ok, #{atom() => {InFile :: non_neg_integer(), non_neg_integer()}}} | {error, string()}.
numbers([], _Families) ->
    {error, "say which family gets how many nodes: web=5"};
numbers(Words, Families) ->
    try {ok, maps:from_list([number(string:split(Word, "="), Word, Families) || Word <- Words])}
    catch throw:{bad, Text} -> {error, lists:flatten(Text)}
    end.

number([Name, Digits], Word, Families) ->
    case {[F || #{name := Own} = F <- Families, atom_to_list(Own) =:= Name],
          re:run(Digits, "^[0-9]{1,4}$", [{capture, none}, dollar_endonly])} of
        {[#{name := Family, count := Count}], match} ->
            {Family, {Count, list_to_integer(Digits)}};
        {[], _} ->
            throw({bad, ["no family ", Name, " in the file: it has ",
                         lists:join(", ", [atom_to_list(Own) || #{name := Own} <- Families])]});
        {_, nomatch} ->
            throw({bad, [Word, ": write FAMILY=NUMBER, a number up to 9999"]})
    end;
number(_Other, Word, _Families) ->
    throw({bad, [Word, ": write FAMILY=NUMBER"]}).

%% @doc Rows with their columns below each other.
-spec table([[string()]]) -> unicode:chardata().
table([]) -> "";
table([First | _] = Rows) ->
    Widths = [lists:max([string:length(lists:nth(Column, Row)) || Row <- Rows])
              || Column <- lists:seq(1, length(First))],
    [[string:trim(lists:join("  ", [string:pad(Cell, Width)
                                    || {Cell, Width} <- lists:zip(Row, Widths)]), trailing), $\n]
     || Row <- Rows].

plural(1, Word) -> "1 " ++ Word;
plural(Count, Word) -> io_lib:format("~b ~tss", [Count, Word]).

bin(Text) -> unicode:characters_to_binary(Text).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Talks to the nodes of a host, in an emulator on that host: waits until they are healthy,
%% changes groups, drains a node.
%%
%% It is uploaded as it is compiled, and needs OTP only. It runs as a hidden node that nobody can
%% call, with the carrier of the nodes: of weft it is a node outside of the topology. What to do is
%% in a file of terms, the first word after its own name. Each result is a line
%% on standard output, in words that have tabs between them; others, such as reports of errors, are
%% passed over:
%% ```
%%   weft  NODE  ok | bad  MILLISECONDS  TEXT
%% '''
-module(weft_deploy_control).

-export([main/1, join/1, is_only_way/1]).

-define(POLL_MS, 100).
-define(CALL_MS, 5000).
-define(ONLY_WAY, "it is the only way between ").

%% @doc Does what the file says, and ends the emulator.
-spec main([string()]) -> no_return().
main([File]) ->
    {ok, [Request]} = file:consult(File),
    _ = file:delete(File),
    _ = logger:set_primary_config(level, none),
    case join(Request) of
        ok -> ok = request(Request), parted(), halt(0);
        {error, Text} -> io:format("~ts~n", [Text]), halt(1)
    end.

%% Each node that it had a link to would tell all others that it may have ended, and dial it.
parted() -> _ = net_kernel:stop(), ok.

%% @doc Makes this emulator a node that reaches the nodes of a host: hidden, called by nobody, and
%% with their settings, if there are nodes. Its carrier is that of its command line.
-spec join(#{dir := string(), nodes := [node()], name := node(),
             domain := longnames | shortnames, _ => _}) -> ok | {error, string()}.
join(Request) ->
    ok = settings(Request),
    case distributed(Request) of
        {ok, _} -> ok;
        {error, Why} ->
            {error, lists:flatten(io_lib:format("the node that asks does not start: ~0tP",
                                                [Why, 20]))}
    end.

distributed(#{name := Name, domain := Domain}) ->
    net_kernel:start(Name, #{name_domain => Domain, hidden => true, dist_listen => false}).

%% How the nodes connect is in their own configuration, where files are named as seen from there.
settings(#{dir := Dir, nodes := [Node | Nodes]} = Request) ->
    case file:consult(home(Dir, Node) ++ "/sys.config") of
        {ok, [Configuration]} ->
            ok = file:set_cwd(home(Dir, Node)),
            lists:foreach(fun({Key, Value}) -> application:set_env(weft, Key, Value) end,
                          [Pair || {Key, _} = Pair <- proplists:get_value(weft, Configuration, []),
                                   lists:member(Key, [transport, tls_options, cluster_name])]);
        {error, _} ->
            settings(Request#{nodes := Nodes})
    end;
settings(#{nodes := []}) ->
    ok.

home(Dir, Node) -> Dir ++ "/nodes/" ++ atom_to_list(Node).

request(#{do := healthy, nodes := Nodes} = Request) ->
    each(Nodes, fun(Node) -> healthy(Node, Request) end);
request(#{do := groups, nodes := Nodes, groups := Groups, changed := Changed}) ->
    lists:foreach(fun({Group, Members}) -> group(Group, Members, Nodes, Changed) end, Groups);
request(#{do := drain, nodes := [Node], others := Others} = Request) ->
    drain(Node, Others, Request);
request(#{do := open, nodes := Nodes, dir := Dir}) ->
    each(Nodes, fun(Node) -> opened(Node, Dir) end).

%% One process for each node: one that hangs holds up itself only.
each(Nodes, Fun) ->
    Self = self(),
    Pids = [spawn_link(fun() -> told(Node, Fun), Self ! {done, self()} end) || Node <- Nodes],
    lists:foreach(fun(Pid) -> receive {done, Pid} -> ok end end, Pids).

told(Node, Fun) ->
    Since = now_ms(),
    {IsGood, Text} = Fun(Node),
    tell(Node, IsGood, now_ms() - Since, Text).

tell(Node, IsGood, Ms, Text) ->
    OneLine = re:replace(Text, "[\\s]+", " ", [global, unicode, {return, binary}]),
    io:put_chars(io_lib:format("weft\t~ts\t~ts\t~b\t~ts~n",
                               [Node, case IsGood of true -> "ok"; false -> "bad" end, Ms,
                                string:slice(OneLine, 0, 500)])).

%% --- health -------------------------------------------------------------------------------------

%% Healthy for some time without a break, before the deadline.
healthy(Node, #{within_ms := WithinMs, stable_ms := StableMs, dir := Dir} = Request0) ->
    Request = maps:merge(Request0, recorded(home(Dir, Node) ++ "/healthy")),
    healthy(Node, Request, never, StableMs, now_ms() + WithinMs).

%% What it was made with says what is healthy, also when it became what it was.
recorded(File) ->
    case file:consult(File) of
        {ok, [{Start, Health}]} -> #{start => Start, health => Health};
        {error, enoent} -> #{start => [], health => none}
    end.

healthy(Node, Request, Since, StableMs, Deadline) ->
    Now = now_ms(),
    case look(Node, Request) of
        ok when Since =/= never, Now - Since >= StableMs -> {true, ""};
        ok when Since =:= never, StableMs =< 0 -> {true, ""};
        ok when Now > Deadline + StableMs -> {false, "it is not healthy for long enough"};
        {bad, Text} when Now > Deadline -> {false, Text};
        ok ->
            pause(),
            healthy(Node, Request, case Since of never -> Now; _ -> Since end, StableMs, Deadline);
        {bad, _} ->
            pause(),
            healthy(Node, Request, never, StableMs, Deadline)
    end.

look(Node, #{start := Start, health := Health, linked := IsLinked}) ->
    checks([fun() -> runs(Node, Start) end, fun() -> linked(Node, IsLinked) end,
            fun() -> own_check(Node, Health) end]).

checks([]) -> ok;
checks([Check | Checks]) ->
    case Check() of
        ok -> checks(Checks);
        Bad -> Bad
    end.

runs(Node, Start) ->
    case call(Node, application, which_applications, []) of
        {ok, Running} ->
            case Start -- [Name || {Name, _, _} <- Running] of
                [] -> ok;
                [Name | _] -> {bad, io_lib:format("application ~ts does not run", [Name])}
            end;
        {error, Text} -> {bad, Text}
    end.

%% Among others, a node that has no link is not there for them.
linked(_Node, false) -> ok;
linked(Node, true) ->
    case call(Node, weft_overlay, neighbours, []) of
        {ok, [_ | _]} -> ok;
        {ok, []} -> {bad, "it has no link to another node"};
        {error, Text} -> {bad, Text}
    end.

own_check(_Node, none) -> ok;
own_check(Node, {M, F, A}) ->
    case call(Node, M, F, A) of
        {ok, Good} when Good =:= true; Good =:= ok -> ok;
        {ok, Other} -> {bad, io_lib:format("~ts:~ts says ~0tP", [M, F, Other, 10])};
        {error, Text} -> {bad, Text}
    end.

%% --- groups -------------------------------------------------------------------------------------

%% One that was a member before takes new ones in, for all, and takes out those that have changed
%% or gone, and are none any more.
group(Group, Members, Nodes, Changed) ->
    Differing = [{Node, Missing, Surplus}
                 || Node <- Nodes, lists:member(Node, Members),
                    {ok, {ok, Present}} <- [call(Node, weft_group, members, [Group])],
                    lists:member(Node, Present),
                    {Missing, Surplus} <- [{Members -- Present,
                                            [Other || Other <- Present -- Members,
                                                      lists:member(Other, Changed)]}],
                    Missing ++ Surplus =/= []],
    case Differing of
        [] -> ok;
        [{Node, Missing, Surplus} | _] ->
            changed(Node, add, Group, Missing),
            changed(Node, remove, Group, Surplus)
    end.

%% A member that does not answer learns of it when it comes back.
changed(_Node, _Change, _Group, []) ->
    ok;
changed(Node, Change, Group, Others) ->
    Text = io_lib:format("group ~0tp, ~ts ~0tP", [Group, Change, Others, 10]),
    case call(Node, weft_group, Change, [Group, Others], 20000) of
        {ok, {ok, _}} -> tell(Node, true, 0, Text);
        {ok, Other} -> tell(Node, false, 0, [Text, io_lib:format(": ~0tP", [Other, 10])]);
        {error, Why} -> tell(Node, false, 0, [Text, ": ", Why])
    end.

%% --- drain --------------------------------------------------------------------------------------

%% Others find their ways around the node before circuits are moved. If one of them finds none, the
%% node goes on as before. If this emulator is ended meanwhile, a file says that it was closed, or
%% that it has left.
drain(Node, Others, #{within_ms := WithinMs, dir := Dir} = Request) ->
    Since = now_ms(),
    ok = file:write_file(closed(Dir, Node), <<>>),
    Deadline = Since + WithinMs,
    Before = routes(Others, Node),
    {IsAround, Note} =
        case call(Node, weft_transit, close, []) of
            {ok, ok} -> around_and_moved(Before, Others, Node, Deadline);
            {ok, {error, no_overlay}} -> {true, "it has no overlay"};
            {ok, Other} -> {false, io_lib:format("~0tP", [Other, 10])};
            %% One that hangs is stopped as before, and so is one before transit could be closed.
            {error, Why} -> unclosed(Why, Others)
        end,
    {IsGood, Text} =
        case {IsAround, Request} of
            {true, #{leaves := true}} -> leave(Node, Dir, Note);
            {true, _} -> {true, Note};
            {false, _} -> _ = opened(Node, Dir), {false, Note}
        end,
    tell(Node, IsGood, now_ms() - Since, Text).

closed(Dir, Node) -> home(Dir, Node) ++ "/closed".

%% Without an overlay nothing is closed.
opened(Node, Dir) ->
    case call(Node, weft_transit, open, []) of
        {ok, _} -> _ = file:delete(closed(Dir, Node)), {true, ""};
        {error, Why} -> {false, Why}
    end.

%% If nobody answers, it is this emulator that does not reach them.
unclosed(Why, Others) ->
    case Others =:= [] orelse lists:any(fun(Other) -> element(1, call(Other, erlang, node, []))
                                                          =:= ok
                                        end, lists:sublist(Others, 5)) of
        true -> {true, Why};
        false -> {false, [Why, ", and no other node does: is the cookie or the port of epmd "
                               "another one than theirs?"]}
    end.

around_and_moved(Before, Others, Node, Deadline) ->
    case around(Before, Others, Node, (now_ms() + Deadline) div 2) of
        [] -> moved(Node, Deadline);
        [{A, B} | _] -> {false, [?ONLY_WAY, io_lib:format("~ts and ~ts", [A, B])]}
    end.

%% @doc Is this why a node was not drained?
-spec is_only_way(Text :: string()) -> boolean().
is_only_way(Text) -> string:prefix(Text, ?ONLY_WAY) =/= nomatch.

%% The others forget it, instead of waiting for it. It does not come back before it is started
%% again. The command that asked for this may have ended, and another one may have opened the node.
leave(Node, Dir, Note) ->
    case file:rename(closed(Dir, Node), home(Dir, Node) ++ "/left") of
        ok ->
            {_, Groups} = call(Node, weft_group, own, []),
            _ = [call(Node, weft_group, leave, [Group], 20000)
                 || is_map(Groups), Group <- maps:keys(Groups)],
            _ = call(Node, weft_overlay, leave, [], 15000),
            {true, Note};
        {error, enoent} ->
            {false, "it was opened again meanwhile"};
        {error, Reason} ->
            {false, ["that it leaves can not be noted in ", home(Dir, Node), ": ",
                     file:format_error(Reason)]}
    end.

%% Of each node that answers: which of the others it reaches, and by which neighbour.
routes(Nodes, Without) ->
    [{Node, [{Dest, Next} || {Dest, {Next, _, _}} <- Routes, Dest =/= Without,
                             lists:member(Dest, Nodes)]}
     || Node <- Nodes, {ok, Routes} <- [call(Node, weft_overlay, routes, [])]].

%% Pairs that do not reach each other any more, or still by way of the node. One that has died
%% meanwhile needs no way.
around(Before, Others, Node, Deadline) ->
    Now = routes(Others, Node),
    Lost = [{A, Dest} || {A, Known} <- Before, {Dest, _} <- Known,
                         {A_, Left} <- Now, A_ =:= A, not lists:keymember(Dest, 1, Left),
                         lists:keymember(Dest, 1, Now)],
    Uses = [{A, Dest} || {A, Known} <- Now, {Dest, Next} <- Known, Next =:= Node],
    case {Lost ++ Uses, now_ms() > Deadline} of
        {[], _} -> [];
        {Left, true} -> Left;
        {_, false} -> pause(), around(Before, Others, Node, Deadline)
    end.

moved(Node, Deadline) ->
    _ = call(Node, weft_transit, move, []),
    case {call(Node, weft_transit, circuits, []), now_ms() > Deadline} of
        {{ok, 0}, _} -> {true, ""};
        {{ok, Left}, true} -> {false, io_lib:format("~b circuits still pass", [Left])};
        {{error, Text}, true} -> {false, Text};
        {_, false} -> pause(), moved(Node, Deadline)
    end.

%% ------------------------------------------------------------------------------------------------

call(Node, M, F, A) -> call(Node, M, F, A, ?CALL_MS).

call(Node, M, F, A, TimeoutMs) ->
    try {ok, erpc:call(Node, M, F, A, TimeoutMs)}
    catch
        error:{erpc, noconnection} -> {error, "it does not answer"};
        error:{erpc, timeout} -> {error, "it did not answer in time"};
        error:{exception, undef, [{M, F, _, _} | _]} ->
            {error, io_lib:format("it has no ~ts:~ts", [M, F])};
        Class:Reason -> {error, io_lib:format("~ts: ~0tP", [Class, Reason, 12])}
    end.

pause() -> receive after ?POLL_MS -> ok end.

now_ms() -> erlang:monotonic_time(millisecond).

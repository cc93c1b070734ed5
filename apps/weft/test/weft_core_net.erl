%% SPDX-License-Identifier: Apache-2.0
%% @doc A few nodes with one core each, whose messages the test delivers as it likes: in order on
%% each link, or not at all when the link is lost. For schedules written by hand and by PropEr.
%%
%% Processes are of the test: `{exit, Pid, _}' effects end them, and `die/2' does.
-module(weft_core_net).

-export([new/3, command/3, command/4, deliver/3, fire/2, fire_but/3, cut/3, cut/4, heal/3, die/2,
         crash/2, healed/1, settle/1, settle_but/2,
         state/2, views/2, replies/1, replied/3, alive/1, told/1, pid/2, waiting/3, queued/3,
         is_linked/3, large/1]).

-record(net, {core, options, nodes = #{}, queues = #{}, links = #{}, alive = #{}, replies = [],
              told = [], incarnation = 1}).
-record(node, {state, timers = [], views = #{}}).

%% @doc All nodes run, nobody has a link.
new(Core, Nodes, Options) ->
    lists:foldl(fun start/2, #net{core = Core, options = Options}, Nodes).

start(Node, #net{core = Core, options = Options, incarnation = Incarnation, nodes = Nodes} = Net) ->
    {State, Effects} = Core:init(Node, Options#{incarnation => Incarnation}),
    perform(Node, Effects, Net#net{incarnation = Incarnation + 1000000,
                                   nodes = Nodes#{Node => #node{state = State}}}).

%% @doc A process of a node; the same arguments give the same one. It lives.
pid(Node, Number) ->
    Name = atom_to_binary(Node),
    binary_to_term(<<131, 88, 119, (byte_size(Name)), Name/binary, Number:32, 0:32, 1:32>>).

command(Node, Command, Net) ->
    command(Node, Node, Command, Net).

%% @doc A command with a Ref of its own, which is in `replies/1'.
command(Node, Ref, Command, Net) ->
    event(Node, {command, Ref, Command}, Net).

event(Node, Event, #net{core = Core, nodes = Nodes} = Net) ->
    #{Node := #node{state = State0} = N} = Nodes,
    {State, Effects} = Core:handle(Event, 0, State0),
    perform(Node, Effects, Net#net{nodes = Nodes#{Node := N#node{state = State}}}).

%% That a process has ended is heard when the step is over: it is a signal, as it is on a real node.
perform(Node, Effects, Net) ->
    {Exits, AtOnce} = lists:partition(fun(Effect) -> element(1, Effect) =:= exit end, Effects),
    lists:foldl(fun(Effect, N) -> perform_one(Effect, Node, N) end, Net, AtOnce ++ Exits).

perform_one({send, To, Msg}, From, #net{links = Links, queues = Queues} = Net) ->
    case Links of
        #{{From, To} := up} ->
            Net#net{queues = Queues#{{From, To} => maps:get({From, To}, Queues, []) ++ [Msg]}};
        #{} -> Net
    end;
perform_one({after_ms, _, Timer}, Node, #net{nodes = Nodes} = Net) ->
    #{Node := #node{timers = Timers} = N} = Nodes,
    Net#net{nodes = Nodes#{Node := N#node{timers = Timers ++ [Timer]}}};
perform_one({view, Key, Value}, Node, #net{nodes = Nodes} = Net) ->
    #{Node := #node{views = Views} = N} = Nodes,
    Changed = case Value of delete -> maps:remove(Key, Views); _ -> Views#{Key => Value} end,
    Net#net{nodes = Nodes#{Node := N#node{views = Changed}}};
perform_one({reply, Ref, Reply}, _Node, #net{replies = Replies} = Net) ->
    Net#net{replies = [{Ref, Reply} | Replies]};
perform_one({watch, Pid}, Node, #net{alive = Alive} = Net) ->
    case Alive of
        #{Pid := false} -> perform_one({after_ms, 0, {net_gone, Pid}}, Node, Net);
        #{} -> Net#net{alive = Alive#{Pid => true}}
    end;
perform_one({exit, Pid, _Reason}, _Node, Net) ->
    die(Pid, Net);
perform_one({tell, Pid, Msg}, _Node, #net{told = Told} = Net) ->
    Net#net{told = [{Pid, Msg} | Told]};
perform_one({Other, _}, _Node, Net) when Other =:= unwatch; Other =:= notice ->
    Net.

%% @doc A process ends, and its node hears of it.
die(Pid, #net{alive = Alive, nodes = Nodes} = Net) ->
    Dead = Net#net{alive = Alive#{Pid => false}},
    case is_map_key(node(Pid), Nodes) of
        true -> event(node(Pid), {notice, {gone, Pid, killed}}, Dead);
        false -> Dead
    end.

%% @doc A node starts anew; all its processes are gone, and its links.
crash(Node, #net{alive = Alive, links = Links} = Net) ->
    Dead = maps:map(fun(Pid, IsAlive) -> IsAlive andalso node(Pid) =/= Node end, Alive),
    start(Node, lists:foldl(fun({A, B}, N) -> cut(A, B, N) end, Net#net{alive = Dead},
                            [Link || {A, _} = Link <- maps:keys(Links), A =:= Node])).

%% @doc What waits between two nodes is lost, both hear of it.
cut(A, B, Net) ->
    cut(A, B, noconnection, Net).

cut(A, B, Reason, #net{links = Links, queues = Queues} = Net) ->
    case Links of
        #{{A, B} := up} ->
            Lost = Net#net{links = maps:without([{A, B}, {B, A}], Links),
                           queues = maps:without([{A, B}, {B, A}], Queues)},
            event(B, {neighbour_down, A, Reason}, event(A, {neighbour_down, B, Reason}, Lost));
        #{} -> Net
    end.

%% @doc A link; the first message of each end comes after the other end heard that it is up.
heal(A, B, #net{links = Links} = Net) ->
    case Links of
        #{{A, B} := up} -> Net;
        #{} ->
            Up = Net#net{links = Links#{{A, B} => up, {B, A} => up}},
            event(B, {neighbour_up, A}, event(A, {neighbour_up, B}, Up))
    end.

%% @doc The first message that waits from one to the other arrives, if there is one.
deliver(From, To, #net{queues = Queues} = Net) ->
    case Queues of
        #{{From, To} := [Msg | Rest]} ->
            event(To, {message, From, Msg}, Net#net{queues = Queues#{{From, To} := Rest}});
        #{} -> Net
    end.

%% @doc How many messages wait.
waiting(From, To, #net{queues = Queues}) ->
    length(maps:get({From, To}, Queues, [])).

%% @doc The messages that wait, the first one first.
queued(From, To, #net{queues = Queues}) -> maps:get({From, To}, Queues, []).

%% @doc A term of so many bytes, the same one each time. It is shared and takes no time.
large(Bytes) ->
    case persistent_term:get({?MODULE, Bytes}, none) of
        none ->
            ok = persistent_term:put({?MODULE, Bytes}, binary:copy(<<0>>, Bytes)),
            large(Bytes);
        Large -> Large
    end.

%% @doc The oldest timer of a node fires, if there is one.
fire(Node, #net{nodes = Nodes} = Net) ->
    case Nodes of
        #{Node := #node{timers = [Timer | Rest]} = N} ->
            event(Node, due(Timer), Net#net{nodes = Nodes#{Node := N#node{timers = Rest}}});
        #{} -> Net
    end.

%% @doc The same, but timers like that never fire.
fire_but(Not, Node, #net{nodes = Nodes} = Net) ->
    #{Node := #node{timers = Timers} = N} = Nodes,
    case lists:splitwith(fun(Timer) -> Timer =:= Not end, Timers) of
        {_, []} -> Net;
        {Before, [Timer | Rest]} ->
            Left = N#node{timers = Before ++ Rest},
            event(Node, due(Timer), Net#net{nodes = Nodes#{Node := Left}})
    end.

%% Who watches a process that is dead hears of it later.
due({net_gone, Pid}) -> {notice, {gone, Pid, noproc}};
due(Timer) -> {timer, Timer}.

%% @doc All links heal, and everything happens that is to happen.
settle(Net) ->
    run(fun fire/2, fun(#node{timers = Timers}) -> Timers =/= [] end, healed(Net)).

%% @doc The same, but timers like that never fire.
settle_but(Not, Net) ->
    run(fun(Node, N) -> fire_but(Not, Node, N) end,
        fun(#node{timers = Timers}) -> lists:any(fun(T) -> T =/= Not end, Timers) end, healed(Net)).

%% @doc All links heal.
healed(#net{nodes = Nodes} = Net) ->
    Names = lists:sort(maps:keys(Nodes)),
    lists:foldl(fun({A, B}, N) -> heal(A, B, N) end, Net,
                [{A, B} || A <- Names, B <- Names, A < B]).

run(Fire, IsDue, #net{nodes = Nodes, queues = Queues} = Net) ->
    Links = [Link || {Link, [_ | _]} <- lists:sort(maps:to_list(Queues))],
    Timers = [Name || {Name, Node} <- lists:sort(maps:to_list(Nodes)), IsDue(Node)],
    case {Links, Timers} of
        {[], []} -> Net;
        _ -> run(Fire, IsDue, lists:foldl(fun({A, B}, N) -> deliver(A, B, N) end,
                                          lists:foldl(Fire, Net, Timers), Links))
    end.

state(Node, #net{nodes = Nodes}) -> (map_get(Node, Nodes))#node.state.

views(Node, #net{nodes = Nodes}) -> (map_get(Node, Nodes))#node.views.

%% @doc Replies, newest first, and what processes were told.
replies(#net{replies = Replies}) -> Replies.

%% @doc Who asked got this from elsewhere.
replied(Ref, Reply, #net{replies = Replies} = Net) ->
    Net#net{replies = [{Ref, Reply} | Replies]}.

told(#net{told = Told}) -> Told.

is_linked(A, B, #net{links = Links}) -> is_map_key({A, B}, Links).

%% @doc The processes that live.
alive(#net{alive = Alive}) -> [Pid || {Pid, true} <- maps:to_list(Alive)].

%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs on deployed nodes of the suite: one process sends numbers to another one, which
%% notes whether one is missing. Both note when the other's node is down.
-module(weft_deploy_load).

-export([start/0, send_to/1, sent/0, stop/0, received/0, downs/0, is_good/0]).

-define(PAUSE_MS, 1).

%% @doc The receiver; from the command line of the node.
-spec start() -> true.
start() ->
    Receiver = spawn(fun() -> receiver(0, []) end),
    true = register(?MODULE, Receiver).

receiver(Last, Gaps) ->
    receive
        {number, N} when N =:= Last + 1 -> receiver(N, Gaps);
        {number, N} -> receiver(N, [{Last, N} | Gaps]);
        {From, Ref, received} -> From ! {Ref, {Last, Gaps}}, receiver(Last, Gaps)
    end.

%% @doc Begins to send, from this node, until stop/0.
-spec send_to(node()) -> ok.
send_to(Node) ->
    Self = self(),
    Sender = spawn(fun() ->
                           true = register(weft_deploy_sender, self()),
                           ok = net_kernel:monitor_nodes(true, #{node_type => all}),
                           Self ! ready,
                           sender(Node, 0, [])
                   end),
    Monitor = monitor(process, Sender),
    receive
        ready -> demonitor(Monitor, [flush]), ok;
        {'DOWN', Monitor, process, Sender, Reason} -> error(Reason)
    end.

%% One about every millisecond, so that some are under way whatever happens.
sender(Node, N, Downs) ->
    receive
        {nodedown, Down, _} -> sender(Node, N, [Down | Downs]);
        {nodeup, _, _} -> sender(Node, N, Downs);
        {From, Ref, sent} -> From ! {Ref, N}, sender(Node, N, Downs);
        {From, Ref, downs} -> From ! {Ref, Downs}, sender(Node, N, Downs);
        {From, Ref, stop} -> From ! {Ref, N}, idle(Downs)
    after ?PAUSE_MS ->
        _ = {?MODULE, Node} ! {number, N + 1},
        sender(Node, N + 1, Downs)
    end.

idle(Downs) ->
    receive
        {From, Ref, downs} -> From ! {Ref, Downs}, idle(Downs);
        {nodedown, Down, _} -> idle([Down | Downs]);
        {nodeup, _, _} -> idle(Downs)
    end.

-spec sent() -> non_neg_integer().
sent() -> ask(weft_deploy_sender, sent).

%% @doc Ends sending; how many there were.
-spec stop() -> non_neg_integer().
stop() -> ask(weft_deploy_sender, stop).

%% @doc The last number, and where some were missing.
-spec received() -> {non_neg_integer(), Gaps :: list()}.
received() -> ask(?MODULE, received).

-spec downs() -> [node()].
downs() -> ask(weft_deploy_sender, downs).

ask(Name, What) ->
    Ref = make_ref(),
    Name ! {self(), Ref, What},
    receive {Ref, Answer} -> Answer after 10000 -> error({no_answer, Name}) end.

%% @doc A health check that some configuration fails. Then the end of its log has a password.
-spec is_good() -> boolean().
is_good() ->
    ok = persistent_term:put(weft_deploy_asked, true),
    IsGood = application:get_env(kernel, shop_good, true),
    {ok, Password} = application:get_env(kernel, shop_password),
    _ = [io:format(user, "the password is ~ts~n", [Password]) || not IsGood],
    IsGood.

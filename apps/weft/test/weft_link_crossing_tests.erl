%% SPDX-License-Identifier: Apache-2.0
%% @doc Two nodes dial each other, in every order in which messages can arrive: in the end there is
%% one link, and both ends have the same connection. Authentication, admission and welcome are those
%% of the library (`weft_handshake_core', `weft_link_admission', `weft_link_welcome'). The network
%% and the process of the link, with its table row, are played here.
-module(weft_link_crossing_tests).

-include_lib("eunit/include/eunit.hrl").

-define(KEY, <<"the key">>).
%% Rounds of calls after which there has to be a link: one in which connections break, and one in
%% which a node learns that its link is gone.
-define(ROUNDS_MAX, 3).
-define(WALKS, 3000).
-define(PAUSE_US, 5_000_000).

%% A node: the connection that is its lane, that which it dials, whether its row says so already,
%% whose facts it has, and how often it may dial in this round.
-record(node, {name :: binary(), lane = none, dialling = none, is_told = false, peer, up_us = 0,
               dials = 1}).
%% One end of a connection: what the handshake is at, when it began, and what is on its way here.
-record(one_end, {at = fresh, begun_us = 0, inbox = [], is_open = true, is_cut = false}).
-record(world, {now_us = 0, nodes, ends = #{}, attaches = [], next = 1, cuts = 0}).

%% Each order of two calls, without failures.
every_order_of_two_calls_gives_one_link_test_() ->
    {timeout, 60,
     fun() ->
         {Orders, Seen} = every_order(world(0), #{}),
         ?assertEqual([], [Judged || {_, Judged} <- maps:values(Seen), Judged =/= one_link]),
         ?assert(Orders > 5_000_000)
     end}.

%% Orders by chance, with connections that break at any time, and further rounds of calls.
after_connections_broke_there_is_one_link_test_() ->
    {timeout, 60,
     fun() ->
         _ = rand:seed(exsss, 7),
         Rounds = [walked(world(Cuts), ?ROUNDS_MAX) || Cuts <- [0, 1, 2],
                                                       _ <- lists:seq(1, ?WALKS)],
         ?assertEqual([], [World || {no_link, World} <- Rounds]),
         %% Otherwise the faults would not have been any.
         ?assert(lists:member({one_link, 1}, Rounds)),
         ?assert(lists:member({one_link, 2}, Rounds))
     end}.

%% The rounds that it took.
walked(World, Rounds) ->
    case actions(World) of
        [] ->
            case {judged(World), Rounds} of
                {one_link, _} -> {one_link, ?ROUNDS_MAX + 1 - Rounds};
                {_, 1} -> {no_link, World};
                {_, _} -> walked(another_round(World), Rounds - 1)
            end;
        Actions ->
            walked(done(lists:nth(rand:uniform(length(Actions)), Actions), World), Rounds)
    end.

%% How many orders there are from here on. Most of them meet in the same worlds, so what was seen is
%% kept: how many go on from each world, and how the last ones of them were judged.
every_order(World, Seen) ->
    Key = erlang:md5(term_to_binary(World)),
    case {Seen, actions(World)} of
        {#{Key := {Orders, _}}, _} ->
            {Orders, Seen};
        {_, []} ->
            {1, Seen#{Key => {1, judged(World)}}};
        {_, Actions} ->
            {Orders, Now} = lists:foldl(fun(Action, {Sum, S}) ->
                                                {More, Next} = every_order(done(Action, World), S),
                                                {Sum + More, Next}
                                        end, {0, Seen}, Actions),
            {Orders, Now#{Key => {Orders, one_link}}}
    end.

judged(#world{nodes = #{a := #node{lane = Same}, b := #node{lane = Same}}}) when Same =/= none ->
    one_link;
judged(#world{nodes = #{a := #node{lane = OfA}, b := #node{lane = OfB}}}) ->
    {lanes, OfA, OfB}.

world(Cuts) ->
    #world{nodes = #{a => #node{name = <<"a@host">>}, b => #node{name = <<"b@host">>}},
           cuts = Cuts}.

%% The pauses of both links are over. From now on nothing breaks.
another_round(#world{nodes = Nodes, now_us = NowUs} = World) ->
    World#world{now_us = NowUs + ?PAUSE_US,
                nodes = maps:map(fun(_, Node) -> Node#node{dials = 1} end, Nodes), cuts = 0}.

%%% What can happen next

actions(#world{nodes = Nodes, ends = Ends, attaches = Attaches, cuts = Cuts} = World) ->
    [{dial, Who} || {Who, #node{lane = none, dialling = none, dials = Dials}}
                        <- maps:to_list(Nodes), Dials > 0]
        ++ [{tell, Who} || {Who, #node{dialling = Id, is_told = false}} <- maps:to_list(Nodes),
                           Id =/= none]
        ++ [{attach, Id, Who} || {Id, Who, _Facts} <- Attaches]
        ++ lists:append([of_end(Key, End, World) || {Key, End} <- maps:to_list(Ends)])
        ++ [{break, Id} || Cuts > 0, {{Id, a}, #one_end{is_cut = false}} <- maps:to_list(Ends)].

of_end({Id, Who}, #one_end{is_open = true, inbox = [_ | _]}, _World) ->
    [{deliver, Id, Who}];
of_end({Id, Who}, #one_end{is_open = true, is_cut = IsCut}, #world{attaches = Attaches} = World) ->
    IsOver = IsCut orelse not (the_end(Id, other(Who), World))#one_end.is_open,
    [{closed, Id, Who} || IsOver, [] =:= [Id || {I, W, _} <- Attaches, I =:= Id, W =:= Who]];
of_end(_Key, _Closed, _World) ->
    [].

other(a) -> b;
other(b) -> a.

%%% What it does

done(Action, #world{now_us = NowUs} = World) ->
    act(Action, World#world{now_us = NowUs + 1}).

act({dial, Who}, #world{next = Id, ends = Ends, now_us = NowUs} = World) ->
    Node = node_of(Who, World),
    Next = weft_handshake_core:dial((node_of(other(Who), World))#node.name, link, ?KEY,
                                    own(Node, NowUs)),
    New = World#world{next = Id + 1, ends = Ends#{{Id, Who} => #one_end{begun_us = NowUs},
                                                  {Id, other(Who)} => #one_end{}}},
    went_on(Next, Id, Who, with_node(Who, Node#node{dialling = Id, is_told = false,
                                                    dials = Node#node.dials - 1}, New));
%% An attempt that had no connection for long is no call to others until the process of its
%% link hears that it calls after all, which may be late.
act({tell, Who}, World) ->
    with_node(Who, (node_of(Who, World))#node{is_told = true}, World);
act({deliver, Id, Who}, World) ->
    #one_end{at = At, inbox = [Message | Inbox]} = End = the_end(Id, Who, World),
    heard(At, Message, Id, Who, with_end(Id, Who, End#one_end{inbox = Inbox}, World));
act({attach, Id, Who}, #world{attaches = Attaches} = World) ->
    {Id, Who, Facts} = Attach = lists:keyfind(Id, 1, [A || {_, W, _} = A <- Attaches, W =:= Who]),
    attached(Id, Who, Facts, World#world{attaches = Attaches -- [Attach]});
act({closed, Id, Who}, World) ->
    closed(Id, Who, World);
act({break, Id}, #world{cuts = Cuts} = World) ->
    lists:foldl(fun(Who, W) ->
                        End = the_end(Id, Who, W),
                        with_end(Id, Who, End#one_end{inbox = [], is_cut = true}, W)
                end, World#world{cuts = Cuts - 1}, [a, b]).

heard(fresh, Hello, Id, Who, #world{now_us = NowUs} = World) ->
    Node = node_of(Who, World),
    {[], {admit, {Name, Incarnation, Purpose}, Asking}} =
        weft_handshake_core:hello(Hello, own(Node, NowUs)),
    Claim = #{name => Name, incarnation => Incarnation, purpose => Purpose},
    Answer = case weft_link_admission:decide(Claim, published(Node),
                                             #{own_name => Node#node.name, is_cut => false,
                                               now_us => NowUs}) of
                 {ok, cookie} -> {ok, ?KEY};
                 Refused -> {Refused, <<>>}
             end,
    End = the_end(Id, Who, World),
    went_on(weft_handshake_core:admitted(Answer, Asking), Id, Who,
            with_end(Id, Who, End#one_end{begun_us = NowUs}, World));
heard(At, Message, Id, Who, World) ->
    went_on(weft_handshake_core:message(Message, At), Id, Who, World).

went_on({Messages, Next}, Id, Who, World) ->
    next(Next, Id, Who, sent(Messages, Id, other(Who), World)).

sent(Messages, Id, To, World) ->
    case the_end(Id, To, World) of
        #one_end{is_open = true, is_cut = false, inbox = Inbox} = End ->
            with_end(Id, To, End#one_end{inbox = Inbox ++ Messages}, World);
        _Closed ->
            World
    end.

next({more, At}, Id, Who, World) ->
    with_end(Id, Who, (the_end(Id, Who, World))#one_end{at = At}, World);
next({done, Facts, link}, Id, Who, #world{attaches = Attaches} = World) ->
    #one_end{begun_us = BegunUs} = End = the_end(Id, Who, World),
    (with_end(Id, Who, End#one_end{at = done}, World))#world{
        attaches = [{Id, Who, Facts#{begun_us => BegunUs}} | Attaches]};
next({failed, _Reason}, Id, Who, World) ->
    closed(Id, Who, World).

%% As `weft_link' does it: what is not welcome is closed, and what it replaces, too.
attached(Id, Who, Facts, #world{now_us = NowUs} = World) ->
    #node{name = Name, lane = Before, peer = Peer, up_us = UpUs} = Node = no_longer_dials(Id, Who,
                                                                                       World),
    Lanes = [{Before, {<<>>, 0}, map_get(role, Peer)} || Before =/= none],
    case weft_link_welcome:met(link, Facts, #{own_name => Name, is_cut => false, lanes => Lanes,
                                              peer => Peer, up_us => UpUs}) of
        {_, refused} ->
            shut(Id, Who, with_node(Who, Node, World));
        {nothing, {welcome, NothingOrAll}} ->
            ?assertEqual(NothingOrAll =:= nothing, Before =:= none),
            New = Node#node{lane = Id, peer = weft_link_welcome:peer(link, Facts, Peer),
                            up_us = NowUs},
            shut(Before, Who, with_node(Who, New, World))
    end.

%% This end sees that the other one has closed it, or closes it because the handshake failed.
closed(Id, Who, World) ->
    Node = case no_longer_dials(Id, Who, World) of
               #node{lane = Id} = Up -> Up#node{lane = none};
               Other -> Other
           end,
    shut(Id, Who, with_node(Who, Node, World)).

shut(none, _Who, World) ->
    World;
shut(Id, Who, World) ->
    with_end(Id, Who, (the_end(Id, Who, World))#one_end{is_open = false, inbox = []}, World).

no_longer_dials(Id, Who, World) ->
    case node_of(Who, World) of
        #node{dialling = Id} = Node -> Node#node{dialling = none};
        Node -> Node
    end.

published(#node{lane = none, dialling = Dialling, is_told = IsTold}) ->
    #{is_calling => Dialling =/= none andalso IsTold};
published(#node{peer = Peer, up_us = UpUs}) ->
    (weft_link_peer:published(Peer, UpUs))#{is_calling => false, lane => lane}.

own(#node{name = Name}, NowUs) ->
    #{name => Name, incarnation => 1, listens => true, cluster => <<>>, nonce => <<NowUs:256>>}.

node_of(Who, #world{nodes = Nodes}) -> map_get(Who, Nodes).
with_node(Who, Node, #world{nodes = Nodes} = World) -> World#world{nodes = Nodes#{Who := Node}}.
the_end(Id, Who, #world{ends = Ends}) -> map_get({Id, Who}, Ends).
with_end(Id, Who, End, #world{ends = Ends} = World) ->
    World#world{ends = Ends#{{Id, Who} := End}}.

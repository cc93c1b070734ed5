%% SPDX-License-Identifier: Apache-2.0
%% @doc Replication of rows of which each belongs to one node: the common part of names and process
%% groups. Part of a core (`weft_core'), called in place.
%%
%% Only the node of a row changes it, and it alone tells the others: no node passes on what it
%% heard. So there is nothing to merge, and a deleted row can not come back: the rows of a node are
%% what it said last, in one ordered stream from it (`weft_node_links').
%%
%% At the beginning of a session a node sends all its rows, in pieces, and then changes. Changes of
%% `?FLUSH_MS' are sent together, so that many share one message. A row that was known before the
%% session and is not among the first ones is deleted; so after every beginning both ends agree,
%% whatever was missed. The rows of a node that is down are removed in steps, so that ten thousand
%% of them delay nothing else. If a session ended but not the connection, the rows stay for
%% `?LINGER_MS', because most likely the next session brings the same ones.
%%
%% `Seq' counts the changes of a node. A process that knows the Seq of a change can wait until the
%% change has arrived here.
%%
%% Messages: `{1, all}', `{1, rows, [{Key, Value}]}', `{1, complete, Seq}' and
%% `{1, changes, Seq, [{Key, {put, Value} | delete}]}'.
-module(weft_own_rows_core).

-export([new/0, put/3, delete/2, find/2, up/2, down/3, message/3, timer/2, await/4, seq/1, info/1]).
-export_type([rows/0, change/0, outcome/0]).

-define(FLUSH_MS, 1).
-define(LINGER_MS, 5000).
%% Rows in one message, and rows that are removed in one step.
-define(PIECE, 200).
-define(STEP, 1000).

-record(peer, {rows = #{} :: #{Key :: term() => Value :: term()},
               seq = 0 :: non_neg_integer(),
               %% In a session: rows told so far | all. Else: rows are kept | are removed.
               state :: {told, #{Key :: term() => []}} | up
                      | {kept, token()} | {going, token(), [Key :: term()]},
               waiting = [] :: [{Seq :: non_neg_integer(), Ref :: term()}]}).

-record(rows, {own = #{} :: #{Key :: term() => Value :: term()},
               seq = 0 :: non_neg_integer(),
               dirty = #{} :: #{Key :: term() => {put, Value :: term()} | delete},
               token = 0 :: token(),
               peers = #{} :: #{node() => #peer{}}}).

-type token() :: non_neg_integer().
-opaque rows() :: #rows{}.
-type change() :: {node(), Key :: term(), Old :: term() | none, New :: term() | none}.
-type outcome() :: {[change()], rows(), weft_core:effects()}.
%% What was heard of the rows of other nodes (perhaps again), and what is to be done. `none': no
%% row.

%% @doc No rows, no node known.
-spec new() -> rows().
new() -> #rows{}.

%% @doc Adds or replaces a row of this node.
-spec put(Key :: term(), Value :: term(), rows()) -> {Seq :: pos_integer(), rows(),
                                                      weft_core:effects()}.
put(Key, Value, #rows{own = Own} = Rows) ->
    changed(Key, {put, Value}, Rows#rows{own = Own#{Key => Value}}).

%% @doc Removes a row of this node.
-spec delete(Key :: term(), rows()) -> {Seq :: pos_integer(), rows(), weft_core:effects()}.
delete(Key, #rows{own = Own} = Rows) ->
    changed(Key, delete, Rows#rows{own = maps:remove(Key, Own)}).

changed(Key, Change, #rows{seq = Seq, dirty = Dirty} = Rows) ->
    {Seq + 1, Rows#rows{seq = Seq + 1, dirty = Dirty#{Key => Change}},
     [{after_ms, ?FLUSH_MS, rows_flush} || map_size(Dirty) =:= 0]}.

%% @doc The value of a row of this node.
-spec find(Key :: term(), rows()) -> {ok, Value :: term()} | error.
find(Key, #rows{own = Own}) -> maps:find(Key, Own).

%% @doc How many changes this node made.
-spec seq(rows()) -> non_neg_integer().
seq(#rows{seq = Seq}) -> Seq.

%% @doc How many rows of this and of other nodes, and with how many nodes there is a session.
-spec info(rows()) -> #{own | others | peers := non_neg_integer()}.
info(#rows{own = Own, peers = Peers}) ->
    #{own => map_size(Own), peers => length(in_session(Peers)),
      others => lists:sum([map_size(Rows) || #peer{rows = Rows} <- maps:values(Peers)])}.

%% @doc A session begins: the node is told all rows.
-spec up(node(), rows()) -> outcome().
up(Node, #rows{own = Own, seq = Seq, peers = Peers} = Rows) ->
    Told = {told, #{}},
    Peer = case Peers of
               #{Node := Known} -> Known#peer{state = Told, seq = 0};
               #{} -> #peer{state = Told}
           end,
    {[], Rows#rows{peers = Peers#{Node => Peer}},
     [{send, Node, {1, all}}]
     ++ [{send, Node, {1, rows, Piece}} || Piece <- pieces(maps:to_list(Own))]
     ++ [{send, Node, {1, complete, Seq}}]}.

pieces([]) -> [];
pieces(List) ->
    {Piece, Rest} = first(?PIECE, List),
    [Piece | pieces(Rest)].

%% Without counting the rest, which may be long.
first(0, Rest) -> {[], Rest};
first(_, []) -> {[], []};
first(Count, [One | Rest]) ->
    {Others, After} = first(Count - 1, Rest),
    {[One | Others], After}.

%% @doc A session ended. After some reasons the node itself is most likely alive.
-spec down(node(), Reason :: term(), rows()) -> outcome().
down(Node, Reason, #rows{token = Token0, peers = Peers} = Rows) ->
    case Peers of
        #{Node := #peer{rows = Known} = Peer} ->
            Token = Token0 + 1,
            {State, Ms} = case Reason =:= broken orelse Reason =:= replaced of
                              true -> {{kept, Token}, ?LINGER_MS};
                              false -> {{going, Token, maps:keys(Known)}, 0}
                          end,
            {Replies, Quiet} = answered(infinity, Peer#peer{state = State}),
            {[], Rows#rows{token = Token, peers = Peers#{Node := Quiet}},
             Replies ++ [{after_ms, Ms, {rows_go, Node, Token}}]};
        #{} ->
            {[], Rows, []}
    end.

%% @doc A message of another node. One of a newer version is ignored.
-spec message(node(), Msg :: term(), rows()) -> outcome().
message(From, Msg, #rows{peers = Peers} = Rows) ->
    case Peers of
        #{From := Peer0} ->
            {Changes, Peer1} = heard(Msg, Peer0),
            {Replies, Peer} = answered(Peer1#peer.seq, Peer1),
            {of_node(From, Changes), Rows#rows{peers = Peers#{From := Peer}}, Replies};
        #{} ->
            {[], Rows, []}
    end.

of_node(Node, Changes) ->
    [{Node, Key, Old, New} || {Key, Old, New} <- Changes].

heard({1, all}, Peer) ->
    {[], Peer#peer{state = {told, #{}}, seq = 0}};
heard({1, rows, Pairs}, #peer{state = {told, Told0}} = Peer0) ->
    {Changes, Peer} = apply_all([{Key, {put, Value}} || {Key, Value} <- Pairs], Peer0),
    Told = lists:foldl(fun({Key, _}, T) -> T#{Key => []} end, Told0, Pairs),
    {Changes, Peer#peer{state = {told, Told}}};
heard({1, complete, Seq}, #peer{state = {told, Told}, rows = Known} = Peer0) ->
    Gone = [{Key, delete} || Key <- maps:keys(Known), not is_map_key(Key, Told)],
    {Changes, Peer} = apply_all(Gone, Peer0),
    {Changes, Peer#peer{state = up, seq = Seq}};
heard({1, changes, Seq, Given}, Peer0) ->
    {Changes, Peer} = apply_all(Given, Peer0),
    {Changes, Peer#peer{seq = Seq}};
heard(_OfANewerVersion, Peer) ->
    {[], Peer}.

apply_all(Given, #peer{rows = Known} = Peer) ->
    {Changes, Rows} = lists:foldl(fun apply_one/2, {[], Known}, Given),
    {lists:reverse(Changes), Peer#peer{rows = Rows}}.

apply_one({Key, {put, Value}}, {Changes, Rows}) ->
    {[{Key, maps:get(Key, Rows, none), Value} | Changes], Rows#{Key => Value}};
apply_one({Key, delete}, {Changes, Rows}) ->
    case maps:take(Key, Rows) of
        {Old, Rest} -> {[{Key, Old, none} | Changes], Rest};
        error -> {Changes, Rows}
    end.

%% @doc A timer of this module: `rows_flush' or `{rows_go, ..}'.
-spec timer(Timer :: term(), rows()) -> outcome().
timer(rows_flush, #rows{seq = Seq, dirty = Dirty, peers = Peers} = Rows) ->
    Messages = [{1, changes, Seq, Piece} || Piece <- pieces(maps:to_list(Dirty))],
    {[], Rows#rows{dirty = #{}},
     [{send, Node, Message} || Node <- lists:sort(in_session(Peers)), Message <- Messages]};
timer({rows_go, Node, Token}, #rows{peers = Peers} = Rows) ->
    case Peers of
        #{Node := #peer{state = {kept, Token}, rows = Known} = Peer} ->
            step(Node, Token, maps:keys(Known), Peer, Rows);
        #{Node := #peer{state = {going, Token, Keys}} = Peer} ->
            step(Node, Token, Keys, Peer, Rows);
        #{} ->
            {[], Rows, []}
    end.

in_session(Peers) ->
    [Node || {Node, #peer{state = State}} <- maps:to_list(Peers), is_in_session(State)].

is_in_session(up) -> true;
is_in_session({told, _}) -> true;
is_in_session(_Over) -> false.

step(Node, Token, Keys, Peer0, #rows{peers = Peers} = Rows) ->
    {Now, Later} = first(?STEP, Keys),
    {Changes, Peer} = apply_all([{Key, delete} || Key <- Now], Peer0),
    case Later of
        [] ->
            {of_node(Node, Changes), Rows#rows{peers = maps:remove(Node, Peers)}, []};
        _ ->
            Going = Peer#peer{state = {going, Token, Later}},
            {of_node(Node, Changes), Rows#rows{peers = Peers#{Node := Going}},
             [{after_ms, 0, {rows_go, Node, Token}}]}
    end.

%% @doc Replies `ok' to Ref as soon as the change Seq of that node has arrived, or when there is no
%% session with the node.
-spec await(node(), Seq :: non_neg_integer(), Ref :: term(), rows()) -> outcome().
await(Node, Seq, Ref, #rows{peers = Peers} = Rows) ->
    case Peers of
        #{Node := #peer{seq = Here, state = State, waiting = Waiting} = Peer} when Here < Seq ->
            case is_in_session(State) of
                true ->
                    Waits = Peer#peer{waiting = [{Seq, Ref} | Waiting]},
                    {[], Rows#rows{peers = Peers#{Node := Waits}}, []};
                false ->
                    {[], Rows, [{reply, Ref, ok}]}
            end;
        #{} ->
            {[], Rows, [{reply, Ref, ok}]}
    end.

%% Numbers are less than atoms: `infinity' answers all.
answered(Seq, #peer{waiting = Waiting} = Peer) ->
    {Ready, Rest} = lists:partition(fun({Wanted, _}) -> Wanted =< Seq end, Waiting),
    {[{reply, Ref, ok} || {_, Ref} <- Ready], Peer#peer{waiting = Rest}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Replication of rows of which each belongs to one node: the common part of names and process
%% groups. Part of a core (`weft_core'), called in place.
%%
%% Only the node of a row changes it, and it alone tells the others: no node passes on what it
%% heard. So there is nothing to merge, and a deleted row can not come back: the rows of a node are
%% what it said last, in one ordered stream from it (`weft_node_links').
%%
%% At the beginning of a session a node sends all its rows, batch by batch (`weft_row_batches'), and
%% changes. Changes of `?FLUSH_MS' are sent together, so that many share one message. A row that was
%% known before the session and has not been told when all are is deleted; so after every beginning
%% both ends agree, whatever was missed. The rows of a node that is down are removed in steps, so
%% that ten thousand of them delay nothing else. If a session ended but not the connection, the rows
%% stay for `?LINGER_MS', because most likely the next session brings the same ones.
%%
%% `Seq' counts the changes of a node. A process that knows the Seq of a change can wait until the
%% change has arrived here. A process of the node itself can wait until all nodes in a session have
%% heard of its change (`weft_heard_core'); then the change is sent at once. A session that broke is
%% waited for as long as its rows stay. A node is not asked before it has been told all rows, and it
%% does not answer before it has told all its own. Nodes of earlier versions, which do not say
%% `hears', do not answer and are not waited for; they get all batches at once.
%%
%% Messages: `{1, all}', `{1, hears}', `{1, rows, [{Key, Value}]}', `{1, new, [Key]}' (the next rows
%% are changes, which earlier versions need not know), `{1, complete, Seq}';
%% `{1, changes, Seq, [{Key, {put, Value} | delete}]}'; `{1, asked, Seq}', which is answered by
%% `{1, heard, Seq}' after all changes of the node that were made before; `{1, asked, {batch,
%% Number}}', which is answered by `{1, heard, {batch, Number}}' at once.
-module(weft_own_rows_core).

-export([new/0, put/3, delete/2, find/2, up/2, down/3, message/3, timer/2, await/4, seq/1, info/1]).
-export([tell/5, is_awaited/3, is_waited/2, released/3, heard_of/2, is_waiting/1]).
-export_type([rows/0, change/0, outcome/0]).

-define(FLUSH_MS, 1).
-define(LINGER_MS, 5000).
-define(TICK_MS, 1000).
%% Rows that are removed in one step.
-define(STEP, 1000).

-record(peer, {rows = #{} :: #{Key :: term() => Value :: term()},
               seq = 0 :: non_neg_integer(),
               state :: session() | {telling, weft_row_batches:batches(), session()}
                      | {kept, token()} | {going, token(), [Key :: term()]},
               %% Does it answer when it is asked what it has heard of?
               hears = unknown :: unknown | boolean(),
               waiting = [] :: [{Seq :: non_neg_integer(), Ref :: term()}]}).

-record(rows, {own = #{} :: #{Key :: term() => Value :: term()},
               seq = 0 :: non_neg_integer(),
               %% What all nodes in a session have been sent.
               sent = 0 :: non_neg_integer(),
               dirty = #{} :: #{Key :: term() => {put, Value :: term()} | delete},
               token = 0 :: token(),
               heard = weft_heard_core:new() :: weft_heard_core:heard(),
               is_ticking = false :: boolean(),
               peers = #{} :: #{node() => #peer{}}}).

-type token() :: non_neg_integer().
%% What it told so far | it told all. While it is told our rows, both are in `telling', and not in
%% records of another shape: drivers go on with these when this module is loaded again. Without a
%% session rows are kept | are being removed.
-type session() :: {told, #{Key :: term() => before | new}} | up.
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
up(Node, #rows{own = Own, peers = Peers} = Rows) ->
    Begun = {telling, weft_row_batches:new(Own), {told, #{}}},
    Peer = case Peers of
               #{Node := Known} -> Known#peer{state = Begun, seq = 0, hears = unknown};
               #{} -> #peer{state = Begun}
           end,
    {Told, Effects} = tell_on(Node, Rows#rows{peers = Peers#{Node => Peer}}),
    {[], Told, [{send, Node, {1, all}}, {send, Node, {1, hears}} | Effects]}.

%% The next batch. After the last one come the answer and the question that had to wait.
tell_on(Node, #rows{own = Own, seq = Seq, peers = Peers, heard = Heard0} = Rows) ->
    #{Node := #peer{state = {telling, Batches0, Session}} = Peer} = Peers,
    case weft_row_batches:next(Own, Batches0) of
        {more, Messages, Batches} ->
            Telling = Peer#peer{state = {telling, Batches, Session}},
            {Rows#rows{peers = Peers#{Node := Telling}}, [{send, Node, M} || M <- Messages]};
        {last, Messages} ->
            {Ask, Heard} = weft_heard_core:again(Node, Heard0),
            {Rows#rows{peers = Peers#{Node := Peer#peer{state = Session}}, heard = Heard},
             [{send, Node, M} || M <- Messages ++ [{1, complete, Seq}]
                                     ++ [{1, heard, Asked} || {ok, Asked} <-
                                                                [weft_row_batches:asked(Batches0)]]
                                     ++ [{1, asked, Asked} || {ok, Asked} <- [Ask]]]}
    end.

tell_all(Node, #rows{peers = Peers} = Rows0) ->
    case Peers of
        #{Node := #peer{state = {telling, _, _}}} ->
            {Rows1, Effects} = tell_on(Node, Rows0),
            {Rows, Later} = tell_all(Node, Rows1),
            {Rows, Effects ++ Later};
        #{} ->
            {Rows0, []}
    end.

%% @doc A session ended. After some reasons the node itself is most likely alive.
-spec down(node(), Reason :: term(), rows()) -> outcome().
down(Node, Reason, #rows{token = Token0, peers = Peers} = Rows) ->
    case Peers of
        #{Node := #peer{rows = Known} = Peer} ->
            Token = Token0 + 1,
            IsKept = Reason =:= broken orelse Reason =:= replaced,
            {State, Ms} = case IsKept of
                              true -> {{kept, Token}, ?LINGER_MS};
                              false -> {{going, Token, maps:keys(Known)}, 0}
                          end,
            {Replies, Quiet} = answered(infinity, Peer#peer{state = State}),
            Down = Rows#rows{token = Token, peers = Peers#{Node := Quiet}},
            {Told, After} = case IsKept of
                                true -> {[], Down};
                                false -> not_awaited(Node, Down)
                            end,
            {[], After, Replies ++ Told ++ [{after_ms, Ms, {rows_go, Node, Token}}]};
        #{} ->
            {[], Rows, []}
    end.

not_awaited(Node, #rows{heard = Heard0} = Rows) ->
    {Replies, Heard} = weft_heard_core:lost(Node, Heard0),
    {Replies, Rows#rows{heard = Heard}}.

%% @doc A message of another node. One of a newer version is ignored.
-spec message(node(), Msg :: term(), rows()) -> outcome().
message(From, {1, asked, What}, #rows{peers = Peers} = Rows) when is_map_key(From, Peers) ->
    {Flushed, Flush} = flush(Rows),
    {Asked, Answer} = asked(From, What, Flushed),
    {[], Asked, Flush ++ Answer};
message(From, {1, heard, {batch, Number}}, #rows{peers = Peers} = Rows) ->
    case Peers of
        #{From := #peer{state = {telling, Batches, _}}} ->
            case weft_row_batches:is_answer(Number, Batches) of
                true -> next_batch(From, Rows);
                false -> {[], Rows, []}
            end;
        #{} ->
            {[], Rows, []}
    end;
message(From, {1, heard, Seq}, #rows{heard = Heard0} = Rows) ->
    {Replies, Heard} = weft_heard_core:heard(From, Seq, Heard0),
    {[], Rows#rows{heard = Heard}, Replies};
message(From, Msg, #rows{peers = Peers} = Rows0) ->
    case Peers of
        #{From := Peer0} ->
            {Changes, Peer1} = heard(Msg, Peer0),
            {Replies, Peer} = answered(Peer1#peer.seq, Peer1),
            Rows1 = Rows0#rows{peers = Peers#{From := Peer}},
            {Told, Rows} = case Peer#peer.hears of
                               false -> unasked(From, Rows1);
                               _ -> {[], Rows1}
                           end,
            {of_node(From, Changes), Rows, Replies ++ Told};
        #{} ->
            {[], Rows0, []}
    end.

%% First the changes: who hears of one in a batch would take it for a row that there was before.
next_batch(Node, Rows0) ->
    {Rows1, Flush} = flush(Rows0),
    {Rows, Effects} = tell_on(Node, Rows1),
    {[], Rows, Flush ++ Effects}.

%% Both may be told a lot by the other one: a batch is answered at once.
asked(From, {batch, _} = Batch, Rows) ->
    {Rows, [{send, From, {1, heard, Batch}}]};
asked(From, Seq, #rows{peers = Peers} = Rows) ->
    case Peers of
        #{From := #peer{state = {telling, Batches, Session}} = Peer} ->
            Later = {telling, weft_row_batches:asked(Seq, Batches), Session},
            {Rows#rows{peers = Peers#{From := Peer#peer{state = Later}}}, []};
        #{} ->
            {Rows, [{send, From, {1, heard, Seq}}]}
    end.

unasked(Node, Rows0) ->
    {Told, Rows1} = not_awaited(Node, Rows0),
    {Rows, Effects} = tell_all(Node, Rows1),
    {Told ++ Effects, Rows}.

of_node(Node, Changes) ->
    [{Node, Key, Old, New} || {Key, Old, New} <- Changes].

heard(Msg, #peer{state = {telling, Batches, Session}} = Peer0) ->
    {Changes, #peer{state = Heard} = Peer} = heard(Msg, Peer0#peer{state = Session}),
    {Changes, Peer#peer{state = {telling, Batches, Heard}}};
heard({1, all}, Peer) ->
    {[], Peer#peer{state = {told, #{}}, seq = 0}};
heard({1, hears}, Peer) ->
    {[], Peer#peer{hears = true}};
heard({1, rows, Pairs}, #peer{state = {told, Told0}} = Peer0) ->
    {Changes, Peer} = apply_all([{Key, {put, Value}} || {Key, Value} <- Pairs], Peer0),
    Told = maps:merge(maps:from_list([{Key, before} || {Key, _} <- Pairs]), Told0),
    {Changes, Peer#peer{state = {told, Told}}};
heard({1, new, Keys}, #peer{state = {told, Told}} = Peer) ->
    {[], Peer#peer{state = {told, maps:merge(Told, maps:from_keys(Keys, new))}}};
heard({1, complete, Seq}, #peer{state = {told, Told}, rows = Known} = Peer0) ->
    Gone = [{Key, delete} || Key <- maps:keys(Known), not is_map_key(Key, Told)],
    {Changes, Peer} = apply_all(Gone, Peer0),
    {Changes, Peer#peer{state = up, seq = Seq, hears = Peer#peer.hears =:= true}};
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

%% @doc A timer of this module: `rows_flush', `rows_tick' or `{rows_go, ..}'.
-spec timer(Timer :: term(), rows()) -> outcome().
timer(rows_flush, Rows) ->
    {Flushed, Effects} = flush(Rows),
    {[], Flushed, Effects};
timer(rows_tick, #rows{heard = Heard0} = Rows) ->
    {Replies, Heard} = weft_heard_core:tick(Heard0),
    {Ticking, Tick} = ticking(Rows#rows{heard = Heard, is_ticking = false}),
    {[], Ticking, Replies ++ Tick};
timer({rows_go, Node, Token}, #rows{peers = Peers} = Rows) ->
    case Peers of
        #{Node := #peer{state = {kept, Token}, rows = Known} = Peer} ->
            {Told, After} = not_awaited(Node, Rows),
            {Changes, Gone, Effects} = step(Node, Token, maps:keys(Known), Peer, After),
            {Changes, Gone, Told ++ Effects};
        #{Node := #peer{state = {going, Token, Keys}} = Peer} ->
            step(Node, Token, Keys, Peer, Rows);
        #{} ->
            {[], Rows, []}
    end.

%% Changes, and then questions.
flush(#rows{sent = Sent, seq = Seq, dirty = Dirty, peers = Peers, heard = Heard0} = Rows) ->
    {Telling, Told} = lists:partition(fun(Node) -> is_telling(map_get(Node, Peers)) end,
                                      lists:sort(in_session(Peers))),
    Changed = maps:to_list(Dirty),
    Changes = changes(Sent, Seq, weft_row_batches:pieces(Changed)),
    Awaited = case weft_heard_core:is_due(Heard0) of true -> awaited(Rows); false -> [] end,
    {Ask, Replies, Heard} = weft_heard_core:begun(Seq, Awaited, Heard0),
    {Ticking, Tick} = ticking(Rows#rows{sent = Seq, dirty = #{}, heard = Heard}),
    {Ticking,
     [{send, Node, Message} || Node <- Telling, Message <- weft_row_batches:changes(Changed)]
     ++ [{send, Node, Message} || Node <- Told, Message <- Changes]
     ++ [{send, Node, {1, asked, Seq}} || Node <- Ask, lists:member(Node, Told)]
     ++ Replies ++ Tick}.

is_telling(#peer{state = {telling, _, _}}) -> true;
is_telling(_) -> false.

%% Not before the last piece has all changes up to Seq arrived.
changes(_Sent, _Seq, []) -> [];
changes(_Sent, Seq, [Last]) -> [{1, changes, Seq, Last}];
changes(Sent, Seq, [Piece | Rest]) -> [{1, changes, Sent, Piece} | changes(Sent, Seq, Rest)].

ticking(#rows{is_ticking = false, heard = Heard} = Rows) ->
    case weft_heard_core:is_waiting(Heard) of
        true -> {Rows#rows{is_ticking = true}, [{after_ms, ?TICK_MS, rows_tick}]};
        false -> {Rows, []}
    end;
ticking(Rows) ->
    {Rows, []}.

in_session(Peers) ->
    [Node || {Node, #peer{state = State}} <- maps:to_list(Peers), is_in_session(State)].

is_in_session(up) -> true;
is_in_session({told, _}) -> true;
is_in_session({telling, _, _}) -> true;
is_in_session(_Over) -> false.

step(Node, Token, Keys, Peer0, #rows{peers = Peers} = Rows) ->
    {Now, Later} = weft_row_batches:first(?STEP, Keys),
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

%% --- waiting until others have heard ----------------------------------------------------------

%% @doc Replies to Ref as soon as all nodes with which there is a session have heard of the last
%% change of this node, which was one of Key, of the kind What; after four seconds in any case.
-spec tell(Key :: term(), What :: term(), Ref :: term(), Reply :: term(), rows()) ->
          {rows(), weft_core:effects()}.
tell(Key, What, Ref, Reply, #rows{heard = Heard0} = Rows) ->
    case awaited(Rows) of
        [] ->
            {Rows, [{reply, Ref, Reply}]};
        _ ->
            {IsFirst, Heard} = weft_heard_core:wait(Key, What, Ref, Reply, Heard0),
            {Rows#rows{heard = Heard}, [{after_ms, 0, rows_flush} || IsFirst]}
    end.

awaited(#rows{peers = Peers}) ->
    lists:sort([Node || {Node, #peer{hears = Hears, state = State}} <- maps:to_list(Peers),
                        Hears =/= false, is_in_session(State) orelse element(1, State) =:= kept]).

%% @doc The number of the last change of another node that has arrived here.
-spec heard_of(node(), rows()) -> Seq :: non_neg_integer().
heard_of(Node, #rows{peers = Peers}) ->
    case Peers of
        #{Node := #peer{seq = Seq}} -> Seq;
        #{} -> 0
    end.

%% @doc Does anybody wait until others have heard?
-spec is_waiting(rows()) -> boolean().
is_waiting(#rows{heard = Heard}) -> weft_heard_core:is_waiting(Heard).

%% @doc Does anybody wait for this node to hear of a change of Key? Not of one that it tells among
%% its rows at the beginning of a session, because these it had before.
-spec is_awaited(Key :: term(), node(), rows()) -> boolean().
is_awaited(Key, Node, #rows{peers = Peers, heard = Heard} = Rows) ->
    case Peers of
        #{Node := #peer{state = State}} ->
            is_of_session(Key, State)
                andalso weft_heard_core:is_awaited(Key, Node, awaited(Rows), Heard);
        #{} -> false
    end.

is_of_session(_Key, up) -> true;
is_of_session(Key, {told, Told}) -> maps:get(Key, Told, before) =:= new;
is_of_session(Key, {telling, _, Session}) -> is_of_session(Key, Session);
is_of_session(_Key, _NoSession) -> false.

%% @doc Does anybody wait for a change of Key?
-spec is_waited(Key :: term(), rows()) -> boolean().
is_waited(Key, #rows{heard = Heard}) -> weft_heard_core:is_waited(Key, Heard).

%% @doc Those who wait for such a change of Key are answered by the caller.
-spec released(Key :: term(), What :: term(), rows()) -> {[weft_heard_core:wait()], rows()}.
released(Key, What, #rows{heard = Heard0} = Rows) ->
    {Waits, Heard} = weft_heard_core:released(Key, What, Heard0),
    {Waits, Rows#rows{heard = Heard}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc One request to the replicas of a key of a strong bucket. Pure. The replicas are in
%% `weft_kv_strong_acceptor_core', which has the messages.
%%
%% A read asks all. If a majority has accepted under the same ballot, that is the answer: a write
%% that was over before would have changed one of them. Otherwise it goes on like a write that
%% changes nothing.
%%
%% A write prepares a ballot. Of what a majority has accepted it takes that with the highest ballot,
%% makes the new value of it, and has that accepted. When a majority has, it has happened. If a
%% higher ballot came between, it waits for a moment and tries again with a still higher one.
%%
%% Who has not answered after a while is asked the same once more, and may answer either question.
%% With a higher ballot what is on its way would be worth nothing, and where disks are slow it would
%% be so each time.
%%
%% Then the first try may have happened all the same, because another request has found it and
%% carried it on. So a value has the ids of the last `?REMEMBERED' writes with it: one that finds
%% its own is done, and does not write again. If there were more writes since, nobody can tell, and
%% neither does this.
%%
%% All that counts are answers of the same members. If a replica names later ones, they are asked
%% from then on. What was accepted in an earlier epoch may have been copied to the file that was
%% replaced, and is not taken for chosen because a majority has it: it is written again first.
%%
%% Results: `{ok, Value | not_found}' for `get', `ok', or `{error, Reason}'. `{conflict, Value}':
%% the value was another one, and nothing was written. `{not_done, Why}': it did not happen and will
%% not. `{unknown, Why}': it may have happened, or may happen later.
%%
%% Events: `{reply, Node, Tag, Reply}', `{timer, Timer}'. Effects: `{ask, Node, Tag, Members,
%% Message}', `{learned, Members}', `{after_ms, Ms, Timer}', `{answer, Result}' (the last one).
-module(weft_kv_strong_proposer_core).

-export([init/2, handle/2]).
-export_type([state/0, request/0, result/0, why/0]).

-type value() :: binary() | not_found | weft_kv_strong_members:members().
%% The last of the register of the members only.
-type request() :: get | {put, value()} | {cas, Expected :: value(), value()}.
-type why() :: contention | {no_quorum, #{needed := pos_integer(), answered := non_neg_integer(),
                                          failed := [{node(), term()}]}}.
-type result() :: ok | {ok, value()}
                | {error, {conflict, value()} | {not_done, why()} | {unknown, why()}}.

-record(proposer, {request :: request(),
                   key :: binary(),
                   %% Of this request, and never used again.
                   id :: binary(),
                   replicas :: [node()],
                   members :: weft_kv_strong_members:members(),
                   needed :: pos_integer(),
                   timeout_ms :: pos_integer(),
                   phase = reading :: reading | preparing | accepting | waiting | done,
                   %% Counts phases, so that what belongs to an earlier one is told apart.
                   tag = 0 :: non_neg_integer(),
                   counter :: pos_integer(),
                   %% Of this phase.
                   message = none :: none | weft_kv_strong_acceptor_core:message(),
                   tries = 0 :: non_neg_integer(),
                   replies = #{} :: #{node() => term()},
                   failed = #{} :: #{node() => term()},
                   %% How many writes there were when this one was first tried.
                   tried_at = never :: never | non_neg_integer(),
                   result = none :: none | result()}).
-opaque state() :: #proposer{}.

-define(REMEMBERED, 8).
%% The ballot of what was never written.
-define(NONE, {0, 0, <<>>}).
-define(PAUSE_MS, 8).
-define(PAUSE_DOUBLINGS, 6).

%% @doc Begins. Options: `key', `id' (16 random bytes), `replicas' (the nodes that have one),
%% `members' (as far as known), `counter' (of the first ballot; a clock will do, and may be wrong),
%% `timeout_ms'.
-spec init(request(), #{key := binary(), id := binary(), replicas := [node()],
                        members := weft_kv_strong_members:members(), counter := pos_integer(),
                        timeout_ms := pos_integer()}) ->
          {state(), [term()]}.
init(Request, #{key := Key, id := Id, replicas := Replicas, members := Members, counter := Counter,
                timeout_ms := TimeoutMs}) ->
    {State, Effects} = begun(#proposer{request = Request, key = Key, id = Id, replicas = Replicas,
                                       members = Members, counter = Counter,
                                       needed = length(Replicas) div 2 + 1,
                                       timeout_ms = TimeoutMs}),
    {State, [{after_ms, TimeoutMs, deadline} | Effects]}.

begun(#proposer{request = get, key = Key} = State) -> phase(reading, {read, Key}, State);
begun(State) -> prepare(State).

%% @doc See above.
-spec handle(term(), state()) -> {state(), [term()]}.
handle(_Late, #proposer{phase = done} = State) ->
    {State, []};
%% It was asked once more, and has answered before.
handle({reply, Node, Tag, _Repeated}, #proposer{tag = Tag, replies = Replies} = State)
  when is_map_key(Node, Replies) ->
    {State, []};
handle({reply, Node, Tag, {error, {members, Others}}}, #proposer{tag = Tag} = State) ->
    members(Node, Others, State);
handle({reply, Node, Tag, {error, Reason}}, #proposer{tag = Tag, failed = Failed} = State) ->
    checked(State#proposer{failed = Failed#{Node => Reason}});
handle({reply, Node, Tag, Reply}, #proposer{tag = Tag, replies = Replies,
                                            failed = Failed} = State) ->
    checked(State#proposer{replies = Replies#{Node => Reply}, failed = maps:remove(Node, Failed)});
handle({reply, _Node, _Outdated, _Reply}, State) ->
    {State, []};
handle({timer, deadline}, State) ->
    undecided(no_quorum(State), State);
handle({timer, {phase, Tag}}, #proposer{tag = Tag} = State) ->
    over(State);
handle({timer, _Outdated}, State) ->
    {State, []}.

%% What earlier members have answered does not count any more.
members(Node, Others, #proposer{members = Members, failed = Failed, phase = Phase} = State) ->
    case weft_kv_strong_members:compare(Others, Members) of
        later ->
            Informed = higher(State#proposer{members = Others}),
            {Next, Effects} = case Phase of
                                  reading -> begun(Informed);
                                  _ -> prepare(Informed)
                              end,
            {Next, [{learned, Others} | Effects]};
        _ ->
            checked(State#proposer{failed = Failed#{Node => other_members}})
    end.

%% --- phases -----------------------------------------------------------------------------------

prepare(#proposer{key = Key} = State) ->
    phase(preparing, {prepare, Key, ballot(State)}, State).

phase(Phase, Message, #proposer{tag = Before} = State) ->
    asked(State#proposer{phase = Phase, message = Message, tag = Before + 1, replies = #{},
                         failed = #{}}).

asked(#proposer{replicas = Replicas, replies = Replies, members = Members, tag = Tag,
                message = Message, timeout_ms = Ms} = State) ->
    {State, [{ask, Node, Tag, Members, Message} || Node <- Replicas,
                                                   not is_map_key(Node, Replies)]
         ++ [{after_ms, max(1, Ms div 4), {phase, Tag}}]}.

%% The time of a phase. Something was lost, or is late; also those that have failed may be there by
%% now. A majority that does not say the same to a read will not do so later either.
over(#proposer{phase = waiting} = State) ->
    prepare(higher(State));
over(#proposer{phase = reading, replies = Replies, needed = Needed} = State)
  when map_size(Replies) >= Needed ->
    prepare(State);
over(State) ->
    asked(State#proposer{failed = #{}}).

ballot(#proposer{members = Members, counter = Counter, id = Id}) ->
    {weft_kv_strong_members:epoch(Members), Counter, Id}.

higher(#proposer{counter = Counter, replies = Replies} = State) ->
    Refused = [Other || {refused, {_, Other, _}} <- maps:values(Replies)],
    State#proposer{counter = lists:max([Counter | Refused]) + 1}.

checked(#proposer{phase = waiting} = State) ->
    {State, []};
checked(#proposer{phase = reading, replies = Replies, needed = Needed} = State) ->
    Ballots = [Ballot || {state, Ballot, _} <- maps:values(Replies)],
    case [Content || {state, Ballot, Content} <- maps:values(Replies),
                     is_of_members(Ballot, State),
                     length([B || B <- Ballots, B =:= Ballot]) >= Needed] of
        [{_, _, Value} | _] -> answer({ok, Value}, State);
        [] -> unless_open(State, fun() -> prepare(State) end)
    end;
checked(#proposer{phase = preparing, replies = Replies, needed = Needed} = State) ->
    case [{Ballot, Content} || {promise, Ballot, Content} <- maps:values(Replies)] of
        Promises when length(Promises) >= Needed -> promised(Promises, State);
        _ -> unless_open(State, fun() -> again(State) end)
    end;
checked(#proposer{phase = accepting, replies = Replies, needed = Needed} = State) ->
    case length([Node || {Node, accepted} <- maps:to_list(Replies)]) >= Needed of
        true -> answer(State#proposer.result, State);
        false -> unless_open(State, fun() -> again(State) end)
    end.

%% Or of nobody: what was never written is not written again.
is_of_members(?NONE, _State) -> true;
is_of_members({Epoch, _, _}, #proposer{members = Members}) ->
    Epoch =:= weft_kv_strong_members:epoch(Members).

%% What comes next if not enough others can answer any more. That some were refused is no failure.
unless_open(#proposer{replicas = Replicas, replies = Replies, failed = Failed, needed = Needed,
                      phase = Phase} = State, Next) ->
    Refused = length([Node || {Node, {refused, _}} <- maps:to_list(Replies)]),
    Open = length(Replicas) - map_size(Replies) - map_size(Failed),
    Good = map_size(Replies) - Refused,
    if
        map_size(Replies) + Open < Needed -> undecided(no_quorum(State), State);
        Phase =:= reading, Open > 0 -> {State, []};
        Phase =:= reading -> Next();
        Good + Open < Needed -> Next();
        true -> {State, []}
    end.

%% Two requests that get in each other's way wait for times that differ more and more.
again(#proposer{tries = Tries, id = Id, tag = Tag} = State0) ->
    State = higher(State0),
    Longest = ?PAUSE_MS bsl min(Tries, ?PAUSE_DOUBLINGS),
    Ms = 1 + erlang:phash2({Id, Tries}, Longest),
    {State#proposer{phase = waiting, tries = Tries + 1, tag = Tag + 1},
     [{after_ms, Ms, {phase, Tag + 1}}]}.

%% --- what is written --------------------------------------------------------------------------

promised(Promises, #proposer{id = Id, tried_at = TriedAt} = State) ->
    {Highest, {Writes, Last, Value} = Content} = lists:max(Promises),
    IsChosen = is_of_members(Highest, State) andalso
        length([B || {B, _} <- Promises, B =:= Highest]) >= State#proposer.needed,
    case lists:member(Id, Last) of
        true -> carried(IsChosen, ok, Content, State);
        false when is_integer(TriedAt), Writes - TriedAt > ?REMEMBERED ->
            undecided(contention, State);
        false ->
            case decided(State#proposer.request, Value) of
                {write, New} -> written({Writes, Last}, New, State);
                %% What an earlier try may have left is over only below a higher ballot.
                {keep, Result} -> carried(IsChosen andalso TriedAt =:= never, Result, Content,
                                          State)
            end
    end.

decided(get, Value) -> {keep, {ok, Value}};
decided({put, New}, _Value) -> {write, New};
decided({cas, Value, New}, Value) -> {write, New};
decided({cas, _Expected, _New}, Value) -> {keep, {error, {conflict, Value}}}.

%% What only a minority may have has to be brought to a majority before anybody is told.
carried(true, Result, _Content, State) ->
    answer(Result, State);
carried(false, Result, Content, State) ->
    accept(Content, State#proposer{result = Result}).

written({Writes, Last}, New, #proposer{id = Id, tried_at = TriedAt} = State) ->
    Content = {Writes + 1, lists:sublist([Id | Last], ?REMEMBERED), New},
    accept(Content, State#proposer{result = ok, tried_at = case TriedAt of
                                                               never -> Writes;
                                                               _ -> min(TriedAt, Writes)
                                                           end}).

accept(Content, #proposer{key = Key} = State) ->
    phase(accepting, {accept, Key, ballot(State), Content}, State).

%% --- the answer -------------------------------------------------------------------------------

answer(Result, State) ->
    {State#proposer{phase = done}, [{answer, Result}]}.

undecided(Why, #proposer{tried_at = never} = State) -> answer({error, {not_done, Why}}, State);
undecided(Why, State) -> answer({error, {unknown, Why}}, State).

no_quorum(#proposer{needed = Needed, replies = Replies, failed = Failed}) ->
    {no_quorum, #{needed => Needed, answered => map_size(Replies),
                  failed => lists:sort(maps:to_list(Failed))}}.

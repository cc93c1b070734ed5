%% SPDX-License-Identifier: Apache-2.0
%% @doc Causal order of messages under one label, at one participant.
%%
%% The algorithm of Raynal, Schiper and Toueg ("The causal ordering abstraction and a simple way to
%% implement it", Information Processing Letters 39, 1991). Each participant counts, for each pair
%% of participants, the messages that it knows to have been sent. A message carries this matrix as
%% it was before it was sent. It is delivered once the receiver has delivered, from each
%% participant, as many messages as the matrix says were sent to it. The matrix is kept sparse.
%%
%% Messages that a participant had sent, and that were lost because it died or the connection to it
%% was lost, will not arrive any more. `down/3' ends the waiting for them; when the participant is
%% heard again, what it sent before counts as delivered. So the order holds among participants that
%% stay connected. Messages may also be lost while both go on, with a process that had them. Their
%% sender gives them up by their numbers (`given_up/4'), and need not know which of them have
%% arrived: each number counts once, in its turn.
%%
%% A stamp does not say whom it is for, and a message may arrive at the successor of a participant
%% that has ended. It must not count there for one that its sender has sent to the successor. The
%% matrix shows which it is: a sender numbers a message by what the matrix has of its receiver. Only
%% the first message of a sender to either of them can not be told apart.
%%
%% What waits is bounded: over the bound the oldest message is delivered out of order and marked as
%% `forced'. Its number still counts in its turn. The number of pairs is bounded too; a new pair
%% over the bound is an error.
-module(weft_causal_core).

-export([new/3, stamp/2, arrived/4, given_up/4, down/3, depends_on/2, sent/2, waiting/1]).
-export_type([state/0, stamp/0, participant/0, delivered/0]).

%% A participant is a pid, so after a restart of its node it is a different one.
-type participant() :: pid() | integer().
-type matrix() :: #{{From :: participant(), To :: participant()} => pos_integer()}.
-type stamp() :: {From :: participant(), Number :: pos_integer(), matrix()}.
-type delivered() :: {causal | forced, Message :: term()}.

%% From: none if it was sent to an earlier participant. What waits with the message `skipped' has
%% the place of others, up to its number, and is not delivered.
-record(waiting, {from :: participant() | none, before :: matrix(),
                  needs :: [{participant(), pos_integer()}], message :: term(),
                  bytes :: non_neg_integer()}).
-record(causal, {self :: participant(),
                 bytes_max :: pos_integer(),
                 pairs_max :: pos_integer(),
                 sent = #{} :: matrix(),
                 delivered = #{} :: #{participant() => non_neg_integer() | lost},
                 waiting = [] :: [#waiting{}],
                 bytes = 0 :: non_neg_integer()}).
-opaque state() :: #causal{}.

%% What keeping a message takes besides its bytes.
-define(ENTRY_BYTES, 200).

%% @doc BytesMax bounds what waits, PairsMax the pairs of participants that are known.
-spec new(participant(), BytesMax :: pos_integer(), PairsMax :: pos_integer()) -> state().
new(Self, BytesMax, PairsMax) ->
    #causal{self = Self, bytes_max = BytesMax, pairs_max = PairsMax}.

%% @doc The stamp for a message to another participant that is sent now.
-spec stamp(participant(), state()) -> {ok, stamp(), state()} | {error, too_many_participants}.
stamp(To, #causal{self = Self, sent = Sent} = State) ->
    Pair = {Self, To},
    Number = maps:get(Pair, Sent, 0) + 1,
    case bounded(Sent#{Pair => Number}, State) of
        {ok, Next} -> {ok, {Self, Number, Sent}, State#causal{sent = Next}};
        Error -> Error
    end.

%% @doc A message has arrived. Returns what may be delivered now, in order. The message `skipped'
%% has a number only.
-spec arrived(stamp(), Message :: term(), Bytes :: non_neg_integer(), state()) ->
          {[delivered()], state()} | {error, malformed | too_many_participants}.
arrived({_From, Number, Before} = Stamp, Message, Bytes, #causal{self = Self} = State) ->
    case is_stamp(Stamp) of
        true -> wait(Number, #waiting{from = sender(Stamp, Self), before = Before,
                                      needs = needs(Before, Self), message = Message,
                                      bytes = Bytes + ?ENTRY_BYTES}, State);
        false -> {error, malformed}
    end;
arrived(_Stamp, _Message, _Bytes, _State) ->
    {error, malformed}.

%% @doc What a participant has sent with these numbers will not arrive any more, if it has not yet.
-spec given_up(participant(), First :: pos_integer(), Last :: pos_integer(), state()) ->
          {[delivered()], state()} | {error, malformed | too_many_participants}.
given_up(From, First, Last, #causal{self = Self} = State) ->
    case is_participant(From) andalso is_count(First) andalso is_count(Last)
        andalso First =< Last of
        true -> wait(First, skipped(From, First, Last, Self), State);
        false -> {error, malformed}
    end.

skipped(From, First, Last, Self) ->
    #waiting{from = From, before = before(From, Last, Self),
             needs = needs(before(From, First, Self), Self), message = skipped,
             bytes = ?ENTRY_BYTES}.

%% What a sender knows at least when it sends that number.
before(_From, 1, _Self) -> #{};
before(From, Number, Self) -> #{{From, Self} => Number - 1}.

wait(First, #waiting{from = From, before = Before, bytes = Bytes} = New,
     #causal{sent = Sent} = State0) ->
    case bounded(merge(Before, Sent), State0) of
        {ok, _} ->
            #causal{waiting = Waiting, bytes = All} = State = heard(From, First, State0),
            give_out([], State#causal{waiting = Waiting ++ [New], bytes = All + Bytes});
        Error ->
            Error
    end.

is_stamp({From, Number, Before}) ->
    is_participant(From) andalso is_count(Number) andalso is_map(Before) andalso
        lists:all(fun({{A, B}, Count}) ->
                          is_participant(A) andalso is_participant(B) andalso is_count(Count);
                     (_) -> false
                  end, maps:to_list(Before)).

is_participant(Term) -> is_pid(Term) orelse is_integer(Term).

is_count(Term) -> is_integer(Term) andalso Term > 0.

needs(Before, Self) ->
    [{Who, Count} || {{Who, To}, Count} <- maps:to_list(Before), To =:= Self].

sender({From, Number, Before}, Self) ->
    case maps:get({From, Self}, Before, 0) =:= Number - 1 of
        true -> From;
        false -> none
    end.

%% A participant that was lost: all that it has sent before has come or never will.
heard(From, Number, #causal{delivered = Delivered} = State) ->
    case Delivered of
        #{From := lost} -> State#causal{delivered = Delivered#{From := Number - 1}};
        #{} -> State
    end.

%% Waiting messages are examined in the order of their arrival, again after each delivery.
give_out(Out, #causal{waiting = Waiting} = State) ->
    case take_first(fun(#waiting{needs = Needs}) -> are_met(Needs, State) end, [], Waiting) of
        {Entry, Rest} ->
            give_out(out(causal, Entry, Out), deliver(Entry, State#causal{waiting = Rest}));
        none ->
            force(Out, State)
    end.

out(_How, #waiting{message = skipped}, Out) -> Out;
out(How, #waiting{message = Message}, Out) -> [{How, Message} | Out].

force(Out, #causal{bytes = Bytes, bytes_max = Max} = State) when Bytes =< Max ->
    {lists:reverse(Out), State};
force(Out, #causal{waiting = [First | Others] = Waiting} = State) ->
    case take_first(fun(#waiting{message = Message}) -> Message =/= skipped end, [], Waiting) of
        {Oldest, Rest} ->
            give_out(out(forced, Oldest, Out), ahead(Oldest, State#causal{waiting = Rest}));
        none ->
            give_out(Out, deliver(First, State#causal{waiting = Others}))
    end.

take_first(_Is, _Passed, []) -> none;
take_first(Is, Passed, [Entry | Rest]) ->
    case Is(Entry) of
        true -> {Entry, lists:reverse(Passed, Rest)};
        false -> take_first(Is, [Entry | Passed], Rest)
    end.

are_met(Needs, #causal{delivered = Delivered}) ->
    lists:all(fun({Who, Count}) ->
                      case maps:get(Who, Delivered, 0) of
                          lost -> true;
                          Had -> Had >= Count
                      end
              end, Needs).

deliver(#waiting{from = From} = Entry, #causal{self = Self} = State0) ->
    #causal{delivered = Delivered} = State = known(Entry, State0),
    case maps:get(From, Delivered, 0) of
        _ when From =:= none -> State;
        lost -> State;
        Had -> State#causal{delivered = Delivered#{From => max(Had, number(Entry, Self))}}
    end.

number(#waiting{from = From, before = Before}, Self) -> maps:get({From, Self}, Before, 0) + 1.

%% What its sender knew is known here; it waits no more.
known(#waiting{from = From, before = Before, bytes = Bytes} = Entry,
      #causal{self = Self, sent = Sent, bytes = All} = State) ->
    Pair = {From, Self},
    Known = merge(Before, Sent),
    State#causal{bytes = All - Bytes,
                 sent = case From of
                            none -> Known;
                            _ -> Known#{Pair => max(maps:get(Pair, Sent, 0), number(Entry, Self))}
                        end}.

%% What is delivered before its turn is known, but the numbers before it are waited for.
ahead(#waiting{from = From} = Entry, #causal{self = Self, delivered = Delivered} = State) ->
    Number = number(Entry, Self),
    case maps:get(From, Delivered, 0) of
        Had when From =/= none, is_integer(Had), Number > Had + 1 ->
            in_turn(From, Number, known(Entry, State));
        _ ->
            deliver(Entry, State)
    end.

%% One entry for all numbers that follow each other.
in_turn(From, Number, #causal{self = Self, waiting = Waiting, bytes = All} = State) ->
    Former = before(From, Number - 1, Self),
    IsRun = fun(#waiting{from = F, before = Before, message = Message}) ->
                    Message =:= skipped andalso F =:= From andalso Before =:= Former
            end,
    case take_first(IsRun, [], Waiting) of
        {Run, Rest} ->
            State#causal{waiting = Rest ++ [Run#waiting{before = before(From, Number, Self)}]};
        none ->
            New = skipped(From, Number, Number, Self),
            State#causal{waiting = Waiting ++ [New], bytes = All + New#waiting.bytes}
    end.

merge(A, B) ->
    maps:fold(fun(Pair, Count, Acc) -> Acc#{Pair => max(Count, maps:get(Pair, Acc, 0))} end, B, A).

%% Over the bound pairs of participants that were lost are forgotten.
bounded(Sent, #causal{pairs_max = Max}) when map_size(Sent) =< Max ->
    {ok, Sent};
bounded(Sent, #causal{pairs_max = Max, delivered = Delivered}) ->
    Kept = maps:filter(fun({From, To}, _) ->
                               not (is_lost(From, Delivered) orelse is_lost(To, Delivered))
                       end, Sent),
    case map_size(Kept) =< Max of
        true -> {ok, Kept};
        false -> {error, too_many_participants}
    end.

is_lost(Who, Delivered) -> maps:get(Who, Delivered, 0) =:= lost.

%% @doc A participant has died (`gone'), or the connection to it was lost and may come back.
-spec down(participant(), gone | lost, state()) -> {[delivered()], state()}.
down(Who, How, #causal{delivered = Delivered, sent = Sent} = State) ->
    Kept = case How of
               lost -> Sent;
               gone -> maps:filter(fun({From, To}, _) -> From =/= Who andalso To =/= Who end, Sent)
           end,
    give_out([], State#causal{delivered = Delivered#{Who => lost}, sent = Kept}).

%% @doc The participants whose end has to be told by `down/3', so that a message with that stamp
%% does not wait for ever.
-spec depends_on(stamp(), Self :: participant()) -> [participant()].
depends_on({From, _Number, Before}, Self) ->
    lists:usort([From | [Who || {Who, _} <- needs(Before, Self)]]) -- [Self].

%% @doc The number of the last message that was sent to another participant; 0 if there is none.
-spec sent(participant(), state()) -> non_neg_integer().
sent(To, #causal{self = Self, sent = Sent}) -> maps:get({Self, To}, Sent, 0).

%% @doc How many messages wait for earlier ones, and numbers of messages that do not come.
-spec waiting(state()) -> non_neg_integer().
waiting(#causal{waiting = Waiting}) -> length(Waiting).

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
%% stay connected.
%%
%% A stamp does not say whom it is for, and a message may arrive at the successor of a participant
%% that has ended. It must not count there for one that its sender has sent to the successor. The
%% matrix shows which it is: a sender numbers a message by what the matrix has of its receiver. Only
%% the first message of a sender to either of them can not be told apart.
%%
%% What waits is bounded: over the bound the oldest message is delivered out of order and marked as
%% `forced'. The number of pairs is bounded too; a new pair over the bound is an error.
-module(weft_causal_core).

-export([new/3, stamp/2, arrived/4, down/3, depends_on/2, waiting/1]).
-export_type([state/0, stamp/0, participant/0, delivered/0]).

%% A participant is a pid, so after a restart of its node it is a different one.
-type participant() :: pid() | integer().
-type matrix() :: #{{From :: participant(), To :: participant()} => pos_integer()}.
-type stamp() :: {From :: participant(), Number :: pos_integer(), matrix()}.
-type delivered() :: {causal | forced, Message :: term()}.

%% From: none if it was sent to an earlier participant.
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

%% @doc A message has arrived. Returns what may be delivered now, in order.
-spec arrived(stamp(), Message :: term(), Bytes :: non_neg_integer(), state()) ->
          {[delivered()], state()} | {error, malformed | too_many_participants}.
arrived({_From, Number, Before} = Stamp, Message, Bytes,
        #causal{self = Self, sent = Sent, waiting = Waiting, bytes = All} = State0) ->
    case is_stamp(Stamp) andalso bounded(merge(Before, Sent), State0) of
        false ->
            {error, malformed};
        {error, _} = Error ->
            Error;
        {ok, _} ->
            Sender = sender(Stamp, Self),
            State = heard(Sender, Number, State0),
            New = #waiting{from = Sender, before = Before, needs = needs(Before, Self),
                           message = Message, bytes = Bytes + ?ENTRY_BYTES},
            give_out([], State#causal{waiting = Waiting ++ [New],
                                      bytes = All + New#waiting.bytes})
    end;
arrived(_Stamp, _Message, _Bytes, _State) ->
    {error, malformed}.

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
        {#waiting{message = Message} = Entry, Rest} ->
            give_out([{causal, Message} | Out], deliver(Entry, State#causal{waiting = Rest}));
        none ->
            force(Out, State)
    end.

force(Out, #causal{waiting = [#waiting{message = Message} = Oldest | Rest], bytes = Bytes,
                   bytes_max = Max} = State) when Bytes > Max ->
    give_out([{forced, Message} | Out], deliver(Oldest, State#causal{waiting = Rest}));
force(Out, State) ->
    {lists:reverse(Out), State}.

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

deliver(#waiting{from = none, before = Before, bytes = Bytes},
        #causal{sent = Sent, bytes = All} = State) ->
    State#causal{sent = merge(Before, Sent), bytes = All - Bytes};
deliver(#waiting{from = From, before = Before, bytes = Bytes},
        #causal{self = Self, sent = Sent, delivered = Delivered, bytes = All} = State) ->
    Pair = {From, Self},
    Known = merge(Before, Sent),
    Next = Known#{Pair => max(maps:get(Pair, Sent, 0), maps:get(Pair, Before, 0) + 1)},
    State#causal{sent = Next, bytes = All - Bytes,
                 delivered = case maps:get(From, Delivered, 0) of
                                 lost -> Delivered;
                                 Had -> Delivered#{From => Had + 1}
                             end}.

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

%% @doc How many messages wait for earlier ones.
-spec waiting(state()) -> non_neg_integer().
waiting(#causal{waiting = Waiting}) -> length(Waiting).

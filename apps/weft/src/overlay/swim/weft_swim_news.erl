%% SPDX-License-Identifier: Apache-2.0
%% @doc News about members that is still to be sent: each piece goes into a bounded number of
%% messages.
%%
%% There is at most one piece of news for a member, the latest. Pieces that were sent least often go
%% first, and of these the newest (as the queue of memberlist, queue.go). So the queue is bounded by
%% the number of members, a message by its bytes or one piece, and the work for a piece by the
%% limit. The first piece goes whatever its size, or one about nodes with long names would hold up
%% all others for ever.
%%
%% Pieces wait in levels, by how often they were sent. A piece that is out of date stays in its
%% level until it is met there or there are too many of them.
-module(weft_swim_news).

-export([new/0, add/3, take/3, is_empty/1, about/2, of_entry/2, for_receiver/5]).
-export_type([news/0, update/0]).

-type update() :: {alive, weft_core:node_id(), incarnation()}
                | {suspect, weft_core:node_id(), incarnation(), Accuser :: weft_core:node_id()}
                | {dead | left, weft_core:node_id(), incarnation()}.
-type incarnation() :: non_neg_integer().
-type stamp() :: non_neg_integer().

-record(news, {
    %% Level N: what was sent N times.
    levels = [] :: [[{weft_core:node_id(), stamp()}]],
    waiting = 0 :: non_neg_integer(),
    pieces = #{} :: #{weft_core:node_id() => {stamp(), update(), Bytes :: pos_integer()}},
    next_stamp = 0 :: stamp()}).
-opaque news() :: #news{}.

-spec new() -> news().
new() ->
    #news{}.

%% @doc Adds an update about Node, which replaces an earlier one.
-spec add(weft_core:node_id(), update(), news()) -> news().
add(Node, Update, #news{levels = Levels, waiting = Waiting, pieces = Pieces,
                        next_stamp = Stamp} = News) ->
    {Unsent, Sent} = case Levels of [] -> {[], []}; [First | Rest] -> {First, Rest} end,
    compact(News#news{levels = [[{Node, Stamp} | Unsent] | Sent], waiting = Waiting + 1,
                      pieces = Pieces#{Node => {Stamp, Update, erlang:external_size(Update)}},
                      next_stamp = Stamp + 1}).

compact(#news{waiting = Waiting, pieces = Pieces} = News)
  when Waiting =< 2 * map_size(Pieces) + 10 ->
    News;
compact(#news{levels = Levels0, pieces = Pieces} = News) ->
    Levels = [[Place || Place <- Level, is_current(Place, Pieces)] || Level <- Levels0],
    News#news{levels = Levels, waiting = map_size(Pieces)}.

is_current({Node, Stamp}, Pieces) ->
    case Pieces of
        #{Node := {Stamp, _, _}} -> true;
        #{} -> false
    end.

%% @doc The updates that go into one message of up to Bytes: one, if there is any, and as many more
%% as there is room for. Each counts as sent once more; after Limit times it is dropped.
-spec take(Limit :: pos_integer(), Bytes :: pos_integer(), news()) -> {[update()], news()}.
take(_Limit, _Bytes, #news{pieces = Pieces} = News) when map_size(Pieces) =:= 0 ->
    {[], News#news{levels = [], waiting = 0}};
take(Limit, Bytes, #news{levels = Levels} = News) ->
    level(Levels, 1, Limit, Bytes, [], [], News#news{levels = []}).

%% Goes through the levels from the first on. Moved are pieces of the level before that were taken
%% and now belong to this level: they are not taken again.
level([], _Sent, _Limit, _Bytes, Moved, Taken, News) ->
    done([], Moved, Taken, News);
level([Level | Levels], Sent, Limit, Bytes, Moved, Taken0, News0) ->
    {Rest, Taking, Left, News1} = fit(Level, {Taken0 =:= [], Bytes}, [], News0),
    Taken = [Update || {_, Update} <- Taking] ++ Taken0,
    {Kept, #news{levels = Above} = News2} =
        keep(lists:reverse([Place || {Place, _} <- Taking]), Sent, Limit, News1),
    News = News2#news{levels = [Moved ++ Rest | Above]},
    case Rest of
        [] -> level(Levels, Sent + 1, Limit, Left, Kept, Taken, News);
        _ -> done(Levels, Kept, Taken, News)
    end.

done(Levels, Moved, Taken, #news{levels = Above} = News) ->
    Below = case {Moved, Levels} of
                {[], _} -> Levels;
                {_, []} -> [Moved];
                {_, [Level | More]} -> [Moved ++ Level | More]
            end,
    {lists:reverse(Taken), News#news{levels = lists:reverse(Above, Below)}}.

fit([{Node, Stamp} = Place | Rest] = Level, {IsFirst, Bytes}, Taking,
    #news{pieces = Pieces} = News) ->
    case Pieces of
        #{Node := {Stamp, Update, Size}} when IsFirst; Size =< Bytes ->
            fit(Rest, {false, Bytes - Size}, [{Place, Update} | Taking], News);
        #{Node := {Stamp, _Update, _TooLarge}} ->
            {Level, Taking, Bytes, News};
        #{} ->
            fit(Rest, {IsFirst, Bytes}, Taking, News#news{waiting = News#news.waiting - 1})
    end;
fit([], {_IsFirst, Bytes}, Taking, News) ->
    {[], Taking, Bytes, News}.

keep(Places, Sent, Limit, #news{pieces = Pieces, waiting = Waiting} = News) when Sent >= Limit ->
    {[], News#news{pieces = maps:without([Node || {Node, _} <- Places], Pieces),
                   waiting = Waiting - length(Places)}};
keep(Places, _Sent, _Limit, News) ->
    {Places, News}.

%% @doc Is there nothing to tell?
-spec is_empty(news()) -> boolean().
is_empty(#news{pieces = Pieces}) ->
    map_size(Pieces) =:= 0.

%% @doc Is news about Node still to be sent?
-spec about(weft_core:node_id(), news()) -> boolean().
about(Node, #news{pieces = Pieces}) ->
    is_map_key(Node, Pieces).

%% @doc An entry of a table that From sent, as a piece of news.
-spec of_entry(weft_swim_table:entry(), From :: weft_core:node_id()) -> update().
of_entry({Node, Incarnation, suspect}, From) -> {suspect, Node, Incarnation, From};
of_entry({Node, Incarnation, Status}, _From) -> {Status, Node, Incarnation}.

%% @doc What a receiver hears of itself, from what is believed of it. A member that is believed dead
%% is told so with whatever it gets, so that it can refute. Buddy system: so is a suspect that we
%% ping.
-spec for_receiver(To :: weft_core:node_id(),
                   {incarnation(), weft_swim_table:status()} | unknown, What :: term(),
                   Self :: weft_core:node_id(), weft_swim_options:options()) -> [update()].
for_receiver(To, Believed, What, Self, #{lifeguard := Lifeguard}) ->
    case {Believed, What} of
        {{Incarnation, Status}, _} when Status =:= dead; Status =:= left ->
            [{Status, To, Incarnation}];
        {{Incarnation, suspect}, {ping, _}} ->
            [{suspect, To, Incarnation, Self} || lists:member(buddy, Lifeguard)];
        _ ->
            []
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Which connections may wait for their authentication, if there are more than places; pure.
%%
%% Every newcomer is let in. If all places are taken another connection is dropped for it:
%%  1. Half of the places are for addresses from which a peer has authenticated before, the other
%%     half for strangers; each half may use what the other leaves. The connection to drop is of the
%%     half that has more than its own places, or of the half of the newcomer.
%%  2. In this half, it is of the address that has the most connections: many from one address drop
%%     each other, and none else.
%%  3. Of that address, it is the oldest. A connection that has said what it wants counts as
%%     `?HEARD_MS' younger: nodes say it at once, while a peer that only occupies a place never
%%     does.
%%
%% So a newcomer stays long enough for a handshake, even if another peer connects thousands of times
%% a second from the same address. A number of known addresses is kept, the last ones. Reaches no
%% socket and no process; that is `weft_strangers'.
-module(weft_strangers_core).

-export([new/1, is_full/1, next_to_go/2, come/4, heard/2, is_heard/2, gone/2, authenticated/2,
         count/1, is_known/2]).
-export_type([strangers/0, id/0, address/0]).

-define(HEARD_MS, 1000).
-define(KNOWN_MAX, 4096).
%% How many of an address may have gone and be left in its queues, besides as many as wait.
-define(DEAD_MAX, 16).

-type id() :: term().
%% Of the host alone, because a port does not identify a peer.
-type address() :: term().
-type half() :: known | stranger.
-type turn() :: {DueMs :: integer(), Number :: integer()}.
-type entry() :: {half(), address(), turn(), silent | heard}.
%% Each in the order in which they came, or were heard. Connections that have gone are left in the
%% queues, but never in front; `dead' counts them.
-record(waiting, {silent = queue:new() :: queue:queue({turn(), id()}),
                  heard = queue:new() :: queue:queue({turn(), id()}),
                  live = 0 :: non_neg_integer(),
                  dead = 0 :: non_neg_integer()}).
-record(strangers, {max :: pos_integer(),
                    number = 0 :: non_neg_integer(),
                    entries = #{} :: #{id() => entry()},
                    waiting = #{} :: #{{half(), address()} => #waiting{}},
                    %% The addresses of a half, by how many connections they have.
                    loads = #{known => gb_sets:new(), stranger => gb_sets:new()}
                          :: #{half() => gb_sets:set()},
                    sizes = #{known => 0, stranger => 0} :: #{half() => non_neg_integer()},
                    known = #{} :: #{address() => integer()},
                    known_order = gb_trees:empty() :: gb_trees:tree()}).
-opaque strangers() :: #strangers{}.

%% @doc So many places.
-spec new(Max :: pos_integer()) -> strangers().
new(Max) -> #strangers{max = Max}.

%% @doc Are all places taken?
-spec is_full(strangers()) -> boolean().
is_full(#strangers{max = Max} = State) -> count(State) >= Max.

%% @doc The connection to drop for one from that address. There must be one.
-spec next_to_go(address(), strangers()) -> id().
next_to_go(Address, State) ->
    first_to_go(half_to_go(half(Address, State), State), State).

half(Address, State) ->
    case is_known(Address, State) of true -> known; false -> stranger end.

half_to_go(Newcomer, #strangers{max = Max, sizes = #{known := Known, stranger := Strangers}}) ->
    Half = Max div 2,
    if
        Strangers > Max - Half -> stranger;
        Known > Half -> known;
        Newcomer =:= known, Known > 0 -> known;
        Strangers > 0 -> stranger;
        true -> known
    end.

first_to_go(Half, #strangers{loads = Loads, waiting = Waiting}) ->
    {_Live, Address} = gb_sets:largest(maps:get(Half, Loads)),
    #{{Half, Address} := #waiting{silent = Silent, heard = Heard}} = Waiting,
    {_Turn, Id} = lists:min([Front || {value, Front} <- [queue:peek(Silent), queue:peek(Heard)]]),
    Id.

%% @doc A connection has come, and there is a place for it.
-spec come(id(), address(), NowMs :: integer(), strangers()) -> strangers().
come(Id, Address, NowMs, #strangers{number = Number} = State) ->
    add(Id, {half(Address, State), Address, {NowMs, Number}, silent},
        State#strangers{number = Number + 1}).

%% @doc The connection has said what it wants.
-spec heard(id(), strangers()) -> strangers().
heard(Id, #strangers{entries = Entries} = State) ->
    case Entries of
        #{Id := {Half, Address, {DueMs, Number}, silent}} ->
            add(Id, {Half, Address, {DueMs + ?HEARD_MS, Number}, heard}, gone(Id, State));
        #{} -> State
    end.

-spec is_heard(id(), strangers()) -> boolean().
is_heard(Id, #strangers{entries = Entries}) ->
    case Entries of
        #{Id := {_Half, _Address, _Turn, heard}} -> true;
        #{} -> false
    end.

%% @doc The connection has ended, in whatever way. Does nothing if it is none of these any more.
-spec gone(id(), strangers()) -> strangers().
gone(Id, #strangers{entries = Entries0} = State) ->
    case maps:take(Id, Entries0) of
        {Entry, Entries} -> remove(Entry, State#strangers{entries = Entries});
        error -> State
    end.

%% @doc The connection has authenticated: its place is free, and its address is known from now on.
-spec authenticated(id(), strangers()) -> strangers().
authenticated(Id, #strangers{entries = Entries} = State) ->
    case Entries of
        #{Id := {_Half, Address, _Turn, _Said}} -> remember(Address, gone(Id, State));
        #{} -> State
    end.

%% @doc How many wait.
-spec count(strangers()) -> non_neg_integer().
count(#strangers{entries = Entries}) -> map_size(Entries).

-spec is_known(address(), strangers()) -> boolean().
is_known(Address, #strangers{known = Known}) -> is_map_key(Address, Known).

%% --- what waits -------------------------------------------------------------------------------

add(Id, {Half, Address, Turn, Said} = Entry, #strangers{entries = Entries} = State) ->
    #waiting{live = Live} = Waiting = waiting(Half, Address, State),
    Added = put_last(Said, {Turn, Id}, Waiting#waiting{live = Live + 1}),
    changed(Half, Address, Live, Added, State#strangers{entries = Entries#{Id => Entry}}).

waiting(Half, Address, #strangers{waiting = Waiting}) ->
    maps:get({Half, Address}, Waiting, #waiting{}).

put_last(silent, Item, #waiting{silent = Silent} = Waiting) ->
    Waiting#waiting{silent = queue:in(Item, Silent)};
put_last(heard, Item, #waiting{heard = Heard} = Waiting) ->
    Waiting#waiting{heard = queue:in(Item, Heard)}.

remove({Half, Address, _Turn, _Said}, #strangers{entries = Entries} = State) ->
    #waiting{live = Live, dead = Dead} = Waiting = waiting(Half, Address, State),
    Left = trimmed(Entries, Waiting#waiting{live = Live - 1, dead = Dead + 1}),
    changed(Half, Address, Live, Left, State).

%% If most have gone the queues are swept; otherwise only their fronts are examined.
trimmed(Entries, #waiting{silent = Silent, heard = Heard, live = Live, dead = Dead} = Waiting)
  when Dead > Live + ?DEAD_MAX ->
    Waiting#waiting{silent = queue:filter(fun(Item) -> is_live(Item, Entries) end, Silent),
                    heard = queue:filter(fun(Item) -> is_live(Item, Entries) end, Heard),
                    dead = 0};
trimmed(Entries, #waiting{silent = Silent0, heard = Heard0, dead = Dead0} = Waiting) ->
    {Silent, Dead1} = trim(Silent0, Dead0, Entries),
    {Heard, Dead} = trim(Heard0, Dead1, Entries),
    Waiting#waiting{silent = Silent, heard = Heard, dead = Dead}.

trim(Queue, Dead, Entries) ->
    case queue:peek(Queue) of
        empty -> {Queue, Dead};
        {value, Item} ->
            case is_live(Item, Entries) of
                true -> {Queue, Dead};
                false -> trim(queue:drop(Queue), Dead - 1, Entries)
            end
    end.

%% A connection that was heard is in both queues, in one of them with its first turn.
is_live({Turn, Id}, Entries) ->
    case Entries of
        #{Id := {_Half, _Address, Turn, _Said}} -> true;
        #{} -> false
    end.

changed(Half, Address, Before, #waiting{live = Live} = Now,
        #strangers{waiting = Waiting, loads = Loads, sizes = Sizes} = State) ->
    #{Half := Load} = Loads,
    #{Half := Size} = Sizes,
    Others = gb_sets:del_element({Before, Address}, Load),
    State#strangers{waiting = case Live of
                                  0 -> maps:remove({Half, Address}, Waiting);
                                  _ -> Waiting#{{Half, Address} => Now}
                              end,
                    loads = Loads#{Half := case Live of
                                               0 -> Others;
                                               _ -> gb_sets:add_element({Live, Address}, Others)
                                           end},
                    sizes = Sizes#{Half := Size + Live - Before}}.

%% --- addresses that are known -----------------------------------------------------------------

remember(Address, #strangers{known = Known0, known_order = Order0, number = Number} = State) ->
    Order1 = case Known0 of
                 #{Address := Before} -> gb_trees:delete(Before, Order0);
                 #{} -> Order0
             end,
    Known = Known0#{Address => Number},
    Order = gb_trees:insert(Number, Address, Order1),
    forget(map_size(Known) > ?KNOWN_MAX,
           State#strangers{known = Known, known_order = Order, number = Number + 1}).

forget(false, State) ->
    State;
forget(true, #strangers{known = Known, known_order = Order0} = State) ->
    {_Number, Address, Order} = gb_trees:take_smallest(Order0),
    State#strangers{known = maps:remove(Address, Known), known_order = Order}.

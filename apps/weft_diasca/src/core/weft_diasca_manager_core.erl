%% SPDX-License-Identifier: Apache-2.0
%% @doc The time manager of a node: it knows which of its actors act when, triggers them at the
%% times that the root manager begins, and tells the root when all of them are done. Pure.
%%
%% Actors of other nodes may be in the diasca that has just begun while this node does not know of
%% it, and send messages for the one after it. So actors that want to be triggered are kept for two
%% times. All of them that want the time that begins are known by then, since they acknowledged
%% nothing before.
%%
%% Events of the root: `{create, Births}', `{begin_diasca, Time, Born, Gone, Letters}' (Born: the
%% last number that was given, and all new actors with their addresses; Gone: those that have ended;
%% Letters: what the engine has to say to actors of this node), `{finish, Time}', `save',
%% `who_is_late'. Of the node: `{spawned, Id, Address}', `{lost, Node}' and `{up, Node}' (its
%% connection with that node). Of its actors: see `weft_diasca_actor_core'.
%% Effects: `{send, Address, Event}' to an actor, `{root, Message}', `{spawn, Birth}', `{end_actor,
%% Address}', `{directory, Born, Gone}' (to be done before what follows).
%% Messages to the root: `{created, Node, [{Id, Address}]}', `{done, Time, Node, Sum}', `{saved,
%% Node, [Saved]}', `{late, Node, [Id], Lost}' (Lost: nodes with which the connection is lost, or
%% was in this diasca), `{failed, Node, Time, Id, Why}'.
-module(weft_diasca_manager_core).

-export([new/1, handle/2]).
-export_type([manager/0, sum/0]).

-define(NAMED_MAX, 10).

-type id() :: weft_diasca_actor:id().
-type sum() :: #{next := weft_diasca_actor:tick() | none, acted := non_neg_integer(),
                 sent := non_neg_integer(), away := non_neg_integer(),
                 dropped := non_neg_integer(), probes := [weft_diasca_results:value()],
                 creates := [{{id(), pos_integer()}, Tag :: term(), tuple()}], gone := [id()]}.

-record(manager, {
    node :: node(),
    actors = #{} :: #{id() => weft_diasca_actor_core:address()},
    %% When each actor acts next by itself, and the same in order.
    next = #{} :: #{id() => weft_diasca_actor:tick()},
    agenda = gb_sets:new() :: gb_sets:set({weft_diasca_actor:tick(), id()}),
    wanted = #{} :: #{weft_diasca_actor:time() => #{id() => true}},
    %% Actors that are being made, and those that are made and not initialized.
    births = #{} :: #{id() => new | saved},
    made = [] :: [{id(), weft_diasca_actor_core:address()}],
    unborn = [] :: [id()],
    %% Actors that are not done, and what those that are done have told.
    waiting = #{} :: #{id() => true},
    gone = #{} :: #{id() => true},
    %% Connections that were lost, and whether they are back.
    lost = #{} :: #{node() => down | up},
    sum :: sum() | none,
    saved = [] :: [map()]}).

-opaque manager() :: #manager{}.

-spec new(node()) -> manager().
new(Node) -> #manager{node = Node, sum = none}.

-spec handle(tuple() | atom(), manager()) -> {[tuple()], manager()}.
handle({create, Births}, Manager) ->
    create(Births, Manager);
handle({spawned, Id, Address}, Manager) ->
    spawned(Id, Address, Manager);
handle({begin_diasca, Time, Born, Gone, Letters}, Manager) ->
    begun(Time, Born, Gone, Letters, Manager);
handle({finish, Time}, #manager{actors = Actors} = Manager) ->
    begin_all(Time, [{Id, {finish, Time}} || Id <- maps:keys(Actors)], [],
              Manager#manager{gone = #{}});
handle({wanted, Time, Id}, #manager{wanted = Wanted, actors = Actors} = Manager) ->
    Of = maps:get(Time, Wanted, #{}),
    {[{send, maps:get(Id, Actors), {noted, Time}}],
     Manager#manager{wanted = Wanted#{Time => Of#{Id => true}}}};
handle({done, Time, Id, Report}, Manager) ->
    done(Time, Id, Report, Manager);
handle({failed, Time, Id, Why}, #manager{node = Node} = Manager) ->
    {[{root, {failed, Node, Time, Id, Why}}], Manager};
handle({lost, Node}, #manager{lost = Lost} = Manager) ->
    {[], Manager#manager{lost = Lost#{Node => down}}};
handle({up, Node}, #manager{lost = Lost} = Manager) when is_map_key(Node, Lost) ->
    {[], Manager#manager{lost = Lost#{Node => up}}};
handle({up, _Node}, Manager) ->
    {[], Manager};
handle(who_is_late, #manager{node = Node, waiting = Waiting, lost = Lost} = Manager) ->
    Ids = lists:sublist(lists:sort(maps:keys(Waiting)), ?NAMED_MAX),
    {[{root, {late, Node, Ids, lists:sort(maps:keys(Lost))}}], Manager};
handle(save, #manager{actors = Actors} = Manager) ->
    all_saved(Manager#manager{saved = [], waiting = maps:map(fun(_, _) -> true end, Actors)},
              [{send, Address, save} || Address <- maps:values(Actors)]);
handle({saved, Id, Saved}, #manager{waiting = Waiting, saved = Others} = Manager) ->
    all_saved(Manager#manager{waiting = maps:remove(Id, Waiting), saved = [Saved | Others]}, []).

all_saved(#manager{waiting = Waiting, saved = Saved, node = Node} = Manager, Effects)
  when map_size(Waiting) =:= 0 ->
    {Effects ++ [{root, {saved, Node, Saved}}], Manager#manager{saved = []}};
all_saved(Manager, Effects) ->
    {Effects, Manager}.

%% --- births -----------------------------------------------------------------------------------

create(Births, Manager) ->
    all_made(lists:foldl(fun to_be_made/2, Manager#manager{made = []}, Births),
             [{spawn, Birth} || Birth <- Births]).

to_be_made({Id, {new, _}}, #manager{births = Births} = Manager) ->
    Manager#manager{births = Births#{Id => new}};
to_be_made({Id, {saved, #{agenda := Agenda}}}, #manager{births = Births} = Manager) ->
    Next = case Agenda of [Tick | _] -> Tick; [] -> none end,
    planned(Id, Next, Manager#manager{births = Births#{Id => saved}}).

spawned(Id, Address, #manager{births = Births, made = Made, actors = Actors,
                              unborn = Unborn} = Manager) ->
    {Kind, Left} = maps:take(Id, Births),
    all_made(Manager#manager{births = Left, made = [{Id, Address} | Made],
                             actors = Actors#{Id => Address},
                             unborn = case Kind of new -> [Id | Unborn]; saved -> Unborn end}, []).

all_made(#manager{births = Births, made = Made, node = Node} = Manager, Effects)
  when map_size(Births) =:= 0 ->
    {Effects ++ [{root, {created, Node, Made}}], Manager#manager{made = []}};
all_made(Manager, Effects) ->
    {Effects, Manager}.

%% --- one diasca -------------------------------------------------------------------------------

begun({Tick, Diasca} = Time, Born, Gone, Letters, #manager{wanted = Wanted} = Manager0) ->
    {Due, Manager} = due(Tick, Diasca, Manager0),
    Writes = maps:map(fun(_, L) -> lists:reverse(L) end, lists:foldl(fun letter/2, #{}, Letters)),
    Wants = maps:get(Time, Wanted, #{}),
    Acting = lists:usort(Due ++ Manager#manager.unborn ++ maps:keys(Writes) ++ maps:keys(Wants)),
    {Effects, Left} = ended(Gone, Wants, Manager#manager{unborn = [],
                                                         wanted = maps:remove(Time, Wanted)}),
    Triggers = [{Id, {trigger, Time, maps:get(Id, Writes, [])}}
                || Id <- Acting, is_map_key(Id, Left#manager.actors)],
    begin_all(Time, Triggers, [{directory, Born, Gone} | Effects], Left).

letter({Id, Content}, Letters) ->
    Letters#{Id => [Content | maps:get(Id, Letters, [])]}.

due(_Tick, Diasca, Manager) when Diasca > 0 ->
    {[], Manager};
due(Tick, 0, #manager{agenda = Agenda, next = Next} = Manager) ->
    case gb_sets:is_empty(Agenda) of
        true -> {[], Manager};
        false ->
            case gb_sets:take_smallest(Agenda) of
                {{Tick, Id}, Rest} ->
                    {Ids, Last} = due(Tick, 0, Manager#manager{agenda = Rest,
                                                               next = maps:remove(Id, Next)}),
                    {[Id | Ids], Last};
                _ -> {[], Manager}
            end
    end.

%% One that has ended but was sent something stays for this diasca, and counts what it drops.
ended(Gone, Wants, Manager) ->
    lists:foldl(fun(Id, {Effects, M}) -> end_one(Id, is_map_key(Id, Wants), Effects, M) end,
                {[], Manager#manager{gone = #{}}}, Gone).

end_one(Id, IsWanted, Effects, #manager{actors = Actors, gone = Gone} = Manager0) ->
    Manager = planned(Id, none, Manager0),
    case {Actors, IsWanted} of
        {#{Id := _}, true} -> {Effects, Manager#manager{gone = Gone#{Id => true}}};
        {#{Id := Address}, false} ->
            {[{end_actor, Address} | Effects],
             Manager#manager{actors = maps:remove(Id, Actors)}};
        {#{}, _} -> {Effects, Manager}
    end.

%% What was on its way when this begins has arrived, so a connection that is back does not matter
%% any more. One that is not does: an attempt to make it that fails is told to nobody, and what was
%% to go over it is lost.
begin_all(Time, Triggers, Effects, #manager{actors = Actors, lost = Lost} = Manager) ->
    Sum = #{next => none, acted => length(Triggers), sent => 0, away => 0, dropped => 0,
            probes => [], creates => [], gone => []},
    Sends = [{send, maps:get(Id, Actors), Event} || {Id, Event} <- Triggers],
    StillDown = maps:filter(fun(_, State) -> State =:= down end, Lost),
    all_done(Time, Manager#manager{sum = Sum, lost = StillDown,
                                   waiting = maps:from_list([{Id, true} || {Id, _} <- Triggers])},
             Effects ++ Sends).

done(Time, Id, Report, #manager{waiting = Waiting, sum = Sum, gone = Gone} = Manager0) ->
    #{next := Next, creates := Creates, ends := Ends, probes := Probes} = Report,
    #{creates := AllCreates, gone := AllGone, probes := AllProbes} = Sum,
    IsGone = is_map_key(Id, Gone),
    Added = maps:map(fun(Key, Count) when Key =:= sent; Key =:= away; Key =:= dropped ->
                             Count + maps:get(Key, Report);
                        (_, Value) -> Value
                     end, Sum),
    Total = Added#{probes := Probes ++ AllProbes,
                   creates := [{{Id, Number}, Tag, Spec} || {Number, Tag, Spec} <- Creates]
                              ++ AllCreates,
                   gone := [Id || Ends, not IsGone] ++ AllGone},
    Manager = planned(Id, Next, Manager0#manager{waiting = maps:remove(Id, Waiting), sum = Total}),
    {Effects, Left} = case IsGone of
                          true -> end_one(Id, false, [], Manager);
                          false -> {[], Manager}
                      end,
    all_done(Time, Left, Effects).

all_done(Time, #manager{waiting = Waiting, sum = Sum, node = Node, agenda = Agenda} = Manager,
         Effects) when map_size(Waiting) =:= 0 ->
    Next = case gb_sets:is_empty(Agenda) of
               true -> none;
               false -> element(1, gb_sets:smallest(Agenda))
           end,
    {Effects ++ [{root, {done, Time, Node, Sum#{next := Next}}}], Manager#manager{sum = none}};
all_done(_Time, Manager, Effects) ->
    {Effects, Manager}.

planned(Id, Tick, #manager{next = Next, agenda = Agenda} = Manager) ->
    Others = case Next of
                 #{Id := Old} -> gb_sets:del_element({Old, Id}, Agenda);
                 #{} -> Agenda
             end,
    case Tick of
        none -> Manager#manager{next = maps:remove(Id, Next), agenda = Others};
        _ -> Manager#manager{next = Next#{Id => Tick},
                             agenda = gb_sets:add_element({Tick, Id}, Others)}
    end.

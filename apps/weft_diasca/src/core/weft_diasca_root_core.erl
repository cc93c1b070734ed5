%% SPDX-License-Identifier: Apache-2.0
%% @doc The root time manager: it says when each diasca begins, and what is simulated next. Pure.
%%
%% A diasca is over when the managers of all nodes are done with it. If actors sent messages or made
%% others, the next diasca of the same tick follows; otherwise the first tick that any actor has
%% scheduled. Ticks that nobody wants are passed over. Between two ticks nothing is on its way, so
%% there a checkpoint may be taken, and the run may be stopped.
%%
%% Events: those of `weft_diasca_manager_core', `stop', and `kept' (the checkpoint is on disk).
%% Effects: `{send, Node, Event}' to a manager, `{began, Phase}' (before what it takes is sent),
%% `{keep, Checkpoint}', `{over, Result}', `{failed, Reason}'.
-module(weft_diasca_root_core).

-export([new/3, restored/3, handle/2, is_late/1]).
-export_type([root/0, settings/0, checkpoint/0, result/0, reason/0]).

-type settings() :: #{seed := term(), ticks := weft_diasca_actor:tick(),
                      order := sorted | shuffled, probes := all | none | [term()],
                      checkpoint_ticks := pos_integer() | stop | never,
                      actors_max := pos_integer(), messages_max := pos_integer(),
                      diascas_max := pos_integer(), probes_max := pos_integer()}.
%% `ticks': the last one. `stop': a checkpoint only when the run is stopped. Limits: actors of a
%% node, messages of a diasca, diascas of a tick, values of probes that are kept.
-type totals() :: #{diascas := non_neg_integer(), ticks := non_neg_integer(),
                    acted := non_neg_integer(), messages := non_neg_integer(),
                    away := non_neg_integer(), dropped := non_neg_integer()}.
-type checkpoint() :: #{tick := weft_diasca_actor:tick() | none, last := weft_diasca_actor:id(),
                        time := weft_diasca_actor:time(), settings := settings(),
                        results := weft_diasca_results:results(), totals := totals(),
                        actors := [map()]}.
-type result() :: #{hash := binary(), probes := weft_diasca_results:series(),
                    values := non_neg_integer(), tick := weft_diasca_actor:tick(),
                    actors := non_neg_integer(), is_stopped := boolean(), atom() => term()}.
-type reason() :: {actor_failed, node(), weft_diasca_actor:time(), weft_diasca_actor:id(), term()}
                | {too_many_actors, node(), Max :: pos_integer()}
                | {too_many_messages, weft_diasca_actor:time(), Max :: pos_integer()}
                | {too_many_diascas, weft_diasca_actor:tick(), Max :: pos_integer()}
                | {too_many_probes, Max :: pos_integer()}.

-record(root, {
    nodes :: [node(), ...],
    settings :: settings(),
    phase :: creating | running | saving | keeping | finishing | over,
    time = {0, 0} :: weft_diasca_actor:time(),
    %% The time that begins when the actors are made, or the checkpoint is kept.
    next = {0, 0} :: weft_diasca_actor:time() | none,
    last = 0 :: weft_diasca_actor:id(),
    counts :: #{node() => non_neg_integer()},
    placement = #{} :: #{weft_diasca_actor:id() => node()},
    waiting = [] :: [node()],
    sums = [] :: [weft_diasca_manager_core:sum()],
    born = [] :: [{weft_diasca_actor:id(), weft_diasca_actor_core:address()}],
    gone = [] :: [weft_diasca_actor:id()],
    letters = [] :: [{weft_diasca_actor:id(), term()}],
    saved = [] :: [map()],
    kept_at = 0 :: weft_diasca_actor:tick(),
    results :: weft_diasca_results:results(),
    totals = #{diascas => 0, ticks => 0, acted => 0, messages => 0, away => 0, dropped => 0}
        :: totals(),
    is_stopped = false :: boolean()}).

-opaque root() :: #root{}.

%% @doc A run with these first actors, in their order.
-spec new([{module(), term(), weft_diasca_actor:options()}], [node(), ...], settings()) ->
          {[tuple()], root()}.
new(Actors, Nodes, Settings) ->
    Root = empty(Nodes, Settings),
    create([{none, none, Spec} || Spec <- Actors], Root#root{phase = creating}).

%% @doc The same run where the checkpoint was taken; the nodes may be others. What these settings
%% do not say stays.
-spec restored(checkpoint(), [node(), ...], map()) -> {[tuple()], root()}.
restored(#{tick := Tick, last := Last, time := Time, settings := Before, results := Results,
           totals := Totals, actors := Actors}, Nodes, Settings) ->
    #{probes := Keep, probes_max := Max} = Now = maps:merge(Before, Settings),
    Root = (empty(Nodes, Now))
        #root{last = Last, time = Time, next = at(Tick), kept_at = element(1, Time),
              results = weft_diasca_results:restored(Keep, Max, Results), totals = Totals},
    births([weft_diasca_balancer:restored(Saved, Nodes) || Saved <- Actors], Root).

empty(Nodes, #{probes := Keep, probes_max := Max} = Settings) ->
    #root{nodes = Nodes, settings = Settings, phase = creating,
          counts = maps:from_list([{Node, 0} || Node <- Nodes]),
          results = weft_diasca_results:new(Keep, Max)}.

at(none) -> none;
at(Tick) -> {Tick, 0}.

%% @doc The managers that are awaited, and what for.
-spec is_late(root()) -> {Phase :: atom(), weft_diasca_actor:time(), [node()]}.
is_late(#root{phase = Phase, time = Time, waiting = Waiting}) -> {Phase, Time, Waiting}.

-spec handle(tuple() | atom(), root()) -> {[tuple()], root()}.
handle(_Event, #root{phase = over} = Root) ->
    {[], Root};
handle({created, Node, Made}, #root{phase = creating, born = Born, waiting = Waiting} = Root) ->
    all_created(Root#root{born = Made ++ Born, waiting = lists:delete(Node, Waiting)});
handle({done, Time, Node, Sum}, #root{time = Time, waiting = Waiting, sums = Sums} = Root) ->
    all_done(Root#root{waiting = lists:delete(Node, Waiting), sums = [Sum | Sums]});
handle({saved, Node, Saved}, #root{phase = saving, waiting = Waiting, saved = Others} = Root) ->
    all_saved(Root#root{waiting = lists:delete(Node, Waiting), saved = Saved ++ Others});
handle(kept, #root{phase = keeping, next = Next} = Root) ->
    onward(Next, Root#root{phase = running});
handle({failed, Node, Time, Id, Why}, Root) ->
    failed({actor_failed, Node, Time, Id, Why}, Root);
%% What has begun to finish was not stopped, and has no checkpoint of that.
handle(stop, #root{phase = finishing} = Root) ->
    {[], Root};
handle(stop, Root) ->
    {[], Root#root{is_stopped = true}}.

failed(Reason, Root) ->
    {[{failed, Reason}], Root#root{phase = over}}.

%% --- births -----------------------------------------------------------------------------------

%% In the order of those who want them, so that numbers depend on nothing else.
create(Creates, #root{settings = Settings, nodes = Nodes, last = Last} = Root) ->
    Numbers = lists:seq(Last + 1, Last + length(Creates)),
    Births = [weft_diasca_balancer:birth(Id, Spec, Settings, Nodes)
              || {Id, {_, _, Spec}} <- lists:zip(Numbers, Creates)],
    Letters = [{Creator, {created, Tag, Id}}
               || {Id, {{Creator, _}, Tag, _}} <- lists:zip(Numbers, Creates)],
    births(Births, Root#root{last = Last + length(Creates), letters = Letters}).

births(Births, #root{counts = Counts0, placement = Placement, nodes = Nodes,
                     settings = #{actors_max := Max}} = Root) ->
    Of = lists:foldr(fun({Node, Birth}, Acc) ->
                             Acc#{Node => [Birth | maps:get(Node, Acc, [])]}
                     end, #{}, Births),
    Counts = maps:map(fun(Node, Count) -> Count + length(maps:get(Node, Of, [])) end, Counts0),
    case [Node || {Node, Count} <- maps:to_list(Counts), Count > Max] of
        [Node | _] ->
            failed({too_many_actors, Node, Max}, Root);
        [] ->
            Asked = [Node || Node <- Nodes, is_map_key(Node, Of)],
            Added = maps:from_list([{Id, Node} || {Node, {Id, _}} <- Births]),
            {Effects, Next} = all_created(Root#root{phase = creating, counts = Counts,
                                                    placement = maps:merge(Placement, Added),
                                                    waiting = Asked}),
            {[{began, creating} | [{send, Node, {create, maps:get(Node, Of)}} || Node <- Asked]]
                 ++ Effects, Next}
    end.

all_created(#root{waiting = [], next = Next} = Root) ->
    onward(Next, Root#root{phase = running});
all_created(Root) ->
    {[], Root}.

%% --- one diasca after the other ---------------------------------------------------------------

onward(none, Root) ->
    finish(Root);
onward({Tick, _}, #root{settings = #{ticks := Ticks}} = Root) when Tick > Ticks ->
    finish(Root);
onward(Time, Root) ->
    begin_diasca(Time, Root).

begin_diasca({Tick, Diasca} = Time, #root{nodes = Nodes, totals = Totals} = Root) ->
    #root{born = Born, gone = Gone, letters = Letters, placement = Placement, last = Last} = Root,
    #{diascas := Diascas, ticks := Ticks} = Totals,
    Of = fun(Node) -> [L || {Id, _} = L <- Letters, maps:get(Id, Placement, none) =:= Node] end,
    Begins = [{send, Node, {begin_diasca, Time, {Last, Born}, Gone, Of(Node)}} || Node <- Nodes],
    {[{began, running} | Begins],
     Root#root{phase = running, time = {Tick, Diasca}, waiting = Nodes, sums = [], born = [],
               gone = [], letters = [],
               totals = Totals#{diascas := Diascas + 1,
                                ticks := Ticks + case Diasca of 0 -> 1; _ -> 0 end}}}.

all_done(#root{waiting = [_ | _]} = Root) ->
    {[], Root};
all_done(#root{sums = Sums, time = Time, results = Results0} = Root0) ->
    #{probes_max := ProbesMax, messages_max := MessagesMax} = Root0#root.settings,
    Values = lists:append([Probes || #{probes := Probes} <- Sums]),
    Sent = sum(sent, Sums),
    case weft_diasca_results:add(Time, Values, Results0) of
        {error, too_many} ->
            failed({too_many_probes, ProbesMax}, Root0);
        {ok, _} when Sent > MessagesMax ->
            failed({too_many_messages, Time, MessagesMax}, Root0);
        {ok, Results} ->
            Root = removed(lists:append([Gone || #{gone := Gone} <- Sums]),
                           Root0#root{results = Results, totals = counted(Sums, Root0)}),
            decided(Sent, Sums, Root)
    end.

sum(Key, Sums) -> lists:sum([map_get(Key, Sum) || Sum <- Sums]).

%% What actors do in the end is no part of the simulation.
counted(_Sums, #root{phase = finishing, totals = Totals}) ->
    Totals;
counted(Sums, #root{totals = Totals}) ->
    #{acted := Acted, messages := Messages, away := Away, dropped := Dropped} = Totals,
    Totals#{acted := Acted + sum(acted, Sums), messages := Messages + sum(sent, Sums),
            away := Away + sum(away, Sums), dropped := Dropped + sum(dropped, Sums)}.

%% Those that have ended in the last diasca are asked for last words, too, and have none.
removed(Ended, #root{placement = Placement, counts = Counts} = Root) ->
    Gone = [Id || Id <- Ended, is_map_key(Id, Placement)],
    Fewer = lists:foldl(fun(Id, C) ->
                                Node = maps:get(Id, Placement),
                                #{Node := Count} = C,
                                C#{Node := Count - 1}
                        end, Counts, Gone),
    Root#root{gone = Gone, placement = maps:without(Gone, Placement), counts = Fewer}.

decided(_Sent, _Sums, #root{phase = finishing} = Root) ->
    over(Root);
decided(Sent, Sums, #root{time = {Tick, Diasca}, settings = #{diascas_max := Max}} = Root) ->
    Creates = lists:sort(lists:append([Creates || #{creates := Creates} <- Sums])),
    case Sent > 0 orelse Creates =/= [] of
        true when Diasca + 1 >= Max ->
            failed({too_many_diascas, Tick, Max}, Root);
        true when Creates =/= [] ->
            create(Creates, Root#root{next = {Tick, Diasca + 1}});
        true ->
            begin_diasca({Tick, Diasca + 1}, Root);
        false ->
            between_ticks(lists:min([Next || #{next := Next} <- Sums]), Root)
    end.

%% A number is less than an atom: `none' is the least only if all are.
between_ticks(Tick, #root{nodes = Nodes, settings = Settings} = Root) ->
    case is_checkpoint(Tick, Settings, Root) of
        true ->
            {[{began, saving} | [{send, Node, save} || Node <- Nodes]],
             Root#root{phase = saving, waiting = Nodes, saved = [], next = at(Tick)}};
        false when Root#root.is_stopped ->
            finish(Root);
        false ->
            onward(at(Tick), Root)
    end.

is_checkpoint(_Tick, #{checkpoint_ticks := never}, _Root) -> false;
is_checkpoint(_Tick, _Settings, #root{is_stopped = true}) -> true;
is_checkpoint(_Tick, #{checkpoint_ticks := stop}, _Root) -> false;
is_checkpoint(Tick, #{checkpoint_ticks := Every, ticks := Last}, #root{kept_at = KeptAt}) ->
    is_integer(Tick) andalso Tick =< Last andalso Tick - KeptAt >= Every.

%% Those that have ended are not removed before the next diasca begins.
all_saved(#root{waiting = [_ | _]} = Root) ->
    {[], Root};
all_saved(#root{next = Next, saved = Saved, gone = Gone, time = {Tick, _} = Time} = Root) ->
    Kept = maps:without(Gone, maps:from_list([{Id, Actor} || #{id := Id} = Actor <- Saved])),
    Actors = [Actor || {_, Actor} <- lists:sort(maps:to_list(Kept))],
    NextTick = case Next of {Number, 0} -> Number; none -> none end,
    Checkpoint = #{tick => NextTick, last => Root#root.last, time => Time,
                   settings => Root#root.settings, results => Root#root.results,
                   totals => Root#root.totals, actors => Actors},
    {[{keep, Checkpoint}],
     Root#root{phase = keeping, saved = [], kept_at = Tick,
               next = case Root#root.is_stopped of true -> none; false -> Next end}}.

finish(#root{nodes = Nodes, time = {Tick, Diasca}} = Root) ->
    Time = {Tick, Diasca + 1},
    {[{began, finishing} | [{send, Node, {finish, Time}} || Node <- Nodes]],
     Root#root{phase = finishing, time = Time, waiting = Nodes, sums = []}}.

over(#root{results = Results, totals = Totals, time = {Tick, _}, placement = Placement,
           is_stopped = IsStopped} = Root) ->
    Result = Totals#{hash => weft_diasca_results:hash(Results),
                     probes => weft_diasca_results:probes(Results),
                     values => weft_diasca_results:count(Results),
                     tick => Tick, actors => map_size(Placement), is_stopped => IsStopped},
    {[{over, Result}], Root#root{phase = over}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Topology `full_mesh' with `detector => swim': every node is a neighbour of every other, and
%% `weft_swim_core' decides which nodes are members.
%%
%% A node that joins is dialled and kept connected while it lives. Of two nodes the one with the
%% greater name dials first, so that few calls cross. A member that is declared failed loses its
%% link (`break'), so that sessions look for another way and the time of their resume begins; with
%% SWIM the links themselves stay silent for long. The verdict ends no session. A failed member may
%% only have been cut off or stopped. So every `reconnect_interval_ms' one of the failed members, or
%% of the seeds that are no members, is dialled. The load does not grow with their number, and a
%% partition heals, as in Serf. A node that knows no other node dials all its seeds besides. One
%% that has left is not dialled, also if it is a seed: if it comes back it dials by itself. A seed
%% that is no member is none any more, here, after the command `{forget, Node}'.
%%
%% A link that breaks is evidence: its end is probed through others at once (`weft_swim_core'). The
%% messages of SWIM are control messages of the links, so both find failures for each other.
%%
%% Options: `seeds' ([]), `known' ([]; members that another topology knew),
%% `reconnect_interval_ms' (5000), those of `weft_swim_options' and `weft_wanted_links'. Commands,
%% views and notices are those of `weft_swim_core'; `leave' also drops the links. All nodes of a
%% cluster need the same detector: `{warning, {other_detector, Node}}' is told once.
-module(weft_swim_mesh_core).
-behaviour(weft_core).
-behaviour(weft_topology).

-export([init/2, handle/3, validate/2, partial/2, neighbours/1, seeds/1]).

-record(mesh, {
    swim :: weft_swim_core:state(),
    links :: weft_wanted_links:links(),
    self :: weft_core:node_id(),
    %% Seeds of the configuration (none once this node leaves); these with those found later.
    configured :: [weft_core:node_id()] | none,
    seeds :: [weft_core:node_id()],
    reconnect_ms :: pos_integer(),
    is_warned = false :: boolean(),
    rand :: rand:state(),
    %% Effects of the present event, newest first.
    out = [] :: weft_core:effects()}).

%% @doc See `weft_core'.
-spec init(weft_core:node_id(), weft_core:options()) -> {#mesh{}, weft_core:effects()}.
init(Self, Options) ->
    {Swim, Effects} = weft_swim_core:init(Self, Options#{links => true}),
    Mesh = #mesh{swim = Swim, links = weft_wanted_links:new(Self, Options),
                 self = Self, configured = lists:usort(seeds(Options)) -- [Self],
                 seeds = lists:usort(maps:get(known, Options, []) ++ seeds(Options)) -- [Self],
                 reconnect_ms = maps:get(reconnect_interval_ms, Options, 5000),
                 rand = weft_core:seed(Self, ?MODULE, Options), out = lists:reverse(Effects)},
    finish(reconnect_later(lists:foldl(fun want/2, Mesh, Mesh#mesh.seeds))).

%% @doc See `weft_core'.
-spec handle(weft_core:event(), integer(), #mesh{}) -> {#mesh{}, weft_core:effects()}.
handle(Event, NowMs, Mesh) ->
    finish(on(Event, NowMs, Mesh)).

on({neighbour_up, Node} = Event, NowMs, #mesh{links = Links} = Mesh) ->
    swim(Event, NowMs, Mesh#mesh{links = weft_wanted_links:up(Node, Links)});
on({neighbour_down, Node, _Reason} = Event, NowMs, #mesh{links = Links} = Mesh) ->
    case weft_wanted_links:is_linked(Node, Links) of
        true -> lost(Node, swim(Event, NowMs, Mesh));
        false -> lost(Node, Mesh)
    end;
on({message, _From, Message} = Event, NowMs, Mesh) when element(1, Message) =:= 1,
                                                        tuple_size(Message) =:= 3 ->
    swim(Event, NowMs, Mesh);
on({message, From, {{full_mesh, 1}, _OtherDetector}}, _NowMs, #mesh{is_warned = false} = Mesh) ->
    emit({notice, {warning, {other_detector, From}}}, Mesh#mesh{is_warned = true});
on({message, _From, _NewerVersion}, _NowMs, Mesh) ->
    Mesh;
on({timer, reconnect}, _NowMs, Mesh) ->
    reconnect_later(reconnect(Mesh));
on({timer, {Kind, _Node, _Token} = Timer}, _NowMs, #mesh{links = Links} = Mesh)
  when Kind =:= dial; Kind =:= dial_timeout ->
    links(weft_wanted_links:timer(Timer, Links), Mesh);
on({notice, {seeds, Found}}, _NowMs, Mesh) ->
    found(Found, Mesh);
on({command, _Ref, leave} = Event, NowMs, #mesh{links = Links} = Mesh) ->
    swim(Event, NowMs, Mesh#mesh{links = weft_wanted_links:rest(Links), seeds = [],
                               configured = none});
on({command, Ref, {forget, Node}} = Event, NowMs, #mesh{swim = Swim, seeds = Seeds} = Mesh) ->
    case lists:member(Node, Seeds) andalso weft_swim_core:status(Node, Swim) of
        unknown -> unwant(Node, emit({reply, Ref, ok}, without_seed(Node, Mesh)));
        _ -> swim(Event, NowMs, Mesh)
    end;
on(Event, NowMs, Mesh) ->
    swim(Event, NowMs, Mesh).

without_seed(Node, #mesh{configured = Configured, seeds = Seeds} = Mesh) ->
    Mesh#mesh{configured = lists:delete(Node, Configured), seeds = lists:delete(Node, Seeds)}.

swim(Event, NowMs, #mesh{swim = Swim0} = Mesh) ->
    {Swim, Effects} = weft_swim_core:handle(Event, NowMs, Swim0),
    lists:foldl(fun follow/2, Mesh#mesh{swim = Swim}, Effects).

found(_Found, #mesh{configured = none} = Mesh) ->
    Mesh;
found(Found, #mesh{self = Self, configured = Configured, seeds = Before} = Mesh) ->
    Seeds = lists:delete(Self, lists:usort(Configured ++ Found)),
    lists:foldl(fun want/2, Mesh#mesh{seeds = Seeds}, dialable(Seeds -- Before, Mesh)).

dialable(Seeds, #mesh{swim = Swim}) ->
    [Seed || Seed <- Seeds, case weft_swim_core:status(Seed, Swim) of
                                {_, left} -> false;
                                _ -> true
                            end].

%% Adapts the links to a change of the members.
follow({notice, {member, Node, joined}} = Effect, #mesh{self = Self} = Mesh) when Node > Self ->
    expect(Node, emit(Effect, Mesh));
follow({notice, {member, Node, joined}} = Effect, Mesh) ->
    want(Node, emit(Effect, Mesh));
follow({notice, {member, Node, failed}} = Effect, Mesh) ->
    unwant(Node, emit({break, Node}, emit(Effect, Mesh)));
follow({notice, {member, Node, Gone}} = Effect, Mesh) when Gone =:= left; Gone =:= forgotten ->
    unwant(Node, emit(Effect, Mesh));
follow({reply, _Ref, _Reply} = Effect, #mesh{swim = Swim, links = Links} = Mesh) ->
    case weft_swim_core:has_left(Swim) of
        true -> lists:foldl(fun unwant/2, emit(Effect, Mesh), weft_wanted_links:linked(Links));
        false -> emit(Effect, Mesh)
    end;
follow(Effect, Mesh) ->
    emit(Effect, Mesh).

%% --- links ------------------------------------------------------------------------------------

lost(Node, #mesh{links = Links0} = Mesh) ->
    {Links, Dial} = weft_wanted_links:down(Node, Links0),
    case is_kept(Node, Mesh) of
        true -> links({Links, Dial}, Mesh);
        false -> unwant(Node, Mesh#mesh{links = Links})
    end.

is_kept(Node, #mesh{swim = Swim, seeds = Seeds}) ->
    case weft_swim_core:status(Node, Swim) of
        {_, Status} when Status =:= alive; Status =:= suspect -> true;
        _ -> weft_swim_core:living(Swim) =:= [] andalso lists:member(Node, Seeds)
    end.

reconnect(#mesh{swim = Swim, links = Links, seeds = Seeds0} = Mesh0) ->
    Stale = [Node || Node <- weft_wanted_links:wanted(Links), not is_kept(Node, Mesh0),
                     not weft_wanted_links:is_linked(Node, Links)],
    Mesh = lists:foldl(fun unwant/2, Mesh0, Stale),
    {Seeds, Failed} = {dialable(Seeds0, Mesh), weft_swim_core:failed(Swim)},
    case weft_swim_core:living(Swim) of
        [] -> want_one(Failed -- Seeds, lists:foldl(fun want/2, Mesh, Seeds));
        _ -> want_one(lists:usort(Failed ++ Seeds), Mesh)
    end.

want_one(Nodes, #mesh{links = Links, rand = Rand0} = Mesh) ->
    case [Node || Node <- Nodes, not weft_wanted_links:is_linked(Node, Links)] of
        [] -> Mesh;
        Lost -> {Nth, Rand} = rand:uniform_s(length(Lost), Rand0),
                want(lists:nth(Nth, Lost), Mesh#mesh{rand = Rand})
    end.

%% Over 3/4 to 5/4 of the interval, so that nodes do not dial in step.
reconnect_later(#mesh{reconnect_ms = Ms, rand = Rand0} = Mesh) ->
    {Jitter, Rand} = rand:uniform_s(Rand0),
    emit({after_ms, round(Ms * (0.75 + Jitter / 2)), reconnect}, Mesh#mesh{rand = Rand}).

want(Node, #mesh{links = Links} = Mesh) ->
    links(weft_wanted_links:want(Node, Links), Mesh).

expect(Node, #mesh{links = Links} = Mesh) ->
    links(weft_wanted_links:expect(Node, Links), Mesh).

unwant(Node, #mesh{links = Links} = Mesh) ->
    links(weft_wanted_links:unwant(Node, Links), Mesh).

links({Links, Effects}, #mesh{out = Out} = Mesh) ->
    Mesh#mesh{links = Links, out = lists:reverse(Effects, Out)}.

emit(Effect, #mesh{out = Out} = Mesh) ->
    Mesh#mesh{out = [Effect | Out]}.

finish(#mesh{out = Out} = Mesh) ->
    {Mesh#mesh{out = []}, lists:reverse(Out)}.

%% @doc See `weft_topology'.
-spec neighbours(#mesh{}) -> [weft_core:node_id()].
neighbours(#mesh{links = Links}) ->
    weft_wanted_links:wanted(Links).

%% @doc See `weft_topology'.
-spec seeds(map()) -> [weft_core:node_id()].
seeds(Options) ->
    maps:get(seeds, Options, []).

%% --- options ----------------------------------------------------------------------------------

%% @doc See `weft_topology'. Errors: unknown option, malformed seed, a value out of its range.
-spec validate(weft_core:node_id(), map()) -> ok | {error, iolist()}.
validate(_Self, Options) ->
    Known = [seeds, detector, reconnect_interval_ms | weft_swim_options:keys()],
    weft_topology_rules:first_error(
      [fun() -> weft_topology_rules:known_keys("full_mesh", Options, Known) end,
       fun() -> weft_topology_rules:node_names("seeds of the full mesh",
                                               maps:get(seeds, Options, [])) end,
       fun() -> reconnect_interval(maps:get(reconnect_interval_ms, Options, 5000)) end,
       fun() -> weft_swim_options:check(Options) end]).

reconnect_interval(Ms) when is_integer(Ms), Ms >= 100, Ms =< 86400000 ->
    ok;
reconnect_interval(Ms) ->
    {error, io_lib:format("reconnect_interval_ms is ~0tp: write an integer from 100 to 86400000",
                          [Ms])}.

%% @doc See `weft_topology'. Never partial.
-spec partial(weft_core:node_id(), map()) -> boolean().
partial(_Self, _Options) ->
    false.

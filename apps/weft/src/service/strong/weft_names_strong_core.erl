%% SPDX-License-Identifier: Apache-2.0
%% @doc A strong scope on one node: its replicas of partitions (`weft_names_strong_replica'), its
%% part as an owner and reader (`weft_names_strong_owner'), and the list of voters.
%%
%% Messages between nodes are `{1, {hello, Incarnation, View}}', first on each link, and `{1, [{P,
%% What, Msg}]}', P being the partition and What `home' (the word on the wire for what goes between
%% replicas), `ask' or `answer'.
%% `{1, {lived, Incarnation}}' answers a hello of a node whose clock was set back between two of its
%% starts: a later incarnation of it is known. That former one would be a member in its place. So
%% the node takes a new incarnation, after that one: its names are lost and its replicas empty, as
%% if it had been started again, and it says hello anew. Earlier versions do not answer so.
%% Messages of a node to itself do not leave this module. `{2, [Msg]}' is about names that are taken
%% away from their owner (`weft_names_strong_removal'): `{remove, P, Asker, Name, Token}' goes to a
%% replica, `{give_back, Asker, Name, Token}' from the replica to the owner, and `{given_back,
%% Asker, Token}' back the same way. Nodes of a version without these drop them; then it does not
%% become known in time that the name was removed.
%%
%% A view is `{Number, Voters}'; the greater one is valid, and each node tells it to its neighbours.
%% It says which replicas a partition should have. A wrong view is not dangerous: the members of a
%% partition are what its replicas agreed on, and change one by one.
%%
%% Options: those of `weft_names_strong_options', and `scope'. Commands: those of the owner,
%% `{voters, [node()]}' (a new view), `partitions' (how many) and `info'. Notices: `{gone, Pid,
%% Reason}'. Views: `{name, Name}', which is `{own, Pid, Token, Meta, P, OnLost}' or `{cached,
%% Pid, Token, Meta, UntilMs}', `{lease, P}', which is `{UntilMs}' (an own name is valid as long as
%% its lease), and `voters'.
-module(weft_names_strong_core).
-behaviour(weft_core).

-export([init/2, handle/3]).
-export([table/2, info/1]).

%% Incarnations are microseconds.
-define(FURTHER, 1 bsl 24).
%% So many ticks replicas count between two events at most. It is what the margin of a lease leaves
%% when the rates of the clocks differ by a tenth.
-define(TICKS_MAX, 2).

-record(core, {
    self :: node(),
    incarnation :: non_neg_integer(),
    %% Did it take a new one? Then nodes may have been told the former one in a hello.
    has_new_incarnation = false :: boolean(),
    scope :: term(),
    options :: weft_names_strong_options:options(),
    %% How long this node has run, as its replicas count it, and when that was last counted.
    age_ms = 0 :: non_neg_integer(),
    counted_ms = none :: none | integer(),
    view :: {non_neg_integer(), [node()]},
    %% The replicas of each partition, and the partitions that this node has a replica of.
    places :: #{non_neg_integer() => [node()]},
    mine = [] :: [non_neg_integer()],
    %% Nodes with a link, with the incarnation that they told, and the latest incarnation of each
    %% node that was ever told.
    up :: #{node() => Incarnation :: non_neg_integer()},
    latest :: #{node() => Incarnation :: non_neg_integer()},
    dialled = #{} :: #{node() => Ms :: integer()},
    %% Parts of messages, newest first, for nodes with a link.
    outbox = #{} :: #{node() => [Part :: term()]},
    replicas = #{} :: #{non_neg_integer() => weft_names_strong_replica:replica()},
    owner :: weft_names_strong_owner:owner(),
    rand :: rand:state()}).

-opaque core() :: #core{}.
-export_type([core/0]).

%% @private
-spec init(node(), weft_core:options()) -> {core(), weft_core:effects()}.
init(Self, #{scope := Scope, incarnation := Incarnation} = Given) ->
    Options = #{voters := Voters, view := Number, tick_ms := TickMs} =
        weft_names_strong_options:complete(Given),
    Core = placed({Number, Voters},
                  #core{self = Self, incarnation = Incarnation, scope = Scope, options = Options,
                        view = {0, []}, places = #{},
                        up = #{Self => Incarnation}, latest = #{Self => Incarnation},
                        owner = weft_names_strong_owner:new(),
                        rand = weft_core:seed(Self, strong_names, Given)}),
    {Core, [{view, voters, {Voters}}
            | [{connect, Node} || lists:member(Self, Voters), Node <- Voters, Node =/= Self]]
     ++ [{after_ms, TickMs, tick}]}.

placed({_, Voters} = View, #core{self = Self, options = Options} = Core) ->
    #{partitions := Partitions, replicas := Replicas} = Options,
    Places = [{P, weft_names_strong_placement:replicas(P, Voters, Replicas)}
              || P <- lists:seq(0, Partitions - 1)],
    Core#core{view = View, places = maps:from_list(Places),
              mine = [P || {P, Nodes} <- Places, lists:member(Self, Nodes)]}.

%% @private
-spec handle(weft_core:event(), integer(), core()) -> {core(), weft_core:effects()}.
handle(Event, NowMs, Core0) ->
    {Core, Effects} = event(Event, NowMs, aged(NowMs, Core0)),
    lists:foldr(fun({connect, Node}, {C, Rest}) -> dialled(Node, Rest, NowMs, C);
                   (Effect, {C, Rest}) -> {C, [Effect | Rest]}
                end, {Core, []}, Effects).

%% The clock jumps forward when the host was suspended, and also when its system clock is set. For
%% the owner of a lease it is safe to count too much time. Replicas wait until a lease of another
%% node is over, so for them it is safe to count too little: they have a clock of their own, which
%% does not follow a jump.
aged(NowMs, #core{counted_ms = none} = Core) ->
    Core#core{counted_ms = NowMs};
aged(NowMs, #core{age_ms = AgeMs, counted_ms = CountedMs, options = #{tick_ms := TickMs}} = Core) ->
    PassedMs = min(NowMs - CountedMs, ?TICKS_MAX * TickMs),
    Core#core{age_ms = AgeMs + PassedMs, counted_ms = NowMs}.

%% Does not dial again before an attempt has had time to fail.
dialled(Node, Rest, NowMs, #core{dialled = Dialled, options = #{renew_ms := RenewMs}} = Core) ->
    case Dialled of
        #{Node := Ms} when NowMs - Ms < RenewMs -> {Core, Rest};
        #{} -> {Core#core{dialled = Dialled#{Node => NowMs}}, [{connect, Node} | Rest]}
    end.

event({message, From, {1, {hello, Incarnation, View}}}, NowMs, #core{up = Up} = Core0) ->
    {Core1, Before} = case Up of
                          #{From := Other} when Other =/= Incarnation -> lost(From, NowMs, Core0);
                          #{} -> {Core0, []}
                      end,
    {Core2, Told} = told(From, Incarnation, Core1),
    {Core, Effects} = viewed(View, Core2),
    of_owner(weft_names_strong_owner:up(From, Core#core.owner, owner_env(NowMs, Core)),
              Before ++ Told ++ Effects, NowMs, Core);
event({message, _From, {1, {lived, Later}}}, NowMs, #core{incarnation = Own} = Core)
  when is_integer(Later), Later > Own ->
    new_incarnation(Later, NowMs, Core);
event({message, From, {1, {lived, _Earlier}}}, _NowMs, Core) ->
    {Core, [{send, From, hello(Core)}]};
event({message, From, {1, Parts}}, NowMs, Core) when is_list(Parts) ->
    received(From, Parts, NowMs, Core);
event({message, From, {2, Msgs}}, NowMs, Core) when is_list(Msgs) ->
    received(From, [{removal, Msg} || Msg <- Msgs], NowMs, Core);
event({message, _From, _OfANewerVersion}, _NowMs, Core) ->
    {Core, []};
event({neighbour_up, Node}, _NowMs, Core) ->
    {Core, [{send, Node, hello(Core)}]};
event({neighbour_down, Node, _Reason}, NowMs, Core) ->
    lost(Node, NowMs, Core);
event({notice, {gone, Pid, _Reason}}, NowMs, Core) ->
    of_owner(weft_names_strong_owner:gone(Pid, Core#core.owner, owner_env(NowMs, Core)), [],
              NowMs, Core);
event({notice, _Other}, _NowMs, Core) ->
    {Core, []};
event({command, From, {voters, Voters}}, _NowMs, #core{view = {Number, _}} = Core0) ->
    {Core, Effects} = viewed({Number + 1, Voters}, Core0),
    {Core, Effects ++ [{reply, From, ok}]};
event({command, From, partitions}, _NowMs, #core{places = Places} = Core) ->
    {Core, [{reply, From, map_size(Places)}]};
event({command, From, info}, _NowMs, Core) ->
    {Core, [{reply, From, info(Core)}]};
event({command, From, Command}, NowMs, #core{owner = Owner} = Core) ->
    of_owner(weft_names_strong_owner:command(Command, From, Owner, owner_env(NowMs, Core)), [],
              NowMs, Core);
event({timer, tick}, NowMs, Core) ->
    ticked(NowMs, Core);
event({timer, flush}, _NowMs, #core{outbox = Outbox} = Core) ->
    {Core#core{outbox = #{}},
     lists:append([packets(To, lists:reverse(Parts))
                   || {To, Parts} <- lists:sort(maps:to_list(Outbox))])}.

packets(To, All) ->
    {Removals, Parts} = lists:partition(fun(Part) -> element(1, Part) =:= removal end, All),
    [{send, To, {1, Parts}} || Parts =/= []]
        ++ [{send, To, {2, [Msg || {removal, Msg} <- Removals]}} || Removals =/= []].

received(From, Parts, NowMs, #core{up = Up} = Core) ->
    case Up of
        #{From := _} -> run([{From, Part} || Part <- Parts], [], NowMs, Core);
        #{} -> {Core, []}
    end.

hello(#core{incarnation = Incarnation, view = View}) ->
    {1, {hello, Incarnation, View}}.

lost(Node, NowMs, #core{up = Up, replicas = Replicas, outbox = Outbox} = Core0) ->
    Core1 = Core0#core{up = maps:remove(Node, Up), outbox = maps:remove(Node, Outbox)},
    Core = Core1#core{replicas = maps:map(
        fun(P, Replica) ->
            weft_names_strong_replica:node_down(Node, Replica, env(P, Core1))
        end, Replicas)},
    of_owner(weft_names_strong_owner:down(Node, Core#core.owner, owner_env(NowMs, Core)), [],
              NowMs, Core).

%% A replica of this node may know of an incarnation that the node itself has not heard of.
told(From, Incarnation, #core{up = Up, latest = Latest, replicas = Replicas} = Core) ->
    Newest = lists:max([Incarnation, maps:get(From, Latest, 0)]
                       ++ [Member || Replica <- maps:values(Replicas),
                                     {Node, Member} <- weft_names_strong_replica:members(Replica),
                                     Node =:= From]),
    {Core#core{up = Up#{From => Incarnation}, latest = Latest#{From => Newest}},
     [{send, From, {1, {lived, Newest}}} || Newest > Incarnation]
     ++ [{send, From, hello(Core)} || Core#core.has_new_incarnation, not is_map_key(From, Up)]}.

%% What waits to be sent was said in the incarnation that ends. Others handle the hello as that of a
%% node that was started again. An earlier start may have been told the same, and have ended before
%% the one who tells heard of its new incarnation: so each draws a number.
new_incarnation(Later, NowMs, #core{self = Self, up = Up, latest = Latest} = Core0) ->
    Ended = weft_names_strong_owner:lose_all(Core0#core.owner, owner_env(NowMs, Core0)),
    {Further, Rand} = rand:uniform_s(?FURTHER, Core0#core.rand),
    Incarnation = Later + Further,
    Core1 = Core0#core{incarnation = Incarnation, has_new_incarnation = true, rand = Rand,
                       replicas = #{}, outbox = #{},
                       up = Up#{Self := Incarnation}, latest = Latest#{Self := Incarnation}},
    Hellos = [{send, Node, hello(Core1)} || Node <- lists:sort(maps:keys(Up)), Node =/= Self],
    of_owner(Ended, Hellos, NowMs, Core1).

%% The greater view is valid, here and on all nodes that this one is connected to.
viewed(View, #core{view = Known, up = Up, self = Self} = Core0) when View > Known ->
    Core = placed(View, Core0),
    {_, Voters} = View,
    {Core, [{view, voters, {Voters}}]
     ++ [{send, Node, hello(Core)} || Node <- lists:sort(maps:keys(Up)), Node =/= Self]
     ++ [{connect, Node} || lists:member(Self, Voters), Node <- Voters, Node =/= Self,
                            not is_map_key(Node, Up)]};
viewed(_Older, Core) ->
    {Core, []}.

%% --- what is for whom -------------------------------------------------------------------------

env(P, #core{self = Self, incarnation = Incarnation, up = Up, latest = Latest, age_ms = AgeMs,
             places = Places, options = Options, view = {Number, _}}) ->
    #{now_ms => AgeMs, self => {Self, Incarnation}, up => Up, latest => Latest,
      replicas => map_get(P, Places), founds => Number =:= 1, options => Options}.

owner_env(NowMs, #core{self = Self, incarnation = Incarnation, scope = Scope, up = Up,
                        places = Places, options = Options}) ->
    #{now_ms => NowMs, self => Self, scope => Scope, incarnation => Incarnation, up => Up,
      places => Places, options => Options}.

%% Handles parts of messages, and the messages to this node itself that follow. Messages to other
%% nodes are collected for each node.
run([], Sends, _NowMs, Core) ->
    packed(lists:reverse(Sends), Core);
run([{From, Part} | Rest], Sends, NowMs, Core0) ->
    {Core, Effects} = part(From, Part, NowMs, Core0),
    {Own, Others} = own(Effects, Core),
    run(Rest ++ Own, lists:reverse(Others, Sends), NowMs, Core).

own(Effects, #core{self = Self}) ->
    {Own, Others} = lists:partition(fun({send, To, _}) -> To =:= Self; (_) -> false end, Effects),
    {[{Self, Part} || {send, _, Part} <- Own], Others}.

part(From, {removal, Msg}, NowMs, Core) ->
    removal(From, Msg, NowMs, Core);
part(_From, {P, _What, _Msg}, _NowMs, #core{places = Places} = Core)
  when not is_map_key(P, Places) ->
    {Core, []};
part(From, {P, home, Msg}, _NowMs, #core{up = Up} = Core) ->
    Member = {From, map_get(From, Up)},
    with_replica(P, fun(R, Env) -> weft_names_strong_replica:handle(Member, Msg, R, Env) end,
                 Core);
part(From, {P, ask, Msg}, _NowMs, Core) ->
    with_replica(P, fun(R, Env) -> weft_names_strong_replica:request(From, Msg, R, Env) end,
                 Core);
part(From, {P, answer, Msg}, NowMs, #core{owner = Owner0} = Core) ->
    {Owner, Effects} = weft_names_strong_owner:answer(From, P, Msg, Owner0,
                                                        owner_env(NowMs, Core)),
    {Core#core{owner = Owner}, tagged(Effects)}.

%% As a replica, as the owner, as the replica again, as the node that asked.
removal(_From, {remove, P, Asker, Name, Token}, _NowMs, #core{up = Up} = Core) ->
    Holder = case table(P, Core) of
                none -> none;
                Table -> weft_names_strong_table:owner({Name, Token}, Table)
            end,
    {Core, [{send, Holder, {removal, {give_back, Asker, Name, Token}}} || is_map_key(Holder, Up)]};
removal(Replica, {give_back, Asker, Name, Token}, NowMs, #core{owner = Owner0} = Core) ->
    {Owner, Effects} = weft_names_strong_owner:give_back(Replica, Asker, {Name, Token}, Owner0,
                                                           owner_env(NowMs, Core)),
    {Core#core{owner = Owner}, tagged(Effects)};
removal(_From, {given_back, {Self, _, _} = Asker, Token}, NowMs,
        #core{self = Self, owner = Owner0} = Core) ->
    {Owner, Effects} = weft_names_strong_owner:given_back(Asker, Token, Owner0,
                                                            owner_env(NowMs, Core)),
    {Core#core{owner = Owner}, tagged(Effects)};
removal(_From, {given_back, {Node, _, _}, _Token} = Msg, _NowMs, #core{up = Up} = Core) ->
    {Core, [{send, Node, {removal, Msg}} || is_map_key(Node, Up)]};
removal(_From, _OfANewerVersion, _NowMs, Core) ->
    {Core, []}.

with_replica(P, Fun, Core0) ->
    {Replica0, #core{replicas = Replicas} = Core} = replica(P, Core0),
    {Replica, Out} = Fun(Replica0, env(P, Core)),
    {Core#core{replicas = Replicas#{P => Replica}},
     [{send, Node, {P, what(Msg), Msg}} || {Node, Msg} <- Out]}.

replica(P, #core{replicas = Replicas, rand = Rand0} = Core) ->
    case Replicas of
        #{P := Replica} -> {Replica, Core};
        #{} ->
            {Seed, Rand} = rand:uniform_s(1 bsl 50, Rand0),
            {weft_names_strong_replica:new(rand:seed_s(exsss, Seed), env(P, Core)),
             Core#core{rand = Rand}}
    end.

what(Msg) ->
    case lists:member(element(1, Msg), [wrote, values, renewed, stale, full, not_leader]) of
        true -> answer;
        false -> home
    end.

tagged(Effects) ->
    [case Effect of
         {send, Node, {ask, P, Msg}} -> {send, Node, {P, ask, Msg}};
         _ -> Effect
     end || Effect <- Effects].

of_owner({Owner, Effects}, Before, NowMs, #core{self = Self} = Core) ->
    {Own, Others} = own(tagged(Effects), Core#core{self = Self}),
    {Done, After} = run(Own, lists:reverse(Others), NowMs, Core#core{owner = Owner}),
    {Done, Before ++ After}.

%% Messages to other nodes wait until the events that are already here are handled; the timer comes
%% after these. So under load many parts share a message, and on an idle node nothing is delayed.
packed([], Core) ->
    {Core, []};
packed([{send, To, Part} | Rest], #core{outbox = Outbox} = Core) ->
    Parts = [Part | maps:get(To, Outbox, [])],
    {Done, Effects} = packed(Rest, Core#core{outbox = Outbox#{To => Parts}}),
    {Done, [{after_ms, 0, flush} || map_size(Outbox) =:= 0] ++ Effects};
packed([Effect | Rest], Core0) ->
    {Core, Effects} = packed(Rest, Core0),
    {Core, [Effect | Effects]}.

%% --- time -------------------------------------------------------------------------------------

ticked(NowMs, #core{mine = Mine, options = #{tick_ms := TickMs}} = Core0) ->
    {Core1, Effects} = lists:foldl(
        fun(P, {Core, Acc}) ->
            {Changed, Out} = with_replica(P, fun weft_names_strong_replica:tick/2, Core),
            {Changed, lists:reverse(Out, Acc)}
        end, {Core0, []}, lists:usort(Mine ++ maps:keys(Core0#core.replicas))),
    {Owner, Asked} = weft_names_strong_owner:tick(Core1#core.owner, owner_env(NowMs, Core1)),
    {Own, Others} = own(lists:reverse(Effects, tagged(Asked)), Core1),
    {Core, After} = run(Own, lists:reverse(Others), NowMs, Core1#core{owner = Owner}),
    {Core, After ++ dial(Core) ++ [{after_ms, TickMs, tick}]}.

%% A replica needs links to all nodes that share a partition with it. The members may be others than
%% the voters for some time, and until the members have changed it is they who elect.
dial(#core{self = Self, view = {_, Voters}, up = Up, replicas = Replicas}) ->
    Members = [Node || Replica <- maps:values(Replicas),
                       {Node, _} <- weft_names_strong_replica:members(Replica)],
    Wanted = lists:usort(Members ++ [Node || lists:member(Self, Voters), Node <- Voters]),
    [{connect, Node} || Node <- Wanted, not is_map_key(Node, Up)].

%% --- reading ----------------------------------------------------------------------------------

%% @doc The table of a partition as this node has it, for checkers.
-spec table(non_neg_integer(), core()) -> weft_names_strong_table:table() | none.
table(P, #core{replicas = Replicas}) ->
    case Replicas of
        #{P := Replica} -> weft_names_strong_replica:table(Replica);
        #{} -> none
    end.

%% @doc For people: the view, each partition that this node has a replica of, and figures of the
%% owner.
-spec info(core()) -> map().
info(#core{view = {Number, Voters}, replicas = Replicas, owner = Owner, up = Up} = Core) ->
    #{incarnation => Core#core.incarnation, view => Number, voters => Voters,
      connected => lists:sort(maps:keys(Up)),
      partitions => maps:map(fun(_, R) -> weft_names_strong_replica:info(R) end, Replicas),
      owner => weft_names_strong_owner:info(Owner)}.

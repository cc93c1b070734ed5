%% SPDX-License-Identifier: Apache-2.0
%% @doc Invariants of strong names. At any time: no two nodes believe to own a name, each by its own
%% lease. In the end: the history of each name is linearizable, and its tokens grow; after the
%% healing somebody got each name, or has it; each partition has one leader, all its replicas are
%% members and have the same table; and what a node believes to own is in it.
%%
%% Options: `nodes', `machine' (of `weft_sim_names_core'), `partitions', `replicas_of' (which nodes
%% are to have the replicas of a partition in the end), `crashes' (see `weft_sim_name_history'),
%% `tokens_grow' (false where clocks may be set back), `names' and `free_from_ms' (from then on
%% users must have succeeded in registering each of them or in handing it over, or have it in the
%% end).
-module(weft_sim_names_checker).
-behaviour(weft_sim_checker).

-export([view_changed/5, settled/2, stuck/4, backwards/1]).

%% So many operations before the wrong one are shown.
-define(SHOWN, 30).

%% @doc Looks at all nodes when one of them writes that it owns a name, or that it believes in its
%% lease until a later time: an answer that was late may bring a belief back that had ended.
-spec view_changed(node(), term(), term(), weft_sim_world:world(), map()) ->
          weft_sim_checker:verdict().
view_changed(Node, {name, _} = Key, {own, _, _, _, P, _} = Own, World, #{nodes := Nodes}) ->
    beside(Key, Own, Node, owners(Key, P, Nodes -- [Node], World));
view_changed(Node, {lease, P}, {UntilMs}, World, #{nodes := Nodes, names := Names}) ->
    case UntilMs > weft_sim_world:now_ms(World) of
        true ->
            first([fun() -> beside(Key, Own, Node, owners(Key, P, Nodes -- [Node], World)) end
                   || Name <- Names, Key <- [{name, Name}],
                      {own, _, _, _, Q, _} = Own <- [weft_sim_world:view(Node, Key, World)],
                      Q =:= P]);
        false -> ok
    end;
view_changed(_Node, _Key, _Value, _World, _Options) ->
    ok.

%% Those that believe to own it now, each by its own lease.
owners({name, _} = Key, P, Nodes, World) ->
    NowMs = weft_sim_world:now_ms(World),
    [{Node, Pid, UntilMs} || Node <- Nodes,
                             {own, Pid, _, _, _, _} <- [weft_sim_world:view(Node, Key, World)],
                             {UntilMs} <- [weft_sim_world:view(Node, {lease, P}, World)],
                             UntilMs > NowMs].

beside(_Key, _Own, _Node, []) ->
    ok;
beside({name, Name}, {own, Pid, _, _, _, _}, Node, Others) ->
    {violation, io_lib:format("~0tp: ~0tp of ~s becomes the owner beside ~0tp",
                              [Name, Pid, Node, Others])}.

%% @doc Histories, and the state in the end.
-spec settled(weft_sim_world:world(), map()) -> weft_sim_checker:verdict().
settled(World, #{partitions := Partitions, crashes := Crashes} = Options) ->
    PartitionOf = fun(Name) -> weft_names_strong_placement:partition(Name, Partitions) end,
    Histories = weft_sim_name_history:histories(weft_sim_world:observed(World),
                                                #{crashes => Crashes, partition_of => PartitionOf}),
    first([fun() -> linearizable(Histories) end,
           fun() -> tokens_grow(World, Options) end,
           fun() -> free(Histories, World, Options) end,
           fun() -> first([fun() -> partition(P, World, Options) end
                           || P <- lists:seq(0, Partitions - 1)]) end,
           fun() -> agreed(World, Options) end]).

first([]) -> ok;
first([Check | Rest]) ->
    case Check() of
        ok -> first(Rest);
        Violation -> Violation
    end.

linearizable(Histories) ->
    first([fun() ->
               case weft_sim_linearizability:check(History, weft_sim_name_model, none) of
                   ok -> ok;
                   {error, {Entry, States}} -> {violation, impossible(Name, Entry, States, History)}
               end
           end || {Name, History} <- maps:to_list(Histories)]).

tokens_grow(_World, #{tokens_grow := false}) ->
    ok;
tokens_grow(World, #{crashes := Crashes}) ->
    case backwards(weft_sim_name_history:grants(weft_sim_world:observed(World), Crashes)) of
        [] -> ok;
        [{Earlier, Later} | _] ->
            {violation, io_lib:format("~0tp came after ~0tp: its token must be greater",
                                      [Later, Earlier])}
    end.

%% @doc Pairs of registrations of a name of which the later one has no greater token. One is later
%% if it was asked for when the other had been answered.
-spec backwards([weft_sim_name_history:grant()]) ->
          [{weft_sim_name_history:grant(), weft_sim_name_history:grant()}].
backwards(Grants) ->
    [{Earlier, Later} || {Name, _, ReturnUs, Token} = Earlier <- Grants,
                         {Same, CallUs, _, Next} = Later <- Grants,
                         Same =:= Name, CallUs > ReturnUs, Next =< Token].

free(Histories, World, #{names := Names, free_from_ms := FromMs} = Options) ->
    case stuck(Names, Histories, owned(World, Options), FromMs) of
        [] -> ok;
        Stuck -> {violation, io_lib:format("~0tp: nobody got it after ~b ms, and nobody has it",
                                           [Stuck, FromMs])}
    end.

%% @doc The names that nobody got from a time on, and nobody has in the end. A name need not become
%% free while its owner goes on: he may hand it over for as long as users are busy, and never give
%% it back. So a registration is not the only proof that the replicas do their work.
-spec stuck([Name :: term()], #{Name :: term() => [weft_sim_linearizability:entry()]},
            Owned :: [{Name :: term(), Token :: pos_integer()}], FromMs :: non_neg_integer()) ->
          [Name :: term()].
stuck(Names, Histories, Owned, FromMs) ->
    [Name || Name <- Names, not lists:keymember(Name, 1, Owned),
             last_got_us(maps:get(Name, Histories, [])) < FromMs * 1000].

last_got_us(History) ->
    lists:max([0 | [ReturnUs || {_, ReturnUs, Operation} <- History, is_got(Operation)]]).

is_got({register, _, ok}) -> true;
is_got({update, _, _, ok}) -> true;
is_got(_Operation) -> false.

impossible(Name, {_, Return, _} = Entry, States, History) ->
    Before = [Other || {Call, _, _} = Other <- lists:sort(History), Call < Return],
    [io_lib:format("~0tp is not linearizable: ~0tp, but it was ~0tp; before:",
                   [Name, Entry, States])
     | [io_lib:format("~n  ~0tp", [Other])
        || Other <- lists:nthtail(max(0, length(Before) - ?SHOWN), Before)]].

partition(P, World, #{replicas_of := ReplicasOf} = Options) ->
    Replicas = ReplicasOf(P),
    Infos = [{Replica, map_get(P, map_get(partitions, weft_names_strong_core:info(C)))}
             || Replica <- Replicas, C <- [core(Replica, World, Options)]],
    Leaders = [Replica || {Replica, #{role := leading}} <- Infos],
    Tables = lists:usort([weft_names_strong_core:table(P, core(Replica, World, Options))
                          || Replica <- Replicas]),
    case {Leaders, Tables} of
        {[_], [Table]} when Table =/= none ->
            Members = lists:sort([Node || {Node, _} <- weft_names_strong_table:members(Table)]),
            case Members =:= lists:sort(Replicas) of
                true -> ok;
                false -> {violation, io_lib:format("partition ~b has the members ~0p, not ~0p",
                                                   [P, Members, Replicas])}
            end;
        _ -> {violation, io_lib:format("partition ~b: leaders ~0p, ~b tables, ~0p",
                                       [P, Leaders, length(Tables), Infos])}
    end.

core(Node, World, #{machine := Machine}) ->
    {ok, Users} = weft_sim_world:machine(Node, Machine, World),
    weft_sim_names_core:core(Users).

%% What a node believes to own is what the replicas know, and nothing more.
agreed(World, #{partitions := Partitions, replicas_of := ReplicasOf} = Options) ->
    Known = lists:append([weft_names_strong_table:names(
                            weft_names_strong_core:table(P, core(Replica, World, Options)))
                          || P <- lists:seq(0, Partitions - 1), Replica <- [hd(ReplicasOf(P))]]),
    case {lists:sort(owned(World, Options)), lists:sort(Known)} of
        {Same, Same} -> ok;
        {Believed, Kept} -> {violation, io_lib:format("owners believe ~0tp, replicas know ~0tp",
                                                      [Believed, Kept])}
    end.

owned(World, #{nodes := Nodes}) ->
    [{Name, Token} || Node <- Nodes,
                      {{name, Name}, {own, _, Token, _, _, _}}
                          <- maps:to_list(weft_sim_world:views(Node, World))].

%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps the faults of the links of this node that last, and ends each in its time, whatever
%% becomes of the one who asked for it. One process per node, started by the first fault.
%%
%% If it is killed, its faults end at once (`weft_chaos_healer').
%%
%% Faults may overlap. Of those of one kind on one link the latest that still lasts applies, and the
%% last to end ends it. Kinds and links are independent of each other.
-module(weft_chaos_keeper).
-behaviour(gen_server).

-export([keep/3, heal/1, heal_all/0, faults/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([fault/0]).

-type fault() :: {weft_fault:kind(), node()}.

%% The latest first.
-record(keeper, {kept = [] :: [{reference(), fault(), Arguments :: list()}]}).

%% @doc Begins a fault (a function of `weft_fault', with Arguments after the node) and ends it after
%% ForMs.
-spec keep(fault(), Arguments :: list(), ForMs :: pos_integer()) -> ok | {error, disabled}.
keep(Fault, Arguments, ForMs) ->
    ok = started(),
    gen_server:call(?MODULE, {keep, Fault, Arguments, ForMs}).

%% @doc Ends all faults of the link to a node.
-spec heal(node()) -> ok | {error, disabled}.
heal(Node) ->
    ok = started(),
    gen_server:call(?MODULE, {heal, Node}).

%% @doc Ends all faults of links here, also those that somebody else made.
-spec heal_all() -> ok.
heal_all() ->
    case whereis(?MODULE) of
        undefined -> _ = weft_fault:heal(), ok;
        Keeper -> gen_server:call(Keeper, heal_all)
    end.

%% @doc The faults that are kept here.
-spec faults() -> [fault()].
faults() ->
    case whereis(?MODULE) of
        undefined -> [];
        Keeper -> gen_server:call(Keeper, faults)
    end.

started() ->
    case gen_server:start({local, ?MODULE}, ?MODULE, [], []) of
        {ok, _} -> ok;
        {error, {already_started, _}} -> ok
    end.

%% @private Of no application, as else it would be a process that the monkey may kill.
init([]) ->
    group_leader(whereis(init), self()),
    {ok, #keeper{}}.

%% @private
handle_call({keep, {Kind, Node} = Fault, Arguments, ForMs}, _From, #keeper{kept = Kept} = Keeper) ->
    case apply(weft_fault, Kind, [Node | Arguments]) of
        ok ->
            Timer = erlang:start_timer(ForMs, self(), over),
            {reply, ok, kept([{Timer, Fault, Arguments} | Kept], Keeper)};
        Error ->
            {reply, Error, Keeper}
    end;
handle_call({heal, Node}, _From, #keeper{kept = Kept} = Keeper) ->
    {Ended, Left} = lists:partition(fun({_, {_, Of}, _}) -> Of =:= Node end, Kept),
    forget(Ended),
    {reply, weft_fault:heal(Node), kept(Left, Keeper)};
handle_call(heal_all, _From, #keeper{kept = Kept} = Keeper) ->
    forget(Kept),
    _ = weft_fault:heal(),
    {reply, ok, kept([], Keeper)};
handle_call(faults, _From, Keeper) ->
    {reply, faults(Keeper), Keeper};
handle_call(Request, _From, Keeper) ->
    {reply, weft_stray:call(Request), Keeper}.

faults(#keeper{kept = Kept}) -> lists:usort([Fault || {_, Fault, _} <- Kept]).

kept(Kept, Keeper0) ->
    Keeper = Keeper0#keeper{kept = Kept},
    ok = weft_chaos_healer:kept(faults(Keeper)),
    Keeper.

forget(Faults) ->
    lists:foreach(fun({Timer, _, _}) -> erlang:cancel_timer(Timer) end, Faults).

%% @private
handle_cast(Request, Keeper) ->
    ok = weft_stray:message(Request),
    {noreply, Keeper}.

%% @private
handle_info({timeout, Timer, over}, #keeper{kept = Kept} = Keeper) ->
    case lists:keytake(Timer, 1, Kept) of
        {value, {_, Fault, Arguments}, Left} ->
            over(Fault, Arguments, latest(Fault, Left)),
            {noreply, kept(Left, Keeper)};
        %% Healed while its time was up.
        false ->
            {noreply, Keeper}
    end;
handle_info(Message, Keeper) ->
    ok = weft_stray:message(Message),
    {noreply, Keeper}.

latest(Fault, Kept) ->
    case lists:keyfind(Fault, 2, Kept) of
        {_, _, Arguments} -> {lasts, Arguments};
        false -> none
    end.

over({Kind, Node}, _Arguments, none) ->
    _ = weft_fault:heal(Node, Kind),
    ok;
over(_Fault, Arguments, {lasts, Arguments}) ->
    ok;
over({Kind, Node}, _Arguments, {lasts, Others}) ->
    _ = apply(weft_fault, Kind, [Node | Others]),
    ok.

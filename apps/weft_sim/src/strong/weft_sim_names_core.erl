%% SPDX-License-Identifier: Apache-2.0
%% @doc A node of a strong scope with users: `weft_names_strong_core' and, around it, processes that
%% register, look up and give back names at random, and die.
%%
%% Everything they ask and are told is a notice `{history, ..}', from which `weft_sim_name_history'
%% makes histories. A process is a term `{Node, Incarnation, Number}'; what the core does to it
%% (exit, message) ends it.
%%
%% Options: those of the core, `names' (to choose from), `pause_ms' (the longest pause between two
%% commands; about half of it on average), `timeout_ms' of a command, `until_ms' (then they stop),
%% `users': `random'; `strangers', who also take names away from whoever has them; or `patient': one
%% at each node, who tries to register until that succeeds, gives the name back a little later, and
%% begins again.
%%
%% The notice `{set_forward, Ms}' sets the clock of the core forward.
-module(weft_sim_names_core).
-behaviour(weft_core).

-export([init/2, handle/3]).
-export([core/1]).

%% The clock of the core begins far below 0, as that of an emulator does.
-define(EPOCH_MS, 1000000000).

-record(users, {self :: node(),
                incarnation :: non_neg_integer(),
                core :: weft_names_strong_core:core(),
                options :: map(),
                %% What the clock of the core is ahead of that of the world.
                ahead_ms = -?EPOCH_MS :: integer(),
                next = 1 :: pos_integer(),
                %% Commands under way; processes and what they registered.
                asked = #{} :: #{integer() => term()},
                held = #{} :: #{Pid :: term() => {Name :: term(), Token :: pos_integer()}},
                rand :: rand:state()}).

%% @private
-spec init(node(), weft_core:options()) -> {#users{}, weft_core:effects()}.
init(Self, #{incarnation := Incarnation0} = Options0) ->
    %% Numbers of operations begin at the incarnation, or at as many microseconds after it as it has
    %% lasted.
    Incarnation = Incarnation0 bsl 30,
    Options = Options0#{incarnation := Incarnation},
    {Core, Effects} = weft_names_strong_core:init(Self, Options),
    seen(Effects, [{after_ms, 100, users}],
         #users{self = Self, incarnation = Incarnation, core = Core, options = Options,
                rand = weft_core:seed(Self, users, Options)}, 0).

%% @doc The core inside.
-spec core(#users{}) -> weft_names_strong_core:core().
core(#users{core = Core}) -> Core.

%% @private
-spec handle(weft_core:event(), integer(), #users{}) -> {#users{}, weft_core:effects()}.
handle({timer, users}, NowMs, #users{options = #{until_ms := UntilMs}} = Users)
  when NowMs >= UntilMs ->
    {Users, []};
handle({timer, users}, NowMs, #users{options = #{pause_ms := MaxMs}} = Users0) ->
    {Ms, Users1} = uniform(MaxMs, Users0),
    {Users, Effects} = act(NowMs, Users1),
    {Users, Effects ++ [{after_ms, Ms, users}]};
handle({notice, {set_forward, Ms}}, _NowMs, #users{ahead_ms = AheadMs} = Users) ->
    {Users#users{ahead_ms = AheadMs + Ms}, []};
handle({timer, {gone, Pid}}, NowMs, Users) ->
    inner({notice, {gone, Pid, killed}}, NowMs, [], Users);
handle(Event, NowMs, Users) ->
    inner(Event, NowMs, [], Users).

inner(Event, NowMs, Before, #users{core = Core0, ahead_ms = AheadMs} = Users) ->
    {Core, Effects} = weft_names_strong_core:handle(Event, NowMs + AheadMs, Core0),
    seen(Effects, Before, Users#users{core = Core}, NowMs).

act(NowMs, #users{options = #{users := patient}} = Users) ->
    patient(NowMs, Users);
act(NowMs, #users{held = Held, options = #{names := Names} = Options} = Users0) ->
    Removals = case Options of #{users := strangers} -> [remove, remove]; #{} -> [] end,
    {Kind, Users1} = pick([register, register, register, whereis, whereis, unregister, update, die
                           | Removals], Users0),
    {Name, Users2} = pick(Names, Users1),
    case {Kind, lists:sort(maps:to_list(Held))} of
        {register, _} -> register(Name, NowMs, Users2);
        {whereis, _} -> command({whereis, Name}, NowMs, Users2);
        {remove, _} -> command({remove, Name}, NowMs, Users2);
        {_, []} -> {Users2, []};
        {_, Pairs} ->
            {{Pid, {Own, Token}}, Users} = pick(Pairs, Users2),
            with_own(Kind, Pid, Own, Token, NowMs, Users)
    end.

patient(NowMs, #users{asked = Asked, held = Held, options = #{names := Names}} = Users0)
  when map_size(Asked) =:= 0 ->
    case maps:to_list(Held) of
        [] ->
            {Name, Users} = pick(Names, Users0),
            register(Name, NowMs, Users);
        [{Pid, {Own, Token}} | _] -> with_own(unregister, Pid, Own, Token, NowMs, Users0)
    end;
patient(_NowMs, Users) ->
    {Users, []}.

register(Name, NowMs, #users{self = Self, incarnation = Incarnation, next = Next} = Users) ->
    command({register, Name, {Self, Incarnation, Next}}, NowMs, Users).

with_own(unregister, Pid, Name, Token, NowMs, #users{held = Held} = Users) ->
    command({unregister, Name, Pid, Token}, NowMs, Users#users{held = maps:remove(Pid, Held)});
with_own(update, Pid, Name, Token, NowMs, #users{held = Held} = Users) ->
    #users{self = Self, incarnation = Incarnation, next = Next} = Users,
    command({update, Name, Pid, {Self, Incarnation, Next}, Token}, NowMs,
            Users#users{held = maps:remove(Pid, Held)});
with_own(die, Pid, Name, Token, NowMs, #users{held = Held, next = Id} = Users) ->
    %% The core gives the name back when it hears of the end; nobody is told when that is done.
    inner({notice, {gone, Pid, normal}}, NowMs,
          [{notice, {history, {call, Id, {unregister, Name, Pid, Token}}}}],
          Users#users{held = maps:remove(Pid, Held), next = Id + 1}).

command(Command, NowMs, #users{next = Id, asked = Asked,
                               options = #{timeout_ms := TimeoutMs}} = Users) ->
    Inner = case Command of
                {register, Name, Pid} -> {register, Name, Pid, none, tell, TimeoutMs};
                {whereis, Name} -> {whereis, Name, TimeoutMs};
                {remove, Name} -> {remove, Name, TimeoutMs};
                {unregister, Name, _Pid, Token} -> {unregister, Name, Token, TimeoutMs};
                {update, Name, _Pid, New, Token} ->
                    {update, Name, Token, New, none, same, TimeoutMs}
            end,
    inner({command, {users, Id}, Inner}, NowMs, [{notice, {history, {call, Id, Command}}}],
          Users#users{next = Id + 1, asked = Asked#{Id => Command}}).

%% What the core says to processes and callers stays here.
seen([], Before, Users, _NowMs) ->
    {Users, Before};
seen([{reply, {users, Id}, Reply} | Rest], Before, #users{asked = Asked0} = Users0, NowMs) ->
    {Command, Asked} = maps:take(Id, Asked0),
    Return = {notice, {history, {return, Id, Reply}}},
    {Users, More} = answered(Command, Reply, NowMs, Users0#users{asked = Asked}),
    seen(Rest, Before ++ [Return | More], Users, NowMs);
seen([Effect | Rest], Before, Users0, NowMs) ->
    {Users, More} = seen(Effect, Users0),
    seen(Rest, Before ++ More, Users, NowMs).

answered({register, Name, Pid}, {ok, Token}, _NowMs, #users{held = Held} = Users) ->
    {Users#users{held = Held#{Pid => {Name, Token}}}, []};
answered({update, Name, _Pid, New, _}, {ok, Token}, _NowMs, #users{held = Held} = Users) ->
    {Users#users{held = Held#{New => {Name, Token}}}, []};
answered({update, Name, Pid, _New, Token}, {error, no_quorum}, NowMs, Users) ->
    command({unregister, Name, Pid, Token}, NowMs, Users);
answered({unregister, _, _, _} = Command, {error, no_quorum}, NowMs, Users) ->
    command(Command, NowMs, Users);
answered(_Command, _Reply, _NowMs, Users) ->
    {Users, []}.

seen({tell, Pid, {weft_names_lost, _, Name, _}}, #users{held = Held} = Users) ->
    {Users#users{held = maps:remove(Pid, Held)},
     [{notice, {history, {lost, Name, Pid}}}, {after_ms, 0, {gone, Pid}}]};
seen({Watching, _Pid}, Users) when Watching =:= watch; Watching =:= unwatch ->
    {Users, []};
seen({view, {lease, P} = Key, Until0}, #users{ahead_ms = AheadMs} = Users) ->
    Until = case Until0 of {Ms} -> {Ms - AheadMs}; delete -> delete end,
    {Users, [{notice, {history, {lease, P, Until}}}, {view, Key, Until}]};
seen(Effect, Users) ->
    {Users, [Effect]}.

pick(List, Users0) ->
    {N, Users} = uniform(length(List), Users0),
    {lists:nth(N, List), Users}.

uniform(Max, #users{rand = Rand0} = Users) ->
    {N, Rand} = rand:uniform_s(Max, Rand0),
    {N, Users#users{rand = Rand}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A colony: ants that make schedules, and the pheromone that leads them to what was good.
%%
%% {round, Number, Best, Parent} comes from the parent: the best schedule of all colonies is taken
%% over if it is better than the own, and reinforced; then the ants go out so many times, and what
%% is best after that goes to the parent (`weft_aco_report'). The same round again is answered with
%% the same report. {stop, Parent} ends it.
%%
%% Ants are processes, and a new one takes the place of one that dies. If names are used the colony
%% outlives its parent for some time, and waits for the next one.
-module(weft_aco_colony).

-export([start/3, init/3, ant/4]).

-record(state, {process :: weft_aco_tree:process(), settings :: weft_aco:settings(),
                parent :: weft_aco_parent:parent(), pheromone :: ets:tid(),
                ants :: #{pid() => Number :: pos_integer()}, born = 0 :: non_neg_integer(),
                round = 0 :: non_neg_integer(), best = none :: weft_aco:best()}).

%% @doc Starts a colony on its node; as a linked process where there are no names.
-spec start(weft_aco_tree:process(), weft_aco:settings(), Parent :: pid()) ->
          {pid(), Monitor :: reference()}.
start(Process, Settings, Parent) ->
    weft_aco_parent:start(Process, ?MODULE, [Process, Settings, Parent], Settings).

%% @private
-spec init(weft_aco_tree:process(), weft_aco:settings(), Parent :: pid()) -> ok.
init(Process, #{names := Names, run := Run, ants := Ants} = Settings, Parent) ->
    process_flag(trap_exit, true),
    ok = weft_aco_names:register(Names, Run, Process),
    State = #state{process = Process, settings = Settings, pheromone = pheromone(Settings),
                   parent = weft_aco_parent:new(Parent), ants = #{}},
    loop(lists:foldl(fun start_ant/2, State, lists:seq(1, Ants))).

pheromone(#{problem := #{jobs := Jobs} = Problem, ants := Ants}) ->
    Table = ets:new(weft_aco_pheromone, [{read_concurrency, true}]),
    First = case weft_aco_problem:cost(weft_aco_problem:greedy(edd, Problem), Problem) of
                0 -> 1.0;
                Cost -> 1 / (Ants * Cost)
            end,
    Row = erlang:make_tuple(Jobs, First),
    true = ets:insert(Table, [{Position, Row} || Position <- lists:seq(1, Jobs)]),
    Table.

loop(#state{round = Done, best = Best, parent = Parent} = State) ->
    receive
        {round, Done, _Best, From} when Done > 0 ->
            loop(report(Best, adopt(From, State)));
        {round, Number, Common, From} ->
            loop(round(Number, Common, adopt(From, State)));
        {stop, _Parent} ->
            ok;
        {'EXIT', Ant, _Why} when is_map_key(Ant, State#state.ants) ->
            loop(replace_ant(Ant, State));
        Message ->
            case weft_aco_parent:lost(Message, Parent) of
                {ok, NewParent} -> loop(State#state{parent = NewParent});
                stop -> ok
            end
    after weft_aco_parent:patience_ms(Parent) ->
        ok
    end.

adopt(From, #state{parent = Parent} = State) ->
    State#state{parent = weft_aco_parent:adopt(From, Parent)}.

%% ---- a round ----

round(Number, Common, #state{settings = #{iterations := Iterations}, best = Own} = State) ->
    Better = weft_aco_report:better(Common, Own),
    reinforce(Common, State),
    Done = #state{best = Best} = iterate(Iterations, State#state{best = Better}),
    report(Best, Done#state{round = Number}).

report(Best, #state{process = #{path := Path}, settings = #{repeat := Repeat},
                    parent = Parent, round = Round} = State) ->
    Report = weft_aco_report:new(Path, Round, Best),
    lists:foreach(fun(_) -> weft_aco_parent:pid(Parent) ! Report end, lists:seq(1, Repeat)),
    State.

iterate(0, State) ->
    State;
iterate(Left, #state{ants = Ants} = State) ->
    lists:foreach(fun(Ant) -> Ant ! {go, self()} end, maps:keys(Ants)),
    {Found, After} = gather(maps:keys(Ants), none, State),
    Best = weft_aco_report:better(Found, After#state.best),
    reinforce(Best, After),
    iterate(Left - 1, After#state{best = Best}).

gather([], Best, State) ->
    {Best, State};
gather([Ant | Rest], Best, State) ->
    receive
        {found, Ant, Found} ->
            gather(Rest, weft_aco_report:better(Found, Best), State);
        {'EXIT', Ant, _Why} ->
            #state{ants = Ants} = After = replace_ant(Ant, State),
            [New] = maps:keys(Ants) -- maps:keys(State#state.ants),
            New ! {go, self()},
            gather([New | Rest], Best, After)
    end.

%% Evaporation everywhere, and more where the best one has its jobs.
reinforce(none, _State) ->
    ok;
reinforce({Cost, Schedule}, #state{pheromone = Table, settings = #{rho := Rho}}) ->
    Jobs = length(Schedule),
    More = Rho / max(Cost, 1),
    true = ets:insert(Table, [{Position, reinforced(ets:lookup_element(Table, Position, 2), Job,
                                                    Rho, More)}
                              || {Position, Job} <- lists:zip(lists:seq(1, Jobs), Schedule)]),
    ok.

reinforced(Row, Job, Rho, More) ->
    Less = list_to_tuple([Pheromone * (1 - Rho) || Pheromone <- tuple_to_list(Row)]),
    setelement(Job, Less, element(Job, Less) + More).

%% ---- ants ----

start_ant(Number, #state{process = #{number := Colony}, settings = Settings, pheromone = Table,
                         ants = Ants, born = Born} = State) ->
    Seed = case Settings of
               #{seed := cyclic} -> cyclic;
               #{seed := Given} -> {Given, Colony, Born}
           end,
    Ant = spawn_link(?MODULE, ant, [self(), Settings, Table, weft_aco_random:new(Seed)]),
    State#state{ants = Ants#{Ant => Number}, born = Born + 1}.

replace_ant(Ant, #state{ants = Ants} = State) ->
    {Number, Others} = maps:take(Ant, Ants),
    start_ant(Number, State#state{ants = Others}).

%% @private
-spec ant(Colony :: pid(), weft_aco:settings(), ets:tid(), weft_aco_random:random()) -> no_return().
ant(Colony, #{problem := Problem} = Settings, Table, Random) ->
    receive
        {go, Colony} ->
            Rows = fun(Position) -> row(Position, Table) end,
            {Schedule, Next} = weft_aco_ant:schedule(Problem, Rows, Settings,
                                                     weft_aco_random:generation(Random)),
            Colony ! {found, self(), {weft_aco_problem:cost(Schedule, Problem), Schedule}},
            ant(Colony, Settings, Table, Next)
    end.

%% The table goes with the colony, and may do so a moment before its ants.
row(Position, Table) ->
    try
        ets:lookup_element(Table, Position, 2)
    catch
        error:badarg -> exit(normal)
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A master or submaster: hands rounds down to its children and the best of their reports up.
%%
%% {round, Number, Best, Parent} comes from the parent, the report (`weft_aco_report') goes to it
%% when all children have reported. The same round again, from a new parent, is answered with the
%% same report, if there is one yet. {stop, Parent} ends it and all below.
-module(weft_aco_submaster).

-export([start/4, init/4]).

-record(state, {process :: weft_aco_tree:process(), parent :: weft_aco_parent:parent(),
                children :: weft_aco_children:children(), round = 0 :: non_neg_integer(),
                %% That of the round, once it is done.
                report = none :: none | weft_aco_report:report()}).

%% @doc Starts it on its node. `found': in the place of another one, whose children are there.
-spec start(weft_aco_tree:process(), weft_aco:settings(), Parent :: pid(), started | found) ->
          {pid(), Monitor :: reference()}.
start(Process, Settings, Parent, How) ->
    weft_aco_parent:start(Process, ?MODULE, [Process, Settings, Parent, How], Settings).

%% @private
-spec init(weft_aco_tree:process(), weft_aco:settings(), Parent :: pid(), started | found) -> ok.
init(#{children := Processes} = Process, #{names := Names, run := Run} = Settings, Parent, How) ->
    ok = weft_aco_names:register(Names, Run, Process),
    loop(#state{process = Process, parent = weft_aco_parent:new(Parent),
                children = weft_aco_children:new(Processes, Settings, How)}).

loop(#state{parent = Parent, children = Children, round = Round, report = Report} = State) ->
    receive
        {round, Round, _Best, From} when Round > 0 ->
            Report =:= none orelse (From ! Report),
            loop(State#state{parent = weft_aco_parent:adopt(From, Parent)});
        {round, Number, Best, From} ->
            Begun = State#state{parent = weft_aco_parent:adopt(From, Parent), round = Number,
                                report = none},
            next(weft_aco_children:round(Number, Best, Children), none, Begun);
        {stop, _Parent} ->
            weft_aco_children:stop(Children);
        Message ->
            next(weft_aco_children:handle(Message, Children), Message, State)
    after weft_aco_parent:patience_ms(Parent) ->
        weft_aco_children:stop(Children)
    end.

next({more, Children}, _Message, State) ->
    loop(State#state{children = Children});
next({done, Best, Counts, Children}, _Message, State) ->
    #state{process = #{path := Path}, round = Round, parent = Parent} = State,
    Report = weft_aco_report:new(Path, Round, Best, Counts),
    weft_aco_parent:pid(Parent) ! Report,
    loop(State#state{children = Children, report = Report});
next({other, Children}, Message, #state{parent = Parent} = State) ->
    case weft_aco_parent:lost(Message, Parent) of
        {ok, NewParent} -> loop(State#state{parent = NewParent});
        stop -> weft_aco_children:stop(Children)
    end.

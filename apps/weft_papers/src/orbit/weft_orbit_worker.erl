%% SPDX-License-Identifier: Apache-2.0
%% @doc A worker of an orbit: owns a part of the table. A vertex that it sees for the first time is
%% entered, and its images are sent to their owners, each with a part of the credit that the worker
%% holds. What is left of that goes back to `Home' when there is nothing to do.
%%
%% Messages: {routes, Routes} comes first and is answered with {ready, Self}; then {vertex, X, Slot,
%% CreditPart}; {report, From} is answered with {report, Self, Report} and ends the worker.
-module(weft_orbit_worker).

-export([start/3, init/2]).
-export_type([report/0]).

%% Sum is that of the vertices, for comparisons.
-type report() :: #{size := non_neg_integer(), sum := non_neg_integer(),
                    received := non_neg_integer(), returned := non_neg_integer(),
                    sent := non_neg_integer(), deepest := non_neg_integer(),
                    used_slots := non_neg_integer(), fullest_slot := non_neg_integer()}.

-record(state, {plan :: weft_orbit_plan:plan(), home :: pid(), routes :: weft_orbit_routes:routes(),
                table = #{} :: #{Slot :: non_neg_integer() => [non_neg_integer()]},
                credit = weft_orbit_credit:zero() :: weft_orbit_credit:credit(),
                received = 0, returned = 0, sent = 0, deepest = 0}).

%% @doc Starts a worker on a node, linked to the caller. Credit goes back to Home.
-spec start(node(), weft_orbit_plan:plan(), Home :: pid()) -> pid().
start(Node, Plan, Home) ->
    weft_bench_program:spawn_link(Node, ?MODULE, init, [Plan, Home]).

%% @private
-spec init(weft_orbit_plan:plan(), Home :: pid()) -> ok.
init(Plan, Home) ->
    receive
        {routes, Routes} ->
            ok = weft_orbit_routes:open(Routes),
            Home ! {ready, self()},
            loop(#state{plan = Plan, home = Home, routes = Routes})
    end.

loop(#state{plan = #{idle_ms := IdleMs}, credit = Credit, home = Home} = State) ->
    receive
        {vertex, X, Slot, Part} ->
            loop(vertex(X, Slot, State#state{credit = weft_orbit_credit:add(Part, Credit),
                                             received = State#state.received + 1,
                                             deepest = max(Part, State#state.deepest)}));
        {report, From} ->
            From ! {report, self(), report(State)},
            ok
    after case Credit of [] -> infinity; _ -> IdleMs end ->
        Home ! {credit, Credit},
        loop(State#state{credit = weft_orbit_credit:zero(),
                         returned = State#state.returned + 1})
    end.

vertex(X, Slot, #state{plan = Plan, table = Table} = State) ->
    In = maps:get(Slot, Table, []),
    case lists:member(X, In) of
        true -> State;
        false ->
            #{generators := Generators, space := Space} = Plan,
            lists:foldl(fun send/2, State#state{table = Table#{Slot => [X | In]}},
                        weft_orbit_generators:images(Generators, X, Space))
    end.

send(X, #state{plan = Plan, routes = Routes, credit = Credit, sent = Sent} = State) ->
    Slot = weft_orbit_plan:slot(X, Plan),
    {Part, Rest} = weft_orbit_credit:take(Credit),
    weft_orbit_routes:next(weft_orbit_plan:owner(Slot, Plan), Routes) ! {vertex, X, Slot, Part},
    State#state{credit = Rest, sent = Sent + 1}.

report(#state{table = Table, received = Received, returned = Returned, sent = Sent,
              deepest = Deepest}) ->
    Slots = maps:values(Table),
    #{size => lists:sum([length(Slot) || Slot <- Slots]),
      sum => lists:sum([lists:sum(Slot) || Slot <- Slots]), received => Received,
      returned => Returned, sent => Sent, deepest => Deepest, used_slots => length(Slots),
      fullest_slot => lists:max([0 | [length(Slot) || Slot <- Slots]])}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The queue of events against a sorted list.
-module(weft_sim_queue_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

events_come_in_order_of_time_and_then_of_creation_test_() ->
    {timeout, 600, ?_assert(proper:quickcheck(prop_order(), [{numtests, 500}, {to_file, user}]))}.

%% Each step puts something in some microseconds from now, or takes out what happens up to then.
prop_order() ->
    ?FORALL(Steps, list({oneof([in, in, out]), oneof([integer(0, 50), integer(0, 100000)])}),
            begin
                {_, _, _, Taken, Expected} =
                    lists:foldl(fun step/2, {0, weft_sim_queue:new(), [], [], []}, Steps),
                Taken =:= Expected
            end).

step({in, InUs}, {NowUs, Queue, Model, Taken, Expected}) ->
    Number = length(Model) + length(Expected),
    {NowUs, weft_sim_queue:in(NowUs + InUs, Number, Queue),
     lists:keysort(1, Model ++ [{NowUs + InUs, Number}]), Taken, Expected};
step({out, InUs}, {NowUs, Queue0, Model, Taken, Expected}) ->
    UntilUs = NowUs + InUs,
    {Events, Queue} = all_until(UntilUs, Queue0),
    {Due, Later} = lists:partition(fun({AtUs, _}) -> AtUs =< UntilUs end, Model),
    {UntilUs, Queue, Later, Taken ++ Events, Expected ++ Due}.

all_until(UntilUs, Queue0) ->
    case weft_sim_queue:out(UntilUs, Queue0) of
        {AtUs, Event, Queue1} ->
            {Events, Queue} = all_until(UntilUs, Queue1),
            {[{AtUs, Event} | Events], Queue};
        none -> {[], Queue0}
    end.

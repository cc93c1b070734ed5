%% SPDX-License-Identifier: Apache-2.0
%% @doc Attempts of an acknowledged delivery: their number, their end, and errors in the options.
-module(weft_delivery_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(D, weft_delivery_core).

the_end_always_comes_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_ends(), [{numtests, 500}, quiet]))}.

%% Whatever is answered and whatever times out, there are at most 1 + retries attempts, and the
%% error says how many there were.
prop_ends() ->
    Answer = oneof([timeout, noproc, nodedown, dropped, overloaded, timeout]),
    ?FORALL({Retries, Target, Answers}, {range(0, 5), oneof([pid, name]), vector(20, Answer)},
            begin
                {ok, 10, Delivery} = ?D:new(Target, #{retries => Retries, timeout_ms => 10}),
                {error, {not_delivered, _, Attempts}} = play(Answers, Delivery),
                Attempts =< Retries + 1 andalso
                    (Attempts =:= Retries + 1 orelse Target =:= pid)
            end).

play([timeout | Answers], Delivery) -> next(?D:timeout(Delivery), Answers);
play([Answer | Answers], Delivery) -> next(?D:answer(Answer, Delivery), Answers).

next({Again, 10, Delivery}, Answers) when Again =:= again; Again =:= unless_it_waits ->
    play(Answers, Delivery);
next({wait, 10, Delivery}, Answers) -> next(?D:timeout(Delivery), Answers);
next(End, _Answers) -> End.

verdicts_test() ->
    {ok, 5000, Pid} = ?D:new(pid, true),
    {ok, 700, Name} = ?D:new(name, #{retries => 1, timeout_ms => 700}),
    ?assertEqual(ok, ?D:answer(ok, Pid)),
    ?assertEqual({error, {not_delivered, noproc, 1}}, ?D:answer(noproc, Pid)),
    ?assertEqual({error, {not_delivered, no_channels, 1}}, ?D:answer(no_channels, Name)),
    {wait, 700, Waiting} = ?D:answer(noproc, Name),
    {again, 700, Second} = ?D:timeout(Waiting),
    ?assertMatch({unless_it_waits, 700, _}, ?D:timeout(Name)),
    ?assertEqual({error, {not_delivered, noproc, 2}}, ?D:answer(noproc, Second)),
    ?assertEqual({error, {not_delivered, timeout, 2}}, ?D:timeout(Second)),
    ?assertEqual(1400, ?D:lifetime_ms(Name)).

bad_options_are_named_test_() ->
    [?_assertNotEqual(nomatch, string:find(text(?D:new(pid, Options)), Part))
     || {Options, Part} <- [{#{retry => 1}, "unknown option retry"}, {#{retries => -1}, "-1"},
                            {#{timeout_ms => 0}, "milliseconds"}, {yes, "not yes"},
                            {#{retries => 100}, "more than 60000 ms"}]].

text({error, Text}) -> lists:flatten(Text).

%% SPDX-License-Identifier: Apache-2.0
%% @doc That other code goes on with the state of the sampler. What it does is in
%% `weft_ops_agents_SUITE'.
-module(weft_ops_sampler_tests).

-include_lib("eunit/include/eunit.hrl").

-define(PERIOD_MS, 3600000).

%% The state that the version before has.
code_that_is_loaded_goes_on_test() ->
    Before = {sampler, ?PERIOD_MS, 0, none, 0, none, none, 0, [], #{}, #{}, #{}, #{}},
    {ok, Sampler} = weft_ops_sampler:code_change(before, Before, []),
    {ok, New} = weft_ops_sampler:init(?PERIOD_MS),
    ?assertEqual(tuple_size(New), tuple_size(Sampler)),
    ?assertEqual({reply, {ok, none}, Sampler},
                 weft_ops_sampler:handle_call(last, from, Sampler)),
    ?assertEqual({ok, Sampler}, weft_ops_sampler:code_change(now, Sampler, [])).

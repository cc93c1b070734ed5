%% SPDX-License-Identifier: Apache-2.0
-module(weft_counters_tests).

-include_lib("eunit/include/eunit.hrl").

%% As on a node without a carrier.
nothing_is_counted_before_it_begins_test_() ->
    {setup, fun() -> persistent_term:erase(weft_counters) end, fun(_) -> ok end,
     [?_assertEqual(ok, weft_counters:add(resumes)),
      ?_assertEqual(ok, weft_counters:add(packets_in, 1, bytes_in, 10)),
      ?_assertEqual([0], lists:usort(maps:values(weft_counters:read())))]}.

each_is_counted_by_itself_test_() ->
    {setup, fun weft_counters:init/0, fun(_) -> persistent_term:erase(weft_counters) end,
     fun(ok) ->
         [{atom_to_list(Name),
           fun() ->
               Before = weft_counters:read(),
               weft_counters:add(Name, 7),
               ?assertEqual(Before#{Name := map_get(Name, Before) + 7}, weft_counters:read())
           end} || Name <- weft_counters:names()]
     end}.

%% The carrier is started again, or its code is loaded again.
to_begin_twice_loses_nothing_test_() ->
    {setup, fun weft_counters:init/0, fun(_) -> persistent_term:erase(weft_counters) end,
     fun() ->
         weft_counters:add(packets_out, 1, bytes_out, 100),
         ok = weft_counters:init(),
         ?assertMatch(#{packets_out := 1, bytes_out := 100}, weft_counters:read())
     end}.

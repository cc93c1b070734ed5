%% SPDX-License-Identifier: Apache-2.0
%% @doc Who is never suspended: processes that said so, while they live, and some of the kernel's.
-module(weft_never_stopped_tests).

-include_lib("eunit/include/eunit.hrl").

who_has_entered_is_contained_test() ->
    with_table(fun() ->
                       ?assertNot(weft_never_stopped:contains(self())),
                       ok = weft_never_stopped:enter(),
                       ?assert(weft_never_stopped:contains(self()))
               end).

the_next_to_enter_removes_the_dead_test() ->
    with_table(fun() ->
                       {Dead, Monitor} = spawn_monitor(fun weft_never_stopped:enter/0),
                       receive {'DOWN', Monitor, process, Dead, normal} -> ok end,
                       ok = weft_never_stopped:enter(),
                       ?assertNot(weft_never_stopped:contains(Dead))
               end).

the_kernels_own_are_contained_test() ->
    with_table(fun() ->
                       ?assert(weft_never_stopped:contains(whereis(global_name_server)))
               end).

without_the_carrier_nobody_needs_to_enter_test() ->
    ?assertEqual(undefined, ets:whereis(weft_never_stopped)),
    ?assertEqual(ok, weft_never_stopped:enter()).

with_table(Test) ->
    ok = weft_never_stopped:new(),
    try Test() after ets:delete(weft_never_stopped) end.

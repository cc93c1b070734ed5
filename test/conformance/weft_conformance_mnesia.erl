%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: a mnesia table in the memory of two nodes. Mnesia wants visible nodes.
-module(weft_conformance_mnesia).

-include("weft_conformance.hrl").

-export([mnesia_table_on_two_nodes/1, mnesia_transactions_from_both_sides/1,
         mnesia_goes_on_after_the_loss_of_a_node/1]).
-export([needs/0]).

-define(WAIT_MS, 30_000).

needs() ->
    Own = #{own => true, visible => true},
    #{mnesia_table_on_two_nodes => Own#{whole => true},
      mnesia_transactions_from_both_sides => Own#{whole => true},
      mnesia_goes_on_after_the_loss_of_a_node => Own}.

mnesia_table_on_two_nodes(#{a := A, b := B}) ->
    ok = create_table(A, B),
    ok = mnesia:dirty_write({conformance, key, <<"value">>}),
    ok = weft_expect:until(fun() ->
        erpc:call(B, mnesia, dirty_read, [conformance, key]) =:= [{conformance, key, <<"value">>}]
    end),
    {atomic, ok} = erpc:call(B, fun() ->
        mnesia:transaction(fun() -> mnesia:write({conformance, other, rand:bytes(100_000)}) end)
    end),
    ok = weft_expect:until(fun() ->
        case mnesia:dirty_read(conformance, other) of
            [{conformance, other, Bytes}] -> byte_size(Bytes) =:= 100_000;
            [] -> false
        end
    end),
    stop(A, B).

mnesia_transactions_from_both_sides(#{a := A, b := B}) ->
    ok = create_table(A, B),
    ok = mnesia:dirty_write({conformance, counter, 0}),
    Increment = fun() ->
                        [{conformance, counter, N}] = mnesia:wread({conformance, counter}),
                        mnesia:write({conformance, counter, N + 1})
                end,
    Work = fun() -> [{atomic, ok} = mnesia:transaction(Increment) || _ <- lists:seq(1, 25)] end,
    Workers = [spawn_monitor(Node, Work) || Node <- [A, B, A, B]],
    [?expect({'DOWN', Monitor, process, Pid, normal}) || {Pid, Monitor} <- Workers],
    {atomic, [{conformance, counter, 100}]} =
        mnesia:transaction(fun() -> mnesia:read({conformance, counter}) end),
    %% A transaction does not wait until the other node has written it.
    ok = weft_expect:until(fun() ->
        erpc:call(B, mnesia, dirty_read, [conformance, counter]) =:= [{conformance, counter, 100}]
    end),
    stop(A, B).

mnesia_goes_on_after_the_loss_of_a_node(#{a := A, b := B}) ->
    ok = create_table(A, B),
    {atomic, ok} = mnesia:transaction(fun() -> mnesia:write({conformance, key, before}) end),
    {ok, _} = mnesia:subscribe(system),
    erpc:cast(B, erlang, halt, []),
    ?expect({mnesia_system_event, {mnesia_down, B}}),
    {atomic, ok} = mnesia:transaction(fun() -> mnesia:write({conformance, key, 'after'}) end),
    [{conformance, key, 'after'}] = mnesia:dirty_read(conformance, key),
    [A] = mnesia:system_info(running_db_nodes).

create_table(A, B) ->
    [ok = erpc:call(Node, mnesia, start, []) || Node <- [A, B]],
    {ok, [B]} = mnesia:change_config(extra_db_nodes, [B]),
    {atomic, ok} = mnesia:create_table(conformance, [{ram_copies, [A, B]}]),
    [ok = erpc:call(Node, mnesia, wait_for_tables, [[conformance], ?WAIT_MS]) || Node <- [A, B]],
    ok.

%% What it had in memory is forgotten.
stop(A, B) ->
    [stopped = erpc:call(Node, mnesia, stop, []) || Node <- [A, B]],
    ok.

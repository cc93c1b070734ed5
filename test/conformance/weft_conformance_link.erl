%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: links and exit signals.
-module(weft_conformance_link).

-include("weft_conformance.hrl").

-export([exit_reason_comes_over_a_link/1, normal_exit_comes_as_a_message_when_trapped/1,
         normal_exit_leaves_an_untrapping_process_alive/1, exit_ends_an_untrapping_process/1,
         killed_comes_over_a_link_of_a_killed_process/1, exit_travels_along_a_chain_of_links/1,
         unlink_ends_the_link/1, unlink_by_the_far_side_ends_the_link/1,
         no_exit_message_is_left_after_unlink_and_flush/1, link_to_a_dead_process_gives_noproc/1,
         link_to_a_dead_process_ends_an_untrapping_process/1, linking_twice_makes_one_link/1,
         links_from_both_sides_are_one_link/1, link_after_unlink_works_again/1,
         linking_and_unlinking_in_turns_ends_in_the_last_state/1, links_are_seen_by_both_sides/1,
         exit_signal_with_a_term/1, exit_signal_with_a_large_term/1,
         large_exit_reason_comes_over_a_link/1, exit_signal_normal_is_ignored/1,
         exit_signal_normal_comes_as_a_message_when_trapped/1,
         exit_signal_kill_cannot_be_trapped/1, exit_signal_killed_can_be_trapped/1,
         exit_signal_to_a_dead_process_does_nothing/1, error_exit_reason_has_the_far_stack/1,
         a_thousand_links_to_one_process/1, seq_trace_token_travels_with_an_exit_signal/1]).

-define(LARGE_BYTES, 1_000_000).
-define(TURNS, 500).
-define(MANY, 1_000).

exit_reason_comes_over_a_link(#{b := B}) ->
    process_flag(trap_exit, true),
    [begin
         Far = weft_puppet:start_link(B),
         weft_puppet:tell(Far, fun() -> exit(Reason) end),
         ?expect({'EXIT', Far, Reason})
     end || Reason <- [boom, shutdown, {shutdown, x}, {a, [b, #{c => <<"d">>}]}, self()]].

normal_exit_comes_as_a_message_when_trapped(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = spawn_link(B, fun() -> ok end),
    ?expect({'EXIT', Far, normal}).

normal_exit_leaves_an_untrapping_process_alive(#{b := B}) ->
    {Far, Monitor} = spawn_opt(B, fun() -> ok end, [link, monitor]),
    ?expect({'DOWN', Monitor, process, Far, normal}),
    ok = weft_puppet:sync(weft_puppet:start(B)).

exit_ends_an_untrapping_process(#{b := B}) ->
    Linked = fun() -> spawn_link(B, erlang, exit, [boom]), ?expect(never) end,
    {Near, Monitor} = spawn_monitor(Linked),
    ?expect({'DOWN', Monitor, process, Near, boom}).

killed_comes_over_a_link_of_a_killed_process(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = weft_puppet:start_link(B),
    exit(Far, kill),
    ?expect({'EXIT', Far, killed}).

exit_travels_along_a_chain_of_links(#{a := A, b := B}) ->
    process_flag(trap_exit, true),
    First = weft_puppet:start_link(B),
    Near = self(),
    Last = weft_puppet:do(First, fun() -> chain([A, B, A, B], Near) end),
    exit(Last, {from, the_end}),
    ?expect({'EXIT', First, {from, the_end}}).

chain(Nodes, Owner) ->
    lists:foldl(fun(Node, Before) -> linked_to(Before, Node, Owner) end, self(), Nodes).

%% One that was ended before it had linked itself would break the chain.
linked_to(Before, Node, Owner) ->
    Pid = spawn(Node, fun() -> link(Before), hold(Owner) end),
    ok = weft_expect:until(fun() -> linked(Pid) end),
    Pid.

linked(Pid) ->
    case erpc:call(node(Pid), erlang, process_info, [Pid, links]) of
        {links, [_ | _]} -> true;
        _ -> false
    end.

hold(Owner) ->
    Monitor = monitor(process, Owner),
    receive {'DOWN', Monitor, process, Owner, _} -> ok end.

unlink_ends_the_link(#{b := B}) ->
    process_flag(trap_exit, true),
    {Far, Monitor} = weft_puppet:start(B, [link, monitor]),
    true = unlink(Far),
    weft_puppet:tell(Far, fun() -> exit(boom) end),
    ?expect({'DOWN', Monitor, process, Far, boom}),
    ?refute({'EXIT', Far, _}).

unlink_by_the_far_side_ends_the_link(#{b := B}) ->
    process_flag(trap_exit, true),
    {Far, Monitor} = weft_puppet:start(B, [link, monitor]),
    Near = self(),
    true = weft_puppet:do(Far, fun() -> unlink(Near) end),
    weft_puppet:tell(Far, fun() -> exit(boom) end),
    ?expect({'DOWN', Monitor, process, Far, boom}),
    ?refute({'EXIT', Far, _}).

no_exit_message_is_left_after_unlink_and_flush(#{b := B}) ->
    process_flag(trap_exit, true),
    [begin
         {Far, Monitor} = spawn_opt(B, erlang, exit, [N], [link, monitor]),
         true = unlink(Far),
         receive {'EXIT', Far, _} -> ok after 0 -> ok end,
         ?expect({'DOWN', Monitor, process, Far, N}),
         ?refute({'EXIT', Far, _})
     end || N <- lists:seq(1, 100)].

link_to_a_dead_process_gives_noproc(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = dead(B),
    true = link(Far),
    ?expect({'EXIT', Far, noproc}).

link_to_a_dead_process_ends_an_untrapping_process(#{b := B}) ->
    Far = dead(B),
    {Near, Monitor} = spawn_monitor(fun() -> link(Far), ?expect(never) end),
    ?expect({'DOWN', Monitor, process, Near, noproc}).

linking_twice_makes_one_link(#{b := B}) ->
    process_flag(trap_exit, true),
    {Far, Monitor} = weft_puppet:start(B, [link, monitor]),
    true = link(Far),
    true = link(Far),
    true = unlink(Far),
    weft_puppet:tell(Far, fun() -> exit(boom) end),
    ?expect({'DOWN', Monitor, process, Far, boom}),
    ?refute({'EXIT', Far, _}).

links_from_both_sides_are_one_link(#{b := B}) ->
    process_flag(trap_exit, true),
    {Far, Monitor} = weft_puppet:start(B, [monitor]),
    Near = self(),
    true = link(Far),
    true = weft_puppet:do(Far, fun() -> link(Near) end),
    weft_puppet:tell(Far, fun() -> exit(boom) end),
    ?expect({'EXIT', Far, boom}),
    ?expect({'DOWN', Monitor, process, Far, boom}),
    ?refute({'EXIT', Far, _}).

link_after_unlink_works_again(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = weft_puppet:start_link(B),
    true = unlink(Far),
    true = link(Far),
    weft_puppet:tell(Far, fun() -> exit(again) end),
    ?expect({'EXIT', Far, again}).

linking_and_unlinking_in_turns_ends_in_the_last_state(#{b := B}) ->
    process_flag(trap_exit, true),
    {Far, Monitor} = weft_puppet:start(B, [monitor]),
    Near = self(),
    Turn = fun(Other) -> link(Other), unlink(Other) end,
    Turns = fun(Other) -> [Turn(Other) || _ <- lists:seq(1, ?TURNS)] end,
    weft_puppet:tell(Far, fun() -> Turns(Near), Near ! turned end),
    Turns(Far),
    ?expect(turned),
    true = link(Far),
    weft_puppet:tell(Far, fun() -> exit(boom) end),
    ?expect({'EXIT', Far, boom}),
    ?expect({'DOWN', Monitor, process, Far, boom}).

links_are_seen_by_both_sides(#{b := B}) ->
    Far = weft_puppet:start_link(B),
    Near = self(),
    true = lists:member(Far, element(2, process_info(self(), links))),
    {links, [Near]} = weft_puppet:do(Far, fun() -> process_info(self(), links) end),
    true = unlink(Far),
    {links, []} = weft_puppet:do(Far, fun() -> process_info(self(), links) end).

exit_signal_with_a_term(#{b := B}) ->
    Far = trapping(B),
    Near = self(),
    Reasons = [shutdown, {shutdown, 1}, "text", #{map => true}, noproc, noconnection],
    [exit(Far, Reason) || Reason <- Reasons],
    Expected = [{'EXIT', Near, Reason} || Reason <- Reasons],
    Expected = weft_puppet:mailbox(Far).

exit_signal_with_a_large_term(#{b := B}) ->
    Far = trapping(B),
    Reason = {large, rand:bytes(?LARGE_BYTES)},
    exit(Far, Reason),
    Hash = fun() -> ?expect({'EXIT', _, {large, Bytes}}, erlang:md5(Bytes)) end,
    Same = weft_puppet:do(Far, Hash),
    Same = erlang:md5(element(2, Reason)).

large_exit_reason_comes_over_a_link(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = spawn_link(B, fun() -> exit({large, <<1:(8 * ?LARGE_BYTES)>>}) end),
    ?expect({'EXIT', Far, {large, <<1:(8 * ?LARGE_BYTES)>>}}).

exit_signal_normal_is_ignored(#{b := B}) ->
    Far = weft_puppet:start(B),
    true = exit(Far, normal),
    ok = weft_puppet:sync(Far).

exit_signal_normal_comes_as_a_message_when_trapped(#{b := B}) ->
    Far = trapping(B),
    Near = self(),
    true = exit(Far, normal),
    [{'EXIT', Near, normal}] = weft_puppet:mailbox(Far).

exit_signal_kill_cannot_be_trapped(#{b := B}) ->
    Far = trapping(B),
    Monitor = monitor(process, Far),
    true = exit(Far, kill),
    ?expect({'DOWN', Monitor, process, Far, killed}).

exit_signal_killed_can_be_trapped(#{b := B}) ->
    Far = trapping(B),
    Near = self(),
    true = exit(Far, killed),
    [{'EXIT', Near, killed}] = weft_puppet:mailbox(Far).

exit_signal_to_a_dead_process_does_nothing(#{b := B}) ->
    true = exit(dead(B), kill),
    ok = weft_puppet:sync(weft_puppet:start(B)).

error_exit_reason_has_the_far_stack(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = spawn_link(B, erlang, atom_to_list, [not_reached]),
    ?expect({'EXIT', Far, normal}),
    Failing = spawn_link(B, erlang, atom_to_list, [17]),
    ?expect({'EXIT', Failing, {badarg, [{erlang, atom_to_list, [17], _} | _]}}).

a_thousand_links_to_one_process(#{b := B}) ->
    Far = weft_puppet:start(B),
    Watched = [spawn_monitor(fun() -> link(Far), ?expect(never) end) || _ <- lists:seq(1, ?MANY)],
    ok = weft_expect:until(fun() -> far_links(Far) =:= ?MANY end),
    weft_puppet:tell(Far, fun() -> exit(all_of_you) end),
    [?expect({'DOWN', Monitor, process, Near, all_of_you}) || {Near, Monitor} <- Watched].

%% With the exit signal of a link, that is; exit/2 takes no token to another node.
seq_trace_token_travels_with_an_exit_signal(#{b := B}) ->
    process_flag(trap_exit, true),
    Far = weft_puppet:start_link(B),
    weft_puppet:tell(Far, fun() -> seq_trace:set_token(label, 23), exit(with_token) end),
    ?expect({'EXIT', Far, with_token}),
    Label = seq_trace:get_token(label),
    seq_trace:set_token([]),
    {label, 23} = Label.

far_links(Far) ->
    length(weft_puppet:do(Far, fun() -> element(2, process_info(self(), links)) end)).

trapping(Node) ->
    Far = weft_puppet:start(Node),
    false = weft_puppet:do(Far, fun() -> process_flag(trap_exit, true) end),
    Far.

dead(Node) ->
    {Pid, Monitor} = spawn_monitor(Node, fun() -> ok end),
    ?expect({'DOWN', Monitor, process, Pid, normal}),
    Pid.

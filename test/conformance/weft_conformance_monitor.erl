%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: monitors and their DOWN messages.
-module(weft_conformance_monitor).

-include("weft_conformance.hrl").

-export([down_reason_by_pid/1, down_by_name_names_name_and_node/1,
         monitor_of_an_unregistered_name_gives_noproc/1, monitor_of_a_dead_pid_gives_noproc/1,
         monitor_of_a_name_on_an_unknown_node_gives_noconnection/1,
         demonitor_ends_the_monitor/1, demonitor_flush_removes_a_delivered_down/1,
         demonitor_info_tells_if_a_monitor_was_there/1, several_monitors_give_several_downs/1,
         monitors_are_seen_by_both_sides/1, tag_option_replaces_down/1,
         tag_and_alias_options_together/1, explicit_unalias_outlives_the_process/1,
         large_down_reason/1, monitoring_process_may_die_first/1,
         named_process_unregistered_is_still_monitored/1, killed_process_gives_killed/1,
         a_thousand_monitors_of_one_process/1, monitoring_in_turns_leaves_no_monitor/1]).

-define(LARGE_BYTES, 1_000_000).
-define(MANY, 1_000).

down_reason_by_pid(#{b := B}) ->
    [begin
         {Far, Monitor} = weft_puppet:start(B, [monitor]),
         weft_puppet:tell(Far, fun() -> exit(Reason) end),
         ?expect({'DOWN', Monitor, process, Far, Reason})
     end || Reason <- [normal, boom, shutdown, {shutdown, 1}, [<<"x">>], #{k => self()}]].

down_by_name_names_name_and_node(#{b := B}) ->
    Far = named(B, conformance_watched),
    Monitor = monitor(process, {conformance_watched, B}),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Monitor, process, {conformance_watched, B}, over}).

monitor_of_an_unregistered_name_gives_noproc(#{b := B}) ->
    Monitor = monitor(process, {conformance_nobody_has_this_name, B}),
    ?expect({'DOWN', Monitor, process, {conformance_nobody_has_this_name, B}, noproc}).

monitor_of_a_dead_pid_gives_noproc(#{b := B}) ->
    {Far, First} = spawn_monitor(B, fun() -> ok end),
    ?expect({'DOWN', First, process, Far, normal}),
    Second = monitor(process, Far),
    ?expect({'DOWN', Second, process, Far, noproc}).

monitor_of_a_name_on_an_unknown_node_gives_noconnection(_) ->
    Nobody = {any_name, 'nobody@127.0.0.1'},
    Monitor = monitor(process, Nobody),
    ?expect({'DOWN', Monitor, process, Nobody, noconnection}).

demonitor_ends_the_monitor(#{b := B}) ->
    {Far, Monitor} = weft_puppet:start(B, [monitor]),
    Ended = monitor(process, Far),
    true = demonitor(Ended),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Monitor, process, Far, over}),
    ?refute({'DOWN', Ended, _, _, _}).

demonitor_flush_removes_a_delivered_down(#{b := B}) ->
    {Far, Monitor} = weft_puppet:start(B, [monitor]),
    Flushed = monitor(process, Far),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Monitor, process, Far, over}),
    ok = weft_expect:until(fun() -> lists:keymember(Flushed, 2, messages()) end),
    true = demonitor(Flushed, [flush]),
    ?refute({'DOWN', Flushed, _, _, _}).

demonitor_info_tells_if_a_monitor_was_there(#{b := B}) ->
    {Far, Monitor} = weft_puppet:start(B, [monitor]),
    Other = monitor(process, Far),
    true = demonitor(Other, [info]),
    false = demonitor(Other, [info]),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Monitor, process, Far, over}),
    false = demonitor(Monitor, [flush, info]).

several_monitors_give_several_downs(#{b := B}) ->
    Far = named(B, conformance_popular),
    ByPid = [monitor(process, Far) || _ <- lists:seq(1, 5)],
    ByName = [monitor(process, {conformance_popular, B}) || _ <- lists:seq(1, 5)],
    weft_puppet:tell(Far, fun() -> exit(over) end),
    [?expect({'DOWN', Monitor, process, Far, over}) || Monitor <- ByPid],
    [?expect({'DOWN', Monitor, process, {conformance_popular, B}, over}) || Monitor <- ByName].

monitors_are_seen_by_both_sides(#{b := B}) ->
    Far = named(B, conformance_seen),
    Near = self(),
    Monitor = monitor(process, Far),
    Named = monitor(process, {conformance_seen, B}),
    {monitors, Mine} = process_info(self(), monitors),
    [] = [{process, Far}, {process, {conformance_seen, B}}] -- Mine,
    [Near, Near, Near] = monitored_by(Far, Near),
    true = demonitor(Monitor),
    true = demonitor(Named),
    [Near] = monitored_by(Far, Near).

%% The puppet itself is watched by nobody else: it watches its owner, and do/2 sets no monitor,
%% so what is counted here are our monitors. One more is set to see that counting works.
monitored_by(Far, Near) ->
    Extra = monitor(process, Far),
    Watchers = weft_puppet:do(Far, fun() -> element(2, process_info(self(), monitored_by)) end),
    true = demonitor(Extra),
    [Pid || Pid <- Watchers, Pid =:= Near].

tag_option_replaces_down(#{b := B}) ->
    Far = weft_puppet:start(B),
    Monitor = monitor(process, Far, [{tag, {my, tag}}]),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({{my, tag}, Monitor, process, Far, over}).

tag_and_alias_options_together(#{b := B}) ->
    Far = weft_puppet:start(B),
    Monitor = monitor(process, Far, [{tag, gone}, {alias, demonitor}]),
    ok = weft_puppet:do(Far, fun() -> Monitor ! by_alias, ok end),
    ?expect(by_alias),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({gone, Monitor, process, Far, over}).

explicit_unalias_outlives_the_process(#{b := B}) ->
    Far = weft_puppet:start(B),
    Other = weft_puppet:start(B),
    Alias = monitor(process, Far, [{alias, explicit_unalias}]),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Alias, process, Far, over}),
    ok = weft_puppet:do(Other, fun() -> Alias ! still_here, ok end),
    ?expect(still_here),
    true = unalias(Alias),
    ok = weft_puppet:do(Other, fun() -> Alias ! lost, ok end),
    ?refute(lost).

large_down_reason(#{b := B}) ->
    {Far, Monitor} = spawn_monitor(B, fun() -> exit(<<7:(8 * ?LARGE_BYTES)>>) end),
    ?expect({'DOWN', Monitor, process, Far, <<7:(8 * ?LARGE_BYTES)>>}).

monitoring_process_may_die_first(#{b := B}) ->
    Far = weft_puppet:start(B),
    {Near, Monitor} = spawn_monitor(fun() -> monitor(process, Far), exit(first) end),
    ?expect({'DOWN', Monitor, process, Near, first}),
    ok = weft_expect:until(fun() -> not watches(Far, Near) end).

watches(Far, Near) ->
    lists:member(Near, weft_puppet:do(Far, fun() ->
                                              element(2, process_info(self(), monitored_by))
                                      end)).

named_process_unregistered_is_still_monitored(#{b := B}) ->
    Far = named(B, conformance_renamed),
    Monitor = monitor(process, {conformance_renamed, B}),
    true = weft_puppet:do(Far, fun() -> unregister(conformance_renamed) end),
    weft_puppet:tell(Far, fun() -> exit(over) end),
    ?expect({'DOWN', Monitor, process, {conformance_renamed, B}, over}).

killed_process_gives_killed(#{b := B}) ->
    {Far, Monitor} = weft_puppet:start(B, [monitor]),
    exit(Far, kill),
    ?expect({'DOWN', Monitor, process, Far, killed}).

a_thousand_monitors_of_one_process(#{b := B}) ->
    Far = weft_puppet:start(B),
    Monitors = [monitor(process, Far) || _ <- lists:seq(1, ?MANY)],
    weft_puppet:tell(Far, fun() -> exit(all_of_you) end),
    [?expect({'DOWN', Monitor, process, Far, all_of_you}) || Monitor <- Monitors].

monitoring_in_turns_leaves_no_monitor(#{b := B}) ->
    Far = weft_puppet:start(B),
    Near = self(),
    [true = demonitor(monitor(process, Far), [flush]) || _ <- lists:seq(1, ?MANY)],
    [Near] = monitored_by(Far, Near),
    {monitors, Mine} = process_info(self(), monitors),
    false = lists:member({process, Far}, Mine).

messages() ->
    element(2, process_info(self(), messages)).

named(Node, Name) ->
    Far = weft_puppet:start(Node),
    true = weft_puppet:do(Far, fun() -> register(Name, self()) end),
    Far.

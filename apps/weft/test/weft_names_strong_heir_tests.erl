%% SPDX-License-Identifier: Apache-2.0
%% @doc Who has a strong name is told when what renews its lease has ended.
-module(weft_names_strong_heir_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HEIR, weft_names_strong_heir).
-define(SCOPE, heir_tests).
-define(TOKEN, 7).
-define(WAIT_MS, 2000).

%% By a crash, or because the scope or the application is stopped.
holders_are_told_when_the_supervisor_ends_test_() ->
    [{atom_to_list(Reason), fun() ->
          Sup = started(),
          Told = self(),
          Holders = [{OnLost, holder(OnLost, Told)} || OnLost <- [exit, kill, tell]],
          ended(Sup, Reason),
          [?assertEqual({OnLost, expected(OnLost)}, {OnLost, got(Holder)})
           || {OnLost, Holder} <- Holders]
      end} || Reason <- [kill, shutdown]].

the_scope_starts_again_when_all_have_been_told_test() ->
    Former = started(),
    FormerHeir = heir(),
    _ = [holder(exit, self()) || _ <- lists:seq(1, 100)],
    ended(Former, kill),
    Sup = started(),
    ?assertNot(is_process_alive(FormerHeir)),
    ?assertEqual(Sup, ets:info(table(), owner)),
    ?assertEqual([], [Row || {{name, _}, _, _, _, _, _, _} = Row <- ets:tab2list(table())]),
    Heir = heir(),
    ended(Sup, kill),
    ok = until_ended(Heir).

a_driver_that_starts_again_has_the_heir_that_there_is_test() ->
    Sup = started(),
    Heir = heir(),
    Driver = whereis(table()),
    exit(Driver, kill),
    ok = weft_test_nodes:until(fun() ->
                                       lists:member(whereis(table()), [undefined, Driver]) =:= false
                               end),
    ?assertEqual(Heir, heir()),
    ended(Sup, kill),
    ok = until_ended(Heir).

an_heir_that_was_killed_is_replaced_test() ->
    Sup = started(),
    Killed = heir(),
    exit(Killed, kill),
    ok = until_ended(Killed),
    exit(whereis(table()), kill),
    ok = weft_test_nodes:until(fun() -> is_process_alive(heir()) end),
    Holder = holder(exit, self()),
    ended(Sup, kill),
    ?assertEqual(expected(exit), got(Holder)).

%% Not also where the table was deleted by its owner.
no_heir_stays_test() ->
    %% The heir of the test before has told its holder, and may still have the table.
    ok = weft_test_nodes:until(fun() -> ets:whereis(table()) =:= undefined end),
    Test = self(),
    _ = spawn_link(fun() ->
        Table = ets:new(table(), [named_table]),
        ok = ?HEIR:appoint(Table, ?SCOPE),
        Test ! {heir, heir()},
        ets:delete(Table)
    end),
    receive {heir, Heir} -> ok = until_ended(Heir) end.

%% An application that ends kills the processes of its group.
it_belongs_to_no_application_test() ->
    Sup = started(),
    ?assertEqual({group_leader, whereis(init)}, process_info(heir(), group_leader)),
    ended(Sup, shutdown).

%% --- helpers ----------------------------------------------------------------------------------

table() -> weft_names_sup:driver(?SCOPE).

heir() -> ets:info(table(), heir).

started() ->
    ok = weft_view:new(),
    ok = weft_suspension:new(),
    ok = weft_node_outlet:new_table(),
    {ok, Sup} = weft_names_sup:start_link(weft_names_strong, ?SCOPE, #{voters => [node()]}),
    true = unlink(Sup),
    Sup.

%% Has a name, and says what it got: a message, or the reason of its end.
holder(OnLost, Told) ->
    Pid = spawn(fun() -> receive Message -> Told ! {message, self(), Message} end end),
    Row = {{name, make_ref()}, own, Pid, ?TOKEN, none, 0, OnLost},
    true = ets:insert(table(), Row),
    {Pid, monitor(process, Pid)}.

got({Pid, Monitor}) ->
    receive
        {message, Pid, {weft_names_lost, Scope, _Name, Token}} -> {message, Scope, Token};
        {'DOWN', Monitor, process, Pid, {weft_names_lost, Scope, _Name}} -> {reason, Scope};
        {'DOWN', Monitor, process, Pid, Reason} -> {reason, Reason}
    after ?WAIT_MS -> not_told
    end.

expected(exit) -> {reason, ?SCOPE};
expected(kill) -> {reason, killed};
expected(tell) -> {message, ?SCOPE, ?TOKEN}.

ended(Sup, Reason) ->
    Monitor = monitor(process, Sup),
    exit(Sup, Reason),
    receive {'DOWN', Monitor, process, Sup, _} -> ok end,
    %% Tests of other modules make it, too.
    true = ets:delete(weft_node_outlet).

until_ended(Pid) -> weft_test_nodes:until(fun() -> not is_process_alive(Pid) end).

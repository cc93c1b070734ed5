%% SPDX-License-Identifier: Apache-2.0
%% @doc A closer look at the node on which it is called, for the dashboard. It needs nothing but OTP
%% and weft, so that it can be given to a node that has no dashboard.
%%
%% All it tells is bounded: of at most 50,000 processes the 20 that do most, those that have most
%% memory and those with most messages; 200 links and sessions, 1000 names. A look takes a fifth of
%% a second, in which it waits. One at a time looks at a node, from whatever dashboard.
-module(weft_dashboard_node).

-export([look/1, names/0, unreachable/1]).
-export([process/3]).
-export_type([wanted/0]).

-type wanted() :: #{migrations := boolean()}.

-define(INTERVAL_MS, 200).
%% With what a look takes it is less than who asks waits.
-define(TURN_MS, 1500).
%% A link or session that has not answered by then is left out.
-define(STATUS_MS, 1000).
-define(PROCESSES_MAX, 50000).
-define(TOP, 20).
-define(ROWS_MAX, 200).
-define(NAMES_MAX, 1000).
-define(NAME_CHARS_MAX, 200).
%% The dictionary of a process that has more memory is not looked at: it would be copied.
-define(DICTIONARY_BYTES_MAX, 1048576).

%% @doc What the node does now, or `busy' if others look at it for longer than a turn. `schedulers':
%% what part of the interval each was at work, with those for long computations behind the ordinary
%% ones. Migrations are counted for the busiest processes, if they are wanted.
-spec look(wanted()) -> map() | busy.
look(Wanted) -> look(Wanted, erlang:monotonic_time(millisecond) + ?TURN_MS).

%% Who looks has the name of this module.
look(Wanted, UntilMs) ->
    try register(?MODULE, self()) of
        true -> try looked(Wanted) after unregister(?MODULE) end
    catch
        error:badarg -> after_another(Wanted, UntilMs)
    end.

after_another(Wanted, UntilMs) ->
    End = monitor(process, ?MODULE),
    receive
        {'DOWN', End, process, _, _} -> look(Wanted, UntilMs)
    after max(0, UntilMs - erlang:monotonic_time(millisecond)) ->
        true = demonitor(End, [flush]),
        busy
    end.

looked(#{migrations := AreWanted}) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    {WallBefore, Before} = {wall_times(), used()},
    receive after ?INTERVAL_MS -> ok end,
    {Wall, Used} = {wall_times(), used()},
    {Busiest, Largest} = top(Before, Used),
    Migrations = case AreWanted of
                     true -> weft_dashboard_migrations:count(Busiest);
                     false -> #{}
                 end,
    #{links := Links, sessions := Sessions} = Status = weft_status:status(?STATUS_MS),
    #{schedulers => utilisation(WallBefore, Wall),
      schedulers_online => erlang:system_info(schedulers_online),
      run_queues => erlang:statistics(run_queue_lengths), memory => maps:from_list(erlang:memory()),
      process_count => erlang:system_info(process_count),
      processes => [Row || Pid <- lists:usort(Busiest ++ Largest),
                           Row <- process(Pid, done(Pid, Before, Used), Migrations)],
      links => lists:sublist(Links, ?ROWS_MAX), link_count => length(Links),
      sessions => lists:sublist(Sessions, ?ROWS_MAX), session_count => length(Sessions),
      unreachable => unreachable(Status), uptime_ms => maps:get(uptime_ms, Status),
      otp_release => list_to_binary(erlang:system_info(otp_release))}.

wall_times() -> lists:sort(erlang:statistics(scheduler_wall_time)).

utilisation(Before, Now) ->
    [(Active - ActiveBefore) / max(1, Total - TotalBefore)
     || {{Id, ActiveBefore, TotalBefore}, {Id, Active, Total}} <- lists:zip(Before, Now)].

%% @doc Members, also those that have failed, to which nothing leads now, as far as is known: of one
%% whose process did not answer in time it is not.
-spec unreachable(weft_status:status() | map()) -> [node()].
unreachable(#{node := Self, members := Members, links := Links, sessions := Sessions,
              routes := Routes} = Status) ->
    Reached = [Node || #{node := Node, state := up} <- Links ++ Sessions] ++ maps:keys(Routes)
        ++ [Node || #{node := Node} <- maps:get(unanswered, Status, [])],
    (lists:usort(Members ++ maps:get(failed, Status, [])) -- [Self]) -- Reached.

%% --- processes --------------------------------------------------------------------------------

%% What each process has done and has: {Reductions, Bytes of memory, Messages}.
used() ->
    maps:from_list([{Pid, {Done, Bytes, Messages}}
                    || Pid <- lists:sublist(erlang:processes(), ?PROCESSES_MAX), Pid =/= self(),
                       [{_, Done}, {_, Bytes}, {_, Messages}] <-
                           [process_info(Pid, [reductions, memory, message_queue_len])]]).

%% The processes that did most, and those that have most memory or most messages.
top(Before, Used) ->
    All = maps:to_list(Used),
    {most([{done(Pid, Before, Used), Pid} || {Pid, _} <- All]),
     most([{Bytes, Pid} || {Pid, {_, Bytes, _}} <- All])
     ++ most([{Messages, Pid} || {Pid, {_, _, Messages}} <- All, Messages > 0])}.

most(Rows) -> [Pid || {_, Pid} <- lists:sublist(lists:reverse(lists:sort(Rows)), ?TOP)].

done(Pid, Before, Used) ->
    {DoneBefore, _, _} = maps:get(Pid, Before, {0, 0, 0}),
    {Done, _, _} = maps:get(Pid, Used),
    Done - DoneBefore.

%% @private The row of a process that has done so much, if it is there.
-spec process(pid(), Reductions :: integer(), Migrations :: #{pid() => non_neg_integer()}) ->
          [map()].
process(Pid, Count, Migrations) ->
    case process_info(Pid, [registered_name, initial_call, current_function, memory,
                            message_queue_len]) of
        undefined ->
            [];
        [{_, Registered}, {_, Initial}, {_, Current}, {_, Memory}, {_, Queue}] ->
            [#{pid => list_to_binary(pid_to_list(Pid)), reductions => Count,
               migrations => maps:get(Pid, Migrations, undefined),
               name => name(Registered, initial_call(Pid, Initial, Memory)),
               current => term(Current), memory_bytes => Memory, messages => Queue}]
    end.

%% As proc_lib says it, which starts most processes.
initial_call(Pid, Initial, Memory) when Memory =< ?DICTIONARY_BYTES_MAX ->
    case process_info(Pid, dictionary) of
        {dictionary, Dictionary} -> proplists:get_value('$initial_call', Dictionary, Initial);
        undefined -> Initial
    end;
initial_call(_Pid, Initial, _Memory) ->
    Initial.

name([], Initial) -> term(Initial);
name(Registered, _Initial) -> atom_to_binary(Registered).

term({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [M, F, A]));
term(Term) ->
    unicode:characters_to_binary(io_lib:format("~0tp", [Term], [{chars_limit, ?NAME_CHARS_MAX}])).

%% --- names ------------------------------------------------------------------------------------

%% @doc Groups, and the scopes of names with the names that this node knows, as many as there may
%% be. `more': how many names are left out.
-spec names() -> map().
names() ->
    All = [{Scope, lists:sort(weft_names:names(Scope))}
           || Scope <- lists:sort(weft_names:scopes())],
    {Scopes, Left} = lists:mapfoldl(fun scope/2, ?NAMES_MAX, All),
    Count = lists:sum([length(Names) || {_, Names} <- All]),
    #{scopes => Scopes, count => Count, more => Count - (?NAMES_MAX - Left),
      groups => [#{name => word(Name), members => lists:sort(Nodes)}
                 || {Name, Nodes} <- lists:sort(maps:to_list(weft_group:groups()))]}.

scope({Scope, Names}, Left) ->
    Shown = lists:sublist(Names, Left),
    Kind = weft_names:kind(Scope),
    {#{scope => word(Scope), kind => Kind, count => length(Names),
       names => [named(Kind, Scope, Name) || Name <- Shown]}, Left - length(Shown)}.

%% Who has a strong name, only its replicas know.
named(eventual, Scope, Name) ->
    case weft_names:lookup({Scope, Name}) of
        {ok, Pid, _Meta} -> #{name => word(Name), node => node(Pid)};
        undefined -> #{name => word(Name)}
    end;
named(strong, _Scope, Name) ->
    #{name => word(Name)}.

word(Name) when is_atom(Name) -> atom_to_binary(Name);
word(Name) when is_binary(Name), byte_size(Name) =< ?NAME_CHARS_MAX -> Name;
word(Name) -> term(Name).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Killing processes of a program while it runs. Who is killed is the matter of the program;
%% nodes are told by way of their standard input, as all of the harness does, so that killing needs
%% no connections.
-module(weft_papers_killer).

-export([during/2]).

%% @doc Does something, and kills meanwhile. Kill runs in a process of its own, and returns how many
%% it were when it gets the message `stop'.
-spec during(Kill :: fun(() -> non_neg_integer()), Do :: fun(() -> Result)) ->
          {Result, Kills :: non_neg_integer()}.
during(Kill, Do) ->
    Self = self(),
    {Killer, Monitor} = spawn_monitor(fun() -> Self ! {self(), Kill()} end),
    try Do() of
        Result ->
            Killer ! stop,
            receive
                {Killer, Kills} -> {Result, Kills};
                {'DOWN', Monitor, process, Killer, Why} -> erlang:error({killer_failed, Why})
            end
    after
        demonitor(Monitor, [flush]),
        exit(Killer, kill)
    end.

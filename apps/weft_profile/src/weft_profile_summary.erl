%% SPDX-License-Identifier: Apache-2.0
%% @doc The numbers of a profile: which processes and ports ran, what waited, garbage collections,
%% and what went between nodes. Pure. Times are milliseconds, but for those of messages.
%%
%% Running time is exact in the time that was traced, `traced_ms' of each node, and says nothing
%% of the rest. How long processes waited for a scheduler is an
%% estimate, from how often they were seen waiting: a process that waits often, but never at the
%% time of a sample, has none.
-module(weft_profile_summary).

-export([summary/1, concurrency/3]).
-export_type([summary/0]).

-type summary() :: #{nodes := [map()], running := [map()], ports := [map()],
                     waiting := [map()], gc := [map()],
                     messages := [map()], talks := [weft_profile_talks:row()],
                     counts := weft_profile_flows:counts(), ms := float()}.

-define(TOP, 15).

%% @doc All of it.
-spec summary(weft_profile_recording:profile()) -> summary().
summary(#{nodes := Sides, flows := Flows, counts := Counts, to := To, ways := Ways}) ->
    #{nodes => [node_row(Side) || Side <- Sides],
      running => top(running_ms, lists:append([running(Side) || Side <- Sides])),
      ports => top(running_ms, lists:append([ports(Side) || Side <- Sides])),
      waiting => top(waiting_ms, lists:append([waiting(Side) || Side <- Sides])),
      gc => top(gc_ms, lists:append([collected(Side) || Side <- Sides])),
      messages => messages(Flows, Ways), talks => weft_profile_talks:rows(Flows, Sides),
      counts => Counts, ms => ms(To)}.

ms(Ns) -> weft_profile_recording:ms(Ns).

top(By, Rows) ->
    Sorted = lists:sort(fun(A, B) -> maps:get(By, A) >= maps:get(By, B) end, Rows),
    lists:sublist(Sorted, ?TOP).

node_row(#{node := Node, from := From, to := To, sampled := Sampled, history := History,
           samples := Samples} = Side) ->
    #{slices := Slices, gcs := Gcs, migrations := Migrations, dropped := Dropped} = History,
    Queues = [Waiting || {_, Waiting, _} <- maps:get(queues, Samples, [])],
    Traced = traced(Side),
    Ran = lists:sum([End - Start || #{from := Start, to := End} <- Slices]),
    (maps:with([ended, events, lost, schedulers], Side))
        #{node => Node, ms => ms(To - From), clock_error_us => maps:get(error, Side) / 1000,
          busy => Ran / max(1, Traced),
          traced_ms => ms(Traced), windows => length(maps:get(windows, Side)),
          sampled => case Sampled of
                         {Ms, EveryMs} -> #{window_ms => Ms, every_ms => EveryMs};
                         false -> false
                     end, queue_mean => mean(Queues),
          queue_max => lists:max([0 | Queues]),
          gc_ms => ms(lists:sum([End - Start || {_, Start, End, _} <- Gcs])),
          migrations => lists:sum(maps:values(Migrations)), dropped => Dropped}.

traced(#{windows := Windows}) -> lists:sum([To - From || {_, From, To} <- Windows]).

mean([]) -> 0.0;
mean(Numbers) -> lists:sum(Numbers) / length(Numbers).

running(#{history := #{slices := Slices, migrations := Migrations}} = Side) ->
    [(of_process(Pid, Side))#{running_ms => ms(Ns), slices => Count,
                              migrations => maps:get(Pid, Migrations, 0)}
     || {Pid, {Ns, Count}} <- sums([Slice || #{pid := Pid} = Slice <- Slices, is_pid(Pid)])].

%% called: how often a process called it, in its own time. Who has called is not always known.
ports(#{node := Node, history := #{slices := Slices}} = Side) ->
    Calls = [#{pid => Port, from => From, to => To, mfa => Command}
             || #{inside := Inside} <- Slices, {From, To, {Port, Command}} <- Inside],
    Ran = [Slice || #{pid := Port} = Slice <- Slices, is_port(Port)] ++ Calls,
    Called = maps:from_list(sums([Slice || #{mfa := Command} = Slice <- Ran, Command =/= 0])),
    [#{node => Node, port => weft_profile_recording:name(Port, Side), running_ms => ms(Ns),
       slices => Count, called => element(2, maps:get(Port, Called, {0, 0}))}
     || {Port, {Ns, Count}} <- sums(Ran)].

%% The time and the number of the slices of each.
sums(Slices) ->
    maps:to_list(lists:foldl(fun(#{pid := Who, from := From, to := To}, Acc) ->
                                     {Ns, Count} = maps:get(Who, Acc, {0, 0}),
                                     Acc#{Who => {Ns + To - From, Count + 1}}
                             end, #{}, Slices)).

of_process(Pid, #{node := Node} = Side) ->
    #{node => Node, process => weft_profile_recording:name(Pid, Side)}.

%% Each sample stands for the time until the next one; where not all processes are looked at each
%% time, for more.
waiting(#{samples := #{states := States, every_ns := EveryNs, share := Share}} = Side) ->
    [(of_process(Pid, Side))#{waiting_ms => ms(round(Waiting * EveryNs / max(0.001, Share))),
                              seen => Waiting}
     || {Pid, {_, Waiting}} <- maps:to_list(States), Waiting > 0];
waiting(_Side) ->
    [].

collected(#{history := #{gcs := Gcs}} = Side) ->
    Sums = lists:foldl(fun({Pid, From, To, Kind}, Acc) ->
                               {Ns, Minor, Major} = maps:get(Pid, Acc, {0, 0, 0}),
                               Acc#{Pid => case Kind of
                                               minor -> {Ns + To - From, Minor + 1, Major};
                                               major -> {Ns + To - From, Minor, Major + 1}
                                           end}
                       end, #{}, Gcs),
    [(of_process(Pid, Side))#{gc_ms => ms(Ns), minor => Minor, major => Major}
     || {Pid, {Ns, Minor, Major}} <- maps:to_list(Sums)].

messages(Flows, Ways) ->
    Times = lists:foldl(fun(#{from_node := From, to_node := To, sent := S, received := R}, Acc) ->
                                Acc#{{From, To} => [R - S | maps:get({From, To}, Acc, [])]}
                        end, #{}, Flows),
    [#{from => From, to => To, count => length(Ns), way => maps:get({From, To}, Ways, []),
       p50_us => part(50, Ns), p99_us => part(99, Ns), max_us => lists:max(Ns) / 1000}
     || {{From, To}, Ns} <- lists:sort(maps:to_list(Times))].

part(Percent, Ns) ->
    lists:nth(max(1, ceil(length(Ns) * Percent / 100)), lists:sort(Ns)) / 1000.

%% @doc How many processes and ports ran, and how many waited, in those of so many equal parts of
%% the time from 0 to To in which something was traced: {middle of the part in ns, mean number
%% running, mean number in run queues}.
-spec concurrency(weft_profile_recording:side(), To :: integer(), Parts :: pos_integer()) ->
          [{float(), float(), float()}].
concurrency(#{history := #{slices := Slices}, samples := Samples, windows := Windows}, To, Parts) ->
    Width = max(1, To) / Parts,
    Ran = lists:foldl(fun(#{from := From, to := End}, Acc) -> spread(From, End, Width, Acc) end,
                      #{}, Slices),
    Waited = lists:foldl(fun({Ns, Waiting, _}, Acc) ->
                                 Part = trunc(Ns / Width),
                                 Acc#{Part => [Waiting | maps:get(Part, Acc, [])]}
                         end, #{}, maps:get(queues, Samples, [])),
    Traced = lists:foldl(fun({_, From, End}, Acc) -> spread(max(0, From), End, Width, Acc) end,
                         #{}, Windows),
    [{(Part + 0.5) * Width, maps:get(Part, Ran, 0) / Ns, mean(maps:get(Part, Waited, []))}
     || {Part, Ns} <- lists:sort(maps:to_list(Traced)), Part < Parts, Ns > 0].

spread(From, To, _Width, Acc) when From >= To ->
    Acc;
spread(From, To, Width, Acc) ->
    Part = trunc(From / Width),
    End = min(To, (Part + 1) * Width),
    Sum = Acc#{Part => maps:get(Part, Acc, 0) + End - From},
    %% Rounding may leave nothing between the two.
    spread(max(End, From + 1), To, Width, Sum).

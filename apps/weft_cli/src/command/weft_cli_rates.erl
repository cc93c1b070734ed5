%% SPDX-License-Identifier: Apache-2.0
%% @doc What the nodes of a cluster did between two samples. Pure.
%%
%% The node's own counts are used where it has them (`counters' of its status). Otherwise sessions
%% and links are summed up, each by itself, since the count of one that has ended is gone: what it
%% moved after the sample before is missing then, and no rate is ever negative. The time is that of
%% each node.
-module(weft_cli_rates).

-export([rows/3, sum/1]).
-export_type([row/0]).

%% Per second; `resumes' is how many there were, `queued_bytes' what waits in links. What arrived is
%% acknowledged some time later, so at rest `unacked_bytes' is not 0. `undefined': there is no
%% sample before in which the node ran. Of one on a host that is lost it is not known whether it
%% runs.
-type row() :: #{node := node(), running := boolean() | undefined,
                 bytes_out_per_s => rate(), bytes_in_per_s => rate(), relayed_per_s => rate(),
                 resumes => non_neg_integer() | undefined,
                 queued_bytes => non_neg_integer(), unacked_bytes => non_neg_integer()}.
-type rate() :: non_neg_integer() | undefined.

%% @doc A row for each node, sorted by name.
-spec rows([node()], Before :: weft_local_picture:statuses(), weft_local_picture:statuses()) ->
          [row()].
rows(Nodes, Before, Now) ->
    [row(Node, Nodes, maps:get(Node, Before, none), maps:get(Node, Now, none))
     || Node <- lists:sort(Nodes)].

row(Node, _Nodes, _Before, none) ->
    #{node => Node, running => false};
row(Node, Nodes, Before, Now) ->
    ElapsedMs = elapsed_ms(Before, Now),
    Rate = fun(What) -> rate(moved(What, Nodes, Before, Now, ElapsedMs), ElapsedMs) end,
    #{node => Node, running => true,
      bytes_out_per_s => Rate(bytes_out), bytes_in_per_s => Rate(bytes_in),
      relayed_per_s => Rate(relayed_bytes),
      resumes => moved(resumes, Nodes, Before, Now, ElapsedMs),
      queued_bytes => total(queued_bytes, Nodes, maps:get(links, Now)),
      unacked_bytes => total(unacked_bytes, Nodes, maps:get(sessions, Now))}.

%% A node that was started again has been up for less long than before, or not for so long.
elapsed_ms(#{os_pid := Pid, uptime_ms := BeforeMs}, #{os_pid := Pid, uptime_ms := NowMs})
  when NowMs > BeforeMs ->
    NowMs - BeforeMs;
elapsed_ms(_Before, _Now) ->
    unknown.

moved(_What, _Nodes, _Before, _Now, unknown) ->
    undefined;
moved(What, Nodes, Before, Now, _ElapsedMs) ->
    Counted = counts(What, Nodes, Before),
    lists:sum([max(0, Count - maps:get(Key, Counted, 0))
               || {Key, Count} <- maps:to_list(counts(What, Nodes, Now))]).

rate(undefined, _ElapsedMs) -> undefined;
rate(Moved, ElapsedMs) -> Moved * 1000 div ElapsedMs.

%% --- counts -------------------------------------------------------------------------------------

counts(What, Nodes, Status) ->
    case Status of
        #{counters := #{What := Count}} -> #{node => Count};
        #{links := Links} when What =:= relayed_bytes -> by_peer(What, Nodes, Links);
        #{sessions := Sessions} -> by_peer(What, Nodes, Sessions)
    end.

%% What is no node of the cluster (the command itself, for one) is left out.
by_peer(What, Nodes, Rows) ->
    maps:from_list([{Peer, maps:get(What, Row)} || #{node := Peer} = Row <- Rows,
                                                   lists:member(Peer, Nodes)]).

total(What, Nodes, Rows) ->
    lists:sum(maps:values(by_peer(What, Nodes, Rows))).

%% @doc The sums of some rows; what is unknown counts as nothing, unless all of it is unknown.
-spec sum([row()]) -> #{atom() => rate()}.
sum(Rows) ->
    maps:from_list([{Key, sum_of([Value || #{Key := Value} <- Rows, Value =/= undefined])}
                    || Key <- [bytes_out_per_s, bytes_in_per_s, relayed_per_s, resumes,
                               queued_bytes, unacked_bytes]]).

sum_of([]) -> undefined;
sum_of(Values) -> lists:sum(Values).

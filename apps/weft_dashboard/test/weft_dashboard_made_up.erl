%% SPDX-License-Identifier: Apache-2.0
%% @doc A dashboard of a cluster that there is not: groups in a ring, two gateways between each and
%% the next, everybody linked within a group, circuits to the other groups. For pages of any size.
-module(weft_dashboard_made_up).

-export([start/2, start/3, stop/1, record/3]).

-define(GATEWAYS, 2).
-define(PERIOD_MS, 2000).
%% What `weft_ops_recorder' puts into a chunk at most, and so many samples in a minute.
-define(CHUNK_BYTES_MAX, 8388608).
-define(LOOKS, 30).

%% @doc Starts it on a free port. Traffic is another at each look.
-spec start(Nodes :: pos_integer(), Groups :: pos_integer()) -> {pid(), inet:port_number()}.
start(Nodes, Groups) -> start(Nodes, Groups, []).

%% @doc The same with more configuration.
-spec start(Nodes :: pos_integer(), Groups :: pos_integer(), [{atom(), term()}]) ->
          {pid(), inet:port_number()}.
start(Nodes, Groups, Env) ->
    {ok, _} = application:ensure_all_started(cowboy),
    {ok, Config} = weft_dashboard_config:parse([{port, 0}, {period_ms, 1000} | Env]),
    Cluster = cluster(Nodes, Groups),
    {ok, Supervisor} = weft_dashboard:start(Config#{source => fun(none) -> seen(Cluster, 1);
                                                                 (Look) -> seen(Cluster, Look)
                                                              end}),
    {Supervisor, weft_dashboard:port()}.

-spec stop(pid()) -> ok.
stop(Supervisor) ->
    ok = weft_dashboard_http:stop(),
    true = unlink(Supervisor),
    Ref = monitor(process, Supervisor),
    true = exit(Supervisor, shutdown),
    receive {'DOWN', Ref, _, _, _} -> ok end.

%% @doc Writes what `weft_ops_recorder' would have written of the last minute of it, to an empty
%% directory. A time, near the end, of which there is a picture.
-spec record(Nodes :: pos_integer(), Groups :: pos_integer(), Dir :: file:filename()) ->
          AtMs :: integer().
record(Nodes, Groups, Dir) ->
    Cluster = cluster(Nodes, Groups),
    ToMs = erlang:system_time(millisecond),
    Files = weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1 bsl 30}),
    Recorded = lists:foldl(fun(Look, Recording) ->
                                   AtMs = ToMs - (?LOOKS - Look) * ?PERIOD_MS,
                                   looked(AtMs, seen_at(AtMs, Cluster, Look), Recording)
                           end, {weft_ops_chunk:new(), weft_ops_reel:new(), Files},
                           lists:seq(1, ?LOOKS)),
    _ = written(Recorded),
    ToMs - ?PERIOD_MS.

seen_at(AtMs, Cluster, Look) ->
    {#{nodes := Nodes} = Seen, _} = seen(Cluster, Look),
    Seen#{nodes := maps:map(fun(_Node, Sample) -> Sample#{at_ms := AtMs} end, Nodes)}.

looked(AtMs, Seen, {Chunk0, Reel0, Files}) ->
    {Entries, Reel} = weft_ops_reel:entries({AtMs, Seen}, [], Reel0),
    {ok, Chunk} = weft_ops_chunk:add([{AtMs, Entry} || Entry <- Entries], Chunk0),
    case weft_ops_chunk:size_bytes(Chunk) >= ?CHUNK_BYTES_MAX of
        true -> written({Chunk, Reel, Files});
        false -> {Chunk, Reel, Files}
    end.

written({Chunk, Reel, Files}) ->
    case weft_ops_chunk:first_ms(Chunk) of
        none ->
            {Chunk, Reel, Files};
        FromMs ->
            {ok, Next} = weft_ops_recording_files:append(FromMs, weft_ops_chunk:encode(Chunk),
                                                         Files),
            {weft_ops_chunk:new(), weft_ops_reel:forget(Reel), Next}
    end.

%% --- who is there -------------------------------------------------------------------------------

cluster(Nodes, Groups) ->
    Size = max(1, Nodes div Groups),
    Own = [{group(G), [named("n", G * Size + I) || I <- lists:seq(1, Size)]}
           || G <- lists:seq(0, Groups - 1)],
    Next = tl(Own) ++ [hd(Own)],
    maps:from_list([{Group, Members ++ [Node || Groups > 1, Other =/= Group,
                                                Node <- lists:sublist(Neighbours, ?GATEWAYS)]}
                    || {{Group, Members}, {Other, Neighbours}} <- lists:zip(Own, Next)]).

%% As many as a test has nodes.
named(Prefix, Number) ->
    list_to_atom(lists:flatten(io_lib:format("~s~3..0b@host", [Prefix, Number]))).

group(0) -> north;
group(1) -> east;
group(2) -> south;
group(3) -> west;
group(Number) -> list_to_atom("group" ++ integer_to_list(Number)).

seen(Groups, Look) ->
    Of = lists:foldl(fun({Group, Node}, All) ->
                             maps:update_with(Node, fun(Known) -> [Group | Known] end, [Group], All)
                     end, #{}, [{Group, Node} || {Group, Members} <- maps:to_list(Groups),
                                                 Node <- Members]),
    Gateways = [Node || {Node, [_, _ | _]} <- lists:sort(maps:to_list(Of))],
    Nodes = maps:map(fun(Node, Its) -> sample(Node, Its, Groups, Gateways, Look) end, Of),
    {#{nodes => Nodes, groups => Groups, alarms => alarms(maps:keys(Of)),
       agents => maps:from_list([{{group, Group}, hd(Members)}
                                 || {Group, Members} <- maps:to_list(Groups)])},
     Look + 1}.

alarms([Node | _]) ->
    [#{id => {busy, Node, Node}, severity => warning, text => <<"processes are woken 310 ms late">>,
       raised_ms => 0, at_ms => 0, acknowledged => no}].

sample(Node, Its, Groups, Gateways, Look) ->
    Neighbours = lists:usort(lists:append([maps:get(Group, Groups) || Group <- Its])) -- [Node],
    Via = lists:sublist([Gateway || Gateway <- Neighbours, lists:member(Gateway, Gateways)], 1),
    Far = case Via of
              [Gateway] -> far(Node, Gateway, Groups, Neighbours);
              [] -> []
          end,
    #{node => Node, at_ms => erlang:system_time(millisecond), period_ms => ?PERIOD_MS,
      uptime_ms => 60000 + Look, groups => Its,
      peers => [peer(Node, Peer, Peer, Look)
                || Peer <- Neighbours, some(3, lists:sort([Node, Peer])) =:= 0]
               ++ [peer(Node, Peer, hd(Via), Look) || Peer <- Far],
      links => [link(Node, Peer) || Peer <- Neighbours],
      relayed_bytes => case Its of [_, _ | _] -> 40000; _ -> 0 end, relayed_circuits => 3,
      unreachable => [],
      machine => #{wake_up_us => some(3000, {Node, Look}), run_queue => some(4, {Look, Node}),
                   memory_bytes => 40000000 + some(9000000, {Node, Look div 4}),
                   processes => 200 + some(90, Node)}}.

%% One node beyond the gateway, for each second node.
far(Node, Gateway, Groups, Neighbours) ->
    Beyond = lists:usort(lists:append([Members || Members <- maps:values(Groups),
                                                  lists:member(Gateway, Members)]))
        -- [Node | Neighbours],
    [lists:nth(1 + some(length(Beyond), Node), Beyond) || Beyond =/= [], some(2, Node) =:= 0].

peer(Node, Peer, Via, Look) ->
    Out = case some(3, {Node, Peer}) of
              0 -> 0;
              Order -> trunc(math:pow(40, Order + 1)) + some(5000, {Node, Peer, Look})
          end,
    #{node => Peer, via => Via, state => up, bytes_out => Out, bytes_in => Out div 3,
      queued_bytes => 0, suspended => 0, resumes => 0}.

link(Node, Peer) ->
    #{node => Peer, state => up, ups => 0, rtt_us => 80 + some(400, lists:sort([Node, Peer])),
      queued_bytes => 0, lanes => [100], last_error => "none"}.

some(Below, What) -> erlang:phash2(What, Below).

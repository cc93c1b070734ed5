%% SPDX-License-Identifier: Apache-2.0
%% @doc Recordings in files: bounded, read in part, and read as far as they are whole. And what an
%% hour of a large cluster takes.
-module(weft_ops_recording_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MINUTE_MS, 60000).
-define(PERIOD_MS, 2000).
-define(HOUR_BYTES, 50 * 1000 * 1000).
%% So long a dashboard reads at most (`weft_dashboard_past').
-define(READ_MS, 10000).

in_files_test_() ->
    [{Text, {setup, fun directory/0, fun removed/1, fun(Dir) -> ?_test(Test(Dir)) end}}
     || {Text, Test} <-
            [{"what was written is read", fun what_was_written_is_read/1},
             {"only events are read", fun only_events_are_read/1},
             {"the picture as it was", fun the_picture_as_it_was/1},
             {"a gap is told", fun a_gap_is_told/1},
             {"a file that was cut off loses its last chunk", fun a_file_that_was_cut_off/1},
             {"a picture in several chunks is read whole", fun a_picture_in_several_chunks/1},
             {"a time of which nothing can be read is a gap", fun a_gap_of_damaged_chunks/1},
             {"a damaged chunk is left out and told", fun a_damaged_chunk/1},
             {"names are made for no chunk of others", fun no_more_names_than_so_many/1},
             {"names are made once for all reads", fun no_more_names_by_reading_again/1},
             {"the oldest files are deleted", fun the_oldest_files_are_deleted/1},
             {"what is new stays when the clock was set back", fun what_is_new_stays/1},
             {"a chunk that is too large takes no file away", fun a_chunk_that_is_too_large/1},
             {"other files may be called anything", fun other_files_may_be_called_anything/1},
             {"a full disk gets no files", fun a_full_disk_gets_no_files/1},
             {"no recording is an error in words", fun no_recording/1},
             {"each event is written once", fun each_event_once/1}]].

what_was_written_is_read(Dir) ->
    write(Dir, [[{1000, {silent, a}}, {2000, {silent, b}}], [{70000, {silent, c}}]]),
    ?assertEqual({ok, {1000, 70000}}, weft_ops_recording:span(Dir)),
    ?assertEqual({[{1000, {silent, a}}, {2000, {silent, b}}, {70000, {silent, c}}], []},
                 all(Dir, {0, infinity})),
    ?assertEqual({[{2000, {silent, b}}], []}, all(Dir, {1001, 69999})).

only_events_are_read(Dir) ->
    [One, Two, Three] = [event(AtMs) || AtMs <- [900, 1, 2]],
    write(Dir, [[{1000, {silent, a}}, {1000, {event, One}}], [{2000, {silent, b}}],
                [{70000, {event, Two}}, {71000, {event, Three}}]]),
    ?assertEqual({ok, [One, Two], []}, weft_ops_recording:events(Dir, {1000, 70500})).

event(AtMs) -> #{at_ms => AtMs, kind => silent, node => a, about => none, text => <<>>}.

a_chunk_that_is_too_large(Dir) ->
    Files = write(Dir, [[{1000, {silent, a}}]]),
    ?assertEqual({error, efbig, Files},
                 weft_ops_recording_files:append(2000, rand:bytes(1048577), Files)),
    ?assertEqual({[{1000, {silent, a}}], []}, all(Dir, {0, infinity})).

the_picture_as_it_was(Dir) ->
    Sample = #{node => a, at_ms => 5},
    Pictures = [{1000, #{nodes => #{a => Sample, b => silent}, agents => #{{node, a} => a},
                         alarms => []}},
                {3000, #{nodes => #{a => silent}, agents => #{{node, a} => none},
                         alarms => [#{id => {silent, a, a}, text => <<"gone">>}]}},
                {70000, #{nodes => #{}, agents => #{}, alarms => []}}],
    {[One, Two, Three], _} = lists:mapfoldl(fun({AtMs, Picture}, Reel0) ->
                                                {Entries, Reel} =
                                                    weft_ops_reel:entries({AtMs, Picture}, [],
                                                                          Reel0),
                                                {[{AtMs, Entry} || Entry <- Entries], Reel}
                                            end, weft_ops_reel:new(), Pictures),
    write(Dir, [One ++ Two, Three]),
    ?assertEqual([{3000, {gone, b}}, {3000, {silent, a}}], lists:sublist(Two, 2)),
    [?assertEqual({ok, Picture}, weft_ops_recording:picture(Dir, AtMs + 500))
     || {AtMs, Picture} <- Pictures],
    ?assertMatch({error, "nothing was recorded in " ++ _}, weft_ops_recording:picture(Dir, 999)).

%% What changes later is in the last one of them.
a_picture_in_several_chunks(Dir) ->
    Sample = fun(Node, AtMs) -> #{node => Node, at_ms => AtMs} end,
    write(Dir, [[{1000, {sample, Sample(Node, 900)}} || Node <- [a, b, c]],
                [{61000, {sample, Sample(a, 60900)}}],
                [{61000, {sample, Sample(b, 60900)}}, {62000, {sample, Sample(a, 61900)}}]]),
    [?assertEqual({ok, (weft_ops_reel:blank())#{nodes := #{a => Sample(a, LastMs),
                                                           b => Sample(b, 60900)}}},
                  weft_ops_recording:picture(Dir, AtMs))
     || {AtMs, LastMs} <- [{61000, 60900}, {62500, 61900}]].

%% Of 2 s between samples: an hour within a chunk, as of a node that stood still; and a minute
%% between two of them, as of one that ended and lost what it had gathered. What is gathered now
%% comes later.
a_gap_is_told(Dir) ->
    write(Dir, [[row(0), row(2000), row(3602000)], [row(3604000)], [row(3664000)]]),
    [?assertEqual({ok, pictured(Before)}, weft_ops_recording:picture(Dir, AtMs))
     || {AtMs, Before} <- [{1999, 0}, {18000, 2000}, {3602000, 3602000}, {3603999, 3602000},
                           {3664000, 3664000}, {3740000, 3664000}]],
    [?assertEqual({gap, {FromMs, ToMs}, pictured(FromMs)}, weft_ops_recording:picture(Dir, AtMs))
     || {AtMs, FromMs, ToMs} <- [{18001, 2000, 3602000}, {3601999, 2000, 3602000},
                                 {3620001, 3604000, 3664000}, {3663999, 3604000, 3664000},
                                 {3740001, 3664000, infinity}]].

row(AtMs) -> {AtMs, {sample, #{node => a, at_ms => AtMs, period_ms => 2000}}}.

pictured(AtMs) ->
    {AtMs, {sample, Sample}} = row(AtMs),
    (weft_ops_reel:blank())#{nodes := #{a => Sample}}.

%% As after a crash while one was written, and of a bad disk.
a_gap_of_damaged_chunks(Dir) ->
    Chunks = [One, Two, Three, Four] = [[row(0), row(2000)], [row(4000), row(60000)],
                                        [row(64000), row(120000)], [row(124000)]],
    write(Dir, Chunks),
    {ok, [{Path, _}]} = weft_ops_recording_files:list(Dir),
    Bytes = fun(Rows) -> binary_to_list(encoded(Rows)) end,
    Written = fun(Parts) ->
                  ok = file:write_file(Path, Parts),
                  [weft_ops_recording:picture(Dir, AtMs) || AtMs <- [12000, 30000, 90000, 124000]]
              end,
    CutOff = lists:droplast(Bytes(Two)),
    ?assertEqual([{ok, pictured(2000)}, {gap, {2000, infinity}, pictured(2000)},
                  {gap, {2000, infinity}, pictured(2000)}, {gap, {2000, infinity}, pictured(2000)}],
                 Written([Bytes(One), CutOff])),
    Wrong = fun(Rows) -> lists:droplast(Bytes(Rows)) ++ "x" end,
    ?assertEqual([{ok, pictured(2000)}, {gap, {2000, 64000}, pictured(2000)},
                  {gap, {2000, 124000}, pictured(2000)}, {ok, pictured(124000)}],
                 Written([Bytes(One), Wrong(Two), Wrong(Three), Bytes(Four)])),
    [?assertMatch({error, _}, Read) || Read <- Written([Wrong(One), Wrong(Two)])].

a_file_that_was_cut_off(Dir) ->
    write(Dir, [[{1000, {silent, a}}], [{2000, {silent, b}}]]),
    {ok, [{Path, Size}]} = weft_ops_recording_files:list(Dir),
    {ok, Bytes} = file:read_file(Path),
    First = encoded([{1000, {silent, a}}]),
    [begin
         ok = file:write_file(Path, binary:part(Bytes, 0, Left)),
         {Entries, Problems} = all(Dir, {0, infinity}),
         ?assertEqual([{1000, {silent, a}}], Entries),
         ?assertEqual(Left =/= byte_size(First), Problems =/= [])
     end || Left <- lists:seq(byte_size(First), Size - 1)].

a_damaged_chunk(Dir) ->
    write(Dir, [[{1000, {silent, a}}], [{2000, {silent, b}}]]),
    {ok, [{Path, Size}]} = weft_ops_recording_files:list(Dir),
    {ok, Bytes} = file:read_file(Path),
    Half = Size div 2 - 3,
    <<Before:Half/binary, Byte, After/binary>> = Bytes,
    ok = file:write_file(Path, <<Before/binary, (Byte bxor 1), After/binary>>),
    {[{2000, {silent, b}}], [Problem]} = all(Dir, {0, infinity}),
    ?assertMatch({match, _}, re:run(Problem, "at byte 29: its checksum is wrong")).

%% The first one has a new name, and then what can not be read, with the right checksum.
no_more_names_than_so_many(Dir) ->
    [One, Two] = [iolist_to_binary(["weft_ops_no_such_", Which, integer_to_list(
                                        erlang:unique_integer([positive]))])
                  || Which <- ["one_", "two_"]],
    ok = file:write_file(filename:join(Dir, "weft-0000000002000-0.rec"),
                         [made_of(1000, [of_name(Two)]), made_of(2000, [of_name(One), "?"])]),
    ?assertMatch({error, _}, weft_ops_recording:picture(Dir, 2500)),
    ?assertError(badarg, binary_to_existing_atom(Two)),
    ?assertEqual(One, atom_to_binary(binary_to_existing_atom(One))),
    %% In the other order there is enough for both.
    ?assertMatch({[{1000, _}], [_]}, all(Dir, {0, infinity})).

%% As a node does that has read nothing yet.
no_more_names_by_reading_again(Dir) ->
    Names = [["weft_ops_no_such_", integer_to_list(I)] || I <- lists:seq(1, 45000)],
    Shape = iolist_to_binary([<<$l, 45000:32>> | [[<<$a, (iolist_size(Name)):32>>, Name]
                                                  || Name <- Names]]),
    <<High:7, Middle:7, Low:7>> = <<(byte_size(Shape)):21>>,
    Rows = [0, 128 bor Low, 128 bor Middle, High, Shape, 0],
    ok = file:write_file(filename:join(Dir, "weft-0000000001000-0.rec"), made_of(1000, Rows)),
    _ = persistent_term:erase(weft_ops_terms),
    Before = erlang:system_info(atom_count),
    [?assertMatch({[], [_]}, all(Dir, {0, infinity})) || _ <- [1, 2]],
    ?assertMatch(Made when Made >= 20000 andalso Made < 20500,
                 erlang:system_info(atom_count) - Before),
    _ = persistent_term:erase(weft_ops_terms).

made_of(AtMs, Rows) ->
    Packed = zlib:compress(Rows),
    Times = <<AtMs:64, AtMs:64>>,
    ["WREC", 1, Times, <<(byte_size(Packed)):32, (erlang:crc32([Times, Packed])):32>>, Packed].

%% The first row, of an atom.
of_name(Name) -> [0, 5 + byte_size(Name), $a, <<(byte_size(Name)):32>>, Name, 0].

the_oldest_files_are_deleted(Dir) ->
    Chunk = crypto:strong_rand_bytes(40000),
    Keep = fun(AtMs, Files) ->
               {ok, Next} = weft_ops_recording_files:append(AtMs, Chunk, Files),
               {ok, Listed} = weft_ops_recording_files:list(Dir),
               ?assert(lists:sum([Size || {_, Size} <- Listed]) =< 1048576),
               Next
           end,
    ok = file:write_file(filename:join(Dir, "notes.txt"), "mine"),
    _ = lists:foldl(Keep, weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}),
                    lists:seq(1, 60)),
    {ok, [{Oldest, _} | _] = Left} = weft_ops_recording_files:list(Dir),
    %% Two chunks fit into a tenth of all, and 26 into all.
    ?assertEqual(13, length(Left)),
    ?assertEqual("weft-0000000000035-0.rec", filename:basename(Oldest)),
    ?assert(filelib:is_file(filename:join(Dir, "notes.txt"))).

%% By a day. What was written before that goes, and what is written now does not.
what_is_new_stays(Dir) ->
    Chunk = crypto:strong_rand_bytes(40000),
    Write = fun(AtMs, Files) ->
                {ok, Next} = weft_ops_recording_files:append(AtMs, Chunk, Files),
                Next
            end,
    Files = lists:foldl(Write, weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}),
                        lists:seq(86400001, 86400060)),
    _ = lists:foldl(Write, Files, lists:seq(1, 20)),
    {ok, Left} = weft_ops_recording_files:list(Dir),
    ?assertEqual([lists:flatten(io_lib:format("weft-~13..0b-0.rec", [AtMs]))
                  || AtMs <- lists:seq(1, 19, 2)],
                 lists:sublist([filename:basename(Path) || {Path, _} <- Left], 10)).

%% A name in Japanese, and one that is no text.
other_files_may_be_called_anything(Dir) ->
    [ok = file:write_file(filename:join(list_to_binary(Dir), Name), "mine")
     || Name <- [<<"記録.rec"/utf8>>, <<"weft-", 255, ".rec">>]],
    write(Dir, [[{1000, {silent, a}}]]),
    ?assertEqual({[{1000, {silent, a}}], []}, all(Dir, {0, infinity})).

%% What is written to /dev/full is refused as by a full disk.
a_full_disk_gets_no_files(Dir) ->
    ok = file:make_symlink("/dev/full", filename:join(Dir, "weft-0000000000007-0.rec")),
    Files = weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}),
    ?assertMatch({error, enospc, _}, weft_ops_recording_files:append(7, <<"chunk">>, Files)),
    ?assertEqual({ok, []}, file:list_dir(Dir)).

no_recording(Dir) ->
    ?assertMatch({error, "there is no recording in " ++ _}, weft_ops_recording:span(Dir)),
    ?assertMatch({error, "there is no recording in " ++ _},
                 weft_ops_recording:events(Dir, {0, infinity})),
    {error, Text} = weft_ops_recording:span(filename:join(Dir, "none")),
    ?assertMatch({match, _}, re:run(Text, "can not be read: no such file or directory")),
    ok = file:write_file(filename:join(Dir, "weft-0000000000001-0.rec"), "something else, longer"
                         " than a header"),
    {[], [Problem]} = all(Dir, {0, infinity}),
    ?assertMatch({match, _}, re:run(Problem, "this is no part of a recording")).

each_event_once(_Dir) ->
    Picture = #{nodes => #{}, agents => #{}, alarms => []},
    Events = [event(1)],
    {First, Reel0} = weft_ops_reel:entries({1000, Picture}, Events, weft_ops_reel:new()),
    ?assertEqual([{event, hd(Events)}], [Entry || {event, _} = Entry <- First]),
    ?assertMatch({[{agents, _}, {alarms, []}], _},
                 weft_ops_reel:entries({3000, Picture}, Events, weft_ops_reel:forget(Reel0))).

%% --- an hour ------------------------------------------------------------------------------------

%% The events of it are read within the time that a dashboard has for that.
%% Two hundred nodes with ten peers each, of which three exchange messages, and links of four lanes.
%% The others send what keeps a connection alive. Round trips and memory change all the time.
an_hour_of_a_large_cluster_fits_test_() ->
    {setup, fun directory/0, fun removed/1,
     fun(Dir) -> {timeout, 120, ?_test(an_hour(Dir))} end}.

an_hour(Dir) ->
    Nodes = [node_name(I) || I <- lists:seq(1, 200)],
    Rows = [{AtMs, {sample, made_up(Node, Nodes, AtMs)}}
            || AtMs <- lists:seq(0, ?MINUTE_MS - 1, ?PERIOD_MS), Node <- Nodes]
        ++ [{?MINUTE_MS, {event, event(?MINUTE_MS)}}],
    Minute = encoded(Rows),
    ?assert(60 * byte_size(Minute) < ?HOUR_BYTES),
    ok = file:write_file(filename:join(Dir, "weft-0000000000000-0.rec"),
                         lists:duplicate(60, Minute)),
    _ = erlang:statistics(runtime),
    ?assertEqual({ok, lists:duplicate(60, event(?MINUTE_MS)), []},
                 weft_ops_recording:events(Dir, {0, infinity})),
    {_Total, ProcessorMs} = erlang:statistics(runtime),
    ?assert(ProcessorMs < ?READ_MS).

node_name(I) -> list_to_atom("node" ++ integer_to_list(I) ++ "@host" ++ integer_to_list(I div 8)).

made_up(Node, Nodes, AtMs) ->
    At = erlang:phash2(Node, length(Nodes)),
    Peers = [{lists:nth((At + Distance * Distance) rem length(Nodes) + 1, Nodes), Distance}
             || Distance <- lists:seq(1, 10)],
    #{node => Node, at_ms => 1700000000000 + AtMs + any(20), period_ms => 1999 + any(3),
      uptime_ms => 1000000 + AtMs, groups => [group], relayed_bytes => any(100000),
      relayed_circuits => 3, unreachable => [], cuts => [], conflicts => 0, told => [],
      machine => #{wake_up_us => any(400), run_queue => any(3), processes => 150 + any(6),
                   memory_bytes => 60000000 + any(4000000)},
      peers => [made_up_peer(Peer, Distance) || {Peer, Distance} <- Peers],
      links => [made_up_link(Peer, Distance) || {Peer, Distance} <- Peers]}.

made_up_peer(Node, Distance) ->
    Bytes = case Distance =< 3 of
                true -> 20000 + any(60000);
                false -> 9 * any(2)
            end,
    #{node => Node, via => Node, state => up, bytes_out => Bytes, bytes_in => Bytes - any(100),
      queued_bytes => 0, suspended => 0, resumes => 0, reroutes => 0}.

made_up_link(Node, Distance) ->
    Lanes = case Distance =< 3 of
                true -> [5000 + any(20000) || _ <- lists:seq(1, 4)];
                false -> [30 * any(2), 0, 0, 0]
            end,
    #{node => Node, state => up, ups => 0, rtt_us => 200 + any(100), queued_bytes => 0,
      last_error => "the other side closed it", lanes => Lanes}.

any(Below) -> rand:uniform(Below) - 1.

%% --- steps --------------------------------------------------------------------------------------

write(Dir, Chunks) ->
    lists:foldl(fun([{FromMs, _} | _] = Rows, Files) ->
                    {ok, Next} = weft_ops_recording_files:append(FromMs, encoded(Rows), Files),
                    Next
                end, weft_ops_recording_files:new(#{dir => Dir, bytes_max => 1048576}), Chunks).

encoded(Rows) ->
    {ok, Chunk} = weft_ops_chunk:add(Rows, weft_ops_chunk:new()),
    weft_ops_chunk:encode(Chunk).

all(Dir, Span) ->
    {ok, Entries, Problems} = weft_ops_recording:fold(Dir, Span,
                                                      fun(Entry, Acc) -> [Entry | Acc] end, []),
    {lists:reverse(Entries), Problems}.

directory() ->
    Dir = filename:join([filename:basedir(user_cache, "weft"), "test",
                         integer_to_list(erlang:system_time(nanosecond))]),
    ok = filelib:ensure_dir(filename:join(Dir, "file")),
    Dir.

removed(Dir) -> ok = file:del_dir_r(Dir).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Reads what `weft_ops_recorder' has written, on any node or none: samples, events, alarms,
%% and the picture of the cluster as it was.
%%
%% A chunk of a file that is damaged is left out, and so is the end of a file that was cut off. Both
%% are told beside the result. Nothing that is in a file does more harm than that: it may be of
%% anybody. For the names of nodes and groups that do not exist here at most 20,000 atoms are made
%% by a call, and by all calls as long as the node runs.
-module(weft_ops_recording).

-export([span/1, fold/4, events/2, picture/2]).
-export_type([entry/0]).

-define(ATOMS_MAX, 20000).
%% What `weft_ops_recorder' has gathered for so long is written, and so long it waits for agents.
-define(CHUNK_MS, 60000).
-define(LATE_MS, 10000).
-define(PERIODS, 3).
%% So many chunks in a row that can not be read are a gap. Each costs a look at all of them.
-define(DAMAGED_MAX, 10).

%% What was written when.
-type entry() :: {AtMs :: integer(), weft_ops_reel:entry()}.
%% The file, which is open, its name, where the next chunk begins; what may still be made.
-record(reading, {file :: file:io_device() | undefined,
                  path :: file:filename_all() | undefined,
                  at = 0 :: non_neg_integer(),
                  budget :: non_neg_integer(),
                  problems = [] :: [string()]}).

%% @doc The times of the first and of the last entry, in milliseconds of the system time.
-spec span(file:filename_all()) ->
          {ok, {FromMs :: integer(), ToMs :: integer()}} | {error, Text :: string()}.
span(Dir) ->
    Chunks = fun(#{from_ms := FromMs, to_ms := ToMs}, none, R) -> {{FromMs, ToMs}, R};
                (#{from_ms := FromMs, to_ms := ToMs}, {First, Last}, R) ->
                     {{min(FromMs, First), max(ToMs, Last)}, R}
             end,
    case chunks(Dir, Chunks, none, 0) of
        {ok, none, _Reading} -> {error, empty(Dir)};
        {ok, Span, _Reading} -> {ok, Span};
        {error, Text} -> {error, Text}
    end.

%% @doc Folds over all entries from FromMs to ToMs, both included, in the order in which they were
%% written. Each chunk (about a minute) begins with the whole picture, so fold over entries since a
%% minute before to know all nodes, or begin with `picture/2'. Problems says what could not be read.
-spec fold(file:filename_all(), {FromMs :: integer(), ToMs :: integer() | infinity},
           fun((entry(), Acc) -> Acc), Acc) ->
          {ok, Acc, Problems :: [string()]} | {error, Text :: string()}.
fold(Dir, Span, Fun, Acc0) ->
    case fold(Dir, Span, Fun, Acc0, {all, ?ATOMS_MAX}) of
        {ok, Acc, #reading{problems = Problems}} -> {ok, Acc, Problems};
        {error, Text} -> {error, Text}
    end.

%% @doc The events that were written from FromMs to ToMs, both included, in that order. As nothing
%% else is unpacked, it takes a small part of the time of fold/4.
-spec events(file:filename_all(), {FromMs :: integer(), ToMs :: integer() | infinity}) ->
          {ok, [weft_ops_events:event()], Problems :: [string()]} | {error, Text :: string()}.
events(Dir, Span) ->
    Add = fun({_AtMs, {event, Event}}, Events) -> [Event | Events] end,
    case fold(Dir, Span, Add, [], {event, ?ATOMS_MAX}) of
        {ok, Events, #reading{problems = Problems}} -> {ok, lists:reverse(Events), Problems};
        {error, Text} -> {error, Text}
    end.

%% Of all entries, or of those with a tag.
fold(Dir, {FromMs, ToMs}, Fun, Acc0, {Tag, Budget}) ->
    %% An integer is smaller than any atom.
    Chunk = fun(#{from_ms := First, to_ms := Last} = Header, Acc, Reading)
                  when Last >= FromMs, First =< ToMs ->
                    entries(Header, Tag, Acc, Reading,
                            fun({AtMs, _} = Entry, Part) when AtMs >= FromMs, AtMs =< ToMs ->
                                    Fun(Entry, Part);
                               (_Outside, Part) ->
                                    Part
                            end);
               (_Outside, Acc, Reading) ->
                    {Acc, Reading}
            end,
    chunks(Dir, Chunk, Acc0, Budget).

%% @doc The picture as `weft_ops:picture/0' would have been at that time. In a gap: between which
%% entries, and the picture before. It is one from when the next entry was missed and, after the
%% last one, had to be written. What can not be read is a gap, too, if it is no more than ten chunks
%% in a row.
-spec picture(file:filename_all(), AtMs :: integer()) ->
          {ok, weft_ops_picture:picture()}
          | {gap, {FromMs :: integer(), ToMs :: integer() | infinity}, weft_ops_picture:picture()}
          | {error, Text :: string()}.
picture(Dir, AtMs) -> picture(Dir, AtMs, AtMs, {0, ?ATOMS_MAX}).

%% From the last chunk that begins until BeginMs. Damaged: how many begin later and can not be read.
picture(Dir, AtMs, BeginMs, {Damaged, Budget}) ->
    %% An integer is smaller than any atom.
    Around = fun(#{from_ms := FromMs}, {Before, Next}, R) when FromMs > AtMs ->
                     {{Before, min(FromMs, Next)}, R};
                (#{from_ms := FromMs}, {Before, Next}, R) when FromMs > BeginMs ->
                     {{Before, Next}, R};
                (#{from_ms := FromMs}, {none, Next}, R) ->
                     {{FromMs, Next}, R};
                (#{from_ms := FromMs}, {Before, Next}, R) ->
                     {{max(FromMs, Before), Next}, R}
             end,
    case chunks(Dir, Around, {none, infinity}, 0) of
        {ok, {none, _Next}, _Reading} ->
            {error, lists:flatten(io_lib:format("nothing was recorded in ~ts at that time or "
                                                "before", [Dir]))};
        {ok, {FromMs, NextMs}, _Reading} ->
            Read = fold(Dir, {FromMs, before(NextMs)}, entry_at(AtMs),
                        {weft_ops_reel:blank(), none, NextMs}, {all, Budget}),
            case pictured(AtMs, Damaged, Read) of
                {unreadable, Text, Left} when Damaged < ?DAMAGED_MAX ->
                    or_error(Text, picture(Dir, AtMs, FromMs - 1, {Damaged + 1, Left}));
                {unreadable, Text, _Left} ->
                    {error, Text};
                Pictured ->
                    Pictured
            end;
        {error, Text} ->
            {error, Text}
    end.

or_error(Text, {error, _OfWhatWasBefore}) -> {error, Text};
or_error(_Text, Picture) -> Picture.

before(infinity) -> infinity;
before(NextMs) -> NextMs - 1.

%% To the picture at that time, the time of its last entry, and of the next one.
entry_at(AtMs) ->
    fun({Ms, Entry}, {Picture, _LastMs, NextMs}) when Ms =< AtMs ->
            {weft_ops_reel:picture(Entry, Picture), Ms, NextMs};
       ({Ms, _Later}, {Picture, LastMs, NextMs}) ->
            {Picture, LastMs, min(Ms, NextMs)}
    end.

pictured(_AtMs, _Damaged, {ok, {_, none, _}, #reading{problems = Problems, budget = Left}}) ->
    {unreadable, hd(Problems ++ ["what was recorded then is not there any more"]), Left};
pictured(AtMs, Damaged, {ok, {Picture, LastMs, NextMs}, _Reading}) ->
    UnwrittenMs = case {Damaged, NextMs} of
                      {0, infinity} -> ?CHUNK_MS;
                      _WasWritten -> 0
                  end,
    case AtMs - LastMs > longest_ms(Picture) + UnwrittenMs of
        true -> {gap, {LastMs, NextMs}, Picture};
        false -> {ok, Picture}
    end;
pictured(_AtMs, _Damaged, {error, Text}) ->
    {error, Text}.

%% How long it may take until the next entry: they come each period, as far as agents answer.
longest_ms(#{nodes := Nodes}) ->
    case [Ms || #{period_ms := Ms} <- maps:values(Nodes), is_integer(Ms)] of
        [] -> ?CHUNK_MS + ?LATE_MS;
        PeriodsMs -> ?PERIODS * lists:max(PeriodsMs) + ?LATE_MS
    end.

%% --- chunks -----------------------------------------------------------------------------------

%% Fun is given the header of each chunk, and returns the accumulator and the reading.
chunks(Dir, Fun, Acc0, Budget) ->
    case weft_ops_recording_files:list(Dir) of
        {ok, []} ->
            {error, empty(Dir)};
        {ok, Files} ->
            {Acc, #reading{problems = Problems} = Read} =
                lists:foldl(fun(File, {Acc1, Reading}) -> file(File, Fun, Acc1, Reading) end,
                            {Acc0, #reading{budget = Budget}}, [Path || {Path, _Size} <- Files]),
            {ok, Acc, Read#reading{problems = lists:reverse(Problems)}};
        {error, Reason} ->
            {error, lists:flatten(io_lib:format("the directory ~ts can not be read: ~ts",
                                                [Dir, file:format_error(Reason)]))}
    end.

empty(Dir) -> lists:flatten(io_lib:format("there is no recording in ~ts", [Dir])).

file(Path, Fun, Acc0, Reading) ->
    case file:open(Path, [read, raw, binary]) of
        {ok, File} ->
            try next(Fun, Acc0, Reading#reading{file = File, path = Path, at = 0})
            after file:close(File)
            end;
        {error, Reason} ->
            {Acc0, problem(file:format_error(Reason), Reading#reading{path = Path, at = 0})}
    end.

next(Fun, Acc0, #reading{at = At} = Reading) ->
    case read(weft_ops_chunk:header_bytes(), Reading) of
        {ok, Bytes} ->
            case weft_ops_chunk:header(Bytes) of
                {ok, #{size_bytes := Size} = Header} ->
                    Body = At + weft_ops_chunk:header_bytes(),
                    {Acc, After} = Fun(Header, Acc0, Reading#reading{at = Body}),
                    next(Fun, Acc, After#reading{at = Body + Size});
                %% Where the next one begins is not known.
                {error, Text} ->
                    {Acc0, problem(Text, Reading)}
            end;
        eof ->
            {Acc0, Reading};
        {error, Text} ->
            {Acc0, problem(Text, Reading)}
    end.

entries(#{size_bytes := Size} = Header, Tag, Acc, #reading{budget = Budget} = Reading, Fun) ->
    case read(Size, Reading) of
        {ok, Packed} ->
            case weft_ops_chunk:decode(Header, Packed, Tag, Budget) of
                {ok, Entries, Left} ->
                    {lists:foldl(Fun, Acc, Entries), Reading#reading{budget = Left}};
                {error, Text, Left} ->
                    {Acc, problem(Text, Reading#reading{budget = Left})}
            end;
        eof ->
            {Acc, problem("the file ends here: a part is missing", Reading)};
        {error, Text} ->
            {Acc, problem(Text, Reading)}
    end.

read(Size, #reading{file = File, at = At}) ->
    case file:pread(File, At, Size) of
        {ok, Bytes} when byte_size(Bytes) =:= Size -> {ok, Bytes};
        {ok, _Part} -> {error, "the file ends here: a part is missing"};
        eof -> eof;
        {error, Reason} -> {error, file:format_error(Reason)}
    end.

problem(Text, #reading{path = Path, at = At, problems = Problems} = Reading) ->
    Said = lists:flatten(io_lib:format("~ts, at byte ~b: ~ts", [Path, At, Text])),
    Reading#reading{problems = [Said | Problems]}.

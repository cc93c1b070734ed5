%% SPDX-License-Identifier: Apache-2.0
%% @doc Files of `weft_kv_archive': written page by page from a store, and brought into one. Of a
%% file never more than a page is in memory.
%%
%% A file has its name only when all of it is on disk; until then it has another one beside it
%% (`.part'). One that is to be imported is first read from end to end: if it is damaged or not
%% whole, nothing of it is brought into the store. (Not so what comes from standard input: of that
%% all is imported that is before the damage.)
%%
%% The store is asked by a function, so that the files may be elsewhere than the store: `weft kv'
%% asks another node.
-module(weft_kv_archive_file).

-export([export/3, import/3, backup/2, backup/3, here/3]).
-export_type([ask/0, options/0, report/0]).

-type ask() :: fun((module(), atom(), [term()]) -> {ok, Result :: term()} | {error, term()}).
-type file() :: file:filename() | standard_io.
-type options() :: #{buckets => [binary()], into => binary(), check => boolean(),
                     overwrite => boolean()}.
%% `buckets': these, instead of all. Of an import: `into', the name of the bucket where that one is
%% to go; `check', the file is read, and the store is not asked; `overwrite', see `weft_kv_import'.
-type report() :: #{file := file(), bytes := non_neg_integer(), about => weft_kv_archive:about(),
                    buckets := #{binary() => weft_kv_import:counts()},
                    later => [file:filename()]}.
%% `later': of a backup with `keep', the others in its directory that have a later time. The clock
%% was ahead when they were made, or is behind now.

-define(CHUNK, 262144).
-define(BATCH_RECORDS, 200).
-define(BATCH_BYTES, 1000000).
%% A backup that is not checked, or has not passed: it does not count as one. The next one takes its
%% place.
-define(UNCHECKED, "weft_kv_unchecked.archive").

%% @doc The store of this node.
-spec here(module(), atom(), [term()]) -> {ok, term()}.
here(Module, Function, Arguments) -> {ok, apply(Module, Function, Arguments)}.

%% --- export -----------------------------------------------------------------------------------

%% @doc Writes what the buckets have to a file.
-spec export(file(), options(), ask()) -> {ok, report()} | {error, term()}.
export(File, Options, Ask) ->
    case chosen(Options, Ask) of
        {ok, Buckets} ->
            case opened(File) of
                {ok, Out} -> exported(Buckets, Out, Ask);
                {error, Reason} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

%% The buckets of the store, by the names that they have in files.
chosen(Options, Ask) ->
    case Ask(weft_kv_app, buckets, []) of
        {ok, {ok, All}} ->
            There = [{{atom_to_binary(Name), maps:get(consistency, Bucket, eventual)}, Name}
                     || {Name, Bucket} <- lists:sort(maps:to_list(All))],
            named(maps:get(buckets, Options, [Name || {{Name, _}, _} <- There]), There);
        {ok, {error, Reason}} -> {error, Reason};
        {error, Reason} -> {error, Reason}
    end.

named(Names, There) ->
    case Names -- [Name || {{Name, _}, _} <- There] of
        [] -> {ok, [Pair || {{Name, _}, _} = Pair <- There, lists:member(Name, Names)]};
        [Name | _] -> {error, {unknown_bucket, Name}}
    end.

exported(Buckets, Out, Ask) ->
    About = #{created_ms => erlang:system_time(millisecond), node => of_node(Ask),
              buckets => [Bucket || {Bucket, _} <- Buckets]},
    {Bytes, Writer} = weft_kv_archive:writer(About),
    case written(Bytes, {Writer, Out, 0}) of
        {ok, State} -> ended(of_buckets(Buckets, Ask, State, #{}), Out, About);
        {error, Reason} -> ended({error, Reason}, Out, About)
    end.

of_node(Ask) ->
    case Ask(erlang, node, []) of
        {ok, Node} -> atom_to_binary(Node);
        {error, _} -> <<>>
    end.

ended({ok, {Writer, Out, Size}, Counts}, _, About) ->
    Last = weft_kv_archive:close(Writer),
    case first_error([fun() -> out(Last, Out) end, fun() -> kept(Out) end]) of
        ok -> {ok, #{file => element(1, Out), bytes => Size + iolist_size(Last), about => About,
                     buckets => Counts}};
        {error, Reason} ->
            ok = dropped(Out),
            {error, Reason}
    end;
ended({error, Reason}, Out, _About) ->
    ok = dropped(Out),
    {error, Reason}.

of_buckets([], _Ask, State, Counts) ->
    {ok, State, Counts};
of_buckets([{{Name, _} = Bucket, Atom} | Buckets], Ask, State, Counts) ->
    case add([weft_kv_archive:bucket(Bucket)], State) of
        {ok, Begun} ->
            case pages(Atom, start, Ask, Begun, 0) of
                {ok, Next, Count} ->
                    of_buckets(Buckets, Ask, Next,
                               Counts#{Name => #{records => Count, kept => 0}});
                {error, Reason} -> {error, {bucket, Name, Reason}}
            end;
        {error, Reason} -> {error, Reason}
    end.

pages(_Bucket, done, _Ask, State, Count) ->
    {ok, State, Count};
pages(Bucket, Cursor, Ask, State, Count) ->
    case Ask(weft_kv_export, page, [Bucket, Cursor]) of
        {ok, {ok, Bodies, Next}} ->
            case add(Bodies, State) of
                {ok, Added} -> pages(Bucket, Next, Ask, Added, Count + length(Bodies));
                {error, Reason} -> {error, Reason}
            end;
        {ok, {error, Reason}} -> {error, Reason};
        {error, Reason} -> {error, Reason}
    end.

add([], State) ->
    {ok, State};
add(Bodies, {Writer0, Out, Size}) ->
    case weft_kv_archive:add(Bodies, Writer0) of
        {ok, Bytes, Writer} -> written(Bytes, {Writer, Out, Size});
        {error, Reason} -> {error, Reason}
    end.

written(Bytes, {Writer, Out, Size}) ->
    case out(Bytes, Out) of
        ok -> {ok, {Writer, Out, Size + iolist_size(Bytes)}};
        {error, Reason} -> {error, Reason}
    end.

%% --- the file that is written -----------------------------------------------------------------

opened(standard_io) ->
    {ok, {standard_io, standard_io, none}};
opened(File) ->
    Part = lists:concat([File, ".", os:getpid(), ".", erlang:unique_integer([positive]), ".part"]),
    case file:open(Part, [raw, write, exclusive, binary]) of
        {ok, Device} -> {ok, {File, Device, Part}};
        {error, Reason} -> {error, {file, Part, Reason}}
    end.

out(Bytes, {File, Device, _}) ->
    case file:write(Device, Bytes) of
        ok -> ok;
        {error, Reason} -> {error, {file, File, Reason}}
    end.

kept({standard_io, _, _}) ->
    ok;
kept({File, Device, Part}) ->
    case first_error([fun() -> file:sync(Device) end, fun() -> file:close(Device) end,
                      fun() -> weft_durable_file:rename(Part, File) end]) of
        ok -> ok;
        {_NotOnDisk, Reason} -> {error, {file, File, Reason}}
    end.

dropped({standard_io, _, _}) ->
    ok;
dropped({_, Device, Part}) ->
    _ = file:close(Device),
    _ = file:delete(Part),
    ok.

first_error([]) -> ok;
first_error([Step | Steps]) ->
    case Step() of
        ok -> first_error(Steps);
        Failed -> Failed
    end.

%% --- import -----------------------------------------------------------------------------------

%% @doc Brings what is in a file into the store.
-spec import(file(), options(), ask()) -> {ok, report()} | {error, term()}.
import(standard_io, Options, Ask) ->
    read("/dev/stdin", standard_io, importing(Options, Ask));
import(File, #{check := true} = Options, _Ask) ->
    read(File, File, checking(Options));
import(File, Options, Ask) ->
    case read(File, File, checking(Options)) of
        {ok, _Whole} -> read(File, File, importing(Options, Ask));
        {error, Reason} -> {error, Reason}
    end.

%% What is known while a file is read. `into': the bucket of the store for what comes.
checking(Options) ->
    #{options => Options, about => none, targets => #{}, into => none,
      counts => #{}, batch => [], ask => none}.

importing(#{check := true} = Options, _Ask) -> checking(Options);
importing(Options, Ask) -> (checking(Options))#{ask := Ask}.

read(Path, File, State) ->
    case file:open(Path, [raw, read, binary]) of
        {ok, Device} ->
            try read(Device, weft_kv_archive:reader(), State, 0) of
                {ok, #{about := About, counts := Counts}, Bytes} ->
                    {ok, #{file => File, bytes => Bytes, about => About, buckets => Counts}};
                {error, {store, Reason}} -> {error, Reason};
                {error, Reason} -> {error, {file, File, Reason}}
            after file:close(Device)
            end;
        {error, Reason} -> {error, {file, File, Reason}}
    end.

read(Device, Reader0, State0, Size) ->
    case file:read(Device, max(?CHUNK, weft_kv_archive:wanted(Reader0))) of
        {ok, Bytes} ->
            case weft_kv_archive:read(Bytes, Reader0) of
                {ok, Items, Reader} ->
                    case items(Items, State0) of
                        {ok, State} -> read(Device, Reader, State, Size + byte_size(Bytes));
                        {error, Reason} -> {error, Reason}
                    end;
                {error, Reason} -> {error, Reason}
            end;
        eof ->
            case {weft_kv_archive:finished(Reader0), sent(State0)} of
                {ok, {ok, State}} -> {ok, State, Size};
                {{error, Reason}, _} -> {error, Reason};
                {ok, {error, Reason}} -> {error, Reason}
            end;
        {error, Reason} -> {error, Reason}
    end.

items([], State) ->
    {ok, State};
items([Item | Items], State0) ->
    case item(Item, State0) of
        {ok, State} -> items(Items, State);
        {error, Reason} -> {error, Reason}
    end.

item({about, About}, State) ->
    intended(State#{about := About});
item({bucket, {Name, _}}, State0) ->
    case sent(State0) of
        {ok, #{counts := Counts, targets := Targets} = State} ->
            New = maps:merge(#{Name => #{records => 0, kept => 0}}, Counts),
            case Targets of
                #{Name := Into} -> {ok, State#{into := {Name, Into}, counts := New}};
                #{} -> {ok, State#{into := none}}
            end;
        {error, Reason} -> {error, Reason}
    end;
item({record, _}, #{into := none} = State) ->
    {ok, State};
item({record, Body}, #{ask := none} = State) ->
    case weft_kv_archive:decode(Body) of
        {error, Reason} -> {error, Reason};
        _ -> {ok, counted(1, 0, State)}
    end;
item({record, Body}, #{batch := Batch} = State0) ->
    State = State0#{batch := [Body | Batch]},
    case length(Batch) + 1 >= ?BATCH_RECORDS orelse iolist_size(Batch) >= ?BATCH_BYTES of
        true -> sent(State);
        false -> {ok, State}
    end.

counted(Records, Kept, #{into := {Name, _}, counts := Counts} = State) ->
    #{Name := #{records := R, kept := K}} = Counts,
    State#{counts := Counts#{Name := #{records => R + Records, kept => K + Kept}}}.

sent(#{batch := []} = State) ->
    {ok, State};
sent(#{batch := Batch, ask := Ask, into := {From, Into}, options := Options} = State) ->
    Given = #{overwrite => maps:get(overwrite, Options, false), from => From},
    case Ask(weft_kv_import, records, [Into, lists:reverse(Batch), Given]) of
        {ok, {ok, #{records := Records, kept := Kept}}} ->
            {ok, counted(Records, Kept, State#{batch := []})};
        {ok, {error, Reason}} -> {error, {store, {bucket, atom_to_binary(Into), Reason}}};
        {error, Reason} -> {error, {store, Reason}}
    end.

%% --- where to ---------------------------------------------------------------------------------

%% Which bucket of the file goes to which of the store.
intended(#{about := #{buckets := In}, options := Options, ask := Ask} = State) ->
    Wanted = maps:get(buckets, Options, [Name || {Name, _} <- In]),
    case {Wanted -- [Name || {Name, _} <- In], Options, Ask} of
        {[Name | _], _, _} -> {error, {not_in_the_file, Name}};
        {[], #{into := _}, _} when length(Wanted) =/= 1 ->
            {error, {into_is_for_one_bucket, Wanted}};
        {[], _, none} ->
            {ok, State#{targets := maps:from_keys(Wanted, none)}};
        {[], _, _} ->
            Pairs = [{Bucket, maps:get(into, Options, element(1, Bucket))}
                     || {Name, _} = Bucket <- In, lists:member(Name, Wanted)],
            targets(Pairs, State)
    end.

targets(Pairs, #{ask := Ask} = State) ->
    case Ask(weft_kv_app, buckets, []) of
        {ok, {ok, All}} ->
            There = maps:from_list([{atom_to_binary(Name),
                                     {Name, maps:get(consistency, Bucket, eventual)}}
                                    || {Name, Bucket} <- maps:to_list(All)]),
            Targets = [{Name, target(Pair, There)} || {{Name, _}, _} = Pair <- Pairs],
            case [Wrong || {_, Wrong} <- Targets, is_tuple(Wrong)] of
                [] -> {ok, State#{targets := maps:from_list(Targets)}};
                [Wrong | _] -> {error, {store, Wrong}}
            end;
        {ok, {error, Reason}} -> {error, {store, Reason}};
        {error, Reason} -> {error, {store, Reason}}
    end.

target({{_, Kind}, Into}, There) ->
    case There of
        #{Into := {Atom, Kind}} -> Atom;
        #{Into := {_, Other}} -> {other_consistency, #{bucket => Into, there => Other,
                                                       in_the_file => Kind}};
        #{} -> {unknown_bucket, Into}
    end.

%% --- backup -----------------------------------------------------------------------------------

%% @doc As `backup/3', of the store of this node.
-spec backup(file:filename(), #{keep => pos_integer()}) -> {ok, report()} | {error, term()}.
backup(Dir, Options) -> backup(Dir, Options, fun here/3).

%% @doc All buckets in a new file of the directory, named by the time, and read again from end to
%% end. With `keep' only so many stay: this one, and the latest of those that are earlier. Others of
%% a later time stay too, and the report names them.
-spec backup(file:filename(), #{keep => pos_integer()}, ask()) ->
          {ok, report()} | {error, term()}.
backup(Dir, Options, Ask) ->
    Unchecked = filename:join(Dir, ?UNCHECKED),
    case {filelib:ensure_dir(Unchecked), export(Unchecked, #{}, Ask)} of
        {ok, {ok, Report}} ->
            case import(Unchecked, #{check => true}, Ask) of
                {ok, _} -> checked(Unchecked, Dir, Options, Report);
                {error, Reason} -> {error, Reason}
            end;
        {ok, {error, Reason}} -> {error, Reason};
        {{error, Reason}, _} -> {error, {file, Dir, Reason}}
    end.

checked(Unchecked, Dir, Options, Report) ->
    File = filename:join(Dir, file_name(os:system_time(millisecond))),
    case weft_durable_file:rename(Unchecked, File) of
        ok -> {ok, pruned(File, Options, Report#{file := File})};
        {_NotOnDisk, Reason} -> {error, {file, File, Reason}}
    end.

file_name(Ms) ->
    Time = calendar:system_time_to_rfc3339(Ms, [{unit, millisecond}, {offset, "Z"}]),
    "weft_kv_" ++ [Char || Char <- Time, Char =/= $:, Char =/= $-] ++ ".archive".

%% Nobody knows which clock was wrong, so of later ones none is deleted, nor are they counted.
pruned(New, #{keep := Keep}, Report) ->
    {Dir, Name} = {filename:dirname(New), filename:basename(New)},
    All = lists:sort(filelib:wildcard("weft_kv_????????T??????.???Z.archive", Dir)),
    Earlier = lists:reverse([Other || Other <- All, Other < Name]),
    lists:foreach(fun(File) -> _ = file:delete(filename:join(Dir, File)) end,
                  lists:nthtail(min(Keep - 1, length(Earlier)), Earlier)),
    Report#{later => [filename:join(Dir, Other) || Other <- All, Other > Name]};
pruned(_New, _Options, Report) ->
    Report.

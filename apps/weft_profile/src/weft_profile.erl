%% SPDX-License-Identifier: Apache-2.0
%% @doc Profiles of running nodes: what their schedulers did for some seconds, and which messages
%% went between them. Collected on the nodes, looked at elsewhere: the results are files.
%%
%% ```
%% weft_profile:run([node() | nodes()], #{seconds => 5, dir => "profile"}).
%% weft_profile:run([Node], #{file => "trace.json"}).
%% '''
%% `docs/guide/profile.md' says what is in the files. The nodes are traced for 40 ms of each
%% second unless `window_ms' and `every_ms' say otherwise: each event costs some microseconds of the
%% process that it is about.
-module(weft_profile).

-export([run/2, run/3, record/2, write/2]).
-export_type([options/0, result/0]).

%% What is recorded, for how long and how much (see `weft_profile_tracer:options()'), and where it
%% goes: trace.json, summary.html, flame.svg and speedscope in a directory, or the trace alone in a
%% file. Of the
%% trace no more than max_bytes are written.
-type options() :: #{seconds => number(), dir => file:filename(), file => file:filename(),
                     pids => all | pos_integer() | [pid()], events => pos_integer(),
                     rate => pos_integer(), bytes => pos_integer(), gc => boolean(),
                     procs => boolean(), ports => boolean(), sample_ms => pos_integer(),
                     window_ms => pos_integer(), every_ms => pos_integer(),
                     waiting => pos_integer(),
                     max_bytes => pos_integer(), code => weft_profile_collect:code()}.
-type recorded() :: {ok, weft_profile_recording:profile(), [weft_profile_collect:failure()]}
                  | {error, string()}.
-type result() :: #{files := [file:filename()], left_out := non_neg_integer(),
                    failed := [weft_profile_collect:failure()],
                    summary := weft_profile_summary:summary()}.

-define(SECONDS_MAX, 300).
-define(MAX_BYTES, 100000000).
-define(LIMITS, [events, rate, bytes, waiting, sample_ms, window_ms, every_ms, max_bytes]).
-define(WAYS_MAX, 30).
-define(WAY_MS, 5000).

%% @doc Records on the nodes, or on those of a group, and writes the files. The error is a text: an
%% option is wrong, no node could be recorded, or a file not be written. Nodes that could not be
%% recorded beside others are in `failed'.
-spec run([node(), ...] | {group, weft_group:name()}, options()) ->
          {ok, result()} | {error, string()}.
run(Nodes, Options) ->
    run(Nodes, Options, fun record/2).

%% @doc The same, but recorded in another way, such as by record/2 on a node that reaches these. It
%% gets what nodes need as the option `code', if it has no files of it.
-spec run([node(), ...] | {group, weft_group:name()}, options(),
          fun(([node(), ...] | {group, weft_group:name()}, options()) -> recorded())) ->
          {ok, result()} | {error, string()}.
run(Nodes, Options, Record) ->
    case Record(Nodes, Options) of
        {ok, Profile, Failed} ->
            case write(Profile, Options) of
                {ok, Files, LeftOut} ->
                    {ok, #{files => Files, left_out => LeftOut, failed => Failed,
                           summary => weft_profile_summary:summary(Profile)}};
                {error, Text} ->
                    {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

%% @doc Only records.
-spec record([node(), ...] | {group, weft_group:name()}, options()) -> recorded().
record({group, Name}, Options) ->
    case members(Name) of
        {ok, Nodes} -> record(Nodes, Options);
        {error, Text} -> {error, Text}
    end;
record(Nodes, Options) ->
    case [Text || {Key, Value} <- lists:sort(maps:to_list(Options)), Text <- wrong(Key, Value)] of
        [] ->
            Tracer = (maps:without([seconds, dir, file, max_bytes], Options))
                #{ms => max(1, round(maps:get(seconds, Options, 5) * 1000))},
            recorded(weft_profile_collect:record(lists:usort(Nodes), Tracer));
        [Text | _] ->
            {error, lists:flatten(Text)}
    end.

%% Nothing is begun on a node with a limit that is none.
wrong(seconds, Seconds) when is_number(Seconds), Seconds > 0, Seconds =< ?SECONDS_MAX -> [];
wrong(seconds, _) -> [lists:concat(["seconds are from 0 to ", ?SECONDS_MAX])];
wrong(pids, all) -> [];
wrong(pids, Count) when is_integer(Count), Count > 0 -> [];
wrong(pids, [_ | _] = Pids) ->
    ["pids has something else than pids" || not lists:all(fun is_pid/1, Pids)];
wrong(pids, _) -> ["pids is all, a number of processes from 1, or a list of pids"];
wrong(Key, Value) when Key =:= gc; Key =:= procs; Key =:= ports ->
    [lists:concat([Key, " is true or false"]) || not is_boolean(Value)];
wrong(Key, _Given) when Key =:= dir; Key =:= file; Key =:= code -> [];
wrong(waiting, 0) -> [];
wrong(Key, Value) ->
    case {lists:member(Key, ?LIMITS), is_integer(Value) andalso Value > 0} of
        {true, true} -> [];
        {true, false} -> [io_lib:format("~ts is ~0tp: make it an integer from 1", [Key, Value])];
        {false, _} -> [io_lib:format("there is no option ~0tp", [Key])]
    end.

%% Only weft knows groups: this application does not need it.
members(Name) ->
    Members = erlang:make_fun(weft_group, members, 1),
    try Members(Name) of
        {ok, [_ | _] = Nodes} -> {ok, Nodes};
        _ -> {error, lists:flatten(io_lib:format("no group ~0tp is known here", [Name]))}
    catch
        error:_ -> {error, "there are no groups: weft does not run here"}
    end.

recorded({[], Failed}) ->
    {error, lists:flatten(lists:join("; ", [Text || {_, Text} <- Failed]))};
recorded({Parts, Failed}) ->
    #{flows := Flows} = Profile = weft_profile_recording:profile(Parts),
    Pairs = lists:usort([{From, To} || #{from_node := From, to_node := To} <- Flows]),
    Ways = maps:from_list(lists:append([way(Pair) || Pair <- lists:sublist(Pairs, ?WAYS_MAX)])),
    {ok, weft_profile_hops:add(Profile#{ways := Ways}), Failed}.

%% Only weft knows the way, and only on the nodes: this application does not need it.
way({From, To}) ->
    Ask = erlang:make_fun(weft_trace, ask, 1),
    try erpc:call(From, weft_trace, walk, [From, To, Ask], ?WAY_MS) of
        {ok, Hops} -> [{{From, To}, [From | [Next || #{to := Next} <- Hops]]}];
        {error, _, _} -> []
    catch _:_ -> []
    end.

%% --- files ------------------------------------------------------------------------------------

%% @doc Writes the files of a profile; also tells how many events did not fit into the trace.
-spec write(weft_profile_recording:profile(), options()) ->
          {ok, [file:filename()], LeftOut :: non_neg_integer()} | {error, string()}.
write(Profile, #{file := File} = Options) ->
    case trace(File, Profile, Options) of
        {ok, LeftOut} -> {ok, [File], LeftOut};
        {error, Text} -> {error, Text}
    end;
write(Profile, Options) ->
    Dir = maps:get(dir, Options, "profile"),
    [Trace, Page, Flame] = Files = [filename:join(Dir, Name)
                                    || Name <- ["trace.json", "summary.html", "flame.svg"]],
    Picture = weft_profile_flame:picture(weft_profile_flame:folded(Profile)),
    case {filelib:ensure_dir(Trace), trace(Trace, Profile, Options)} of
        {ok, {ok, LeftOut}} ->
            case weft_profile_speedscope:write(filename:join(Dir, "speedscope"), Trace) of
                {ok, Viewer} -> pages(Page, Flame, Picture, Profile, Files ++ [Viewer], LeftOut);
                false -> pages(Page, Flame, Picture, Profile, Files, LeftOut);
                {error, {File, Reason}} -> failure(File, Reason)
            end;
        {{error, Reason}, _} -> failure(Dir, Reason);
        {ok, Failure} -> Failure
    end.

pages(Page, Flame, Picture, Profile, Files, LeftOut) ->
    Others = [string:prefix(File, filename:dirname(Page) ++ "/") || File <- Files, File =/= Page],
    case [failure(File, Reason)
          || {File, Text} <- [{Page, weft_profile_page:page(Profile, Others)}, {Flame, Picture}],
             {error, Reason} <- [file:write_file(File, utf8(Text))]] of
        [] -> {ok, Files, LeftOut};
        [Failure | _] -> Failure
    end.

utf8(Text) -> unicode:characters_to_binary(Text).

trace(File, Profile, Options) ->
    case file:open(File, [write, raw, binary, {delayed_write, 1 bsl 20, 2000}]) of
        {ok, Device} ->
            Write = fun(Text) -> ok = file:write(Device, Text) end,
            Max = maps:get(max_bytes, Options, ?MAX_BYTES),
            try
                #{left_out := LeftOut} = weft_profile_chrome:write(Profile, Write, Max),
                ok = file:close(Device),
                {ok, LeftOut}
            catch error:{badmatch, {error, Reason}} ->
                    _ = file:close(Device),
                    failure(File, Reason)
            end;
        {error, Reason} ->
            failure(File, Reason)
    end.

failure(File, Reason) ->
    {error, lists:flatten([File, ": ", file:format_error(Reason)])}.

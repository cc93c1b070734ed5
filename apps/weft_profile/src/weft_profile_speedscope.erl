%% SPDX-License-Identifier: Apache-2.0
%% @doc A folder in which speedscope, a viewer of profiles, opens a trace without a network: its
%% release, as it is in `priv', a page that starts it, and the trace in a script, as the browser
%% lets
%% a page that is a file read nothing else.
%%
%% The folder can be moved and sent. It is not made of traces that are too large for a script.
-module(weft_profile_speedscope).

-export([write/2]).

-define(TRACE_BYTES_MAX, 50000000).

%% @doc Writes the folder. False if the trace is too large, or speedscope is not here.
-spec write(file:filename(), Trace :: file:filename()) ->
          {ok, Page :: file:filename()} | false | {error, {file:filename(), file:posix()}}.
write(Dir, Trace) ->
    case {filelib:file_size(Trace) =< ?TRACE_BYTES_MAX, files()} of
        {true, [_ | _] = Files} ->
            {ok, Json} = file:read_file(Trace),
            Script = ["speedscope.loadFileFromBase64(\"trace.json\", \"", base64:encode(Json),
                      "\");\n"],
            written(Dir, [{"trace.js", Script} | Files]);
        _ ->
            false
    end.

%% They may be in the file of a command.
files() ->
    case code:priv_dir(weft_profile) of
        {error, bad_name} ->
            [];
        Priv ->
            From = filename:join(Priv, "speedscope"),
            case erl_prim_loader:list_dir(From) of
                {ok, Names} ->
                    [{Name, Content}
                     || Name <- lists:sort(Names),
                        {ok, Content, _} <- [erl_prim_loader:get_file(filename:join(From, Name))]];
                error ->
                    []
            end
    end.

written(Dir, Files) ->
    Page = filename:join(Dir, "index.html"),
    _ = filelib:ensure_dir(Page),
    case [{Path, Reason} || {Name, Content} <- Files, Path <- [filename:join(Dir, Name)],
                            {error, Reason} <- [file:write_file(Path, Content)]] of
        [] -> {ok, Page};
        [Failure | _] -> {error, Failure}
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps the groups in a file, so that a cluster of which all nodes were stopped finds them
%% again. Only if `groups_file' is configured; without it a node that comes back learns them from
%% the others.
%%
%% The file is text: `{weft_groups, 1, Clock, [{Name, Entry}]}'. It is replaced as a whole, a moment
%% after a change; so after a crash it is either the version before or the new one. What can not be
%% written, as while the disk is full, is tried again until it is.
-module(weft_group_file).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, load/1, save/0, save/2, save_again/0]).

-define(AGAIN_MS, 10000).

%% The row of `weft_view' that there is while the file lacks what could not be written.
-define(LACKS, {?MODULE, lacks}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_group_changes:start_link(?MODULE, #{changed => fun ?MODULE:save/0,
                                             at_intervals => {?AGAIN_MS,
                                                              fun ?MODULE:save_again/0}}).

%% @doc The content of the file, or no groups if there is no file yet. An unreadable file is an
%% error, because to start without it would be to lose it.
-spec load(undefined | file:name_all()) -> {ok, weft_group_table:table()} | {error, string()}.
load(undefined) ->
    {ok, weft_group_table:new()};
load(Path) ->
    case file:consult(Path) of
        {ok, [{weft_groups, 1, Clock, Entries}]} -> from_list(Path, Clock, Entries);
        {ok, _Other} -> {error, wrong(Path, "it is no file of groups")};
        {error, enoent} -> {ok, weft_group_table:new()};
        {error, Reason} -> {error, wrong(Path, file:format_error(Reason))}
    end.

from_list(Path, Clock, Entries) ->
    try
        {ok, weft_group_table:from_list(Clock, Entries)}
    catch
        error:_ -> {error, wrong(Path, "an entry is malformed")}
    end.

wrong(Path, Why) ->
    lists:flatten(io_lib:format("groups_file ~ts can not be read: ~ts. Correct it, or remove it "
                                "to start with the groups of the configuration", [Path, Why])).

%% @doc Writes the file.
-spec save(file:name_all(), weft_group_table:table()) -> ok | {error, file:posix()}.
save(Path, Table) ->
    Text = io_lib:format("~tw.~n", [{weft_groups, 1, weft_group_table:clock(Table),
                                     weft_group_table:to_list(Table)}]),
    New = unicode:characters_to_binary([Path, ".new"]),
    case write(New, unicode:characters_to_binary(["%% coding: utf-8\n", Text])) of
        ok -> file:rename(New, Path);
        {error, Reason} -> {error, Reason}
    end.

write(Path, Bytes) ->
    case file:open(Path, [write, raw, binary]) of
        {ok, File} ->
            Written = [file:write(File, Bytes), file:sync(File), file:close(File)],
            case [Error || {error, _} = Error <- Written] of
                [] -> ok;
                [Error | _] -> Error
            end;
        {error, Reason} -> {error, Reason}
    end.

%% @private The present groups.
-spec save() -> ok.
save() ->
    Path = weft_config:get(groups_file),
    saved(save(Path, weft_driver:command(weft_groups, table)), lacks(), Path).

%% @private
-spec save_again() -> ok.
save_again() ->
    case lacks() of
        true -> save();
        false -> ok
    end.

lacks() -> weft_view:lookup(?LACKS) =:= true.

%% Each failure is logged once, and its end.
saved(ok, false, _Path) ->
    ok;
saved(ok, true, Path) ->
    ok = weft_view:delete(?MODULE, ?LACKS),
    ?LOG_NOTICE("weft: groups_file ~ts could be written again; it has the present groups", [Path]);
saved({error, _Reason}, true, _Path) ->
    ok;
saved({error, Reason}, false, Path) ->
    ok = weft_view:put(?MODULE, ?LACKS, true),
    ?LOG_ERROR("weft: groups_file ~ts can not be written: ~ts. The present groups will be lost if "
               "all nodes are restarted before it can. It is tried again every ~b s",
               [Path, file:format_error(Reason), ?AGAIN_MS div 1000]).

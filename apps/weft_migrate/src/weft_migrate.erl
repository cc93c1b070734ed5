%% SPDX-License-Identifier: Apache-2.0
%% @doc Brings programs to weft: finds what will not scale in their sources, or assumes that all
%% nodes are connected.
%%
%% Whatever is not understood is said, and left as it is: files that cannot be read, forms that
%% cannot be parsed, calls by way of values.
-module(weft_migrate).

-export([scan/1]).
-export_type([report/0]).

-type report() :: #{files := non_neg_integer(), findings := [weft_migrate_scan:finding()],
                    failed := [{file:filename_all(), Reason :: string()}]}.

%% @doc Scans the sources of Erlang and Elixir below these paths.
-spec scan([file:filename_all()]) -> {ok, report()} | {error, string()}.
scan(Paths) ->
    case weft_migrate_files:below(Paths) of
        {ok, Files} ->
            Results = [{File, scan_file(File)} || File <- Files],
            {ok, #{files => length(Files),
                   findings => lists:append([Found || {_, {ok, Found}} <- Results]),
                   failed => [{File, Reason} || {File, {error, Reason}} <- Results]}};
        Error ->
            Error
    end.

scan_file(File) ->
    case lists:member(filename:extension(File), [".ex", ".exs"]) of
        true -> elixir(File);
        false -> erlang_source(File)
    end.

elixir(File) ->
    case file:read_file(File) of
        {ok, Bytes} -> {ok, weft_migrate_elixir:findings(File, Bytes)};
        {error, Reason} -> {error, file:format_error(Reason)}
    end.

erlang_source(File) ->
    case weft_migrate_source:read(File) of
        {ok, Source} -> {ok, weft_migrate_scan:findings(Source)};
        Error -> Error
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Brings programs to weft: finds what will not scale in their sources, or assumes that all
%% nodes are connected, and rewrites what means the same on weft.
%%
%% Whatever is not understood is said, and left as it is: files that cannot be read, forms that
%% cannot be parsed, calls by way of values.
-module(weft_migrate).

-export([scan/1, rewrite/2]).
-export([rewrite/3]).
-export_type([report/0, rewritten/0]).

-type report() :: #{files := non_neg_integer(), findings := [weft_migrate_scan:finding()],
                    failed := [{file:filename_all(), Reason :: string()}]}.

%% Results: of the files in which something is rewritten or left.
-type rewritten() :: #{files := non_neg_integer(), results := [weft_migrate_rewrite:result()],
                       failed := [{file:filename_all(), Reason :: string()}]}.

%% @doc Scans the sources of Erlang and Elixir below these paths.
-spec scan([file:filename_all()]) -> {ok, report()} | {error, string()}.
scan(Paths) ->
    case weft_migrate_files:below(Paths) of
        {ok, Files} ->
            Program = weft_migrate_program:of_files(Files),
            Results = [{File, scan_file(File, Program)} || File <- Files],
            {ok, #{files => length(Files),
                   findings => lists:append([Found || {_, {ok, {Found, _}}} <- Results])
                       ++ weft_migrate_locks:differing(
                            lists:append([Locks || {_, {ok, {_, Locks}}} <- Results])),
                   failed => [{File, Reason} || {File, {error, Reason}} <- Results]}};
        Error ->
            Error
    end.

scan_file(File, Program) ->
    case is_elixir(File) of
        true -> elixir(File);
        false -> erlang_source(File, Program)
    end.

is_elixir(File) -> lists:member(filename:extension(File), [".ex", ".exs"]).

elixir(File) ->
    case file:read_file(File) of
        {ok, Bytes} -> {ok, {weft_migrate_elixir:findings(File, Bytes), []}};
        {error, Reason} -> {error, file:format_error(Reason)}
    end.

erlang_source(File, Program) ->
    case weft_migrate_source:read(File) of
        {ok, Read} ->
            Source = weft_migrate_source:in(Read, Program),
            {ok, {weft_migrate_scan:findings(Source), weft_migrate_locks:places(Source)}};
        Error -> Error
    end.

%% @doc What the sources of Erlang below these paths are on weft. With `write' the files are
%% changed, all of them or none; otherwise nothing is. `only' chooses rules (`weft_migrate_rule'),
%% `adaptors' are files with more of them, `channel' is the one that messages are to take. Names and
%% locks of `global', scopes of `pg' and groups of `pg2' move with all their places below these
%% paths, or not at all; with `partial' each place by itself.
-spec rewrite([file:filename_all()],
              #{only => [weft_migrate_rule:name()], adaptors => [file:filename()],
                channel => atom(), write => boolean(), partial => boolean()}) ->
          {ok, rewritten()} | {error, string()}.
rewrite(Paths, Options) ->
    Only = maps:get(only, Options, weft_migrate_rule:names()),
    case {weft_migrate_files:below(Paths), weft_migrate_rule:rules(Only, Options)} of
        {{ok, Found}, {ok, Rules}} ->
            {ok, rewrite([{File, file:read_file(File)} || File <- Found], Rules, Options)};
        {{error, _} = Error, _} -> Error;
        {_, Error} -> Error
    end.

%% @private Each file is read once: what is decided is so of these bytes, and only they are
%% replaced.
-spec rewrite([{file:filename_all(), {ok, binary()} | {error, term()}}],
              [{weft_migrate_rule:name(), weft_migrate_rule:rule()}], map()) -> rewritten().
rewrite(Read, Rules, Options) ->
    Program = weft_migrate_program:of_all([Bytes || {_, {ok, Bytes}} <- Read]),
    Staying = case maps:get(partial, Options, false) of
                  true -> weft_migrate_names:stay([]);
                  false -> weft_migrate_names:stay(places(Read, Program, Rules))
              end,
    Outcomes = [{File, rewrite_file(File, Text, Program, {Rules, Staying})}
                || {File, Text} <- Read, not is_elixir(File)],
    Results = case maps:get(write, Options, false) of
                  true -> written(Outcomes);
                  false -> Outcomes
              end,
    #{files => length(Outcomes),
      results => [Result || {_, {ok, #{rewritten := Rewritten, left := Left} = Result}}
                                <- Results, Rewritten ++ Left =/= []],
      failed => [{File, Reason} || {File, {error, Reason}} <- Results]}.

%% The places of names, locks, scopes and groups in all files. Nobody knows those of a file that
%% cannot be read; in Elixir nothing is rewritten.
places(Read, Program, Rules) ->
    Chosen = [Kind || {Rule, Kind} <- [{global, names}, {global, locks}, {pg, scopes},
                                       {pg2, groups}],
                      lists:keymember(Rule, 1, Rules)],
    lists:append([places_in(File, Text, Program, {Chosen, Rules})
                  || Chosen =/= [], {File, Text} <- Read]).

places_in(File, Text, Program, {Chosen, Rules}) ->
    case {Text, is_elixir(File)} of
        {{error, _}, _} -> weft_migrate_names:of_any(Chosen, File);
        {{ok, Bytes}, true} ->
            [{Kind, {left, any, File, Line}}
             || {Kind, Line} <- weft_migrate_elixir:places(Bytes), lists:member(Kind, Chosen)];
        {{ok, Bytes}, false} ->
            case weft_migrate_program:may_concern(Bytes, Program) of
                true ->
                    Source = weft_migrate_source:of_bytes(File, Bytes),
                    weft_migrate_rewrite:places(weft_migrate_source:in(Source, Program), Rules);
                false -> []
            end
    end.

rewrite_file(File, {ok, Bytes}, Program, {Rules, Staying}) ->
    Source = weft_migrate_source:in(weft_migrate_source:of_bytes(File, Bytes), Program),
    weft_migrate_rewrite:run(Source, Rules, Staying);
rewrite_file(_File, {error, Reason}, _Program, _How) ->
    {error, file:format_error(Reason)}.

%% Names move with all their places, so files are written together.
written(Results) ->
    Changed = [{File, Before, After}
               || {File, {ok, #{before := Before, bytes := After}}} <- Results, Before =/= After],
    case weft_migrate_files:replace(Changed) of
        ok ->
            Results;
        {Written, Failed} ->
            Others = case Written of
                         none -> [File || {File, _, _} <- Changed];
                         some -> []
                     end,
            [{File, outcome(File, Result, Failed, Others)} || {File, Result} <- Results]
    end.

outcome(File, Result, [{First, _} | _] = Failed, Others) ->
    case {lists:keyfind(File, 1, Failed), lists:member(File, Others)} of
        {{File, Reason}, _} -> {error, Reason};
        {false, true} ->
            {error, lists:flatten(io_lib:format("it is not written, since ~ts cannot be",
                                                [First]))};
        {false, false} -> Result
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc `weft kv export', `import' and `backup': files here, and a store on another node. What is in
%% the files is said by `weft_kv_archive'.
-module(weft_cli_kv_archive).

-export([run/3]).

%% A page waits for partitions that move.
-define(TIMEOUT_MS, 60000).

%% @doc Carries the command out with the store of this node.
-spec run(export | import | backup, {File :: string(), weft_argparse:given()}, node()) ->
          weft_cli:answer().
run(Action, {File, Given}, Node) ->
    case done(Action, File, options(Given), ask(Node)) of
        {ok, #{file := standard_io}} when Action =:= export -> shown;
        {ok, Report} -> {ok, readable(Report), told(Action, Given, Report)};
        {error, {node, Answer}} -> Answer;
        {error, Reason} -> {failed, why(Reason)}
    end.

done(export, "-", Options, Ask) ->
    %% As bytes: each is a character of Latin-1, and goes out as itself.
    _ = io:setopts([{encoding, latin1}]),
    weft_kv_archive_file:export(standard_io, Options, Ask);
done(import, "-", Options, Ask) -> weft_kv_archive_file:import(standard_io, Options, Ask);
done(backup, Dir, Options, Ask) -> weft_kv_archive_file:backup(Dir, Options, Ask);
done(Action, File, Options, Ask) -> weft_kv_archive_file:Action(File, Options, Ask).

options(Given) ->
    Texts = [{Key, unicode:characters_to_binary(Text)} || {Key, Text} <- maps:to_list(Given),
                                                         Key =:= bucket orelse Key =:= into],
    maps:merge(maps:with([check, overwrite, keep], Given),
               maps:from_list([case Pair of
                                   {bucket, Names} ->
                                       {buckets, binary:split(Names, <<",">>, [global])};
                                   {into, _} -> Pair
                               end || Pair <- Texts])).

ask(Node) ->
    fun(Module, Function, Arguments) ->
        case weft_local_control:call(Node, {Module, Function, Arguments}, ?TIMEOUT_MS) of
            {ok, Result} -> {ok, Result};
            {not_running, Text} -> {error, {node, {no_node, Text}}};
            {error, Text} -> {error, {node, {failed, Text}}}
        end
    end.

%% --- what is said -----------------------------------------------------------------------------

told(Action, Given, #{file := File, bytes := Bytes, buckets := Buckets} = Report) ->
    Word = case {Action, Given} of
               {import, #{check := true}} -> "whole and not damaged";
               {import, _} -> "imported";
               _ -> "written"
           end,
    [io_lib:format("~ts: ~ts, ~ts~n", [file(File), Word, weft_cli_table:bytes(Bytes)]),
     weft_cli_table:format([["  " ++ binary_to_list(Name), weft_cli_table:plural(Records, "key")
                             | [io_lib:format("~b of them have another value here, which stayed",
                                              [Kept]) || Kept > 0]]
                            || {Name, #{records := Records, kept := Kept}}
                                   <- lists:sort(maps:to_list(Buckets))])
     | [["  kept, as its name has a later time (look at the clock): ", Name, "\n"]
        || #{later := Later} <- [Report], Name <- Later]].

readable(#{file := File, about := About} = Report) ->
    #{buckets := In} = About,
    maps:map(fun(later, Files) -> [unicode:characters_to_binary(Later) || Later <- Files];
                (_, Said) -> Said
             end, Report#{file := unicode:characters_to_binary(file(File)),
                          about := About#{buckets := [Name || {Name, _} <- In]}}).

file(standard_io) -> "-";
file(File) -> File.

why({file, File, Reason}) -> [file(File), ": ", of_file(Reason)];
why({bucket, Name, {key, Key, Reason}}) ->
    ["bucket ", Name, ", key ", weft_octets:percent(Key), ": ", why(Reason),
     "\nSome keys before it and beside it are imported. It can be repeated."];
why({bucket, Name, Reason}) -> ["bucket ", Name, ": ", why(Reason)];
why({unknown_bucket, Name}) -> ["the node has no bucket ", Name];
why({other_consistency, #{bucket := Name, there := There, in_the_file := In}}) ->
    io_lib:format("bucket ~ts of the node is ~s, and what is in the file is of one that is ~s: "
                  "these do not go into each other", [Name, There, In]);
why(Reason) -> weft_cli_kv:why(Reason).

of_file(not_an_archive) -> "this is no file of weft kv export or backup";
of_file({later_version, Version}) ->
    io_lib:format("written by a later version of weft (format ~b): take that version, or a later "
                  "one", [Version]);
of_file({damaged, #{byte := Byte, records := Records}}) ->
    io_lib:format("damaged at byte ~b, behind ~b whole records. Take another copy.",
                  [Byte, Records]);
of_file({truncated, #{byte := Byte, records := Records}}) ->
    io_lib:format("not whole: it ends at byte ~b, behind ~b whole records. Its writer was "
                  "interrupted, or a copy was cut off. Take another copy.", [Byte, Records]);
of_file({too_large, Max}) -> io_lib:format("a record is larger than ~b bytes", [Max]);
of_file({not_in_the_file, Name}) -> ["it has no bucket ", Name];
of_file({into_is_for_one_bucket, Names}) ->
    ["--into is for one bucket: say by --bucket which of ", lists:join(" ", Names)];
of_file(bad_record) -> "a record is whole, but makes no sense to this version of weft";
of_file(Reason) when is_atom(Reason) -> file:format_error(Reason);
of_file(Reason) -> io_lib:format("~0tp", [Reason]).

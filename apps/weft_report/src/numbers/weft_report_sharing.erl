%% SPDX-License-Identifier: Apache-2.0
%% @doc How the nodes of one measurement shared the machine, beside results that have no column for
%% it: `sharing.csv', a line for each metric of `weft_bench_sharing'.
%%
%% ```
%% metric, unit, value    as in weft_report_record: vms_per_core, and with quotas quota_percent,
%%                        throttled_percent, quota_used_percent and machine_busy_percent
%% '''
-module(weft_report_sharing).

-export([file/1, write/2, read/1, texts/1]).
-export_type([sharing/0]).

-type sharing() :: [{Metric :: binary(), number()}].

%% @doc Where they are.
-spec file(Dir :: file:filename()) -> file:filename().
file(Dir) -> filename:join(Dir, "sharing.csv").

%% @doc Writes the file of a run.
-spec write(Dir :: file:filename(), [{Metric :: atom(), number()}]) -> ok.
write(Dir, Sharing) ->
    Lines = [weft_report_csv:line([Metric, weft_report_words:unit(atom_to_binary(Metric)), Value])
             || {Metric, Value} <- Sharing],
    weft_report_file:write(file(Dir), [weft_report_csv:line([metric, unit, value]) | Lines]).

%% @doc Reads it. A run that was ended before its end, or an older one, has none.
-spec read(Dir :: file:filename()) -> {ok, sharing()} | {error, string()}.
read(Dir) ->
    case file:read_file(file(Dir)) of
        {ok, Text} ->
            {ok, [{Metric, number(Value)}
                  || [Metric, _Unit, Value] <- tl(weft_report_csv:parse(Text))]};
        {error, enoent} ->
            {ok, []};
        {error, Reason} ->
            {error, lists:flatten(io_lib:format("~ts: ~ts", [file(Dir),
                                                             file:format_error(Reason)]))}
    end.

number(Text) ->
    try binary_to_integer(Text)
    catch error:badarg -> binary_to_float(Text)
    end.

%% @doc Each of them in words, and its value.
-spec texts(sharing()) -> [{Name :: iodata(), Value :: iodata()}].
texts(Sharing) ->
    [{weft_report_words:metric(Metric),
      weft_report_words:value(Value, weft_report_words:unit(Metric))}
     || {Metric, Value} <- Sharing].

%% SPDX-License-Identifier: Apache-2.0
%% @doc What several loads that ran at the same time did, in one: read from the files that they
%% wrote, so that what a node had measured before it was lost is part of it. Of the reasons of
%% errors there are those of the nodes that got to the end.
-module(weft_load_sum).

-export([write/4, lost/2]).

%% What became of the load of a node.
-type answer() :: {file:filename(), {ok, weft_load:outcome()} | {error, Text :: string()}}.
-export_type([answer/0]).

%% @doc Adds up the directories of the nodes and writes the files of the sum to Dir. The error is a
%% text; if no node got to the end it is that of the first.
-spec write(file:filename(), weft_load_config:config(), [{string(), string()}], [answer()]) ->
          {ok, weft_load:outcome()} | {error, string()}.
write(Dir, Config, Environment, Answers) ->
    Lost = [Text || {_, {error, Text}} <- Answers],
    case [Outcome || {_, {ok, Outcome}} <- Answers] of
        [] ->
            {error, lists:flatten(lists:join("\n", lists:sublist(Lost, 3)))};
        [#{total := Total} | _] = Outcomes ->
            Given = Environment ++ [{"start_spread_us", integer_to_list(spread_us(Outcomes))}
                                    | [{"not_measured_to_the_end", Text} || Text <- Lost]],
            case weft_load_files:open(Dir, Config, maps:keys(Total), Given) of
                {ok, Files} ->
                    try sum([Own || {Own, _} <- Answers], Files, Outcomes, Lost)
                    after weft_load_files:close(Files)
                    end;
                {error, Text} ->
                    {error, Text}
            end
    end.

%% How far the nodes' beginnings are apart.
spread_us(Outcomes) ->
    Began = [BeganUs || #{began_us := BeganUs} <- Outcomes],
    lists:max(Began) - lists:min(Began).

sum(Dirs, Files0, Outcomes, Lost) ->
    case weft_load_files:add_up(Dirs, Files0) of
        {ok, {Total, ElapsedUs}, Files} ->
            Outcome = outcome(Total, ElapsedUs, Outcomes, Lost),
            case weft_load_files:finish(Outcome, Files) of
                ok -> {ok, Outcome};
                {error, Text} -> {error, Text}
            end;
        {error, Text} ->
            {error, Text}
    end.

outcome(Total, ElapsedUs, Outcomes, Lost) ->
    All = fun(Key) -> [maps:get(Key, Outcome) || Outcome <- Outcomes] end,
    #{total => Total, elapsed_us => ElapsedUs, began_us => lists:min(All(began_us)),
      errors => errors(lists:append(All(errors))), hung => lists:sum(All(hung)),
      finished => lists:sum(All(finished)), crashed => lists:append(All(crashed)),
      unfinished => lists:sum(All(unfinished)), lost => Lost}.

errors(Errors) ->
    Sum = lists:foldl(fun({Label, Reason, Count}, Acc) ->
                              maps:update_with({Label, Reason}, fun(N) -> N + Count end, Count, Acc)
                      end, #{}, Errors),
    lists:reverse(lists:keysort(3, [{Label, Reason, Count}
                                    || {{Label, Reason}, Count} <- maps:to_list(Sum)])).

%% @doc The text about a node or host that did not get to the end, from why the call to it failed.
-spec lost(Name :: unicode:chardata(), Why :: term()) -> string().
lost(Name, Why) ->
    lists:flatten(io_lib:format("~ts was lost: ~ts", [Name, why(Why)])).

why({timeout, {gen_server, call, _}}) -> "no answer in time";
why({_, {gen_server, call, _}}) -> "its emulator has ended";
why(Why) -> io_lib:format("~0tP", [Why, 20]).

%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of broadcast: what they may be, and what they are by default. Calls nothing; the
%% value comes from `weft_config' (key `broadcast').
-module(weft_broadcast_options).

-export([all/1, check/1]).

%% @doc All options: {Option, Default, Smallest, Greatest, What it is}; an option that is no number
%% has a list of values in place of the bounds.
-spec options() -> [{atom(), pos_integer(), pos_integer(), pos_integer(), string()}
                    | {atom(), atom(), [atom()]}].
options() ->
    [{message_bytes, 1048576, 1, 8388608, "bytes of an encoded message"},
     {keep_ms, 60000, 1000, 3600000, "milliseconds"},
     {keep_messages, 4096, 1, 1000000, "messages"},
     {keep_bytes, 16777216, 8388608, 1 bsl 40, "bytes"},
     {mailbox_messages, 10000, 1, 1 bsl 40, "messages"},
     {mailbox_bytes, 67108864, 33554432, 1 bsl 40, "bytes"},
     {trees, shared, [shared, per_root]}].

%% @doc The options of a node: those configured, and defaults.
-spec all(#{atom() => term()}) -> #{atom() => term()}.
all(Configured) ->
    maps:merge(maps:from_list([{element(1, Option), element(2, Option)} || Option <- options()]),
               Configured).

%% @doc Errors in the value of the key, each a text that says what is expected.
-spec check(term()) -> [iolist()].
check(Configured) when is_map(Configured) ->
    lists:append([check_option(Key, Value, lists:keyfind(Key, 1, options()))
                  || {Key, Value} <- lists:sort(maps:to_list(Configured))]);
check(Configured) ->
    [io_lib:format("weft: broadcast is ~0p, it must be a map of options", [Configured])].

check_option(Key, _Value, false) ->
    [io_lib:format("weft: unknown option ~0p of broadcast. Known: ~ts",
                   [Key, lists:join(" ", [atom_to_list(element(1, O)) || O <- options()])])];
check_option(_Key, Value, {_, _, Min, Max, _}) when is_integer(Value), Value >= Min, Value =< Max ->
    [];
check_option(Key, Value, {_, _, Min, Max, What}) ->
    [io_lib:format("weft: ~ts of broadcast is ~0p, it must be a number of ~ts from ~b to ~b",
                   [Key, Value, What, Min, Max])];
check_option(Key, Value, {_, _, Values}) ->
    case lists:member(Value, Values) of
        true -> [];
        false -> [io_lib:format("weft: ~ts of broadcast is ~0p, it must be one of ~0p",
                                [Key, Value, Values])]
    end.

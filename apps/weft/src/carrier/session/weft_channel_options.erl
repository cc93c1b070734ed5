%% SPDX-License-Identifier: Apache-2.0
%% @doc The options of channels and the rules for pins: what they may be, and what they are by
%% default. Calls nothing; the values come from `weft_config' (keys `channels' and `pins').
-module(weft_channel_options).

-export([all/1, check/2, options/0]).
-export_type([channel/0, class/0]).

-type class() :: control | default | bulk.
-type channel() :: #{class := class(), parallelism := 1..16, queue_bytes := pos_integer(),
                     policy := block | drop_newest | drop_oldest | error,
                     block_ms := pos_integer(), monotonic := undefined | pos_integer(),
                     compression := 0..9, mailbox_max := pos_integer() | infinity}.

%% @doc All options: {Option, What the value must be}.
-spec options() -> [{atom(), string()}].
options() ->
    [{class, "control, default or bulk"},
     {parallelism, "a number of streams from 1 to 16"},
     {queue_bytes, "bytes, from 4096 to 1099511627776"},
     {policy, "block, drop_newest, drop_oldest or error"},
     {block_ms, "milliseconds from 1 to 3600000"},
     {monotonic, "a window in milliseconds from 1 to 3600000"},
     {compression, "a level from 0 to 9"},
     {mailbox_max, "a number of messages, or infinity"}].

%% @doc A channel of that class in which nothing is set. A sender waits longer than a stream looks
%% for a path (resume_timeout_ms), so that in the end it learns that the stream has ended. A queue
%% of small messages is short, because what fits into the processor's cache is sent fastest.
-spec defaults(class()) -> channel().
defaults(Class) ->
    #{class => Class, parallelism => 1, policy => block, block_ms => 20000,
      queue_bytes => case Class of bulk -> 8388608; _ -> 524288 end,
      monotonic => undefined, compression => 0, mailbox_max => infinity}.

%% @doc The channels of a node: those configured, and `control', `default' and `bulk', which always
%% exist and have the class of their name.
-spec all(#{atom() => map()}) -> #{atom() => channel()}.
all(Configured) ->
    maps:map(fun(Name, Options) ->
                     maps:merge(defaults(maps:get(class, Options, class_of(Name))), Options)
             end, maps:merge(#{control => #{}, default => #{}, bulk => #{}}, Configured)).

class_of(control) -> control;
class_of(bulk) -> bulk;
class_of(_) -> default.

%% @doc Errors in the values of the two keys, each a text that says where and what is expected.
-spec check(Channels :: term(), Pins :: term()) -> [iolist()].
check(Channels, Pins) when is_map(Channels), is_map(Pins) ->
    lists:append([check_channel(Name, Options) || {Name, Options} <- maps:to_list(Channels)])
        ++ lists:append([check_pin(Name, Channel, Channels)
                         || {Name, Channel} <- maps:to_list(Pins)]);
check(Channels, Pins) when is_map(Channels) ->
    [io_lib:format("weft: pins is ~0p, it must be a map from registered names to channels",
                   [Pins])];
check(Channels, _Pins) ->
    [io_lib:format("weft: channels is ~0p, it must be a map from names to maps of options",
                   [Channels])].

check_channel(Name, Options) when is_atom(Name), is_map(Options) ->
    case byte_size(atom_to_binary(Name)) =< 255 of
        true ->
            [Text || {Option, Value} <- maps:to_list(Options),
                     Text <- check_option(Name, Option, Value)];
        false ->
            [io_lib:format("weft: the name of the channel ~0p is longer than 255 bytes", [Name])]
    end;
check_channel(Name, Options) ->
    [io_lib:format("weft: the channel ~0p is ~0p, it must be an atom and a map of options",
                   [Name, Options])].

check_option(Name, Option, Value) ->
    case lists:keyfind(Option, 1, options()) of
        false ->
            [io_lib:format("weft: unknown option ~0p of the channel ~0p. Known: ~s",
                           [Option, Name, lists:join(" ", [atom_to_list(Known)
                                                           || {Known, _} <- options()])])];
        {_, Expected} ->
            [io_lib:format("weft: ~0p of the channel ~0p is ~0p, it must be ~s",
                           [Option, Name, Value, Expected]) || not is_value(Option, Value)]
    end.

is_value(class, Value) -> lists:member(Value, [control, default, bulk]);
is_value(parallelism, Value) -> is_between(1, Value, 16);
is_value(queue_bytes, Value) -> is_between(4096, Value, 1 bsl 40);
is_value(policy, Value) -> lists:member(Value, [block, drop_newest, drop_oldest, error]);
is_value(block_ms, Value) -> is_between(1, Value, 3600000);
is_value(monotonic, Value) -> Value =:= undefined orelse is_between(1, Value, 3600000);
is_value(compression, Value) -> is_between(0, Value, 9);
is_value(mailbox_max, Value) -> Value =:= infinity orelse is_between(1, Value, 1 bsl 40).

is_between(Min, Value, Max) -> is_integer(Value) andalso Min =< Value andalso Value =< Max.

check_pin(Name, Channel, Channels) when is_atom(Name), is_atom(Channel) ->
    Known = maps:keys(all(maps:filter(fun(_, Options) -> is_map(Options) end, Channels))),
    [io_lib:format("weft: pins: ~0p is pinned to the channel ~0p, which is not configured. "
                   "Known: ~0p", [Name, Channel, Known]) || not lists:member(Channel, Known)];
check_pin(Name, Channel, _Channels) ->
    [io_lib:format("weft: pins: ~0p => ~0p must be a registered name and the name of a channel",
                   [Name, Channel])].

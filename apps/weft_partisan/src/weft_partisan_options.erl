%% SPDX-License-Identifier: Apache-2.0
%% @doc Partisan's options of a message, in the terms of weft's channels. docs/guide/partisan.md has
%% the table.
-module(weft_partisan_options).

-export([translate/1, call/1, not_supported/2]).
-export_type([options/0]).

-type options() :: #{atom() => term()} | [{atom(), term()}].

%% These exist in Partisan because not every node can be reached, or connections break. Here they
%% change nothing.
-define(WITHOUT_EFFECT, [transitive, broadcast, ttl, retransmission, channel_fallback]).
-define(KNOWN, [channel, partition_key, ack, causal_label | ?WITHOUT_EFFECT]).

%% @doc The options for `weft:send/3'; `none' if the message needs no channel and can go as with
%% `!'. An option that means nothing here is an error of the caller.
-spec translate(options()) -> none | weft_channel:options().
translate(Options) when is_list(Options) -> translate(maps:from_list(Options));
translate(Options) when is_map(Options) ->
    case maps:fold(fun option/3, #{}, Options) of
        Nothing when map_size(Nothing) =:= 0 -> none;
        Translated -> Translated
    end;
translate(Other) ->
    error({bad_options, Other, "a map, or a list of pairs"}).

option(channel, undefined, Translated) -> Translated;
option(channel, Channel, Translated) when is_atom(Channel) -> Translated#{channel => Channel};
option(partition_key, undefined, Translated) -> Translated;
option(partition_key, Key, Translated) -> Translated#{key => Key};
option(ack, false, Translated) -> Translated;
option(ack, true, Translated) -> Translated#{ack => true};
option(causal_label, undefined, Translated) -> Translated;
option(causal_label, Label, Translated) -> Translated#{label => Label};
option(clock, _Clock, _Translated) ->
    not_supported({option, clock}, "a message with a causal_label has its own clock");
option(Name, Value, Translated) ->
    case lists:member(Name, ?WITHOUT_EFFECT) of
        true -> Translated;
        false when Name =:= channel; Name =:= ack -> error({bad_option, Name, Value});
        false -> error({unknown_option, Name, ?KNOWN})
    end.

%% @doc The options of `partisan_gen_server:call/3': a timeout, or a list with it.
-spec call(timeout() | options()) -> {timeout(), none | weft_channel:options()}.
call(Timeout) when is_integer(Timeout); Timeout =:= infinity -> {Timeout, none};
call(Options) when is_list(Options) -> call(maps:from_list(Options));
call(#{} = Options) ->
    {maps:get(timeout, Options, 5000), translate(maps:remove(timeout, Options))}.

%% @doc The error of what Partisan has and this has not: what, and what to write instead.
-spec not_supported(What :: term(), Instead :: string()) -> no_return().
not_supported(What, Instead) ->
    error({not_supported, What, Instead ++ "; see docs/guide/partisan.md"}).

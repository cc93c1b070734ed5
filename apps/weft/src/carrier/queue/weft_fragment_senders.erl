%% SPDX-License-Identifier: Apache-2.0
%% @doc The senders of fragmented signals that are in progress.
%%
%% Only the first fragment of a signal names its sender; the others refer to the first. If a sender
%% dies in the middle of a signal its entry is left behind. So entries age: when there are many new
%% ones, those not used since the last time are forgotten. The sender of a forgotten signal is
%% `ordered' (see `weft_frame'), which is correct for every fragment.
-module(weft_fragment_senders).

-export([new/0, first/3, more/2, final/2, size/1]).
-export_type([fragments/0]).

-define(YOUNG_MAX, 4096).

-type senders() :: #{weft_frame:fragments() => weft_frame:sender()}.
-opaque fragments() :: {Young :: senders(), Old :: senders()}.

-spec new() -> fragments().
new() -> {#{}, #{}}.

%% @doc A signal of Sender begins.
-spec first(weft_frame:fragments(), weft_frame:sender(), fragments()) -> fragments().
first(Sequence, Sender, {Young, _Old}) when map_size(Young) >= ?YOUNG_MAX ->
    {#{Sequence => Sender}, maps:remove(Sequence, Young)};
first(Sequence, Sender, {Young, Old}) ->
    {Young#{Sequence => Sender}, maps:remove(Sequence, Old)}.

%% @doc The sender of a fragment that is not the last one.
-spec more(weft_frame:fragments(), fragments()) -> {weft_frame:sender(), fragments()}.
more(Sequence, {Young, Old} = Fragments) ->
    case {Young, Old} of
        {#{Sequence := Sender}, _} -> {Sender, Fragments};
        {_, #{Sequence := Sender}} -> {Sender, first(Sequence, Sender, Fragments)};
        _ -> {ordered, Fragments}
    end.

%% @doc The sender of the last fragment.
-spec final(weft_frame:fragments(), fragments()) -> {weft_frame:sender(), fragments()}.
final(Sequence, {Young, Old} = Fragments) ->
    {Sender, _} = more(Sequence, Fragments),
    {Sender, {maps:remove(Sequence, Young), maps:remove(Sequence, Old)}}.

%% @doc Number of signals known to be in progress; bounded.
-spec size(fragments()) -> non_neg_integer().
size({Young, Old}) -> map_size(Young) + map_size(Old).

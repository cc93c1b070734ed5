%% SPDX-License-Identifier: Apache-2.0
%% @doc The result manager: the values of probes, and a hash over all of them in the order of time,
%% actor, and the actor's own order.
%%
%% The hash is a chain: that of a diasca is made of the one before and the values of the diasca. So
%% values need not be kept for it, and a checkpoint has all that it takes to go on.
-module(weft_diasca_results).

-export([new/2, restored/3, add/3, hash/1, probes/1, count/1]).
-export_type([results/0, value/0, series/0]).

%% One value as an actor has told it: the how manieth of this actor in this diasca.
-type value() :: {weft_diasca_actor:id(), Number :: pos_integer(), Name :: term(),
                  Value :: term()}.
-type series() :: #{Name :: term() => [{weft_diasca_actor:time(), weft_diasca_actor:id(),
                                        Value :: term()}]}.
-type results() :: #{hash := binary(), kept := series(), keep := all | none | [term()],
                     count := non_neg_integer(), in_memory := non_neg_integer(),
                     max := pos_integer()}.

%% @doc Nothing yet. `Keep' says of which probes values are kept: `all', `none' or a list of names;
%% all of them are hashed. At most `Max' are kept.
-spec new(all | none | [term()], Max :: pos_integer()) -> results().
new(Keep, Max) ->
    #{hash => <<0:256>>, kept => #{}, keep => Keep, count => 0, in_memory => 0, max => Max}.

%% @doc Those of a checkpoint. What was kept stays; of what comes, this is kept.
-spec restored(all | none | [term()], Max :: pos_integer(), results()) -> results().
restored(Keep, Max, Results) ->
    Results#{keep := Keep, max := Max}.

%% @doc Adds the values of a diasca, in any order. An error if too many would be kept.
-spec add(weft_diasca_actor:time(), [value()], results()) -> {ok, results()} | {error, too_many}.
add(_Time, [], Results) ->
    {ok, Results};
add(Time, Values, #{hash := Hash, count := Count} = Results) ->
    Sorted = lists:keysort(1, lists:keysort(2, Values)),
    Bytes = [Hash, weft_diasca_bytes:encode({Time, Sorted})],
    keep(Time, Sorted, Results#{hash := crypto:hash(sha256, Bytes),
                                count := Count + length(Sorted)}).

keep(Time, Sorted, #{keep := Keep, kept := Kept, in_memory := InMemory, max := Max} = Results) ->
    Wanted = [Value || {_, _, Name, _} = Value <- Sorted, is_kept(Name, Keep)],
    case InMemory + length(Wanted) of
        Many when Many > Max ->
            {error, too_many};
        Many ->
            {ok, Results#{kept := lists:foldl(fun(Value, K) -> put_one(Time, Value, K) end, Kept,
                                              Wanted),
                          in_memory := Many}}
    end.

is_kept(_Name, all) -> true;
is_kept(_Name, none) -> false;
is_kept(Name, Names) -> lists:member(Name, Names).

%% The newest first.
put_one(Time, {Id, _, Name, Value}, Kept) ->
    Kept#{Name => [{Time, Id, Value} | maps:get(Name, Kept, [])]}.

%% @doc The hash, as hexadecimal digits.
-spec hash(results()) -> binary().
hash(#{hash := Hash}) ->
    << <<(hex(Digit))>> || <<Digit:4>> <= Hash >>.

hex(Digit) when Digit < 10 -> $0 + Digit;
hex(Digit) -> $a + Digit - 10.

%% @doc The values that were kept, in their order.
-spec probes(results()) -> series().
probes(#{kept := Kept}) ->
    maps:map(fun(_, Values) -> lists:reverse(Values) end, Kept).

%% @doc How many values there were.
-spec count(results()) -> non_neg_integer().
count(#{count := Count}) -> Count.

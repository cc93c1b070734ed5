%% SPDX-License-Identifier: Apache-2.0
%% @doc Faults on the links of this node, for tests and drills; off unless `{weft, faults, true}'.
%%
%% A cut link is closed and refused in both directions by this node until healed: to the other side
%% it looks like a network failure. A delay holds back every packet of lanes made after it is set.
-module(weft_fault).

-export([cut/1, heal/1, heal/0, cuts/0, is_cut/1, delay/3, delay_ms/1, break/1]).

-define(KEY, weft_faults).

%% @doc Closes the link to Node and refuses a new one until healed.
-spec cut(node()) -> ok | {error, disabled}.
cut(Node) ->
    update(fun(Faults) -> Faults#{{cut, Node} => true} end, fun() -> weft_links:break(Node) end).

-spec heal(node()) -> ok | {error, disabled}.
heal(Node) ->
    update(fun(Faults) -> maps:without([{cut, Node}, {delay, Node}], Faults) end,
           fun() -> weft_links:retry(Node) end).

%% @doc Ends all faults of this node.
-spec heal() -> ok | {error, disabled}.
heal() ->
    Cut = cuts(),
    update(fun(_) -> #{} end, fun() -> lists:foreach(fun weft_links:retry/1, Cut) end).

%% @doc Closes every connection of the link to Node once; the link may come back at once.
-spec break(node()) -> ok | {error, disabled}.
break(Node) ->
    update(fun(Faults) -> Faults end, fun() -> weft_links:break(Node) end).

-spec cuts() -> [node()].
cuts() ->
    [Node || {cut, Node} <- maps:keys(faults())].

-spec is_cut(node()) -> boolean().
is_cut(Node) ->
    maps:is_key({cut, Node}, faults()).

%% @doc Holds back each packet to Node by a random time of MinMs to MaxMs, on lanes made from now.
-spec delay(node(), non_neg_integer(), non_neg_integer()) -> ok | {error, disabled}.
delay(Node, MinMs, MaxMs) when MinMs =< MaxMs ->
    update(fun(Faults) -> Faults#{{delay, Node} => {MinMs, MaxMs}} end,
           fun() -> weft_links:break(Node) end).

%% @doc What delay/3 has set for Node.
-spec delay_ms(node()) -> none | {non_neg_integer(), non_neg_integer()}.
delay_ms(Node) ->
    maps:get({delay, Node}, faults(), none).

faults() ->
    persistent_term:get(?KEY, #{}).

update(Change, Then) ->
    case weft_config:get(faults) of
        true -> persistent_term:put(?KEY, Change(faults())), Then(), ok;
        false -> {error, disabled}
    end.

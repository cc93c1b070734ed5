%% SPDX-License-Identifier: Apache-2.0
%% @doc What a store answers to a message of a comparison: which states and differences it offers,
%% and with which messages the comparison goes on. The steps are those of `weft_crdt_compare'.
-module(weft_crdt_exchange).

-export([answer/2]).

%% Keys in one message.
-define(PIECE, 500).

-type offer() :: {Key :: term(), weft_crdt_type:name(), weft_crdt_type:state()}.

%% @doc The answer to a message, whatever it is; and what of it was refused.
-spec answer(Msg :: term(), weft_crdt_entries:entries()) ->
          {[offer()], Msgs :: [term()], Refused :: [term()], weft_crdt_entries:entries()}.
answer({ranges, Given}, Entries0) ->
    {Ranges, Entries} = weft_crdt_entries:ranges(Entries0),
    case weft_crdt_compare:ranges(Given, Ranges) of
        {ok, Answers, Missing} -> {wholes(Missing, Entries), Answers, [], Entries};
        error -> {[], [], [Given], Entries}
    end;
answer({items, Given}, Entries0) ->
    {Ranges, Entries} = weft_crdt_entries:ranges(Entries0),
    case weft_crdt_compare:items(Given, Ranges) of
        {ok, Missing, Different, Wanted} ->
            Digests = [weft_crdt_entries:digest(Key, Entries) || Key <- Different],
            {wholes(Missing, Entries),
             [{digests, true, Some} || Some <- pieces(Digests)]
                 ++ [{wants, Some} || Some <- pieces(Wanted)], [], Entries};
        error -> {[], [], [Given], Entries}
    end;
answer({digests, IsFirst, Given}, Entries) when is_boolean(IsFirst) ->
    digests(Given, IsFirst, {[], [], []}, Entries);
answer({wants, Keys}, Entries) when length(Keys) >= 0 ->
    {wholes(Keys, Entries), [], [], Entries};
answer(Malformed, Entries) ->
    {[], [], [Malformed], Entries}.

pieces([]) -> [];
pieces(List) when length(List) =< ?PIECE -> [List];
pieces(List) ->
    {Piece, Rest} = lists:split(?PIECE, List),
    [Piece | pieces(Rest)].

%% Whole states for a neighbour that has nothing of these keys.
wholes(Keys, Entries) ->
    [{Key, Type, Whole} || Key <- Keys,
                           {ok, Type, Whole} <- [weft_crdt_entries:state(Key, Entries)]].

digests([{Key, Type, Digest} | Rest], IsFirst, {Offers, Known, Refused}, Entries) ->
    Acc = case weft_crdt_entries:difference(Key, Type, Digest, Entries) of
              {ok, none} -> {Offers, [Key | Known], Refused};
              {ok, Delta} -> {[{Key, Type, Delta} | Offers], [Key | Known], Refused};
              unknown -> {Offers, Known, Refused};
              {error, Reason} -> {Offers, Known, [{Key, Reason} | Refused]}
          end,
    digests(Rest, IsFirst, Acc, Entries);
digests([], IsFirst, {Offers, Known, Refused}, Entries) ->
    Back = [weft_crdt_entries:digest(Key, Entries) || IsFirst, Key <- Known],
    {Offers, [{digests, false, Some} || Some <- pieces(Back)], lists:reverse(Refused), Entries};
digests(Malformed, _, {Offers, _, Refused}, Entries) ->
    {Offers, [], lists:reverse(Refused, [Malformed]), Entries}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What a store answers to a message of a comparison: which states and differences it offers,
%% and with which messages the comparison goes on. The steps are those of `weft_crdt_compare'.
%%
%% A digest may be large, and all digests of an answer are sent at once. So an answer has not much
%% more than so many bytes of them, and at least one. Keys that are left out still differ, and come
%% by the next comparison.
-module(weft_crdt_exchange).

-export([answer/3]).

%% Keys in one message.
-define(PIECE, 500).
-define(DIGESTS_BYTES, 4194304).
%% And twice what came, or so many, where digests are answered: many pieces may come at once.
-define(BACK_BYTES, 65536).

-type offer() :: {Key :: term(), weft_crdt_type:name(), weft_crdt_type:state()}.

%% @doc The answer to a message, whatever it is; and what of it was refused. In another turn others
%% of the keys come first: there may be some that stay different, which must not hold up the rest.
-spec answer(Msg :: term(), Turn :: non_neg_integer(), weft_crdt_entries:entries()) ->
          {[offer()], Msgs :: [term()], Refused :: [term()], weft_crdt_entries:entries()}.
answer({ranges, Given}, _Turn, Entries0) ->
    {Ranges, Entries} = weft_crdt_entries:ranges(Entries0),
    case weft_crdt_compare:ranges(Given, Ranges) of
        {ok, Answers, Missing} -> {wholes(Missing, Entries), Answers, [], Entries};
        error -> {[], [], [Given], Entries}
    end;
answer({items, Given}, Turn, Entries0) ->
    {Ranges, Entries} = weft_crdt_entries:ranges(Entries0),
    case weft_crdt_compare:items(Given, Ranges) of
        {ok, Missing, Different, Wanted} ->
            Digests = digests_of(shuffled(Different, Turn), ?DIGESTS_BYTES, Entries),
            {wholes(Missing, Entries),
             [{digests, true, Some} || Some <- pieces(Digests)]
                 ++ [{wants, Some} || Some <- pieces(Wanted)], [], Entries};
        error -> {[], [], [Given], Entries}
    end;
answer({digests, true, Given}, _Turn, Entries) ->
    digests(Given, max(?BACK_BYTES, 2 * erlang:external_size(Given)), {[], [], []}, Entries);
answer({digests, false, Given}, _Turn, Entries) ->
    digests(Given, 0, {[], [], []}, Entries);
answer({wants, Keys}, _Turn, Entries) when length(Keys) >= 0 ->
    {wholes(Keys, Entries), [], [], Entries};
answer(Malformed, _Turn, Entries) ->
    {[], [], [Malformed], Entries}.

pieces([]) -> [];
pieces(List) when length(List) =< ?PIECE -> [List];
pieces(List) ->
    {Piece, Rest} = lists:split(?PIECE, List),
    [Piece | pieces(Rest)].

shuffled(Keys, Turn) ->
    [Key || {_, Key} <- lists:sort([{erlang:phash2({Turn, Key}), Key} || Key <- Keys])].

digests_of([Key | Keys], Bytes, Entries) when Bytes > 0 ->
    Digest = weft_crdt_entries:digest(Key, Entries),
    [Digest | digests_of(Keys, Bytes - erlang:external_size(Digest), Entries)];
digests_of(_, _, _) -> [].

%% Whole states for a neighbour that has nothing of these keys.
wholes(Keys, Entries) ->
    [{Key, Type, Whole} || Key <- Keys,
                           {ok, Type, Whole} <- [weft_crdt_entries:state(Key, Entries)]].

%% Answered by so many bytes of digests.
digests([{Key, Type, Digest} | Rest], Bytes, {Offers, Known, Refused}, Entries) ->
    Acc = case weft_crdt_entries:difference(Key, Type, Digest, Entries) of
              {ok, none} -> {Offers, [Key | Known], Refused};
              {ok, Delta} -> {[{Key, Type, Delta} | Offers], [Key | Known], Refused};
              unknown -> {Offers, Known, Refused};
              {error, Reason} -> {Offers, Known, [{Key, Reason} | Refused]}
          end,
    digests(Rest, Bytes, Acc, Entries);
digests([], Bytes, {Offers, Known, Refused}, Entries) ->
    Back = digests_of(Known, Bytes, Entries),
    {Offers, [{digests, false, Some} || Some <- pieces(Back)], lists:reverse(Refused), Entries};
digests(Malformed, _, {Offers, _, Refused}, Entries) ->
    {Offers, [], lists:reverse(Refused, [Malformed]), Entries}.

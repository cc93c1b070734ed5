%% SPDX-License-Identifier: Apache-2.0
%% @doc Random terms of every kind the external term format knows, from the process's rand state.
%% The depth is bounded, so is the size: some 10 kB at most.
-module(weft_random_term).

-export([term/1]).

-define(WIDTH, 6).

%% @doc A random term, at most Depth levels deep.
-spec term(non_neg_integer()) -> term().
term(0) ->
    leaf(rand:uniform(14));
term(Depth) ->
    case rand:uniform(9) of
        1 -> list_to_tuple(terms(Depth));
        2 -> terms(Depth);
        3 -> [term(Depth - 1) | term(0)];
        4 -> maps:from_list([{term(0), term(Depth - 1)} || _ <- lists:seq(1, width())]);
        5 -> closure(term(Depth - 1));
        6 -> maps:from_list([{N, term(0)} || N <- lists:seq(1, 40)]);
        _ -> term(0)
    end.

terms(Depth) ->
    [term(Depth - 1) || _ <- lists:seq(1, width())].

width() ->
    rand:uniform(?WIDTH) - 1.

closure(Term) ->
    fun(X) -> {Term, X} end.

leaf(1) -> rand:uniform(256) - 1;
leaf(2) -> rand:uniform(1 bsl 32) - (1 bsl 31);
leaf(3) -> big(rand:uniform(64));
leaf(4) -> (rand:uniform() - 0.5) * math:pow(2, rand:uniform(200) - 100);
leaf(5) -> atom();
leaf(6) -> rand:bytes(rand:uniform(300) - 1);
leaf(7) -> bitstring(rand:uniform(40));
leaf(8) -> self();
leaf(9) -> make_ref();
leaf(10) -> [];
leaf(11) -> {};
leaf(12) -> fun erlang:send/2;
leaf(13) -> hd(erlang:ports());
leaf(14) -> lists:seq(1, rand:uniform(70)).

big(Bytes) ->
    Value = binary:decode_unsigned(rand:bytes(Bytes)),
    case rand:uniform(2) of
        1 -> Value;
        2 -> -Value
    end.

bitstring(Bits) ->
    <<(rand:uniform(1 bsl Bits) - 1):Bits>>.

%% From a small set, since atoms stay.
atom() ->
    lists:nth(rand:uniform(7), [a, '', 'with space', 'ünï', '漢字', true,
                                'an_atom_of_a_good_length_that_is_used_often']).

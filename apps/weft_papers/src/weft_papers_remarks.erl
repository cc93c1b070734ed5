%% SPDX-License-Identifier: Apache-2.0
%% @doc What has to be said in figures of several programs, in the same words: of names that are
%% compared though they are of different kinds, and of claims about more and more of something.
-module(weft_papers_remarks).

-export([names/0, up_to/2]).

%% @doc What may not be left out where eventual names of weft stand beside those of `global'.
-spec names() -> string().
names() ->
    "Names of weft are of another kind than those of stock: eventual. A register is done when this "
        "node has the name, and does not wait for the others.".

%% @doc From how many on what is claimed of more of them is judged (`weft_papers_verdict:up_to/3').
-spec up_to(pos_integer(), What :: string()) -> string().
up_to(Claimed, What) ->
    lists:concat([" Open where fewer than ", Claimed, " ", What, " were measured."]).

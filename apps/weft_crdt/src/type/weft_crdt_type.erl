%% SPDX-License-Identifier: Apache-2.0
%% @doc The contract of the types that merge (CRDTs), and the way to them by name.
%%
%% A state is an element of a join semilattice: `merge/2' is commutative, associative and
%% idempotent. An operation makes a *delta*, which is a state as well: merged into a state that has
%% it, or into any other copy, in any order and as often as one likes, it has its effect once. So
%% copies that have got the same deltas are equal, whatever the network did.
%%
%% An actor is whoever makes operations one after the other, and never again after it has lost its
%% state: a node together with its incarnation. Times are microseconds, and only registers of which
%% the last one wins ask for them.
%%
%% `difference(A, B)' is what A adds to B: merged into B it gives what A would give, and it is
%% `new()' when B has all of A. A digest stands for a state and is small; the same can be told from
%% it. A type whose digests are large may have `sums/1', which gives smaller ones; fingerprints of
%% keys are made of `digest/1' all the same, in all versions alike. `pack/1' gives what is sent, and
%% `unpack/2' takes it apart again and believes nothing.
%%
%% `retire/2' folds what retired actors did (`weft_crdt_retired'), and changes no value. It is for
%% states that have all of it: `ended/2' tells what a state has, so that states can be compared.
%% Folded and other states merge, as do those that were folded at different times; `tag/1' is the
%% table with which a state was folded last.
-module(weft_crdt_type).

-export([module/1, names/0, hash/1]).
-export_type([name/0, actor/0, who/0, state/0, packed/0, digest/0]).

-type name() :: gcounter | pncounter | orset | clset | lww_register | mv_register | ew_flag
              | dw_flag | ormap.
-type actor() :: term().
-type who() :: {actor(), NowUs :: integer()}.
-type state() :: term().
-type packed() :: term().
-type digest() :: term().

-callback new() -> state().
-callback mutate(Operation :: term(), who(), state()) ->
              {ok, Delta :: state()} | {error, Reason :: term()}.
-callback merge(state(), state()) -> state().
-callback difference(state(), state()) -> Delta :: state().
-callback value(state()) -> term().
-callback pack(state()) -> packed().
-callback unpack(packed() | term(), weft_crdt_retired:table()) -> {ok, state()} | error.
-callback digest(state()) -> digest().
-callback sums(state()) -> digest().
-callback difference_to_digest(state(), digest() | term(), weft_crdt_retired:table()) ->
              {ok, Delta :: state()} | error.
-callback retire(weft_crdt_retired:table(), state()) -> state().
-callback ended(weft_crdt_retired:table(), state()) -> none | term().
-callback actors(state()) -> [actor()].
-callback tag(state()) -> weft_crdt_retired:tag().
-optional_callbacks([sums/1]).

%% @doc All types that there are.
-spec names() -> [name()].
names() ->
    [gcounter, pncounter, orset, clset, lww_register, mv_register, ew_flag, dw_flag, ormap].

%% @doc The module of a type.
-spec module(name() | term()) -> {ok, module()} | {error, {unknown_type, term()}}.
module(gcounter) -> {ok, weft_crdt_gcounter};
module(pncounter) -> {ok, weft_crdt_pncounter};
module(orset) -> {ok, weft_crdt_orset};
module(clset) -> {ok, weft_crdt_clset};
module(lww_register) -> {ok, weft_crdt_lww_register};
module(mv_register) -> {ok, weft_crdt_mv_register};
module(ew_flag) -> {ok, weft_crdt_ew_flag};
module(dw_flag) -> {ok, weft_crdt_dw_flag};
module(ormap) -> {ok, weft_crdt_ormap};
module(Other) -> {error, {unknown_type, Other}}.

%% @doc 64 bits of any term, the same on every node.
-spec hash(term()) -> non_neg_integer().
hash(Term) -> erlang:phash2({1, Term}, 1 bsl 32) bsl 32 bor erlang:phash2({2, Term}, 1 bsl 32).

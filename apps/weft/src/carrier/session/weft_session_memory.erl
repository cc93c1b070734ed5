%% SPDX-License-Identifier: Apache-2.0
%% @doc The memory of the process of a session: more than usual while it has much to send, and
%% little when it is at rest.
%%
%% With much to send, what is queued survives many garbage collections; with the VM's own sizes a
%% third of the work was to copy it again and again. The calling process is that of the session.
-module(weft_session_memory).

-export([take/0, give_back/1, is_little/0]).
-export_type([usual/0]).

%% Words of heap and of binaries between garbage collections.
-define(BUSY, [{min_heap_size, 50000}, {min_bin_vheap_size, 1000000}]).

%% What a tick takes after the process has given its memory back is less.
-define(RESTING_WORDS, 1600).

%% The sizes from before.
-type usual() :: [{min_heap_size | min_bin_vheap_size, non_neg_integer()}, ...].

%% @doc There is much to send. Returns what is to be given back when there is nothing any more.
-spec take() -> usual().
take() -> set(?BUSY).

%% @doc There is nothing to send any more.
-spec give_back(usual()) -> ok.
give_back(Usual) ->
    _ = set(Usual),
    ok.

set(Sizes) -> [{Flag, process_flag(Flag, Size)} || {Flag, Size} <- Sizes].

%% @doc Is the process so small that it is not worth the work to make it smaller?
-spec is_little() -> boolean().
is_little() ->
    {total_heap_size, Words} = process_info(self(), total_heap_size),
    Words =< ?RESTING_WORDS.

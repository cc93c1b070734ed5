%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: small and large binaries, fragments, many senders at once.
%% Distribution cuts messages into fragments of 64 KiB, binaries over 64 bytes are off-heap: the
%% sizes are around these limits. Content is compared by hash, which costs the least memory.
-module(weft_conformance_bulk).

-include("weft_conformance.hrl").

-export([binaries_around_the_limits/1, messages_around_the_fragment_limit/1, binary_of_1_mb/1,
         binary_of_100_mb/1, many_binaries_in_one_message/1, large_messages_both_ways_at_once/1,
         fragments_of_several_senders_interleave/1, small_messages_beside_a_large_one/1,
         large_message_to_a_name_and_an_alias/1, sender_dies_after_a_large_message/1,
         receiver_dies_during_a_large_message/1, a_hundred_thousand_small_messages/1]).
-export([needs/0]).

-define(KIB_64, 65_536).
-define(MB, 1_000_000).

needs() ->
    #{binary_of_100_mb => #{time_ms => 120_000},
      a_hundred_thousand_small_messages => #{time_ms => 60_000}}.

binaries_around_the_limits(#{b := B}) ->
    Far = hasher(B),
    Sizes = [0, 1, 63, 64, 65, 255, 256, ?KIB_64 - 1, ?KIB_64, ?KIB_64 + 1,
             2 * ?KIB_64 - 1, 2 * ?KIB_64, 2 * ?KIB_64 + 1],
    [arrives(Far, rand:bytes(Size)) || Size <- Sizes].

%% The whole external term of a message is cut, so walk over the limit byte by byte.
messages_around_the_fragment_limit(#{b := B}) ->
    Far = hasher(B),
    Bytes = rand:bytes(?KIB_64),
    [arrives(Far, binary:part(Bytes, 0, ?KIB_64 - Less)) || Less <- lists:seq(0, 200)].

binary_of_1_mb(#{b := B}) ->
    arrives(hasher(B), rand:bytes(?MB)).

binary_of_100_mb(#{b := B}) ->
    Far = hasher(B),
    Bytes = binary:copy(rand:bytes(?MB), 100),
    Hash = erlang:md5(Bytes),
    Far ! {hash, self(), Bytes},
    receive
        {hashed, Far, 100_000_000, Hash} -> ok
    after 100_000 -> weft_expect:missed("hash of 100 MB", ?MODULE, ?LINE, 100_000)
    end.

many_binaries_in_one_message(#{b := B}) ->
    arrives(hasher(B), [rand:bytes(N * 100) || N <- lists:seq(1, 200)]).

large_messages_both_ways_at_once(#{a := A, b := B}) ->
    Near = self(),
    Talk = fun(Node) ->
                   Hasher = hasher(Node),
                   [arrives(Hasher, rand:bytes(?MB)) || _ <- lists:seq(1, 5)],
                   Near ! {talked, Node}
           end,
    spawn_link(A, fun() -> Talk(B) end),
    spawn_link(B, fun() -> Talk(A) end),
    ?expect({talked, A}),
    ?expect({talked, B}).

fragments_of_several_senders_interleave(#{b := B}) ->
    Far = hasher(B),
    Send = fun() -> [arrives(Far, rand:bytes(300_000 + N)) || N <- lists:seq(1, 5)] end,
    Senders = [spawn_monitor(Send) || _ <- lists:seq(1, 8)],
    [?expect({'DOWN', Monitor, process, Pid, normal}) || {Pid, Monitor} <- Senders].

small_messages_beside_a_large_one(#{b := B}) ->
    Far = hasher(B),
    Large = rand:bytes(10 * ?MB),
    {Bulk, BulkMonitor} = spawn_monitor(fun() -> arrives(Far, Large) end),
    [pong = erpc:call(B, fun() -> pong end) || _ <- lists:seq(1, 50)],
    ?expect({'DOWN', BulkMonitor, process, Bulk, normal}).

large_message_to_a_name_and_an_alias(#{b := B}) ->
    Far = weft_puppet:start(B),
    Alias = weft_puppet:do(Far, fun() -> register(conformance_large, self()), alias() end),
    Bytes = rand:bytes(?MB),
    {conformance_large, B} ! {by_name, Bytes},
    Alias ! {by_alias, Bytes},
    Far ! {by_pid, Bytes},
    Hash = erlang:md5(Bytes),
    Got = weft_puppet:do(Far, fun() -> [next_hash() || _ <- [1, 2, 3]] end),
    [{by_name, Hash}, {by_alias, Hash}, {by_pid, Hash}] = Got.

next_hash() ->
    ?expect({How, Bytes}, {How, erlang:md5(Bytes)}).

sender_dies_after_a_large_message(#{b := B}) ->
    Near = self(),
    {Far, Monitor} = spawn_monitor(B, fun() -> Near ! {last, <<3:(8 * ?MB)>>}, exit(gone) end),
    ?expect({last, <<3:(8 * ?MB)>>}),
    ?expect({'DOWN', Monitor, process, Far, gone}).

receiver_dies_during_a_large_message(#{b := B}) ->
    Large = rand:bytes(5 * ?MB),
    [begin
         {Far, Monitor} = weft_puppet:start(B, [monitor]),
         exit(Far, kill),
         Far ! Large,
         ?expect({'DOWN', Monitor, process, Far, killed})
     end || _ <- lists:seq(1, 3)],
    arrives(hasher(B), <<"the connection is as before">>).

a_hundred_thousand_small_messages(#{b := B}) ->
    Count = 100_000,
    Near = self(),
    Far = spawn_link(B, fun() -> Near ! {counted, count(1, Count)} end),
    [Far ! N || N <- lists:seq(1, Count)],
    ?expect({counted, Count}).

count(N, Count) ->
    ?expect(N),
    case N of
        Count -> Count;
        _ -> count(N + 1, Count)
    end.

%% ---- a process there that answers with the hash of what it got ----

arrives(Hasher, Content) ->
    Hasher ! {hash, self(), Content},
    Size = iolist_size(Content),
    Hash = erlang:md5(Content),
    ?expect({hashed, Hasher, Size, Hash}).

hasher(Node) ->
    Owner = self(),
    spawn(Node, fun() -> hash_loop(monitor(process, Owner)) end).

hash_loop(Monitor) ->
    receive
        {'DOWN', Monitor, process, _, _} ->
            ok;
        {hash, From, Content} ->
            From ! {hashed, self(), iolist_size(Content), erlang:md5(Content)},
            hash_loop(Monitor)
    end.

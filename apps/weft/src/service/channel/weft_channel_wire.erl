%% SPDX-License-Identifier: Apache-2.0
%% @doc The payloads of a channel's stream, byte by byte (docs/internals/wire-format.md).
%%
%% Small items go as one batch, encoded once: the external term format of a list. In a large message
%% the large binaries are taken out of the term and follow it as they are, so that neither side
%% copies them into or out of an encoded term. A large message may be announced on its stream and
%% travel in chunks on others.
%%
%% `decode/1' trusts its peer as much as the distribution does: a node that has proved to know the
%% cookie may send any term, atoms included. But sizes are checked: what a payload claims is checked
%% before memory is allocated for it.
-module(weft_channel_wire).

-export([batch/3, with_binaries/1, announcement/5, chunk/4, decode/1, large_bytes/0,
         is_compressible/1]).
-export_type([item/0, payload/0, dest/0, announced/0]).

-type dest() :: pid() | atom().
%% What an item is: a message; one for many receivers, encoded before; or one with extras:
%% acknowledged to an alias, in the causal order of a label, with a stamp from when a queue has it;
%% its message may be encoded before, too.
-type item() :: nonempty_improper_list(dest(), Message :: term())
              | {many, [dest()], Encoded :: binary()}
              | {extra, dest(), Message :: term(),
                 Ack :: none | {reference(), RetainMs :: pos_integer()},
                 Causal :: none | {Label :: term(), none | weft_causal_core:stamp()}}
              | {extra_encoded, dest(), Encoded :: binary(), Ack :: term(), Causal :: term()}.
-type announced() :: #{id := weft_channel_chunks_core:id(), bytes := non_neg_integer(),
                       count := pos_integer(), from := pid(), to := [dest()]}.
-type payload() :: {items, [item()]} | {groups, [nonempty_maybe_improper_list(dest(), term())]}
                 | {announced, announced()}
                 | {chunk, AnnouncedOn :: byte(), weft_channel_chunks_core:id(),
                    Index :: non_neg_integer(), binary()}.

-define(BATCH, 1).
-define(WITH_BINARIES, 2).
-define(ANNOUNCED, 3).
-define(CHUNK, 4).
-define(GROUPS, 5).

%% From this size on a message is a payload of its own.
-define(LARGE_BYTES, 65536).
%% Items of this size, on average, are not copied together.
-define(MEDIUM_BYTES, 4096).
%% Binaries of this size and more are taken out of a large message.
-define(BINARY_BYTES, 16384).
%% How deep and how wide such binaries are looked for.
-define(DEPTH_MAX, 4).
-define(WIDTH_MAX, 32).
%% An announced message may be as large as any term of the VM; a compressed batch may not.
-define(INFLATED_BYTES_MAX, 268435456).

-spec large_bytes() -> pos_integer().
large_bytes() -> ?LARGE_BYTES.

%% @doc May a message of about that size be compressed? What it would be without that is not
%% allocated at the receiver for a larger one.
-spec is_compressible(CostBytes :: non_neg_integer()) -> boolean().
is_compressible(CostBytes) -> CostBytes =< ?INFLATED_BYTES_MAX div 2.

%% @doc Many items in one payload. Level is that of zlib, 0 for none; if compression does not make
%% the payload smaller it is left out. Many small items are copied together, because that is cheaper
%% than to write them in pieces; items of medium size are not.
-spec batch([item()], CostBytes :: non_neg_integer(), Level :: 0..9) ->
          {iodata(), Bytes :: pos_integer()}.
batch(Items, CostBytes, Level) ->
    {Type, Term} = case groups(Items, #{}) of
                       mixed -> {?BATCH, Items};
                       Groups -> {?GROUPS, Groups}
                   end,
    Encoded = case Level of
                  0 when CostBytes div length(Items) >= ?MEDIUM_BYTES ->
                      term_to_iovec(Term, [{minor_version, 2}]);
                  0 ->
                      term_to_binary(Term, [{minor_version, 2}]);
                  _ ->
                      term_to_binary(Term, [{compressed, Level}, {minor_version, 2}])
              end,
    {[<<Type>> | Encoded], 1 + iolist_size(Encoded)}.

%% Ordinary messages, by receiver: its pid has thirty bytes and is costly to decode, so it is sent
%% once. One alone may come in chunks, which are put together to an item.
groups([_], Groups) when map_size(Groups) =:= 0 ->
    mixed;
groups([[To | Message] | Items], Groups) ->
    case Groups of
        #{To := Messages} -> groups(Items, Groups#{To := [Message | Messages]});
        #{} -> groups(Items, Groups#{To => [Message]})
    end;
groups([], Groups) ->
    [[To | lists:reverse(Messages)] || {To, Messages} <- maps:to_list(Groups)];
groups(_Other, _Groups) ->
    mixed.

%% @doc One large item, with its large binaries after the term.
-spec with_binaries(item()) -> {erlang:iovec(), Bytes :: pos_integer()}.
with_binaries(Item) ->
    {Skeleton, Holes} = take_out(Item, 0, [], []),
    Binaries = [Binary || {_, Binary} <- lists:reverse(Holes)],
    Places = [{Path, byte_size(Binary)} || {Path, Binary} <- lists:reverse(Holes)],
    Head = term_to_iovec({Skeleton, Places}, [{minor_version, 2}]),
    Body = [<<?WITH_BINARIES, (iolist_size(Head)):32>> | Head ++ Binaries],
    {Body, iolist_size(Body)}.

%% Paths are kept backwards: the place in the innermost term first.
take_out(Binary, _Depth, Path, Holes) when is_binary(Binary), byte_size(Binary) >= ?BINARY_BYTES ->
    {[], [{lists:reverse(Path), Binary} | Holes]};
take_out([Head | Tail], Depth, Path, Holes0) when Depth < ?DEPTH_MAX ->
    {NewHead, Holes1} = take_out(Head, Depth + 1, [head | Path], Holes0),
    {NewTail, Holes} = take_out(Tail, Depth + 1, [tail | Path], Holes1),
    {[NewHead | NewTail], Holes};
take_out(Tuple, Depth, Path, Holes)
  when is_tuple(Tuple), Depth < ?DEPTH_MAX, tuple_size(Tuple) =< ?WIDTH_MAX ->
    take_out_of(Tuple, tuple_size(Tuple), Depth + 1, Path, Holes);
take_out(Term, _Depth, _Path, Holes) ->
    {Term, Holes}.

take_out_of(Tuple, 0, _Depth, _Path, Holes) ->
    {Tuple, Holes};
take_out_of(Tuple, Index, Depth, Path, Holes0) ->
    case take_out(element(Index, Tuple), Depth, [Index | Path], Holes0) of
        {_Same, Holes0} -> take_out_of(Tuple, Index - 1, Depth, Path, Holes0);
        {New, Holes} ->
            take_out_of(setelement(Index, Tuple, New), Index - 1, Depth, Path, Holes)
    end.

%% @doc In the place of a large item: its number, size and pieces, the process to tell when it is
%% complete, and the receivers whose messages wait for it.
-spec announcement(weft_channel_chunks_core:id(), non_neg_integer(), pos_integer(), From :: pid(),
                   [dest()]) -> binary().
announcement(Id, Bytes, Count, From, To) ->
    <<?ANNOUNCED, Id:64, Bytes:64, Count:32, (term_to_binary({From, To}))/binary>>.

%% @doc A piece of the message Id, which was announced on that partition.
-spec chunk(Partition :: byte(), weft_channel_chunks_core:id(), non_neg_integer(),
            erlang:iovec()) -> iodata().
chunk(Partition, Id, Index, Piece) ->
    [<<?CHUNK, Partition, Id:64, Index:32>> | Piece].

%% @doc A payload from a peer, which may be malformed.
-spec decode(binary()) -> payload() | malformed.
decode(<<?GROUPS, Encoded/binary>>) ->
    case items(Encoded) of
        malformed -> malformed;
        Groups when is_list(Groups) -> {groups, Groups};
        _ -> malformed
    end;
decode(<<?BATCH, Encoded/binary>>) ->
    case items(Encoded) of
        malformed -> malformed;
        Items when is_list(Items) -> {items, Items};
        _ -> malformed
    end;
decode(<<?WITH_BINARIES, HeadBytes:32, Head:HeadBytes/binary, Binaries/binary>>) ->
    case term(Head) of
        {Item, Places} -> put_back(Item, Places, Binaries);
        _ -> malformed
    end;
decode(<<?ANNOUNCED, Id:64, Bytes:64, Count:32, To/binary>>) when Count > 0 ->
    case term(To) of
        {From, Dests} when is_pid(From), is_list(Dests) ->
            {announced, #{id => Id, bytes => Bytes, count => Count, from => From, to => Dests}};
        _ ->
            malformed
    end;
decode(<<?CHUNK, Partition, Id:64, Index:32, Chunk/binary>>) ->
    {chunk, Partition, Id, Index, Chunk};
decode(_) ->
    malformed.

items(<<131, 80, Inflated:32, _/binary>>) when Inflated > ?INFLATED_BYTES_MAX -> malformed;
items(Encoded) -> term(Encoded).

term(Encoded) ->
    try binary_to_term(Encoded) catch error:badarg -> malformed end.

put_back(Item, Places, Binaries) ->
    try {items, [fill(Places, Binaries, Item)]} catch error:_ -> malformed end.

fill([], <<>>, Item) ->
    Item;
fill([{Path, Bytes} | Places], Binaries, Item) ->
    <<Binary:Bytes/binary, Rest/binary>> = Binaries,
    fill(Places, Rest, fill_in(Path, Binary, Item)).

fill_in([], Binary, []) -> Binary;
fill_in([head | Path], Binary, [Head | Tail]) -> [fill_in(Path, Binary, Head) | Tail];
fill_in([tail | Path], Binary, [Head | Tail]) -> [Head | fill_in(Path, Binary, Tail)];
fill_in([Index | Path], Binary, Tuple) ->
    setelement(Index, Tuple, fill_in(Path, Binary, element(Index, Tuple))).

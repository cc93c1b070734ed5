%% SPDX-License-Identifier: Apache-2.0
%% @doc The records of a file of `weft_kv_log', and what is wrong at the end of them. Pure.
%%
%% A record is its size, a checksum of the size, a checksum of the bytes, and the bytes. The records
%% of one commit are one together, with another checksum of its size.
%%
%% A commit that was being written when the host ended is not whole (`torn'): the file ends in the
%% midst of it, or a sector of the disk was not written and reads as zeros. Sectors are written as
%% a whole, and in any order. If it is the one in which the commit begins, the end of the commit
%% before is in it, too; so where that is, and zeros follow, nobody was told of the rest of the
%% file. A last record that is all there and has another checksum was damaged later, and so was
%% anything else that is wrong: also a commit whose first sector is zeros from its beginning, or has
%% less of the commit than a size and its checksum, as these may be zeros that were written.
-module(weft_kv_log_records).

-export([one/1, together/1, read/2]).

-define(SECTOR, 512).
-define(SIZE_BYTES, 8). % a size and its checksum
-define(TOGETHER, "together"). % in the checksum of a size: the record is several ones

%% @doc The record of an entry.
-spec one(term()) -> iodata().
one(Entry) -> framed("", term_to_binary(Entry, [{minor_version, 2}])).

%% @doc The records of a commit.
-spec together([iodata()]) -> iodata().
together([]) -> [];
together([One]) -> One;
together(Records) -> framed(?TOGETHER, Records).

framed(Kind, Bytes) ->
    Size = <<(iolist_size(Bytes)):32>>,
    [Size, <<(erlang:crc32([Size, Kind])):32, (erlang:crc32(Bytes)):32>>, Bytes].

%% @doc The entries of the records, which begin at that place of the file, up to their end or to
%% what is wrong; and where that is.
-spec read(binary(), At :: non_neg_integer()) ->
          {whole | torn | damaged, At :: non_neg_integer(), [term()]}.
read(Records, At) -> read(Records, At, []).

read(<<>>, At, Entries) ->
    {whole, At, lists:reverse(Entries)};
read(<<Size:32, SizeSum:32, Sum:32, Rest/binary>> = Bytes, At, Entries) ->
    case {kind(<<Size:32>>, SizeSum), Rest} of
        {unknown, _} -> {begun(At, Bytes), At, lists:reverse(Entries)};
        {Kind, <<Record:Size/binary, Further/binary>>} ->
            case {erlang:crc32(Record), Further} of
                {Sum, _} -> read(Further, At + 12 + Size, taken(Kind, Record, Entries));
                {_, <<>>} -> wrong(last(At, Bytes), At, {Kind, Record}, Entries);
                {_, _} -> wrong(damaged, At, {Kind, Record}, Entries)
            end;
        {_, _} -> {torn, At, lists:reverse(Entries)}
    end;
read(_, At, Entries) ->
    {torn, At, lists:reverse(Entries)}.

kind(Size, Sum) ->
    case {erlang:crc32(Size), erlang:crc32([Size, ?TOGETHER])} of
        {Sum, _} -> one;
        {_, Sum} -> together;
        {_, _} -> unknown
    end.

taken(one, Record, Entries) ->
    [binary_to_term(Record) | Entries];
taken(together, Records, Entries) ->
    {whole, _, Together} = read(Records, 0),
    lists:reverse(Together, Entries).

%% Of several ones those before the damage.
wrong(damaged, At, {together, Records}, Entries) ->
    {_, _, Before} = read(Records, 0),
    {damaged, At, lists:reverse(Entries, Before)};
wrong(How, At, _, Entries) ->
    {How, At, lists:reverse(Entries)}.

%% A file may have got longer without its bytes.
begun(At, Bytes) ->
    {Sector, _} = of_sector(At, Bytes),
    case is_zeros(Bytes) orelse (At rem ?SECTOR > 0 andalso byte_size(Sector) >= ?SIZE_BYTES
                                     andalso is_zeros(Sector)) of
        true -> torn;
        false -> damaged
    end.

%% The same within the last record.
last(_At, <<>>) ->
    damaged;
last(At, Bytes) ->
    {Sector, Rest} = of_sector(At, Bytes),
    case is_zeros(Sector) of
        true -> torn;
        false -> last(At + byte_size(Sector), Rest)
    end.

of_sector(At, Bytes) ->
    split_binary(Bytes, min(?SECTOR - At rem ?SECTOR, byte_size(Bytes))).

is_zeros(Bytes) -> Bytes =:= <<0:(8 * byte_size(Bytes))>>.

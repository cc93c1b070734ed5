%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps the atom cache of a connection consistent while frames overtake each other.
%%
%% The VM replaces atoms in what it sends by slots of a cache. The header of a frame names the slots
%% that it uses, and defines those that are new (ERTS User's Guide, "Distribution Header"). The VM
%% at the other end updates its cache frame by frame, so a frame must find there what was defined
%% when it was made:
%%
%%   131,68,N,Flags,References,..                         a whole signal
%%   131,69,Sequence:64,Fragment:64,N,Flags,References,.. the first fragment of a signal
%%
%% So each frame gets a stamp when it comes from the VM: the state of the cache that it was made
%% for, and whether it defines a slot. When it is sent, in whatever order, its stamp is compared
%% with what the peer has then. As long as no definition was overtaken they agree, and frames pass
%% unchanged. Otherwise the header is rewritten: slots that the peer lacks, or has with another
%% atom, are defined again. The first frame that was made for the present state then also defines
%% all other slots that differ, so both ends agree again.
-module(weft_atom_cache).

-export([new/0, is_settled/1, defines/1, header_bytes/1, fetched/2, unseen/2, joined/2, sent/4,
         changes/1]).
-export_type([cache/0, stamp/0, stamps/0]).

-define(ENTRIES_MAX, 255).

-type slot() :: 0..2047.
-type atoms() :: #{slot() => Text :: binary()}.
%% `none': the frame uses no slots. Else the number of the state, its atoms, and whether this frame
%% has led to it.
-type stamp() :: none | {non_neg_integer(), atoms(), uses | defines}.
%% For the frames of a payload, the last ones first.
-type stamps() :: [{Frames :: pos_integer(), stamp()}].
-type entry() :: {slot(), old | Text :: binary()}.

%% What the VM has defined, and what has been sent. The latter has no number if it never was a state
%% of the former.
-record(cache, {number = 0 :: non_neg_integer(),
                atoms = #{} :: atoms(),
                sent = {0, #{}} :: sent(),
                changes = 0 :: non_neg_integer()}).
-type sent() :: {non_neg_integer() | none, atoms()}.
-opaque cache() :: #cache{}.

-spec new() -> cache().
new() -> #cache{}.

%% @doc Does the peer have all that the VM has defined, so that frames that define nothing can pass
%% as they are?
-spec is_settled(cache()) -> boolean().
is_settled(#cache{number = Number, sent = {Number, _}}) -> true;
is_settled(_) -> false.

%% --- reading headers --------------------------------------------------------------------------

%% @doc Does the header of the frame define a slot?
-spec defines(iodata()) -> boolean().
defines([<<131, 68, Count, Flags/binary>> | _]) -> is_new(Count, Flags);
defines([<<131, 69, _:128, Count, Flags/binary>> | _]) -> is_new(Count, Flags);
defines(_) -> false.

%% Four bits for each reference, the highest says new; then those of the atoms' length.
is_new(0, _) -> false;
is_new(1, <<Flags, _/binary>>) -> Flags band 16#08 =/= 0;
is_new(Count, <<Flags:16, _/binary>>) when Count < 4 -> Flags band 16#8888 =/= 0;
is_new(Count, <<Flags:32, Rest/binary>>) when Count >= 8 ->
    Flags band 16#88888888 =/= 0 orelse is_new(Count - 8, Rest);
is_new(Count, <<Flags, Rest/binary>>) ->
    Flags band 16#88 =/= 0 orelse Count > 2 andalso is_new(Count - 2, Rest).

%% @doc Length of a header that uses slots, up to the control message.
-spec header_bytes(Frame :: binary()) -> pos_integer() | none.
header_bytes(Frame) ->
    case header(Frame) of
        {_, _, Rest} -> byte_size(Frame) - byte_size(Rest);
        none -> none
    end.

-spec header(binary()) -> {Before :: binary(), [entry()], Rest :: binary()} | none.
header(<<131, 68, Count, References/binary>>) when Count > 0 ->
    entries(<<131, 68>>, Count, References);
header(<<131, 69, Numbers:16/binary, Count, References/binary>>) when Count > 0 ->
    entries(<<131, 69, Numbers/binary>>, Count, References);
header(_) ->
    none.

entries(Before, Count, References) ->
    FlagBytes = Count div 2 + 1,
    case References of
        <<Flags:FlagBytes/binary, Slots/binary>> ->
            %% Two in a byte, the first in the lower half.
            Halves = << <<Low:4, High:4>> || <<High:4, Low:4>> <= Flags >>,
            <<OfEntries:(4 * Count)/bitstring, _:3, Long:1, _/bitstring>> = Halves,
            entries(OfEntries, 8 + 8 * Long, Slots, Before, []);
        _ ->
            none
    end.

entries(<<0:1, Segment:3, Flags/bitstring>>, Long, <<Index, Slots/binary>>, Before, Entries) ->
    entries(Flags, Long, Slots, Before, [{Segment * 256 + Index, old} | Entries]);
entries(<<1:1, Segment:3, Flags/bitstring>>, Long, <<Index, References/binary>>, Before, Entries) ->
    case References of
        <<Length:Long, Text:Length/binary, Slots/binary>> ->
            entries(Flags, Long, Slots, Before, [{Segment * 256 + Index, Text} | Entries]);
        _ ->
            none
    end;
entries(<<>>, _Long, Rest, Before, Entries) ->
    {Before, lists:reverse(Entries), Rest};
entries(_, _, _, _, _) ->
    none.

%% --- stamps -----------------------------------------------------------------------------------

%% @doc The stamp of the next frame that the VM has made.
-spec fetched(iodata(), cache()) -> {stamp(), cache()}.
fetched(Frame, #cache{number = Number, atoms = Atoms0} = Cache) ->
    case defines(Frame) of
        true ->
            Atoms = defined(header(hd(Frame)), Atoms0),
            {{Number + 1, Atoms, defines}, Cache#cache{number = Number + 1, atoms = Atoms}};
        false ->
            {used(Frame, Cache), Cache}
    end.

defined({_, Entries, _}, Atoms0) ->
    lists:foldl(fun({_, old}, Atoms) -> Atoms;
                   ({Slot, Text}, Atoms) -> Atoms#{Slot => Text}
                end, Atoms0, Entries).

used([<<131, 68, Count, _/binary>> | _], Cache) when Count > 0 -> present(Cache);
used([<<131, 69, _:128, Count, _/binary>> | _], Cache) when Count > 0 -> present(Cache);
used(_, _Cache) -> none.

present(#cache{number = Number, atoms = Atoms}) -> {Number, Atoms, uses}.

%% @doc The stamps of so many frames that define nothing, read or not.
-spec unseen(Frames :: pos_integer(), cache()) -> stamps().
unseen(Frames, Cache) -> [{Frames, present(Cache)}].

%% @doc The stamps of frames and of those that come after them.
-spec joined(Behind :: stamps(), stamps()) -> stamps().
joined([{More, none}], [{Frames, none} | Stamps]) ->
    [{Frames + More, none} | Stamps];
joined([{More, {Number, _, uses}}], [{Frames, {Number, _, uses} = Stamp} | Stamps]) ->
    [{Frames + More, Stamp} | Stamps];
%% What uses no slots is correct wherever something else is.
joined([{More, none}], [{Frames, {_, _, uses} = Stamp} | Stamps]) ->
    [{Frames + More, Stamp} | Stamps];
joined([{More, {_, _, uses} = Stamp}], [{Frames, none} | Stamps]) ->
    [{Frames + More, Stamp} | Stamps];
joined(Behind, Stamps) ->
    Behind ++ Stamps.

%% --- what goes out ----------------------------------------------------------------------------

%% @doc A payload (frames, each after its size) is sent next. Returns the payload to send in its
%% place, which is correct after what was sent before it.
-spec sent(iodata(), Bytes :: non_neg_integer(), stamps(), cache()) ->
          {iodata(), Bytes :: non_neg_integer(), cache()}.
sent(Payload, Bytes, [{_, {Number, _, uses}}], #cache{sent = {Number, _}} = Cache) ->
    {Payload, Bytes, Cache};
sent(Payload, Bytes, Stamps0, #cache{sent = Sent0} = Cache) ->
    Stamps = lists:reverse(Stamps0),
    case as_they_are(Stamps, Sent0) of
        overtaken ->
            Frames = [Frame || <<Size:32, Frame:Size/binary>> <= iolist_to_binary(Payload)],
            {Rewritten, Sent} = rewrite(Frames, Stamps, Cache, Sent0, <<>>),
            {Rewritten, byte_size(Rewritten), changed(Cache#cache{sent = Sent})};
        {Number, _} when Number =:= element(1, Sent0) ->
            {Payload, Bytes, Cache};
        Sent ->
            {Payload, Bytes, changed(Cache#cache{sent = Sent})}
    end.

changed(#cache{changes = Changes} = Cache) -> Cache#cache{changes = Changes + 1}.

%% @doc A number that differs when what was sent may have changed the peer's state.
-spec changes(cache()) -> non_neg_integer().
changes(#cache{changes = Changes}) -> Changes.

as_they_are([], Sent) -> Sent;
as_they_are([{_, none} | Stamps], Sent) -> as_they_are(Stamps, Sent);
as_they_are([{_, Stamp} | Stamps], Sent0) ->
    case follows(Stamp, Sent0) of
        {true, Sent} -> as_they_are(Stamps, Sent);
        false -> overtaken
    end.

%% Is what was sent the state that the frame was made for?
follows({Number, Atoms, uses}, {Number, _}) -> {true, {Number, Atoms}};
follows({Number, Atoms, defines}, {Before, _}) when Number =:= Before + 1 ->
    {true, {Number, Atoms}};
follows(_, _) -> false.

rewrite([], [], _Cache, Sent, Payload) ->
    {Payload, Sent};
rewrite(Frames, [{0, _} | Stamps], Cache, Sent, Payload) ->
    rewrite(Frames, Stamps, Cache, Sent, Payload);
rewrite([Frame0 | Frames], [{Count, Stamp} | Stamps], Cache, Sent0, Payload) ->
    {Frame, Sent} = frame(Frame0, Stamp, Cache, Sent0),
    rewrite(Frames, [{Count - 1, Stamp} | Stamps], Cache, Sent,
            <<Payload/binary, (byte_size(Frame)):32, Frame/binary>>).

frame(Frame, none, _Cache, Sent) ->
    {Frame, Sent};
frame(Frame, Stamp, Cache, Sent0) ->
    case follows(Stamp, Sent0) of
        {true, Sent} -> {Frame, Sent};
        false -> with_header(header(Frame), Frame, Stamp, Cache, Sent0)
    end.

%% A frame of a batch, which was not read.
with_header(none, Frame, _Stamp, _Cache, Sent) ->
    {Frame, Sent};
with_header({Before, Entries, Rest}, Frame, {Number, Atoms, _}, Cache, {_, Have} = Sent) ->
    Used = [{Slot, maps:get(Slot, Atoms)} || {Slot, _} <- Entries],
    Others = others(Number, Used, Cache, Have),
    case lacking(Used, Have) of
        [] when Others =:= [] ->
            {Frame, Sent};
        Lacking ->
            Now = maps:merge(Have, maps:from_list(Lacking ++ Others)),
            Header = header(Used ++ Others, Have),
            {<<Before/binary, Header/binary, Rest/binary>>, state(Now, Cache)}
    end.

lacking(Used, Have) ->
    [Entry || {Slot, Text} = Entry <- Used, maps:get(Slot, Have, none) =/= Text].

%% What a frame of the present state defines besides, so that the peer has this state.
others(Number, Used, #cache{number = Number, atoms = Atoms}, Have) ->
    lists:sublist(lacking(maps:to_list(maps:without([Slot || {Slot, _} <- Used], Atoms)), Have),
                  ?ENTRIES_MAX - length(Used));
others(_Number, _Used, _Cache, _Have) ->
    [].

state(Atoms, #cache{number = Number, atoms = Atoms}) -> {Number, Atoms};
state(Atoms, _Cache) -> {none, Atoms}.

%% In the form that `entries/3' reads.
header(Entries, Have) ->
    Long = case lists:any(fun({_, Text}) -> byte_size(Text) > 255 end, Entries) of
               true -> 1;
               false -> 0
           end,
    Told = [{Slot, Text, maps:get(Slot, Have, none) =/= Text} || {Slot, Text} <- Entries],
    OfEntries = << <<(flag(New)):1, (Slot div 256):3>> || {Slot, _, New} <- Told >>,
    Padding = 4 * ((length(Entries) + 1) rem 2),
    Flags = << <<Second:4, First:4>>
               || <<First:4, Second:4>> <= <<OfEntries/bitstring, Long:4, 0:Padding>> >>,
    References = << <<(reference(Slot, Text, New, 8 + 8 * Long))/binary>>
                    || {Slot, Text, New} <- Told >>,
    <<(length(Entries)), Flags/binary, References/binary>>.

flag(true) -> 1;
flag(false) -> 0.

reference(Slot, _Text, false, _Long) -> <<Slot>>;
reference(Slot, Text, true, Long) -> <<Slot, (byte_size(Text)):Long, Text/binary>>.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Counters in partitions that survive a kill of their node: each change is in a file together
%% with its note before it is answered. It uses the data of `my_counters', the example of the guide.
%% An item that is taken is added to what is there, so that one that is taken twice counts twice.
-module(weft_vnode_durable).
-behaviour(weft_vnode).

-export([add/2, all/0]).
-export([init/2, command/3, change/4, items/3, take/3, clear/2, cover/2, note/2, terminate/2,
         directory/1]).

-record(durable, {counters = gb_trees:empty() :: gb_trees:tree(),
                  kept = weft_vnode_notes:fresh() :: weft_vnode_notes:kept(),
                  file = none :: none | file:fd()}).

add(Key, Amount) -> weft_vnode:call(?MODULE, Key, {add, Amount}, 3000).

%% All counters.
all() ->
    case weft_vnode:cover(?MODULE, all, 5000) of
        {ok, Answers} -> {ok, lists:append([Counters || {_Partition, Counters} <- Answers])};
        {error, Reason} -> {error, Reason}
    end.

init(Partition, #{dir := Dir}) ->
    Name = filename:join(Dir, integer_to_list(Partition)),
    ok = filelib:ensure_dir(Name),
    Written = case file:read_file(Name) of {ok, Bytes} -> Bytes; {error, enoent} -> <<>> end,
    #durable{kept = Kept} = Before = replayed(Written, #durable{}),
    {ok, File} = file:open(Name, [raw, append]),
    {ok, Before#durable{file = File}, Kept}.

%% Where the node was killed the last record may be half of one.
replayed(<<Size:32, Record:Size/binary, Further/binary>>, Durable) ->
    replayed(Further, done(binary_to_term(Record), Durable));
replayed(_, Durable) ->
    Durable.

directory(#{dir := Dir}) -> Dir.

command(Key, Command, #durable{counters = Counters}) ->
    my_counters:command(Key, Command, Counters).

change(Key, Change, Note, Durable) -> written({change, Key, Change, Note}, Durable).

items(Cursor, Max, #durable{counters = Counters}) -> my_counters:items(Cursor, Max, Counters).

take(Items, Note, Durable) -> written({take, Items, Note}, Durable).

clear(Note, Durable) -> written({clear, Note}, Durable).

note(Note, Durable) -> written({note, Note}, Durable).

cover(all, #durable{counters = Counters}) -> gb_trees:to_list(Counters).

terminate(_Reason, #durable{file = File}) -> file:close(File).

written(What, #durable{file = File} = Durable) ->
    Record = term_to_binary(What),
    ok = file:write(File, <<(byte_size(Record)):32, Record/binary>>),
    {ok, done(What, Durable)}.

done({change, Key, Change, Note}, #durable{counters = Counters} = Durable) ->
    {ok, New} = my_counters:change(Key, Change, Note, Counters),
    noted(Note, Durable#durable{counters = New});
done({take, Items, Note}, Durable) ->
    noted(Note, lists:foldl(fun({Key, Value}, D) -> done({change, Key, {add, Value}, none}, D) end,
                            Durable, Items));
done({clear, Note}, Durable) ->
    noted(Note, Durable#durable{counters = gb_trees:empty()});
done({note, Note}, Durable) ->
    noted(Note, Durable).

noted(Note, #durable{kept = Kept} = Durable) ->
    Durable#durable{kept = weft_vnode_notes:add(Note, Kept)}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The command `weft kv': keys and values of the application weft_kv, asked of one node that
%% runs it. Here words become requests, and answers become text; what requests mean is in `weft_kv'.
-module(weft_cli_kv).

-export([kv/2, why/1]).

%% A request of the store takes 5 s unless its bucket says otherwise.
-define(TIMEOUT_MS, 30000).

%% `limit' is there always.
-define(OPTIONS, #{context => ["put", "delete"], file => ["put"], content_type => ["put"],
                   ttl_ms => ["put"], out => ["get"], encoded => ["get", "put", "delete"],
                   'after' => ["list"], bucket => ["export", "import"], into => ["import"],
                   check => ["import"], overwrite => ["import"], keep => ["backup"]}).

%% @doc weft kv ACTION WORD...
-spec kv([atom() | string()], weft_argparse:given()) -> weft_cli:answer().
kv([Action | Words], Options) ->
    case weft_cli_actions:check({"kv", atom_to_list(Action)}, Options, ?OPTIONS) of
        ok -> answered(request(Action, Words, Options), Options);
        {error, Text} -> {usage, Text}
    end.

answered(Request, Options) ->
    case Request of
        {ok, {archive, Archive, File}} ->
            with_store(Options, fun(Node, _) ->
                                    weft_cli_kv_archive:run(Archive, {File, Options}, Node)
                                end);
        {ok, Of} -> with_store(Options, fun(Node, Buckets) -> run(Of, Node, Buckets) end);
        {error, Text} -> {usage, Text}
    end.

%% --- what the words say -----------------------------------------------------------------------

request(get, [Bucket, Key], Options) -> keyed(get, Bucket, Key, Options);
request(put, [Bucket, Key, Value], Options) when not is_map_key(file, Options) ->
    with_value(unicode:characters_to_binary(Value), Bucket, Key, Options);
request(put, [Bucket, Key], #{file := File} = Options) ->
    case file:read_file(File) of
        {ok, Value} -> with_value(Value, Bucket, Key, Options);
        {error, Reason} -> {error, ["no value: ", File, ": ", file:format_error(Reason)]}
    end;
request(delete, [Bucket, Key], Options) -> keyed(delete, Bucket, Key, Options);
request(list, [Bucket], #{'after' := Text, limit := Limit}) ->
    case weft_octets:from_base64url(unicode:characters_to_binary(Text)) of
        {ok, Cursor} -> {ok, {list, Bucket, Cursor, Limit}};
        error -> {error, ["--after ", Text, ": write what the list before has said"]}
    end;
request(list, [Bucket], #{limit := Limit}) -> {ok, {list, Bucket, start, Limit}};
request(info, [], _Options) -> {ok, buckets};
request(info, [Bucket], _Options) -> {ok, {info, Bucket}};
request(Action, [File], _Options) when Action =:= export; Action =:= import; Action =:= backup ->
    {ok, {archive, Action, File}};
request(Action, _Words, _Options) -> {error, ["write: weft kv ", usage(Action)]}.

usage(get) -> "get BUCKET KEY";
usage(put) -> "put BUCKET KEY VALUE, or put BUCKET KEY --file FILE";
usage(delete) -> "delete BUCKET KEY";
usage(list) -> "list BUCKET";
usage(info) -> "info [BUCKET]";
usage(export) -> "export FILE, or export - for standard output";
usage(import) -> "import FILE, or import - for standard input";
usage(backup) -> "backup DIRECTORY".

with_value(Value, Bucket, Key, Options) ->
    case keyed(put, Bucket, Key, Options) of
        {ok, {put, B, K, Given}} ->
            Typed = case Options of
                        #{content_type := Type} ->
                            Given#{content_type => unicode:characters_to_binary(Type)};
                        #{} -> Given
                    end,
            {ok, {put, B, K, Value, maps:merge(Typed, maps:with([ttl_ms], Options))}};
        {error, Text} -> {error, Text}
    end.

keyed(Action, Bucket, Word, Options) ->
    case {key(Word, Options), context(Options)} of
        {{ok, Key}, {ok, Given}} ->
            {ok, {Action, Bucket, Key, case Action of
                                           get -> maps:with([out, json], Options);
                                           _ -> Given
                                       end}};
        {{error, Text}, _} -> {error, Text};
        {_, {error, Text}} -> {error, Text}
    end.

key(Word, #{encoded := true}) ->
    case weft_octets:from_percent(unicode:characters_to_binary(Word)) of
        {ok, Key} -> {ok, Key};
        error -> {error, [Word, ": write %XX with two hexadecimal digits"]}
    end;
key(Word, _Options) ->
    {ok, unicode:characters_to_binary(Word)}.

context(#{context := Text}) ->
    case weft_octets:from_base64url(unicode:characters_to_binary(Text)) of
        {ok, Context} -> {ok, #{context => Context}};
        error -> {error, ["--context ", Text, ": write the one that was printed"]}
    end;
context(_Options) ->
    {ok, #{}}.

%% --- a node that has the store ----------------------------------------------------------------

with_store(#{node := Name} = Options, Fun) ->
    case lists:member($@, Name) of
        true -> weft_cli_node:with_node(Name, Options, fun(Node) -> of_first([Node], Fun) end);
        false -> weft_cli_cluster:with_nodes(Options, [Name], fun(_, Nodes) ->
                                                                  of_first(Nodes, Fun)
                                                              end)
    end;
with_store(Options, Fun) ->
    weft_cli_cluster:with_cluster(Options, fun(Cluster) ->
                                               of_first(weft_local:running(Cluster), Fun)
                                           end).

of_first([], _Fun) ->
    {no_node, "no node of the cluster runs"};
of_first([Node | Nodes], Fun) ->
    case weft_local_control:call(Node, {weft_kv_app, buckets, []}) of
        {ok, {ok, Buckets}} -> Fun(Node, Buckets);
        {not_running, Text} when Nodes =:= [] -> {no_node, Text};
        _ when Nodes =:= [] ->
            {failed, [atom_to_list(Node), " does not run weft_kv: put it on the code path, "
                      "configure it (docs/guide/kv.md) and start it, or name another node by "
                      "--node"]};
        _ -> of_first(Nodes, Fun)
    end.

%% --- requests ---------------------------------------------------------------------------------

run(buckets, _Node, Buckets) ->
    Rows = [[atom_to_list(Name) | [text(maps:get(Key, Bucket, '-'))
                                     || Key <- [n, r, w, siblings, evict, durability, consistency]]]
            || {Name, Bucket} <- lists:sort(maps:to_list(Buckets))],
    {ok, #{buckets => maps:map(fun(_, Bucket) -> readable(Bucket) end, Buckets)},
     weft_cli_table:format([["bucket", "n", "r", "w", "siblings", "evict", "durability",
                             "consistency"] | Rows])};
run(Request, Node, Buckets) ->
    Given = element(2, Request),
    case [Name || Name <- maps:keys(Buckets), atom_to_list(Name) =:= Given] of
        [Bucket] -> act(setelement(2, Request, Bucket), Node);
        [] -> {failed, ["no bucket ", Given, " on ", atom_to_list(Node), ": it has ",
                        case lists:sort(maps:keys(Buckets)) of
                            [] -> "none";
                            Names -> lists:join(" ", [atom_to_list(Name) || Name <- Names])
                        end]}
    end.

act({get, Bucket, Key, Out}, Node) ->
    asked(Node, read, [Bucket, Key, #{}],
          fun({ok, Siblings, Context}) ->
                  values(Siblings, weft_octets:base64url(Context), Out)
          end);
act({put, Bucket, Key, Value, Given}, Node) ->
    asked(Node, put, [Bucket, Key, Value, Given], fun(Result) -> written("written", Result) end);
act({delete, Bucket, Key, Given}, Node) ->
    asked(Node, delete, [Bucket, Key, Given], fun(Result) -> written("deleted", Result) end);
act({list, Bucket, Cursor, Limit}, Node) ->
    asked(Node, keys, [Bucket, Cursor, Limit],
          fun({ok, Keys, Next}) -> listed([printable(Key) || Key <- Keys], Next) end);
act({info, Bucket}, Node) ->
    asked(Node, info, [Bucket], fun({ok, Info}) -> info(Bucket, Node, Info) end).

asked(Node, Function, Arguments, Show) ->
    case weft_local_control:call(Node, {weft_kv, Function, Arguments}, ?TIMEOUT_MS) of
        {ok, {error, not_found}} -> {not_found, "no such key"};
        {ok, {error, Reason}} -> {failed, why(Reason)};
        {ok, Result} -> Show(Result);
        {not_running, Text} -> {no_node, Text};
        {error, Text} -> {failed, Text}
    end.

%% @doc An error of the store in words.
-spec why(term()) -> iodata().
why({too_large, Max}) -> ["the value is too large: this bucket takes ", text(Max), " bytes"];
why(bad_key) -> "keys have 1 to 4096 bytes";
why(bad_context) -> "this is no context of this key: write the one that was printed, as a whole";
why({too_many_siblings, Max}) ->
    io_lib:format("the key has ~b values already, of writes that did not know each other; nothing "
                  "was written. Get it, and write what they amount to with --context.", [Max]);
why(bad_cursor) -> "this is no cursor: write after --after what the list before has said";
why(overload) -> "the node has too many requests at once: try again";
why(no_ring) -> "the node has no ring yet: weft_ring:create() or join/1 (docs/guide/ring.md)";
why({too_few, #{needed := Needed, answered := Answered, failed := Failed}}) ->
    io_lib:format("too few replicas: ~0tp needed, ~b answered; ~0tp. A write may be found later; "
                  "it can be repeated.", [Needed, Answered, Failed]);
why(timeout) -> "the replicas did not answer in time. A write may be found later; it can be "
                "repeated.";
why(Reason) -> io_lib:format("~0tp", [Reason]).

%% --- answers ----------------------------------------------------------------------------------

values([#{value := Value} = Sibling], Context, #{out := File}) ->
    case file:write_file(File, Value) of
        ok -> {ok, (sibling(Sibling))#{context => Context},
               [File, ": ", weft_cli_table:bytes(byte_size(Value)), $\n]};
        {error, Reason} -> {failed, [File, ": ", file:format_error(Reason)]}
    end;
values([Sibling], Context, #{json := true}) ->
    {ok, (sibling(Sibling))#{context => Context}, []};
values([#{value := Value}], _Context, _Out) ->
    %% As bytes: each is a character of Latin-1, and goes out as itself.
    _ = io:setopts([{encoding, latin1}]),
    io:put_chars([binary_to_list(Value), ["\n" || weft_cli_terminal:is_terminal(output)]]),
    shown;
values(Siblings, Context, _Out) ->
    {siblings, #{siblings => [sibling(Sibling) || Sibling <- Siblings], context => Context},
     [io_lib:format("~b values, of writes that did not know each other:~n", [length(Siblings)]),
      [[printable(Value), $\n] || #{value := Value} <- Siblings],
      "Write what they amount to with --context ", Context, $\n]}.

sibling(#{value := Value} = Sibling) ->
    maps:merge(maps:with([content_type, written_ms, expires_ms], Sibling),
               case unicode:characters_to_binary(Value) of
                   Value -> #{value => Value};
                   _NoText -> #{value_base64 => base64:encode(Value)}
               end).

written(Word, {ok, Context}) ->
    Text = weft_octets:base64url(Context),
    {ok, #{context => Text}, [Word, ", context ", Text, $\n]}.

listed(Keys, Next) ->
    Cursor = case Next of done -> null; _ -> weft_octets:base64url(Next) end,
    {ok, #{keys => Keys, next => Cursor},
     [[[Key, $\n] || Key <- Keys],
      [["More: --after ", Cursor, $\n] || Cursor =/= null]]}.

info(Bucket, Node, #{bucket := Options, ring := Ring, stats := Stats}) ->
    {ok, #{bucket => Bucket, options => readable(Options), node => Node, stats => Stats,
           ring => case Ring of
                       {error, Reason} -> #{error => Reason};
                       #{} -> Ring
                   end},
     [io_lib:format("bucket ~ts, asked of ~ts~n", [Bucket, Node]),
      weft_cli_table:format([["  " ++ atom_to_list(Key), text(Value)]
                             || {Key, Value} <- lists:sort(maps:to_list(Options))]),
      "ring\n", ring(Ring), "on this node\n", stats(Stats)]}.

%% In JSON a string would be a list of numbers.
readable(#{dir := Dir} = Options) -> Options#{dir := unicode:characters_to_binary(Dir)};
readable(Options) -> Options.

ring({error, Reason}) -> ["  ", why(Reason), $\n];
ring(#{members := Members, owned := Owned, moving := Moving}) ->
    weft_cli_table:format([["  " ++ atom_to_list(Node), atom_to_list(Status),
                            weft_cli_table:plural(maps:get(Node, Owned, 0), "partition")]
                           || {Node, Status} <- lists:sort(maps:to_list(Members))]
                          ++ [["  moving", weft_cli_table:plural(Moving, "partition")]]).

stats(not_running) -> "  weft_kv does not run\n";
stats(#{hints := Hints, running := Running, entropy := #{repaired := Repaired}}) ->
    weft_cli_table:format([["  hints that wait for other nodes", text(Hints)],
                           ["  requests that run", text(Running)],
                           ["  keys repaired by comparison", text(Repaired)]]).

text(Value) -> lists:flatten(io_lib:format("~tp", [Value])).

%% Text as it is; what is none, and the sign for that, byte by byte.
printable(Bytes) -> unicode:characters_to_binary(chars(Bytes)).

chars(<<>>) -> [];
chars(<<Char/utf8, Rest/binary>>) when Char >= 32, Char =/= 127, Char =/= $% ->
    [Char | chars(Rest)];
chars(<<Byte, Rest/binary>>) -> [io_lib:format("%~2.16.0B", [Byte]) | chars(Rest)].

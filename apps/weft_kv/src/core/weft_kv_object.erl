%% SPDX-License-Identifier: Apache-2.0
%% @doc What a replica holds for a key: the values that no later write has seen (siblings), and
%% which writes are known. Pure.
%%
%% These are dotted version vectors (Preguica, Baquero, Almeida, Fonte, Goncalves 2012), in the
%% form of one vector for all values: each write has a *dot*, its actor and that actor's number, and
%% the vector says up to which number the writes of each actor are known. Of two replicas a value
%% stays if both have it, or if the other one does not know its dot. So a write that has seen a
%% value replaces it everywhere, and one that has not is its sibling. A deletion is a value, too.
%%
%% A client gets the vector as its *context*, in bytes that mean nothing to it, and gives it back
%% with its next write of that key. With the context of another one it would replace what nobody has
%% read, as an actor writes many keys.
%%
%% A client can make up a context. Were a number in it believed that no actor has given out yet, the
%% write that gets this number later would be taken for replaced, and be lost. So a context only
%% takes away values that are there (`put/4'); of what else it names, an object knows what some
%% replica knows (`weft_kv_seen'). So all numbers in all objects were given out.
%%
%% An actor may never use a number twice: it is a replica of one partition, in one run of its
%% process. Where a replica forgets objects it has to remember the last number that it has used for
%% any key (`{Actor, Last}'). Otherwise it begins at 1 again with the next write of a forgotten key,
%% and that is taken for an old one wherever the key was not forgotten.
-module(weft_kv_object).

-export([new/0, put/4, knows/2, replace/3, last/2, merge/2, merge/3, once/3, latest/1, siblings/1,
         values/1, count/1, rename/2, context/2, decode/2, expire/2, shed/2, living/2,
         number_max/0, is_content_type/1, content_types/0]).
-export_type([object/0, value/0, actor/0, writer/0, context/0, of_key/0, vector/0]).

-define(CONTENT_TYPE_MAX, 255).

-type actor() :: binary().
-type writer() :: actor() | {actor(), Last :: non_neg_integer()}.
-type vector() :: #{actor() => pos_integer()}.
-type dot() :: {actor(), pos_integer()}.
-type value() :: #{value := binary() | deleted, written_ms := integer(),
                   expires_ms := integer() | never, content_type => binary(),
                   request => binary()}.
%% `request': other requests have other bytes there. Values of earlier versions have none.
-type object() :: {vector(), #{dot() => value()}}.
-type context() :: binary().
-type of_key() :: {Bucket :: atom(), Key :: binary()}.

-define(VERSION, 1).
%% An actor that wrote a million times a second would get there after two thousand years.
-define(NUMBER_MAX, (1 bsl 56)).
%% In a context the key stands in place of an actor that is none. Earlier versions take it for one.
-define(NO_ACTOR, <<>>).

%% @doc Nothing was ever written.
-spec new() -> object().
new() -> {#{}, #{}}.

%% @doc A write by this actor, of a client that has seen what its context says. Of that only values
%% that are here are replaced. If the value is there with its time and its request, and the client
%% has not seen it, another replica was asked for this very write before, and it is not done twice.
-spec put(value(), vector(), writer(), object()) -> object().
put(Value, Seen, {Actor, Last}, {Known, Values}) ->
    Left = maps:filter(fun(Dot, _) -> not covers(Seen, Dot) end, Values),
    case lists:member(Value, maps:values(Left)) of
        true -> {Known, Left};
        false ->
            Number = max(Last, maps:get(Actor, Known, 0)) + 1,
            {Known#{Actor => Number}, Left#{{Actor, Number} => Value}}
    end;
put(Value, Seen, Actor, Object) ->
    put(Value, Seen, {Actor, 0}, Object).

%% @doc Does the object know all that a client has seen?
-spec knows(vector(), object()) -> boolean().
knows(Seen, {Known, _}) ->
    maps:fold(fun(Actor, Number, Is) -> Is andalso covers(Known, {Actor, Number}) end, true, Seen).

%% @doc The object of a write whose client has seen this: it also knows, as replaced, what is known
%% elsewhere of that. It keeps its values, as those that the client has seen are gone already.
-spec replace(vector(), Elsewhere :: object(), object()) -> object().
replace(Seen, {Elsewhere, _}, {Known, Values}) ->
    There = maps:map(fun(Actor, Number) -> min(Number, map_get(Actor, Elsewhere)) end,
                     maps:with(maps:keys(Elsewhere), Seen)),
    {join(Known, There), Values}.

%% @doc The last number of this actor that the object knows.
-spec last(actor(), object()) -> non_neg_integer().
last(Actor, {Known, _}) -> maps:get(Actor, Known, 0).

%% @doc What both replicas know.
-spec merge(object(), object()) -> object().
merge(Object, Object) ->
    Object;
merge({KnownA, ValuesA}, {KnownB, ValuesB}) ->
    Keep = fun(Values, Others, OtherKnown) ->
               maps:filter(fun(Dot, _) ->
                               is_map_key(Dot, Others) orelse not covers(OtherKnown, Dot)
                           end, Values)
           end,
    {join(KnownA, KnownB),
     maps:merge_with(fun same/3, Keep(ValuesA, ValuesB, KnownB), Keep(ValuesB, ValuesA, KnownA))}.

%% The value of one write on two replicas, of which one may have shed its bytes. (An archive that an
%% earlier version has made may have left something out.)
same(_, #{value := deleted} = Shed, #{value := Bytes}) when Bytes =/= deleted -> Shed;
same(_, #{value := Bytes}, #{value := deleted} = Shed) when Bytes =/= deleted -> Shed;
same(_, A, B) -> max(A, B).

%% @doc The same in a bucket with siblings, or in one without: then only the value that was written
%% last stays. Where clocks differ, each replica may have dropped the other one's value for one that
%% was replaced since. Then the later one of these two stays, or there would be none.
-spec merge(object(), object(), Siblings :: boolean()) -> object().
merge(A, B, true) ->
    merge(A, B);
merge({_, ValuesA} = A, {_, ValuesB} = B, false) ->
    case merge(A, B) of
        {Known, Values} when map_size(Values) =:= 0 ->
            latest({Known, maps:merge(ValuesA, ValuesB)});
        Both -> latest(Both)
    end.

%% @doc One replica has made the first object of a write of this value, and another one the second
%% one, with a dot of its own. What both know if only the dot of the second one counts, and the
%% other one is taken for replaced. `none': there is none, or it can not be told from others.
-spec once(value(), object(), object()) -> {ok, object()} | none.
once(Value, {Known, Values}, {_, Others} = Object) ->
    case [Dot || {Dot, Same} <- maps:to_list(Values), Same =:= Value,
                 not is_map_key(Dot, Others)] of
        [Dot] -> {ok, merge({Known, maps:remove(Dot, Values)}, Object)};
        _ -> none
    end.

%% @doc Only the value that was written last by its clock, for buckets that want that. Of equal
%% times the greater dot, so that all replicas decide alike.
-spec latest(object()) -> object().
latest({Known, Values}) when map_size(Values) =< 1 ->
    {Known, Values};
latest({Known, Values}) ->
    {_, Dot} = lists:max([{Ms, Dot} || {Dot, #{written_ms := Ms}} <- maps:to_list(Values)]),
    {Known, maps:with([Dot], Values)}.

%% @doc The values, without deletions, in an order that is the same everywhere.
-spec values(object()) -> [binary()].
values(Object) ->
    [Value || #{value := Value} <- siblings(Object), Value =/= deleted].

%% @doc All siblings, deletions among them.
-spec siblings(object()) -> [value()].
siblings({_, Values}) ->
    [Value || {_, Value} <- lists:sort(maps:to_list(Values))].

%% @doc How many siblings there are, deletions among them.
-spec count(object()) -> non_neg_integer().
count({_, Values}) -> map_size(Values).

%% @doc The same writes, of actors with other names; those of distinct ones are distinct.
-spec rename(fun((actor()) -> actor()), object()) -> object().
rename(Name, {Known, Values}) ->
    {maps:from_list([{Name(Actor), Number} || {Actor, Number} <- maps:to_list(Known)]),
     maps:from_list([{{Name(Actor), Number}, Value}
                     || {{Actor, Number}, Value} <- maps:to_list(Values)])}.

%% @doc A value whose time is over is as good as deleted.
-spec expire(integer(), object()) -> object().
expire(NowMs, {Known, Values}) ->
    {Known, maps:map(fun(_, #{expires_ms := Ms} = Value) when is_integer(Ms), Ms =< NowMs ->
                             Value#{value := deleted};
                        (_, Value) -> Value
                     end, Values)}.

%% @doc The same writes, without the bytes of values whose time is over. Such a value has that time,
%% and a deletion has none.
-spec shed(integer(), object()) -> object().
shed(NowMs, Object) ->
    {Known, Values} = expire(NowMs, Object),
    {Known, maps:map(fun(_, #{value := deleted} = Value) -> maps:remove(content_type, Value);
                        (_, Value) -> Value
                     end, Values)}.

%% @doc The same without deletions, and without values whose time is over.
-spec living(integer(), object()) -> object().
living(NowMs, Object) ->
    {Known, Values} = expire(NowMs, Object),
    {Known, maps:filter(fun(_, #{value := Value}) -> Value =/= deleted end, Values)}.

covers(Vector, {Actor, Number}) -> Number =< maps:get(Actor, Vector, 0).

join(A, B) ->
    maps:fold(fun(Actor, Number, Vector) ->
                  Vector#{Actor => max(Number, maps:get(Actor, Vector, 0))}
              end, A, B).

%% @doc The highest number that is taken from outside, of writes of an actor.
-spec number_max() -> pos_integer().
number_max() -> ?NUMBER_MAX.

%% --- contexts ---------------------------------------------------------------------------------

%% @doc What a client that has read this key has seen.
-spec context(of_key(), object()) -> context().
context(OfKey, {Known, _}) ->
    Bytes = << <<(byte_size(Actor)):16, Actor/binary, Number:64>>
               || {Actor, Number} <- lists:sort(maps:to_list(Known#{?NO_ACTOR => hash(OfKey)})) >>,
    <<?VERSION, (erlang:crc32(Bytes)):32, Bytes/binary>>.

%% The same on all nodes, of whatever release.
hash(OfKey) -> erlang:phash2(OfKey, 1 bsl 32) + 1.

%% @doc A context that a client gives back. It comes from outside, so nothing is believed, and what
%% it says may be made up (see above). Those of earlier versions do not say of which key they are.
-spec decode(of_key(), context() | none) -> {ok, vector()} | {error, bad_context}.
decode(_, none) ->
    {ok, #{}};
decode(OfKey, <<?VERSION, Checksum:32, Bytes/binary>>) ->
    case erlang:crc32(Bytes) of
        Checksum -> of_key(OfKey, decoded(Bytes, #{}));
        _ -> {error, bad_context}
    end;
decode(_, _) ->
    {error, bad_context}.

of_key(OfKey, {ok, Vector}) ->
    Hash = hash(OfKey),
    case maps:take(?NO_ACTOR, Vector) of
        {Hash, Seen} -> {ok, Seen};
        {_OfAnotherKey, _} -> {error, bad_context};
        error -> {ok, Vector}
    end;
of_key(_, {error, Reason}) ->
    {error, Reason}.

%% However many actors there are: what was given out has to be taken back, or nobody could replace
%% the value any more.
decoded(<<>>, Vector) ->
    {ok, Vector};
decoded(<<Size:16, Actor:Size/binary, Number:64, Rest/binary>>, Vector)
  when Number > 0, Number =< ?NUMBER_MAX, not is_map_key(Actor, Vector) ->
    decoded(Rest, Vector#{Actor => Number});
decoded(_, _) ->
    {error, bad_context}.

%% @doc May it be the `content_type' of a value? It becomes a line of the head of an answer of HTTP.
-spec is_content_type(term()) -> boolean().
is_content_type(Type) when is_binary(Type), Type =/= <<>>, byte_size(Type) =< ?CONTENT_TYPE_MAX ->
    lists:all(fun(Byte) -> Byte >= $\s andalso Byte =< $~ end, binary_to_list(Type));
is_content_type(_Other) ->
    false.

%% @doc Which ones there may be, for an error.
-spec content_types() -> tuple().
content_types() -> {printable_ascii_bytes_from, 1, to, ?CONTENT_TYPE_MAX}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The keys of a store, each with its type and state. Fingerprints are brought up to date only
%% when they are asked for, so that a key that changes a thousand times is hashed once. A key
%% without content has none: it need not be known anywhere else.
-module(weft_crdt_entries).

-export([new/1, declare/3, mutate/4, learn/4, learn_all/2, packed/1, value/2, state/2, digest/2,
         difference/4, keys/1, is_key/2, ranges/1]).
-export_type([entries/0]).

-record(entries, {
    max :: pos_integer(),
    known = #{} :: #{Key :: term() => {weft_crdt_type:name(), module(), weft_crdt_type:state()}},
    changed = #{} :: #{Key :: term() => []},
    ranges = weft_crdt_ranges:new() :: weft_crdt_ranges:ranges()}).

-opaque entries() :: #entries{}.
-type reason() :: {unknown_type, term()} | {other_type, weft_crdt_type:name()}
                | {too_many_keys, pos_integer()} | undeclared | bad_operation | term().

%% @doc No keys, and how many there may be.
-spec new(pos_integer()) -> entries().
new(Max) -> #entries{max = Max}.

%% @doc Makes a key; once more is no error.
-spec declare(Key :: term(), weft_crdt_type:name(), entries()) ->
          {ok, entries()} | {error, reason()}.
declare(Key, Type, #entries{known = Known, max = Max} = Entries) ->
    case {weft_crdt_type:module(Type), Known} of
        {{error, Reason}, _} -> {error, Reason};
        {_, #{Key := {Type, _, _}}} -> {ok, Entries};
        {_, #{Key := {Other, _, _}}} -> {error, {other_type, Other}};
        _ when map_size(Known) >= Max -> {error, {too_many_keys, Max}};
        {{ok, M}, _} -> {ok, Entries#entries{known = Known#{Key => {Type, M, M:new()}}}}
    end.

%% @doc Carries out an operation. The delta is `none' if it changed nothing.
-spec mutate(Key :: term(), term(), weft_crdt_type:who(), entries()) ->
          {ok, {weft_crdt_type:name(), weft_crdt_type:state()} | none, entries()}
        | {error, reason()}.
mutate(Key, Operation, Who, #entries{known = Known} = Entries) ->
    case Known of
        #{Key := {Type, M, State}} ->
            case M:mutate(Operation, Who, State) of
                {ok, Delta} ->
                    case Delta =:= M:new() of
                        true -> {ok, none, Entries};
                        false -> {ok, {Type, Delta}, merged(Key, Type, M, State, Delta, Entries)}
                    end;
                {error, Reason} -> {error, Reason}
            end;
        #{} -> {error, undeclared}
    end.

merged(Key, Type, M, State, Delta, #entries{known = Known, changed = Changed} = Entries) ->
    Entries#entries{known = Known#{Key => {Type, M, M:merge(State, Delta)}},
                    changed = Changed#{Key => []}}.

%% @doc Merges what another node has sent. `Delta': what of it was new here.
-spec learn(Key :: term(), term(), weft_crdt_type:packed() | term(), entries()) ->
          {new, weft_crdt_type:state(), entries()} | known | {error, reason()}.
learn(Key, Type, Packed, Entries0) ->
    case declare(Key, Type, Entries0) of
        {ok, #entries{known = #{Key := {_, M, State}}} = Entries} ->
            case M:unpack(Packed) of
                {ok, Sent} ->
                    Delta = M:difference(Sent, State),
                    case Delta =:= M:new() of
                        true -> known;
                        false -> {new, Delta, merged(Key, Type, M, State, Delta, Entries)}
                    end;
                error -> {error, malformed}
            end;
        {error, Reason} -> {error, Reason}
    end.

%% @doc Merges what was sent or kept; what is not valid is left out.
-spec learn_all([{Key :: term(), term(), term()}], entries()) -> entries().
learn_all(Items, Entries0) ->
    lists:foldl(fun({Key, Type, Packed}, Entries) ->
                    case learn(Key, Type, Packed, Entries) of
                        {new, _, More} -> More;
                        _ -> Entries
                    end
                end, Entries0, Items).

%% @doc All that has content, one item for each key.
-spec packed(entries()) -> [{Key :: term(), weft_crdt_type:name(), weft_crdt_type:packed()}].
packed(#entries{known = Known}) ->
    [{Key, Type, M:pack(State)} || {Key, {Type, M, State}} <- maps:to_list(Known),
                                   State =/= M:new()].

-spec value(Key :: term(), entries()) -> {ok, term()} | error.
value(Key, #entries{known = Known}) ->
    case Known of
        #{Key := {_, M, State}} -> {ok, M:value(State)};
        #{} -> error
    end.

-spec state(Key :: term(), entries()) ->
          {ok, weft_crdt_type:name(), weft_crdt_type:state()} | error.
state(Key, #entries{known = Known}) ->
    case Known of
        #{Key := {Type, _, State}} -> {ok, Type, State};
        #{} -> error
    end.

-spec digest(Key :: term(), entries()) -> {Key :: term(), weft_crdt_type:name(), term()}.
digest(Key, #entries{known = Known}) ->
    #{Key := {Type, M, State}} = Known,
    {Key, Type, M:digest(State)}.

%% @doc What this store adds to the state of which another node has sent the digest.
-spec difference(Key :: term(), term(), term(), entries()) ->
          {ok, weft_crdt_type:state() | none} | unknown | {error, reason()}.
difference(Key, Type, Digest, #entries{known = Known}) ->
    case Known of
        #{Key := {Type, M, State}} ->
            New = M:new(),
            case M:difference_to_digest(State, Digest) of
                {ok, New} -> {ok, none};
                {ok, Delta} -> {ok, Delta};
                error -> {error, malformed}
            end;
        #{Key := {Other, _, _}} -> {error, {other_type, Other}};
        #{} -> unknown
    end.

-spec keys(entries()) -> [{Key :: term(), weft_crdt_type:name()}].
keys(#entries{known = Known}) -> [{Key, Type} || {Key, {Type, _, _}} <- maps:to_list(Known)].

-spec is_key(Key :: term(), entries()) -> boolean().
is_key(Key, #entries{known = Known}) -> is_map_key(Key, Known).

%% @doc The fingerprints, up to date.
-spec ranges(entries()) -> {weft_crdt_ranges:ranges(), entries()}.
ranges(#entries{known = Known, changed = Changed, ranges = Ranges0} = Entries) ->
    Ranges = maps:fold(fun(Key, [], R) ->
                           #{Key := {Type, M, State}} = Known,
                           weft_crdt_ranges:put(Key, {Type, M:digest(State)}, R)
                       end, Ranges0, Changed),
    {Ranges, Entries#entries{changed = #{}, ranges = Ranges}}.

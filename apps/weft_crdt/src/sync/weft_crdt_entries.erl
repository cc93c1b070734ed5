%% SPDX-License-Identifier: Apache-2.0
%% @doc The keys of a store, each with its type and state. Fingerprints are brought up to date only
%% when they are asked for, so that a key that changes a thousand times is hashed once. A key
%% without content has none: it need not be known anywhere else.
%%
%% It also knows which actors are retired, and the members: all nodes that ever had a store, as far
%% as they are not retired.
-module(weft_crdt_entries).

-export([new/1, begun/1, declare/3, mutate/4, learn/4, learn_all/2, packed/1, value/2, state/2,
         digest/2, difference/4, keys/1, is_key/2, ranges/1]).
-export([table/1, stamp/1, hash/1, ended/2, actors/1, retire/3, meet/2, members/1, is_full/1]).
-export_type([entries/0, hash/0]).

-define(MEMBERS_MAX, 10000).

-record(entries, {
    max :: pos_integer(),
    known = #{} :: #{Key :: term() => {weft_crdt_type:name(), module(), weft_crdt_type:state()}},
    changed = #{} :: #{Key :: term() => []},
    ranges = weft_crdt_ranges:new() :: weft_crdt_ranges:ranges(),
    table = weft_crdt_retired:new() :: weft_crdt_retired:table(),
    %% That of the table, which each message carries.
    stamp = {0, 0} :: weft_crdt_retired:stamp(),
    %% Of what those had done who are retired since the table before.
    hash = none :: none | hash(),
    members = #{} :: members(),
    is_full = false :: boolean()}).

-opaque entries() :: #entries{}.
-type hash() :: non_neg_integer().
-type members() :: #{node() => weft_crdt_retired:incarnation()}.
%% What is kept in files, in its order. A version that knows of no retired actors does not start
%% with such a file; members it leaves out.
-type item() :: {Key :: term(), weft_crdt_type:name(), weft_crdt_type:packed()}
              | {weft_crdt, retired, weft_crdt_retired:table(), none | hash()}
              | {members, weft_crdt_members, members()}.
-type reason() :: {unknown_type, term()} | {other_type, weft_crdt_type:name()}
                | {too_many_keys, pos_integer()} | undeclared | bad_operation | term().

%% @doc No keys, and how many there may be.
-spec new(pos_integer()) -> entries().
new(Max) -> #entries{max = Max}.

%% @doc With those that were declared and kept before; see the options of `weft_crdt_core'.
-spec begun(weft_core:options()) -> entries().
begun(#{keys_max := Max} = Options) ->
    Declared = lists:foldl(fun({Key, Type}, Acc) ->
                               {ok, More} = declare(Key, Type, Acc),
                               More
                           end, new(Max), maps:get(declared, Options, [])),
    learn_all(maps:get(kept, Options, []), Declared).

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
learn(Key, Type, Packed, #entries{table = Table} = Entries0) ->
    case declare(Key, Type, Entries0) of
        {ok, #entries{known = #{Key := {_, M, State}}} = Entries} ->
            case M:unpack(Packed, Table) of
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

%% @doc Merges what was kept, in its order; what is not valid is left out.
-spec learn_all([item() | term()], entries()) -> entries().
learn_all(Items, Entries0) ->
    lists:foldl(fun({weft_crdt, retired, Table, Hash}, Entries) ->
                        element(2, retire(Table, Hash, Entries));
                   ({members, weft_crdt_members, Members}, Entries) ->
                        element(2, meet(Members, Entries));
                   ({Key, Type, Packed}, Entries) ->
                        case learn(Key, Type, Packed, Entries) of
                            {new, _, More} -> More;
                            _ -> Entries
                        end
                end, Entries0, Items).

%% @doc All that has content, one item for each key; and before it what else there is to know.
-spec packed(entries()) -> [item()].
packed(#entries{known = Known, table = Table, hash = Hash, members = Members}) ->
    ByTag = maps:groups_from_list(fun({Tag, _}) -> {weft_crdt_retired:epoch(Tag), Tag} end,
                                  fun({_, Item}) -> Item end,
                                  [{M:tag(State), {Key, Type, M:pack(State)}}
                                   || {Key, {Type, M, State}} <- maps:to_list(Known),
                                      State =/= M:new()]),
    %% What was folded with a table of before is read with that.
    Before = [[{weft_crdt, retired, Tag, none} | Items]
              || {{_, Tag}, Items} <- lists:sort(maps:to_list(ByTag)),
                 Tag =/= none, Tag =/= Table],
    Now = [{weft_crdt, retired, Table, Hash} || weft_crdt_retired:epoch(Table) > 0],
    lists:append([[{members, weft_crdt_members, Members} || map_size(Members) > 0] | Before])
        ++ Now ++ maps:get({weft_crdt_retired:epoch(Table), Table}, ByTag, [])
        ++ maps:get({0, none}, ByTag, []).

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

%% @doc What another node is sent to tell what it adds to the state of a key.
-spec digest(Key :: term(), entries()) -> {Key :: term(), weft_crdt_type:name(), term()}.
digest(Key, #entries{known = Known}) ->
    #{Key := {Type, M, State}} = Known,
    {Key, Type, case erlang:function_exported(M, sums, 1) of
                    true -> M:sums(State);
                    false -> M:digest(State)
                end}.

%% @doc What this store adds to the state of which another node has sent the digest.
-spec difference(Key :: term(), term(), term(), entries()) ->
          {ok, weft_crdt_type:state() | none} | unknown | {error, reason()}.
difference(Key, Type, Digest, #entries{known = Known, table = Table}) ->
    case Known of
        #{Key := {Type, M, State}} ->
            New = M:new(),
            case M:difference_to_digest(State, Digest, Table) of
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

%% --- retired actors ---------------------------------------------------------------------------

%% @doc Which actors are retired.
-spec table(entries()) -> weft_crdt_retired:table().
table(#entries{table = Table}) -> Table.

%% @doc The stamp of that table.
-spec stamp(entries()) -> weft_crdt_retired:stamp().
stamp(#entries{stamp = Stamp}) -> Stamp.

%% @doc The hash with which the table came.
-spec hash(entries()) -> none | hash().
hash(#entries{hash = Hash}) -> Hash.

%% @doc A hash of all that is known of actors that this table retires: of what is gone when their
%% states are folded, and of what it is added to. In 64 bits, as `weft_crdt_ranges' has them.
-spec ended(weft_crdt_retired:table(), entries()) -> hash().
ended(Table, #entries{known = Known}) ->
    maps:fold(fun(Key, {Type, M, State}, Sum) ->
                  case M:ended(Table, State) of
                      none -> Sum;
                      Ended -> Sum bxor weft_crdt_type:hash({Key, Type, Ended})
                  end
              end, 0, Known).

%% @doc All actors that are not retired, of all keys.
-spec actors(entries()) -> [weft_crdt_type:actor()].
actors(#entries{known = Known, table = Table}) ->
    All = maps:fold(fun(_, {_, M, State}, Acc) ->
                        lists:foldl(fun(Actor, A) -> A#{Actor => []} end, Acc, M:actors(State))
                    end, #{}, Known),
    [Actor || Actor <- maps:keys(All), not weft_crdt_retired:is_retired(Actor, Table)].

%% @doc From now on these are retired. All states are folded if what they have is what the hash is
%% of. Otherwise something is missing here: they stay as they are, and merge with states of other
%% stores that were folded.
-spec retire(weft_crdt_retired:table(), none | hash(), entries()) ->
          {IsFolded :: boolean(), entries()}.
retire(Table, Hash, #entries{members = Members} = Entries0) ->
    Left = maps:filter(fun(Node, Incarnation) ->
                           not weft_crdt_retired:is_retired({Node, Incarnation}, Table)
                       end, Members),
    Entries = Entries0#entries{table = Table, stamp = weft_crdt_retired:stamp(Table), hash = Hash,
                               members = Left},
    case ended(Table, Entries0) of
        Hash -> {true, folded(Table, Entries)};
        _ -> {false, Entries}
    end.

folded(Table, #entries{known = Known} = Entries) ->
    maps:fold(fun(Key, {Type, M, Before}, #entries{known = Acc, changed = Changed} = E) ->
                  case M:retire(Table, Before) of
                      Before -> E;
                      State -> E#entries{known = Acc#{Key := {Type, M, State}},
                                         changed = Changed#{Key => []}}
                  end
              end, Entries, Known).

%% @doc There are stores on these nodes, in these runs.
-spec meet(members() | term(), entries()) ->
          {known | full | malformed | {new, members()}, entries()}.
meet(Given, #entries{members = Members, table = Table} = Entries) when is_map(Given) ->
    New = maps:filter(fun(Node, Incarnation) ->
                          maps:get(Node, Members, 0) < Incarnation
                              andalso not weft_crdt_retired:is_retired({Node, Incarnation}, Table)
                      end, Given),
    IsValid = fun({Node, Incarnation}) -> is_atom(Node) andalso is_integer(Incarnation) end,
    case lists:all(IsValid, maps:to_list(Given)) of
        true when map_size(New) =:= 0 -> {known, Entries};
        true when map_size(Members) + map_size(New) > ?MEMBERS_MAX ->
            {full, Entries#entries{is_full = true}};
        true -> {{new, New}, Entries#entries{members = maps:merge(Members, New)}};
        false -> {malformed, Entries}
    end;
meet(_, Entries) -> {malformed, Entries}.

-spec members(entries()) -> members().
members(#entries{members = Members}) -> Members.

%% @doc Whether there were more members than are remembered.
-spec is_full(entries()) -> {true, Max :: pos_integer()} | false.
is_full(#entries{is_full = IsFull}) -> IsFull andalso {true, ?MEMBERS_MAX}.

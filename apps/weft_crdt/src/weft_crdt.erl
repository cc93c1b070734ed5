%% SPDX-License-Identifier: Apache-2.0
%% @doc Data that merges, on all nodes that run this application: counters, sets, registers, flags
%% and maps. Each node reads and changes its own copy at once, also when it is cut off; copies that
%% have heard of the same changes are equal. The guide is `docs/guide/crdt.md'.
%%
%% A key is any term. What can be done with a key says its type (`weft_crdt_type').
-module(weft_crdt).

-export([declare/2, update/2, value/1, read/2, read/3, subscribe/1, unsubscribe/1, keys/0, info/0]).
-export([retire/0, retire/1]).
-export_type([key/0, error/0]).

-type key() :: term().
-type error() :: {error, undeclared | not_running | term()}.

-define(READ_MS, 5000).

%% @doc Makes a key known on this node; again is no error. What other nodes have put into it comes
%% soon.
-spec declare(key(), weft_crdt_type:name()) ->
          ok | {error, {unknown_type, term()} | {other_type, weft_crdt_type:name()}
                     | {too_many_keys, Max :: pos_integer()} | derived | not_running}.
declare(Key, Type) ->
    case command({declare, Key, Type}) of
        ok -> weft_crdt_sup:declared(Key, Type);
        {error, Reason} -> {error, Reason}
    end.

%% @doc Changes a key. When this returns `ok', this node has the change, and tells others. A store
%% that is barred changes nothing (`retired' or `other_retired', see the guide), nor does one that
%% can not write its file.
-spec update(key(), Operation :: term()) ->
          ok | {error, {bad_operation, term()} | {too_large, Bytes :: pos_integer(), pos_integer()}
                     | {retired | other_retired, By :: node()} | {not_written, term()} | undeclared
                     | not_running | term()}.
update(Key, Operation) -> command({update, Key, Operation, erlang:system_time(microsecond)}).

%% @doc The value of a key as this node knows it.
-spec value(key()) -> {ok, Value :: term()} | error().
value(Key) -> command({value, Key}).

%% @doc The value as soon as it passes the threshold; waits 5 seconds at most.
-spec read(key(), weft_crdt_threshold:threshold()) -> {ok, Value :: term()} | error().
read(Key, Threshold) -> read(Key, Threshold, ?READ_MS).

%% @doc The value as soon as it passes the threshold, or the error `timeout' after so many
%% milliseconds.
-spec read(key(), weft_crdt_threshold:threshold(), TimeoutMs :: non_neg_integer()) ->
          {ok, Value :: term()} | {error, timeout | busy | {bad_threshold, term()}} | error().
read(Key, Threshold, TimeoutMs) when is_integer(TimeoutMs), TimeoutMs >= 0 ->
    command({read, Key, Threshold, TimeoutMs, self()}).

%% @doc The value now. From now on the calling process gets `{weft_crdt, Key, Value}' after changes;
%% changes that follow each other fast are told once, fifty times a second at most, whether it has
%% read what was told before or not. A store that was started again knows no subscribers.
-spec subscribe(key()) -> {ok, Value :: term()} | error().
subscribe(Key) -> command({subscribe, Key, self()}).

%% @doc The calling process gets no more messages about the key, but for those under way.
-spec unsubscribe(key()) -> ok | {error, not_running}.
unsubscribe(Key) -> command({unsubscribe, Key, self()}).

%% @doc All keys that this node knows.
-spec keys() -> [{key(), weft_crdt_type:name()}] | {error, not_running}.
keys() -> command(keys).

%% @doc `keys': how many; `served': who gets changes at once; `unacknowledged': how many keys wait
%% for whom; `refused': what came malformed or too often; `waiting' readers and `subscriptions';
%% `retired': of how many nodes runs are retired; `barred': why this store is, and by whose word, or
%% `none' (see the guide).
-spec info() -> #{atom() => term()} | {error, not_running}.
info() -> command(info).

%% @doc Forgets former runs of all stores: what they did is kept, but no longer that they did it.
%% All nodes that ever had a store have to be connected, and to have got all that those runs did.
%% If not, nothing is done, and the error names nodes: `absent' ones; those that are `behind', which
%% is over soon; those that gave `no_answer', as one with an older version; `busy' with another such
%% call. Returns how many runs are forgotten. Waits 5 seconds at most.
-spec retire() -> {ok, Runs :: non_neg_integer()}
              | {error, {absent | present | behind | no_answer | changed, [node()]}
                      | {busy, node()}
                      | {too_many_retired | too_many_members, Max :: pos_integer()}
                      | {retired | other_retired, By :: node()} | {not_written, term()}
                      | not_running | term()}.
retire() -> retire([]).

%% @doc And all runs of these nodes, which are gone for good. What only they had is lost. If one of
%% them comes back it has to begin with an empty store.
-spec retire(Gone :: node() | [node()]) ->
          {ok, Runs :: non_neg_integer()} | {error, {bad_nodes, term()} | term()}.
retire(Gone) when is_atom(Gone), Gone =/= [] -> retire([Gone]);
retire(Gone) -> command({retire, Gone}).

command(Command) ->
    try weft_driver:command(?MODULE, Command, infinity)
    catch exit:_Ended -> {error, not_running}
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What the core of a service shows, in a table of its own: a view module of `weft_driver' for
%% services with many rows. The table has the name of the driver. A value is a tuple; its row is the
%% key followed by the elements of the tuple, so that readers can fetch a single element.
-module(weft_service_table).

-export([new/1, clear/1, keys/1, put/3, delete/2]).

%% @doc Creates the table, owned by the caller, unless there is one.
-spec new(Owner :: atom()) -> ok.
new(Owner) ->
    _ = ets:whereis(Owner) =/= undefined
        orelse ets:new(Owner, [named_table, public, set, {read_concurrency, true}]),
    ok.

%% @doc An empty table; if there was none, one that ends with the calling process.
-spec clear(Owner :: atom()) -> ok.
clear(Owner) ->
    ok = new(Owner),
    true = ets:delete_all_objects(Owner),
    ok.

-spec keys(Owner :: atom()) -> [Key :: term()].
keys(Owner) ->
    ets:select(Owner, [{'$1', [], [{element, 1, '$1'}]}]).

-spec put(Owner :: atom(), Key :: term(), Value :: tuple()) -> ok.
put(Owner, Key, Value) ->
    true = ets:insert(Owner, erlang:insert_element(1, Value, Key)),
    ok.

-spec delete(Owner :: atom(), Key :: term()) -> ok.
delete(Owner, Key) ->
    true = ets:delete(Owner, Key),
    ok.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A driver to try the load generator with: keys and values in a table of this node.
%% Operations are get, put and delete; nothing fails.
-module(weft_load_driver_ets).

-export([new/1, run/4]).

-define(TABLE, ?MODULE).

%% @doc The first worker makes the table, whoever that is.
-spec new(pos_integer()) -> {ok, none}.
new(_Id) ->
    ensure(ets:whereis(?TABLE)),
    {ok, none}.

%% Its owner has to outlive the workers, which may start anew.
ensure(undefined) ->
    Caller = self(),
    Owner = spawn(fun() -> own(Caller) end),
    receive {Owner, ready} -> ok end;
ensure(_Table) ->
    ok.

own(Caller) ->
    try ets:new(?TABLE, [named_table, public, {read_concurrency, true}, {write_concurrency, true}])
    of _ -> Caller ! {self(), ready}, receive stop -> ok end
    catch error:badarg -> Caller ! {self(), ready}
    end.

-spec run(get | put | delete, fun(() -> term()), fun(() -> term()), none) -> {ok, none}.
run(get, Key, _Value, none) ->
    _ = ets:lookup(?TABLE, Key()),
    {ok, none};
run(put, Key, Value, none) ->
    true = ets:insert(?TABLE, {Key(), Value()}),
    {ok, none};
run(delete, Key, _Value, none) ->
    true = ets:delete(?TABLE, Key()),
    {ok, none}.

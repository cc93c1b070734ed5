%% SPDX-License-Identifier: Apache-2.0
%% @doc Khepri as one of the stores: a tree in the memory of all nodes, whose changes go through the
%% log of Ra (Raft). A put is answered when the logs of most nodes have it on disk. A get is one of
%% the node's own memory, which may be behind (`khepri'), or it waits until that has what most nodes
%% had when it was asked (`khepri_consistent').
%%
%% Its code is part of no application here. It is used if it is on the code path, and its modules
%% are called by names that are not known before.
%%
%% Not here: what the other stores in Erlang nodes are (`weft_stores_nodes').
-module(weft_stores_khepri).
-behaviour(weft_stores_clients).

-export([missing/0, start/3, connect/2, ask/2]).
-export([begun/1, joined/1]).

-define(STORE, weft_stores_khepri).
-define(CALL_MS, 60000).

%% @doc What is missing, and where it comes from, or `none'.
-spec missing() -> none | string().
missing() ->
    case [Library || Library <- [khepri, ra, horus], not is_there(Library)] of
        [] -> none;
        [Library | _] ->
            lists:concat(["no library ", Library, " for OTP ", erlang:system_info(otp_release),
                          " is on the code path. Get khepri from hex.pm with rebar3 (version "
                          "0.16.0 for OTP 25, any later one from OTP 26 on) and name its directory "
                          "_build/default/lib in ERL_LIBS; or install RabbitMQ 4, which brings it"])
    end.

%% Code of a later release of OTP is found and can not be loaded.
is_there(Library) ->
    case code:which(Library) of
        non_existing -> false;
        _ -> code:ensure_loaded(Library) =:= {module, Library}
    end.

%% @doc The store runs on all nodes. Dir is for its files.
-spec start(atom(), Dir :: file:filename(), weft_bench_nodes:nodes()) -> ok.
start(_Store, Dir, Nodes) ->
    [First | Others] = Roles = lists:sort(weft_bench_nodes:roles(Nodes)),
    Own = fun({_, Number}) -> filename:join(Dir, integer_to_list(Number)) end,
    _ = [ok = call(Nodes, Role, begun, [Own(Role)]) || Role <- Roles],
    FirstNode = weft_bench_nodes:node(Nodes, First),
    _ = [ok = call(Nodes, Role, joined, [FirstNode]) || Role <- Others],
    ok.

call(Nodes, Role, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, ?MODULE, Function, {Arguments, ?CALL_MS}).

%% @private
-spec begun(Dir :: file:filename()) -> ok.
begun(Dir) ->
    ok = filelib:ensure_path(Dir),
    {ok, ?STORE} = library(khepri, start, [Dir, ?STORE, ?CALL_MS]),
    ok.

%% @private
-spec joined(node()) -> ok.
joined(First) ->
    ok = library(khepri_cluster, join, [?STORE, First]).

%% @private
connect(Store, _Number) -> Store.

%% @private
ask({put, Key, Value}, _Store) ->
    library(khepri, put, [?STORE, path(Key), Value]);
ask({get, Key}, Store) ->
    Options = case Store of
                  khepri -> #{};
                  khepri_consistent -> #{favor => consistency}
              end,
    case library(khepri, get, [?STORE, path(Key), Options]) of
        {ok, _Value} -> ok;
        {error, Reason} -> {error, Reason}
    end.

path(Key) -> [?STORE, Key].

library(Module, Function, Arguments) -> apply(Module, Function, Arguments).

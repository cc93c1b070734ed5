%% SPDX-License-Identifier: Apache-2.0
%% @doc What the ring, the store and the data that merges say of themselves, where they run. None of
%% them is needed by this application: they are asked only if their processes are there, by names
%% that the compiler does not resolve.
%%
%% Not here: what is made of it (`weft_ops_stores_families').
-module(weft_ops_stores).

-export([all/0]).
-export_type([stores/0]).

-type stores() :: #{ring | kv | crdt => map()}.

%% The process by which it is seen to run, and the function that is asked.
-define(ASKED, [{ring, weft_ring_server, {weft_ring, counts}},
                {kv, weft_kv_sup, {weft_kv_stats, read}},
                {crdt, weft_crdt, {weft_crdt, info}}]).

%% @doc Those that run, and have something to say. If one does not answer, this fails.
-spec all() -> stores().
all() ->
    maps:from_list([{Name, Said} || {Name, Process, Function} <- ?ASKED, is_there(Process),
                                    Said <- [said(Function)], is_map(Said)]).

is_there(Process) -> whereis(Process) =/= undefined.

%% An earlier version may not have the function.
said({Module, Function}) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, Function, 0) of
        true -> Module:Function();
        false -> none
    end.

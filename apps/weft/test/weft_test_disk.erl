%% SPDX-License-Identifier: Apache-2.0
%% @doc A disk that fails, as far as `weft_durable_file' asks it: no directory can be synced.
-module(weft_test_disk).

-export([without_directory_sync/1]).
%% In place of `file:sync/1'.
-export([sync/1]).

%% @doc Runs the function on such a disk, and returns what it returns.
-spec without_directory_sync(fun(() -> Result)) -> Result.
without_directory_sync(Fun) ->
    {weft_durable_file = Module, Beam, File} = code:get_object_code(weft_durable_file),
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {ok, Module, Failing} = compile:forms(failing(Forms)),
    ok = loaded(Module, File, Failing),
    try Fun() after ok = loaded(Module, File, Beam) end.

loaded(Module, File, Beam) ->
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, File, Beam),
    ok.

failing({remote, At, {atom, _, file}, {atom, _, sync} = Sync}) ->
    {remote, At, {atom, At, ?MODULE}, Sync};
failing(Form) when is_tuple(Form) -> list_to_tuple(failing(tuple_to_list(Form)));
failing(Forms) when is_list(Forms) -> [failing(Form) || Form <- Forms];
failing(Other) -> Other.

%% @private
-spec sync(file:fd()) -> {error, eio}.
sync(_Device) -> {error, eio}.

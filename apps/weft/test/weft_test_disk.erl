%% SPDX-License-Identifier: Apache-2.0
%% @doc A disk that fails, as far as a module asks it: no directory can be synced, no file can be
%% opened, or nothing can be cut off.
-module(weft_test_disk).

-export([without_directory_sync/1, without_descriptors/3, without_cutting/3]).
%% In place of those of `file'.
-export([sync/1, open/2, read_file/1, position/2, truncate/1]).

%% @doc Runs the function on such a disk, and returns what it returns.
-spec without_directory_sync(fun(() -> Result)) -> Result.
without_directory_sync(Fun) -> failing(weft_durable_file, [sync], Fun).

%% @doc Runs the function while the next Tries of this module to open or read a file find no free
%% descriptor. Processes that it starts in the module have to end with it.
-spec without_descriptors(module(), Tries :: pos_integer(), fun(() -> Result)) -> Result.
without_descriptors(Module, Tries, Fun) ->
    Left = atomics:new(1, [{signed, true}]),
    ok = atomics:put(Left, 1, Tries),
    ok = persistent_term:put(?MODULE, Left),
    try failing(Module, [open, read_file], Fun) after persistent_term:erase(?MODULE) end.

%% @doc Runs the function while this module can not cut off the end of a file: one of the two calls
%% that it makes for that fails.
-spec without_cutting(module(), position | truncate, fun(() -> Result)) -> Result.
without_cutting(Module, Call, Fun) -> failing(Module, [Call], Fun).

failing(Module, Functions, Fun) ->
    {Module, Beam, File} = code:get_object_code(Module),
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    {ok, Module, Failing} = compile:forms(failing(Functions, Forms)),
    ok = loaded(Module, File, Failing),
    try Fun() after ok = loaded(Module, File, Beam) end.

loaded(Module, File, Beam) ->
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, File, Beam),
    ok.

failing(Functions, {remote, At, {atom, _, file}, {atom, _, Function} = Name} = Form) ->
    case lists:member(Function, Functions) of
        true -> {remote, At, {atom, At, ?MODULE}, Name};
        false -> Form
    end;
failing(Functions, Form) when is_tuple(Form) ->
    list_to_tuple(failing(Functions, tuple_to_list(Form)));
failing(Functions, Forms) when is_list(Forms) ->
    [failing(Functions, Form) || Form <- Forms];
failing(_Functions, Other) ->
    Other.

%% @private
-spec sync(file:fd()) -> {error, eio}.
sync(_Device) -> {error, eio}.

%% @private
-spec open(file:filename(), [file:mode()]) -> {ok, file:fd()} | {error, file:posix()}.
open(File, Modes) -> with_descriptor(fun() -> file:open(File, Modes) end).

%% @private
-spec read_file(file:filename()) -> {ok, binary()} | {error, file:posix()}.
read_file(File) -> with_descriptor(fun() -> file:read_file(File) end).

%% @private
-spec position(file:fd(), non_neg_integer()) -> {error, eio}.
position(_Device, _At) -> {error, eio}.

%% @private
-spec truncate(file:fd()) -> {error, eio}.
truncate(_Device) -> {error, eio}.

with_descriptor(Fun) ->
    case atomics:sub_get(persistent_term:get(?MODULE), 1, 1) < 0 of
        true -> Fun();
        false -> {error, emfile}
    end.

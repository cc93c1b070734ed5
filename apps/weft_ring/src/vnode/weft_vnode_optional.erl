%% SPDX-License-Identifier: Apache-2.0
%% @doc The callbacks that a module of partitions need not have (`weft_vnode'), for the process of
%% a partition: what it comes to where one is missing. By then the module is loaded.
-module(weft_vnode_optional).

-export([commits/1, is_held/4, note/3, tick/2, waiting/2, terminate/3]).

%% @doc Do answers wait for a commit?
-spec commits(module()) -> boolean().
commits(Module) -> erlang:function_exported(Module, commit, 1).

%% @doc Does the answer to this command? What is read may not be on disk yet, so that is held, too.
-spec is_held(module(), Key :: term(), Command :: term(), Data :: term()) -> boolean().
is_held(Module, Key, Command, Data) ->
    commits(Module) andalso (not erlang:function_exported(Module, is_held, 3)
                             orelse Module:is_held(Key, Command, Data)).

%% @doc Data with a note.
-spec note(module(), weft_vnode_notes:note(), Data) -> {ok, Data} | {error, term()}.
note(Module, Note, Data) ->
    case erlang:function_exported(Module, note, 2) of
        true -> Module:note(Note, Data);
        false -> {ok, Data}
    end.

%% @doc Data a second later.
-spec tick(module(), Data) -> {ok | stop, Data}.
tick(Module, Data) ->
    case erlang:function_exported(Module, tick, 1) of
        true -> Module:tick(Data);
        false -> {ok, Data}
    end.

%% @doc How much waits for another owner.
-spec waiting(module(), Data :: term()) -> non_neg_integer().
waiting(Module, Data) ->
    case erlang:function_exported(Module, waiting, 1) of
        true -> Module:waiting(Data);
        false -> 0
    end.

%% @doc The process of these data ends.
-spec terminate(module(), Reason :: term(), Data :: term()) -> term().
terminate(Module, Reason, Data) ->
    case erlang:function_exported(Module, terminate, 2) of
        true -> Module:terminate(Reason, Data);
        false -> ok
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps what users have stored out of crash reports, for processes that hold it. A report
%% still says what has failed and where: the kind of the error, modules, functions, lines.
%%
%% Not here: what a process says in logs of its own, and crash dumps of the VM.
-module(weft_redact).

-export([run/1, status/2, reason/1]).

%% @doc Runs the function. If it fails, the error goes on without values: neither what did not match
%% nor arguments of functions, and the messages that wait are not shown either.
-spec run(fun(() -> Result)) -> Result.
run(Fun) ->
    try Fun()
    catch
        Class:Reason:Stack ->
            _ = process_flag(sensitive, true),
            erlang:raise(Class, reason(Reason), [bare(Call) || Call <- Stack])
    end.

bare({Module, Function, Arguments, Where}) when is_list(Arguments) ->
    {Module, Function, length(Arguments), lists:keydelete(error_info, 1, Where)};
bare({Module, Function, Arity, Where}) ->
    {Module, Function, Arity, lists:keydelete(error_info, 1, Where)}.

%% @doc What can be shown of a reason: a word, or the first one of a tuple.
-spec reason(term()) -> atom() | {atom(), not_shown}.
reason(Reason) when is_atom(Reason) -> Reason;
reason(Reason) when tuple_size(Reason) > 1, is_atom(element(1, Reason)) ->
    {element(1, Reason), not_shown};
reason(_) -> not_shown.

%% @doc For `format_status/1' of a `gen_server': what it says instead of the state.
-spec status(gen_server:format_status(), Shown :: term()) -> gen_server:format_status().
status(Status, Shown) ->
    maps:map(fun(state, _) -> Shown;
                (message, _) -> not_shown;
                (log, _) -> [];
                (_, Value) -> Value
             end, Status).

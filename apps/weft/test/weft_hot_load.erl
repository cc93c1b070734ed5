%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads the modules of weft again, as an upgrade does, and says which processes stay in old
%% code. Runs on the nodes under test.
-module(weft_hot_load).

-export([load/0, stale/0]).

%% @doc Purges what is old and loads each module that is loaded, from its file.
-spec load() -> Modules :: pos_integer().
load() ->
    Modules = [Module || Module <- modules(), code:is_loaded(Module) =/= false],
    lists:foreach(fun load/1, Modules),
    length(Modules).

load(Module) ->
    {Module, Code, File} = code:get_object_code(Module),
    _ = code:purge(Module),
    {module, Module} = code:load_binary(Module, File, Code).

%% @doc The processes that the next load would kill, and the modules whose old code they run or
%% hold.
-spec stale() -> [{Process :: term(), module()}].
stale() ->
    [{what(Pid), Module} || Pid <- processes(), Module <- modules(),
                            erlang:check_old_code(Module),
                            erlang:check_process_code(Pid, Module)].

what(Pid) ->
    case process_info(Pid, registered_name) of
        {registered_name, Name} -> Name;
        _ -> initial_call(proc_lib:translate_initial_call(Pid), Pid)
    end.

initial_call({proc_lib, init_p, 5}, Pid) -> process_info(Pid, initial_call);
initial_call(Call, _Pid) -> Call.

modules() ->
    {ok, Modules} = application:get_key(weft, modules),
    Modules.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Loads the modules of weft again, as an upgrade does, and says which processes stay in old
%% code; has processes change a state of another shape. Runs on the nodes under test.
-module(weft_hot_load).

-export([load/0, stale/0, upgrade/1, before/2]).

%% The processes that keep a stream.
-define(KEEPERS, [weft_session, weft_channel_sender, weft_channel_receiver]).

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

%% @doc Loads the modules while the processes that keep a stream are suspended, and has these change
%% their state, as a release upgrade does. With `set_back' their state gets its former shape first.
%% Returns the module of each.
-spec upgrade(set_back | as_it_is) -> [module()].
upgrade(What) ->
    Keepers = [{Pid, Module} || Pid <- processes(), {Module, init, 1} <- [initial(Pid)],
                                lists:member(Module, ?KEEPERS), is_suspended(Pid)],
    [sys:replace_state(Pid, fun(Kept) -> callers_before(set_back(Kept)) end)
     || What =:= set_back, {Pid, _} <- Keepers],
    _ = load(),
    [ok = sys:change_code(Pid, Module, before, []) || {Pid, Module} <- Keepers],
    [ok = sys:resume(Pid) || {Pid, _} <- Keepers],
    [Module || {_, Module} <- Keepers].

%% One that has ended by now keeps nothing.
is_suspended(Pid) ->
    try sys:suspend(Pid) of
        ok -> true
    catch
        exit:{Reason, _} when Reason =/= timeout -> false
    end.

initial(Pid) ->
    case is_process_alive(Pid) of
        true -> proc_lib:translate_initial_call(Pid);
        false -> gone
    end.

%% The stream is one element of what the process keeps, and has a core with the same name. That of a
%% session has an outlet, too.
set_back(Kept) ->
    list_to_tuple([case Element of
                       {stream, Core, _, _, _, _, _, _, _, _, _} = Stream
                         when element(1, Core) =:= stream -> before(Stream, #{});
                       {outlet, _, _, Fair, _, _, _, _} = Outlet ->
                           bypass = element(1, element(6, Fair)),
                           setelement(4, Outlet, setelement(6, Fair,
                                                            setelement(1, element(6, Fair),
                                                                       apart)));
                       _ -> Element
                   end || Element <- tuple_to_list(Kept)]).

%% The sender of a channel had the limit of its queue, and the callers that wait, in its own state.
callers_before({sender, Key, #{queue_bytes := Limit} = Channel, Bytes, Queue, Stream, State,
                Waiters, Large, Timer, Sent, SentThen, IdleLooks}) ->
    {waiters, Bytes, _Low, _High, Callers, IsTimerSet} = Waiters,
    {sender, Key, Channel, Bytes, Limit, Queue, Stream, State, Callers, IsTimerSet, Large, Timer,
     Sent, SentThen, IdleLooks};
callers_before(Other) ->
    Other.

%% @doc A stream as it was before its search for a path had a state of its own, and with a queue of
%% what it keeps. Fields has what was under way. The core is the second element of a stream.
-spec before(weft_stream:stream(), #{last_token | give_up | lost_us => integer()}) -> tuple().
before(Stream, Fields) ->
    {stream, Role, Kind, Incarnation, Out, Path, _Search, Established, Resend, Rest, Resumes,
     Repairs, LastBreak} = element(2, Stream),
    setelement(2, Stream,
               {stream, Role, Kind, Incarnation, out_before(Out), Path, undefined, Established,
                false, 0, false, Resend, Rest, 10, maps:get(last_token, Fields, 0), undefined,
                maps:get(give_up, Fields, undefined), maps:get(lost_us, Fields, undefined), Resumes,
                Repairs, LastBreak, undefined}).

out_before({outbound, Window, Last, Acked, Unacked, Unasked, Kept, Later, Asked, Floor, Bypass}) ->
    {outbound, Window, Last, Acked, Unacked, Unasked, queue:from_list(Kept ++ lists:reverse(Later)),
     Asked, Floor, Bypass}.

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

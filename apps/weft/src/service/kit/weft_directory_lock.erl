%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps a directory for one node: two that write the same files would destroy them. It is a
%% child of the supervisor of what uses the directory, before that.
%%
%% The lock is a file that names its holder: node, host, process of the operating system and when
%% that has started. After a kill it is left behind, and the next start sees that no such process
%% runs. Where that can not be seen (another host, another container, a system without `/proc'), the
%% holder is taken for alive if it has written the file lately, by the clock of the file system; it
%% does so every 5 s. A holder whose file is another one's, because it stood still for long, ends.
%% So does one whose file is gone: another one may have had the directory meanwhile. What was read
%% there before may be outdated then, so whatever uses the directory has to end with its lock, and
%% to read again behind the next one (`rest_for_one').
%%
%% Until it has looked, the directory may be another one's already: who writes there asks before it
%% writes, and before it tells anybody that it has written (`is_held/2'). Time for which the host
%% was suspended counts (`weft_suspension'). A system clock that is set forward looks the same, and
%% is over with the next look.
%%
%% Not here: which of two nodes is the right one. The second one does not start.
-module(weft_directory_lock).
-behaviour(gen_server).

-include_lib("kernel/include/file.hrl").

-export([start_link/2, is_held/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(MAGIC, "weft_lock 1").
-define(BEAT_MS, 5000).
%% Who has not written for so long is gone.
-define(FRESH_S, 15).
%% Who has not looked for so long may be taken for gone soon.
-define(HELD_MS, 10000).
-define(NEVER, -(1 bsl 62)).

-record(lock, {file :: file:filename(), text :: binary(),
               %% When the file was found to be this one's, for those who write.
               seen = none :: none | atomics:atomics_ref()}).

%% @doc Takes the directory for this purpose, or says who has it: `{directory_in_use, #{file, node,
%% host, os_pid, do}}'.
-spec start_link(file:filename(), atom()) -> {ok, pid()} | {error, term()}.
start_link(Dir, Purpose) ->
    gen_server:start_link(?MODULE, {Dir, Purpose}, []).

%% @doc Was it certain within the last ten seconds that no other node has the directory? A node that
%% stood still has to look first. Without a lock there is nobody to ask, and the answer is yes.
-spec is_held(file:filename(), atom()) -> boolean().
is_held(Dir, Purpose) ->
    case persistent_term:get({?MODULE, Dir, Purpose}, none) of
        none -> true;
        Seen -> weft_suspension:now_ms() - atomics:get(Seen, 1) < ?HELD_MS
    end.

%% One for each directory, for ever: to replace it would cost a scan of all processes.
seen(Dir, Purpose) ->
    Key = {?MODULE, Dir, Purpose},
    case persistent_term:get(Key, none) of
        none ->
            Seen = atomics:new(1, [{signed, true}]),
            ok = persistent_term:put(Key, Seen),
            Seen;
        Seen -> Seen
    end.

%% @private
init({Dir, Purpose}) ->
    process_flag(trap_exit, true),
    ok = weft_suspension:new(),
    Lock = #lock{file = filename:join(Dir, atom_to_list(Purpose) ++ ".lock"), text = text()},
    case filelib:ensure_dir(Lock#lock.file) of
        ok ->
            BeforeMs = weft_suspension:now_ms(),
            case taken(Lock) of
                ok ->
                    Seen = seen(Dir, Purpose),
                    ok = atomics:put(Seen, 1, BeforeMs),
                    {ok, later(Lock#lock{seen = Seen})};
                {error, Reason} -> {stop, Reason}
            end;
        {error, Reason} -> {stop, {Reason, Dir}}
    end.

later(Lock) ->
    _ = erlang:send_after(?BEAT_MS, self(), beat),
    Lock.

%% @private
handle_call(Request, _From, Lock) ->
    {reply, weft_stray:call(Request), Lock}.

%% @private
handle_cast(Request, Lock) ->
    ok = weft_stray:message(Request),
    {noreply, Lock}.

%% @private
handle_info(beat, #lock{file = File, text = Text, seen = Seen} = Lock) ->
    BeforeMs = weft_suspension:now_ms(),
    case file:read_file(File) of
        {ok, Text} ->
            %% If others can not see that it was here, it does not count.
            _ = touched(File, Text) =:= ok andalso atomics:put(Seen, 1, BeforeMs),
            {noreply, later(Lock)};
        {ok, Other} ->
            {stop, in_use(File, Other), Lock};
        {error, enoent} ->
            {stop, {directory_lost, File}, Lock};
        %% It can not be told. Soon nobody writes any more, until it can.
        {error, _} ->
            {noreply, later(Lock)}
    end;
handle_info(Message, Lock) ->
    ok = weft_stray:message(Message),
    {noreply, Lock}.

%% @private
terminate(_Reason, #lock{file = File, text = Text, seen = Seen}) ->
    ok = atomics:put(Seen, 1, ?NEVER),
    case file:read_file(File) of
        {ok, Text} -> file:delete(File);
        _ -> ok
    end.

%% --- the file ---------------------------------------------------------------------------------

taken(#lock{file = File} = Lock) ->
    case linked(Lock) of
        ok -> ok;
        {error, eexist} ->
            case file:read_file(File) of
                {ok, Other} -> from_other(Other, Lock);
                {error, enoent} -> taken(Lock);
                {error, Reason} -> {error, {Reason, File}}
            end;
        {error, Reason} -> {error, {Reason, File}}
    end.

from_other(Other, #lock{file = File} = Lock) ->
    case holder(Other) of
        gone -> removed(Other, Lock);
        alive -> {error, in_use(File, Other)};
        unknown ->
            case is_fresh(Lock) of
                false -> removed(Other, Lock);
                true -> {error, in_use(File, Other)}
            end
    end.

%% One at a time removes what was left behind, and looks again before: it may be another one's now.
removed(Other, #lock{file = File} = Lock) ->
    Removal = #lock{file = File ++ ".removal", text = Lock#lock.text},
    case linked(Removal) of
        ok ->
            try file:read_file(File) of
                {ok, Other} ->
                    _ = file:delete(File),
                    taken(Lock);
                _ -> taken(Lock)
            after file:delete(Removal#lock.file)
            end;
        {error, eexist} ->
            %% Who did so may have been killed just then.
            _ = is_fresh(Removal) orelse file:delete(Removal#lock.file),
            {error, in_use(File, Other)};
        {error, Reason} -> {error, {Reason, File}}
    end.

%% It is there as a whole, or not.
linked(#lock{file = File, text = Text} = Lock) ->
    New = aside(Lock),
    Linked = case file:write_file(New, Text, [raw]) of
                 ok -> file:make_link(New, File);
                 Failed -> Failed
             end,
    _ = file:delete(New),
    case Linked of
        {error, Reason} when Reason =:= enotsup; Reason =:= eperm -> exclusive(File, Text);
        _ -> Linked
    end.

%% Not all file systems have links.
exclusive(File, Text) ->
    file:write_file(File, Text, [raw, exclusive]).

aside(#lock{file = File}) ->
    lists:concat([File, ".", os:getpid(), ".", erlang:unique_integer([positive])]).

%% Without making it shorter first: who reads it finds all of it.
touched(File, Text) ->
    case file:open(File, [raw, read, write]) of
        {ok, Device} ->
            Written = file:pwrite(Device, 0, Text),
            _ = file:close(Device),
            Written;
        {error, Reason} -> {error, Reason}
    end.

%% By the clock of the file system, which may be another host's. What can not be told is fresh.
is_fresh(#lock{file = File} = Lock) ->
    New = aside(Lock),
    _ = file:write_file(New, <<>>, [raw]),
    Times = [file:read_link_info(Name, [raw, {time, posix}]) || Name <- [File, New]],
    _ = file:delete(New),
    case Times of
        [{ok, #file_info{mtime = Held}}, {ok, #file_info{mtime = Now}}] -> Now - Held < ?FRESH_S;
        _ -> true
    end.

%% --- who has it -------------------------------------------------------------------------------

text() ->
    OsPid = os:getpid(),
    {ok, Host} = inet:gethostname(),
    Lines = [?MAGIC, atom_to_list(node()), Host, OsPid, pid_to_list(self()), started(OsPid),
             place(), integer_to_list(erlang:system_time())],
    iolist_to_binary([[Line, $\n] || Line <- Lines]).

%% Processes of the same place see each other, by these numbers.
place() ->
    case {file:read_file("/proc/sys/kernel/random/boot_id"),
          file:read_link("/proc/self/ns/pid")} of
        {{ok, Boot}, {ok, Space}} -> [string:trim(Boot), $/, Space];
        _ -> "unknown"
    end.

%% When it has started, in the ticks of the system; another process with its number did so later.
%% One that has ended is still listed until its parent has waited for it, which some never do (the
%% first process of a container): proc(5), states Z and X.
started(OsPid) ->
    case file:read_file("/proc/" ++ OsPid ++ "/stat") of
        {ok, Stat} ->
            [_, Rest] = string:split(Stat, ")", trailing),
            case string:lexemes(Rest, " \n") of
                [<<State>> | _] when State =:= $Z; State =:= $X -> "none";
                Fields -> lists:nth(20, Fields)
            end;
        {error, _} -> "none"
    end.

holder(Text) ->
    Here = iolist_to_binary(place()),
    case fields(Text) of
        #{place := Here, os_pid := OsPid, started := Started, pid := Pid}
          when Here =/= <<"unknown">> ->
            case iolist_to_binary(started(binary_to_list(OsPid))) of
                Started -> of_this_host(binary_to_list(OsPid) =:= os:getpid(), Pid);
                _ -> gone
            end;
        _ -> unknown
    end.

of_this_host(false, _) -> alive;
of_this_host(true, Pid) ->
    case is_process_alive(list_to_pid(binary_to_list(Pid))) of
        true -> alive;
        false -> gone
    end.

fields(Text) ->
    case binary:split(Text, <<"\n">>, [global]) of
        [<<?MAGIC>>, Node, Host, OsPid, Pid, Started, Place | _] ->
            #{node => Node, host => Host, os_pid => OsPid, pid => Pid, started => Started,
              place => Place};
        _ -> #{}
    end.

in_use(File, Other) ->
    Who = maps:map(fun(_, Value) -> binary_to_list(Value) end,
                   maps:with([node, host, os_pid], fields(Other))),
    {directory_in_use,
     Who#{file => File,
          do => lists:concat(["give each node a directory of its own, or stop that node; ",
                              "if it has ended on another host, wait ", ?FRESH_S, " s"])}}.

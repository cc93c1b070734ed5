%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs in a partition: the behaviour of a module that keeps the data of one partition of
%% the ring, and the functions that ask such partitions. Each partition is a process, which starts
%% when it is first needed. Callers send to it directly: no other process is on the way.
%%
%% A command is first decided, and then its change is carried out. A change has to give the same
%% data wherever it is carried out: during a handoff it is repeated at the next owner. So times,
%% random numbers and names of nodes are put into the change, and are not asked for in `change/4'.
%%
%% What has to be on disk together with a change is its *note*. If the data are to survive the end
%% of the process, keep the notes in the same write, and give what they amount to back from `init/2'
%% (`weft_vnode_notes'); a module that keeps its data in memory ignores them. The guide is
%% `docs/guide/ring.md'.
-module(weft_vnode).

-export([call/4, ask/5, send/5, lost/1, cover/3, directory/2, stored/2]).
-export([cover_one/4]).
-export_type([place/0, sent/0, error/0, item/0, cursor/0]).

-type place() :: {Partition :: non_neg_integer(), node(), primary | fallback}.
-opaque sent() :: {weft_vnode_watch:place(), weft_vnode_watch:watch()}.
-type item() :: {Key :: term(), Item :: term()}.
-type cursor() :: weft_ring_handoff_sender_core:cursor().
-type error() :: overload | not_owner | moved | timeout | no_ring | no_vnode
               | {unknown, term()} | {failed, term()}.
%% `overload': too many wait for this partition. `not_owner', `moved': another node has the
%% partition now. In all these cases nothing was done. `timeout', `{unknown, Reason}': the answer
%% did not come, and the command may have been carried out or not. `{failed, Reason}': `init/2' said
%% so, and nothing was done; or `change/4'; or `commit/1', and the change may be on disk later.

%% The data of a partition are there, and nobody has written to them yet.
-callback init(Partition :: non_neg_integer(), Options :: term()) ->
    {ok, State :: term()} | {ok, State :: term(), weft_vnode_notes:kept()} | {error, term()}.
%% What a command answers, and what it changes; of several keys, if need be, each by a change of its
%% own. These are carried out one after the other, and not all or none of them if the process ends.
%% After one that fails no more are carried out; those before it stay.
-callback command(Key :: term(), Command :: term(), State :: term()) ->
    {reply, Reply :: term()} | {change, Change :: term(), Reply :: term()}
  | {changes, [{Key :: term(), Change :: term()}], Reply :: term()}.
-callback change(Key :: term(), Change :: term(), weft_vnode_notes:note(), State :: term()) ->
    {ok, State :: term()} | {error, term()}.
%% At most `Max' items behind the cursor, in the order of their keys, and where they end (`done' if
%% there are no more). It may give fewer, but not none.
-callback items(cursor(), Max :: pos_integer(), State :: term()) -> {[item()], cursor()}.
%% Items from the partition's former owner.
-callback take([item()], weft_vnode_notes:note(), State :: term()) ->
    {ok, State :: term()} | {error, term()}.
%% All is dropped, because another node has it, or because a handoff begins anew.
-callback clear(weft_vnode_notes:note(), State :: term()) ->
    {ok, State :: term()} | {error, term()}.
%% The answer of this partition to a question to all of them.
-callback cover(Question :: term(), State :: term()) -> Answer :: term().
%% A note without a change.
-callback note(weft_vnode_notes:note(), State :: term()) ->
    {ok, State :: term()} | {error, term()}.
%% Once a second. `stop': there is nothing here that would be missed; the process ends.
-callback tick(State :: term()) -> {ok, State :: term()} | {stop, State :: term()}.
%% All changes so far are on disk. If this is there, answers and acknowledgements wait for it, those
%% to many commands together.
-callback commit(State :: term()) -> {ok, State :: term()} | {error, term(), State :: term()}.
%% With `commit/1', which is called once a second, too: does the answer to this command wait for it?
%% If this is not there, all answers do.
-callback is_held(Key :: term(), Command :: term(), State :: term()) -> boolean().
-callback terminate(Reason :: term(), State :: term()) -> term().
%% How much waits here for another owner. A node that leaves is not gone before this is 0.
-callback waiting(State :: term()) -> non_neg_integer().
%% This node is not to be the owner any more, but has items, perhaps not all. The former owner may
%% have them, or may have just handed them over.
-callback cancelled(weft_vnode_notes:note(), State :: term()) ->
    {ok, State :: term()} | {error, term()}.
%% Where the files are. A second node that is given the same directory does not start.
-callback directory(Options :: term()) -> none | file:filename().
%% The partitions of which there is something on disk. What waits there for other owners is known as
%% soon as they have a process, so a node that leaves starts one for each of them.
-callback stored(Options :: term()) -> [Partition :: non_neg_integer()].
-optional_callbacks([note/2, tick/1, commit/1, is_held/3, terminate/2, directory/1, stored/1,
                     waiting/1, cancelled/2]).

-define(AGAIN_MS, 20).

%% @doc A command for the owner of a key. While the partition is on its way to another owner, it is
%% tried again until the time is over.
-spec call(module(), weft_ring_preference:key(), Command :: term(), TimeoutMs :: pos_integer()) ->
          {ok, Reply :: term()} | {error, error()}.
call(Module, Key, Command, TimeoutMs) ->
    call_until(Module, Key, Command, erlang:monotonic_time(millisecond) + TimeoutMs).

call_until(Module, Key, Command, DeadlineMs) ->
    LeftMs = DeadlineMs - erlang:monotonic_time(millisecond),
    case weft_ring:primaries(Key, 1) of
        {ok, [Place]} ->
            case ask(Module, Place, Key, Command, max(1, LeftMs)) of
                {error, Reason} when (Reason =:= moved orelse Reason =:= not_owner),
                                     LeftMs > ?AGAIN_MS ->
                    receive after ?AGAIN_MS -> ok end,
                    call_until(Module, Key, Command, DeadlineMs);
                Result -> Result
            end;
        {error, no_ring} -> {error, no_ring}
    end.

%% @doc A command for one replica of a key. A `primary' answers only as the owner of the partition.
-spec ask(module(), place(), Key :: term(), Command :: term(), TimeoutMs :: pos_integer()) ->
          {ok, Reply :: term()} | {error, error()}.
ask(Module, {_, _, Role} = Place, Key, Command, TimeoutMs) ->
    request(Module, Place, {command, Role, Key, Command}, TimeoutMs).

%% @doc The same without waiting, from a process that does this once: the answer comes to it as
%% `{Tag, Answer}', with what `ask/5' returns. Without an answer look now and then whether it is
%% `lost/1'. `unknown': it is not known here that the partition has a process, or it can not be sent
%% to without waiting. Then nothing was sent, and only `ask/5' is left.
-spec send(module(), place(), Key :: term(), Command :: term(), Tag :: term()) ->
          {ok, sent()} | unknown.
send(Module, {Partition, Node, Role}, Key, Command, Tag) ->
    case weft_vnode_names:name(Module, Partition) of
        {ok, Name} -> sent({Name, Node}, {command, Role, Key, Command}, Tag);
        {error, no_vnode} -> unknown
    end.

sent(To, Request, Tag) ->
    case weft_vnode_watch:find(To) of
        {ok, Watch} ->
            %% As `gen_server:call/3' does it, but for its monitor.
            case erlang:send(process(To, Watch), {'$gen_call', {self(), Tag}, Request},
                             [nosuspend, noconnect]) of
                ok -> {ok, {To, Watch}};
                _ -> unknown
            end;
        unknown -> unknown
    end.

%% If it has ended in order, nothing was done, so no other process may get what is said to it.
process(_To, {_, Pid}) -> Pid;
process(To, _Watch) -> To.

%% @doc Has the process ended since it was sent to, or the connection? Then no answer comes. Of
%% another node, an answer may have been overtaken by this, so that it can not be said that nothing
%% was done.
-spec lost(sent()) -> false | {true, error()}.
lost({{_, Node} = To, Watch}) ->
    case weft_vnode_watch:lost(To, Watch) of
        false -> false;
        {true, noconnection} -> {true, {unknown, {nodedown, Node}}};
        {true, Reason} when Node =:= node() -> {true, ended(Reason)};
        {true, Reason} -> {true, {unknown, Reason}}
    end.

%% @doc A question to all partitions, asked at the same time. An answer is complete, or none.
-spec cover(module(), Question :: term(), TimeoutMs :: pos_integer()) ->
          {ok, [{Partition :: non_neg_integer(), Answer :: term()}]}
        | {error, no_ring | [{Partition :: non_neg_integer(), error()}]}.
cover(Module, Question, TimeoutMs) ->
    case weft_ring_lookup:owners(weft_ring) of
        {ok, Owners} ->
            Asked = [asked(Module, Place, Question, TimeoutMs) || Place <- Owners],
            Answers = [{P, answer(Ref)} || {P, Ref} <- Asked],
            case [{P, Reason} || {P, {error, Reason}} <- Answers] of
                [] -> {ok, [{P, Answer} || {P, {ok, Answer}} <- Answers]};
                Failed -> {error, Failed}
            end;
        {error, no_ring} -> {error, no_ring}
    end.

asked(Module, {Partition, _, _} = Place, Question, TimeoutMs) ->
    {_, Ref} = spawn_monitor(?MODULE, cover_one, [Module, Place, Question, TimeoutMs]),
    {Partition, Ref}.

%% @private
-spec cover_one(module(), place(), term(), timeout()) -> no_return().
cover_one(Module, Place, Question, TimeoutMs) ->
    exit({answer, request(Module, Place, {cover, Question}, TimeoutMs)}).

answer(Ref) ->
    receive
        {'DOWN', Ref, process, _, {answer, Answer}} -> Answer;
        {'DOWN', Ref, process, _, Reason} -> {error, {unknown, Reason}}
    end.

%% @doc The directory that partitions of this node have for themselves.
-spec directory(module(), Options :: term()) -> none | file:filename().
directory(Module, Options) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, directory, 1) of
        true -> Module:directory(Options);
        false -> none
    end.

%% @doc The partitions of which this node has something on disk.
-spec stored(module(), Options :: term()) -> [non_neg_integer()].
stored(Module, Options) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, stored, 1) of
        true -> Module:stored(Options);
        false -> []
    end.

%% --- one partition ----------------------------------------------------------------------------

request(Module, {Partition, Node, _} = Place, Request, TimeoutMs) ->
    case weft_vnode_names:name(Module, Partition) of
        {ok, Name} ->
            Server = {Name, Node},
            Result = case is_known(Server) of
                         true -> asked(Module, Place, Name, Request, TimeoutMs);
                         false -> started(Module, Place, Name, Request, TimeoutMs)
                     end,
            ok = seen(Server, Result),
            Result;
        {error, no_vnode} -> {error, no_vnode}
    end.

%% To another node a command is sent once. A large one may get there after it was found that there
%% is no process, and be carried out by one that was started meanwhile. So a process is started
%% first, unless it is known that there is one.
is_known({_, Node}) when Node =:= node() -> true;
is_known(Server) -> weft_vnode_watch:find(Server) =/= unknown.

%% On this node it was not sent if there was no process.
asked(Module, {_, Node, _} = Place, Name, Request, TimeoutMs) ->
    case called({Name, Node}, Request, TimeoutMs) of
        noproc when Node =:= node() -> started(Module, Place, Name, Request, TimeoutMs);
        noproc -> {error, without_process(Node)};
        Answer -> Answer
    end.

without_process(Node) when Node =:= node() -> moved;
without_process(_Other) -> {unknown, noproc}.

started(Module, {Partition, Node, Role}, Name, Request, TimeoutMs) ->
    DeadlineMs = erlang:monotonic_time(millisecond) + TimeoutMs,
    case called({weft_vnodes, Node}, {start, Module, Partition, Role}, TimeoutMs) of
        {ok, started} ->
            LeftMs = max(1, DeadlineMs - erlang:monotonic_time(millisecond)),
            case called({Name, Node}, Request, LeftMs) of
                noproc -> {error, without_process(Node)};
                Result -> Result
            end;
        noproc -> {error, no_vnode};
        {error, Reason} -> {error, Reason}
    end.

seen(Server, {ok, _}) -> weft_vnode_watch:seen(Server);
seen(_Server, {error, _}) -> ok.

%% Here it is sent to a process, which gets it or has ended.
called({Name, Node}, Request, TimeoutMs) when Node =:= node() ->
    case whereis(Name) of
        undefined -> noproc;
        Pid -> called(Pid, Request, TimeoutMs)
    end;
called(Server, Request, TimeoutMs) ->
    try gen_server:call(Server, Request, TimeoutMs)
    catch
        exit:{noproc, _} -> noproc;
        exit:{timeout, _} -> {error, timeout};
        exit:{Reason, _} -> {error, ended(Reason)}
    end.

%% It ended before it looked at this.
ended(normal) -> moved;
ended(Reason) -> {unknown, Reason}.

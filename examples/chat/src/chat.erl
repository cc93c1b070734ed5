%% SPDX-License-Identifier: Apache-2.0
%% @doc The chat: what a shell, a test or a script calls, each on the node it concerns.
%%
%% By hand: {@link start_room/1}, {@link start_user/2}, {@link say/3}, {@link tell/3},
%% {@link history/1}. A conversation file: {@link open/2} on every node, wait until
%% {@link ready/0} on every node, {@link play/1} on every node, watch {@link counters/0}, and
%% compare the {@link report/0}s of all nodes by {@link verdict/1}.
-module(chat).

-export([open/2, ready/0, play/1, counters/0, report/0, verdict/1]).
-export([open_rooms/1, start_room/1, start_user/2, say/3, tell/3, join/2, history/1, who/2]).

-type report() :: #{node := node(), users := non_neg_integer(), rooms := non_neg_integer(),
                    replay := chat_replay:status(), chat_tally:key() => integer()}.
-export_type([report/0]).

%% @doc Reads a conversation and prepares this node's part: its rooms are opened, its users start
%% and join their rooms wherever those are. `Nodes' are all nodes taking part; the file knows them
%% by the part before the @. Errors: what {@link chat_script:format_error/1} explains, or
%% `{no_node_for, Label}' when the file names a node that is not in `Nodes'.
-spec open(file:filename_all(), [node()]) ->
    ok | {error, chat_script:error() | {no_node_for, chat_script:label()}}.
open(File, Nodes) ->
    case chat_script:read(File) of
        {ok, Script} ->
            open_script(Script, maps:from_list([{chat_address:label(N), N} || N <- Nodes]));
        {error, _} = Error ->
            Error
    end.

%% @doc Whether every user of this node is a member of all its rooms.
-spec ready() -> boolean().
ready() ->
    lists:all(fun chat_user:joined/1, pids(chat_user_sup)).

%% @doc Lets the users of this node speak their lines, from now on.
-spec play(chat_replay:options()) -> ok.
play(Options) ->
    chat_replay:play(Options).

%% @doc Progress on this node, cheap: no process is asked.
-spec counters() -> chat_tally:tally().
counters() ->
    chat_tally:read().

%% @doc Everything this node knows about the conversation so far.
-spec report() -> report().
report() ->
    Counters = counters(),
    Counters#{node => node(), replay => chat_replay:status(),
              users => length(pids(chat_user_sup)), rooms => length(pids(chat_room_sup))}.

%% @doc Sums of the reports of all nodes, and whether all was said, and each copy due delivered
%% exactly once and in order.
-spec verdict([report()]) -> #{ok := boolean(), chat_tally:key() => integer()}.
verdict(Reports) ->
    Sum = maps:from_list([{Key, lists:sum([maps:get(Key, Report) || Report <- Reports])}
                          || Key <- chat_tally:keys()]),
    AllSaid = lists:all(fun(#{replay := #{planned := P, spoken := S}}) -> P =:= S end, Reports),
    #{expected := Expected, delivered := Delivered} = Sum,
    Flaws = [duplicates, gaps, out_of_order, failed, refused],
    Clean = lists:all(fun(Key) -> maps:get(Key, Sum) =:= 0 end, Flaws),
    Sum#{ok => AllSaid andalso Clean andalso Expected =:= Delivered}.

%% @doc Opens those rooms of a directory that live on this node, and lets {@link join/2} find the
%% others.
-spec open_rooms(chat_address:rooms()) -> ok.
open_rooms(Rooms) ->
    application:set_env(chat, rooms, maps:merge(application:get_env(chat, rooms, #{}), Rooms)),
    lists:foreach(fun start_room/1, [Room || {Room, Home} <- maps:to_list(Rooms), Home =:= node()]).

%% @doc Opens a room on this node; ok if it is open already.
-spec start_room(chat_address:name()) -> ok.
start_room(Room) ->
    started(chat_room_sup:start_room(Room)).

%% @doc Starts a user on this node, who joins rooms known to this node (see the application
%% environment `rooms').
-spec start_user(chat_address:name(), [chat_address:name()]) -> ok.
start_user(Name, Rooms) ->
    started(chat_user_sup:start_user(Name, maps:with(Rooms, homes(Rooms)))).

%% @doc A user of this node says something in a room it joined.
-spec say(chat_address:name(), chat_address:name(), iodata()) -> ok.
say(User, Room, Text) ->
    chat_user:say(chat_address:user(User, node()), Room, Text).

%% @doc A user of this node writes to a user of any node.
-spec tell(chat_address:name(), {chat_address:name(), node()}, iodata()) -> ok.
tell(User, {To, Node}, Text) ->
    chat_user:tell(chat_address:user(User, node()), chat_address:user(To, Node), Text).

%% @doc A user of this node joins one more room.
-spec join(chat_address:name(), chat_address:name()) -> ok.
join(User, Room) ->
    #{Room := Home} = homes([Room]),
    chat_user:join(chat_address:user(User, node()), Room, Home).

%% @doc The last messages a user of this node received, newest first.
-spec history(chat_address:name()) -> [{chat_ledger:place(), chat_ledger:sender(), iodata()}].
history(User) ->
    chat_user:history(chat_address:user(User, node())).

%% @doc Members of a room which lives on the given node.
-spec who(chat_address:name(), node()) -> [{chat_ledger:sender(), pid()}].
who(Room, Home) ->
    chat_room:members(chat_address:room(Room, Home)).

open_script(Script, Nodes) ->
    case chat_share:of_node(node(), Nodes, Script) of
        {ok, #{rooms := Rooms, users := Users, cues := Cues}} ->
            ok = open_rooms(Rooms),
            maps:foreach(fun(Name, Homes) ->
                             ok = started(chat_user_sup:start_user(Name, Homes))
                         end, Users),
            chat_replay:load(Cues);
        {error, _} = Error ->
            Error
    end.

homes(Rooms) ->
    Known = application:get_env(chat, rooms, #{}),
    case Rooms -- maps:keys(Known) of
        [] -> Known;
        Unknown -> error({no_such_room, Unknown, {known, maps:keys(Known)}})
    end.

started({ok, _Pid}) -> ok;
started({error, {already_started, _Pid}}) -> ok.

pids(Sup) ->
    [Pid || {_, Pid, _, _} <- supervisor:which_children(Sup), is_pid(Pid)].

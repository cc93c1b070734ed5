%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the rooms that live on this node. A room that crashes is opened again, empty;
%% its members notice and join again.
-module(chat_room_sup).
-behaviour(supervisor).

-export([start_link/0, start_room/1]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @doc Starts a room here; `{error, {already_started, Pid}}' when it is open already.
-spec start_room(chat_address:name()) -> supervisor:startchild_ret().
start_room(Room) ->
    supervisor:start_child(?MODULE, [Room]).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Room = #{id => room, start => {chat_room, start_link, []}, restart => transient},
    {ok, {#{strategy => simple_one_for_one, intensity => 10, period => 10}, [Room]}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Top supervisor: rooms, users, and the player of conversations. They know each other by
%% name only, so one may be restarted without the others.
-module(chat_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Supervisors = [#{id => Id, start => {Id, start_link, []}, type => supervisor}
                   || Id <- [chat_room_sup, chat_user_sup]],
    Replay = #{id => chat_replay, start => {chat_replay, start_link, []}},
    {ok, {#{strategy => one_for_one}, Supervisors ++ [Replay]}}.

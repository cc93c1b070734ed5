%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the users of this node. A user that crashes comes back with an empty memory
%% and joins its rooms again.
-module(chat_user_sup).
-behaviour(supervisor).

-export([start_link/0, start_user/2]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @doc Starts a user who joins `Rooms' (room to the node where it lives).
-spec start_user(chat_address:name(), chat_address:rooms()) -> supervisor:startchild_ret().
start_user(Name, Rooms) ->
    supervisor:start_child(?MODULE, [Name, Rooms]).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    User = #{id => user, start => {chat_user, start_link, []}, restart => transient},
    {ok, {#{strategy => simple_one_for_one, intensity => 20, period => 10}, [User]}}.

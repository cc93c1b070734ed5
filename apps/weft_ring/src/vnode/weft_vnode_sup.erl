%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of the partitions of this node. One that crashes is not started again by this:
%% the next request for it does that.
-module(weft_vnode_sup).
-behaviour(supervisor).

-export([start_link/0, processes/0]).
-export([init/1]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @doc The processes of partitions, also those that are being opened. Exits while there is no
%% supervisor: then it is not known that there are none.
-spec processes() -> [pid()].
processes() ->
    [Pid || {_, Pid, _, _} <- supervisor:which_children(?MODULE), is_pid(Pid)].

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 5, period => 60},
          [#{id => weft_vnode_process, start => {weft_vnode_process, start_link, []},
             restart => temporary}]}}.

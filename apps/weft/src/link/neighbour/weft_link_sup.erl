%% SPDX-License-Identifier: Apache-2.0
%% @doc The links of this node, each a child that is not restarted: a process that needs the link
%% makes another one (`weft_links:ensure/1'). They outlive the registry, which finds them here.
-module(weft_link_sup).
-behaviour(supervisor).

-export([start_link/1, start_link_to/3, links/0]).
-export([init/1]).

%% Time to send what waits in a writer before a goodbye.
-define(SHUTDOWN_MS, 1000).

-spec start_link(Handler :: module()) -> {ok, pid()} | {error, term()}.
start_link(Handler) ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, Handler).

%% @doc Starts the link of a peer.
-spec start_link_to(weft_links:key(), [{weft_links:core(), pid()}],
                    Admitting :: weft_links:core() | none) -> {ok, pid()} | {error, not_running}.
start_link_to(Key, Subscribers, Admitting) ->
    try supervisor:start_child(?MODULE, [Key, Subscribers, Admitting]) of
        {ok, Link} -> {ok, Link}
    catch
        exit:_NoSupervisor -> {error, not_running}
    end.

%% @doc All links.
-spec links() -> [pid()].
links() ->
    [Link || {_, Link, _, _} <- supervisor:which_children(?MODULE), is_pid(Link)].

%% @private
init(Handler) ->
    Link = #{id => weft_link, start => {weft_link, start_link, [Handler]}, restart => temporary,
             shutdown => ?SHUTDOWN_MS},
    {ok, {#{strategy => simple_one_for_one}, [Link]}}.

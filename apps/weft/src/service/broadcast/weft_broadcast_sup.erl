%% SPDX-License-Identifier: Apache-2.0
%% @doc Supervisor of broadcast on this node, and owner of the table of subscriptions, which
%% outlives the processes below. When the broadcaster has to start again, messages of the last
%% `keep_ms' may be delivered a second time, because only the broadcaster knew what was delivered.
%% Its clock counts the time for which the host was suspended: others may have forgotten meanwhile
%% what they got of this node, and what it still kept would be new to them.
-module(weft_broadcast_sup).
-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

%% Messages of neighbours that may wait for the broadcaster. More are dropped, and come by the
%% exchange.
-define(MAILBOX_MAX, 20000).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    weft_supervisor:start_link({local, ?MODULE}, ?MODULE, []).

%% @private
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    ok = weft_broadcast_inbox:new_table(),
    ok = weft_suspension:new(),
    #{keep_ms := KeepMs, keep_messages := Messages, keep_bytes := Bytes, trees := Trees,
      mailbox_messages := MailboxMessages, mailbox_bytes := MailboxBytes} =
        weft_broadcast_options:all(weft_config:get(broadcast)),
    Options = #{link_module => weft_broadcast_links, mailbox_max => ?MAILBOX_MAX,
                incarnation => erlang:system_time(microsecond), clock => weft_suspension,
                cache_ms => KeepMs, cache_max => Messages, cache_bytes => Bytes, trees => Trees},
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 10},
          [weft_links_watch:child_spec(weft_broadcast_watch),
           #{id => weft_broadcast, modules => [weft_driver, weft_plumtree_core],
             start => {weft_driver, start_link, [weft_broadcast, weft_plumtree_core, Options]}},
           #{id => weft_broadcast_inbox,
             start => {weft_broadcast_inbox, start_link,
                       [weft_broadcast, {MailboxMessages, MailboxBytes}]}}]}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A process on some node that does what its owner tells it, and leaves everything else
%% in its mailbox. Conformance cases use puppets as the far end of links, monitors and sends.
%% A puppet dies with its owner, so a case leaves no processes behind.
-module(weft_puppet).

-include("weft_conformance.hrl").

-export([start/1, start/2, start_link/1, do/2, tell/2, sync/1, mailbox/1]).
-export([obey/1]).

%% @doc Starts a puppet on Node, unlinked.
-spec start(node()) -> pid().
start(Node) ->
    spawn(Node, ?MODULE, obey, [self()]).

%% @doc Starts a puppet by spawn_opt/5; the result is that of spawn_opt.
-spec start(node(), list()) -> pid() | {pid(), reference()}.
start(Node, SpawnOptions) ->
    spawn_opt(Node, ?MODULE, obey, [self()], SpawnOptions).

%% @doc Starts a puppet linked to the caller.
-spec start_link(node()) -> pid().
start_link(Node) ->
    start(Node, [link]).

%% @doc Evaluates Fun in the puppet and returns its value.
-spec do(pid(), fun(() -> Value)) -> Value.
do(Puppet, Fun) ->
    Ref = make_ref(),
    Puppet ! {do, self(), Ref, Fun},
    ?expect({Ref, Value}, Value).

%% @doc Has Fun evaluated in the puppet, without waiting; for funs that end the puppet.
-spec tell(pid(), fun(() -> term())) -> ok.
tell(Puppet, Fun) ->
    Puppet ! {tell, Fun},
    ok.

%% @doc Returns when all signals the puppet sent to us before are here.
-spec sync(pid()) -> ok.
sync(Puppet) ->
    do(Puppet, fun() -> ok end).

%% @doc The messages that wait in the puppet's mailbox.
-spec mailbox(pid()) -> [term()].
mailbox(Puppet) ->
    do(Puppet, fun() -> element(2, process_info(self(), messages)) end).

%% @private
-spec obey(pid()) -> ok.
obey(Owner) ->
    loop(monitor(process, Owner)).

loop(OwnerMonitor) ->
    receive
        {do, From, Ref, Fun} ->
            From ! {Ref, Fun()},
            loop(OwnerMonitor);
        {tell, Fun} ->
            Fun(),
            loop(OwnerMonitor);
        {'DOWN', OwnerMonitor, process, _, _} ->
            ok
    end.

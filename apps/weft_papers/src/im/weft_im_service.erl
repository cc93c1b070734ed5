%% SPDX-License-Identifier: Apache-2.0
%% @doc An Instant Messenger for people, on this machine: this node is the router, and has a node
%% for each server, which end with it. Terminals (`weft_im_terminal') ask it for the plan.
%%
%% ```
%% bin/im serve [--servers COUNT]
%% '''
-module(weft_im_service).

-export([run/1, plan/0]).

-define(BOOT_MS, 30000).
-define(ANSWER_MS, 60000).

%% @doc Serves until it is interrupted. Ends the emulator with the exit status 1 if it does not
%% start.
-spec run(#{servers := pos_integer()}) -> no_return().
run(#{servers := Count}) ->
    try
        serve(Count)
    catch
        _:Reason ->
            io:format(standard_error, "it does not start: ~0tp~n", [Reason]),
            halt(1)
    end.

-spec serve(Servers :: pos_integer()) -> no_return().
serve(Count) ->
    process_flag(trap_exit, true),
    Nodes = [node() | [started(Number) || Number <- lists:seq(1, Count)]],
    %% Terminals come and go, so everybody is found by the plan and not by a registry.
    {ok, Service} = weft_im_plan:new(#{routers => 1, servers => Count, client_nodes => 0,
                                       names => local}, Nodes),
    Region = weft_im_region:start_link(Service, 1),
    ok = weft_im_region:ask([Region], {names, []}),
    [[]] = weft_im_region:answers([Region], ?ANSWER_MS),
    ok = persistent_term:put(?MODULE, Service),
    io:format("~s serves, with ~b servers; log in by bin/im NAME~n", [node(), Count]),
    receive
        {'EXIT', Region, Why} -> exit(Why)
    end.

%% The cookie is not told on the command line, which everybody can read.
started(Number) ->
    {ok, Peer, Node} = peer:start_link(server(Number)),
    true = peer:call(Peer, erlang, set_cookie, [erlang:get_cookie()]),
    Node.

server(Number) ->
    Directories = [filename:absname(filename:dirname(code:which(Module)))
                   || Module <- [?MODULE, weft_bench_program, weft]],
    #{name => "im_server_" ++ integer_to_list(Number), connection => standard_io,
      wait_boot => ?BOOT_MS,
      args => ["-proto_dist", "weft", "-pa" | Directories]}.

%% @doc What a terminal has to know; none before all is there.
-spec plan() -> {ok, weft_im_plan:service()} | none.
plan() ->
    case persistent_term:get(?MODULE, none) of
        none -> none;
        Service -> {ok, Service}
    end.

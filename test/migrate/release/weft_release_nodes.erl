%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes over weft for a program of the RELEASE project, with an epmd of their own.
-module(weft_release_nodes).

-export([with/3, call/4, until/3, silent/0]).
-export([silence/0]).

-type peers() :: #{Name :: atom() => {Peer :: pid(), node()}}.

-define(CALL_MS, 120000).
-define(BOOT_MS, 300000).
-define(POLL_MS, 1000).

%% @doc Starts nodes with these names, of which those of clients are hidden, and this code; ends
%% them after the fun.
-spec with([atom()], Paths :: [file:filename()], fun((peers()) -> Result)) -> Result.
with(Names, Paths, Fun) ->
    Epmd = integer_to_list(24400 + erlang:phash2(os:getpid(), 500)),
    _ = open_port({spawn_executable, os:find_executable("epmd")}, [{args, ["-port", Epmd]}, hide]),
    Peers = maps:from_list([{Name, start(Name, Epmd, Paths)} || Name <- Names]),
    try Fun(Peers)
    after
        [peer:stop(Peer) || {Peer, _} <- maps:values(Peers)],
        os:cmd("epmd -port " ++ Epmd ++ " -kill")
    end.

start(Name, Epmd, Paths) ->
    Hidden = case atom_to_list(Name) of "client" ++ _ -> ["-hidden"]; _ -> [] end,
    {ok, Peer, Node} =
        peer:start(#{name => Name, connection => standard_io, wait_boot => ?BOOT_MS,
                     env => [{"ERL_EPMD_PORT", Epmd}],
                     args => ["-proto_dist", "weft", "-connect_all", "false", "+S", "1:1",
                              "+sbwt", "none", "-setcookie", "release", "-kernel",
                              "prevent_overlapping_partitions", "false"]
                         ++ Hidden ++ ["-pa" | Paths]}),
    {Peer, Node}.

-spec call({Peer :: pid(), node()}, module(), atom(), [term()]) -> term().
call({Peer, _Node}, Module, Function, Arguments) ->
    peer:call(Peer, Module, Function, Arguments, ?CALL_MS).

%% @doc Waits, and says how long it took.
-spec until(What :: string(), fun(() -> boolean()), Minutes :: pos_integer()) -> ok.
until(What, Condition, Minutes) ->
    Begin = erlang:monotonic_time(second),
    until(What, Condition, Begin, Begin + Minutes * 60).

until(What, Condition, Begin, End) ->
    case {Condition(), erlang:monotonic_time(second)} of
        {true, Now} ->
            io:format("~ts after ~w s~n", [What, Now - Begin]);
        {false, Now} when Now < End ->
            timer:sleep(?POLL_MS), % pacing: each look asks nodes that are busy
            until(What, Condition, Begin, End);
        {false, Now} ->
            error({lists:concat(["not ", What]), Now - Begin})
    end.

%% @doc A group leader for programs that print much: whatever is printed is gone.
-spec silent() -> pid().
silent() -> spawn(?MODULE, silence, []).

%% @private
-spec silence() -> no_return().
silence() ->
    receive
        {io_request, From, Reply, _} -> From ! {io_reply, Reply, ok};
        _ -> ok
    end,
    ?MODULE:silence().

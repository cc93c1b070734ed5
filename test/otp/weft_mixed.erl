%% SPDX-License-Identifier: Apache-2.0
%% @doc What the nodes of mixed.sh do. Node `a' plays random programs of signals with `b' while the
%% links fail, directly or through the gateway `g', and says what came of it.
-module(weft_mixed).

-export([serve/0, play/1]).

-define(CONNECT_MS, 20_000).
-define(POLL_MS, 50).
%% So many programs are not through before the first fault.
-define(SURE_OF_FAULTS, 100).

%% @doc On nodes `b' and `g'.
-spec serve() -> ok.
serve() ->
    {ok, _} = application:ensure_all_started(weft),
    ok.

%% @doc On node `a'; ends it. Arguments: seed, number of programs, and "g" if there is a gateway.
-spec play([string()]) -> no_return().
play([Seed, Programs | Gateway]) ->
    {ok, _} = application:ensure_all_started(weft),
    Peers = [node_named(Name) || Name <- ["b" | Gateway], Name =/= ""],
    ok = connect(Peers, erlang:monotonic_time(millisecond) + ?CONNECT_MS),
    Releases = [release(Node) || Node <- [node() | Peers]],
    Result = play_all(list_to_integer(Seed), list_to_integer(Programs), Peers),
    io:format("OTP ~ts~ts: ~ts~n", [lists:join(" - ", Releases), said_of(Peers), text(Result)]),
    halt(case Result of {ok, _} -> 0; _ -> 1 end).

node_named(Name) ->
    list_to_atom(Name ++ "@127.0.0.1").

release(Node) ->
    rpc:call(Node, erlang, system_info, [otp_release]).

said_of([_, _]) -> " (a, b, and g between them)";
said_of([_]) -> "".

text({ok, #{programs := Programs, resumes := Resumes, faults := Faults}}) ->
    io_lib:format("~b programs, ~b faults, ~b resumes: ok", [Programs, Faults, Resumes]);
text({failed, Seed, Why}) ->
    io_lib:format("SEED=~b PROGRAMS=1 fails: ~0p", [Seed, Why]).

connect(Peers, EndMs) ->
    case [Peer || Peer <- Peers, net_kernel:connect_node(Peer) =/= true] of
        [] ->
            ok;
        Missing ->
            erlang:monotonic_time(millisecond) < EndMs
                orelse erlang:error({no_connection, Missing}),
            receive after ?POLL_MS -> connect(Peers, EndMs) end % pacing: of attempts
    end.

%% Faults are on the link of `a': the one to `b', or to the gateway.
play_all(Seed, Count, [B | _] = Peers) ->
    #{pid := Session} = weft_signal_order_SUITE:session(B),
    ok = weft_signal_faults:start(Seed, #{lists:last(Peers) => [break, fin, rst, cut]}),
    Result = play_each(lists:seq(Seed, Seed + Count - 1), #{a => node(), b => B}),
    Faults = lists:sum(maps:values(weft_signal_faults:stop())),
    case {Result, weft_signal_order_SUITE:session(B)} of
        {ok, #{pid := Session, resumes := Resumes}} when Resumes > 0; Count < ?SURE_OF_FAULTS ->
            {ok, #{programs => Count, resumes => Resumes, faults => Faults}};
        {ok, Other} ->
            {failed, Seed, {not_the_same_session_resumed, Session, Other}};
        {Failed, _} ->
            Failed
    end.

play_each([], _) ->
    ok;
play_each([Seed | Seeds], Nodes) ->
    case weft_signal_player:play(weft_signal_program:random(Seed), Nodes) of
        ok -> play_each(Seeds, Nodes);
        {violation, Violation} -> {failed, Seed, Violation}
    end.

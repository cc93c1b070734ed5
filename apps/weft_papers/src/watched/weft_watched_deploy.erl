%% SPDX-License-Identifier: Apache-2.0
%% @doc How long `weft deploy apply' takes for some nodes on this machine, of which each starts the
%% agents and metrics of weft_ops, or does not. The code that they get is the same, and so is their
%% configuration, which is that of docs/guide/metrics.md.
-module(weft_watched_deploy).

-export([apply_ms/3]).

-define(APPLICATIONS, [weft_ops, weft_http, weft_command, prometheus, quantile_estimator,
                       ddskerl, cowboy, cowlib, ranch]).

%% @doc From the request until all nodes are healthy. What it keeps is in Dir. That and the nodes
%% are gone afterwards, also if the caller is killed.
-spec apply_ms(Count :: pos_integer(), with | without, Dir :: file:filename()) -> pos_integer().
apply_ms(Count, How, Dir) ->
    Root = filename:absname(filename:join(Dir, "deployment")),
    File = filename:join(Root, "watched.deploy"),
    EpmdPort = free_port(),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, [io_lib:format("~p.~n", [Term])
                                || Term <- terms(Count, How, EpmdPort)]),
    Guard = weft_papers_sweep:guard(Root, EpmdPort),
    try
        {Us, {ok, #{started := Started}, _}} =
            timer:tc(fun() -> weft_deploy:apply(File, #{root => Root}) end),
        Count = length(Started),
        Us div 1000
    after weft_papers_sweep:finish(Guard)
    end.

terms(Count, How, EpmdPort) ->
    Dirs = [filename:absname(filename:join(Dir, "ebin"))
            || Application <- ?APPLICATIONS,
               Dir <- [code:lib_dir(Application)], is_list(Dir)],
    [{name, watched}, {epmd_port, EpmdPort}, {stable_s, 0}, {healthy_s, 120},
     {family, node, #{count => Count, paths => Dirs, flags => ["+S", "1:1", "+sbwt", "none"],
                      env => [{prometheus, [{collectors, [default]}, {instrumenters, []}]}],
                      start => [weft_ops || How =:= with]}}].

free_port() ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Socket),
    ok = gen_tcp:close(Socket),
    Port.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Places for nodes where the machine does not allow all that they want: a command `ip' that is
%% found before the real one refuses it.
-module(weft_bench_place_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([place_that_cannot_be_made_is_told/1, congestion_control_may_be_refused/1,
         buffers_are_those_of_the_link/1, without_namespaces_it_is_the_machine/1,
         namespaces_that_cannot_be_entered_are_not_used/1, left_over_namespaces_are_removed/1]).

suite() -> [{timetrap, {seconds, 30}}].

all() ->
    [place_that_cannot_be_made_is_told, congestion_control_may_be_refused,
     buffers_are_those_of_the_link, without_namespaces_it_is_the_machine,
     namespaces_that_cannot_be_entered_are_not_used, left_over_namespaces_are_removed].

init_per_suite(Config) ->
    case weft_bench_place:can_emulate(?config(priv_dir, Config)) of
        ok -> Config;
        {error, Why} -> {skip, Why}
    end.

end_per_suite(_Config) -> ok.

init_per_testcase(Case, Config) ->
    [{bin, filename:join(?config(priv_dir, Config), Case)}, {path, os:getenv("PATH")},
     {ip, os:find_executable("ip")} | Config].

end_per_testcase(_Case, Config) ->
    os:putenv("PATH", ?config(path, Config)).

%% With the words of the command that failed; and nothing stays behind.
place_that_cannot_be_made_is_told(Config) ->
    refuse("*-near link set lo up*", "RTNETLINK answers: Not today", Config),
    {error, Text} = with_loopback(fun(_Place) -> error(made) end, Config),
    ?assertMatch({match, _}, re:run(Text, "^no place for nodes: ip -n weft-bench-[0-9]+-near link "
                                    "set lo up: RTNETLINK answers: Not today$")),
    ?assertEqual([], own_namespaces()).

%% What a namespace may have is taken, and told.
congestion_control_may_be_refused(Config) ->
    ?assert(lists:member(control(Config), ["cubic", "reno"])),
    refuse("*echo cubic*", "echo: I/O error", Config),
    ?assertEqual("reno", control(Config)),
    ?assertEqual([], own_namespaces()).

%% Of this link only: the next place has those of the machine.
buffers_are_those_of_the_link(Config) ->
    Usual = received_before_it_is_read(weft_bench_link:loopback(), Config),
    Link = weft_bench_link:with_buffers(131072, weft_bench_link:emulated(1, 1000, 0)),
    ?assertEqual(["4096", "131072", "131072"], received_before_it_is_read(Link, Config)),
    ?assertEqual(Usual, received_before_it_is_read(weft_bench_link:loopback(), Config)),
    ?assertNotMatch([_, _, "131072"], Usual).

received_before_it_is_read(Link, Config) ->
    weft_bench_place:with(
      Link, ?config(priv_dir, Config),
      fun(Place) ->
          {Command, Arguments} = weft_bench_place:command(Place, near,
                                                          ["cat", "/proc/sys/net/ipv4/tcp_rmem"]),
          string:lexemes(os:cmd(lists:join(" ", [Command | Arguments])), " \t\n")
      end).

without_namespaces_it_is_the_machine(Config) ->
    refuse("netns add *", "mount of /run/netns failed: Operation not permitted", Config),
    ?assertEqual(control_of_machine(), control(Config)),
    ?assertMatch({match, _}, re:run(why_no_emulation(Config), "Operation not permitted$")).

%% Root may make them here, but not run anything in them.
namespaces_that_cannot_be_entered_are_not_used(Config) ->
    refuse("netns exec *-probe *", "mount --make-rslave / failed: Invalid argument", Config),
    ?assertEqual(control_of_machine(), control(Config)),
    ?assertMatch({match, _}, re:run(why_no_emulation(Config), "Invalid argument$")),
    ?assertEqual([], own_namespaces()).

%% Those of an emulator that is gone, with what still runs in them; those of one that runs stay.
left_over_namespaces_are_removed(Config) ->
    Gone = "weft-bench-" ++ string:trim(os:cmd("sh -c 'echo $$'")) ++ "-near",
    Running = "weft-bench-1-near",
    [?assertEqual("", os:cmd("ip netns add " ++ Name)) || Name <- [Gone, Running]],
    Node = open_port({spawn_executable, ?config(ip, Config)},
                     [exit_status, {args, ["netns", "exec", Gone, "sleep", "1000"]}]),
    try
        %% Before that it is in none, and starts there however soon the namespace is removed.
        weft_test_nodes:until(fun() -> os:cmd("ip netns pids " ++ Gone) =/= "" end),
        _ = control(Config),
        receive {Node, {exit_status, _}} -> ok after 10000 -> error(it_still_runs) end,
        ?assertEqual([Running], [Name || Name <- [Gone, Running], is_there(Name)])
    after
        [os:cmd("ip netns del " ++ Name) || Name <- [Gone, Running]]
    end.

%% ---- helpers ----

why_no_emulation(Config) ->
    {error, Why} = weft_bench_place:can_emulate(?config(priv_dir, Config)),
    Why.

control_of_machine() ->
    {ok, Text} = file:read_file("/proc/sys/net/ipv4/tcp_congestion_control"),
    string:trim(binary_to_list(Text)).

control(Config) ->
    with_loopback(fun weft_bench_place:congestion_control/1, Config).

with_loopback(Function, Config) ->
    weft_bench_place:with(weft_bench_link:loopback(), ?config(priv_dir, Config), Function).

%% From now on the command fails if its arguments match the shell's pattern.
refuse(Pattern, Complaint, Config) ->
    File = filename:join(?config(bin, Config), "ip"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, ["#!/bin/sh\ncase \"$*\" in\n", quoted(Pattern), ") echo '",
                                Complaint, "' >&2; exit 1 ;;\nesac\nexec ", ?config(ip, Config),
                                " \"$@\"\n"]),
    ok = file:change_mode(File, 8#755),
    true = os:putenv("PATH", ?config(bin, Config) ++ ":" ++ ?config(path, Config)).

%% Spaces would end a pattern.
quoted(Pattern) -> string:replace(Pattern, " ", "\\ ", all).

own_namespaces() ->
    [Name || Name <- namespaces(), ["weft", "bench", OsPid, _] <- [string:split(Name, "-", all)],
             OsPid =:= os:getpid()].

is_there(Name) -> lists:member(Name, namespaces()).

namespaces() ->
    case file:list_dir("/run/netns") of
        {ok, Names} -> Names;
        {error, enoent} -> []
    end.

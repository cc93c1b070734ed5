%% SPDX-License-Identifier: Apache-2.0
%% @doc The quicker ones of OTP's own suites about distribution, with weft on all nodes: a case that
%% passes on stock distribution passes here, or is listed in test/otp/accepted.config. Usually those
%% cases that say most about distribution; with FULL=1 all, and more suites, which takes most of the
%% time. All of them, also with stock and weft mixed, are run by `make otp-suites'. Without the
%% sources of the installed OTP the suite is skipped, and says why.
-module(weft_otp_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2,
         end_per_group/2]).
-export([erpc/1, pg/1, monitor/1, erl_link/1, signal/1]).

suite() -> [{timetrap, {minutes, 12}}].

all() -> [{group, side_by_side}].

%% Most of their time they wait.
groups() -> [{side_by_side, [parallel], more(os:getenv("FULL")) ++ [monitor, pg]}].

more(false) -> [];
more(_) -> [erl_link, erpc, signal].

init_per_suite(Config) ->
    Root = root(filename:dirname(code:which(?MODULE))),
    Base = filename:join(Root, os:getenv("REBAR_BASE_DIR", "_build")),
    Why = filename:join(?config(priv_dir, Config), "why"),
    Command = [filename:join(Root, "test/otp/source.sh"), " ", filename:join(Base, "otp-source"),
               " 2> ", Why],
    case string:trim(os:cmd(lists:flatten(Command))) of
        "" ->
            {ok, Text} = file:read_file(Why),
            {skip, unicode:characters_to_list(Text)};
        Source ->
            {Plans, Settings} = weft_otp_suites:settings(Root),
            [{plans, Plans},
             {context, Settings#{source => filename:absname(Source),
                                 work => filename:join(Base, "otp-suites/test"),
                                 weft => filename:dirname(code:which(weft_dist))}} | Config]
    end.

end_per_suite(_Config) -> ok.

init_per_group(_Group, Config) -> Config.

end_per_group(_Group, _Config) -> ok.

%% The project is above its build.
root(Dir) ->
    case filelib:is_regular(filename:join(Dir, "rebar.config")) of
        true -> Dir;
        false -> root(filename:dirname(Dir))
    end.

erpc(Config) -> as_on_stock("erpc", Config).

pg(Config) -> as_on_stock("pg", Config).

monitor(Config) -> as_on_stock("monitor", Config).

erl_link(Config) -> as_on_stock("erl_link", Config).

signal(Config) -> as_on_stock("signal", Config).

as_on_stock(Suite, Config) ->
    [Plan] = [Plan || {suite, Name, _, _, _} = Plan <- ?config(plans, Config), Name =:= Suite],
    Chosen = setelement(5, Plan, cases(Plan, os:getenv("FULL"))),
    {ok, Results} = weft_otp_suites:check(Chosen, ?config(context, Config)),
    {Passed, _Accepted, _Skipped} = weft_otp_verdict:counts(Results),
    true = Passed > 0.

%% Of those with other nodes, the ones that differ most.
cases({suite, "monitor", _, _, _}, false) ->
    [{none, [mon_e_1, demon_e_1, mon_2, demon_3, demonitor_flush, list_cleanup]}];
cases({suite, "pg", _, _, _}, false) ->
    [{cluster, [two, initial, netsplit, trisplit, exchange, scope_restart, disconnected_start]}];
cases({suite, _Suite, _Dir, _Minutes, Cases}, _Full) ->
    Cases.

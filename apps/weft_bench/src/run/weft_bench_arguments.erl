%% SPDX-License-Identifier: Apache-2.0
%% @doc What commands of the benchmark have in common: where results go, what is said on a terminal,
%% and how the result of a command becomes its exit status.
-module(weft_bench_arguments).

-export([common/1, common/2, out/1, new/1, run_name/0, recorded/2, status/1, quota/0,
         given_quota/1]).

-type result() :: ok | {failed | error, unicode:chardata()}.

%% @doc The options of every command; without `--out' there is none in what is given.
-spec common(Help :: string()) -> [weft_argparse:argument()].
common(Help) ->
    [#{name => out, long => "-out", value => "DIR", help => Help},
     #{name => terminal, long => "-terminal", type => boolean, help => hidden}].

%% @doc The same with a new directory in that of the build.
-spec common(Help :: string(), Name :: string()) -> [weft_argparse:argument()].
common(Help, Name) ->
    [Out | Others] = common(Help ++ " (default: a new directory " ++ out(Name) ++ "-TIME)"),
    [Out#{default => new(Name)} | Others].

%% @doc A directory for results, in that of the build.
-spec out(Name :: string()) -> file:filename().
out(Name) ->
    filename:join([os:getenv("REBAR_BASE_DIR", "_build"), "bench", Name]).

%% @doc The same, with the time of day in its name: no run writes over another one.
-spec new(Name :: string()) -> file:filename().
new(Name) -> out(lists:concat([Name, "-", run_name()])).

%% @doc The name of a run that begins now: 20260131T093000.
-spec run_name() -> string().
run_name() ->
    {{Year, Month, Day}, {Hour, Minute, Second}} = calendar:local_time(),
    lists:flatten(io_lib:format("~4..0b~2..0b~2..0bT~2..0b~2..0b~2..0b",
                                [Year, Month, Day, Hour, Minute, Second])).

%% @doc The status of a command that writes results, with `out' in what is given. Those of another
%% run stay as they are.
-spec recorded(Given, fun((Given) -> result())) -> 0 | 1 | 2
              when Given :: weft_argparse:given().
recorded(#{out := Dir} = Given, Run) ->
    case weft_load_files:is_free(Dir) of
        ok -> status(Run(Given));
        {error, Why} -> status({error, Why})
    end.

%% @doc 0: done, 1: but for what failed, 2: not, with the reason for people.
-spec status(result()) -> 0 | 1 | 2.
status(ok) -> 0;
status({failed, Why}) -> told(Why, 1);
status({error, Why}) -> told(Why, 2).

told(Why, Status) ->
    io:format(standard_error, "~ts~n", [Why]),
    Status.

%% @doc The option that gives each node a quota.
-spec quota() -> weft_argparse:argument().
quota() ->
    #{name => quota, long => "-quota", type => {custom, fun percent/1}, value => "PERCENT",
      help => "of a core for each node, which are like small hosts then (cgroups; needs root)"}.

percent(Text) ->
    case string:to_integer(Text) of
        {Percent, ""} when Percent > 0, Percent =< 100 -> Percent;
        _ -> throw("a whole number from 1 to 100")
    end.

%% @doc The quota that was asked for, and none where it can not be had, which is told; and what the
%% environment has of it.
-spec given_quota(weft_argparse:given()) ->
          {weft_bench_quota:percent() | none, [{Key :: string(), Value :: string()}]}.
given_quota(#{quota := Percent}) ->
    case weft_bench_quota:possible() of
        {ok, Version} ->
            {Percent, [{"quota", text("~b % of a core for each node, cgroups ~ts",
                                      [Percent, Version])}]};
        {error, Why} ->
            io:format(standard_error, "no quotas: ~ts. The nodes share the cores as they can.~n",
                      [Why]),
            {none, [{"quota", text("none; ~b % were asked for: ~ts", [Percent, Why])}]}
    end;
given_quota(_Given) ->
    {none, [{"quota", "none"}]}.

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).

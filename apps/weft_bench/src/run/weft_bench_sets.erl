%% SPDX-License-Identifier: Apache-2.0
%% @doc Cells that answer one question together, by a name: `bin/bench --set NAME'.
%%
%% ```
%% won    where weft is ahead of stock distribution, or as good: what a change must not make worse.
%%        Small messages, maps and bulk of 1 MB, calls of many callers and those beside streams and
%%        floods, and one sender to many nodes
%% '''
-module(weft_bench_sets).

-export([names/0, options/1]).

%% @doc The names of all.
-spec names() -> [atom(), ...].
names() -> [won].

%% @doc What `--suites', `--only' and `--variants' are for a set.
-spec options(atom()) -> #{suites := [string()], only := [string()],
                           variants := [weft_bench_variant:variant()]}.
options(won) ->
    #{suites => ["a", "b", "c", "f", "h", "j"],
      only => ["^a small (10 B|1 KB) x", "^b bulk 1 MB x (1|16)$", "^f maps ",
               "^c call_beside_bulk .* beside 8$", "^c call_beside_flood .* beside 200$",
               "^h fan_out 1 KB x 10$", "^j call 100 B x (16|128|256)$"],
      variants => [stock, weft_1]}.

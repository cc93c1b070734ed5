%% SPDX-License-Identifier: Apache-2.0
%% @doc Code of a user, which nodes find in a directory that they are given.
-module(weft_cli_user_code).

-export([answer/0]).

%% @doc What the nodes are asked for.
-spec answer() -> 42.
answer() -> 42.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What a suite answers that needs something which is not here, but could be: a program, or
%% packages. What a machine can not have (root, IPv6) is none of it, that is skipped in any form.
-module(weft_test_missing).

-export([skip/1]).

%% @doc Why a suite or a case is skipped. In the long form this fails: who asks for it wants to know
%% that all holds, and takes what was skipped, hours ago, for what was seen.
-spec skip(What :: string()) -> {skip, string()}.
skip(What) ->
    case os:getenv("FULL") of
        false -> {skip, "there is no " ++ What};
        _ -> error({missing, What, "bin/setup test-long gets it, or says what to install"})
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Texts of errors, short enough to be read. Reasons may hold states, stacks and whole tables,
%% and configurations values of any size.
-module(weft_bench_error).

-export([text/2]).

-define(CHARACTERS_MAX, 600).

%% @doc As of io_lib:format/2; what is too much is `...'.
-spec text(io:format(), [term()]) -> string().
text(Format, Arguments) ->
    lists:flatten(io_lib:format(Format, Arguments, [{chars_limit, ?CHARACTERS_MAX}])).

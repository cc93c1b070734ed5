%% SPDX-License-Identifier: Apache-2.0
%% @doc Which plugins of an installed RabbitMQ are put on the code path, and where.
-module(weft_papers_libraries_tests).

-include_lib("eunit/include/eunit.hrl").

those_that_are_needed_come_last_test() ->
    Dir = filename:join("/tmp", "weft_papers_libraries_" ++ os:getpid()),
    [Cowboy, Prometheus, Other] = Made = [filename:join([Dir, "server-1/plugins", Name, "ebin"])
                                          || Name <- ["cowboy-2.8.0", "prometheus-4.9.1",
                                                      "accept-0.3.5"]],
    [ok = filelib:ensure_path(Ebin) || Ebin <- Made],
    Before = code:get_path(),
    try
        ok = weft_papers_libraries:add(filename:join(Dir, "server-*/plugins")),
        ?assertEqual({[Cowboy, Prometheus], false},
                     {code:get_path() -- Before, lists:member(Other, code:get_path())}),
        ?assert(lists:prefix(Before, code:get_path()))
    after
        true = code:set_path(Before),
        ok = file:del_dir_r(Dir)
    end.

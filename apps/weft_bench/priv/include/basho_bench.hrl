%% SPDX-License-Identifier: Apache-2.0
%% What drivers of Basho Bench expect of its header.
-define(FAIL_MSG(Format, Arguments),
        (fun() ->
                 logger:error(Format, Arguments),
                 erlang:error({driver, lists:flatten(io_lib:format(Format, Arguments))})
         end)()).
-define(STD_ERR(Format, Arguments), io:format(standard_error, Format, Arguments)).
-define(CONSOLE(Format, Arguments), logger:notice(Format, Arguments)).
-define(DEBUG(Format, Arguments), logger:debug(Format, Arguments)).
-define(INFO(Format, Arguments), logger:info(Format, Arguments)).
-define(WARN(Format, Arguments), logger:warning(Format, Arguments)).
-define(ERROR(Format, Arguments), logger:error(Format, Arguments)).
-define(FMT(Format, Arguments), lists:flatten(io_lib:format(Format, Arguments))).

%% SPDX-License-Identifier: Apache-2.0
%% @doc What an emulator in the background prints takes a bounded place. It is appended by the
%% emulator to a file that it has open. So the emulator itself looks at the file now and then,
%% copies it away and empties it. What comes between these two is lost, and so is what is beyond
%% the size.
-module(weft_deploy_output).

-export([bounded/3]).

%% @doc The text for `-eval': File has about BytesMax bytes, and what comes between two looks. As
%% much as that is kept from before, in a file with `.1' behind its name. (A `receive' with a
%% timeout in text that is evaluated can make the emulator of OTP 25.2 fail; timer:sleep/1 is
%% compiled.)
-spec bounded(file:filename(), BytesMax :: pos_integer(), LookMs :: pos_integer()) -> string().
bounded(File, BytesMax, LookMs) ->
    lists:flatten(
      io_lib:format(
        "Output = filename:absname(~tp), spawn(fun Look() -> "
        "catch case filelib:file_size(Output) > ~b of "
        "true -> {ok, _} = file:copy(Output, Output ++ \".1\", ~b), "
        "{ok, File} = file:open(Output, [read, write, raw]), "
        "ok = file:truncate(File), ok = file:close(File); "
        "false -> ok end, "
        "timer:sleep(~b), Look() end).", [File, BytesMax, BytesMax, LookMs])).

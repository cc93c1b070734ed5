%% SPDX-License-Identifier: Apache-2.0
%% @doc weft deploy: nodes on hosts, as a file says. The words are here, the work is in
%% `weft_deploy'.
-module(weft_cli_deploy).

-export([deploy/2]).

-define(ACTIONS, ["plan", "apply", "scale", "status", "upgrade", "rollback", "drain", "down"]).

%% @doc weft deploy ACTION FILE [WORD...].
-spec deploy([string()], weft_argparse:given()) -> weft_cli:answer().
deploy([Action, File | Words], Given) ->
    case {lists:member(Action, ?ACTIONS), Words} of
        {false, _} -> {usage, unknown(Action)};
        {true, [Word | _]} when Action =/= "scale", Action =/= "rollback", Action =/= "drain" ->
            {usage, ["weft deploy ", Action, " takes a file, and not ", Word]};
        {true, _} -> run(Action, File, Words, options(Given))
    end;
deploy([Action], _Given) ->
    case lists:member(Action, ?ACTIONS) of
        true -> {usage, ["weft deploy ", Action, " needs the file of the deployment"]};
        false -> {usage, unknown(Action)}
    end;
deploy([], _Given) ->
    {usage, ["weft deploy needs one of ", lists:join(", ", ?ACTIONS), " and a file"]}.

unknown(Action) ->
    ["weft deploy ", Action, ": there are ", lists:join(", ", ?ACTIONS),
     case weft_argparse:nearest(Action, ?ACTIONS) of
         {ok, Near} -> ["; did you mean ", Near, "?"];
         none -> ""
     end].

run("plan", File, [], Options) -> weft_deploy:plan(File, Options);
run("apply", File, [], Options) -> weft_deploy:apply(File, Options);
run("scale", File, Words, Options) -> weft_deploy:scale(File, Words, Options);
run("status", File, [], Options) -> weft_deploy:status(File, Options);
run("upgrade", File, [], Options) -> weft_deploy:upgrade(File, Options);
run("rollback", File, Words, Options) -> weft_deploy:rollback(File, Words, Options);
run("drain", File, Words, Options) -> weft_deploy:drain(File, Words, Options);
run("down", File, [], Options) -> weft_deploy:down(File, Options).

%% How it goes is no answer: it goes to standard error.
options(Given) ->
    Progress = case Given of
                   #{json := true} -> fun(_) -> ok end;
                   #{} -> fun(Line) -> io:put_chars(standard_error, [Line, $\n]) end
               end,
    maps:merge(#{root => maps:get(dir, Given, ".weft"), progress => Progress},
               maps:with([again, purge], Given)).

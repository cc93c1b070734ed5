%% SPDX-License-Identifier: Apache-2.0
%% @doc weft deploy: nodes on hosts, as a file says. The words are here, the work is in
%% `weft_deploy'.
-module(weft_cli_deploy).

-export([deploy/2]).

-define(ACTIONS, ["plan", "apply", "scale", "status", "upgrade", "rollback", "drain", "down",
                  "export"]).
-define(OPTIONS, #{again => ["plan", "apply", "scale", "upgrade"], purge => ["down"],
                   adopt => ["plan", "apply", "scale", "upgrade", "rollback", "export"],
                   break_lock => ["apply", "scale", "upgrade", "rollback", "drain", "down"],
                   out => ["export"]}).

%% @doc weft deploy ACTION FILE [WORD...].
-spec deploy([string()], weft_argparse:given()) -> weft_cli:answer().
deploy([Action, File | Words], Given) ->
    case {lists:member(Action, ?ACTIONS), Words,
          weft_cli_actions:check({"deploy", Action}, Given, ?OPTIONS)} of
        {false, _, _} -> {usage, unknown(Action)};
        {true, [Word | _], _} when Action =/= "scale", Action =/= "rollback", Action =/= "drain",
                                   Action =/= "export" ->
            {usage, ["weft deploy ", Action, " takes a file, and not ", Word]};
        {true, _, ok} -> run(Action, File, Words, options(Given));
        {true, _, {error, Text}} -> {usage, Text}
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

%% What the client of ssh logs is in the answer, too.
run(Action, File, Words, Options) ->
    ok = logger:set_primary_config(level, critical),
    action(Action, File, Words, Options).

action("plan", File, [], Options) -> weft_deploy:plan(File, Options);
action("apply", File, [], Options) -> weft_deploy:apply(File, Options);
action("scale", File, Words, Options) -> weft_deploy:scale(File, Words, Options);
action("status", File, [], Options) -> weft_deploy:status(File, Options);
action("upgrade", File, [], Options) -> weft_deploy:upgrade(File, Options);
action("rollback", File, Words, Options) -> weft_deploy:rollback(File, Words, Options);
action("drain", File, Words, Options) -> weft_deploy:drain(File, Words, Options);
action("export", File, Words, Options) -> weft_deploy:export(File, Words, Options);
action("down", File, [], Options) -> weft_deploy:down(File, Options).

%% How it goes is no answer: it goes to standard error.
options(Given) ->
    Progress = case Given of
                   #{json := true} -> fun(_) -> ok end;
                   #{} -> fun(Line) -> io:put_chars(standard_error, [Line, $\n]) end
               end,
    maps:merge(#{root => maps:get(dir, Given, ".weft"), progress => Progress},
               maps:with([again, adopt, purge, break_lock, out], Given)).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Options that only some actions of a command have, such as `--purge' of `weft deploy down'.
%% Given to another one they would do nothing, and nobody would know. Pure.
-module(weft_cli_actions).

-export([check/3]).

%% @doc Are all options that were given options of this action? Of: the actions of an option; one
%% that is not there is one of all actions. The words of the command are those before the action.
-spec check({Command :: string(), Action :: string()}, weft_argparse:given(),
            Of :: #{atom() => [string(), ...]}) -> ok | {error, unicode:chardata()}.
check({Command, Action}, Given, Of) ->
    case [{Option, Actions} || {Option, Actions} <- lists:sort(maps:to_list(Of)),
                               is_map_key(Option, Given), not lists:member(Action, Actions)] of
        [] ->
            ok;
        [{Option, Actions} | _] ->
            {error, [name(Option), " does nothing for weft ", Command, " ", Action, ", it is of ",
                     lists:join(", ", Actions), ": leave it out"]}
    end.

name(Option) -> ["--", lists:join($-, string:split(atom_to_list(Option), "_", all))].

%% SPDX-License-Identifier: Apache-2.0
%% @doc Does the same with many things, some at a time: for what waits for other nodes most of the
%% time, and must not be all that they do.
-module(weft_kv_crew).

-export([map/2, map/3]).
-export([work/2]).

-define(AT_A_TIME, 16).

%% @doc What the function makes of each, in their order. If it fails for one, this fails.
-spec map(fun((A) -> B), [A]) -> [B].
map(Fun, Things) -> map(Fun, Things, ?AT_A_TIME).

%% @doc The same with so many at a time.
-spec map(fun((A) -> B), [A], AtATime :: pos_integer()) -> [B].
map(Fun, Things, AtATime) ->
    Numbered = lists:zip(lists:seq(1, length(Things)), Things),
    Crew = [spawn_monitor(?MODULE, work, [Fun, Share])
            || First <- lists:seq(0, AtATime - 1),
               [_ | _] = Share <- [[Thing || {Number, _} = Thing <- Numbered,
                                             Number rem AtATime =:= First]]],
    Made = lists:append([made(Ref) || {_, Ref} <- Crew]),
    [Result || {_, Result} <- lists:sort(Made)].

%% @private
-spec work(fun((A) -> term()), [{pos_integer(), A}]) -> no_return().
work(Fun, Share) -> exit({made, weft_redact:run(fun() -> part(Fun, Share) end)}).

part(Fun, Share) -> [{Number, Fun(Thing)} || {Number, Thing} <- Share].

made(Ref) ->
    receive
        {'DOWN', Ref, process, _, {made, Results}} -> Results;
        {'DOWN', Ref, process, _, Reason} -> error(Reason)
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The difference of two JSON objects as a JSON merge patch (RFC 7396): an object with what is
%% new or differs, and null for what is gone. Pure.
%%
%% As null means gone there, no object may have null for a value. Lists are replaced as a whole.
-module(weft_dashboard_merge_patch).

-export([difference/2]).

%% @doc What turns the first object into the second one.
-spec difference(Old :: #{binary() => weft_json:json()}, New :: #{binary() => weft_json:json()}) ->
          #{binary() => weft_json:json()}.
difference(Old, New) ->
    Gone = maps:map(fun(_, _) -> null end, maps:without(maps:keys(New), Old)),
    maps:fold(fun(Key, Value, Patch) -> changed(Key, maps:find(Key, Old), Value, Patch) end,
              Gone, New).

changed(_Key, {ok, Value}, Value, Patch) -> Patch;
changed(Key, {ok, #{} = Old}, #{} = New, Patch) -> Patch#{Key => difference(Old, New)};
changed(Key, _Other, New, Patch) -> Patch#{Key => New}.

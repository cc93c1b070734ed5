%% SPDX-License-Identifier: Apache-2.0
%% @doc Which handoffs of a node go on, and which begin. Pure.
%%
%% There are `max' of them at a time. One to a node that is not up goes on when that is back, and
%% one that is stalled, because its next owner acknowledges nothing, may go on at any time. Neither
%% of them counts: others would wait for what may take for ever. To a node that is not up none
%% begins, nor to one to which `max' are stalled.
-module(weft_ring_slots).

-export([chosen/2]).
-export_type([slots/0]).

-type slots() :: #{running | failed | stalled := [weft_ring_table:transfer()],
                   up := [node()], max := pos_integer()}.
%% `failed': those that are not to be tried again yet.

%% @doc Of the handoffs that are due, those that go on, and those that begin.
-spec chosen(Due :: [weft_ring_table:transfer()], slots()) ->
          {GoOn :: [weft_ring_table:transfer()], Begin :: [weft_ring_table:transfer()]}.
chosen(Due, #{running := Running, failed := Failed, stalled := Stalled, up := Up, max := Max}) ->
    GoOn = [Transfer || Transfer <- Running, lists:member(Transfer, Due)],
    IsUp = fun({_, _, To}) -> lists:member(To, Up) end,
    Counted = [Transfer || Transfer <- GoOn -- Stalled, IsUp(Transfer)],
    Waiting = [Transfer || Transfer <- (Due -- GoOn) -- Failed, IsUp(Transfer),
                           stalled_to(Transfer, Stalled) < Max],
    {GoOn, lists:sublist(Waiting, max(0, Max - length(Counted)))}.

stalled_to({_, _, To}, Stalled) ->
    length([Other || {_, _, Other} <- Stalled, Other =:= To]).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Failure texts of the assertions in weft_conformance.hrl, and waiting for a condition.
%% An assertion fails by an exception; the runner on the node turns it into a test failure.
-module(weft_expect).

-export([missed/4, unwanted/3, not_raised/4, until/1, until/2, global_knows/1]).

-define(SHOWN_MESSAGES, 10).
-define(POLL_MS, 10).

%% @doc A message did not come in time.
-spec missed(string(), module(), pos_integer(), pos_integer()) -> no_return().
missed(Pattern, Module, Line, DeadlineMs) ->
    erlang:error({no_message, #{wanted => Pattern, at => {Module, Line}, waited_ms => DeadlineMs,
                                mailbox => mailbox(), nodes => nodes(connected)}}).

%% @doc A message came that must not come.
-spec unwanted(string(), module(), pos_integer()) -> no_return().
unwanted(Pattern, Module, Line) ->
    erlang:error({unwanted_message, #{pattern => Pattern, at => {Module, Line}}}).

%% @doc An expression returned which had to raise.
-spec not_raised(string(), term(), module(), pos_integer()) -> no_return().
not_raised(Expression, Returned, Module, Line) ->
    erlang:error({returned_instead_of_raising,
                  #{expression => Expression, returned => Returned, at => {Module, Line}}}).

%% @doc Waits until Condition() is true, 30 s at most.
-spec until(fun(() -> boolean())) -> ok.
until(Condition) ->
    until(Condition, 30_000).

%% @doc Waits until Condition() is true, DeadlineMs at most; fails with the fun's name else.
-spec until(fun(() -> boolean()), non_neg_integer()) -> ok.
until(Condition, DeadlineMs) ->
    poll(Condition, erlang:monotonic_time(millisecond) + DeadlineMs).

poll(Condition, EndMs) ->
    case Condition() of
        true ->
            ok;
        false ->
            erlang:monotonic_time(millisecond) < EndMs orelse
                erlang:error({condition_stays_false, #{condition => Condition,
                                                       nodes => nodes(connected)}}),
            %% pacing: between two looks at the condition
            receive after ?POLL_MS -> poll(Condition, EndMs) end
    end.

%% @doc Waits until `global' of these nodes knows them. Who disconnects a node and connects to it
%% again while `global' still does this for the connection before makes it wait for ever at times,
%% on any carrier: its message for the new connection is taken for one of that before.
-spec global_knows([node()]) -> ok.
global_knows(Nodes) ->
    [ok = erpc:call(Node, global, sync, []) || Node <- Nodes],
    ok.

mailbox() ->
    {messages, Messages} = process_info(self(), messages),
    [shorten(M) || M <- lists:sublist(Messages, ?SHOWN_MESSAGES)].

shorten(Message) ->
    lists:flatten(io_lib:format("~0P", [Message, 20])).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Hook of Common Test: writes what became of each case of one of OTP's suites to a file of
%% terms, {Case, Group | none, passed | failed | skipped, Reason}, as it happens. A case may be told
%% twice: it is called passed before its failure is known. Skips what is not to be run.
-module(weft_otp_hook).

-export([init/2, pre_init_per_testcase/4, post_end_per_testcase/5, on_tc_fail/4, on_tc_skip/4]).

%% Some reasons hold whole states of processes.
-define(REASON_DEPTH, 40).

%% `except' has the cases to skip, with the reason.
-type state() :: #{events := file:filename(), except := #{atom() => string()}}.

-spec init(term(), state()) -> {ok, state()}.
init(_Id, State) ->
    {ok, State}.

-spec pre_init_per_testcase(module(), atom(), Config, state()) ->
          {Config | {skip, string()}, state()} when Config :: [tuple()].
pre_init_per_testcase(_Suite, Case, _Config, #{except := Except} = State)
  when is_map_key(Case, Except) ->
    {{skip, maps:get(Case, Except)}, State};
pre_init_per_testcase(_Suite, _Case, Config, State) ->
    {Config, State}.

-spec post_end_per_testcase(module(), atom(), [tuple()], term(), state()) -> {term(), state()}.
post_end_per_testcase(_Suite, Case, Config, Return, State) ->
    Properties = proplists:get_value(tc_group_properties, Config, []),
    say(State, {Case, proplists:get_value(name, Properties, none), passed, ""}),
    {Return, State}.

-spec on_tc_fail(module(), term(), term(), state()) -> state().
on_tc_fail(_Suite, Name, Reason, State) ->
    told(State, Name, failed, Reason).

%% A case that could not run, because something before it failed, is no skipped one.
-spec on_tc_skip(module(), term(), {tc_auto_skip | tc_user_skip, term()}, state()) -> state().
on_tc_skip(_Suite, Name, {tc_auto_skip, Reason}, State) -> told(State, Name, failed, Reason);
on_tc_skip(_Suite, Name, {tc_user_skip, Reason}, State) -> told(State, Name, skipped, Reason).

told(State, Name, Status, Reason) ->
    {Case, Group} = case Name of
                        {_Function, _Group} -> Name;
                        Function -> {Function, none}
                    end,
    Text = lists:flatten(io_lib:format("~0tP", [Reason, ?REASON_DEPTH])),
    say(State, {Case, Group, Status, Text}),
    State.

say(#{events := Events}, Event) ->
    Line = unicode:characters_to_binary(io_lib:format("~0tp.~n", [Event])),
    ok = file:write_file(Events, Line, [append]).

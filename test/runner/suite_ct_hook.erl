%% SPDX-License-Identifier: Apache-2.0
%% @doc Hook of Common Test: tells which cases failed (`suite_run'), and why, on standard output,
%% and why others were skipped.
%%
%% A suite whose cases go on with what those before have left has `{userdata, in_sequence}' in
%% `suite/0': none of them can run again alone.
-module(suite_ct_hook).

-export([init/2, pre_init_per_group/4, post_init_per_group/5, post_end_per_group/5,
         post_end_per_testcase/5, on_tc_fail/4, on_tc_skip/4]).

-record(state, {events :: file:filename(), path = [] :: [atom()]}).

-spec init(term(), Events :: file:filename()) -> {ok, #state{}}.
init(_Id, Events) ->
    {ok, #state{events = Events}}.

-spec pre_init_per_group(module(), atom(), Config, #state{}) -> {Config, #state{}}.
pre_init_per_group(_Suite, Group, Config, #state{path = Path} = State) ->
    {Config, State#state{path = Path ++ [Group]}}.

%% A group that is skipped or was not prepared has no end.
-spec post_init_per_group(module(), atom(), term(), Return, #state{}) -> {Return, #state{}}.
post_init_per_group(_Suite, _Group, _Config, Return, State) when is_list(Return) -> {Return, State};
post_init_per_group(_Suite, _Group, _Config, Return, State) -> {Return, left(State)}.

-spec post_end_per_group(module(), atom(), term(), Return, #state{}) -> {Return, #state{}}.
post_end_per_group(_Suite, _Group, _Config, Return, State) ->
    {Return, left(State)}.

left(#state{path = Path} = State) ->
    State#state{path = lists:droplast(Path)}.

%% Common Test warns only if end_per_testcase fails, and the case stays good. But what a suite
%% asserts there belongs to its cases, and where it fails it may leave nodes to those that follow.
-spec post_end_per_testcase(module(), atom(), term(), Return, #state{}) ->
          {Return | {fail, Reason :: term()}, #state{}}.
post_end_per_testcase(_Suite, _Case, _Config, {failed, {_, end_per_testcase, Why}}, State) ->
    {{fail, {end_per_testcase, Why}}, State};
post_end_per_testcase(_Suite, _Case, _Config, Return, State) ->
    {Return, State}.

-spec on_tc_fail(module(), term(), term(), #state{}) -> #state{}.
on_tc_fail(Suite, Name, Reason, State) ->
    failed(Suite, Name, Reason, State).

%% Skipped by itself is no failure, but what could not run is.
-spec on_tc_skip(module(), term(), {tc_auto_skip | tc_user_skip, term()}, #state{}) -> #state{}.
on_tc_skip(Suite, Name, {tc_auto_skip, Reason}, State) -> failed(Suite, Name, Reason, State);
on_tc_skip(_Suite, _Name, {tc_user_skip, Reason}, #state{events = Events} = State) ->
    suite_run:say(Events, {skipped, text(Reason)}),
    State.

text(Reason) ->
    case io_lib:printable_unicode_list(Reason) of
        true -> string:trim(Reason);
        false -> lists:flatten(io_lib:format("~0tp", [Reason]))
    end.

failed(Suite, Name, Reason, #state{events = Events, path = Path} = State) ->
    Case = case Name of
               {Function, _Group} -> Function;
               Function -> Function
           end,
    Title = lists:join(".", [atom_to_list(Atom) || Atom <- Path ++ [Case]]),
    io:format(user, "~s: ~s failed:~n~tp~n", [Suite, Title, Reason]),
    Part = case is_in_sequence(Suite) of
               true -> unknown;
               false -> {Path, Case}
           end,
    suite_run:say(Events, {failed, Part, lists:flatten(Title), suite_run:brief(Reason)}),
    State.

is_in_sequence(Suite) ->
    erlang:function_exported(Suite, suite, 0)
        andalso proplists:get_value(userdata, Suite:suite()) =:= in_sequence.

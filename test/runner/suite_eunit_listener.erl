%% SPDX-License-Identifier: Apache-2.0
%% @doc Listener of EUnit: tells which tests failed, and how many passed (`suite_run').
-module(suite_eunit_listener).
-behaviour(eunit_listener).

-export([start/1, init/1, handle_begin/3, handle_end/3, handle_cancel/3, terminate/2]).

-record(state, {events :: file:filename(), passed = 0 :: non_neg_integer(),
                failed = 0 :: non_neg_integer()}).

-spec start([term()]) -> pid().
start(Options) -> eunit_listener:start(?MODULE, Options).

-spec init([term()]) -> #state{}.
init(Options) ->
    receive {start, _Reference} -> ok end,
    #state{events = proplists:get_value(events, Options)}.

-spec handle_begin(group | test, [term()], #state{}) -> #state{}.
handle_begin(_What, _Data, State) -> State.

-spec handle_end(group | test, [term()], #state{}) -> #state{}.
handle_end(test, Data, #state{passed = Passed} = State) ->
    case proplists:get_value(status, Data) of
        ok -> State#state{passed = Passed + 1};
        _ErrorOrSkipped -> failed(Data, "", State)
    end;
handle_end(group, _Data, State) ->
    State.

%% A group is cancelled for a test of it as well, which is told then.
-spec handle_cancel(group | test, [term()], #state{}) -> #state{}.
handle_cancel(What, Data, State) ->
    case {What, proplists:get_value(reason, Data)} of
        {group, {blame, _}} -> State;
        {group, undefined} -> State;
        {_, Reason} -> failed(Data, io_lib:format(" (~0tp)", [reason(Reason)]), State)
    end.

reason(Reason) when is_tuple(Reason) -> element(1, Reason);
reason(Reason) -> Reason.

failed(Data, Why, #state{events = Events, failed = Failed} = State) ->
    {Part, Name} = case proplists:get_value(source, Data) of
                       {Module, Function, _} -> {{Module, Function}, [atom_to_list(Module), ":",
                                                                      atom_to_list(Function)]};
                       _ -> {unknown, "a group of tests"}
                   end,
    Text = unicode:characters_to_list([Name, text(proplists:get_value(desc, Data)), Why]),
    suite_run:say(Events, {failed, Part, Text}),
    State#state{failed = Failed + 1}.

text(undefined) -> "";
text("") -> "";
text(Description) -> [" (", Description, ")"].

-spec terminate({ok, [term()]} | {error, term()}, #state{}) -> ok.
terminate(Result, #state{events = Events, passed = Passed, failed = Failed}) ->
    Lost = case Result of
               {ok, Data} -> lists:sum([proplists:get_value(Key, Data, 0)
                                        || Key <- [fail, cancel, skip]]);
               {error, _} -> 1
           end,
    suite_run:say(Events, {sum, #{passed => Passed, failed => max(Failed, Lost), skipped => 0}}).

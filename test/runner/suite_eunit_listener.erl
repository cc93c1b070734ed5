%% SPDX-License-Identifier: Apache-2.0
%% @doc Listener of EUnit: tells which tests failed, and how many passed (`suite_run'). EUnit has no
%% word for a test that cannot run here. A generator returns `{"skipped: WHY", []}' then, a group
%% without tests, which is told and counted.
-module(suite_eunit_listener).
-behaviour(eunit_listener).

-export([start/1, init/1, handle_begin/3, handle_end/3, handle_cancel/3, terminate/2]).

-record(state, {events :: file:filename(), passed = 0 :: non_neg_integer(),
                failed = 0 :: non_neg_integer(), skipped = 0 :: non_neg_integer()}).

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
handle_end(group, Data, #state{events = Events, skipped = Skipped} = State) ->
    case unicode:characters_to_list(text(proplists:get_value(desc, Data))) of
        " (skipped: " ++ Why ->
            suite_run:say(Events, {skipped, lists:droplast(Why)}),
            State#state{skipped = Skipped + 1};
        _ ->
            State
    end.

%% A group is cancelled for something in it as well, which is told by itself. Without a reason it is
%% one that was not set up, or the rest of its module.
-spec handle_cancel(group | test, [term()], #state{}) -> #state{}.
handle_cancel(What, Data, State) ->
    case {What, proplists:get_value(reason, Data)} of
        {group, {blame, _}} -> State;
        {_, Reason} -> failed(Data, reason(Reason), State)
    end.

reason(undefined) -> " (cancelled)";
reason(Reason) when is_tuple(Reason) -> io_lib:format(" (~0tp)", [element(1, Reason)]);
reason(Reason) -> io_lib:format(" (~0tp)", [Reason]).

failed(Data, Why, #state{events = Events, failed = Failed} = State) ->
    Description = text(proplists:get_value(desc, Data)),
    {Part, Name} = case proplists:get_value(source, Data) of
                       {Module, Function, _} -> {{Module, Function}, [atom_to_list(Module), ":",
                                                                      atom_to_list(Function)]};
                       _ -> {group(Description), "a group of tests"}
                   end,
    Text = unicode:characters_to_list([Name, Description, Why]),
    suite_run:say(Events, {failed, Part, Text, why(proplists:get_value(status, Data))}),
    State#state{failed = Failed + 1}.

why({error, Error}) -> suite_run:brief(Error);
why(_Cancelled) -> "".

group(Description) ->
    case re:run(Description, "module '(.*)'", [{capture, [1], list}]) of
        {match, [Module]} -> {list_to_atom(Module), group};
        nomatch -> unknown
    end.

text(undefined) -> "";
text("") -> "";
text(Description) -> [" (", Description, ")"].

%% What was not told by itself has failed, too.
-spec terminate({ok, [term()]} | {error, term()}, #state{}) -> ok.
terminate(Result, #state{events = Events, passed = Passed, failed = Told, skipped = Skipped}) ->
    Failed = case Result of
                 {ok, _} when Told > 0 -> Told;
                 {ok, Counts} -> lists:sum([proplists:get_value(Key, Counts, 0)
                                            || Key <- [fail, cancel, skip]]);
                 {error, _} -> Told + 1
             end,
    suite_run:say(Events, {sum, #{passed => Passed, failed => Failed,
                                   skipped => Skipped}}).

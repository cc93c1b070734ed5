%% SPDX-License-Identifier: Apache-2.0
%% @doc The processes that a supervisor of the Instant Messenger watches, as a value of it: by a
%% key, with what is needed to start them again. They are not linked, since they outlive their
%% supervisor, whose successor takes them over.
%%
%% A process with a name ends as `{taken, Pid}' if another one has that name already; then that one
%% is watched in its place.
-module(weft_im_children).

-export([new/0, start/5, adopt/4, find/2, keys/1, pids/1, down/2]).
-export_type([children/0, key/0, start/0]).

-record(children, {by_key = #{} :: #{key() => {pid(), start()}},
                   monitors = #{} :: #{reference() => key()},
                   restarts = {0, 0} :: {Second :: integer(), non_neg_integer()}}).

-opaque children() :: #children{}.
-type key() :: term().
%% Where, what, and the arguments of its function `init', to which `fresh' or `again' is added.
-type start() :: {node(), module(), [term()]}.

%% More deaths than these in a second have a reason that a new start does not remedy.
-define(RESTARTS_MAX, 100).

-spec new() -> children().
new() -> #children{}.

%% @doc Starts a process. `again': in the place of one that is lost, whose state it has to find.
-spec start(key(), start(), fresh | again, weft_im_plan:service(), children()) -> children().
start(Key, {Node, Module, Arguments} = Start, How, Service, Children) ->
    %% Watched from its beginning: it may be `taken' at once.
    Started = spawn_monitor(Node, Module, init, [Service, How | Arguments]),
    add(Key, Started, Start, Children).

%% @doc Watches a process that is there already.
-spec adopt(key(), pid(), start(), children()) -> children().
adopt(Key, Pid, Start, Children) ->
    add(Key, {Pid, monitor(process, Pid)}, Start, Children).

add(Key, {Pid, Monitor}, Start, #children{by_key = ByKey, monitors = Monitors} = Children) ->
    Children#children{by_key = ByKey#{Key => {Pid, Start}}, monitors = Monitors#{Monitor => Key}}.

-spec find(key(), children()) -> {pid(), start()} | none.
find(Key, #children{by_key = ByKey}) ->
    maps:get(Key, ByKey, none).

-spec keys(children()) -> [key()].
keys(#children{by_key = ByKey}) -> maps:keys(ByKey).

-spec pids(children()) -> #{key() => {pid(), start()}}.
pids(#children{by_key = ByKey}) -> ByKey.

%% @doc Looks at a message. `lost': that process is no more, and is no longer watched; why it ended
%% is `ended' (on purpose), `node' (as its node is gone, or can not be reached) or `died'. `taken':
%% it has made way for another one, which is watched now.
-spec down(Message :: term(), children()) ->
          {lost, key(), pid(), start(), ended | node | died, children()}
        | {taken, key(), pid(), children()} | other.
down({'DOWN', Monitor, process, Pid, Why}, #children{monitors = Monitors} = Children)
  when is_map_key(Monitor, Monitors) ->
    {Key, Others} = maps:take(Monitor, Monitors),
    lost(Key, Pid, Why, Children#children{monitors = Others});
down(_Message, _Children) ->
    other.

lost(Key, Pid, Why, #children{by_key = ByKey} = Children) ->
    case {ByKey, Why} of
        {#{Key := {Pid, Start}}, {taken, Other}} ->
            {taken, Key, Other, adopt(Key, Other, Start, Children)};
        {#{Key := {Pid, {Node, _, _} = Start}}, _} ->
            Without = Children#children{by_key = maps:remove(Key, ByKey)},
            {lost, Key, Pid, Start, why(Why, Pid, Node), counted(Without)};
        %% Another one has its place already.
        _ -> other
    end.

why(normal, _Pid, _Node) -> ended;
why(noconnection, _Pid, _Node) -> node;
%% A process that could not be started on its node is one of this node.
why(_Why, Pid, Node) when node(Pid) =/= Node -> node;
why(_Why, _Pid, _Node) -> died.

counted(#children{restarts = {Second, Count}} = Children) ->
    case erlang:monotonic_time(second) of
        Second when Count >= ?RESTARTS_MAX -> exit({too_many_restarts, Count});
        Second -> Children#children{restarts = {Second, Count + 1}};
        Later -> Children#children{restarts = {Later, 1}}
    end.

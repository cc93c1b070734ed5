%% SPDX-License-Identifier: Apache-2.0
%% @doc What is seen of a run of the simulator: checkers and the first violation, counters, the
%% trace, and an observer. Nothing that happens depends on it, except that a violation ends the run.
-module(weft_sim_witness).

-export([new/1, event/1, sent/5, notice/5, happened/5, traced/3, view_changed/6, settled/3,
         violation/1, view_changed_us/1, counters/1, observed/1, trace/1]).
-export_type([witness/0]).

-record(witness, {
    checkers :: weft_sim_checker:checkers(),
    watching :: weft_sim_checker:checkers(),
    violation = none :: none | {NowMs :: non_neg_integer(), module(), string()},
    view_changed_us = 0 :: non_neg_integer(),
    is_traced :: boolean(),
    trace = [] :: [{NowUs :: non_neg_integer(), term()}],
    observer :: none | {module(), State :: term()},
    %% Does the observer want to know what machines are asked?
    is_asking :: boolean(),
    is_weighed :: boolean(),
    events = 0 :: non_neg_integer(),
    messages = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer()}).
-opaque witness() :: #witness{}.

%% @doc Options: `checkers', `observer', `weigh', `trace'; see `weft_sim_world:config()'.
-spec new(map()) -> witness().
new(Options) ->
    Checkers = maps:get(checkers, Options, []),
    Observer = maps:get(observer, Options, none),
    #witness{checkers = Checkers, watching = weft_sim_checker:watching(Checkers),
             observer = Observer, is_asking = is_asking(Observer),
             is_weighed = maps:get(weigh, Options, true),
             is_traced = maps:get(trace, Options, false)}.

is_asking(none) -> false;
is_asking({Module, _State}) -> lists:member({happened, 5}, Module:module_info(exports)).

%% @doc Something happens.
-spec event(witness()) -> witness().
event(#witness{events = Events} = Witness) ->
    Witness#witness{events = Events + 1}.

%% @doc A machine sends a message.
-spec sent(node(), Machine :: atom(), Msg :: term(), NowUs :: non_neg_integer(), witness()) ->
          witness().
sent(Node, Machine, Msg, NowUs, Witness) ->
    observe(sent, Node, Machine, Msg, NowUs, weigh(Msg, Witness)).

weigh(_Msg, #witness{is_weighed = false, messages = Messages} = Witness) ->
    Witness#witness{messages = Messages + 1};
weigh(Msg, #witness{messages = Messages, bytes = Bytes} = Witness) ->
    Witness#witness{messages = Messages + 1, bytes = Bytes + erlang:external_size(Msg)}.

%% @doc A machine gives a notice.
-spec notice(node(), Machine :: atom(), Notice :: term(), NowUs :: non_neg_integer(), witness()) ->
          witness().
notice(Node, Machine, Notice, NowUs, Witness) ->
    observe(notice, Node, Machine, Notice, NowUs,
            traced({notice, Node, Machine, Notice}, NowUs, Witness)).

%% @doc A machine starts, is asked or told something, or replies.
-spec happened(node(), Machine :: atom(), weft_sim_observer:happening(),
               NowUs :: non_neg_integer(), witness()) -> witness().
happened(_Node, _Machine, _What, _NowUs, #witness{is_asking = false} = Witness) ->
    Witness;
happened(Node, Machine, What, NowUs, Witness) ->
    observe(happened, Node, Machine, What, NowUs, Witness).

observe(_What, _Node, _Machine, _Term, _NowUs, #witness{observer = none} = Witness) ->
    Witness;
observe(What, Node, Machine, Term, NowUs, #witness{observer = {Observer, State}} = Witness) ->
    Witness#witness{observer = {Observer, Observer:What(Node, Machine, Term, NowUs, State)}}.

%% @doc A line of the trace.
-spec traced(What :: term(), NowUs :: non_neg_integer(), witness()) -> witness().
traced(_What, _NowUs, #witness{is_traced = false} = Witness) -> Witness;
traced(What, NowUs, #witness{trace = Trace} = Witness) ->
    Witness#witness{trace = [{NowUs, What} | Trace]}.

%% @doc A machine has written a view: asks the checkers for what must hold always.
-spec view_changed(node(), Key :: term(), Value :: term() | delete, weft_sim_world:world(),
                   NowUs :: non_neg_integer(), witness()) -> witness().
view_changed(Node, Key, Value, World, NowUs, #witness{watching = Watching} = Witness0) ->
    Witness = traced({view, Node, Key, Value}, NowUs, Witness0),
    lists:foldl(fun({Checker, Options}, W) ->
                    Verdict = Checker:view_changed(Node, Key, Value, World, Options),
                    judge(Checker, Verdict, NowUs, W)
                end, Witness#witness{view_changed_us = NowUs}, Watching).

%% @doc Asks the checkers for what must hold in the end, if the run has come to its end.
-spec settled(weft_sim_world:world(), NowUs :: non_neg_integer(), witness()) -> witness().
settled(_World, _NowUs, #witness{violation = {_, _, _}} = Witness) ->
    Witness;
settled(World, NowUs, #witness{checkers = Checkers} = Witness) ->
    lists:foldl(fun({Checker, Options}, W) ->
                    judge(Checker, Checker:settled(World, Options), NowUs, W)
                end, Witness, weft_sim_checker:asked_in_the_end(Checkers)).

judge(_Checker, ok, _NowUs, Witness) -> Witness;
judge(Checker, {violation, Text}, NowUs, #witness{violation = none} = Witness) ->
    Witness#witness{violation = {NowUs div 1000, Checker, lists:flatten(Text)}};
judge(_Checker, {violation, _Later}, _NowUs, Witness) -> Witness.

%% @doc The first violation found.
-spec violation(witness()) -> none | {AtMs :: non_neg_integer(), Checker :: module(), string()}.
violation(#witness{violation = Violation}) -> Violation.

%% @doc When a view last changed.
-spec view_changed_us(witness()) -> non_neg_integer().
view_changed_us(#witness{view_changed_us = ChangedUs}) -> ChangedUs.

%% @doc Events processed, messages and bytes (external term format) sent.
-spec counters(witness()) -> #{events | messages | bytes => non_neg_integer()}.
counters(#witness{events = Events, messages = Messages, bytes = Bytes}) ->
    #{events => Events, messages => Messages, bytes => Bytes}.

%% @doc The state of the observer.
-spec observed(witness()) -> term().
observed(#witness{observer = {_Observer, State}}) -> State.

%% @doc What happened, oldest first, if a trace was asked for.
-spec trace(witness()) -> [{NowUs :: non_neg_integer(), term()}].
trace(#witness{trace = Trace}) -> lists:reverse(Trace).

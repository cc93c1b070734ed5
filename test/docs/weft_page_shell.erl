%% SPDX-License-Identifier: Apache-2.0
%% @doc A shell for what pages show: one process evaluates all, so bindings, messages and links stay
%% from one block to the next. An expression fails if it raises, or if its value is an error.
%%
%% `until(Condition)', a function without module, waits until the fun returns true and does not
%% raise: for what a test has to wait for between two blocks.
-module(weft_page_shell).

-export([start/0, said/1, evaluate/2, load/1]).

-define(ANSWER_MS, 60000).
-define(UNTIL_MS, 20000).
-define(LOOK_MS, 20).

%% @doc Starts the one of this node.
-spec start() -> ok.
start() ->
    Shell = spawn(fun() -> loop(erl_eval:new_bindings()) end),
    true = register(?MODULE, Shell),
    ok.

loop(Bindings) ->
    receive
        {?MODULE, From, Text} ->
            {Said, Next} = evaluate(Text, Bindings),
            From ! {?MODULE, Said},
            loop(Next)
    end.

%% @doc The values of the expressions in a text, or the one that failed, and how.
-spec said(string()) -> {ok, [term()]} | {failed, string(), term()}.
said(Text) ->
    Monitor = monitor(process, ?MODULE),
    ?MODULE ! {?MODULE, self(), Text},
    receive
        {?MODULE, Said} -> demonitor(Monitor, [flush]), Said;
        {'DOWN', Monitor, process, _, Reason} -> {failed, Text, Reason}
    after ?ANSWER_MS -> {failed, Text, timeout}
    end.

%% @doc The same in this process, with what is bound before and after.
-spec evaluate(string(), erl_eval:binding_struct()) ->
          {{ok, [term()]} | {failed, string(), term()}, erl_eval:binding_struct()}.
evaluate(Text, Bindings) ->
    case erl_scan:string(Text, 1, [text]) of
        {ok, Tokens, _} -> each(split(Tokens, []), Bindings, []);
        {error, Reason, _} -> {{failed, Text, Reason}, Bindings}
    end.

each([], Bindings, Values) ->
    {{ok, lists:reverse(Values)}, Bindings};
each([Tokens | Rest], Bindings, Values) ->
    try
        {ok, Parsed} = erl_parse:parse_exprs(Tokens),
        {value, Value, Next} = erl_eval:exprs(Parsed, Bindings, {value, fun local/2}),
        case is_error(Value) of
            false -> each(Rest, Next, [Value | Values]);
            true -> {{failed, shown(Tokens), Value}, Bindings}
        end
    catch
        Class:Reason -> {{failed, shown(Tokens), {Class, Reason}}, Bindings}
    end.

is_error(error) -> true;
is_error(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 ->
    lists:member(element(1, Tuple), [error, badrpc]);
is_error(_) -> false.

shown(Tokens) ->
    lists:flatten(lists:join($\s, [Word || Token <- Tokens,
                                           Word <- [erl_scan:text(Token)], is_list(Word)])).

%% The last expression needs no dot.
split([], []) -> [];
split([], Tokens) -> [lists:reverse(Tokens, [{dot, 1}])];
split([{dot, _} = Dot | Rest], Tokens) -> [lists:reverse(Tokens, [Dot]) | split(Rest, [])];
split([Token | Rest], Tokens) -> split(Rest, [Token | Tokens]).

local(until, [Condition]) -> until(Condition, erlang:monotonic_time(millisecond) + ?UNTIL_MS).

until(Condition, Deadline) ->
    case catch Condition() of
        true ->
            ok;
        Other ->
            erlang:monotonic_time(millisecond) < Deadline orelse error({never_true, Other}),
            receive after ?LOOK_MS -> ok end, % pacing: of this very loop
            until(Condition, Deadline)
    end.

%% @doc Compiles and loads modules of the reader.
-spec load([string()]) -> ok.
load(Sources) -> lists:foreach(fun loaded/1, Sources).

loaded(Source) ->
    File = lists:concat(["reader_", os:getpid(), "_", erlang:unique_integer([positive]), ".erl"]),
    ok = file:write_file(File, Source),
    {ok, Module, Binary} = compile:file(File, [binary]),
    {module, Module} = code:load_binary(Module, "none", Binary),
    ok = file:delete(File).

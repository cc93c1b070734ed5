%% SPDX-License-Identifier: Apache-2.0
%% @doc Prints what happened in a world, one line per event: virtual time, what, who, details.
%%
%% ```
%%    12.345 ms  start    a@sim
%%    13.001 ms  up       a@sim -- b@sim
%%    13.950 ms  message  a@sim -> b@sim  router {full,last,[{a@sim,1,0,0}]}
%%    13.950 ms  view     b@sim  {route,a@sim} = {a@sim,1000,1}
%% '''
%% Messages appear when they arrive and are printed without their version tag. Of a long binary the
%% size is printed.
-module(weft_sim_trace).

-export([format/1]).

-define(LONG_BYTES, 1000).

%% @doc The trace as text.
-spec format([{NowUs :: non_neg_integer(), term()}]) -> iolist().
format(Trace) ->
    [io_lib:format("~10.3f ms  ~ts~n", [NowUs / 1000, line(short(What))])
     || {NowUs, What} <- Trace].

short(Long) when is_binary(Long), byte_size(Long) > ?LONG_BYTES -> {bytes, byte_size(Long)};
short([Head | Tail]) -> [short(Head) | short(Tail)];
short(Tuple) when is_tuple(Tuple) -> list_to_tuple(short(tuple_to_list(Tuple)));
short(Map) when is_map(Map) -> maps:map(fun(_, Value) -> short(Value) end, Map);
short(Other) -> Other.

line({up, Name, Peer}) ->
    io_lib:format("up       ~0tp -- ~0tp", [Name, Peer]);
line({down, Name, Peer, Reason}) ->
    io_lib:format("down     ~0tp -- ~0tp  ~0tp", [Name, Peer, Reason]);
line({message, From, To, Machine, {_Version, Msg}}) ->
    io_lib:format("message  ~0tp -> ~0tp  ~0tp ~0tp", [From, To, Machine, Msg]);
line({view, Name, Key, Value}) ->
    io_lib:format("view     ~0tp  ~0tp = ~0tp", [Name, Key, Value]);
line({notice, Name, Machine, Notice}) ->
    io_lib:format("notice   ~0tp  ~0tp ~0tp", [Name, Machine, Notice]);
line({reply, Name, Machine, Reply}) ->
    io_lib:format("reply    ~0tp  ~0tp ~0tp", [Name, Machine, Reply]);
line(heal_all) ->
    "heal_all";
line(Verb) ->
    [Word | Arguments] = tuple_to_list(Verb),
    [io_lib:format("~-8s", [Word]), [io_lib:format(" ~0tp", [Argument]) || Argument <- Arguments]].

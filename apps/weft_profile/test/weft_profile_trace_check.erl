%% SPDX-License-Identifier: Apache-2.0
%% @doc A strict look at Chrome trace JSON: it is JSON, in each thread times do not go back, slices
%% nest, every flow has one begin and one end, and its steps are after the one and before the other,
%% each within a slice that takes time, and threads are of one process.
-module(weft_profile_trace_check).

-export([check/1, json/1]).

-spec check(iodata()) -> #{events := non_neg_integer(), slices := non_neg_integer(),
                           flows := non_neg_integer(), steps := non_neg_integer(),
                           all := [map()]}.
check(Text) ->
    #{"traceEvents" := Events, "displayTimeUnit" := "ns"} = json(iolist_to_binary(Text)),
    Threads = lists:foldl(fun(#{"pid" := Pid, "tid" := Tid} = Event, Acc) ->
                                  Acc#{{Pid, Tid} => [Event | maps:get({Pid, Tid}, Acc, [])]};
                             (#{"ph" := "M", "name" := "process_name"}, Acc) -> Acc
                          end, #{}, Events),
    Tids = [Tid || {_, Tid} <- maps:keys(Threads)],
    true = length(Tids) =:= length(lists:usort(Tids)),
    maps:foreach(fun(_Thread, Of) -> thread([E || #{"ts" := _} = E <- lists:reverse(Of)]) end,
                 Threads),
    Begins = [Id || #{"ph" := "s", "id" := Id} <- Events],
    Ends = [Id || #{"ph" := "f", "id" := Id, "bp" := "e"} <- Events],
    true = lists:sort(Begins) =:= lists:usort(Begins),
    true = lists:sort(Begins) =:= lists:sort(Ends),
    Steps = [Id || #{"ph" := "t", "id" := Id} <- Events],
    [] = lists:usort(Steps) -- Begins,
    At = maps:from_list([{{Ph, Id}, ns(Ts)} || #{"ph" := Ph, "id" := Id, "ts" := Ts} <- Events,
                                               Ph =/= "t"]),
    [true = step(ns(Ts), map_get({"s", Id}, At), map_get({"f", Id}, At))
     || #{"ph" := "t", "id" := Id, "ts" := Ts} <- Events],
    #{events => length(Events), slices => length([x || #{"ph" := "X"} <- Events]),
      flows => length(Begins), steps => length(Steps), all => Events}.

%% Clocks may be wrong: then it ends before it begins.
step(Ns, Begin, End) -> Begin < Ns andalso (Ns < End orelse End < Begin).

thread(Events) ->
    Times = [ns(Ts) || #{"ts" := Ts} <- Events],
    true = Times =:= lists:sort(Times),
    nest([{ns(Ts), ns(Ts) + ns(Dur)} || #{"ph" := "X", "ts" := Ts, "dur" := Dur} <- Events], []),
    [true = lists:any(fun(#{"ph" := "X", "ts" := From, "dur" := Dur}) ->
                              ns(From) =< ns(Ts) andalso ns(Ts) =< ns(From) + ns(Dur)
                                  andalso ns(Dur) > 0;
                         (_) -> false
                      end, Events)
     || #{"ph" := Ph, "ts" := Ts} <- Events, lists:member(Ph, ["s", "t", "f"])],
    ok.

%% Open: ends of the slices that this one is in, innermost first.
nest([], _Open) ->
    ok;
nest([{From, _} | _] = All, [End | Open]) when End =< From ->
    nest(All, Open);
nest([{From, To} | Rest], Open) ->
    true = From =< To andalso lists:all(fun(End) -> To =< End end, Open),
    nest(Rest, [To | Open]).

%% Decimals are exact: {whole, three decimals}.
ns({decimal, Whole, Decimals}) when length(Decimals) =:= 3 ->
    list_to_integer(Whole ++ Decimals).

%% @doc JSON as terms: objects are maps, strings lists, numbers with a point {decimal, _, _}.
-spec json(binary()) -> term().
json(Text) ->
    {Value, Rest} = value(space(Text)),
    <<>> = space(Rest),
    Value.

space(<<C, Rest/binary>>) when C =:= $\s; C =:= $\n -> space(Rest);
space(Rest) -> Rest.

value(<<"{", Rest/binary>>) -> object(space(Rest), #{});
value(<<"[", Rest/binary>>) -> array(space(Rest), []);
value(<<"\"", Rest/binary>>) -> string(Rest, []);
value(Text) ->
    {match, [Whole | Decimals]} = re:run(Text, "^(-?(?:0|[1-9][0-9]*))(?:\\.([0-9]+))?",
                                         [{capture, all_but_first, list}]),
    case Decimals of
        [] -> {list_to_integer(Whole), after_text(Whole, Text)};
        [Digits] -> {{decimal, Whole, Digits}, after_text(Whole ++ "." ++ Digits, Text)}
    end.

after_text(Start, Text) -> binary:part(Text, length(Start), byte_size(Text) - length(Start)).

object(<<"}", Rest/binary>>, Map) -> {Map, Rest};
object(<<",", Rest/binary>>, Map) when map_size(Map) > 0 -> member(space(Rest), Map);
object(Text, Map) when map_size(Map) =:= 0 -> member(Text, Map).

member(<<"\"", Text/binary>>, Map) ->
    {Key, <<":", Rest/binary>>} = string(Text, []),
    false = is_map_key(Key, Map),
    {Value, More} = value(space(Rest)),
    object(space(More), Map#{Key => Value}).

array(<<"]", Rest/binary>>, List) -> {lists:reverse(List), Rest};
array(<<",", Rest/binary>>, [_ | _] = List) -> element_of(space(Rest), List);
array(Text, []) -> element_of(Text, []).

element_of(Text, List) ->
    {Value, Rest} = value(Text),
    array(space(Rest), [Value | List]).

string(<<"\"", Rest/binary>>, Chars) -> {lists:reverse(Chars), Rest};
string(<<"\\u", Hex:4/binary, Rest/binary>>, Chars) ->
    string(Rest, [binary_to_integer(Hex, 16) | Chars]);
string(<<"\\", C, Rest/binary>>, Chars) when C =:= $"; C =:= $\\ -> string(Rest, [C | Chars]);
string(<<C/utf8, Rest/binary>>, Chars) when C >= 32 -> string(Rest, [C | Chars]).

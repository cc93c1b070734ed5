%% SPDX-License-Identifier: Apache-2.0
%% @doc What happened in the demo as a picture (SVG): deliveries and nodedowns over time, on weft
%% and on stock distribution. Pure.
-module(demo_picture).

-export([svg/2]).

%% @doc Faults has the words for what was done, and when.
-spec svg([{Carrier :: weft | stock, Samples :: [map()]}], Faults :: unicode:chardata()) ->
          iodata().
svg(Runs, Faults) ->
    weft_report_picture:svg(
      ["The chat on twelve nodes: ", Faults],
      [chart(Title, YLabel, Key, Runs, Faults)
       || {Title, YLabel, Key} <- [{"Delivered to survivors", "copies of messages", delivered},
                                   {"nodedowns among survivors", "nodedowns", nodedowns}]]).

chart(Title, YLabel, Key, Runs, Faults) ->
    #{title => Title, description => [Title, "; ", Faults], x_label => ["s; ", Faults],
      y_label => YLabel, x => linear, y => linear, y_text => fun number/1,
      series => [#{name => atom_to_list(Carrier), class => class(Carrier), shape => shape(Carrier),
                   points => [point(AtMs / 1000, map_get(Key, Sample))
                              || #{at_ms := AtMs} = Sample <- Samples]}
                 || {Carrier, Samples} <- Runs]}.

point(AtS, Value) ->
    {AtS, Value, Value, Value, io_lib:format("~b after ~.1f s", [Value, AtS])}.

number(Value) -> integer_to_list(round(Value)).

class(weft) -> "weft_1";
class(stock) -> "stock".

shape(weft) -> 1;
shape(stock) -> 0.

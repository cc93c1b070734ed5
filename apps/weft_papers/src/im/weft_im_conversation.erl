%% SPDX-License-Identifier: Apache-2.0
%% @doc One end of a conversation of the Instant Messenger: what is still to be said, what is not
%% acknowledged, and what has been heard, so that everything that is said is heard once and in
%% order over ways that lose messages and repeat them. Pure; times in microseconds are arguments.
%%
%% Stop and wait: what is said has a number, and the next one is sent when it is acknowledged. Each
%% message acknowledges what was heard before, too. A message is sent again until it is; what comes
%% with a number that was heard already is acknowledged again, and nothing else.
%%
%% Who logs in anew may be told something in a conversation of before: the other end has heard more
%% than this one has said, and what is said here then has the numbers after that.
-module(weft_im_conversation).

-export([new/0, say/3, is_full/1, hear/4, acknowledged/3, again/2, due/3, is_silent/1,
         waiting_us/2]).
-export_type([ending/0, said/0, event/0]).

-record(ending, {next = 1 :: pos_integer(),
                 waiting = queue:new() :: queue:queue({pos_integer(), Text :: binary()}),
                 flying = none :: none | {pos_integer(), Text :: binary(), FirstUs :: integer(),
                                          LastUs :: integer(), Times :: pos_integer()},
                 heard = 0 :: non_neg_integer()}).

-opaque ending() :: #ending{}.
%% What goes over the wire: a message with its number and the last number heard, or that alone.
-type said() :: {message, pos_integer(), Heard :: non_neg_integer(), Text :: binary()}
              | {heard, pos_integer()}.
%% `delivered': the other end has heard it, after half of the time it took to know that.
-type event() :: {delivered, pos_integer(), LatencyUs :: non_neg_integer()}
               | {heard, pos_integer(), Text :: binary()}.

-define(WAITING_MAX, 100).

-spec new() -> ending().
new() -> #ending{}.

%% @doc Says something: what is to be sent now, if anything.
-spec say(Text :: binary(), NowUs :: integer(), ending()) -> {[said()], ending()}.
say(Text, NowUs, #ending{next = Number, waiting = Waiting} = End) ->
    fly(NowUs, End#ending{next = Number + 1, waiting = queue:in({Number, Text}, Waiting)}).

%% @doc Too much is said that is not acknowledged.
-spec is_full(ending()) -> boolean().
is_full(#ending{waiting = Waiting}) -> queue:len(Waiting) >= ?WAITING_MAX.

fly(NowUs, #ending{flying = none, waiting = Waiting} = End) ->
    case queue:out(Waiting) of
        {empty, _} -> {[], End};
        {{value, {Number, Text}}, Rest} ->
            {[message(Number, Text, End)],
             End#ending{waiting = Rest, flying = {Number, Text, NowUs, NowUs, 1}}}
    end;
fly(_NowUs, End) ->
    {[], End}.

message(Number, Text, #ending{heard = Heard}) -> {message, Number, Heard, Text}.

%% @doc A message of the other end: what that means, and what is to be sent now.
-spec hear({pos_integer(), Text :: binary()}, Acknowledged :: non_neg_integer(),
           NowUs :: integer(), ending()) -> {[event()], [said()], ending()}.
hear({Number, Text}, Acknowledged, NowUs, #ending{heard = Heard} = End) ->
    {Delivered, Said, After} = acknowledged(Acknowledged, NowUs, End),
    New = [{heard, Number, Text} || Number > Heard],
    {Delivered ++ New, [{heard, Number} | Said], After#ending{heard = max(Number, Heard)}}.

%% @doc The other end has heard all up to this number.
-spec acknowledged(non_neg_integer(), NowUs :: integer(), ending()) ->
          {[event()], [said()], ending()}.
acknowledged(Heard, NowUs, #ending{next = Next} = End) when Heard >= Next ->
    acknowledged(Heard, NowUs, End#ending{next = Heard + 1});
acknowledged(Heard, NowUs, #ending{flying = {Number, _, FirstUs, _, _}} = End)
  when Heard >= Number ->
    {Said, After} = fly(NowUs, End#ending{flying = none}),
    {[{delivered, Number, max(0, NowUs - FirstUs) div 2}], Said, After};
acknowledged(_Heard, _NowUs, End) ->
    {[], [], End}.

%% @doc Sends what is not acknowledged once more.
-spec again(NowUs :: integer(), ending()) -> {[said()], ending()}.
again(NowUs, #ending{flying = {Number, Text, FirstUs, _, Times}} = End) ->
    {[message(Number, Text, End)],
     End#ending{flying = {Number, Text, FirstUs, NowUs, Times + 1}}};
again(_NowUs, End) ->
    {[], End}.

%% @doc How often it has been sent in vain, if the last time was so long ago.
-spec due(AfterUs :: pos_integer(), NowUs :: integer(), ending()) -> no | {yes, pos_integer()}.
due(AfterUs, NowUs, #ending{flying = {_, _, _, LastUs, Times}}) when NowUs - LastUs >= AfterUs ->
    {yes, Times};
due(_AfterUs, _NowUs, _End) ->
    no.

%% @doc Is all acknowledged that was said?
-spec is_silent(ending()) -> boolean().
is_silent(#ending{flying = none}) -> true;
is_silent(_) -> false.

%% @doc For how long the oldest message has not been acknowledged.
-spec waiting_us(NowUs :: integer(), ending()) -> non_neg_integer().
waiting_us(NowUs, #ending{flying = {_, _, FirstUs, _, _}}) -> max(0, NowUs - FirstUs);
waiting_us(_NowUs, _End) -> 0.

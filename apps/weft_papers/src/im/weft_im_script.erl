%% SPDX-License-Identifier: Apache-2.0
%% @doc What two people write to each other, drawn as the traffic generator of the Instant Messenger
%% does (module traffic_generator of its benchmark; the distributions are those that Z. Xiao et al.,
%% "Understanding Instant Messaging Traffic Characteristics", ICDCS 2007, are cited for): 13 to 60
%% messages by turns, each of 1 to 75 lower case letters, and typed for 1 to 20 seconds; all
%% uniform. Pure.
%%
%% A script is drawn from a seed and the conversation, so both ends and whoever checks them know it
%% without a word. `scale' makes it faster: 0.01 types for 10 to 200 milliseconds.
-module(weft_im_script).

-export([new/3, steps/1, line/2, speaker/1, number/1, index/2, partner/4, pause_ms/3]).
-export_type([script/0]).

-opaque script() :: tuple().
-type line() :: {Text :: binary(), TypingMs :: non_neg_integer()}.

-define(STEPS_MIN, 13).
-define(STEPS_MAX, 60).
-define(LETTERS_MAX, 75).
-define(TYPING_MAX_S, 20).

-spec new(Seed :: integer(), weft_im_session:conversation(), Scale :: number()) -> script().
new(Seed, Conversation, Scale) ->
    {Extra, Rand} = rand:uniform_s(?STEPS_MAX - ?STEPS_MIN + 1, seeded(Seed, Conversation)),
    {Lines, _} = lists:mapfoldl(fun(_, Acc) -> line_s(Scale, Acc) end, Rand,
                                lists:seq(1, ?STEPS_MIN - 1 + Extra)),
    list_to_tuple(Lines).

seeded(Seed, Thing) ->
    rand:seed_s(exsss, {Seed, erlang:phash2(Thing, 1 bsl 32), 0}).

line_s(Scale, Rand) ->
    {Length, Rand1} = rand:uniform_s(?LETTERS_MAX, Rand),
    {TypingMs, Rand2} = typing_ms(Scale, Rand1),
    {Letters, Rand3} = lists:mapfoldl(fun(_, Acc) ->
                                          {Letter, After} = rand:uniform_s($z - $a + 1, Acc),
                                          {$a + Letter - 1, After}
                                      end, Rand2, lists:seq(1, Length)),
    {{list_to_binary(Letters), TypingMs}, Rand3}.

typing_ms(Scale, Rand) ->
    {Seconds, After} = rand:uniform_s(?TYPING_MAX_S, Rand),
    {round(Seconds * 1000 * Scale), After}.

%% @doc How many messages there are, of both.
-spec steps(script()) -> pos_integer().
steps(Script) -> tuple_size(Script).

%% @doc A message, and for how long it is typed before it is sent.
-spec line(Index :: pos_integer(), script()) -> line().
line(Index, Script) -> element(Index, Script).

%% @doc Who says it: the one who has begun says the first.
-spec speaker(Index :: pos_integer()) -> a | b.
speaker(Index) when Index rem 2 =:= 1 -> a;
speaker(_Index) -> b.

%% @doc As its speaker counts.
-spec number(Index :: pos_integer()) -> pos_integer().
number(Index) -> (Index + 1) div 2.

%% @doc The index of what a speaker says as this number.
-spec index(a | b, Number :: pos_integer()) -> pos_integer().
index(a, Number) -> 2 * Number - 1;
index(b, Number) -> 2 * Number.

%% @doc With whom the K-th conversation of a client is: anybody else, as a number up to Count.
-spec partner(Seed :: integer(), Client :: pos_integer(), K :: non_neg_integer(),
              Count :: pos_integer()) -> pos_integer().
partner(Seed, Client, K, Count) ->
    {Number, _} = rand:uniform_s(Count - 1, seeded(Seed, {partner, Client, K})),
    case Number < Client of
        true -> Number;
        false -> Number + 1
    end.

%% @doc The pause after a conversation that could not be set up.
-spec pause_ms(Seed :: integer(), weft_im_session:conversation(), Scale :: number()) ->
          non_neg_integer().
pause_ms(Seed, Conversation, Scale) ->
    {PauseMs, _} = typing_ms(Scale, seeded(Seed, {pause, Conversation})),
    PauseMs.

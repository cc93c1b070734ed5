%% SPDX-License-Identifier: Apache-2.0
%% @doc When a condition becomes an alarm, and when the alarm is over. Pure; times are milliseconds
%% of a clock that only grows.
%%
%% An alarm is raised when its condition has held for the grace time of its kind without a gap, and
%% is cleared when the condition has not held for the time `clear_ms'. So what comes and goes is one
%% alarm and not many. Who knows of an alarm may acknowledge it, with a comment; it stays until it
%% is cleared. An alarm that is raised again after it was cleared is a new one, which nobody has
%% acknowledged. An agent that has lost sight of an alarm gives it to another one: there it goes on,
%% and nothing has happened to it. The number of alarms is bounded: those over it are counted. The
%% worst ones come first, and critical ones may be twice as many: so others leave room for them.
-module(weft_ops_alarms_core).

-export([new/1, observe/3, acknowledge/4, part/2, take/3, list/1, left_out/1]).
-export_type([state/0, alarm/0, event/0, id/0, graces_ms/0, options/0]).

-type id() :: {weft_ops_anomalies:kind(), node(), About :: term()}.
%% raised_ms: of the clock of its agent; at_ms: the same in system time, once an agent has told it.
-type alarm() :: #{id := id(), severity := critical | warning | note, text := binary(),
                   raised_ms := integer(), at_ms => integer(),
                   acknowledged := no | #{comment := binary(), at_ms := integer()}}.
-type event() :: {raised | cleared, alarm()}.
%% Of kinds; those that are not named have that of `default'.
-type graces_ms() :: #{default := non_neg_integer(),
                       weft_ops_anomalies:kind() => non_neg_integer()}.
-type options() :: #{grace_ms := graces_ms(), clear_ms := non_neg_integer(),
                     alarms_max := pos_integer(), _ => _}.

-record(watched, {since_ms :: integer(),
                  held_ms :: integer(),
                  alarm = none :: none | alarm()}).
-record(state, {options :: options(),
                watched = #{} :: #{id() => #watched{}},
                left_out = 0 :: non_neg_integer()}).
-opaque state() :: #state{}.

-spec new(options()) -> state().
new(Options) -> #state{options = Options}.

%% @doc The conditions that hold now, all of them.
-spec observe([weft_ops_anomalies:condition()], NowMs :: integer(), state()) ->
          {state(), [event()]}.
observe(Conditions, NowMs, #state{watched = Before} = State) ->
    Now = maps:from_list([{id(Condition), Condition} || Condition <- Conditions]),
    {Gone, Cleared} = gone(maps:without(maps:keys(Now), Before), NowMs, State),
    lists:foldl(fun({Id, Condition}, Acc) -> holds(Id, Condition, NowMs, Acc) end,
                {State#state{watched = maps:merge(maps:with(maps:keys(Now), Before), Gone)},
                 Cleared},
                lists:sort(fun is_before/2, maps:to_list(Now))).

is_before({IdA, #{severity := A}}, {IdB, #{severity := B}}) -> {rank(A), IdA} =< {rank(B), IdB}.

rank(critical) -> 1;
rank(warning) -> 2;
rank(note) -> 3.

id(#{kind := Kind, node := Node, about := About}) -> {Kind, Node, About}.

%% What does not hold now is forgotten, but an alarm stays for a while.
gone(Watched, NowMs, #state{options = #{clear_ms := ClearMs}}) ->
    maps:fold(fun(_Id, #watched{alarm = none}, Acc) ->
                      Acc;
                 (_Id, #watched{held_ms = HeldMs, alarm = Alarm}, {Stays, Events})
                   when NowMs - HeldMs >= ClearMs ->
                      {Stays, [{cleared, Alarm} | Events]};
                 (Id, One, {Stays, Events}) ->
                      {Stays#{Id => One}, Events}
              end, {#{}, []}, Watched).

holds(Id, Condition, NowMs, {#state{watched = Watched} = State, Events}) ->
    case Watched of
        #{Id := #watched{} = One} ->
            raised(Id, Condition, NowMs, One#watched{held_ms = NowMs}, {State, Events});
        #{} ->
            begun(Id, Condition, NowMs, {State, Events})
    end.

begun(Id, #{severity := Severity} = Condition, NowMs, {State, Events}) ->
    case has_room(Severity, State) of
        true -> raised(Id, Condition, NowMs, #watched{since_ms = NowMs, held_ms = NowMs},
                       {State, Events});
        false -> {State#state{left_out = State#state.left_out + 1}, Events}
    end.

has_room(critical, #state{watched = Watched, options = #{alarms_max := Max}}) ->
    map_size(Watched) < 2 * Max;
has_room(_Other, #state{watched = Watched, options = #{alarms_max := Max}}) ->
    map_size(Watched) < Max.

raised({Kind, _, _} = Id, #{severity := Severity, text := Text}, NowMs,
       #watched{alarm = none, since_ms = SinceMs} = One, {State, Events}) ->
    case NowMs - SinceMs >= grace_ms(Kind, State) of
        true ->
            Alarm = #{id => Id, severity => Severity, text => Text, raised_ms => NowMs,
                      acknowledged => no},
            {kept(Id, One#watched{alarm = Alarm}, State), Events ++ [{raised, Alarm}]};
        false ->
            {kept(Id, One, State), Events}
    end;
raised(Id, #{text := Text}, _NowMs, #watched{alarm = Alarm} = One, {State, Events}) ->
    {kept(Id, One#watched{alarm = Alarm#{text := Text}}, State), Events}.

kept(Id, One, #state{watched = Watched} = State) -> State#state{watched = Watched#{Id => One}}.

grace_ms(Kind, #state{options = #{grace_ms := #{default := Default} = Graces}}) ->
    maps:get(Kind, Graces, Default).

%% @doc Somebody takes care of it.
-spec acknowledge(id(), Comment :: binary(), NowMs :: integer(), state()) ->
          {ok, state()} | {error, unknown_alarm}.
acknowledge(Id, Comment, NowMs, #state{watched = Watched} = State) ->
    case Watched of
        #{Id := #watched{alarm = #{} = Alarm} = One} ->
            Said = #{comment => Comment, at_ms => NowMs},
            {ok, kept(Id, One#watched{alarm = Alarm#{acknowledged := Said}}, State)};
        #{} ->
            {error, unknown_alarm}
    end.

%% @doc Gives up the alarms for which Fun is true: no event tells of them.
-spec part(fun((id()) -> boolean()), state()) -> {[alarm()], state()}.
part(Fun, #state{watched = Watched} = State) ->
    Left = maps:filter(fun(Id, #watched{alarm = Alarm}) -> Alarm =:= none orelse not Fun(Id) end,
                       Watched),
    {[Alarm || #watched{alarm = Alarm} <- maps:values(maps:without(maps:keys(Left), Watched))],
     State#state{watched = Left}}.

%% @doc Takes alarms that another agent has raised, as if they held now. One that was raised here as
%% well stays as it is; but that somebody takes care of it is kept. Those over the bound are left
%% out.
-spec take([alarm()], NowMs :: integer(), state()) -> state().
take(Alarms, NowMs, State) ->
    Worst = lists:sort(fun is_before/2, [{Id, Alarm} || #{id := Id} = Alarm <- Alarms]),
    lists:foldl(fun({_Id, Alarm}, Acc) -> taken(Alarm, NowMs, Acc) end, State, Worst).

taken(#{id := Id, acknowledged := Said, severity := Severity} = Alarm, NowMs,
      #state{watched = Watched} = State) ->
    case Watched of
        #{Id := #watched{alarm = #{acknowledged := no} = Own} = One} ->
            kept(Id, One#watched{alarm = Own#{acknowledged := Said}}, State);
        #{Id := #watched{alarm = #{}}} ->
            State;
        #{Id := #watched{} = One} ->
            kept(Id, One#watched{alarm = Alarm}, State);
        #{} ->
            case has_room(Severity, State) of
                true ->
                    kept(Id, #watched{since_ms = NowMs, held_ms = NowMs, alarm = Alarm}, State);
                false ->
                    State#state{left_out = State#state.left_out + 1}
            end
    end.

%% @doc The alarms that are raised now, the oldest first.
-spec list(state()) -> [alarm()].
list(#state{watched = Watched}) ->
    lists:sort(fun(#{raised_ms := A, id := IdA}, #{raised_ms := B, id := IdB}) ->
                       {A, IdA} =< {B, IdB}
               end, [Alarm || #watched{alarm = #{} = Alarm} <- maps:values(Watched)]).

%% @doc How many conditions were left out so far because there were too many.
-spec left_out(state()) -> non_neg_integer().
left_out(#state{left_out = LeftOut}) -> LeftOut.

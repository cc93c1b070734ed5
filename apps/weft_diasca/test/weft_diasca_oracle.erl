%% SPDX-License-Identifier: Apache-2.0
%% @doc What a simulation is, as simple as it can be: one loop over sorted lists, without nodes,
%% managers or acknowledgements. The engine has to come to the same.
-module(weft_diasca_oracle).

-export([run/2]).

-record(all, {time = {0, 0}, actors = #{}, new = [], inbox = [], values = [], sent = 0,
              dropped = 0, last = 0, seed, creates = [], gone = []}).

%% @doc The values of all probes in order, messages sent and dropped, and actors left.
run(Specs, #{seed := Seed, ticks := Ticks}) ->
    All = born([{none, Spec} || Spec <- Specs], #all{seed = Seed}),
    #all{values = Values, sent = Sent, dropped = Dropped, actors = Actors} = ticks(All, Ticks),
    #{values => lists:reverse(Values), messages => Sent, dropped => Dropped,
      actors => map_size(Actors)}.

born(Specs, All) ->
    lists:foldl(fun({Parent, {Module, Arguments, _}}, #all{last = Last, inbox = Inbox} = A) ->
                        Id = Last + 1,
                        Mail = case Parent of
                                   none -> [];
                                   {Creator, Tag} -> [{Creator, {created, Tag, Id}, 0, Id}]
                               end,
                        A#all{last = Id, new = A#all.new ++ [{Id, Module, Arguments}],
                              inbox = Inbox ++ Mail}
                end, All, Specs).

ticks(All0, Ticks) ->
    #all{time = {T, D}, inbox = Inbox, new = New} = All = diasca(All0),
    Next = lists:usort(lists:append([Agenda || {_, _, Agenda} <- maps:values(All#all.actors)])),
    case {Inbox, New, Next} of
        {[], [], [Tick | _]} when Tick =< Ticks -> ticks(All#all{time = {Tick, 0}}, Ticks);
        {[], [], _} -> last_words(All#all{time = {T, D + 1}});
        _ -> ticks(All#all{time = {T, D + 1}}, Ticks)
    end.

diasca(#all{time = {T, D}, inbox = Inbox, new = New, actors = Actors0} = All0) ->
    Actors = maps:merge(Actors0, maps:from_list([{Id, {M, {new, Args}, []}}
                                                 || {Id, M, Args} <- New])),
    Due = [Id || {Id, {_, _, Agenda}} <- maps:to_list(Actors), D =:= 0, lists:member(T, Agenda)],
    Acting = lists:usort([Id || {Id, _, _} <- New] ++ [To || {To, _, _, _} <- Inbox] ++ Due),
    All = lists:foldl(fun(Id, A) -> act(Id, [M || {To, C, F, N} <- Inbox, To =:= Id,
                                                  M <- [{C, F, N}]], A) end,
                      All0#all{inbox = [], new = [], actors = Actors}, Acting),
    born([{{Id, Tag}, Spec} || {Id, _, Tag, Spec} <- lists:sort(All#all.creates)],
         All#all{creates = [], gone = [], actors = maps:without(All#all.gone, All#all.actors)}).

act(Id, Mail, #all{actors = Actors, dropped = Dropped} = All) when not is_map_key(Id, Actors) ->
    All#all{dropped = Dropped + length([From || {_, From, _} <- Mail, From > 0])};
act(Id, Mail, #all{time = {T, D}, seed = Seed, actors = Actors} = All0) ->
    {Module, State, Agenda} = maps:get(Id, Actors),
    Context = #{id => Id, tick => T, diasca => D},
    All1 = case State of
               {new, Args} ->
                   Random = weft_diasca_random:new(Seed, Id),
                   did(Id, Module:init(Args, Context#{random => Random}), All0);
               _ when D =:= 0 ->
                   case lists:member(T, Agenda) of
                       true ->
                           did(Id, Module:on_tick(State, Context),
                               All0#all{actors = Actors#{Id := {Module, State, Agenda -- [T]}}});
                       false -> All0
                   end;
               _ -> All0
           end,
    lists:foldl(fun({Content, From, _}, #all{gone = Gone, dropped = Dropped} = A) ->
                        case lists:member(Id, Gone) of
                            true when From > 0 -> A#all{dropped = Dropped + 1};
                            true -> A;
                            false ->
                                {_, S, _} = maps:get(Id, A#all.actors),
                                did(Id, Module:on_message(From, Content, S, Context), A)
                        end
                end, All1, lists:sort(Mail)).

did(Id, {State, Effects}, #all{actors = Actors} = All) ->
    {Module, _, Agenda} = maps:get(Id, Actors),
    lists:foldl(fun(Effect, A) -> effect(Effect, Id, A) end,
                All#all{actors = Actors#{Id := {Module, State, Agenda}}}, Effects).

effect({send, To, Content}, Id, #all{actors = Actors, inbox = Inbox, sent = Sent} = All) ->
    case is_map_key(To, Actors) of
        true -> All#all{inbox = Inbox ++ [{To, Content, Id, Sent}], sent = Sent + 1};
        false -> All#all{dropped = All#all.dropped + 1}
    end;
effect({schedule, Tick}, Id, All) -> agenda(fun(Agenda) -> [Tick | Agenda -- [Tick]] end, Id, All);
effect({withdraw, Tick}, Id, All) -> agenda(fun(Agenda) -> Agenda -- [Tick] end, Id, All);
effect({probe, Name, Value}, Id, #all{time = Time, values = Values} = All) ->
    All#all{values = [{Time, Id, Name, Value} | Values]};
effect({create, Tag, Module, Args, Options}, Id, #all{creates = Creates} = All) ->
    All#all{creates = [{Id, length(Creates), Tag, {Module, Args, Options}} | Creates]};
effect(terminate, Id, #all{gone = Gone} = All) ->
    case lists:member(Id, Gone) of true -> All; false -> ended(Id, All) end.

ended(Id, All) ->
    #all{gone = Gone} = Last = agenda(fun(_) -> [] end, Id, words(Id, All)),
    Last#all{gone = [Id | Gone]}.

agenda(Change, Id, #all{actors = Actors} = All) ->
    {Module, State, Agenda} = maps:get(Id, Actors),
    All#all{actors = Actors#{Id := {Module, State, Change(Agenda)}}}.

last_words(#all{actors = Actors} = All) ->
    lists:foldl(fun words/2, All, lists:sort(maps:keys(Actors))).

words(Id, #all{actors = Actors, time = {T, D}} = All) ->
    {Module, State, _} = maps:get(Id, Actors),
    case lists:member({terminate, 2}, Module:module_info(exports)) of
        true ->
            lists:foldl(fun(Probe, A) -> effect(Probe, Id, A) end, All,
                        Module:terminate(State, #{id => Id, tick => T, diasca => D}));
        false -> All
    end.

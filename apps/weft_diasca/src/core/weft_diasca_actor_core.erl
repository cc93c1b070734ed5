%% SPDX-License-Identifier: Apache-2.0
%% @doc One actor: its agenda, the messages that have come for it, and when it is done with a
%% diasca. Pure; what an actor does is in its module (`weft_diasca_actor').
%%
%% A message of another actor names the time at which it is read, the diasca after the one in which
%% it was sent. The first one for a time makes the actor tell its manager that it wants to be
%% triggered then. Messages are acknowledged when the manager has confirmed that, so an
%% acknowledged message can not be forgotten by the manager. An actor is done when it has acted and
%% all that it sent is acknowledged: when all actors are done, all is delivered.
%%
%% Another actor may already be in the next diasca while this one waits to be triggered, so messages
%% for two times may be here at once, and not more.
%%
%% Events: `{message, Time, From, Number, Content, Sender}' (of the sender's messages in its diasca
%% the how manieth), `ack', and of the manager `{noted, Time}', `{trigger, Time, Letters}' (Letters:
%% what actor 0 has to say), `{finish, Time}', `save'.
%% Effects: `{post, Address, Event}' (the event `message', to which the sender's address is added)
%% and `{send, Address, ack}' to an actor, `{manager, Message}' with the messages `{wanted, Time,
%% Id}', `{done, Time, Id, Report}', `{failed, Time, Id, Why}', `{saved, Id, Saved}'.
%% `Lookup' says where an actor is; `gone' if it was removed.
-module(weft_diasca_actor_core).

-export([new/2, handle/3]).
-export_type([actor/0, lookup/0, report/0, address/0]).

-type address() :: term().
-type lookup() :: fun((weft_diasca_actor:id()) -> {ok, address(), here | away} | gone | unknown).
-type report() :: #{next := weft_diasca_actor:tick() | none, sent := non_neg_integer(),
                    away := non_neg_integer(), dropped := non_neg_integer(),
                    probes := [weft_diasca_results:value()],
                    creates := [{pos_integer(), Tag :: term(), tuple()}], ends := boolean()}.

-record(actor, {
    id :: weft_diasca_actor:id(),
    module :: module(),
    %% Its arguments, until it is initialized.
    state :: {arguments, term(), weft_diasca_random:random()} | {state, term()},
    place :: term(),
    order :: sorted | {shuffled, weft_diasca_random:random()},
    agenda = [] :: ordsets:ordset(weft_diasca_actor:tick()),
    inbox = #{} :: #{weft_diasca_actor:time() => [{term(), weft_diasca_actor:id(), integer()}]},
    %% Senders whose messages are not acknowledged yet, until the manager has confirmed.
    held = #{} :: #{weft_diasca_actor:time() => [address()] | noted},
    unacked = 0 :: non_neg_integer(),
    ends = false :: boolean(),
    %% What the manager will be told when all is acknowledged.
    report = none :: none | {weft_diasca_actor:time(), report()}}).
%% What one diasca has made of the actor so far.
-record(acts, {actor, time, lookup, effects = [], sent = 0, away = 0, dropped = 0, probes = [],
               probed = 0, creates = [], created = 0, number = 0}).

-opaque actor() :: #actor{}.

%% @doc An actor that is to be initialized at its first trigger, or one that was saved.
-spec new(weft_diasca_actor:id(), {new, map()} | {saved, map()}) -> actor().
new(Id, {new, #{module := Module, arguments := Arguments, random := Random, place := Place,
                order := Order}}) ->
    {Of, Own} = case Order of
                    sorted -> {sorted, Random};
                    shuffled -> {{shuffled, rand:mwc59(Random)},
                                 weft_diasca_random:new(Random, Id)}
                end,
    #actor{id = Id, module = Module, state = {arguments, Arguments, Own}, place = Place,
           order = Of};
new(Id, {saved, #{module := Module, state := State, place := Place, order := Order,
                  agenda := Agenda}}) ->
    #actor{id = Id, module = Module, state = {state, State}, place = Place, order = Order,
           agenda = Agenda}.

-spec handle(tuple() | atom(), lookup(), actor()) -> {[tuple()], actor()}.
handle({message, Time, From, Number, Content, Sender}, _Lookup, Actor) ->
    received(Time, {Content, From, Number}, Sender, Actor);
handle({noted, Time}, _Lookup, #actor{held = Held} = Actor) ->
    {[{send, Sender, ack} || Sender <- lists:reverse(maps:get(Time, Held))],
     Actor#actor{held = Held#{Time := noted}}};
handle(ack, _Lookup, #actor{unacked = Unacked} = Actor) ->
    told(Actor#actor{unacked = Unacked - 1});
handle({trigger, Time, Letters}, Lookup, Actor) ->
    acted(Time, Lookup, Actor, fun(Acts) -> steps(Letters, Acts) end);
handle({finish, Time}, Lookup, Actor) ->
    acted(Time, Lookup, Actor, fun last_words/1);
handle(save, _Lookup, #actor{id = Id} = Actor) ->
    {[{manager, {saved, Id, saved(Actor)}}], Actor}.

saved(#actor{id = Id, module = Module, state = {state, State}, place = Place, order = Order,
             agenda = Agenda}) ->
    #{id => Id, module => Module, state => State, place => Place, order => Order,
      agenda => Agenda}.

received(Time, Message, Sender, #actor{id = Id, inbox = Inbox, held = Held} = Actor) ->
    Next = Actor#actor{inbox = Inbox#{Time => [Message | maps:get(Time, Inbox, [])]}},
    case Held of
        #{Time := noted} -> {[{send, Sender, ack}], Next};
        #{Time := Senders} -> {[], Next#actor{held = Held#{Time := [Sender | Senders]}}};
        #{} -> {[{manager, {wanted, Time, Id}}], Next#actor{held = Held#{Time => [Sender]}}}
    end.

%% --- acting -----------------------------------------------------------------------------------

acted(Time, Lookup, #actor{id = Id} = Actor, Act) ->
    try Act(#acts{actor = Actor, time = Time, lookup = Lookup}) of
        Acts -> reported(Acts)
    catch
        Class:Why:Stack ->
            {[{manager, {failed, Time, Id, {Actor#actor.module, Class, Why, Stack}}}], Actor}
    end.

reported(#acts{actor = Actor, time = Time, effects = Effects} = Acts) ->
    #actor{agenda = Agenda, ends = Ends, held = Held} = Actor,
    Report = #{next => case Agenda of [Tick | _] when not Ends -> Tick; _ -> none end,
               sent => Acts#acts.sent, away => Acts#acts.away, dropped => Acts#acts.dropped,
               probes => Acts#acts.probes, creates => Acts#acts.creates, ends => Ends},
    {Told, Next} = told(Actor#actor{unacked = Acts#acts.sent, report = {Time, Report},
                                    held = maps:remove(Time, Held)}),
    {lists:reverse(Effects) ++ Told, Next}.

told(#actor{unacked = 0, report = {Time, Report}, id = Id} = Actor) ->
    {[{manager, {done, Time, Id, Report}}], Actor#actor{report = none}};
told(Actor) ->
    {[], Actor}.

%% An actor that has ended is triggered once more if it was sent something in its last diasca.
steps(Letters, #acts{actor = Actor, time = Time} = Acts) ->
    #actor{inbox = Inbox, id = Id} = Actor,
    {Ordered, Order} = ordered(maps:get(Time, Inbox, []) ++ letters(Letters), Actor#actor.order),
    Ready = Acts#acts{actor = Actor#actor{inbox = maps:remove(Time, Inbox), order = Order}},
    Context = context(Id, Time),
    lists:foldl(fun(Message, A) -> read(Message, Context, A) end,
                ticked(Context, initialized(Context, Ready)), Ordered).

letters(Letters) ->
    Numbers = lists:seq(1, length(Letters)),
    [{Content, 0, Number} || {Number, Content} <- lists:zip(Numbers, Letters)].

%% The number decides between contents that are equal but not the same, as 1 and 1.0.
ordered(Messages, sorted) -> {lists:sort(Messages), sorted};
ordered(Messages, {shuffled, Random0}) ->
    {Shuffled, Random} = weft_diasca_random:shuffle(lists:sort(Messages), Random0),
    {Shuffled, {shuffled, Random}}.

context(Id, {Tick, Diasca}) ->
    #{id => Id, tick => Tick, diasca => Diasca}.

initialized(Context, #acts{actor = #actor{state = {arguments, Arguments, Random},
                                          module = Module}} = Acts) ->
    answered(Module:init(Arguments, Context#{random => Random}), Acts);
initialized(_Context, Acts) ->
    Acts.

ticked(Context, #acts{time = {Tick, 0},
                      actor = #actor{agenda = [Tick | Agenda], module = Module, ends = false,
                                     state = {state, State}} = Actor} = Acts) ->
    answered(Module:on_tick(State, Context), Acts#acts{actor = Actor#actor{agenda = Agenda}});
ticked(_Context, Acts) ->
    Acts.

read({_, From, _}, _Context, #acts{actor = #actor{ends = true}, dropped = Dropped} = Acts) ->
    Acts#acts{dropped = Dropped + min(From, 1)};
read({Content, From, _}, Context, #acts{actor = #actor{module = Module,
                                                       state = {state, State}}} = Acts) ->
    answered(Module:on_message(From, Content, State, Context), Acts).

answered({State, Effects}, #acts{actor = Actor} = Acts) when is_list(Effects) ->
    lists:foldl(fun effect/2, Acts#acts{actor = Actor#actor{state = {state, State}}}, Effects);
answered(Other, _Acts) ->
    erlang:error({not_state_and_effects, Other}).

%% --- effects ----------------------------------------------------------------------------------

effect({send, To, Content}, #acts{lookup = Lookup, number = Number, sent = Sent} = Acts)
  when is_integer(To), To > 0 ->
    case Lookup(To) of
        {ok, Address, Where} ->
            #acts{time = {Tick, Diasca}, actor = #actor{id = Id}, effects = Effects,
                  away = Away} = Acts,
            Message = {message, {Tick, Diasca + 1}, Id, Number + 1, Content},
            Acts#acts{number = Number + 1, sent = Sent + 1,
                      away = case Where of away -> Away + 1; here -> Away end,
                      effects = [{post, Address, Message} | Effects]};
        gone -> Acts#acts{dropped = Acts#acts.dropped + 1};
        unknown -> erlang:error({no_such_actor, To})
    end;
effect({schedule, When}, #acts{time = {Tick, _}, actor = #actor{agenda = Agenda} = Actor} = Acts)
  when is_integer(When), When > Tick ->
    Acts#acts{actor = Actor#actor{agenda = ordsets:add_element(When, Agenda)}};
effect({withdraw, When}, #acts{actor = #actor{agenda = Agenda} = Actor} = Acts) ->
    Acts#acts{actor = Actor#actor{agenda = ordsets:del_element(When, Agenda)}};
effect({probe, Name, Value}, Acts) ->
    probe(Name, Value, Acts);
effect({create, Tag, Module, Arguments, Options} = Effect, #acts{time = Time} = Acts) ->
    Spec = {Module, Arguments, Options},
    case weft_diasca_balancer:is_actor(Spec) of
        true ->
            #acts{creates = Creates, created = Created} = Acts,
            Acts#acts{creates = [{Created + 1, Tag, Spec} | Creates], created = Created + 1};
        false ->
            erlang:error({no_effect, Effect, at, Time})
    end;
effect(terminate, Acts) ->
    #acts{actor = Actor} = Last = last_words(Acts),
    Last#acts{actor = Actor#actor{ends = true}};
effect(Other, #acts{time = Time}) ->
    erlang:error({no_effect, Other, at, Time}).

probe(Name, Value, #acts{probes = Probes, probed = Probed, actor = #actor{id = Id}} = Acts) ->
    _ = weft_diasca_bytes:encode({Name, Value}),
    Acts#acts{probes = [{Id, Probed + 1, Name, Value} | Probes], probed = Probed + 1}.

last_words(#acts{actor = #actor{ends = true}} = Acts) ->
    Acts;
last_words(#acts{time = Time, actor = #actor{id = Id, module = Module,
                                             state = {state, State}}} = Acts) ->
    case erlang:function_exported(Module, terminate, 2) of
        true ->
            lists:foldl(fun({probe, Name, Value}, A) -> probe(Name, Value, A) end, Acts,
                        Module:terminate(State, context(Id, Time)));
        false ->
            Acts
    end.

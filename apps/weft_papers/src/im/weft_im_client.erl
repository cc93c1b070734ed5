%% SPDX-License-Identifier: Apache-2.0
%% @doc A client of the Instant Messenger, on the node of whoever talks: logs in, begins
%% conversations, and sees to it that what is said is heard once (`weft_im_conversation'), whatever
%% is lost on the way: it asks again, logs in again, and has another session opened for a
%% conversation if there is no answer.
%%
%% Its owner, to which it is linked, gets `{im, Client, Event}', see event/0. After `logged_out' the
%% client ends.
-module(weft_im_client).

-export([start_link/2, say/3, done/2, leave/1, name/1]).
-export([init/3]).
-export_type([event/0]).

-type event() :: logged_in
               | {logged_out, client_already_logged_in | {server_lost, pos_integer()} | no_answer}
               | {heard, weft_im_session:conversation(), pos_integer(), Text :: binary()}
               | {delivered, weft_im_session:conversation(), pos_integer(),
                  LatencyUs :: non_neg_integer()}
%% What is not delivered yet is given up, whether it was heard or not.
               | {given_up, weft_im_session:conversation(),
                  {no_client, Name :: binary()} | no_answer | too_much}.

-record(talk, {ending = weft_im_conversation:new() :: weft_im_conversation:ending(),
               session = none :: none | {asked, Us :: integer()} | pid(),
               attempts = 0 :: non_neg_integer(), had_session = false :: boolean(),
               %% Has the other one been called unknown?
               is_doubted = false :: boolean()}).

-record(client, {service :: weft_im_plan:service(), name :: binary(), owner :: pid(),
                 monitor = none :: none | pid(), is_in = false :: boolean(),
                 asked_us :: integer(), heard_us :: integer(), is_ticking = false :: boolean(),
                 talks = #{} :: #{weft_im_session:conversation() => #talk{}},
                 done = queue:new() :: queue:queue(weft_im_session:conversation())}).

%% So many conversations that are over are remembered, for what comes late.
-define(DONE_MAX, 200).
%% With more of them, those are forgotten in which nothing waits to be heard.
-define(TALKS_MAX, 1000).
%% With the same session, before another one is opened.
-define(TIMES_MAX, 2).

%% @doc Logs in. The name is any binary.
-spec start_link(weft_im_plan:service(), Name :: binary()) -> pid().
start_link(Service, Name) ->
    spawn_link(?MODULE, init, [Service, Name, self()]).

%% @doc Says something. Who says something in a conversation that is new begins it.
-spec say(pid(), weft_im_session:conversation(), Text :: binary()) -> ok.
say(Client, Conversation, Text) ->
    Client ! {say, Conversation, Text},
    ok.

%% @doc The conversation is over.
-spec done(pid(), weft_im_session:conversation()) -> ok.
done(Client, Conversation) ->
    Client ! {done, Conversation},
    ok.

%% @doc Logs out.
-spec leave(pid()) -> ok.
leave(Client) ->
    Client ! leave,
    ok.

%% @doc What may be a name: `{ok, Name}', or what it must be.
-spec name(unicode:chardata()) -> {ok, binary()} | {error, string()}.
name(Text) ->
    case re:run(Text, "^[\\w.-]{1,64}$", [unicode, ucp, dollar_endonly]) of
        {match, _} -> {ok, unicode:characters_to_binary(Text)};
        nomatch -> {error, "a name has 1 to 64 letters, digits, dots, dashes and underscores"}
    end.

%% @private
-spec init(weft_im_plan:service(), binary(), pid()) -> no_return().
init(#{ping_ms := PingMs} = Service, Name, Owner) ->
    NowUs = now_us(),
    erlang:send_after(PingMs, self(), ping),
    loop(tick_later(login(#client{service = Service, name = Name, owner = Owner, asked_us = NowUs,
                                  heard_us = NowUs}))).

loop(Client) ->
    receive
        leave -> leave_now(Client);
        Message -> loop(handle(Message, Client))
    end.

handle({say, Conversation, Text}, Client) ->
    said(Text, Conversation, Client);
handle({done, Conversation}, Client) ->
    done_with(Conversation, Client);
handle({said, Conversation, Said, Session}, Client) ->
    hear(Said, Conversation, Session, Client);
handle({session, Conversation, Session}, #client{talks = Talks} = Client) ->
    case Talks of
        #{Conversation := Talk} -> has_session(Session, Conversation, Talk, Client);
        #{} -> Client
    end;
handle({session_ended, Conversation, Session}, #client{talks = Talks} = Client) ->
    case Talks of
        #{Conversation := #talk{session = Session} = Talk} ->
            reopened(Conversation, Talk#talk{session = none}, Client);
        #{} -> Client
    end;
handle({no_client, Conversation, Name}, #client{talks = Talks} = Client) ->
    case Talks of
        %% Who was there before, or is called nobody for the first time, may be about to be found
        %% again.
        #{Conversation := #talk{had_session = false, is_doubted = true}} ->
            give_up(Conversation, {no_client, Name}, Client);
        #{Conversation := Talk} ->
            keep(Conversation, Talk#talk{is_doubted = true}, Client);
        #{} -> Client
    end;
handle(Message, Client) ->
    presence(Message, Client).

%% ---- logging in, and staying ----

presence({monitor, Monitor}, #client{is_in = IsIn, owner = Owner} = Client) ->
    _ = [Owner ! {im, self(), logged_in} || not IsIn],
    heard_of(Client#client{monitor = Monitor, is_in = true});
presence({login_failed, Why}, Client) ->
    logged_out(Why, Client);
presence({pong, Monitor}, Client) ->
    heard_of(Client#client{monitor = Monitor});
presence(ping, #client{service = #{ping_ms := PingMs} = Service, monitor = Monitor} = Client) ->
    erlang:send_after(PingMs, self(), ping),
    [ok = weft_im_ways:send(Service, Monitor, {ping, self()}) || is_pid(Monitor)],
    with_monitor(Client);
presence(tick, Client) ->
    tick(Client#client{is_ticking = false});
presence(_Late, Client) ->
    Client.

heard_of(Client) -> Client#client{heard_us = now_us()}.

%% Without an answer for long there may be no monitor any more, and the login tells who has it now.
with_monitor(#client{service = #{ping_ms := PingMs}, heard_us = HeardUs} = Client) ->
    case now_us() - HeardUs > 2000 * PingMs of
        true -> tick_later(login(Client#client{monitor = none}));
        false -> Client
    end.

login(#client{service = Service, name = Name} = Client) ->
    ok = weft_im_ways:send(Service, {router, entrance(Name, Service)}, {login, Name, self()}),
    Client#client{asked_us = now_us()}.

%% The own router; where nodes have none, any.
entrance(Name, #{groups := Groups, routers := Routers}) ->
    case Groups of
        #{node() := Router} -> Router;
        #{} -> 1 + erlang:phash2(Name, tuple_size(Routers))
    end.

-spec logged_out(term(), #client{}) -> no_return().
logged_out(Why, #client{owner = Owner}) ->
    Owner ! {im, self(), {logged_out, Why}},
    unlink(Owner),
    exit(normal).

-spec leave_now(#client{}) -> no_return().
leave_now(#client{service = Service, monitor = Monitor, owner = Owner}) ->
    [ok = weft_im_ways:send(Service, Monitor, logout) || is_pid(Monitor)],
    unlink(Owner),
    exit(normal).

%% ---- what is said ----

said(Text, Conversation, #client{talks = Talks} = Client) ->
    #talk{ending = Ending} = Talk = maps:get(Conversation, Talks, #talk{}),
    case weft_im_conversation:is_full(Ending) of
        true ->
            tell({given_up, Conversation, too_much}, Client);
        false ->
            {Out, After} = weft_im_conversation:say(Text, now_us(), Ending),
            tick_later(sent(Out, Conversation, Talk#talk{ending = After}, Client))
    end.

%% What is not sent for want of a session is sent when there is one.
sent(Out, Conversation, #talk{session = Session} = Talk, #client{service = Service} = Client)
  when is_pid(Session) ->
    [ok = weft_im_ways:send(Service, Session, {from, self(), Said}) || Said <- Out],
    keep(Conversation, Talk, Client);
sent([_ | _], Conversation, #talk{session = none} = Talk, Client) ->
    reopened(Conversation, Talk, Client);
sent(_Out, Conversation, Talk, Client) ->
    keep(Conversation, Talk, Client).

keep(Conversation, Talk, #client{talks = Talks} = Client) when map_size(Talks) < ?TALKS_MAX ->
    Client#client{talks = Talks#{Conversation => Talk}};
keep(Conversation, Talk, #client{talks = Talks} = Client) ->
    Busy = maps:filter(fun(_, #talk{ending = Ending}) ->
                           not weft_im_conversation:is_silent(Ending)
                       end, Talks),
    Client#client{talks = Busy#{Conversation => Talk}}.

hear(Said, Conversation, Session, #client{talks = Talks, done = Done} = Client) ->
    case is_map_key(Conversation, Talks) orelse not queue:member(Conversation, Done) of
        true ->
            Talk = maps:get(Conversation, Talks, #talk{}),
            {Events, Out, Ending} = events(Said, Talk#talk.ending),
            lists:foreach(fun(Event) -> tell(of_conversation(Event, Conversation), Client) end,
                          Events),
            tick_later(sent(Out, Conversation, Talk#talk{ending = Ending, session = Session,
                                                         had_session = true}, Client));
        false ->
            over(Said, Session, Client)
    end.

events({message, Number, Heard, Text}, Ending) ->
    weft_im_conversation:hear({Number, Text}, Heard, now_us(), Ending);
events({heard, Number}, Ending) ->
    weft_im_conversation:acknowledged(Number, now_us(), Ending).

of_conversation({heard, Number, Text}, Conversation) -> {heard, Conversation, Number, Text};
of_conversation({delivered, Number, LatencyUs}, Conversation) ->
    {delivered, Conversation, Number, LatencyUs}.

%% Both ends have heard all; the other one does not know it yet.
over({message, Number, _, _}, Session, #client{service = Service} = Client) ->
    ok = weft_im_ways:send(Service, Session, {from, self(), {heard, Number}}),
    Client;
over({heard, _}, _Session, Client) ->
    Client.

tell(Event, #client{owner = Owner} = Client) ->
    Owner ! {im, self(), Event},
    Client.

done_with(Conversation, #client{service = Service, talks = Talks, done = Done} = Client) ->
    case maps:take(Conversation, Talks) of
        {#talk{session = Session}, Rest} ->
            [ok = weft_im_ways:send(Service, Session, close) || is_pid(Session)],
            Client#client{talks = Rest, done = remembered(Conversation, Done)};
        error -> Client
    end.

remembered(Conversation, Done) ->
    case queue:len(Done) < ?DONE_MAX of
        true -> queue:in(Conversation, Done);
        false -> queue:in(Conversation, queue:drop(Done))
    end.

give_up(Conversation, Why, Client) ->
    done_with(Conversation, tell({given_up, Conversation, Why}, Client)).

%% ---- sessions ----

reopened(Conversation, #talk{ending = Ending} = Talk, Client) ->
    case weft_im_conversation:is_silent(Ending) of
        true -> keep(Conversation, Talk, Client);
        false -> tick_later(ask(Conversation, Talk, Client))
    end.

ask(Conversation, #talk{attempts = Attempts} = Talk, Client) ->
    #client{service = Service, monitor = Monitor} = Client,
    [ok = weft_im_ways:send(Service, Monitor, {talk, Conversation, Attempts}) || is_pid(Monitor)],
    keep(Conversation, Talk#talk{session = {asked, now_us()}, attempts = Attempts + 1},
         Client).

has_session(Session, Conversation, #talk{ending = Ending} = Talk, Client) ->
    {Out, After} = weft_im_conversation:again(now_us(), Ending),
    sent(Out, Conversation, Talk#talk{session = Session, ending = After, had_session = true},
         Client).

%% ---- what has to be asked or sent again ----

tick_later(#client{is_ticking = true} = Client) ->
    Client;
tick_later(#client{service = #{resend_ms := ResendMs}} = Client) ->
    erlang:send_after(ResendMs div 2 + 1, self(), tick),
    Client#client{is_ticking = true}.

tick(#client{monitor = none} = Client) ->
    tick_later(login_again(Client));
tick(#client{talks = Talks} = Client) ->
    Waiting = [Conversation || {Conversation, #talk{ending = Ending}} <- maps:to_list(Talks),
                               not weft_im_conversation:is_silent(Ending)],
    After = lists:foldl(fun overdue/2, Client, Waiting),
    case Waiting of
        [] -> After;
        _ -> tick_later(After)
    end.

login_again(#client{service = #{resend_ms := ResendMs, give_up_ms := GiveUpMs}} = Client) ->
    #client{asked_us = AskedUs, heard_us = HeardUs} = Client,
    case now_us() of
        NowUs when NowUs - HeardUs > 1000 * GiveUpMs -> logged_out(no_answer, Client);
        NowUs when NowUs - AskedUs > 1000 * ResendMs -> login(Client);
        _ -> Client
    end.

overdue(Conversation, #client{service = #{give_up_ms := GiveUpMs}, talks = Talks} = Client) ->
    #{Conversation := #talk{ending = Ending} = Talk} = Talks,
    NowUs = now_us(),
    case weft_im_conversation:waiting_us(NowUs, Ending) > 1000 * GiveUpMs of
        true -> give_up(Conversation, no_answer, Client);
        false -> insist(NowUs, Conversation, Talk, Client)
    end.

insist(NowUs, Conversation, #talk{ending = Ending, session = Session} = Talk, Client) ->
    #client{service = #{resend_ms := ResendMs}} = Client,
    case {Session, weft_im_conversation:due(1000 * ResendMs, NowUs, Ending)} of
        {none, _} ->
            ask(Conversation, Talk, Client);
        {{asked, AskedUs}, _} when NowUs - AskedUs > 2000 * ResendMs ->
            ask(Conversation, Talk, Client);
        {_, {yes, Times}} when is_pid(Session), Times > ?TIMES_MAX ->
            ask(Conversation, Talk, Client);
        {_, {yes, _}} when is_pid(Session) ->
            {Out, After} = weft_im_conversation:again(NowUs, Ending),
            sent(Out, Conversation, Talk#talk{ending = After}, Client);
        _ ->
            Client
    end.

now_us() -> erlang:monotonic_time(microsecond).

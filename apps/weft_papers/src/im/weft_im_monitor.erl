%% SPDX-License-Identifier: Apache-2.0
%% @doc What the Instant Messenger has of a client that is logged in: keeps its row in the database
%% of its server, hears its signs of life, and finds those whom it wants to talk to.
%%
%% A client that gives no sign of life for three times as long as it should is logged out.
-module(weft_im_monitor).

-export([init/5]).

-record(monitor, {service :: weft_im_plan:service(), server :: pos_integer(), name :: binary(),
                  client :: pid()}).

%% @private
-spec init(weft_im_plan:service(), fresh | again, Server :: pos_integer(), Name :: binary(),
           Client :: pid()) -> no_return().
init(Service, _How, Server, Name, Client) ->
    put(weft_im, client_monitor),
    ok = weft_im_database:put(Service, client_db, Server, {Name, Client, self()}),
    ok = weft_im_ways:send(Service, Client, {monitor, self()}),
    loop(#monitor{service = Service, server = Server, name = Name, client = Client}).

loop(#monitor{service = #{ping_ms := PingMs}, client = Client} = Monitor) ->
    receive
        {ping, Client} -> ping(Monitor), loop(Monitor);
        {talk, Conversation, Attempt} -> talk(Conversation, Attempt, Monitor), loop(Monitor);
        logout -> logout(Monitor);
        _Late -> loop(Monitor)
    after 3 * PingMs ->
        logout(Monitor)
    end.

%% The row is there; but for when two databases were lost at once.
ping(#monitor{service = Service, server = Server, name = Name, client = Client}) ->
    ok = weft_im_database:refresh(Service, {client_db, Server}, {Name, Client, self()}),
    ok = weft_im_ways:send(Service, {server, Server}, {alive, Name, self(), Client}),
    ok = weft_im_ways:send(Service, Client, {pong, self()}).

-spec logout(#monitor{}) -> no_return().
logout(#monitor{service = Service, server = Server, name = Name}) ->
    weft_im_database:delete(Service, client_db, Server, Name),
    exit(normal).

%% If there is no answer the client asks again.
talk({A, B, _} = Conversation, Attempt, #monitor{service = Service, name = Name} = Monitor) ->
    Other = case Name of A -> B; B -> A end,
    case find(Other, Service) of
        {ok, {Other, Pid, _}} -> open(Conversation, Attempt, Pid, Monitor);
        none ->
            weft_im_ways:send(Service, Monitor#monitor.client, {no_client, Conversation, Other});
        no_answer -> ok
    end.

find(Name, Service) ->
    Server = weft_im_plan:server_of(Name, Service),
    weft_im_database:find(Service, {client_db, Server}, Name,
                          lists:nth(rand:uniform(2), [main, replica])).

open({A, _, _} = Conversation, Attempt, Pid, Monitor) ->
    #monitor{service = Service, server = Server, name = Name, client = Client} = Monitor,
    Clients = case Name of A -> {Client, Pid}; _ -> {Pid, Client} end,
    weft_im_ways:send(Service, {server, weft_im_plan:session_server(Conversation, Attempt, Server,
                                                                    Service)},
                      {open, Conversation, Clients}).

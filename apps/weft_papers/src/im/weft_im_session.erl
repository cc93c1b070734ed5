%% SPDX-License-Identifier: Apache-2.0
%% @doc A conversation of two clients on a server of the Instant Messenger: passes messages and
%% acknowledgements from one to the other. It knows nothing of what has been said, so that another
%% session can go on with the conversation.
%%
%% A conversation is {A, B, Number}, where A has begun it. A session in which nothing is said for
%% some minutes ends.
-module(weft_im_session).

-export([init/5]).
-export_type([conversation/0]).

-type conversation() :: {A :: binary(), B :: binary(), Number :: integer()}.

%% @private
-spec init(weft_im_plan:service(), fresh | again, Server :: pos_integer(), conversation(),
           {A :: pid(), B :: pid()}) -> no_return().
init(Service, _How, Server, Conversation, Clients) ->
    put(weft_im, chat_session),
    ok = known(Clients, Conversation, Server, Service),
    loop(Clients, Conversation, Server, Service).

known({A, B} = Clients, Conversation, Server, Service) ->
    ok = weft_im_database:put(Service, chat_db, Server, {Conversation, self(), A, B}),
    lists:foreach(fun(Client) ->
                      ok = weft_im_ways:send(Service, Client, {session, Conversation, self()})
                  end, tuple_to_list(Clients)).

loop({A, B} = Clients, Conversation, Server, #{idle_ms := IdleMs} = Service) ->
    receive
        {from, A, Said} ->
            ok = weft_im_ways:send(Service, B, {said, Conversation, Said, self()}),
            loop(Clients, Conversation, Server, Service);
        {from, B, Said} ->
            ok = weft_im_ways:send(Service, A, {said, Conversation, Said, self()}),
            loop(Clients, Conversation, Server, Service);
        {clients, Now} ->
            ok = known(Now, Conversation, Server, Service),
            loop(Now, Conversation, Server, Service);
        close -> close(Conversation, Server, Service);
        _Late -> loop(Clients, Conversation, Server, Service)
    after IdleMs ->
        close(Conversation, Server, Service)
    end.

-spec close(tuple(), Server :: term(), Service :: term()) -> no_return().
close(Conversation, Server, Service) ->
    weft_im_database:delete(Service, chat_db, Server, Conversation),
    exit(normal).

%% SPDX-License-Identifier: Apache-2.0
%% @doc The supervisor of a server of the Instant Messenger: starts and watches its databases, the
%% copies of those of the next server, the notes, a monitor for each client that is logged in here,
%% and a session for each conversation. Whatever of that dies is started anew; but a session just
%% ends, and its clients are told, who open another one.
%%
%% Its own router watches it. A new supervisor takes over all that the notes of the one before it
%% say.
-module(weft_im_server).

-export([init/3]).

-record(server, {service :: weft_im_plan:service(), number :: pos_integer(),
                 children = weft_im_children:new() :: weft_im_children:children()}).

-define(STOP_MS, 5000).

%% @private
-spec init(weft_im_plan:service(), fresh | again, Number :: pos_integer()) -> no_return().
init(Service, How, Number) ->
    put(weft_im, server),
    case weft_im_names:claim(Service, {server, Number}) of
        ok -> loop(static(How, taken_over(How, #server{service = Service, number = Number})));
        {taken, Pid} -> exit({taken, Pid})
    end.

taken_over(fresh, Server) ->
    Server;
taken_over(again, #server{service = Service, number = Number, children = None} = Server) ->
    Noted = weft_im_notes:read(Service, Number),
    Server#server{children = maps:fold(fun(Key, {Pid, Start}, Children) ->
                                           weft_im_children:adopt(Key, Pid, Start, Children)
                                       end, None, Noted)}.

%% What each server has. What is there already makes itself known when another one is started.
static(How, #server{service = Service, number = Number} = Server) ->
    Next = weft_im_plan:next(Number, Service),
    Databases = [{{Kind, Of, Copy}, {node(), weft_im_database, [Kind, Of, Copy]}}
                 || {Of, Copy} <- [{Number, main}, {Next, replica}], Kind <- [client_db, chat_db]],
    Notes = {{notes, Number}, {node(), weft_im_notes, [Number, #{}]}},
    lists:foldl(fun({Key, Start}, #server{children = Children} = Acc) ->
                    case weft_im_children:find(Key, Children) of
                        none -> start(Key, Start, How, Acc);
                        _ -> Acc
                    end
                end, Server, [Notes | Databases]).

start(Key, Start, How, #server{service = Service, children = Before} = Server) ->
    noted(Key, Server#server{children = weft_im_children:start(Key, Start, How, Service, Before)}).

noted(Key, #server{number = Number, children = Children} = Server) ->
    {Notes, _} = weft_im_children:find({notes, Number}, Children),
    ok = weft_im_notes:note(Notes, Key, weft_im_children:find(Key, Children)),
    Server.

loop(Server) ->
    receive
        {stop, From} -> stop(From, Server);
        Message -> loop(handle(Message, Server))
    end.

handle({login, Name, Client}, Server) ->
    login(Name, Client, Server);
handle({open, Conversation, Clients}, Server) ->
    open(Conversation, Clients, Server);
handle({alive, Name, Monitor, Client}, #server{children = Children} = Server) ->
    case weft_im_children:find({client, Name}, Children) of
        none -> adopt({client, Name}, Monitor, monitor_of(Name, Client, Server), Server);
        _ -> Server
    end;
handle(Message, #server{children = Before} = Server) ->
    case weft_im_children:down(Message, Before) of
        {lost, Key, Pid, Start, Why, Children} ->
            lost(Key, Pid, Start, Why, Server#server{children = Children});
        {taken, Key, _Pid, Children} ->
            noted(Key, Server#server{children = Children});
        other -> Server
    end.

monitor_of(Name, Client, #server{number = Number}) ->
    {node(), weft_im_monitor, [Number, Name, Client]}.

adopt(Key, Pid, Start, #server{children = Children} = Server) ->
    noted(Key, Server#server{children = weft_im_children:adopt(Key, Pid, Start, Children)}).

%% The same client again has not heard the answer.
login(Name, Client, #server{service = Service, children = Children} = Server) ->
    case weft_im_children:find({client, Name}, Children) of
        none ->
            start({client, Name}, monitor_of(Name, Client, Server), fresh, Server);
        {Monitor, {_, _, [_, _, Client]}} ->
            ok = weft_im_ways:send(Service, Client, {monitor, Monitor}),
            Server;
        _ ->
            ok = weft_im_ways:send(Service, Client, {login_failed, client_already_logged_in}),
            Server
    end.

%% Whoever asks again may have missed the answer, or have another process now.
open(Conversation, Clients, #server{number = Number, children = Children} = Server) ->
    Key = {session, Conversation},
    case weft_im_children:find(Key, Children) of
        none ->
            start(Key, {node(), weft_im_session, [Number, Conversation, Clients]}, fresh, Server);
        {Session, _} ->
            Session ! {clients, Clients},
            Server
    end.

lost({client, _} = Key, _Pid, _Start, ended, Server) ->
    forget(Key, Server);
lost({session, _} = Key, _Pid, _Start, ended, Server) ->
    forget(Key, Server);
lost({session, Conversation} = Key, Pid, {_, _, [_, _, Clients]}, _Died, Server) ->
    #server{service = Service, number = Number} = Server,
    [ok = weft_im_ways:send(Service, Client, {session_ended, Conversation, Pid})
     || Client <- tuple_to_list(Clients)],
    %% The table may be about to be filled, and has more to do than to wait for it.
    _ = spawn(weft_im_database, delete, [Service, chat_db, Number, Conversation]),
    forget(Key, Server);
%% New notes begin with all that there is.
lost({notes, Number} = Key, _Pid, {Node, Module, _}, _Why, #server{children = Children} = Server) ->
    start(Key, {Node, Module, [Number, weft_im_children:pids(Children)]}, again, Server);
lost(Key, _Pid, Start, _Why, Server) ->
    start(Key, Start, again, Server).

forget(Key, #server{number = Number, children = Children} = Server) ->
    {Notes, _} = weft_im_children:find({notes, Number}, Children),
    ok = weft_im_notes:forget(Notes, Key),
    Server.

%% All below ends with it.
-spec stop(pid(), #server{}) -> no_return().
stop(_From, #server{children = Children}) ->
    Monitors = [begin
                    exit(Pid, kill),
                    monitor(process, Pid)
                end || {Pid, _} <- maps:values(weft_im_children:pids(Children))],
    [receive {'DOWN', Monitor, process, _, _} -> ok after ?STOP_MS -> ok end
     || Monitor <- Monitors],
    exit(normal).

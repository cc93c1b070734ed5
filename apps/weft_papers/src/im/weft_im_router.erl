%% SPDX-License-Identifier: Apache-2.0
%% @doc A router of the Instant Messenger: brings logins to the servers of clients, messages from
%% its group to others and back, and watches the supervisors of its servers. A server whose node is
%% gone is given up; its clients are told when they log in again.
%%
%% The router is watched by its supervisor (`weft_im_router_supervisor'), which is watched by it.
-module(weft_im_router).

-export([init/3]).

-record(router, {service :: weft_im_plan:service(), number :: pos_integer(),
                 children = weft_im_children:new() :: weft_im_children:children(),
                 lost = [] :: [Server :: pos_integer()]}).

-define(STOP_MS, 10000).

%% @private
-spec init(weft_im_plan:service(), fresh | again, Number :: pos_integer()) -> no_return().
init(Service, How, Number) ->
    put(weft_im, router),
    case weft_im_names:claim(Service, {router, Number}) of
        ok -> loop(children(How, #router{service = Service, number = Number}));
        {taken, Pid} -> exit({taken, Pid})
    end.

children(How, #router{service = Service, number = Number} = Router) ->
    Servers = [{{server, Server}, {element(Server, map_get(servers, Service)), weft_im_server,
                                   [Server]}}
               || Server <- weft_im_plan:servers(Number, Service)],
    Supervisor = {{router_supervisor, Number}, {node(), weft_im_router_supervisor, [Number]}},
    lists:foldl(fun({Name, Start}, Acc) -> found(Name, Start, How, Acc) end, Router,
                [Supervisor | Servers]).

%% Those that the router before this one has started.
found(Name, Start, How, #router{service = Service, children = Children} = Router) ->
    Known = case How of
                fresh when element(1, Name) =:= server -> undefined;
                _ -> weft_im_names:whereis(Service, Name)
            end,
    Router#router{children = case Known of
                                 undefined ->
                                     weft_im_children:start(Name, Start, How, Service, Children);
                                 Pid -> weft_im_children:adopt(Name, Pid, Start, Children)
                             end}.

loop(Router) ->
    receive
        {stop, _From} -> stop(Router);
        Message -> loop(handle(Message, Router))
    end.

handle({login, Name, Client} = Login, #router{service = Service, number = Number} = Router) ->
    Server = weft_im_plan:server_of(Name, Service),
    case {weft_im_plan:router_of(Server, Service), lists:member(Server, Router#router.lost)} of
        {Number, true} ->
            ok = weft_im_ways:send(Service, Client, {login_failed, {server_lost, Server}});
        {Number, false} ->
            ok = weft_im_ways:send(Service, {server, Server}, Login);
        {Other, _} ->
            ok = weft_im_ways:send(Service, {router, Other}, Login)
    end,
    Router;
handle({lost, From, Ref}, #router{service = Service, lost = Lost} = Router) ->
    ok = weft_im_ways:send(Service, From, {Ref, Lost}),
    Router;
handle({relay, To, Message}, #router{service = Service} = Router) ->
    ok = weft_im_ways:send(Service, To, Message),
    Router;
handle(Message, #router{children = Before} = Router) ->
    case weft_im_children:down(Message, Before) of
        {lost, Name, _Pid, Start, Why, Children} ->
            lost(Name, Start, Why, Router#router{children = Children});
        {taken, _Name, _Pid, Children} -> Router#router{children = Children};
        other -> Router
    end.

lost({server, Server}, _Start, node, #router{lost = Lost} = Router) ->
    Router#router{lost = [Server | Lost]};
lost(_Name, _Start, ended, Router) ->
    Router;
lost(Name, Start, _Why, #router{service = Service, children = Children} = Router) ->
    Router#router{children = weft_im_children:start(Name, Start, again, Service, Children)}.

%% The servers end before it.
-spec stop(#router{}) -> no_return().
stop(#router{children = Children}) ->
    Monitors = [begin
                    Pid ! {stop, self()},
                    monitor(process, Pid)
                end || {{server, _}, {Pid, _}} <- maps:to_list(weft_im_children:pids(Children))],
    [receive {'DOWN', Monitor, process, _, _} -> ok after ?STOP_MS -> ok end
     || Monitor <- Monitors],
    exit(normal).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Starts a router of the Instant Messenger and watches it; the router watches its supervisor
%% in turn. `{stop, From}' ends both, and all servers below.
-module(weft_im_router_supervisor).

-export([init/3]).

-define(STOP_MS, 20000).

%% @private
-spec init(weft_im_plan:service(), fresh | again, Number :: pos_integer()) -> no_return().
init(Service, How, Number) ->
    put(weft_im, router_supervisor),
    Name = {router, Number},
    case weft_im_names:claim(Service, {router_supervisor, Number}) of
        ok ->
            loop(Service, weft_im_children:start(Name, {node(), weft_im_router, [Number]}, How,
                                                 Service, weft_im_children:new()), Name);
        {taken, Pid} ->
            exit({taken, Pid})
    end.

loop(Service, Children, Name) ->
    receive
        {stop, _From} -> stop(weft_im_children:find(Name, Children));
        Message ->
            case weft_im_children:down(Message, Children) of
                {lost, Name, _Pid, Start, _Why, Rest} ->
                    loop(Service, weft_im_children:start(Name, Start, again, Service, Rest), Name);
                {taken, Name, _Pid, Adopted} -> loop(Service, Adopted, Name);
                other -> loop(Service, Children, Name)
            end
    end.

-spec stop({pid(), weft_im_children:start()}) -> no_return().
stop({Router, _}) ->
    Monitor = monitor(process, Router),
    Router ! {stop, self()},
    receive {'DOWN', Monitor, process, _, _} -> ok after ?STOP_MS -> ok end,
    exit(normal).

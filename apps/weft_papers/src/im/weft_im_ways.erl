%% SPDX-License-Identifier: Apache-2.0
%% @doc How processes of an Instant Messenger send to each other.
%%
%% In the distributed form: directly. In the grouped form only within a group; what is for another
%% one goes to the own router, from there to the router of the other group, and from there to its
%% receiver, so that nodes need no connections but those of their groups. Replies find their way
%% back by the node of the process that asked.
%%
%% Messages may be lost, if a process on the way is; whoever needs an answer asks again.
-module(weft_im_ways).

-export([send/3, call/4]).

%% @doc Sends to a process, or to whoever has a name.
-spec send(weft_im_plan:service(), pid() | weft_im_plan:name(), Message :: term()) -> ok.
send(#{is_grouped := true} = Service, To, Message) when node(To) =/= node(); is_tuple(To) ->
    case next(To, Service) of
        To -> deliver(Service, To, Message);
        Router -> deliver(Service, Router, {relay, To, Message})
    end;
send(Service, To, Message) ->
    deliver(Service, To, Message).

deliver(_Service, Pid, Message) when is_pid(Pid) ->
    Pid ! Message,
    ok;
deliver(Service, Name, Message) ->
    weft_im_names:send(Service, Name, Message).

%% Routers know each other; all others know their group.
next(To, #{routers := Routers} = Service) ->
    Own = weft_im_plan:group_of(node(), Service),
    case weft_im_plan:group_of(To, Service) of
        Own -> To;
        _ when element(Own, Routers) =/= node() -> {router, Own};
        Other ->
            case is_router(To, element(Other, Routers)) of
                true -> To;
                false -> {router, Other}
            end
    end.

is_router({router, _}, _Node) -> true;
is_router(Pid, Node) when is_pid(Pid) -> node(Pid) =:= Node;
is_router(_Name, _Node) -> false.

%% @doc Asks `{Request, From, Ref}', which is answered by `{Ref, Reply}'.
-spec call(weft_im_plan:service(), pid() | weft_im_plan:name(), Request :: term(),
           TimeoutMs :: non_neg_integer()) -> {ok, Reply :: term()} | no_answer.
call(Service, To, Request, TimeoutMs) ->
    Ref = make_ref(),
    ok = send(Service, To, {Request, self(), Ref}),
    receive
        {Ref, Reply} -> {ok, Reply}
    after TimeoutMs -> no_answer
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The names by which the processes of an Instant Messenger find each other, in different
%% registries:
%% ```
%% local              registered on their nodes, which everybody knows from the plan
%% global             the registry of OTP, of all nodes that are connected with each other
%% {weft, cluster}    weft_names, of the whole cluster
%% {weft, groups}     weft_names, of groups; a router is known in its own group and among routers
%% '''
-module(weft_im_names).

-export([claim/2, whereis/2, send/3, at/2]).
-export_type([names/0]).

-type names() :: local | global | {weft, cluster | groups}.

-define(ASK_MS, 5000).

%% @doc The caller takes its name, unless a process of this node has it that is alive.
-spec claim(weft_im_plan:service(), weft_im_plan:name()) -> ok | {taken, pid()}.
claim(Service, Name) ->
    case ?MODULE:whereis(Service, Name) of
        Pid when is_pid(Pid), node(Pid) =:= node() ->
            case is_process_alive(Pid) of
                true -> {taken, Pid};
                false -> take(Service, Name)
            end;
        _ ->
            take(Service, Name)
    end.

take(#{names := local, run := Run}, Name) ->
    try erlang:register(local_name(Run, Name), self()) of
        true -> ok
    catch
        %% Somebody was faster.
        error:badarg -> {taken, erlang:whereis(local_name(Run, Name))}
    end;
take(#{names := global, run := Run}, Name) ->
    yes = global:re_register_name({weft_im, Run, Name}, self()),
    ok;
take(#{names := {weft, _}, run := Run} = Service, Name) ->
    lists:foreach(fun(Scope) ->
                      ok = weft_names:re_register({Scope, {weft_im, Run, Name}}, self())
                  end, scopes(Service, Name)).

%% @doc The process that has the name, as far as this node knows.
-spec whereis(weft_im_plan:service(), weft_im_plan:name()) -> pid() | undefined.
whereis(#{names := local, run := Run} = Service, Name) ->
    case weft_im_plan:node_of(Name, Service) of
        Node when Node =:= node() -> erlang:whereis(local_name(Run, Name));
        Node -> asked(Node, Service, Name)
    end;
whereis(#{names := global, run := Run}, Name) ->
    global:whereis_name({weft_im, Run, Name});
whereis(#{names := {weft, _}, run := Run} = Service, Name) ->
    first([Scope || Scope <- scopes(Service, Name)], {weft_im, Run, Name}).

asked(Node, Service, Name) ->
    try
        erpc:call(Node, ?MODULE, at, [Service, Name], ?ASK_MS)
    catch
        error:{erpc, _} -> undefined
    end.

%% @private
-spec at(weft_im_plan:service(), weft_im_plan:name()) -> pid() | undefined.
at(#{run := Run}, Name) -> erlang:whereis(local_name(Run, Name)).

first([], _Name) -> undefined;
first([Scope | Scopes], Name) ->
    case weft_names:whereis_name({Scope, Name}) of
        undefined -> first(Scopes, Name);
        Pid -> Pid
    end.

%% @doc Sends a message to whoever has the name. If nobody has it, the message is lost: all that
%% matters is sent again until it is answered.
-spec send(weft_im_plan:service(), weft_im_plan:name(), Message :: term()) -> ok.
send(#{names := local, run := Run} = Service, Name, Message) ->
    _ = erlang:send({local_name(Run, Name), weft_im_plan:node_of(Name, Service)}, Message),
    ok;
send(Service, Name, Message) ->
    case ?MODULE:whereis(Service, Name) of
        undefined -> ok;
        Pid -> Pid ! Message, ok
    end.

%% As many as a service has databases and servers, which is not many.
local_name(Run, Name) ->
    list_to_atom(lists:concat(lists:join('_', [weft_im, Run | tuple_to_list(Name)]))).

%% Those that this node is a member of.
scopes(#{names := {weft, cluster}}, _Name) ->
    [cluster];
scopes(Service, Name) ->
    [Scope || Number <- weft_im_plan:scopes(Name, Service),
              {ok, Scope} <- [weft_group:scope(weft_bench_cluster:group(Number))]].

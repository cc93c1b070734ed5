%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a client (`weft_kv_client'): it connects to the nodes of the store, and again
%% to those that were away. Not here: requests.
-module(weft_kv_client_links).
-behaviour(gen_server).

-export([start_link/2, config/1, info/1, count/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(LOOK_MS, 1000).
-define(TRIES_MAX, 10).
-define(DEFAULTS, #{timeout_ms => 5000, tries => 3}).
-define(KEY(Name), {?MODULE, Name}).

-record(links, {name :: atom(),
                nodes :: [node(), ...],
                connecting = #{} :: #{reference() => node()}}).

%% @doc See `weft_kv_client:start_link/2'.
-spec start_link(atom(), map()) -> {ok, pid()} | {error, term()}.
start_link(Name, Options) when is_map(Options) ->
    All = maps:merge(?DEFAULTS, Options),
    case maps:keys(maps:without([nodes | maps:keys(?DEFAULTS)], All)) of
        [Key | _] -> {error, {unknown_option, Key}};
        [] ->
            case [{Key, maps:get(Key, All, missing), range(Key)}
                  || Key <- [nodes, timeout_ms, tries],
                     not is_valid(Key, maps:get(Key, All, missing))] of
                [] -> gen_server:start_link({local, Name}, ?MODULE, {Name, All}, []);
                [Wrong | _] -> {error, {bad_option, Wrong}}
            end
    end.

is_valid(nodes, [_ | _] = Nodes) ->
    is_list(Nodes) andalso lists:all(fun is_atom/1, Nodes)
        andalso length(lists:usort(Nodes)) =:= length(Nodes);
is_valid(nodes, _) -> false;
is_valid(tries, Tries) -> is_integer(Tries) andalso Tries >= 1 andalso Tries =< ?TRIES_MAX;
is_valid(timeout_ms, Ms) -> is_integer(Ms) andalso Ms >= 1.

range(nodes) -> distinct_nodes;
range(tries) -> {from, 1, to, ?TRIES_MAX};
range(timeout_ms) -> {from, 1}.

%% @doc What requests need to know. A client that does not run is a mistake of the program.
-spec config(atom()) -> #{nodes := [node(), ...], timeout_ms | tries := pos_integer(),
                          counts := counters:counters_ref()}.
config(Name) ->
    case persistent_term:get(?KEY(Name), none) of
        none -> error({no_client, Name});
        Config -> Config
    end.

%% @doc See `weft_kv_client:info/1'.
-spec info(atom()) -> map().
info(Name) ->
    #{nodes := Nodes, counts := Counts} = config(Name),
    Connected = [node() | nodes(connected)],
    #{nodes => Nodes, connected => [Node || Node <- Nodes, lists:member(Node, Connected)],
      requests => counters:get(Counts, place(requests)),
      repeated => counters:get(Counts, place(repeated)),
      failed => counters:get(Counts, place(failed))}.

%% @doc One more.
-spec count(requests | repeated | failed, counters:counters_ref()) -> ok.
count(What, Counts) -> counters:add(Counts, place(What), 1).

place(requests) -> 1;
place(repeated) -> 2;
place(failed) -> 3.

%% @private
init({Name, #{nodes := Nodes} = Config}) ->
    process_flag(trap_exit, true),
    ok = persistent_term:put(?KEY(Name), Config#{counts => counters:new(3, [write_concurrency])}),
    self() ! look,
    {ok, #links{name = Name, nodes = Nodes}}.

%% @private
handle_call(Request, _From, Links) -> {reply, weft_stray:call(Request), Links}.

%% @private
handle_cast(Request, Links) ->
    ok = weft_stray:message(Request),
    {noreply, Links}.

%% A process of its own waits for each node.
%% @private
handle_info(look, #links{nodes = Nodes, connecting = Connecting} = Links) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    Missing = Nodes -- [node() | nodes(connected) ++ maps:values(Connecting)],
    New = [{element(2, spawn_monitor(net_kernel, connect_node, [Node])), Node} || Node <- Missing],
    {noreply, Links#links{connecting = maps:merge(Connecting, maps:from_list(New))}};
handle_info({'DOWN', Ref, process, _, _}, #links{connecting = Connecting} = Links)
  when is_map_key(Ref, Connecting) ->
    {noreply, Links#links{connecting = maps:remove(Ref, Connecting)}};
handle_info(Message, Links) ->
    ok = weft_stray:message(Message),
    {noreply, Links}.

%% @private
terminate(_Reason, #links{name = Name}) ->
    _ = persistent_term:erase(?KEY(Name)),
    ok.

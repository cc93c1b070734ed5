%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of a client (`weft_kv_client'): it connects to the nodes of the store, and again
%% to those that were away. Not here: requests.
-module(weft_kv_client_links).
-behaviour(gen_server).

-export([start_link/2, config/1, info/1, count/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, ask/2]).

-define(LOOK_MS, 1000).
%% Between two questions for the ring, if it is known.
-define(RING_MS, 3000).
%% Of the nodes that only the ring names, so many are dialled at a time.
-define(DIALLED_MAX, 8).
-define(TRIES_MAX, 10).
-define(DEFAULTS, #{discover => true, timeout_ms => 5000, tries => 3}).
-define(KEY(Name), {?MODULE, Name}).

-record(links, {name :: atom(),
                nodes :: [node(), ...],
                discover :: boolean(),
                connecting = #{} :: #{reference() => node()},
                ring :: weft_kv_client_ring:known(),
                %% Who asks for it, and when that is due again.
                asking = none :: none | reference(),
                due_ms :: integer()}).

%% @doc See `weft_kv_client:start_link/2'.
-spec start_link(atom(), map()) -> {ok, pid()} | {error, term()}.
start_link(Name, Options) when is_map(Options) ->
    All = maps:merge(?DEFAULTS, Options),
    case maps:keys(maps:without([nodes | maps:keys(?DEFAULTS)], All)) of
        [Key | _] -> {error, {unknown_option, Key}};
        [] ->
            case [{Key, maps:get(Key, All, missing), range(Key)}
                  || Key <- [nodes, discover, timeout_ms, tries],
                     not is_valid(Key, maps:get(Key, All, missing))] of
                [] -> gen_server:start_link({local, Name}, ?MODULE, {Name, All}, []);
                [Wrong | _] -> {error, {bad_option, Wrong}}
            end
    end.

is_valid(nodes, Nodes) when length(Nodes) >= 1 -> % not of an improper list
    lists:all(fun is_atom/1, Nodes) andalso length(lists:usort(Nodes)) =:= length(Nodes);
is_valid(nodes, _) -> false;
is_valid(discover, Is) -> is_boolean(Is);
is_valid(tries, Tries) -> is_integer(Tries) andalso Tries >= 1 andalso Tries =< ?TRIES_MAX;
is_valid(timeout_ms, Ms) -> is_integer(Ms) andalso Ms >= 1.

range(nodes) -> distinct_nodes;
range(discover) -> {true, 'or', false};
range(tries) -> {from, 1, to, ?TRIES_MAX};
range(timeout_ms) -> {from, 1}.

%% @doc What requests need to know. A client that does not run is a mistake of the program.
-spec config(atom()) -> #{nodes := [node(), ...], found := [node()], discover := boolean(),
                          timeout_ms | tries := pos_integer(),
                          copies := #{binary() => pos_integer()},
                          partitions := non_neg_integer(), counts := counters:counters_ref()}.
config(Name) ->
    case persistent_term:get(?KEY(Name), none) of
        none -> error({no_client, Name});
        Config -> Config
    end.

%% @doc See `weft_kv_client:info/1'.
-spec info(atom()) -> map().
info(Name) ->
    #{nodes := Named, found := Found, partitions := Partitions, counts := Counts} = config(Name),
    Nodes = Named ++ Found,
    Connected = [node() | nodes(connected)],
    maps:from_list([{What, counters:get(Counts, place(What))}
                    || What <- [requests, to_replica, repeated, failed]]
                   ++ [{nodes, Nodes}, {partitions, Partitions},
                       {connected, [Node || Node <- Nodes, lists:member(Node, Connected)]}]).

%% @doc One more.
-spec count(requests | to_replica | repeated | failed, counters:counters_ref()) -> ok.
count(What, Counts) -> counters:add(Counts, place(What), 1).

place(requests) -> 1;
place(repeated) -> 2;
place(failed) -> 3;
place(to_replica) -> 4.

%% @private
init({Name, #{nodes := Nodes, discover := Discover} = Config}) ->
    process_flag(trap_exit, true),
    ok = weft_kv_client_ring:forget(Name),
    ok = persistent_term:put(?KEY(Name), Config#{counts => counters:new(4, [write_concurrency]),
                                                 found => [], copies => #{}, partitions => 0}),
    self() ! look,
    {ok, #links{name = Name, nodes = Nodes, discover = Discover,
                ring = weft_kv_client_ring:none(), due_ms = now_ms()}}.

%% @private
handle_call(Request, _From, Links) -> {reply, weft_stray:call(Request), Links}.

%% @private
handle_cast(Request, Links) ->
    ok = weft_stray:message(Request),
    {noreply, Links}.

%% @private
handle_info(look, Links) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    {noreply, asked(dialled(Links))};
handle_info({'DOWN', Ref, process, _, Reason}, #links{asking = Ref} = Links) ->
    {noreply, told(Reason, Links#links{asking = none})};
handle_info({'DOWN', Ref, process, _, _}, #links{connecting = Connecting} = Links)
  when is_map_key(Ref, Connecting) ->
    {noreply, asked(Links#links{connecting = maps:remove(Ref, Connecting)})};
handle_info(Message, Links) ->
    ok = weft_stray:message(Message),
    {noreply, Links}.

%% @private
terminate(_Reason, #links{name = Name}) ->
    _ = persistent_term:erase(?KEY(Name)),
    weft_kv_client_ring:forget(Name).

%% --- connections ------------------------------------------------------------------------------

%% A process of its own waits for each node.
dialled(#links{nodes = Named, connecting = Connecting} = Links) ->
    There = [node() | nodes(connected) ++ maps:values(Connecting)],
    Others = [Node || {_, Node} <- lists:sort([{rand:uniform(), Node}
                                               || Node <- found(Links) -- There])],
    Missing = (Named -- There)
        ++ lists:sublist(Others, max(0, ?DIALLED_MAX - map_size(Connecting))),
    New = [{element(2, spawn_monitor(net_kernel, connect_node, [Node])), Node} || Node <- Missing],
    Links#links{connecting = maps:merge(Connecting, maps:from_list(New))}.

%% Those that only the ring names.
found(#links{discover = false}) -> [];
found(#links{nodes = Named, ring = #{nodes := Owners}}) -> Owners -- Named.

%% --- the ring ---------------------------------------------------------------------------------

%% Any node is asked: none of them is the one that knows best for ever.
asked(#links{asking = none, nodes = Named, due_ms = DueMs, ring = Ring} = Links) ->
    Up = [node() | nodes(connected)],
    Connected = [Node || Node <- Named ++ found(Links), lists:member(Node, Up)],
    case now_ms() of
        NowMs when NowMs >= DueMs, Connected =/= [] ->
            Node = lists:nth(rand:uniform(length(Connected)), Connected),
            {_, Ref} = spawn_monitor(?MODULE, ask, [Node, Ring]),
            Links#links{asking = Ref, due_ms = NowMs + ?RING_MS};
        _ -> Links
    end;
asked(Links) ->
    Links.

%% @private
-spec ask(node(), weft_kv_client_ring:known()) -> no_return().
ask(Node, Ring) -> exit({answer, weft_kv_client_ring:ask(Node, Ring)}).

told({answer, Answer}, #links{name = Name, ring = Before} = Links0) ->
    Ring = weft_kv_client_ring:learn(Name, Answer, Before),
    Links = Links0#links{ring = Ring},
    ok = shown(found(Links), Ring, Name),
    case Ring of
        #{version := none} -> Links#links{due_ms = now_ms()};
        #{} -> dialled(Links)
    end;
told(_Ended, Links) ->
    Links.

%% To replace the term costs a scan of all processes.
shown(Found, Ring, Name) ->
    Config = config(Name),
    case maps:merge(Config#{found := Found}, maps:with([copies, partitions], Ring)) of
        Config -> ok;
        New -> persistent_term:put(?KEY(Name), New)
    end.

now_ms() -> erlang:monotonic_time(millisecond).

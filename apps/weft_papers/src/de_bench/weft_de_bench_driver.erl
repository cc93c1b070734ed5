%% SPDX-License-Identifier: Apache-2.0
%% @doc The operations of DE-Bench (Ghaffari 2014, section 3.1), as a driver of the load generator;
%% and those that weft adds.
%%
%% ```
%% spawning, remote_call, gen_server_call, fsm_server_call     peer to peer, to a random other node
%% rex_call            a remote call through one server process of the node, as rpc once was
%% channel_call        a call over the control channel of weft
%% global_register  global_whereis  global_unregister          names in all nodes
%% local_register   local_whereis   local_unregister           names of this node
%% names_register   names_whereis   names_unregister           weft_names, eventual
%% strong_register  strong_whereis  strong_unregister          weft_names, strong
%% group_register   group_whereis   group_unregister           weft_names, in each own group
%% '''
%% Peer to peer operations carry packet_size bytes there and back, and the other node computes for
%% delay_remote_function microseconds (`weft_de_bench_computation'). After a register the worker
%% looks the name up and then unregisters it, whatever is drawn; a look-up or unregister that is
%% drawn otherwise is nothing, and not counted. So is each operation, of names too, whose random
%% node is this one: the share of each operation is the same on few nodes and on many. A node alone
%% has names, and no peers. With transitive_connection false the random node is one of the own
%% groups, if there are any. The time of a name in several groups is that of all of them over their
%% number.
-module(weft_de_bench_driver).

-export([new/1, run/4, terminate/2, operations/0, labels/1, prepare/1]).
-export([work/3, answer/5]).

-define(LONG_MS, 60000).
-define(SHORT_MS, 5000).
-define(STRONG_SCOPE, weft_de_bench).

-record(driver, {nodes :: tuple(),
                 packet :: binary(),
                 computation :: weft_de_bench_computation:computation(),
                 id :: pos_integer(),
                 count = 0 :: non_neg_integer(),
                 %% What has to be done next, with the name it is about.
                 next = none :: none | {atom(), term()}}).

%% @doc All operations.
-spec operations() -> [atom()].
operations() ->
    [spawning, remote_call, rex_call, gen_server_call, fsm_server_call, channel_call,
     global_register, global_whereis, global_unregister,
     local_register, local_whereis, local_unregister,
     names_register, names_whereis, names_unregister,
     strong_register, strong_whereis, strong_unregister,
     group_register, group_whereis, group_unregister].

%% @doc With what follows of itself.
-spec labels([atom()]) -> [atom()].
labels(Operations) ->
    case lists:usort(Operations ++ [after_it(Operation) || Operation <- Operations]) -- [none] of
        Operations -> Operations;
        More -> labels(More)
    end.

%% @doc What these operations need on this node besides servers.
-spec prepare([atom()]) -> ok | {error, Text :: string()}.
prepare(Operations) ->
    Needed = [Kind || Operation <- Operations, {Kind, register} <- [step(Operation)]],
    case [Text || Kind <- lists:usort(Needed), {error, Text} <- [ready(Kind)]] of
        [] -> ok;
        [Text | _] -> {error, Text}
    end.

ready(?STRONG_SCOPE) ->
    weft_names:start_scope(?STRONG_SCOPE, #{kind => strong});
ready(groups) ->
    case places(groups) of
        [] -> {error, lists:concat([node(), " is in no group"])};
        [_ | _] -> ok
    end;
ready(_Kind) ->
    ok.

%% @doc Of the configuration: `nodes' (all, also this one), packet_size, delay_remote_function, and
%% perhaps rounds_per_us, which makes rounds of the latter.
-spec new(pos_integer()) -> {ok, #driver{}}.
new(Id) ->
    Nodes = case basho_bench_config:get(transitive_connection, true) orelse weft_group:is_free() of
                true -> basho_bench_config:get(nodes, [node()]);
                false -> weft_group:own_nodes()
            end,
    {ok, #driver{id = Id, nodes = list_to_tuple(Nodes),
                 packet = rand:bytes(basho_bench_config:get(packet_size, 1000)),
                 computation = weft_de_bench_computation:new(
                                 basho_bench_config:get(delay_remote_function, 0),
                                 basho_bench_config:get(rounds_per_us, none))}}.

%% @doc What was begun with a name comes before what was drawn, and is counted as what it is. What
%% is drawn for this node is nothing, and what was begun waits.
-spec run(atom(), fun(), fun(), #driver{}) -> term().
run(Drawn, _Key, _Value, #driver{nodes = Nodes} = Driver) ->
    case element(rand:uniform(tuple_size(Nodes)), Nodes) of
        Self when Self =:= node(), tuple_size(Nodes) > 1 -> {silent, Driver};
        Node -> run(Drawn, Node, Driver)
    end.

run(_Drawn, _Node, #driver{next = {Operation, Name}} = Driver) ->
    {as, Operation, with_name(Operation, Name, Driver#driver{next = none})};
run(Operation, Node, #driver{count = Count} = Driver) ->
    case step(Operation) of
        peer when Node =:= node() -> {silent, Driver};
        peer -> to_node(Node, Operation, Driver);
        {_Kind, register} -> with_name(Operation, new_name(Operation, Driver),
                                       Driver#driver{count = Count + 1});
        {_Kind, _} -> {silent, Driver}
    end.

step(global_register) -> {global, register};
step(global_whereis) -> {global, whereis};
step(global_unregister) -> {global, unregister};
step(local_register) -> {local, register};
step(local_whereis) -> {local, whereis};
step(local_unregister) -> {local, unregister};
step(names_register) -> {cluster, register};
step(names_whereis) -> {cluster, whereis};
step(names_unregister) -> {cluster, unregister};
step(strong_register) -> {?STRONG_SCOPE, register};
step(strong_whereis) -> {?STRONG_SCOPE, whereis};
step(strong_unregister) -> {?STRONG_SCOPE, unregister};
step(group_register) -> {groups, register};
step(group_whereis) -> {groups, whereis};
step(group_unregister) -> {groups, unregister};
step(_) -> peer.

after_it(global_register) -> global_whereis;
after_it(global_whereis) -> global_unregister;
after_it(local_register) -> local_whereis;
after_it(local_whereis) -> local_unregister;
after_it(names_register) -> names_whereis;
after_it(names_whereis) -> names_unregister;
after_it(strong_register) -> strong_whereis;
after_it(strong_whereis) -> strong_unregister;
after_it(group_register) -> group_whereis;
after_it(group_whereis) -> group_unregister;
after_it(_) -> none.

%% @doc A name that is still registered is given up.
-spec terminate(term(), #driver{}) -> ok.
terminate(_Reason, #driver{next = {Operation, Name}}) ->
    {Kind, _} = step(Operation),
    _ = [done(Place, unregister, Name) || Place <- places(Kind)],
    ok;
terminate(_Reason, _Driver) ->
    ok.

%% --- peer to peer -----------------------------------------------------------------------------

to_node(Node, Operation, #driver{packet = Packet, computation = Computation} = Driver) ->
    case there_and_back(Operation, Node, [Packet, byte_size(Packet), Computation]) of
        Packet -> {ok, Driver};
        Other -> {error, {Operation, Other}, Driver}
    end.

there_and_back(spawning, Node, Work) ->
    Ref = make_ref(),
    {Pid, Monitor} = spawn_monitor(Node, ?MODULE, answer, [self(), Ref | Work]),
    receive
        {Ref, Answer} -> demonitor(Monitor, [flush]), Answer;
        {'DOWN', Monitor, process, Pid, Reason} -> Reason
    after ?LONG_MS ->
        demonitor(Monitor, [flush]),
        timeout
    end;
there_and_back(remote_call, Node, Work) ->
    rpc:call(Node, ?MODULE, work, Work, ?LONG_MS);
there_and_back(rex_call, Node, Work) ->
    weft_de_bench_server:call({rex, Node}, Work, ?LONG_MS);
there_and_back(gen_server_call, Node, Work) ->
    weft_de_bench_server:call({gen_server, Node}, Work, ?SHORT_MS);
there_and_back(channel_call, Node, Work) ->
    weft_de_bench_server:call({channel, Node}, Work, ?SHORT_MS);
there_and_back(fsm_server_call, Node, Work) ->
    weft_de_bench_fsm:call(Node, Work, ?SHORT_MS).

%% @doc What another node does: checks the size, computes, and gives back what it got.
-spec work(binary(), Bytes :: non_neg_integer(), weft_de_bench_computation:computation()) ->
          binary().
work(Packet, Bytes, Computation) when byte_size(Packet) =:= Bytes ->
    ok = weft_de_bench_computation:run(Computation),
    Packet.

%% @private
-spec answer(pid(), reference(), binary(), non_neg_integer(),
             weft_de_bench_computation:computation()) -> term().
answer(From, Ref, Packet, Bytes, Computation) ->
    From ! {Ref, work(Packet, Bytes, Computation)}.

%% --- names ------------------------------------------------------------------------------------

%% Names of this node are atoms, so there are few of them, used again and again.
new_name(local_register, #driver{id = Id}) ->
    list_to_atom("weft_de_bench_" ++ integer_to_list(Id));
new_name(_Operation, #driver{id = Id, count = Count}) ->
    {weft_de_bench, node(), Id, Count}.

with_name(Operation, Name, Driver) ->
    {Kind, Step} = step(Operation),
    Places = places(Kind),
    StartUs = erlang:monotonic_time(microsecond),
    case [Other || Place <- Places, Other <- [done(Place, Step, Name)], Other =/= true] of
        [] ->
            ElapsedUs = erlang:monotonic_time(microsecond) - StartUs,
            {ok, ElapsedUs / length(Places),
             Driver#driver{next = case after_it(Operation) of
                                      none -> none;
                                      Next -> {Next, Name}
                                  end}};
        [Other | _] ->
            {error, {Operation, Other}, Driver#driver{next = none}}
    end.

%% Where a name of a kind is registered.
places(groups) ->
    [Scope || Group <- maps:keys(weft_group:own()), {ok, Scope} <- [weft_group:scope(Group)]];
places(Kind) ->
    [Kind].

done(global, register, Name) -> is(yes, global:register_name(Name, self()));
done(global, whereis, Name) -> is(self(), global:whereis_name(Name));
done(global, unregister, Name) -> _ = global:unregister_name(Name), true;
done(local, register, Name) -> register(Name, self());
done(local, whereis, Name) -> is(self(), whereis(Name));
done(local, unregister, Name) -> unregister(Name);
done(Scope, register, Name) -> is(ok, weft_names:register({Scope, Name}, self()));
done(Scope, whereis, Name) -> is(self(), weft_names:whereis_name({Scope, Name}));
done(Scope, unregister, Name) -> is(ok, weft_names:unregister({Scope, Name})).

is(Expected, Expected) -> true;
is(_Expected, Other) -> Other.

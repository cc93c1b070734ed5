%% SPDX-License-Identifier: Apache-2.0
%% @doc The application weft_kv and its configuration. A wrong value stops the start with an error
%% that names it.
-module(weft_kv_app).
-behaviour(application).

-export([start/2, stop/1, config/1, bucket/1, buckets/0, running/0, suspects/0,
         coordinators/0, compares/0]).

-define(DEFAULTS, #{buckets => #{}, requests_max => 10000, entropy_ms => 1000,
                    coordinators => spawned}).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    case {config(application:get_all_env(weft_kv)), weft_vnode_names:name(weft_kv_vnode, 0)} of
        {{error, Reason}, _} -> {error, {weft_kv, Reason}};
        {_, {error, no_vnode}} ->
            {error, {weft_kv, {not_in_the_configuration_of, weft_ring, {vnodes, weft_kv_vnode}}}};
        {{ok, #{buckets := Buckets} = Config}, {ok, _}} ->
            case weft_kv_durability:promised(weft_kv_vnode:directory(of_vnodes()), Buckets) of
                {ok, Promised} -> started(Config#{buckets := Promised});
                {error, Reason} -> {error, {weft_kv, Reason}}
            end
    end.

%% The process that calls it is there until the application has stopped.
started(#{buckets := Buckets, requests_max := Max} = Config) ->
    ok = persistent_term:put(?MODULE, Config#{running => weft_kv_admission:new(Max),
                                              suspects => weft_kv_suspects:new()}),
    ok = weft_kv_durability:publish(Buckets),
    case weft_kv_sup:start_link(Config) of
        {ok, Pid} ->
            ok = stored(),
            {ok, Pid};
        {error, Reason} ->
            ok = stop(failed),
            {error, Reason}
    end.

of_vnodes() ->
    proplists:get_value(weft_kv_vnode, application:get_env(weft_ring, vnodes, []), []).

%% What was written here for other nodes has to reach them, though nobody asks for it.
stored() ->
    _ = weft_kv_crew:map(fun stored/1, weft_kv_vnode:stored(of_vnodes()),
                         weft_vnodes:at_a_time()),
    ok.

stored(Partition) ->
    case weft_vnodes:start({weft_kv_vnode, Partition}, node()) of
        {ok, started} -> ok;
        {error, no_partition} ->
            logger:warning("weft_kv: there is a file of partition ~b, and the ring has fewer. It "
                           "is left as it is", [Partition]);
        {error, Reason} ->
            logger:error("weft_kv: partition ~b does not start: ~0tp", [Partition, Reason])
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    _ = persistent_term:erase(?MODULE),
    weft_kv_durability:withdraw().

%% @doc The configuration with its defaults.
-spec config([{atom(), term()}]) -> {ok, map()} | {error, term()}.
config(Environment) ->
    Given = maps:from_list(proplists:delete(included_applications, Environment)),
    case maps:merge(?DEFAULTS, Given) of
        #{requests_max := Max} when not is_integer(Max); Max < 1 ->
            {error, {bad_value, {requests_max, Max}}};
        #{entropy_ms := Ms} when Ms =/= infinity, not (is_integer(Ms) andalso Ms >= 1) ->
            {error, {bad_value, {entropy_ms, Ms}}};
        #{coordinators := How} when How =/= spawned, How =/= one_supervisor ->
            {error, {bad_value, {coordinators, How}}};
        #{buckets := Buckets} when not is_map(Buckets) ->
            {error, {bad_value, {buckets, Buckets}}};
        #{buckets := Buckets} = All ->
            case maps:keys(maps:without(maps:keys(?DEFAULTS), Given)) of
                [Key | _] -> {error, {unknown_key, Key}};
                [] -> checked(maps:to_list(Buckets), All#{buckets := #{}})
            end
    end.

checked([], Config) ->
    {ok, Config};
checked([{Name, Options} | Buckets], #{buckets := Checked} = Config) when is_atom(Name) ->
    case weft_kv_bucket:check(Options) of
        {ok, All} -> checked(Buckets, Config#{buckets := Checked#{Name => All}});
        {error, Reason} -> {error, {bucket, Name, Reason}}
    end;
checked([{Name, _} | _], _) ->
    {error, {bucket, Name, not_an_atom}}.

%% @doc What was configured for a bucket.
-spec bucket(atom()) -> {ok, weft_kv_bucket:options() | weft_kv_strong_bucket:options()}
                      | {error, unknown_bucket | not_running}.
bucket(Name) ->
    case persistent_term:get(?MODULE, none) of
        #{buckets := #{Name := Options}} -> {ok, Options};
        #{} -> {error, unknown_bucket};
        none -> {error, not_running}
    end.

%% @doc All buckets with what was configured for them.
-spec buckets() ->
          {ok, #{atom() => weft_kv_bucket:options() | weft_kv_strong_bucket:options()}}
        | {error, not_running}.
buckets() ->
    case persistent_term:get(?MODULE, none) of
        #{buckets := Buckets} -> {ok, Buckets};
        none -> {error, not_running}
    end.

%% @doc The requests that run.
-spec running() -> weft_kv_admission:running().
running() ->
    maps:get(running, persistent_term:get(?MODULE)).

%% @doc The nodes that have let writes wait. Requests may ask when the application has stopped.
-spec suspects() -> weft_kv_suspects:suspects() | none.
suspects() ->
    maps:get(suspects, persistent_term:get(?MODULE, #{}), none).

%% @doc How the process of a request is started. By one supervisor only for an experiment, see
%% `weft_kv_request_sup'.
-spec coordinators() -> spawned | one_supervisor.
coordinators() ->
    #{coordinators := How} = persistent_term:get(?MODULE),
    How.

%% @doc Are replicas compared, so that those that have lost something get it back?
-spec compares() -> boolean().
compares() ->
    maps:get(entropy_ms, persistent_term:get(?MODULE, #{}), infinity) =/= infinity.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What buckets ask of the disks of this node, as it is configured here. A copy counts
%% <ul>
%% <li>`synced': when it is in the file of its partition, and that is synced;</li>
%% <li>`written': when it is in the file. That is synced a short time later (`weft_kv_log');</li>
%% <li>`memory': when it is in memory. It is in no file.</li>
%% </ul>
%% A bucket that does not say which gets `synced' where partitions have a directory, and `memory'
%% elsewhere. Each node goes by its own configuration, and requests do not carry this.
%%
%% Partitions run before the application and after it. So they begin with what is in its
%% environment, keep what they have heard last, and look whether it has changed (`weft_kv_disk').
%% Strong buckets are always synced, and not here.
-module(weft_kv_durability).

-export([promised/2, publish/1, withdraw/0, expected/0, current/1, of_bucket/2, in_memory/1,
         moved/2]).
-export_type([durability/0, durabilities/0]).

-type durability() :: synced | written | memory.
%% Of all buckets that are not `synced'.
-type durabilities() :: #{Bucket :: atom() => written | memory}.

%% @doc The buckets with what they get on a node whose partitions have this directory, or the first
%% one that asks for more than that.
-spec promised(none | file:filename(), #{atom() => map()}) ->
          {ok, #{atom() => map()}} | {error, {bucket, atom(), term()}}.
promised(Dir, Buckets) ->
    case [{Name, Durability} || Dir =:= none,
                                {Name, #{durability := Durability}} <-
                                    lists:sort(maps:to_list(Buckets)),
                                Durability =:= synced orelse Durability =:= written] of
        [] -> {ok, maps:map(fun(_, Options) -> decided(Dir, Options) end, Buckets)};
        [{Name, Durability} | _] ->
            {error, {bucket, Name,
                     {durability, Durability, {not_in_the_configuration_of, weft_ring,
                                               {vnodes, weft_kv_vnode, dir}}}}}
    end.

decided(none, #{durability := default} = Options) -> Options#{durability := memory};
decided(_Dir, #{durability := default} = Options) -> Options#{durability := synced};
decided(_Dir, Options) -> Options.

%% @doc This is so from now on. The buckets are those of `promised/2'.
-spec publish(#{atom() => map()}) -> ok.
publish(Buckets) -> persistent_term:put(?MODULE, of_buckets(Buckets)).

of_buckets(Buckets) ->
    maps:from_list([{Name, Durability}
                    || {Name, #{durability := Durability}} <- maps:to_list(Buckets),
                       Durability =:= written orelse Durability =:= memory]).

%% @doc Nothing is published.
-spec withdraw() -> ok.
withdraw() ->
    _ = persistent_term:erase(?MODULE),
    ok.

%% @doc What is published, or will be when the application starts.
-spec expected() -> durabilities().
expected() ->
    current(case application:get_env(weft_kv, buckets, #{}) of
                Buckets when is_map(Buckets) -> of_buckets(Buckets);
                _Refused -> #{}
            end).

%% @doc What is published, or this if nothing is.
-spec current(durabilities()) -> durabilities().
current(Otherwise) -> persistent_term:get(?MODULE, Otherwise).

%% @doc What a bucket asks for; one that is not known here is synced.
-spec of_bucket(atom(), durabilities()) -> durability().
of_bucket(Bucket, Durabilities) -> maps:get(Bucket, Durabilities, synced).

%% @doc The buckets that are in no file.
-spec in_memory(durabilities()) -> [atom()].
in_memory(Durabilities) -> [Bucket || {Bucket, memory} <- lists:sort(maps:to_list(Durabilities))].

%% @doc The buckets that were in memory only and are no longer, or the other way round.
-spec moved(durabilities(), durabilities()) -> [atom()].
moved(Before, Now) ->
    {Was, Is} = {in_memory(Before), in_memory(Now)},
    (Was -- Is) ++ (Is -- Was).

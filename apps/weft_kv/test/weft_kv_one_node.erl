%% SPDX-License-Identifier: Apache-2.0
%% @doc For tests in EUnit: a store on this node alone, without distribution.
-module(weft_kv_one_node).

-export([started/3, started/4, in_place_of/1, dir/1, stopped/1]).

%% @doc Starts the store with these options of its partitions and these buckets, and makes a ring of
%% eight partitions. Its directory, in that of the test, is for `stopped/1'. Replicas are not
%% compared.
-spec started(Test :: module(), VnodeOptions :: map(), Buckets :: map()) -> file:filename().
started(Test, VnodeOptions, Buckets) ->
    started(Test, VnodeOptions, Buckets, infinity).

%% @doc The same with replicas that are compared so often.
-spec started(Test :: module(), VnodeOptions :: map(), Buckets :: map(), EveryMs :: timeout()) ->
          file:filename().
started(Test, VnodeOptions, Buckets, EveryMs) ->
    Dir = filename:join(dir(Test), "ring"),
    _ = [begin
             _ = application:load(Application),
             ok = application:set_env(Application, Key, Value)
         end || {Application, Key, Value} <-
                    [{weft_ring, dir, Dir}, {weft_ring, partitions, 8},
                     {weft_ring, vnodes, [{weft_kv_vnode, VnodeOptions}]},
                     {weft_kv, buckets, Buckets}, {weft_kv, entropy_ms, EveryMs}]],
    {ok, _} = application:ensure_all_started(weft_kv),
    ok = weft_ring:create(),
    Dir.

%% @doc The process of a partition ends, and the caller gets its name. What asks the partition just
%% then, as the round of copies that are left over may, starts another one: that one ends, too.
-spec in_place_of(Name :: atom()) -> ok.
in_place_of(Name) ->
    weft_test_nodes:until(fun() ->
                              _ = catch sys:terminate(Name, normal),
                              try register(Name, self())
                              catch error:badarg -> false
                              end
                          end).

%% @doc The directory of a test, which no other run of it has.
-spec dir(Test :: module()) -> file:filename().
dir(Test) -> filename:join(filename:basedir(user_cache, atom_to_list(Test)), os:getpid()).

%% @doc Stops what was started, and deletes the files of the test.
-spec stopped(Dir :: file:filename()) -> ok.
stopped(Dir) ->
    _ = [application:stop(Application) || Application <- [weft_kv, weft_ring, weft]],
    _ = [application:unload(Application) || Application <- [weft_kv, weft_ring]],
    file:del_dir_r(filename:dirname(Dir)).

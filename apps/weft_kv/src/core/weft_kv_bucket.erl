%% SPDX-License-Identifier: Apache-2.0
%% @doc What a bucket promises: how many replicas a key has and how many of them have to answer.
%% Pure.
-module(weft_kv_bucket).

-export([check/1, options/2, compared/1]).
-export_type([options/0, quorum/0]).

-type quorum() :: non_neg_integer() | quorum | all.
-type options() :: #{n := pos_integer(), r := pos_integer(), w := pos_integer(),
                     pr := non_neg_integer(), pw := non_neg_integer(), nodes := pos_integer(),
                     siblings := boolean(), evict := boolean(),
                     durability := weft_kv_durability:durability() | default,
                     ttl_ms := pos_integer() | infinity,
                     value_max := pos_integer(), timeout_ms := pos_integer(),
                     retries := non_neg_integer()}.
%% `r', `w': how many replicas have to answer a read and a write; `pr', `pw': how many of them have
%% to be owners of the key, and not others in their place. `nodes': on how many nodes a write has to
%% be, where fewer nodes than replicas exist or neighbours on the ring are the same node.
%% `siblings': false means that of two writes that have not seen each other one is dropped. `evict':
%% objects may be dropped when there is no room for others. `durability': see `weft_kv_durability'.
%% `retries': see `weft_kv_request'.

-define(DEFAULTS, #{n => 3, r => quorum, w => quorum, pr => 0, pw => 0, nodes => 1,
                    siblings => true, evict => false, durability => default,
                    ttl_ms => infinity, value_max => 1048576, timeout_ms => 5000,
                    retries => 0}).
-define(N_MAX, 8).
-define(RETRIES_MAX, 10).
%% 31,700 years: the time when it is over has 64 bits in archives.
-define(TTL_MS_MAX, 1000000000000000).
-define(DURABILITIES, [default, synced, written, memory]).

%% @doc The options with their defaults and with numbers for words, or what is wrong with them.
-spec check(map()) -> {ok, options() | weft_kv_strong_bucket:options()}
                    | {error, {unknown_option | bad_option | missing, term()}}.
check(#{consistency := strong} = Given) ->
    weft_kv_strong_bucket:check(Given);
check(#{consistency := eventual} = Given) ->
    check(maps:remove(consistency, Given));
check(#{consistency := Other}) ->
    {error, {bad_option, {consistency, Other, {eventual, 'or', strong}}}};
check(Given) when is_map(Given) ->
    case {lists:sort(maps:keys(maps:without(maps:keys(?DEFAULTS), Given))),
          maps:merge(?DEFAULTS, Given)} of
        {[Key | _], _} -> {error, {unknown_option, Key}};
        {[], #{n := N} = All} when is_integer(N), N >= 1, N =< ?N_MAX -> numbered(N, All);
        {[], #{n := N}} -> {error, {bad_option, {n, N, {from, 1, to, ?N_MAX}}}}
    end;
check(Given) ->
    {error, {bad_option, Given}}.

%% @doc The options of a bucket, with those of one request in their place.
-spec options(map(), options()) ->
          {ok, options()} | {error, {unknown_option | bad_option, term()}}.
options(Request, Bucket) when map_size(Request) =:= 0 ->
    {ok, Bucket};
options(Request, Bucket) ->
    case maps:keys(maps:without([r, w, pr, pw, nodes, ttl_ms, timeout_ms, retries],
                                Request)) of
        [] -> check(maps:merge(Bucket, Request));
        [Key | _] -> {error, {unknown_option, Key}}
    end.

numbered(N, All) ->
    Numbers = maps:map(fun(Key, Value) when Key =:= r; Key =:= w; Key =:= pr; Key =:= pw;
                                              Key =:= nodes ->
                               number(Value, N);
                          (_, Value) -> Value
                       end, All),
    case [{Key, map_get(Key, All), range(Key, N)}
          || Key <- [r, w, pr, pw, nodes, siblings, evict, durability, ttl_ms, value_max,
                     timeout_ms, retries],
             not is_valid(Key, map_get(Key, Numbers), N)] of
        [] -> {ok, Numbers};
        [Wrong | _] -> {error, {bad_option, Wrong}}
    end.

number(quorum, N) -> N div 2 + 1;
number(all, N) -> N;
number(Other, _) -> Other.

is_valid(Key, Value, N) when Key =:= r; Key =:= w; Key =:= nodes ->
    is_integer(Value) andalso Value >= 1 andalso Value =< N;
is_valid(Key, Value, N) when Key =:= pr; Key =:= pw ->
    is_integer(Value) andalso Value >= 0 andalso Value =< N;
is_valid(Key, Value, _) when Key =:= siblings; Key =:= evict -> is_boolean(Value);
is_valid(durability, Value, _) -> lists:member(Value, ?DURABILITIES);
is_valid(retries, Value, _) ->
    is_integer(Value) andalso Value >= 0 andalso Value =< ?RETRIES_MAX;
is_valid(ttl_ms, infinity, _) -> true;
is_valid(ttl_ms, Value, _) -> is_integer(Value) andalso Value >= 1 andalso Value =< ?TTL_MS_MAX;
is_valid(_, Value, _) -> is_integer(Value) andalso Value >= 1.

range(Key, N) when Key =:= r; Key =:= w; Key =:= nodes -> {from, 1, to, N};
range(Key, N) when Key =:= pr; Key =:= pw -> {from, 0, to, N};
range(Key, _) when Key =:= siblings; Key =:= evict -> {true, 'or', false};
range(durability, _) -> {one_of, ?DURABILITIES};
range(retries, _) -> {from, 0, to, ?RETRIES_MAX};
range(ttl_ms, _) -> {from, 1, to, ?TTL_MS_MAX, 'or', infinity};
range(_, _) -> {from, 1}.

%% @doc The numbers of replicas of the buckets of which replicas are compared. A cache need not have
%% what another one has, and strong buckets are not here.
-spec compared(#{atom() => map()}) -> [pos_integer()].
compared(Buckets) ->
    lists:usort([N || {_, #{n := N, evict := false}} <- maps:to_list(Buckets), N > 1]).

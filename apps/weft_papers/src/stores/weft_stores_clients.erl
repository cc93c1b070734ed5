%% SPDX-License-Identifier: Apache-2.0
%% @doc Clients of any store, as processes of this node: each connects, and does one operation after
%% the other. What a store is to them is a module with `connect/2' and `ask/2'.
%%
%% Not here: how stores are started (`weft_stores_nodes', `weft_stores_program').
-module(weft_stores_clients).

-export([run/3]).
-export([client/5]).
-export_type([load/0, request/0, outcome/0]).

-type request() :: {get, Key :: binary()} | {put, Key :: binary(), Value :: binary()}.
-type load() :: #{operation := fill | get | put, clients := pos_integer(), keys := pos_integer(),
                  value_bytes := pos_integer(), ms := non_neg_integer()}.
%% `fill' puts each key once, and takes as long as it takes. What is elapsed ends with the last
%% operation; to collect the latencies of many takes longer.
-type outcome() :: #{latencies := [non_neg_integer()], errors := non_neg_integer(),
                     elapsed_us := non_neg_integer()}.

-callback connect(Store :: term(), Number :: pos_integer()) -> Connection :: term().
%% A get has to find the value.
-callback ask(request(), Connection :: term()) -> ok | {error, term()}.

%% @doc All clients at once, for so long. Latencies (in microseconds) are those of operations
%% without an error.
-spec run(module(), Store :: term(), load()) -> outcome().
run(Module, Store, #{clients := Clients, ms := Ms} = Load) ->
    StartUs = erlang:monotonic_time(microsecond),
    Running = [spawn_monitor(?MODULE, client, [Module, Store, Number, Load, StartUs + 1000 * Ms])
               || Number <- lists:seq(1, Clients)],
    Did = [receive
               {'DOWN', Monitor, process, Pid, {did, Outcome}} -> Outcome;
               {'DOWN', Monitor, process, Pid, Why} -> error({client, Why})
           end || {Pid, Monitor} <- Running],
    #{latencies => lists:append([Latencies || {Latencies, _, _} <- Did]),
      errors => lists:sum([Errors || {_, Errors, _} <- Did]),
      elapsed_us => lists:max([EndUs || {_, _, EndUs} <- Did]) - StartUs}.

%% @private
-spec client(module(), Store :: term(), pos_integer(), load(), EndUs :: integer()) -> no_return().
client(Module, Store, Number, Load, EndUs) ->
    exit({did, asked(Module, Module:connect(Store, Number), Number, Load, EndUs)}).

asked(Module, Connection, Number, #{operation := fill} = Load, _EndUs) ->
    #{clients := Clients, keys := Keys, value_bytes := Bytes} = Load,
    [ok = Module:ask({put, key(Key), rand:bytes(Bytes)}, Connection)
     || Key <- lists:seq(Number, Keys, Clients)],
    {[], 0, erlang:monotonic_time(microsecond)};
asked(Module, Connection, _Number, #{value_bytes := Bytes} = Load, EndUs) ->
    loop(Module, Connection, Load#{value => rand:bytes(Bytes)}, EndUs, [], 0).

loop(Module, Connection, #{operation := Operation, keys := Keys, value := Value} = Load, EndUs,
     Latencies, Errors) ->
    StartUs = erlang:monotonic_time(microsecond),
    case StartUs >= EndUs of
        true -> {Latencies, Errors, StartUs};
        false ->
            Key = key(rand:uniform(Keys)),
            Answer = Module:ask(case Operation of
                                    get -> {get, Key};
                                    put -> {put, Key, Value}
                                end, Connection),
            TookUs = erlang:monotonic_time(microsecond) - StartUs,
            case Answer of
                ok -> loop(Module, Connection, Load, EndUs, [TookUs | Latencies], Errors);
                {error, _} -> loop(Module, Connection, Load, EndUs, Latencies, Errors + 1)
            end
    end.

key(Number) -> <<"key ", (integer_to_binary(Number))/binary>>.

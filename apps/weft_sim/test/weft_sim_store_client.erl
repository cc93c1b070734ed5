%% SPDX-License-Identifier: Apache-2.0
%% @doc A client of the store in the simulator: one session, of which each request goes to any node
%% of the store, and the next one begins after its answer, or after some time without one. A write
%% replaces what the client has read last of the key, or nothing. A list of all keys of its
%% partition is a read of the key that does not say what to replace.
%%
%% What it asks and is told are notices: `{call, Id, Key, read | {write, Value, Seen}}', with the
%% values that the write replaces, and `{return, Id, {ok, Values} | unknown}'.
-module(weft_sim_store_client).
-behaviour(weft_core).

-export([init/2, handle/3]).

-record(client, {self :: node(),
                 options :: map(),
                 next = 1 :: pos_integer(),
                 waiting = none :: none | {term(), weft_kv_table:key(), read | list | write},
                 seen = #{} :: #{weft_kv_table:key() => {weft_kv_object:vector(), [term()]}},
                 rand :: rand:state()}).

%% @private
init(Self, Options) ->
    {#client{self = Self, options = Options, rand = weft_core:seed(Self, ?MODULE, Options)},
     [{after_ms, 20, next}]}.

%% @private
handle({timer, next}, NowMs, #client{options = #{until_ms := UntilMs}} = Client)
  when NowMs >= UntilMs ->
    {Client, []};
handle({timer, next}, NowMs, Client) ->
    asks(NowMs, Client);
handle({message, _, {result, Id, Answer}}, _NowMs, #client{waiting = {Id, _, _}} = Client) ->
    answered(Answer, Client);
handle({message, _, {result, _Late, _}}, _NowMs, Client) ->
    {Client, []};
handle({timer, {late, Id}}, _NowMs, #client{waiting = {Id, _, _}} = Client) ->
    answered({error, timeout}, Client);
handle({timer, {late, _}}, _NowMs, Client) ->
    {Client, []}.

asks(NowMs, #client{self = Self, next = Next, options = Options, seen = Seen} = Client0) ->
    #{nodes := Nodes, keys := Keys, timeout_ms := TimeoutMs} = Options,
    {Node, Client1} = pick(Nodes, Client0),
    {Group, Client2} = pick(Keys, Client1),
    {Key, Client3} = pick(Group, Client2),
    {Kind, Client} = pick([read, read, list, list, write, write, blind], Client3),
    Id = {Self, Next},
    {Vector, Values} = case Kind of
                           write -> maps:get(Key, Seen, {#{}, []});
                           _ -> {#{}, []}
                       end,
    {Call, Request} = case Kind of
                          read -> {read, read};
                          list -> {read, list};
                          _ -> {{write, Id, Values}, {write, value(Id, NowMs), Vector}}
                      end,
    What = case Kind of read -> read; list -> list; _ -> write end,
    {Client#client{next = Next + 1, waiting = {Id, Key, What}},
     [{notice, {call, Id, Key, Call}}, {send, Node, {client, Id, Key, Request}},
      {after_ms, TimeoutMs, {late, Id}}]}.

%% Clocks of clients differ.
value({Self, _} = Id, NowMs) ->
    #{value => term_to_binary(Id), written_ms => NowMs + erlang:phash2(Self, 300),
      expires_ms => never}.

answered(Answer, #client{waiting = {Id, Key, What}, seen = Seen} = Client0) ->
    {Ms, Client1} = uniform(40, Client0),
    Client = Client1#client{waiting = none},
    {case {Answer, What} of
         {{ok, {Vector, _} = Object}, read} ->
             Client#client{seen = Seen#{Key => {Vector, values(Object)}}};
         _ -> Client
     end,
     [{notice, {return, Id, case Answer of
                                {ok, Object} -> {ok, values(Object)};
                                {error, _} -> unknown
                            end}},
      {after_ms, Ms, next}]}.

values(Object) -> [binary_to_term(Value) || Value <- weft_kv_object:values(Object)].

pick(List, Client0) ->
    {N, Client} = uniform(length(List), Client0),
    {lists:nth(N, List), Client}.

uniform(Max, #client{rand = Rand0} = Client) ->
    {N, Rand} = rand:uniform_s(Max, Rand0),
    {N, Client#client{rand = Rand}}.

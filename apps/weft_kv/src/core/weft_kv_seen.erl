%% SPDX-License-Identifier: Apache-2.0
%% @doc A write whose client has seen more than the replica that took it. Pure.
%%
%% A replica believes of a context only what it knows itself (`weft_kv_object'), or a client could
%% replace writes that are yet to come. That is nearly always all. But a replica that was away takes
%% a write of a client that has read elsewhere what is to be replaced. Then the replicas are asked:
%% as many as a read asks, and if that is not enough, all that are there. What they know of it has
%% been written, and the object that goes to them knows it, too. The rest nobody has written.
%%
%% So a write that was acknowledged before a forged context came, or while it is dealt with, can be
%% replaced by it, as by anybody who reads and writes. One that comes later can not.
%%
%% If not all replicas answer, and the others do not know all of it, nobody can say what is made up.
%% Then the answer is an error. The write has reached replicas, and is found, beside what it was to
%% replace.
-module(weft_kv_seen).

-export([init/1, handle/2]).
-export_type([state/0, asked/0]).

-record(seen, {vector :: weft_kv_object:vector(),
               doing = write :: write | {read, asked()} | merge,
               object = none :: none | weft_kv_object:object()}).

-opaque state() :: #seen{}.
-type asked() :: configured | all.
%% How many replicas have to answer: as many as the bucket says, or all.
-type answer() :: {ok, weft_kv_object:object()} | {error, term()}.

%% @doc The request to begin with is the write itself.
-spec init(weft_kv_coordinator_core:request()) -> state().
init({write, _, Seen}) -> #seen{vector = Seen}.

%% @doc What comes after the answer to a request: another one, or the answer of the write.
-spec handle(answer(), state()) ->
          {ask, weft_kv_coordinator_core:request(), asked(), state()} | {answer, answer()}.
handle({ok, Object}, #seen{doing = write, vector = Seen} = State) ->
    case weft_kv_object:knows(Seen, Object) of
        true -> {answer, {ok, Object}};
        false -> read(configured, State#seen{object = Object})
    end;
handle({ok, Found}, #seen{doing = {read, Asked}, vector = Seen, object = Object} = State) ->
    case replaced(Seen, Found, Object) of
        {false, _} when Asked =:= configured -> read(all, State);
        {_, Object} -> {answer, {ok, Object}};
        {_, More} -> {ask, {merge, More}, configured, State#seen{doing = merge}}
    end;
handle({error, Reason}, #seen{doing = Doing}) when Doing =/= write ->
    {answer, {error, after_the_write(Reason)}};
handle(Answer, _State) ->
    {answer, Answer}.

%% Some errors say of a request that nothing was done.
after_the_write(timeout) -> timeout;
after_the_write({Reason, _} = Error) when Reason =:= too_few; Reason =:= unknown -> Error;
after_the_write(Reason) -> {unknown, Reason}.

%% With whether that is all.
replaced(Seen, Found, Object) ->
    More = weft_kv_object:replace(Seen, Found, Object),
    {weft_kv_object:knows(Seen, More), More}.

read(Asked, State) -> {ask, read, Asked, State#seen{doing = {read, Asked}}}.

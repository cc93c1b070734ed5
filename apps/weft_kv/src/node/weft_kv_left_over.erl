%% SPDX-License-Identifier: Apache-2.0
%% @doc Drops copies that are too many since their bucket has a smaller `n'. Nobody writes to them
%% any more, so they do not hear that a value was deleted, and would bring it back once the others
%% have forgotten that: by a comparison for another bucket, or when `n' grows again. So they are
%% brought to those who have the copies now, and dropped when all of these have what they have. Of
%% a cache they are only dropped.
%%
%% While a node of the ring may still ask for them, since it does not have the smaller `n' yet or
%% does not answer, they stay. So they do while an owner is away or of an earlier version.
%%
%% The partitions of this node are looked at one after the other, a batch at a time. For each one
%% all nodes of the ring are asked once, before the first batch of a bucket is moved.
%%
%% A partition that has a file and no process, as that has failed, is left over, too: what it has
%% for other nodes would stay there, and bring deleted values back later. So it gets a process, also
%% while a round takes long.
-module(weft_kv_left_over).
-behaviour(gen_server).

-export([start_link/1, step/3]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([round/0, ask/0, is_agreed/0]).

-define(EVERY_MS, 10000).
%% Between two batches others have their turn.
-define(PAUSE_MS, 10).
-define(ASK_MS, 5000).
%% No bucket can have had more copies.
-define(N_MAX, 8).

-type buckets() :: #{atom() => {N :: pos_integer(), Evict :: boolean()}
                                %% All have agreed, for the partition that is looked at.
                             | {N :: pos_integer(), Evict :: boolean(), agreed}}.
%% What is still to be looked at.
-type round() :: {[Partition :: non_neg_integer()], Size :: pos_integer(), buckets()}.
-type ask() :: fun((weft_vnode:place(), weft_kv_table:key(), Command :: term()) ->
                       {ok, Answer :: term()} | {error, term()}).
%% Does no node of the ring ask for more copies of this bucket?
-type is_agreed() :: fun((Bucket :: atom(), N :: pos_integer()) -> boolean()).

-record(left_over, {buckets :: buckets(), round :: round()}).

-spec start_link(map()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, Config, []).

%% @private
init(#{buckets := All}) ->
    %% Copies of strong buckets are not on the ring.
    Buckets = maps:from_list([{Name, {N, Evict}}
                              || {Name, #{n := N, evict := Evict}} <- maps:to_list(All)]),
    ok = start_later(),
    {ok, later(#left_over{buckets = Buckets, round = {[], 1, Buckets}})}.

start_later() ->
    _ = erlang:send_after(?EVERY_MS, self(), stored),
    ok.

later(State) ->
    _ = erlang:send_after(?EVERY_MS, self(), round),
    State.

%% @private
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

%% @private
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
handle_info(stored, State) ->
    ok = start_stored(),
    ok = start_later(),
    {noreply, State};
handle_info(round, #left_over{buckets = Buckets} = State) ->
    case weft_ring_lookup:owners(weft_ring) of
        {ok, Owners} ->
            Mine = [Partition || {Partition, Node, _} <- Owners, Node =:= node(),
                                 is_running(Partition)],
            {noreply, next(State#left_over{round = {Mine, length(Owners), Buckets}})};
        {error, no_ring} -> {noreply, later(State)}
    end;
handle_info(next, State) ->
    {noreply, next(State)};
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

%% It may be starting or ending just now.
start_stored() ->
    try weft_vnodes:start_stored() of
        _ -> ok
    catch exit:_ -> ok
    end.

%% One that has just been started has its turn in the next round.
is_running(Partition) ->
    case weft_vnode_names:name(weft_kv_vnode, Partition) of
        {ok, Name} -> whereis(Name) =/= undefined;
        {error, no_vnode} -> false
    end.

%% What users have stored is not for logs.
next(#left_over{round = Round} = State) ->
    case weft_redact:run(fun() -> step(Round, fun is_agreed/2, fun ask/3) end) of
        {more, Next} ->
            _ = erlang:send_after(?PAUSE_MS, self(), next),
            State#left_over{round = Next};
        done -> later(State)
    end.

ask(Place, Key, Command) ->
    weft_vnode:ask(weft_kv_vnode, Place, Key, Command, ?ASK_MS).

is_agreed(Bucket, N) ->
    try weft_ring:status() of
        #{members := Members} ->
            Up = [node() | nodes(connected)],
            lists:all(fun({_, gone}) -> true;
                         ({Node, _}) -> lists:member(Node, Up) andalso is_content(Node, Bucket, N)
                      end, maps:to_list(Members));
        {error, _} -> false
    %% A ring that is busy or ends just now.
    catch exit:_ -> false
    end.

is_content(Node, Bucket, N) ->
    try erpc:call(Node, weft_kv_app, bucket, [Bucket], ?ASK_MS) of
        {ok, #{n := Asked}} -> Asked =< N;
        {error, unknown_bucket} -> true;
        {error, not_running} -> false
    catch
        error:{erpc, _} -> false;
        error:{exception, _, _} -> false;
        exit:_ -> false
    end.

%% --- a step -----------------------------------------------------------------------------------

%% @doc Moves one batch, or goes on to the next partition. A bucket of which a batch can not be
%% moved has its turn again in the next round.
-spec step(round(), is_agreed(), ask()) -> {more, round()} | done.
step({[], _, _}, _IsAgreed, _Ask) ->
    done;
step({[Partition | Others], Size, Buckets}, IsAgreed, Ask) ->
    case Ask({Partition, node(), primary}, {Partition, '', <<>>},
             {left_over, beyond(Partition, Size, Buckets)}) of
        {ok, [{{_, Bucket, _}, _} | _] = Items} ->
            {N, Evict} = asked(Bucket, Buckets),
            case (is_known(Bucket, Buckets) orelse IsAgreed(Bucket, N))
                andalso (Evict orelse is_brought(Items, N, Ask))
                andalso is_dropped(Items, Partition, Ask) of
                true ->
                    {more, {[Partition | Others], Size, Buckets#{Bucket := {N, Evict, agreed}}}};
                false -> {more, {[Partition | Others], Size, maps:remove(Bucket, Buckets)}}
            end;
        _ -> {more, {Others, Size, maps:map(fun(Bucket, _) -> asked(Bucket, Buckets) end, Buckets)}}
    end.

asked(Bucket, Buckets) ->
    #{Bucket := Asked} = Buckets,
    {element(1, Asked), element(2, Asked)}.

is_known(Bucket, Buckets) -> tuple_size(map_get(Bucket, Buckets)) =:= 3.

%% The keys of a partition are in the `N' from that one on.
beyond(Partition, Size, Buckets) ->
    [{(Partition - Back + Size) rem Size, Bucket}
     || Bucket <- maps:keys(Buckets), {N, _} <- [asked(Bucket, Buckets)],
        Back <- lists:seq(N, min(?N_MAX, Size) - 1)].

is_brought([{{KeyPartition, _, _} = Key, _} | _] = Items, N, Ask) ->
    Adopted = [{K, {Object, Kind#{n := N}}} || {K, {Object, Kind}} <- Items],
    case weft_ring_lookup:replicas(weft_ring, KeyPartition, N) of
        {ok, Places} ->
            lists:all(fun({_, _, primary} = Place) ->
                              case Ask(Place, Key, {adopt, Adopted}) of
                                  {ok, {ok, _}} -> true;
                                  _ -> false
                              end;
                         (_InPlaceOfAnOwner) -> false
                      end, Places);
        {error, no_ring} -> false
    end.

is_dropped([{Key, _} | _] = Items, Partition, Ask) ->
    Ask({Partition, node(), primary}, Key, {drop, Items}) =:= {ok, ok}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The store for programs on other nodes: `weft_kv' from outside of the ring, with several
%% nodes of the store to ask. If one dies, another one is asked. What is asked again after that, and
%% when the answer is that nothing is known, is in `docs/guide/kv.md', "From other nodes".
%%
%% A client is a name. Its process keeps the connections, and knows who has which keys; requests do
%% not go through it. A request goes to a node that has a replica of the key, as long as one is
%% connected. Of several of them each process that reads has a choice of its own, so that many
%% processes use all nodes.
-module(weft_kv_client).

-export([start_link/2, stop/1, info/1]).
-export([get/3, get/4, read/4, put/4, put/5, delete/3, delete/4, cas/5, cas/6, update/4, update/5]).
-export_type([name/0, options/0, error/0]).

-type name() :: atom().
-type options() :: #{nodes := [node(), ...], discover => boolean(), timeout_ms => pos_integer(),
                     tries => pos_integer()}.
%% `discover' (true): nodes of the ring that are not in the list are asked, too. `timeout_ms'
%% (5000): of a request, with all tries. `tries' (3): how many times it is sent, at most.
-type error() :: weft_kv:error() | {no_node, [node()]}.
%% `{unknown, Reason}': of a write it is not known whether it was done, or will be done later.
%% `{no_node, Nodes}': none of them was connected in time, so nothing was done.

-define(WAIT_MS, 20).

-record(request, {what :: tuple(),
                  given :: weft_kv:options(),
                  replicas :: [node()],
                  deadline_ms :: integer(),
                  counts :: counters:counters_ref()}).

%% @doc Begins to connect to the nodes. Put it below a supervisor.
-spec start_link(name(), options()) -> {ok, pid()} | {error, term()}.
start_link(Name, Options) -> weft_kv_client_links:start_link(Name, Options).

%% @doc Ends the client. The connections stay.
-spec stop(name()) -> ok.
stop(Name) -> gen_server:stop(Name).

%% @doc The nodes, those that are connected, and the partitions of the ring (0: it is not known).
%% How many requests there were, how many times one was sent to a node with a replica of the key,
%% and how many times once more, and how many had an error of the store or none.
-spec info(name()) -> #{nodes := [node()], connected := [node()], partitions := non_neg_integer(),
                        requests | to_replica | repeated | failed := non_neg_integer()}.
info(Name) -> weft_kv_client_links:info(Name).

%% @doc As `weft_kv:get/2'.
-spec get(name(), weft_kv:bucket(), weft_kv:key()) ->
          {ok, binary(), weft_kv:context()} | {siblings, [binary()], weft_kv:context()}
        | {error, not_found | error()}.
get(Name, Bucket, Key) -> get(Name, Bucket, Key, #{}).

%% @doc As `weft_kv:get/3'.
-spec get(name(), weft_kv:bucket(), weft_kv:key(), weft_kv:options()) ->
          {ok, binary(), weft_kv:context()} | {siblings, [binary()], weft_kv:context()}
        | {error, not_found | error()}.
get(Name, Bucket, Key, Given) -> request(read, Name, {get, Bucket, Key}, Given).

%% @doc As `weft_kv:read/3'.
-spec read(name(), weft_kv:bucket(), weft_kv:key(), weft_kv:options()) ->
          {ok, [weft_kv:sibling(), ...], weft_kv:context()} | {error, not_found | error()}.
read(Name, Bucket, Key, Given) -> request(read, Name, {read, Bucket, Key}, Given).

%% @doc As `weft_kv:put/3'.
-spec put(name(), weft_kv:bucket(), weft_kv:key(), binary()) ->
          {ok, weft_kv:context()} | {error, error()}.
put(Name, Bucket, Key, Value) -> put(Name, Bucket, Key, Value, #{}).

%% @doc As `weft_kv:put/4'.
-spec put(name(), weft_kv:bucket(), weft_kv:key(), binary(), weft_kv:options()) ->
          {ok, weft_kv:context()} | {error, error()}.
put(Name, Bucket, Key, Value, Given) -> request(write, Name, {put, Bucket, Key, Value}, Given).

%% @doc As `weft_kv:delete/2'.
-spec delete(name(), weft_kv:bucket(), weft_kv:key()) ->
          {ok, weft_kv:context()} | {error, error()}.
delete(Name, Bucket, Key) -> delete(Name, Bucket, Key, #{}).

%% @doc As `weft_kv:delete/3'. Without a context it reads first, so that what somebody writes after
%% that is not deleted if it is asked again.
-spec delete(name(), weft_kv:bucket(), weft_kv:key(), weft_kv:options()) ->
          {ok, weft_kv:context()} | {error, error()}.
delete(Name, Bucket, Key, #{context := _} = Given) ->
    request(write, Name, {delete, Bucket, Key}, Given);
delete(Name, Bucket, Key, Given) ->
    case timeout_ms(Given, weft_kv_client_links:config(Name)) of
        {ok, TimeoutMs} -> delete_until(now_ms() + TimeoutMs, Name, Bucket, Key, Given);
        {error, Reason} -> {error, Reason}
    end.

delete_until(DeadlineMs, Name, Bucket, Key, Given) ->
    case request(read, Name, {values, Bucket, Key}, Given) of
        {ok, _, strong} -> request(write, Name, {delete, Bucket, Key}, left(DeadlineMs, Given));
        {ok, _, Context} ->
            delete(Name, Bucket, Key, (left(DeadlineMs, Given))#{context => Context});
        {error, Reason} -> {error, Reason}
    end.

%% @doc As `weft_kv:cas/4'.
-spec cas(name(), weft_kv:bucket(), weft_kv:key(), binary() | not_found, binary() | not_found) ->
          {ok, weft_kv:context()} | {error, {conflict, binary() | not_found} | error()}.
cas(Name, Bucket, Key, Expected, New) -> cas(Name, Bucket, Key, Expected, New, #{}).

%% @doc As `weft_kv:cas/5'. It is never asked again after an unknown answer.
-spec cas(name(), weft_kv:bucket(), weft_kv:key(), binary() | not_found, binary() | not_found,
          weft_kv:options()) ->
          {ok, weft_kv:context()} | {error, {conflict, binary() | not_found} | error()}.
cas(Name, Bucket, Key, Expected, New, Given) ->
    request(write, Name, {cas, Bucket, Key, Expected, New}, Given).

%% @doc As `weft_kv:update/3'.
-spec update(name(), weft_kv:bucket(), weft_kv:key(), fun(([binary()]) -> binary())) ->
          {ok, weft_kv:context()} | {error, error()}.
update(Name, Bucket, Key, Fun) -> update(Name, Bucket, Key, Fun, #{}).

%% @doc As `weft_kv:update/4'. The fun runs here. In a bucket that is not strong it is called once.
-spec update(name(), weft_kv:bucket(), weft_kv:key(), fun(([binary()]) -> binary()),
             weft_kv:options()) ->
          {ok, weft_kv:context()} | {error, error()}.
update(Name, Bucket, Key, Fun, Given) ->
    case timeout_ms(Given, weft_kv_client_links:config(Name)) of
        {ok, TimeoutMs} -> update_until(now_ms() + TimeoutMs, Name, Bucket, Key, Fun, Given);
        {error, Reason} -> {error, Reason}
    end.

update_until(DeadlineMs, Name, Bucket, Key, Fun, Given0) ->
    Given = left(DeadlineMs, Given0),
    case request(read, Name, {values, Bucket, Key}, Given) of
        {ok, Values, strong} ->
            Expected = case Values of [] -> not_found; [Value] -> Value end,
            case cas(Name, Bucket, Key, Expected, Fun(Values), left(DeadlineMs, Given)) of
                {error, {conflict, _}} ->
                    case now_ms() < DeadlineMs of
                        true -> update_until(DeadlineMs, Name, Bucket, Key, Fun, Given);
                        false -> {error, {not_done, contention}}
                    end;
                Result -> Result
            end;
        {ok, Values, Context} ->
            put(Name, Bucket, Key, Fun(Values), (left(DeadlineMs, Given))#{context => Context});
        {error, Reason} -> {error, Reason}
    end.

left(DeadlineMs, Given) -> Given#{timeout_ms => max(1, DeadlineMs - now_ms())}.

%% --- a request --------------------------------------------------------------------------------

request(Kind, Name, What, Given) when is_map(Given) ->
    Config = weft_kv_client_links:config(Name),
    #{nodes := Named, found := Found, copies := Copies, tries := Tries, counts := Counts} = Config,
    case timeout_ms(Given, Config) of
        {ok, TimeoutMs} ->
            ok = weft_kv_client_links:count(requests, Counts),
            Replicas = weft_kv_client_ring:replicas(Name, Copies, element(2, What),
                                                    element(3, What)),
            Order = weft_kv_client_core:order(Kind, Replicas, [Named, Found],
                                              erlang:phash2(self())),
            asked(weft_kv_client_core:new(Kind, Order, Tries),
                  #request{what = What, given = Given, replicas = Replicas, counts = Counts,
                           deadline_ms = now_ms() + TimeoutMs});
        {error, Reason} -> {error, Reason}
    end.

timeout_ms(Given, #{timeout_ms := Default}) ->
    case maps:get(timeout_ms, Given, Default) of
        Ms when is_integer(Ms), Ms > 0 -> {ok, Ms};
        Wrong -> {error, {bad_option, {timeout_ms, Wrong, {from, 1}}}}
    end.

asked(Core0, #request{deadline_ms = DeadlineMs, counts = Counts} = Request) ->
    LeftMs = DeadlineMs - now_ms(),
    case weft_kv_client_core:node([node() | nodes(connected)], Core0) of
        _ when LeftMs =< 0 ->
            failed(weft_kv_client_core:unanswered(Core0), Counts);
        none ->
            receive after min(LeftMs, ?WAIT_MS) -> asked(Core0, Request) end;
        {ok, Node, Try, TriesLeft, Core} ->
            {Who, Answer} = sent(Node, Try, Request, max(1, LeftMs div TriesLeft)),
            case weft_kv_client_core:answered(Answer, Who, Core) of
                {answer, {error, Reason} = Error} when Reason =/= not_found ->
                    failed(Error, Counts);
                {answer, Final} -> Final;
                {next, Next} ->
                    ok = weft_kv_client_links:count(repeated, Counts),
                    asked(Next, Request)
            end
    end.

failed(Error, Counts) ->
    ok = weft_kv_client_links:count(failed, Counts),
    Error.

now_ms() -> erlang:monotonic_time(millisecond).

%% The store's own error says more than silence, so it gets a little less time.
sent(Node, Try, #request{what = What, given = Given} = Request, TimeoutMs) ->
    ok = counted(Node, Request),
    Options = Given#{timeout_ms => max(1, TimeoutMs - TimeoutMs div 10)},
    try erpc:call(Node, weft_kv_served, run, [erlang:append_element(What, Options), Try],
                  TimeoutMs) of
        Answer -> {said, Answer}
    catch
        error:{erpc, noconnection} -> {said, {error, {unknown, {nodedown, Node}}}};
        error:{erpc, timeout} -> {said, {error, {unknown, {no_answer, Node}}}};
        error:{exception, undef, [{weft_kv_served, run, _, _} | _]} ->
            {refused, {error, {no_store, Node}}};
        error:{exception, Reason, _} -> {said, {error, {unknown, {Node, Reason}}}};
        exit:{_, Reason} -> {said, {error, {unknown, {Node, Reason}}}}
    end.

counted(Node, #request{replicas = Replicas, counts = Counts}) ->
    case lists:member(Node, Replicas) of
        true -> weft_kv_client_links:count(to_replica, Counts);
        false -> ok
    end.

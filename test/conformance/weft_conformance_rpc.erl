%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: erpc and rpc.
-module(weft_conformance_rpc).

-include("weft_conformance.hrl").

-export([erpc_call_returns_the_value/1, erpc_call_passes_exception_classes/1,
         erpc_call_times_out/1, erpc_call_of_an_undefined_function/1,
         erpc_call_of_a_process_that_is_killed/1, erpc_call_to_an_unknown_node/1,
         erpc_cast_is_done/1, erpc_multicall_returns_each_result/1, erpc_multicast_is_done/1,
         erpc_send_request_and_receive_response/1, erpc_responses_in_any_order/1,
         erpc_wait_and_check_response/1, erpc_request_collections/1,
         rpc_call_returns_the_value/1, rpc_call_reports_failures_as_badrpc/1,
         rpc_call_times_out/1, rpc_cast_is_done/1, rpc_multicall_tells_bad_nodes/1,
         rpc_block_call_runs_one_after_the_other/1, rpc_async_call_yield_and_nb_yield/1,
         rpc_abcast_and_sbcast/1, rpc_parallel_map/1, erpc_nested_there_and_back/1]).
-export([mark/2]).

-define(NOBODY, 'nobody@127.0.0.1').
-define(SHORT_MS, 50).

erpc_call_returns_the_value(#{b := B}) ->
    B = erpc:call(B, erlang, node, []),
    42 = erpc:call(B, fun() -> 6 * 7 end),
    {a, [b]} = erpc:call(B, fun() -> {a, [b]} end, ?DEADLINE_MS).

erpc_call_passes_exception_classes(#{b := B}) ->
    ?raises(throw, ball, erpc:call(B, erlang, throw, [ball])),
    ?raises(exit, {exception, out}, erpc:call(B, erlang, exit, [out])),
    ?raises(error, {exception, bad, [_ | _]}, erpc:call(B, erlang, error, [bad])),
    ?raises(error, {exception, {badmatch, 2}, [_ | _]}, erpc:call(B, fun() -> mark(1, 2) end)).

%% @private Fails by badmatch unless both are equal.
mark(X, Y) ->
    X = Y.

erpc_call_times_out(#{b := B}) ->
    ?raises(error, {erpc, timeout}, erpc:call(B, timer, sleep, [infinity], ?SHORT_MS)),
    B = erpc:call(B, erlang, node, []).

erpc_call_of_an_undefined_function(#{b := B}) ->
    ?raises(error, {exception, undef, [{conformance_no_module, f, [], _} | _]},
            erpc:call(B, conformance_no_module, f, [])).

erpc_call_of_a_process_that_is_killed(#{b := B}) ->
    ?raises(exit, {signal, killed}, erpc:call(B, fun() -> exit(self(), kill), ?expect(never) end)).

erpc_call_to_an_unknown_node(_) ->
    ?raises(error, {erpc, noconnection}, erpc:call(?NOBODY, erlang, node, [])).

erpc_cast_is_done(#{b := B}) ->
    ok = erpc:cast(B, erlang, send, [self(), done]),
    ?expect(done).

erpc_multicall_returns_each_result(#{a := A, b := B}) ->
    [{ok, A}, {ok, B}, {error, {erpc, noconnection}}] =
        erpc:multicall([A, B, ?NOBODY], erlang, node, []),
    [{throw, x}, {throw, x}] = erpc:multicall([A, B], erlang, throw, [x]),
    [{error, {erpc, timeout}}] = erpc:multicall([B], timer, sleep, [infinity], ?SHORT_MS).

erpc_multicast_is_done(#{a := A, b := B}) ->
    Near = self(),
    ok = erpc:multicast([A, B], fun() -> Near ! {done_on, node()} end),
    ?expect({done_on, A}),
    ?expect({done_on, B}).

erpc_send_request_and_receive_response(#{b := B}) ->
    Request = erpc:send_request(B, erlang, node, []),
    B = erpc:receive_response(Request, ?DEADLINE_MS),
    Slow = erpc:send_request(B, timer, sleep, [infinity]),
    ?raises(error, {erpc, timeout}, erpc:receive_response(Slow, ?SHORT_MS)).

erpc_responses_in_any_order(#{b := B}) ->
    Requests = [{N, erpc:send_request(B, erlang, '+', [N, 1])} || N <- lists:seq(1, 100)],
    [true = erpc:receive_response(Request, ?DEADLINE_MS) =:= N + 1
     || {N, Request} <- lists:reverse(Requests)].

erpc_wait_and_check_response(#{b := B}) ->
    Slow = erpc:send_request(B, fun() -> ?expect(never) end),
    no_response = erpc:wait_response(Slow, ?SHORT_MS),
    no_response = erpc:check_response(not_the_response, Slow),
    Fast = erpc:send_request(B, erlang, node, []),
    {response, B} = erpc:wait_response(Fast, ?DEADLINE_MS).

erpc_request_collections(#{b := B}) ->
    Add = fun(N, Ids) -> erpc:send_request(B, erlang, '*', [N, N], {square, N}, Ids) end,
    Ids = lists:foldl(Add, erpc:reqids_new(), lists:seq(1, 10)),
    10 = erpc:reqids_size(Ids),
    collect_squares(Ids).

collect_squares(Ids) ->
    case erpc:receive_response(Ids, ?DEADLINE_MS, true) of
        {Square, {square, N}, Rest} when Square =:= N * N -> collect_squares(Rest);
        no_request -> ok
    end.

rpc_call_returns_the_value(#{b := B}) ->
    B = rpc:call(B, erlang, node, []),
    ball = rpc:call(B, erlang, throw, [ball]).

rpc_call_reports_failures_as_badrpc(#{b := B}) ->
    {badrpc, {'EXIT', {bad, [_ | _]}}} = rpc:call(B, erlang, error, [bad]),
    {badrpc, {'EXIT', out}} = rpc:call(B, erlang, exit, [out]),
    {badrpc, {'EXIT', {undef, _}}} = rpc:call(B, conformance_no_module, f, []),
    {badrpc, nodedown} = rpc:call(?NOBODY, erlang, node, []).

rpc_call_times_out(#{b := B}) ->
    {badrpc, timeout} = rpc:call(B, timer, sleep, [infinity], ?SHORT_MS),
    B = rpc:call(B, erlang, node, []).

rpc_cast_is_done(#{b := B}) ->
    true = rpc:cast(B, erlang, send, [self(), done]),
    ?expect(done).

rpc_multicall_tells_bad_nodes(#{a := A, b := B}) ->
    {[A, B], [?NOBODY]} = rpc:multicall([A, B, ?NOBODY], erlang, node, []).

%% Blocking calls are executed by the far rex server itself, so they share its process.
rpc_block_call_runs_one_after_the_other(#{b := B}) ->
    Rex = rpc:block_call(B, erlang, self, []),
    Rex = rpc:block_call(B, erlang, self, [], ?DEADLINE_MS),
    Rex = rpc:call(B, erlang, whereis, [rex]).

rpc_async_call_yield_and_nb_yield(#{b := B}) ->
    B = rpc:yield(rpc:async_call(B, erlang, node, [])),
    Slow = rpc:async_call(B, timer, sleep, [infinity]),
    timeout = rpc:nb_yield(Slow),
    timeout = rpc:nb_yield(Slow, ?SHORT_MS),
    {value, B} = rpc:nb_yield(rpc:async_call(B, erlang, node, []), ?DEADLINE_MS).

rpc_abcast_and_sbcast(#{b := B}) ->
    Far = weft_puppet:start(B),
    true = weft_puppet:do(Far, fun() -> register(conformance_casted, self()) end),
    abcast = rpc:abcast([B], conformance_casted, one),
    {[B], [?NOBODY]} = rpc:sbcast([B, ?NOBODY], conformance_casted, two),
    ok = weft_expect:until(fun() -> weft_puppet:mailbox(Far) =:= [one, two] end).

rpc_parallel_map(_) ->
    Numbers = lists:seq(1, 50),
    Squares = [N * N || N <- Numbers],
    Squares = rpc:parallel_eval([{erlang, '*', [N, N]} || N <- Numbers]).

erpc_nested_there_and_back(#{a := A, b := B}) ->
    Deep = fun Deep(0) -> node();
               Deep(N) -> erpc:call(other(node(), A, B), fun() -> Deep(N - 1) end)
           end,
    A = Deep(10).

other(A, A, B) -> B;
other(B, A, B) -> A.

%% SPDX-License-Identifier: Apache-2.0
%% @doc People talk on nodes that stay as they are, while something happens to others: the Instant
%% Messenger runs there, one run after the other, and each node sends numbered messages to the next
%% one (`weft_deploy_load'). Nothing may be lost or doubled, and for none of these nodes may another
%% one of them be down.
-module(weft_deploy_talk).

-include_lib("stdlib/include/assert.hrl").

-export([code/1, flags/0, during/3]).
-export_type([call/0]).

%% Calls a function on a node, and waits for three minutes at least.
-type call() :: fun((node(), module(), atom(), [term()]) -> term()).

-define(TALK_MS, 20000).
-define(RESULT_MS, 170000).

%% @doc What such nodes are made of: directories of code. One of them is made in that directory.
-spec code(Dir :: file:filename()) -> [file:filename()].
code(Dir) ->
    Own = filename:join([Dir, "load", "ebin"]),
    ok = filelib:ensure_path(Own),
    {ok, _} = file:copy(code:which(weft_deploy_load),
                        filename:join(Own, "weft_deploy_load.beam")),
    [Own | [filename:dirname(code:which(Module))
            || Module <- [weft_im, weft_bench_program, weft_report_record]]].

%% @doc Words of the command line of such a node, beside others.
-spec flags() -> [string()].
flags() -> ["-run", "weft_deploy_load", "start"].

%% @doc Does it while they talk. How many seconds it took, and how many messages there were.
-spec during([node(), ...], call(), fun(() -> ok)) ->
          #{s := float(), said := pos_integer(), numbers := pos_integer()}.
during([First | Others] = Talkers, Call, Fun) ->
    Pairs = lists:zip(Talkers, Others ++ [First]),
    [ok = Call(From, weft_deploy_load, send_to, [To]) || {From, To} <- Pairs],
    Self = self(),
    Talk = spawn_link(fun() -> Self ! {self(), talk(Talkers, Call, [])} end),
    {Us, ok} = timer:tc(Fun),
    Talk ! stop,
    Results = receive {Talk, All} -> All end,
    ct:pal("~.1f s, ~tp", [Us / 1.0e6, Results]),
    %% People talked all the time.
    ?assert(length(Results) * ?TALK_MS * 1000 >= Us / 2),
    [?assertMatch({ok, #{given_up := 0, logged_out := [], lost_messages := 0}}, Result)
     || Result <- Results],
    Said = lists:sum([N || {ok, #{said := N}} <- Results]),
    ?assertEqual(Said, lists:sum([N || {ok, #{heard := N}} <- Results])),
    ?assert(Said > 100 * length(Results)),
    #{s => Us / 1.0e6, said => Said, numbers => numbered(Pairs, Call)}.

%% One run after the other, until all is done.
talk(Talkers, Call, Results) ->
    Options = #{routers => 2, servers => 2, client_nodes => 1, names => {weft, cluster},
                is_grouped => false, count => 24, scale => 0.01, warm_up_ms => 100,
                run_ms => ?TALK_MS},
    Result = Call(hd(Talkers), weft_bench_program, run, [weft_im, Options, Talkers, ?RESULT_MS]),
    receive stop -> [Result | Results]
    after 0 -> talk(Talkers, Call, [Result | Results])
    end.

%% A number that comes twice is told as one that is missing is.
numbered(Pairs, Call) ->
    Sent = [{To, Call(From, weft_deploy_load, stop, [])} || {From, To} <- Pairs],
    [weft_test_nodes:until(fun() ->
                                   {Last, _} = Call(To, weft_deploy_load, received, []),
                                   Last >= Numbers
                           end) || {To, Numbers} <- Sent],
    [?assertEqual({To, {Numbers, []}}, {To, Call(To, weft_deploy_load, received, [])})
     || {To, Numbers} <- Sent],
    Downs = [{Node, Down} || {Node, _} <- Pairs, Down <- Call(Node, weft_deploy_load, downs, []),
                             lists:keymember(Down, 1, Pairs)],
    ?assertEqual([], Downs),
    lists:sum([Numbers || {_, Numbers} <- Sent]).

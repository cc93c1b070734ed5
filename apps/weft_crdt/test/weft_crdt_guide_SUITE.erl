%% SPDX-License-Identifier: Apache-2.0
%% @doc All that docs/guide/crdt.md shows is done as it stands there, on two nodes.
-module(weft_crdt_guide_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([the_guide_does_what_it_says/1]).
-export([evaluate/1]).

suite() -> [{timetrap, {minutes, 2}}].

all() -> [the_guide_does_what_it_says].

init_per_suite(Config) -> weft_test_nodes:begin_suite(Config).

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

the_guide_does_what_it_says(Config) ->
    Blocks = [string:split(Block, "\n") || "%% " ++ Block <- weft_guide:page("crdt.md", "erlang")],
    ?assertEqual(length(Blocks), length(weft_guide:page("crdt.md", "erlang"))),
    [A, B] = Refs = [start(Name, Config) || Name <- [a, b]],
    pong = connected(A, B),
    lists:foreach(fun([Where, Text]) -> done(Where, Text, Refs) end, Blocks).

done("on a", Text, [A, _]) -> evaluated(A, Text);
done("on b", Text, [_, B]) -> evaluated(B, Text);
done("on a and b", Text, Refs) -> [evaluated(Ref, Text) || Ref <- Refs];
done("on a and b, connected again", Text, [A, B] = Refs) ->
    pong = connected(A, B),
    [evaluated(Ref, Text) || Ref <- Refs];
done("sys.config", Text, _) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, [{weft_crdt, Environment}]} = erl_parse:parse_term(Tokens),
    {ok, _} = weft_crdt_app:config(Environment).

evaluated(Ref, Text) ->
    ct:log("~ts~n~ts", [weft_test_nodes:name(Ref), Text]),
    ok = weft_test_nodes:call(Ref, ?MODULE, evaluate, [Text], 60000).

%% @private
-spec evaluate(string()) -> ok.
evaluate(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    each(Tokens, [], erl_eval:new_bindings()).

each([], [], _) -> ok;
each([{dot, _} = Dot | Tokens], Expression, Bindings) ->
    {ok, Parsed} = erl_parse:parse_exprs(lists:reverse([Dot | Expression])),
    {value, _, Next} = erl_eval:exprs(Parsed, Bindings),
    each(Tokens, [], Next);
each([Token | Tokens], Expression, Bindings) ->
    each(Tokens, [Token | Expression], Bindings).

connected(A, B) -> weft_test_nodes:call(A, net_adm, ping, [weft_test_nodes:name(B)]).

start(Name, Config) ->
    Args = lists:append([["-pa", weft_test_nodes:ebin(Module)] || Module <- [?MODULE, weft_crdt]])
        ++ ["-kernel", "prevent_overlapping_partitions", "false"],
    weft_test_nodes:start(Name, #{args => Args}, ?config(place, Config)).

%% SPDX-License-Identifier: Apache-2.0
-module(weft_dashboard_feed_core_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(weft_dashboard_feed_core, [new/0, wants/2]).
-import(weft_dashboard_model_core, [pack/1]).

-define(M1, #{<<"a">> => 1}).
-define(M2, #{<<"a">> => 2}).
-define(M3, #{<<"a">> => 2, <<"b">> => 3}).

first_comes_all_then_what_differs_test() ->
    {{snapshot, 1, #{<<"a">> := 1}}, Feed1} = handle(changed, {1, ?M1}, new()),
    {{patch, 2, 1, #{<<"a">> := 2}}, Feed2} = handle({ack, 1}, {2, ?M2}, Feed1),
    ?assertMatch({{patch, 3, 2, #{<<"b">> := 3}}, _}, handle({ack, 2}, {3, ?M3}, Feed2)).

without_a_model_nothing_is_sent_test() ->
    ?assertMatch({none, _}, handle(changed, none, new())),
    ?assertMatch({none, _}, handle(resend, none, new())).

%% A slow browser gets the newest model, not each.
what_changes_before_the_acknowledgement_is_not_sent_test() ->
    {_, Feed1} = handle(changed, {1, ?M1}, new()),
    {none, Feed2} = handle(changed, {2, ?M2}, Feed1),
    ?assertEqual(Feed1, Feed2),
    ?assertMatch({{patch, 3, 1, #{<<"a">> := 2, <<"b">> := 3}}, _},
                 handle({ack, 1}, {3, ?M3}, Feed2)).

%% So a browser that is slow, or takes nothing, costs one model and no copies of others.
no_model_is_wanted_that_would_not_be_sent_test() ->
    {_, Feed1} = handle(changed, {1, ?M1}, new()),
    {{patch, 2, 1, _}, Feed2} = handle({ack, 1}, {2, ?M2}, Feed1),
    [?assertEqual({Event, Wants}, {Event, wants(Event, Feed2)})
     || {Event, Wants} <- [{changed, false}, {{ack, 1}, false}, {{ack, 2}, true},
                           {resend, true}]],
    ?assert(wants(changed, new())),
    Has = fun(Model) -> binary:match(term_to_binary(Feed2), pack(Model)) =/= nomatch end,
    ?assertEqual([false, true], [Has(Model) || Model <- [?M1, ?M2]]).

after_the_newest_nothing_is_sent_until_it_changes_test() ->
    {_, Feed1} = handle(changed, {1, ?M1}, new()),
    {none, Feed2} = handle({ack, 1}, {1, ?M1}, Feed1),
    {none, Feed3} = handle(changed, {1, ?M1}, Feed2),
    ?assertMatch({{patch, 2, 1, _}, _}, handle(changed, {2, ?M2}, Feed3)).

what_was_not_sent_is_not_acknowledged_test() ->
    {_, Feed} = handle(changed, {1, ?M1}, new()),
    [?assertEqual({none, Feed}, handle({ack, Number}, {2, ?M2}, Feed)) || Number <- [0, 2, -1]].

who_misses_something_gets_all_test() ->
    {_, Feed1} = handle(changed, {1, ?M1}, new()),
    {_, Feed2} = handle({ack, 1}, {2, ?M2}, Feed1),
    {{snapshot, 3, #{<<"b">> := 3}}, Feed3} = handle(resend, {3, ?M3}, Feed2),
    %% The answer to what was sent before.
    ?assertEqual({none, Feed3}, handle({ack, 2}, {3, ?M3}, Feed3)).

%% --- a browser, at its own speed ----------------------------------------------------------------

%% Whatever is changed when, whatever is lost, once the browser has asked again and taken what comes
%% its model is that of the server, and there was never more than one frame on the way.
in_the_end_the_browser_has_the_newest_model_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(ends_alike(), [{to_file, user}, {numtests, 500}]))}.

ends_alike() ->
    ?FORALL(Steps, list(frequency([{4, {change, model(2)}}, {6, take}, {1, lose}, {1, forget},
                                   {1, {ack, integer()}}])),
            begin
                World = lists:foldl(fun step/2, #{newest => {1, #{}}, feed => new(), wire => [],
                                                  browser => none, most => 0}, Steps),
                #{newest := {_, Model}, browser := {_, Had}, most := Most} =
                    drained(told(resend, World#{wire := []})),
                ?WHENFAIL(io:format(user, "~p~n", [{Model, Had}]),
                          Model =:= Had andalso Most =< 1)
            end).

model(0) -> integer(0, 3);
model(Depth) ->
    ?LET(Pairs, list({oneof([<<"a">>, <<"b">>, <<"c">>, <<"d">>]),
                      oneof([integer(0, 3), [1], model(Depth - 1)])}), maps:from_list(Pairs)).

step({change, Model}, #{newest := {Number, _}} = World) ->
    told(changed, World#{newest := {Number + 1, object(Model)}});
step({ack, Number}, World) ->
    told({ack, Number - 1000}, World);
%% Its model is gone: the next difference does not fit.
step(forget, World) ->
    World#{browser := none};
step(lose, World) ->
    World#{wire := []};
step(take, #{wire := []} = World) ->
    World;
step(take, #{wire := [Frame | Wire], browser := Browser} = World) ->
    case {Frame, Browser} of
        {{snapshot, Number, Model}, _} ->
            told({ack, Number}, World#{wire := Wire, browser := {Number, Model}});
        {{patch, Number, After, Patch}, {After, Old}} ->
            New = weft_dashboard_merge_patch_tests:apply_patch(Old, Patch),
            told({ack, Number}, World#{wire := Wire, browser := {Number, New}});
        {{patch, _, _, _}, _} ->
            told(resend, World#{wire := []})
    end.

object(Model) when is_map(Model) -> Model;
object(Other) -> #{<<"x">> => Other}.

told(Event, #{feed := Before, newest := Newest, wire := Wire, most := Most} = World) ->
    {Frame, Feed} = handle(Event, Newest, Before),
    Sent = Wire ++ [Frame || Frame =/= none],
    World#{feed := Feed, wire := Sent, most := max(Most, length(Sent))}.

%% As the server has models.
handle(Event, {Number, Model}, Feed) ->
    weft_dashboard_feed_core:handle(Event, {Number, pack(Model)}, Feed);
handle(Event, none, Feed) ->
    weft_dashboard_feed_core:handle(Event, none, Feed).

drained(#{wire := []} = World) -> World;
drained(World) -> drained(step(take, World)).

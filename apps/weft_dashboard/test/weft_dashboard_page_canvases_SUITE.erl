%% SPDX-License-Identifier: Apache-2.0
%% @doc What the page draws of a model that the test gives it (`weft_dashboard_page_frames'), as
%% its canvases have it and the tables beside them; and how the keys lead through it. Without a
%% Chromium all of it is skipped.
-module(weft_dashboard_page_canvases_SUITE).

-include_lib("stdlib/include/assert.hrl").

-import(weft_dashboard_chromium, [command/3, evaluate/2, until/2, key/2, errors/1]).
-import(weft_dashboard_page_frames, [of_model/3, patch/2]).
-import(weft_dashboard_page_steps, [rows/2, rows_as_they_are/2, tab_to/2]).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([a_cell_of_the_matrix_has_what_is_known_of_its_pair/1,
         the_colours_of_the_matrix_say_what_is_far_from_the_mean/1,
         the_keys_lead_through_the_matrix/1,
         the_graph_shows_what_goes_where/1,
         a_circuit_goes_through_its_gateways/1,
         a_long_circuit_is_shown_as_far_as_it_is_known/1,
         nothing_moves_where_that_is_asked_for/1, a_matrix_opens_first_above_twenty_nodes/1,
         names_are_left_out_where_there_are_many/1,
         the_keys_lead_through_the_graph/1,
         the_keys_lead_past_what_is_on_top_and_through_tables/1]).

-define(PAIRS, "Pairs, what is farthest from the mean first").

suite() -> [{timetrap, {minutes, 3}}].

all() ->
    [a_cell_of_the_matrix_has_what_is_known_of_its_pair,
     the_colours_of_the_matrix_say_what_is_far_from_the_mean,
     the_keys_lead_through_the_matrix,
     the_graph_shows_what_goes_where,
     a_circuit_goes_through_its_gateways,
     a_long_circuit_is_shown_as_far_as_it_is_known,
     nothing_moves_where_that_is_asked_for, a_matrix_opens_first_above_twenty_nodes,
     names_are_left_out_where_there_are_many,
     the_keys_lead_through_the_graph,
     the_keys_lead_past_what_is_on_top_and_through_tables].

init_per_suite(Config) -> weft_dashboard_page_frames:begin_suite(Config).

end_per_suite(Config) -> weft_dashboard_page_frames:end_suite(Config).

small(Address, Config) -> of_model(weft_dashboard_small:model(), Address, Config).

%% --- the matrix ---------------------------------------------------------------------------------

a_cell_of_the_matrix_has_what_is_known_of_its_pair(Config) ->
    Browser = small("#view=matrix", Config),
    pairs_are(by_rate(), Browser),
    ?assertEqual([[<<"a@h">>, <<"x@h">>], [<<"b@h">>, <<"a@h">>], [<<"a@h">>, <<"b@h">>],
                  [<<"x@h">>, <<"a@h">>]],
                 [[From, To] || [From, To | _]
                                    <- lists:sublist(rows_as_they_are(?PAIRS, Browser), 4)]),
    choose(measure, <<"rtt_us">>, Browser),
    pairs_are([[<<"a@h">>, <<"b@h">>, <<"100 µs"/utf8>>], [<<"a@h">>, <<"x@h">>, <<"600 µs"/utf8>>],
               [<<"b@h">>, <<"g@h">>, <<"–"/utf8>>]], Browser),
    choose(measure, <<"hops">>, Browser),
    pairs_are([[<<"a@h">>, <<"x@h">>, <<"2">>], [<<"x@h">>, <<"y@h">>, <<"1">>]], Browser),
    cell_is("a@h", "x@h", [<<"9 kB/s">>, <<"600 µs"/utf8>>, <<"2">>, <<"5 B">>, <<"3">>, <<"1">>,
                           <<"up">>, <<"g@h">>, <<"none">>, <<"–"/utf8>>], Browser),
    cell_is("b@h", "g@h", [<<"–"/utf8>>, <<"–"/utf8>>, <<"–"/utf8>>, <<"7 B">>, <<"–"/utf8>>,
                           <<"–"/utf8>>, <<"none">>, <<"–"/utf8>>, <<"down">>, <<"closed">>],
            Browser),
    cell_is("b@h", "x@h", [<<"nothing: they do not talk">>], Browser),
    choose(cells, <<"groups">>, Browser),
    cell_is("left", "left", [<<"1 kB/s">>, <<"150 µs"/utf8>>, <<"1">>, <<"7 B">>, <<"0">>, <<"0">>,
                             <<"6">>, <<"2">>, <<"closed">>], Browser),
    cell_is("left", "right", [<<"9 kB/s">>, <<"600 µs"/utf8>>, <<"2">>, <<"5 B">>, <<"3">>, <<"1">>,
                              <<"1">>, <<"0">>, <<"none">>], Browser),
    %% What a gateway has with either of its groups is within that one.
    cell_is("right", "right", [<<"0 B/s">>, <<"250 µs"/utf8>>, <<"1">>, <<"0 B">>, <<"0">>, <<"0">>,
                               <<"4">>, <<"0">>, <<"none">>], Browser),
    %% Also if it is the first group of neither node.
    patch(#{groups => #{third => #{members => [<<"a@h">>, <<"x@h">>], gateways => []}}}, Browser),
    cell_is("third", "third", [<<"12 kB/s">>, <<"600 µs"/utf8>>, <<"2">>, <<"5 B">>, <<"6">>,
                               <<"2">>, <<"2">>, <<"0">>, <<"none">>], Browser),
    ?assertEqual([], errors(Browser)).

%% From, to, value, how far off the mean of 3250 (a standard deviation is 3491), last error.
by_rate() ->
    None = [[<<From, "@h">>, <<To, "@h">>, <<"–"/utf8>>, <<"–"/utf8>>, Error]
            || {A, B, Error} <- [{$a, $g, <<>>}, {$g, $x, <<>>}, {$x, $y, <<>>},
                                 {$b, $g, <<"closed">>}],
               {From, To} <- [{A, B}, {B, A}]],
    [[<<"a@h">>, <<"b@h">>, <<"1 kB/s">>, <<"−0.6 σ"/utf8>>, <<>>],
     [<<"b@h">>, <<"a@h">>, <<"0 B/s">>, <<"−0.9 σ"/utf8>>, <<>>],
     [<<"a@h">>, <<"x@h">>, <<"9 kB/s">>, <<"+1.6 σ"/utf8>>, <<>>],
     [<<"x@h">>, <<"a@h">>, <<"3 kB/s">>, <<"−0.1 σ"/utf8>>, <<>>] | None].

%% Rows that begin like these are there; if these are whole, no others.
pairs_are(Expected, Browser) ->
    _ = evaluate("document.querySelector('[aria-label=Matrix] details').open = true", Browser),
    Length = length(hd(Expected)),
    weft_test_nodes:until(
      fun() ->
              Rows = [lists:sublist(Row, Length) || Row <- rows(?PAIRS, Browser)],
              case Length of
                  5 -> lists:sort(Expected) =:= Rows;
                  _ -> Expected -- Rows =:= []
              end
      end).

choose(What, Value, Browser) ->
    Index = case What of measure -> "0"; cells -> "1" end,
    _ = evaluate(["(select => { select.value = '", Value, "'; select.dispatchEvent(new Event("
                  "'change')); })(document.querySelectorAll('[aria-label=Matrix] select')[", Index,
                  "])"], Browser).

cell_is(From, To, Figures, Browser) ->
    _ = evaluate(["location.hash = new URLSearchParams({ ...Object.fromEntries("
                  "new URLSearchParams(location.hash.slice(1))), row: '", From, "', column: '", To,
                  "' })"], Browser),
    weft_test_nodes:until(fun() -> cell(Browser) =:= {<<(list_to_binary(From))/binary, " → "/utf8,
                                                        (list_to_binary(To))/binary>>, Figures}
                          end).

cell(Browser) ->
    {evaluate("document.querySelector('[aria-label=Cell] h2').textContent", Browser),
     evaluate("[...document.querySelectorAll('[aria-label=Cell] dd')].map(dd => dd.textContent)",
              Browser)}.

the_colours_of_the_matrix_say_what_is_far_from_the_mean(Config) ->
    Browser = small("#view=matrix&theme=light", Config),
    _ = until("Object.keys(cells()).length === 25", Browser),
    #{<<"a → x"/utf8>> := High, <<"b → a"/utf8>> := Low, <<"x → a"/utf8>> := Mean,
      <<"a → g"/utf8>> := NoValue, <<"b → x"/utf8>> := NoCell} = evaluate("shades()", Browser),
    ?assert(red(High) > 60),
    ?assert(red(Low) < -60),
    ?assert(abs(red(Mean)) < 30),
    ?assertEqual(evaluate("styled('none')", Browser), lists:sublist(NoValue, 3)),
    ?assertEqual(evaluate("styled('panel')", Browser), lists:sublist(NoCell, 3)),
    ?assert(evaluate("colours('b → g')", Browser) > 1),
    ?assertEqual(1, evaluate("colours('a → g')", Browser)),
    %% Who presses a cell chooses it.
    weft_dashboard_chromium:click(evaluate("cells()['x → g']", Browser), Browser),
    _ = until("location.hash.includes('row=x%40h&column=g%40h')", Browser),
    ?assertEqual([], errors(Browser)).

%% How much more red than blue there is.
red([Red, _, Blue, _]) -> Red - Blue.

the_keys_lead_through_the_matrix(Config) ->
    Browser = small("#view=matrix", Config),
    tab_to("e.className === 'matrix'", Browser),
    [begin
         key(<<"Arrow", Arrow/binary>>, Browser),
         Title = [From, <<"@h → "/utf8>>, To, "@h"],
         _ = until(["document.querySelector('[aria-label=Cell] h2').textContent === '", Title,
                    "' && document.activeElement.className === 'matrix'"], Browser)
     end || {Arrow, From, To} <- [{<<"Right">>, "a", "a"}, {<<"Right">>, "a", "b"},
                                  {<<"Up">>, "a", "b"}, {<<"Down">>, "b", "b"},
                                  {<<"Left">>, "b", "a"}, {<<"Left">>, "b", "a"},
                                  {<<"Up">>, "a", "a"}, {<<"Right">>, "a", "b"},
                                  {<<"Right">>, "a", "g"}, {<<"Right">>, "a", "x"}]],
    ?assertEqual(<<"a@h to x@h: bytes a second 9 kB/s">>,
                 evaluate("document.activeElement.getAttribute('aria-label')", Browser)),
    tab_to("e.textContent === 'Show the path'", Browser),
    key(<<"Enter">>, Browser),
    _ = until("document.title === 'weft: Graph' && times('/api/path') > 0", Browser),
    ?assertEqual([<<"a@h">>, <<"x@h">>],
                 evaluate("['from', 'to'].map((key) => "
                          "new URLSearchParams(location.hash.slice(1)).get(key))", Browser)),
    ?assertEqual([], errors(Browser)).

%% --- the graph ----------------------------------------------------------------------------------

the_graph_shows_what_goes_where(Config) ->
    Browser = small("#view=graph&theme=light", Config),
    _ = until(ink(3, "where('y@h')", "3"), Browser),
    %% A gateway has the colours of both of its groups, each on its side.
    [Left, Right] = evaluate("[-5, 5].map((off) => inside('g@h', off))", Browser),
    ?assertNotEqual(Left, Right),
    ?assertEqual([[Left, Left], [Right, Right]],
                 evaluate("['a@h', 'x@h'].map((id) => [-5, 5].map((off) => inside(id, off)))",
                          Browser)),
    %% An idle link is below, what goes over one is as wide as that is much.
    [?assertEqual({Layer, Pair, IsDrawn},
                  {Layer, Pair, evaluate(ink(Layer, ["middle(", Pair, ")"], "4"), Browser)})
     || {Layer, Pair, IsDrawn} <- [{0, "'x@h', 'y@h'", true}, {1, "'x@h', 'y@h'", false},
                                   {0, "'a@h', 'b@h'", false}, {1, "'a@h', 'b@h'", true},
                                   {1, "'g@h', 'x@h'", true}]],
    Before = evaluate("ink(1, middle('a@h', 'b@h'), 8)", Browser),
    patch(#{traffic => #{<<"a@h b@h">> => #{bytes_out => 200000000}}}, Browser),
    _ = until(["ink(1, middle('a@h', 'b@h'), 8) > 1.5 * ", integer_to_list(Before)], Browser),
    %% One that is down has a red cross.
    ?assert(evaluate("(([red, green, blue, alpha]) => alpha > 60 && red > 2 * green && "
                     "red > 2 * blue)(colourAt(layers()[1], middle('b@h', 'g@h')))", Browser)),
    %% What is found has a ring, what does not report is hollow.
    Ring = ink(3, "{ x: where('x@h').x, y: where('x@h').y - 16 * scale() }", "2"),
    ?assertNot(evaluate(Ring, Browser)),
    _ = evaluate("location.hash = 'view=graph&theme=light&seek=x@h'", Browser),
    _ = until(Ring, Browser),
    patch(#{nodes => #{<<"x@h">> => #{state => silent}}}, Browser),
    _ = until("inside('x@h', 6) === styled('ground').join()", Browser),
    ?assertEqual([], errors(Browser)).

a_circuit_goes_through_its_gateways(Config) ->
    Browser = of_model(weft_dashboard_small:chain(), "#view=graph", Config),
    _ = until(ink(3, "where('p@h')", "3"), Browser),
    ?assertEqual([true, true, false],
                 [evaluate(ink(2, Point, "12"), Browser)
                  || Point <- ["where('g@h')", "where('h@h')", "middle('a@h', 'p@h')"]]),
    _ = evaluate("location.hash = 'view=graph&without=circuits'", Browser),
    _ = until(["!(", ink(2, "where('g@h')", "12"), ") && !(", ink(2, "where('h@h')", "12"), ")"],
              Browser),
    ?assertEqual([], errors(Browser)).

%% Of a way over five nodes its ends know the first two and the last two. What goes over the links
%% in between is in their lanes, where nodes relay.
a_long_circuit_is_shown_as_far_as_it_is_known(Config) ->
    Browser = of_model(weft_dashboard_small:row(), "#view=graph", Config),
    _ = until(ink(3, "where('p@h')", "3"), Browser),
    Busy = [{"'a@h', 'g@h'", true}, {"'g@h', 'h@h'", true}, {"'h@h', 'i@h'", true},
            {"'i@h', 'p@h'", true}, {"'h@h', 'y@h'", false}, {"'h@h', 'z@h'", false}],
    ?assertEqual(Busy, [{Pair, evaluate(ink(1, ["middle(", Pair, ")"], "4"), Browser)}
                        || {Pair, _} <- Busy]),
    ?assertEqual([<<"g@h, …, i@h"/utf8>>], [Way || [_, _, Way | _] <- rows("Sessions", Browser)]),
    _ = evaluate("location.hash = 'view=matrix'", Browser),
    cell_is("p@h", "a@h", over(<<"0 B/s">>, <<"i@h, …, g@h"/utf8>>), Browser),
    cell_is("a@h", "p@h", over(<<"9 kB/s">>, <<"g@h, …, i@h"/utf8>>), Browser),
    %% The first of them says nothing.
    patch(#{traffic => #{<<"a@h p@h">> => null}}, Browser),
    cell_is("a@h", "p@h", over(<<"9 kB/s">>, <<"…, i@h"/utf8>>), Browser),
    ?assertEqual([], errors(Browser)).

%% Neither the round trip nor how many hops it takes is known.
over(Rate, Way) ->
    [Rate, <<"–"/utf8>>, <<"–"/utf8>>, <<"0 B">>, <<"0">>, <<"0">>, <<"up">>, Way, <<"none">>,
     <<"–"/utf8>>].

ink(Layer, Point, Radius) ->
    ["ink(", integer_to_list(Layer), ", ", Point, ", ", Radius, ") > 0"].

names_are_left_out_where_there_are_many(Config) ->
    [begin
         Browser = of_model(weft_dashboard_small:many(Count), "#view=graph", Config),
         _ = until(ink(3, "where(lowest())", "3"), Browser),
         Named = ink(3, ["{ x: where(lowest()).x, y: where(lowest()).y + ",
                         integer_to_list(Radius + 14), " * scale() }"], "4"),
         ?assertEqual({Count, IsNamed}, {Count, evaluate(Named, Browser)}),
         _ = evaluate("location.hash = `view=graph&from=${lowest()}`", Browser),
         _ = until(Named, Browser)
     end || {Count, Radius, IsNamed} <- [{50, 11, true}, {51, 7, false}]].

%% Bodies that get other places go there, or are there at once.
nothing_moves_where_that_is_asked_for(Config) ->
    Browser = small("#view=graph", Config),
    try
        [begin
             motion(Motion, Browser),
             _ = evaluate("window.seen = placesSeen(); 0", Browser),
             patch(#{groups => #{left => #{members => Left}, right => #{members => Right}}},
                   Browser),
             ?assertEqual({Motion, Moves}, {Motion, evaluate("seen", Browser) > 1})
         end || {Motion, Moves, Left, Right} <-
                    [{<<"no-preference">>, true, [<<"a@h">>, <<"b@h">>, <<"y@h">>],
                      [<<"g@h">>, <<"x@h">>]},
                     {<<"reduce">>, false, [<<"a@h">>, <<"b@h">>, <<"g@h">>],
                      [<<"g@h">>, <<"x@h">>, <<"y@h">>]}]],
        ?assertEqual([], errors(Browser))
    after
        motion(<<>>, Browser)
    end.

%% What the system asks for; nothing if it is empty.
motion(Motion, Browser) ->
    _ = command(<<"Emulation.setEmulatedMedia">>,
                #{features => [#{name => <<"prefers-reduced-motion">>, value => Motion}]}, Browser),
    ok.

a_matrix_opens_first_above_twenty_nodes(Config) ->
    [begin
         Browser = of_model(weft_dashboard_small:many(Count), "", Config),
         ?assertEqual({Count, Title, []},
                      {Count, evaluate("document.title", Browser), errors(Browser)})
     end || {Count, Title} <- [{20, <<"weft: Graph">>}, {21, <<"weft: Matrix">>}]].

the_keys_lead_through_the_graph(Config) ->
    %% Seven nodes stand in a ring.
    Ring = of_model(weft_dashboard_small:many(7), "#view=graph", Config),
    tab_to("e.className === 'graph'", Ring),
    key(<<"ArrowDown">>, Ring),
    weft_test_nodes:until(fun() -> at(Ring) =/= none end),
    All = [<<"Right">>, <<"Down">>, <<"Left">>, <<"Up">>],
    [ahead(Key, Ring) || Key <- All ++ All ++ lists:reverse(All)],
    %% Where they are stays so when another model comes.
    patch(#{nodes => #{<<"n7@h">> => #{state => silent}}}, Ring),
    _ = until("layers().at(-1).picture.states()['n7@h'] === 'silent'", Ring),
    [ahead(Key, Ring) || Key <- [<<"Down">> | All]],
    Browser = small("#view=graph", Config),
    tab_to("e.className === 'graph'", Browser),
    key(<<"ArrowDown">>, Browser),
    Fitted = evaluate("far('a@h', 'x@h')", Browser),
    key(<<"+">>, Browser),
    ?assert(abs(evaluate("far('a@h', 'x@h')", Browser) - 1.3 * Fitted) < 1),
    key(<<"-">>, Browser),
    key(<<"-">>, Browser),
    ?assert(abs(evaluate("far('a@h', 'x@h')", Browser) - Fitted / 1.3) < 1),
    key(<<"0">>, Browser),
    ?assert(abs(evaluate("far('a@h', 'x@h')", Browser) - Fitted) < 1),
    key(<<"Enter">>, Browser),
    Chosen = at(Browser),
    ?assertEqual(Chosen, evaluate("document.querySelector('[aria-label=\"Chosen node\"] h2')"
                                  ".textContent", Browser)),
    key(<<"Escape">>, Browser),
    _ = until("document.querySelector('[aria-label=\"Chosen node\"]').hidden", Browser),
    %% A group that is collapsed is one body, which Enter opens.
    _ = evaluate("location.hash = 'view=graph&open=none'", Browser),
    _ = until("layers().at(-1).picture.bodies().includes('group right')", Browser),
    weft_test_nodes:until(fun() -> key(<<"ArrowRight">>, Browser),
                                   key(<<"ArrowDown">>, Browser),
                                   key(<<"ArrowLeft">>, Browser),
                                   at(Browser) =:= <<"group right">>
                          end),
    key(<<"Enter">>, Browser),
    _ = until("location.hash.includes('open=right') && "
              "layers().at(-1).picture.bodies().includes('x@h')", Browser),
    ?assertEqual([], errors(Browser)).

at(Browser) ->
    case weft_dashboard_page_steps:focused(Browser) of
        <<"graph, at ", Body/binary>> -> Body;
        _ -> none
    end.

%% The next body is in that direction; if there is none, the focus stays.
ahead(Key, Browser) ->
    Here = at(Browser),
    key(<<"Arrow", Key/binary>>, Browser),
    There = at(Browser),
    Far = evaluate(["ahead('", Here, "', '", Key, "')"], Browser),
    ?assertEqual({Key, Here, There, true},
                 {Key, Here, There, lists:member(There, maps:keys(Far))
                                        orelse (Far =:= #{} andalso There =:= Here)}).

the_keys_lead_past_what_is_on_top_and_through_tables(Config) ->
    Browser = small("#view=matrix", Config),
    tab_to("e.className === 'skip'", Browser),
    key(<<"Enter">>, Browser),
    _ = until("document.activeElement.id === 'main'", Browser),
    ?assertEqual({<<"weft: Matrix">>, <<"#view=matrix">>},
                 {evaluate("document.title", Browser), evaluate("location.hash", Browser)}),
    _ = evaluate("location.hash = 'view=graph'", Browser),
    _ = until("document.title === 'weft: Graph'", Browser),
    Sessions = [<<"a@h – x@h"/utf8>>, <<"a@h – b@h"/utf8>>],
    ?assertEqual(Sessions, [Pair || [Pair | _] <- rows_as_they_are("Sessions", Browser)]),
    tab_to("e.tagName === 'BUTTON' && e.textContent === 'Traffic'", Browser),
    key(<<"Enter">>, Browser),
    ?assertEqual({<<"ascending">>, lists:reverse(Sessions)},
                 {evaluate("document.activeElement.parentElement.getAttribute('aria-sort')",
                           Browser),
                  [Pair || [Pair | _] <- rows_as_they_are("Sessions", Browser)]}),
    %% A link is the same one after a row has come before its own.
    tab_to("e.tagName === 'A' && e.textContent === 'b@h'", Browser),
    patch(#{nodes => #{<<"aa@h">> => weft_dashboard_small:node_in([])}}, Browser),
    weft_test_nodes:until(fun() -> length(rows("Nodes", Browser)) =:= 6 end),
    ?assertEqual(<<"b@h">>, evaluate("document.activeElement.textContent", Browser)),
    ?assertEqual([], errors(Browser)).

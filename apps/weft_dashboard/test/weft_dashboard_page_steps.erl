%% SPDX-License-Identifier: Apache-2.0
%% @doc What the suites with a browser do with the page, and read from it.
-module(weft_dashboard_page_steps).

-include_lib("stdlib/include/assert.hrl").

-import(weft_dashboard_chromium, [go/2, evaluate/2, until/2, key/2, type/2, click/2]).

-export([open/3, model/1, get/2, rows/2, rows_as_they_are/2, rows_of/1, press/2, press_node/2,
         with_token/1, tab_to/2, focused/1, hops/0, passed/1, state/2, drawn/2, axe/0,
         hindrances/3]).

-define(CANVAS, "document.querySelector('canvas.graph')").

%% @doc Opens a page that has not been there before, and waits until it has the model.
open(Rest, #{port := Port}, Browser) ->
    true = go("about:blank", Browser),
    true = go(["http://127.0.0.1:", integer_to_list(Port), "/", Rest], Browser),
    _ = until("document.documentElement.dataset.connection === 'live' && "
              "document.title !== 'weft' && "
              "performance.getEntriesByName('first-model').length > 0 && (" ?CANVAS
              ".offsetParent === null || performance.getEntriesByName('settled').length > 0)",
              Browser),
    ok.

%% --- what the server says -----------------------------------------------------------------------

model(Nodes) ->
    {200, Model} = get("/api/model", Nodes),
    Model.

get(Path, #{port := Port}) ->
    weft_dashboard_browser:json(weft_dashboard_browser:request(Port, Path)).

%% --- tables -------------------------------------------------------------------------------------

%% @doc The rows of the table with that caption, which can be seen, as texts.
rows(Caption, Browser) -> lists:sort(rows_as_they_are(Caption, Browser)).

rows_as_they_are(Caption, Browser) ->
    evaluate([rows_of(Caption), ".map(r => [...r.cells].map(c => c.textContent))"], Browser).

rows_of(Caption) ->
    ["[...[...document.querySelectorAll('caption')].find(c => c.textContent === '", Caption,
     "' && c.closest('[hidden]') === null)?.parentElement.tBodies[0].rows ?? []]"].

%% @doc The state of a node in the table of nodes.
state(Node, Browser) -> [State || [Known, State | _] <- rows("Nodes", Browser), Known =:= Node].

%% @doc How many hops of a path are shown, as an expression.
hops() -> "document.querySelectorAll('[aria-label=Path] tbody tr').length".

%% @doc The nodes between the ends of the path that is shown.
passed(Browser) ->
    case rows_as_they_are("Hops of the path", Browser) of
        [] -> [];
        Hops -> [lists:last(binary:split(Hop, <<" – "/utf8>>))
                 || [_, Hop | _] <- lists:droplast(Hops)]
    end.

%% --- mouse and keys -----------------------------------------------------------------------------

%% @doc Presses what has that text, and can be seen.
press(Text, Browser) ->
    _ = until(["(() => { const b = [...document.querySelectorAll('button')].find(b => "
               "b.textContent === '", Text, "' && b.offsetParent !== null); "
               "b?.click(); return b !== undefined; })()"], Browser).

%% @doc Presses a node of the graph with the mouse.
press_node(Node, Browser) ->
    click(evaluate([?CANVAS ".picture.where('", Node, "')"], Browser), Browser).

with_token(Browser) ->
    _ = until("document.querySelector('input[type=password]') === document.activeElement", Browser),
    type(weft_dashboard_nodes:token(), Browser),
    key(<<"Enter">>, Browser).

%% @doc Presses Tab until that is true of the element which has the focus.
tab_to(Condition, Browser) ->
    weft_test_nodes:until(
      fun() ->
              key(<<"Tab">>, Browser),
              evaluate(["(e => ", Condition, ")(document.activeElement)"], Browser)
      end).

focused(Browser) -> evaluate(?CANVAS ".getAttribute('aria-label')", Browser).

%% @doc The state with which a node of the graph is drawn.
drawn(Node, Browser) -> evaluate([?CANVAS ".picture.states()['", Node, "']"], Browser).

%% --- axe ----------------------------------------------------------------------------------------

%% @doc Deque's axe, which npm has got with the other packages of the page in _build/page; the
%% application is in a folder of _build/test/lib.
axe() ->
    case file:read_file(filename:join([code:lib_dir(weft_dashboard), "..", "..", "..", "page",
                                       "node_modules", "axe-core", "axe.min.js"])) of
        {ok, Axe} -> {ok, Axe};
        {error, enoent} -> weft_test_missing:skip("axe-core")
    end.

%% @doc What axe finds that is serious or critical, on the page that is open.
hindrances(Axe, What, Browser) ->
    _ = evaluate([Axe, ";0"], Browser),
    %% It has looked.
    _ = until("axe.run().then((found) => (window.found = found).passes.length > 8)", Browser),
    Found = evaluate("window.found.violations.filter(({ impact }) => impact === 'serious' || "
                     "impact === 'critical').map(({ id, nodes }) => "
                     "id + ': ' + nodes.map((node) => node.html).join(' '))", Browser),
    ?assertEqual({What, []}, {What, Found}).

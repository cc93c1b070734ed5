%% SPDX-License-Identifier: Apache-2.0
%% @doc Keeps a set of wanted neighbours connected: dials, waits with backoff, dials again, for
%% ever.
%%
%% Pure part of a core, shared by all topologies. The owner says which nodes it wants, passes on
%% `neighbour_up', `neighbour_down' and the timers of this module, and carries out the effects.
%%
%% The first attempt comes within `retry_min_ms', or within 2 ms for each wanted node if that is
%% longer: a node does not dial all nodes of a large cluster at once, and not all of them dial at
%% once a node that joins.
%% The n-th attempt in a row waits up to `retry_min_ms * 2^n', at most `retry_max_ms'. The time is
%% drawn from the upper half of that span so that nodes that failed together do not dial together.
%% There is no last attempt, so a partition longer than any timeout heals by itself. An attempt
%% without an answer counts as failed after `connect_timeout_ms'.
-module(weft_wanted_links).

-export([new/2, want/2, expect/2, unwant/2, rest/1, up/2, down/2, timer/2,
         wanted/1, linked/1, is_linked/2]).
-export_type([links/0, timer/0]).

-record(links, {
    %% Wanted nodes: attempts since the link was last up, and the token of the timer that is valid.
    wanted = #{} :: #{weft_core:node_id() => {Attempts :: non_neg_integer(), token()}},
    %% Every neighbour with a link, wanted or not.
    up = #{} :: #{weft_core:node_id() => []},
    next_token = 1 :: token(),
    rand :: rand:state(),
    retry_min_ms :: pos_integer(),
    retry_max_ms :: pos_integer(),
    connect_timeout_ms :: pos_integer(),
    head_start_ms :: non_neg_integer()}).

-define(DIAL_MS, 2).

-opaque links() :: #links{}.
-type token() :: pos_integer().
-type timer() :: {dial | dial_timeout, weft_core:node_id(), token()}.
-type result() :: {links(), weft_core:effects()}.

%% @doc Nothing wanted yet. Options: `retry_min_ms' (100), `retry_max_ms' (5000),
%% `connect_timeout_ms' (10000), `head_start_ms' (1000).
-spec new(weft_core:node_id(), weft_core:options()) -> links().
new(Self, Options) ->
    #links{rand = weft_core:seed(Self, ?MODULE, Options),
           retry_min_ms = maps:get(retry_min_ms, Options, 100),
           retry_max_ms = maps:get(retry_max_ms, Options, 5000),
           connect_timeout_ms = maps:get(connect_timeout_ms, Options, 10000),
           head_start_ms = maps:get(head_start_ms, Options, 1000)}.

%% @doc From now on Node is to be connected. If its link is up already, `connect' is sent all the
%% same, so that the layer below keeps the link.
-spec want(weft_core:node_id(), links()) -> result().
want(Node, #links{wanted = Wanted} = Links) when is_map_key(Node, Wanted) ->
    {Links, []};
want(Node, #links{up = Up} = Links) when is_map_key(Node, Up) ->
    {remember(Node, 0, Links), [{connect, Node}]};
want(Node, Links) ->
    dial_later(Node, 0, Links).

%% @doc As `want/2', but Node wants the link too and is the one to dial. It gets `head_start_ms'
%% more time before this node dials. If both ends dial, one of the two connections is closed again,
%% and what was sent on it starts again.
-spec expect(weft_core:node_id(), links()) -> result().
expect(Node, #links{wanted = Wanted, up = Up, head_start_ms = HeadStartMs} = Links0)
  when not is_map_key(Node, Wanted), not is_map_key(Node, Up) ->
    {Links, [{after_ms, DelayMs, Dial}]} = dial_later(Node, 0, Links0),
    {Links, [{after_ms, HeadStartMs + DelayMs, Dial}]};
expect(Node, Links) ->
    want(Node, Links).

%% @doc Node is not wanted any more: its link is given up, and a dial in progress is forgotten.
-spec unwant(weft_core:node_id(), links()) -> result().
unwant(Node, #links{wanted = Wanted, up = Up} = Links)
  when is_map_key(Node, Wanted); is_map_key(Node, Up) ->
    {Links#links{wanted = maps:remove(Node, Wanted)}, [{disconnect, Node}]};
unwant(_Node, Links) ->
    {Links, []}.

%% @doc Nothing is wanted any more, but links that are up stay for now.
-spec rest(links()) -> links().
rest(Links) ->
    Links#links{wanted = #{}}.

%% @doc A link came up, whichever side dialled.
-spec up(weft_core:node_id(), links()) -> links().
up(Node, #links{wanted = Wanted, up = Up} = Links0) ->
    Links = Links0#links{up = Up#{Node => []}},
    case Wanted of
        #{Node := _} -> remember(Node, 0, Links);
        #{} -> Links
    end.

%% @doc A link went down or an attempt failed.
-spec down(weft_core:node_id(), links()) -> result().
down(Node, #links{wanted = Wanted, up = Up} = Links0) ->
    Links = Links0#links{up = maps:remove(Node, Up)},
    case Wanted of
        #{Node := {Attempts, _}} -> dial_later(Node, Attempts, Links);
        #{} -> {Links, []}
    end.

%% @doc One of our timers fired. Stale ones do nothing.
-spec timer(timer(), links()) -> result().
timer({Kind, Node, Token}, #links{wanted = Wanted} = Links) ->
    case Wanted of
        #{Node := {Attempts, Token}} when Kind =:= dial -> dial(Node, Attempts, Links);
        #{Node := {Attempts, Token}} -> dial_later(Node, Attempts, Links);
        #{} -> {Links, []}
    end.

%% @doc The nodes we want to be connected to, in term order.
-spec wanted(links()) -> [weft_core:node_id()].
wanted(#links{wanted = Wanted}) ->
    lists:sort(maps:keys(Wanted)).

%% @doc The nodes with a link, in term order.
-spec linked(links()) -> [weft_core:node_id()].
linked(#links{up = Up}) ->
    lists:sort(maps:keys(Up)).

%% @doc Whether a link to Node is up.
-spec is_linked(weft_core:node_id(), links()) -> boolean().
is_linked(Node, #links{up = Up}) ->
    is_map_key(Node, Up).

dial(Node, Attempts, #links{next_token = Token, connect_timeout_ms = Ms} = Links) ->
    {remember(Node, Attempts, Links),
     [{connect, Node}, {after_ms, Ms, {dial_timeout, Node, Token}}]}.

dial_later(Node, Attempts, #links{next_token = Token} = Links0) ->
    {DelayMs, Links} = backoff_ms(Attempts, Links0),
    {remember(Node, Attempts + 1, Links), [{after_ms, DelayMs, {dial, Node, Token}}]}.

%% A new token each time makes every earlier timer of this node stale.
remember(Node, Attempts, #links{wanted = Wanted, next_token = Token} = Links) ->
    Links#links{wanted = Wanted#{Node => {Attempts, Token}}, next_token = Token + 1}.

%% The first dial after start or loss is spread over a time: usually both ends want the link, and
%% one of them should be first.
backoff_ms(0, #links{retry_min_ms = MinMs, wanted = Wanted} = Links) ->
    draw(0, max(MinMs, ?DIAL_MS * map_size(Wanted)), Links);
backoff_ms(Attempts, #links{retry_min_ms = MinMs, retry_max_ms = MaxMs} = Links) ->
    SpanMs = min(MaxMs, MinMs bsl min(Attempts, 20)),
    draw(SpanMs div 2, SpanMs, Links).

draw(FromMs, ToMs, #links{rand = Rand0} = Links) ->
    {N, Rand} = rand:uniform_s(ToMs - FromMs + 1, Rand0),
    {FromMs + N - 1, Links#links{rand = Rand}}.

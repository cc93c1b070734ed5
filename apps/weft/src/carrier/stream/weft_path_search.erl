%% SPDX-License-Identifier: Apache-2.0
%% @doc One end of a stream looks for a path to the other: when it asks for one, how long it waits
%% for an answer, what of a refusal passes, and when it gives up.
%%
%% Pure; a value in the state of `weft_stream_core', which says what becomes of the path and passes
%% on what this module wants done. Times are in microseconds. Links are terms that are not looked
%% into.
%%
%% The end that began the stream asks, the other end waits until it is asked. For an attempt this
%% end finds the link that leads to the peer now, and has it open a circuit; the link says under
%% which label it does so. Then the peer accepts (`found/3'), somebody refuses (`failed/4'), or
%% nobody answers. After a refusal there is a pause, each time twice as long. Without an answer the
%% attempt is dropped and the next one made. The second one has the same time, as an answer may be
%% lost or late for once; those after it have more and more: the round trip may be longer. What was
%% enough is remembered, until it is much too long.
%%
%% Somebody waits for the first path. So that search ends as soon as an attempt fails for a reason
%% that will not pass, and its owner is told. The search after a path was lost (`lost/2', `again/3')
%% goes on until it is given up, which is the end of the stream. Where there is a path, but a link
%% comes up that leads to the peer, this end asks for a better one; the path stays until that one is
%% accepted. The link may have come up while an attempt over another one was under way, so it is
%% looked at once more when there is a path.
%%
%% Timers are never cancelled. Each carries a token, and only the last one of its kind means
%% anything, until a path is found.
%%
%% Races: an answer to an earlier attempt has another label than the present one (`concerns/3'). A
%% link that was asked before the present one may name its label late: nobody waits for that circuit
%% any more, so it is dropped. A link that is down when it is asked is to say when it has come up,
%% and is asked anew then: by that time the stream may have begun over another one, with an
%% incarnation of the peer that is over now, and must not begin again (`new'). A refusal may come
%% before the link has named a label, and then has none either. The timer of an attempt to find a
%% better path may come after that path was found, or refused: it means nothing while there is a
%% path.
%%
%% Not here: which link leads to the peer, what is repeated on a path, and whose word ends a stream.
-module(weft_path_search).

-export([new/1, first/2, stop/1, handle/2, concerns/3, failed/4, found/3, lost/2, again/3,
         await_return/2, is_lost_since/2, last_ms/1, restored/1, route_timeout_ms/0,
         code_change/1]).
-export_type([search/0, event/0, effect/0, limits/0]).

%% An opened path that is not answered in this time is given up for another try: at first, and at
%% last. Two of the longest, and all before them, are about as long as the kernel's ticks wait.
-define(OPEN_MIN_MS, 3000).
-define(OPEN_MAX_MS, 24000).
%% A first search goes on for so long while there is no route, or one over a node that is
%% overloaded.
-define(ROUTE_TIMEOUT_MS, 1500).
%% A peer that has left one neighbour is back over another one by then.
-define(RETURN_MS, 500).
-define(BACKOFF_MIN_MS, 10).
-define(BACKOFF_MAX_MS, 250).

-type link() :: term().
-type label() :: weft_wire:label().
-type token() :: pos_integer().

-type event() ::
        %% The answer to the effect find_link.
        {link, open | {move, link()}, {ok, link(), IsUp :: boolean()} | {error, Reason :: term()}}
        %% That link has asked the peer for a circuit, under this label.
      | {opening, link(), label()}
        %% That link was down when it was asked, and has come up.
      | {up, link()}
        %% That link has come up, and leads to the peer.
      | {available, link()}
        %% A pause is over, or the time for an answer.
      | {retry, token()}
      | {give_up, token()}.

-type effect() ::
        %% Look for the link that leads to the peer now; the answer is an event, at once.
        {find_link, open | {move, link()}}
        %% If the link to the peer itself is up, the answer is the event available, at once.
      | find_direct
      | {watch, link()}
        %% Ask that link for a circuit, and to forget one. What was received is said with it.
      | {open, link(), new | resume}
      | {drop, link(), label()}
        %% The first attempt has failed, before anybody waits: come back and say so (`failed/4').
      | {again, Reason :: term()}
        %% The kernel's ticker is to see a peer that is alive, until there is a path.
      | {keep_alive, true}
      | {after_ms, pos_integer(), {retry | give_up, token()} | {return_is_due, node(), integer()}}.

%% How long to look for another path.
-type limits() :: #{resume_timeout_ms := auto | pos_integer(), net_ticktime_ms := pos_integer(),
                    atom() => term()}.

-record(search, {%% Is it for this end to ask?
                 asks :: boolean(),
                 %% new: nobody waits for a path yet, or any more. first, lost: since when one is
                 %% looked for. found: the link of the path.
                 stage = new :: new | {first | lost, SinceUs :: integer()} | {found, link()},
                 %% What waits for an answer; `none' until the link has named a label.
                 attempt :: {link(), label() | none} | undefined,
                 backoff_ms = ?BACKOFF_MIN_MS :: pos_integer(),
                 last_token = 0 :: non_neg_integer(),
                 retry :: token() | undefined,
                 give_up :: token() | undefined,
                 last_ms :: non_neg_integer() | undefined,
                 %% How long an attempt waits for an answer, and has one done so in vain?
                 open_ms = ?OPEN_MIN_MS :: pos_integer(),
                 is_repeated = false :: boolean()}).
-opaque search() :: #search{}.

%% --- begin and end ----------------------------------------------------------------------------

%% @doc Nothing is looked for yet. The end that began the stream is the one that asks.
-spec new(initiator | acceptor) -> search().
new(Role) -> #search{asks = Role =:= initiator}.

%% @doc Begins to look for the first path.
-spec first(NowUs :: integer(), search()) -> {search(), [effect()]}.
first(NowUs, Search) -> ask(Search#search{stage = {first, NowUs}}).

%% @doc No path is asked for any more.
-spec stop(search()) -> search().
stop(Search) -> Search#search{asks = false}.

%% --- asking -----------------------------------------------------------------------------------

%% @doc What an event means for the search, and what is to be done. An event that means nothing
%% (now) changes nothing. The stream has ended when the search is given up.
-spec handle(event(), search()) -> {ok | ended, search(), [effect()]}.
handle({link, open, {ok, Link, IsUp}}, Search) ->
    ok(open(Link, IsUp, Search#search{attempt = undefined}));
handle({link, open, {error, Reason}}, Search) ->
    ok(no_link(Reason, Search));
handle({link, {move, Link}, {ok, Link, true}}, Search) ->
    ok(ask(Search));
handle({opening, Link, Label}, #search{attempt = {Link, Earlier}, open_ms = OpenMs} = Search) ->
    {Waiting, Timer} = retry_after(OpenMs, Search#search{attempt = {Link, Label}}),
    {ok, Waiting, dropped({Link, Earlier}) ++ Timer};
handle({opening, Link, Label}, Search) ->
    {ok, Search, dropped({Link, Label})};
%% It may have asked another one since then, and with another mode: what it asks for now counts.
handle({up, Link}, #search{attempt = {Link, none}} = Search) ->
    ok(ask(Search));
handle({up, Link}, Search) ->
    handle({available, Link}, Search);
handle({available, Link}, #search{asks = true, stage = {found, Other}} = Search)
  when Other =/= Link ->
    {ok, Search, [{find_link, {move, Link}}]};
handle({retry, _Token}, #search{stage = {found, _}} = Search) ->
    {ok, Search, []};
handle({retry, Token}, #search{retry = Token} = Search) ->
    ok(ask(unanswered(Search#search{retry = undefined})));
handle({give_up, Token}, #search{give_up = Token} = Search) ->
    {ended, Search, []};
handle(_Event, Search) ->
    {ok, Search, []}.

ok({Search, Effects}) -> {ok, Search, Effects}.

%% After a pause there is no attempt. A link that has named no label has not asked anybody.
unanswered(#search{attempt = undefined} = Search) -> Search;
unanswered(#search{attempt = {_Link, none}} = Search) -> Search;
unanswered(#search{is_repeated = false} = Search) -> Search#search{is_repeated = true};
unanswered(#search{open_ms = OpenMs} = Search) ->
    Search#search{open_ms = min(?OPEN_MAX_MS, 2 * OpenMs)}.

%% Instead of an attempt that is under way.
ask(#search{asks = false} = Search) ->
    {Search, []};
ask(#search{attempt = Attempt} = Search) ->
    {Search#search{attempt = undefined}, dropped(Attempt) ++ [{find_link, open}]}.

dropped({Link, Label}) when Label =/= none -> [{drop, Link, Label}];
dropped(_NoLabel) -> [].

%% A stream that had a path is known to the peer. While there is none, the link that was asked for
%% one is watched.
open(Link, IsUp, #search{stage = Stage} = Search0) ->
    {Search, Timer} = wait(IsUp, Search0),
    {Search#search{attempt = {Link, none}},
     case Stage of
         {found, _} -> [{open, Link, resume} | Timer];
         {lost, _} -> [{watch, Link}, {open, Link, resume} | Timer];
         _NewOrFirst -> [{watch, Link}, {open, Link, new} | Timer]
     end}.

%% A link that is down says when it has come up; by then the router may know a way around.
wait(false, #search{stage = {found, _}} = Search) -> pause(Search);
wait(false, #search{stage = {lost, _}} = Search) -> pause(Search);
wait(_IsUp, #search{open_ms = OpenMs} = Search) -> retry_after(OpenMs, Search).

%% As for a refused path, if nobody can be told yet.
no_link(Reason, #search{stage = {first, _}} = Search) ->
    {Search#search{attempt = undefined}, [{again, Reason}]};
no_link(_Reason, Search) ->
    pause(Search).

pause(#search{backoff_ms = BackoffMs} = Search) ->
    retry_after(BackoffMs, Search#search{attempt = undefined,
                                         backoff_ms = min(?BACKOFF_MAX_MS, 2 * BackoffMs)}).

retry_after(DelayMs, Search0) ->
    {Token, Search} = token(Search0),
    {Search#search{retry = Token}, [{after_ms, DelayMs, {retry, Token}}]}.

token(#search{last_token = Last} = Search) -> {Last + 1, Search#search{last_token = Last + 1}}.

%% --- answers ----------------------------------------------------------------------------------

%% @doc Is what that link says of a label, or of `any', about the present attempt?
-spec concerns(link(), label() | any, search()) -> boolean().
concerns(Link, Label, #search{attempt = {Link, Opening}}) -> Label =:= Opening orelse Label =:= any;
concerns(_Link, Label, #search{attempt = undefined}) -> Label =:= any;
concerns(_Link, _Label, _Search) -> false.

%% @doc The attempt has failed. For a first search the outcome may be that there will be no path; a
%% later one goes on until it is given up. MayBeFound says that there is a route to the peer, or
%% there may be one soon.
-spec failed(Reason :: term(), MayBeFound :: boolean(), NowUs :: integer(), search()) ->
          {ok | {failed, Reason :: term()}, search(), [effect()]}.
failed(Reason, MayBeFound, NowUs, #search{stage = {first, SinceUs}} = Search) ->
    case is_passing(Reason, MayBeFound, NowUs - SinceUs) of
        true -> ok(pause(Search));
        false -> {{failed, Reason}, Search#search{stage = new}, []}
    end;
failed(_Reason, _MayBeFound, _NowUs, Search) ->
    ok(pause(Search)).

%% The reason says something about the path that was tried, not about the node. A link to a next hop
%% ends when that node is gone. If there is no route to a node that may exist, the attempt is
%% repeated for a moment: while neighbours change routes change as well, and a gateway may have none
%% while this node has one. So it is where a node of the path is overloaded: what waits there may be
%% sent soon, or the router finds another way.
is_passing(no_route, MayBeFound, TookUs) -> MayBeFound andalso TookUs < ?ROUTE_TIMEOUT_MS * 1000;
is_passing(overload, _, TookUs) -> TookUs < ?ROUTE_TIMEOUT_MS * 1000;
is_passing(broken, _, _) -> true;
is_passing({dial, simultaneous}, _, _) -> true;
is_passing({dial, overload}, _, _) -> true;
is_passing({link_process, _}, _, _) -> true;
is_passing(_, _, _) -> false.

%% @doc There is a path over that link. What timers and links say of the search for it means nothing
%% any more.
-spec found(link(), NowUs :: integer(), search()) -> {search(), [effect()]}.
found(Link, NowUs, #search{asks = Asks, stage = Stage, last_ms = LastMs} = Search) ->
    {Search#search{stage = {found, Link}, attempt = undefined, backoff_ms = ?BACKOFF_MIN_MS,
                   retry = undefined, give_up = undefined,
                   open_ms = enough_ms(NowUs, Search), is_repeated = false,
                   last_ms = case Stage of
                                 {lost, SinceUs} -> (NowUs - SinceUs) div 1000;
                                 _ -> LastMs
                             end},
     [find_direct || Asks]}.

%% If there were earlier attempts without an answer, they took as long as the last one had.
enough_ms(NowUs, #search{stage = {Looking, SinceUs}, open_ms = OpenMs})
  when Looking =:= first; Looking =:= lost ->
    min(OpenMs, max(?OPEN_MIN_MS, 2 * ((NowUs - SinceUs) div 1000)));
enough_ms(_NowUs, #search{open_ms = OpenMs}) ->
    OpenMs.

%% --- a path was lost --------------------------------------------------------------------------

%% @doc The path was lost now. Another one may be there at once, else look for it by `again/3'.
-spec lost(NowUs :: integer(), search()) -> search().
lost(NowUs, Search) -> Search#search{stage = {lost, NowUs}}.

%% @doc Looks for another path, for as long as these limits allow a stream of this kind. With `auto'
%% the kernel's ticks decide about a connection of the distribution, as on stock Erlang; no ticks
%% watch a channel.
-spec again(limits(), weft_wire:stream_kind(), search()) -> {search(), [effect()]}.
again(Limits, Kind, Search0) ->
    {Search1, Timer} = give_up_later(Limits, Kind, Search0),
    {Search, Asked} = ask(Search1),
    {Search, Timer ++ Asked}.

give_up_later(#{resume_timeout_ms := auto}, distribution, Search) ->
    {Search#search{give_up = undefined}, []};
give_up_later(#{resume_timeout_ms := auto, net_ticktime_ms := TimeoutMs}, _Channel, Search) ->
    give_up_after(TimeoutMs, [], Search);
give_up_later(#{resume_timeout_ms := TimeoutMs}, _Kind, Search) ->
    give_up_after(TimeoutMs, [{keep_alive, true}], Search).

give_up_after(TimeoutMs, Effects, Search0) ->
    {Token, Search} = token(Search0),
    {Search#search{give_up = Token}, Effects ++ [{after_ms, TimeoutMs, {give_up, Token}}]}.

%% @doc The peer has left a neighbour. A node that may be alive elsewhere gets a moment to be found
%% there.
-spec await_return(node(), search()) -> [effect()].
await_return(Node, Search) -> [{after_ms, ?RETURN_MS, {return_is_due, Node, lost_us(Search)}}].

%% @doc Is this still the search that began then?
-spec is_lost_since(SinceUs :: integer(), search()) -> boolean().
is_lost_since(SinceUs, Search) -> SinceUs =:= lost_us(Search).

lost_us(#search{stage = {lost, SinceUs}}) -> SinceUs;
lost_us(_Search) -> undefined.

%% --- what others see --------------------------------------------------------------------------

%% @doc How long it took to find the last path that took the place of another one.
-spec last_ms(search()) -> non_neg_integer() | undefined.
last_ms(#search{last_ms = LastMs}) -> LastMs.

%% @doc How long a first search goes on while there is no route.
-spec route_timeout_ms() -> pos_integer().
route_timeout_ms() -> ?ROUTE_TIMEOUT_MS.

%% @doc A search with that in its fields (`weft_stream_core:code_change/1').
-spec restored(#{asks | stage | attempt | backoff_ms | last_token | retry | give_up | last_ms :=
                     term()}) -> search().
restored(#{asks := Asks, stage := Stage, attempt := Attempt, backoff_ms := BackoffMs,
           last_token := Last, retry := Retry, give_up := GiveUp, last_ms := LastMs}) ->
    #search{asks = Asks, stage = Stage, attempt = Attempt, backoff_ms = BackoffMs,
            last_token = Last, retry = Retry, give_up = GiveUp, last_ms = LastMs}.

%% @doc The state as this version keeps it. Before, each attempt had the same time.
-spec code_change(search() | Before :: tuple()) -> search().
code_change(#search{} = Search) ->
    Search;
code_change({search, Asks, Stage, Attempt, BackoffMs, LastToken, Retry, GiveUp, LastMs}) ->
    #search{asks = Asks, stage = Stage, attempt = Attempt, backoff_ms = BackoffMs,
            last_token = LastToken, retry = Retry, give_up = GiveUp, last_ms = LastMs}.

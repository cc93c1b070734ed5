%% SPDX-License-Identifier: Apache-2.0
%% @doc The table of the links of this node, one row for each peer: the process of the link, and
%% what it publishes of itself. Links write their rows, the registry (`weft_links') adds and removes
%% rows, and any process reads.
-module(weft_link_table).

-export([new/0, owner/0, read/1, is_up/1, list/0, peers/1, publish/2, enter/2, take/2,
         subscribers/0, set_subscribers/2]).
-export_type([published/0]).

-define(TABLE, weft_links).

%% What a link process publishes: the lane for control messages when up, whether it is calling the
%% peer to bring it up, its token.
-type published() :: #{lane => weft_lane:lane(), is_calling => boolean(),
                       wanted => boolean(), is_released => boolean(), neighbour => boolean(),
                       token => binary(), incarnation => non_neg_integer(),
                       dialled_us => integer()}.
-type subscribers() :: [{weft_links:core(), pid()}].

%% @doc Makes the table, which belongs to the caller.
-spec new() -> ok.
new() ->
    ?TABLE = ets:new(?TABLE, [named_table, public, {read_concurrency, true}]),
    ok.

%% @doc The process that the table belongs to, if there is one now.
-spec owner() -> pid() | undefined.
owner() -> ets:info(?TABLE, owner).

%% @doc The link of a peer. Keys are tuples, because bare atoms of nodes that were created one after
%% another fall into the same buckets; a look-up among a thousand would take four times as long.
-spec read(weft_links:key()) -> {pid(), published()} | undefined.
read(Key) ->
    try ets:lookup(?TABLE, {Key}) of
        [{_, Pid, Published}] -> {Pid, Published};
        [] -> undefined
    catch
        error:badarg -> undefined
    end.

%% @doc Is there a link to this peer with at least one lane?
-spec is_up(weft_links:key()) -> boolean().
is_up(Key) ->
    case read(Key) of
        {_Pid, #{lane := _}} -> true;
        _ -> false
    end.

-spec list() -> [{weft_links:key(), pid()}].
list() ->
    try [{Key, Pid} || {{Key}, Pid, _} <- ets:tab2list(?TABLE)]
    catch error:badarg -> []
    end.

%% @doc Whose link that process is. Nothing is copied but the answer.
-spec peers(pid()) -> [weft_links:key()].
peers(Link) ->
    try lists:append(ets:match(?TABLE, {{'$1'}, Link, '_'}))
    catch error:badarg -> []
    end.

%% @doc A link process publishes its state.
-spec publish(weft_links:key(), published()) -> ok.
publish(Key, Published) ->
    try ets:update_element(?TABLE, {Key}, {3, Published}) of
        _IsThere -> ok
    catch
        %% The carrier ends, and this link in a moment.
        error:badarg -> ok
    end.

%% @doc Adds a link that was just started.
-spec enter(weft_links:key(), pid()) -> ok.
enter(Key, Pid) ->
    true = ets:insert(?TABLE, {{Key}, Pid, #{}}),
    ok.

%% @doc The process of a link has ended: removes its row and returns what it published last.
-spec take(weft_links:key(), pid()) -> [published()].
take(Key, Pid) ->
    [Published || {_, P, Published} <- ets:take(?TABLE, {Key}), P =:= Pid].

%% @doc What the registry has to know when it is started again. The row has a key that no link has.
-spec subscribers() -> {subscribers(), Admitting :: weft_links:core() | none}.
subscribers() ->
    case ets:lookup(?TABLE, subscribers) of
        [{subscribers, Subscribers, Admitting}] -> {Subscribers, Admitting};
        [] -> {[], none}
    end.

-spec set_subscribers(subscribers(), weft_links:core() | none) -> ok.
set_subscribers(Subscribers, Admitting) ->
    true = ets:insert(?TABLE, {subscribers, Subscribers, Admitting}),
    ok.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Has drivers restarted when all links have ended at once: the network was stopped
%% (`net_kernel:stop/0'), or the carrier had to be restarted.
%%
%% What the drivers know is no longer true then: their subscriptions, their neighbours, perhaps the
%% name of the node. So this process ends, once there can be links again, and its supervisor
%% restarts it and all children after it.
-module(weft_links_watch).
-behaviour(gen_server).

-export([child_spec/1, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LOOK_MS, 50).

-record(watch, {owner :: reference() | none | ended}).

%% @doc The first child of a supervisor with the strategy `rest_for_one', registered as Name.
-spec child_spec(Name :: atom()) -> supervisor:child_spec().
child_spec(Name) -> #{id => Name, start => {?MODULE, start_link, [Name]}}.

%% @private
-spec start_link(Name :: atom()) -> {ok, pid()} | {error, term()}.
start_link(Name) ->
    gen_server:start_link({local, Name}, ?MODULE, [], []).

%% @private Other links than those of this node's carrier have no owner.
init([]) ->
    {ok, #watch{owner = case weft_links:owner() of
                            undefined -> none;
                            Owner -> monitor(process, Owner)
                        end}}.

%% @private
handle_call(Request, _From, Watch) ->
    {reply, weft_stray:call(Request), Watch}.

%% @private
handle_cast(Request, Watch) ->
    ok = weft_stray:message(Request),
    {noreply, Watch}.

%% @private
-spec handle_info(term(), #watch{}) -> {noreply, #watch{}} | {stop, {shutdown, term()}, #watch{}}.
handle_info({'DOWN', Ref, process, _, _}, #watch{owner = Ref} = Watch) ->
    look(Watch#watch{owner = ended});
handle_info(look, #watch{owner = ended} = Watch) ->
    look(Watch);
handle_info(Message, Watch) ->
    ok = weft_stray:message(Message),
    {noreply, Watch}.

look(Watch) ->
    case is_alive() andalso weft_links:owner() =/= undefined of
        true ->
            {stop, {shutdown, links_began_anew}, Watch};
        false ->
            _ = erlang:send_after(?LOOK_MS, self(), look),
            {noreply, Watch}
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Processes whose ordinary messages (`!', calls, exits) have the priority class of a channel.
%%
%% Such a process is called pinned. It sends as before. The fair queue of each distribution
%% connection gives its frames the weight of the class (`weft_fair_queue_core'), and its small
%% frames are sent and delivered without waiting for frames of other processes
%% (`weft_bypass_queue'). A process is pinned until it ends. The configuration (`pins') can name
%% registered names: the process that has the name is pinned within a second. This server writes the
%% table of pinned processes; the table outlives it. Sessions read the table again when its version
%% has changed.
-module(weft_pins).
-behaviour(gen_server).

-export([new_table/0, start_link/0, pin/2, unpin/1, class/1, version/0, classes/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(PINS_MAX, 4096).
-define(LOOK_MS, 1000).

-record(pins, {rules :: #{Name :: atom() => Channel :: atom()},
               named = #{} :: #{Name :: atom() => pid()},
               monitors = #{} :: #{pid() => reference()}}).

%% @doc Makes the table, which belongs to the caller.
-spec new_table() -> ok.
new_table() ->
    ?MODULE = ets:new(?MODULE, [named_table, public, {read_concurrency, true}]),
    persistent_term:get(?MODULE, none) =/= none
        orelse persistent_term:put(?MODULE, counters:new(1, [])),
    _ = changed(none),
    ok.

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Gives the messages of a process of this node the class of a channel, until it ends.
-spec pin(pid(), Channel :: atom()) ->
          ok | {error, {unknown_channel, atom(), Known :: [atom()]} | {too_many_pins, pos_integer()}
                       | {bad_channels, Text :: string()} | noproc}.
pin(Pid, Channel) when is_pid(Pid), node(Pid) =:= node(), is_atom(Channel) ->
    gen_server:call(?MODULE, {pin, Pid, Channel}).

%% @doc The process is like all others again, unless a rule of the configuration says otherwise.
-spec unpin(pid()) -> ok.
unpin(Pid) when is_pid(Pid) -> gen_server:call(?MODULE, {unpin, Pid}).

%% @doc The class of a process.
-spec class(pid()) -> weft_channel_options:class().
class(Pid) ->
    case ets:lookup(?MODULE, Pid) of
        [{_, _Key, Class}] -> Class;
        [] -> default
    end.

%% @doc A number that changes when pins change; cheap to read.
-spec version() -> integer().
version() ->
    case persistent_term:get(?MODULE, undefined) of
        undefined -> 0;
        Version -> counters:get(Version, 1)
    end.

%% @doc The classes of all pinned processes, by the keys of their frames.
-spec classes() -> weft_fair_queue_core:classes().
classes() ->
    maps:from_list([{Key, Class} || {_Pid, Key, Class} <- ets:tab2list(?MODULE)]).

%% @private
init([]) ->
    Found = lists:foldl(fun({Pid, _, _}, Pins) -> watch(Pid, Pins) end,
                        #pins{rules = weft_config:get(pins)}, ets:tab2list(?MODULE)),
    {ok, look(Found)}.

%% @private
handle_call({pin, Pid, Channel}, _From, Pins0) ->
    {Result, Pins} = set(Pid, Channel, Pins0),
    {reply, Result, Pins};
handle_call({unpin, Pid}, _From, Pins) ->
    {reply, ok, remove(Pid, Pins)};
handle_call(Request, _From, Pins) ->
    {reply, weft_stray:call(Request), Pins}.

%% @private
handle_cast(Request, Pins) ->
    ok = weft_stray:message(Request),
    {noreply, Pins}.

%% @private
handle_info(look, Pins) ->
    {noreply, look(Pins)};
handle_info({'DOWN', _Ref, process, Pid, _Reason}, Pins) ->
    {noreply, remove(Pid, Pins)};
handle_info(Message, Pins) ->
    ok = weft_stray:message(Message),
    {noreply, Pins}.

%% Looks at intervals, because the VM does not tell when a name is given to a process.
look(#pins{rules = Rules} = Pins) when not is_map(Rules); map_size(Rules) =:= 0 ->
    Pins;
look(#pins{rules = Rules} = Pins) ->
    _ = erlang:send_after(?LOOK_MS, self(), look),
    maps:fold(fun look/3, Pins, Rules).

look(Name, Channel, #pins{named = Named} = Pins0) ->
    case {whereis(Name), Named} of
        {undefined, _} ->
            Pins0;
        {Pid, #{Name := Pid}} ->
            Pins0;
        {Pid, _} ->
            {_, Pins} = set(Pid, Channel, Pins0),
            Pins#pins{named = Named#{Name => Pid}}
    end.

set(Pid, Channel, Pins) ->
    set(Pid, Channel, weft_config:get(channels), Pins).

%% The configuration is checked when the node starts, but can be changed later.
set(Pid, Channel, Configured, Pins) ->
    case weft_channel_options:check(Configured, #{}) of
        [] -> set_one(Pid, Channel, weft_channel_options:all(Configured), Pins);
        Texts -> {{error, {bad_channels, unicode:characters_to_list(hd(Texts))}}, Pins}
    end.

set_one(Pid, Channel, Channels, #pins{monitors = Monitors} = Pins) ->
    case {Channels, is_process_alive(Pid)} of
        {#{Channel := _}, false} ->
            {{error, noproc}, Pins};
        {#{Channel := _}, true} when map_size(Monitors) >= ?PINS_MAX,
                                     not is_map_key(Pid, Monitors) ->
            {{error, {too_many_pins, ?PINS_MAX}}, Pins};
        {#{Channel := #{class := Class}}, true} ->
            true = ets:insert(?MODULE, {Pid, weft_frame:key(Pid), Class}),
            {ok, changed(watch(Pid, Pins))};
        {#{}, _} ->
            {{error, {unknown_channel, Channel, lists:sort(maps:keys(Channels))}}, Pins}
    end.

watch(Pid, #pins{monitors = Monitors} = Pins) when is_map_key(Pid, Monitors) ->
    Pins;
watch(Pid, #pins{monitors = Monitors} = Pins) ->
    Pins#pins{monitors = Monitors#{Pid => erlang:monitor(process, Pid)}}.

remove(Pid, #pins{monitors = Monitors} = Pins) ->
    case maps:take(Pid, Monitors) of
        {Ref, Rest} ->
            true = erlang:demonitor(Ref, [flush]),
            true = ets:delete(?MODULE, Pid),
            changed(Pins#pins{monitors = Rest});
        error ->
            Pins
    end.

changed(Pins) ->
    counters:add(persistent_term:get(?MODULE), 1, 1),
    Pins.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Gives what this node sees of itself, and its alarms as an agent, to the library telemetry if
%% that is on the node. The events are in docs/guide/alarms.md.
%%
%% Handlers of telemetry run in the process that gives the event. So they run in this one, which
%% nobody waits for: a handler that takes long delays the events after it, and when too many wait
%% the newest are left out. A handler that fails is detached by the library, which is no dependency.
-module(weft_ops_telemetry).
-behaviour(gen_server).

-export([start_link/0, sample/2, alarm/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(WAITING_MAX, 1000).

-spec start_link() -> {ok, pid()} | ignore | {error, term()}.
start_link() ->
    case code:ensure_loaded(telemetry) of
        {module, telemetry} -> gen_server:start_link({local, ?MODULE}, ?MODULE, telemetry, []);
        {error, _} -> ignore
    end.

%% @doc The sample of a period, and what has changed since the one before.
-spec sample(weft_ops_sample:sample() | none, weft_ops_sample:sample()) -> ok.
sample(Before, Sample) -> give({sample, Before, Sample}).

%% @doc What happened to an alarm.
-spec alarm({raised | acknowledged | cleared, weft_ops_alarms_core:alarm()}) -> ok.
alarm(Event) -> give({alarm, Event, erlang:system_time()}).

give(What) ->
    case whereis(?MODULE) of
        undefined ->
            ok;
        Pid ->
            case process_info(Pid, message_queue_len) of
                {message_queue_len, Waiting} when Waiting < ?WAITING_MAX ->
                    gen_server:cast(Pid, What);
                _FullOrEnded ->
                    ok
            end
    end.

%% @private
-spec init(module()) -> {ok, module()}.
init(Library) -> {ok, Library}.

%% @private
-spec handle_call(term(), gen_server:from(), module()) -> {reply, term(), module()}.
handle_call(Request, _From, Library) ->
    {reply, weft_stray:call(Request), Library}.

%% @private
-spec handle_cast(term(), module()) -> {noreply, module()}.
handle_cast({sample, Before, Sample}, Library) ->
    ok = Library:execute([weft, node, sample], measured(Sample), maps:with([node, groups], Sample)),
    Events = case Before of
                 none -> [];
                 _ -> weft_ops_events:sample(Before, Sample)
             end,
    _ = [Library:execute(Name, #{system_time => native(AtMs)},
                         maps:with([node, about, text], Event))
         || #{kind := Kind, at_ms := AtMs} = Event <- Events, Name <- name(Kind)],
    {noreply, Library};
handle_cast({alarm, {What, Alarm}, AtNative}, Library) ->
    #{id := {Kind, Node, About}} = Alarm,
    ok = Library:execute([weft, alarm, What], #{system_time => AtNative},
                         (maps:with([severity, text, acknowledged], Alarm))
                             #{kind => Kind, node => Node, about => About}),
    {noreply, Library};
handle_cast(Request, Library) ->
    ok = weft_stray:message(Request),
    {noreply, Library}.

%% @private
-spec handle_info(term(), module()) -> {noreply, module()}.
handle_info(Message, Library) ->
    ok = weft_stray:message(Message),
    {noreply, Library}.

native(AtMs) -> erlang:convert_time_unit(AtMs, millisecond, native).

measured(#{peers := Peers, links := Links, machine := Machine} = Sample) ->
    Sums = [{Key, lists:sum([maps:get(Key, Peer) || Peer <- Peers])}
            || Key <- [bytes_in, bytes_out, resumes, reroutes, queued_bytes, suspended]],
    maps:merge(maps:merge(maps:with([period_ms, relayed_bytes, relayed_circuits], Sample), Machine),
               (maps:from_list(Sums))#{sessions => length(Peers), links => length(Links)}).

name(session_up) -> [[weft, session, up]];
name(session_down) -> [[weft, session, down]];
name(resumed) -> [[weft, session, resumed]];
name(rerouted) -> [[weft, session, rerouted]];
name(link_up) -> [[weft, link, up]];
name(link_down) -> [[weft, link, down]];
name(link_flapped) -> [[weft, link, flapped]];
name(cut) -> [[weft, link, cut]];
name(healed) -> [[weft, link, healed]];
name(groups_changed) -> [[weft, groups, changed]];
name(name_conflict) -> [[weft, name, conflict]];
name(told) -> [[weft, told]];
name(_OfOthers) -> [].

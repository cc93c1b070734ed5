%% SPDX-License-Identifier: Apache-2.0
%% @doc Tells what happens to an alarm: the log, the webhook if there is one, and handlers of
%% telemetry.
-module(weft_ops_tell).

-include_lib("kernel/include/logger.hrl").

-export([alarm/1]).

%% @doc An alarm was raised, acknowledged or cleared. The log has no acknowledgements.
-spec alarm({raised | acknowledged | cleared, weft_ops_alarms_core:alarm()}) -> ok.
alarm(Event) ->
    ok = log(Event),
    ok = weft_ops_webhook:tell(Event),
    weft_ops_telemetry:alarm(Event).

log({raised, #{severity := critical} = Alarm}) -> ?LOG_ERROR("~ts", [words("", Alarm)]);
log({raised, #{severity := warning} = Alarm}) -> ?LOG_WARNING("~ts", [words("", Alarm)]);
log({raised, #{severity := note} = Alarm}) -> ?LOG_NOTICE("~ts", [words("", Alarm)]);
log({cleared, Alarm}) -> ?LOG_NOTICE("~ts", [words("over: ", Alarm)]);
log({acknowledged, _Alarm}) -> ok.

words(Over, #{id := {Kind, Node, _About}, text := Text}) ->
    io_lib:format("~ts~ts on ~ts: ~ts", [Over, Kind, Node, Text]).

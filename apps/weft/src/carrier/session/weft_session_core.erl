%% SPDX-License-Identifier: Apache-2.0
%% @doc The rules of a session: when it has nothing to do.
%%
%% Pure. `weft_session' asks them for real sessions, the simulator for simulated ones. They say
%% nothing of paths: a stream has rules of its own (`weft_stream_core').
-module(weft_session_core).

-export([may_rest/2]).

%% @doc May its stream rest (`weft_stream_core:rest/2'), so that it is not asked at the next tick of
%% the ticker? Not while there is something to do, and not while something waits in the queue.
-spec may_rest(IsReady :: boolean(), QueuedBytes :: non_neg_integer()) -> boolean().
may_rest(IsReady, QueuedBytes) ->
    not IsReady andalso QueuedBytes =:= 0.

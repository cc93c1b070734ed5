%% SPDX-License-Identifier: Apache-2.0
%% @doc How much people would say if each of their messages was heard at once: what they type, of
%% which a service can deliver no more. Pure.
%%
%% Half of them begin conversations, one after the other, as in `weft_im_traffic': whoever has heard
%% a message types the next one, and when a conversation is over its first speaker begins the next.
-module(weft_im_demand).

-export([typed_per_min/1]).

%% @doc Messages per minute, in the time that is measured: `run_ms' after `warm_up_ms'.
-spec typed_per_min(weft_im:settings()) -> float().
typed_per_min(#{count := Count, warm_up_ms := WarmUpMs, run_ms := RunMs} = Settings) ->
    Window = {WarmUpMs, WarmUpMs + RunMs},
    Messages = lists:sum([said(Client, 0, 0, Window, Settings)
                          || Client <- lists:seq(1, max(1, Count div 2))]),
    60000 * Messages / RunMs.

%% Of the conversations of a client from the K-th on, which begins at that time.
said(_Client, _K, AtMs, {_FromMs, ToMs}, _Settings) when AtMs >= ToMs ->
    0;
said(Client, K, AtMs, Window, #{seed := Seed, scale := Scale, count := Count} = Settings) ->
    Partner = weft_im_script:partner(Seed, Client, K, Count),
    Conversation = {weft_im_traffic:name(Client), weft_im_traffic:name(Partner), K},
    Script = weft_im_script:new(Seed, Conversation, Scale),
    {Said, EndMs} = typed(1, weft_im_script:steps(Script), AtMs, {0, Window}, Script),
    Said + said(Client, K + 1, EndMs, Window, Settings).

%% The first message is said as soon as the conversation begins.
typed(Index, Steps, AtMs, {Said, {FromMs, ToMs} = Window}, Script) ->
    Now = case FromMs =< AtMs andalso AtMs < ToMs of
              true -> Said + 1;
              false -> Said
          end,
    case Index of
        Steps -> {Now, AtMs};
        _ ->
            {_, TypingMs} = weft_im_script:line(Index + 1, Script),
            typed(Index + 1, Steps, AtMs + TypingMs, {Now, Window}, Script)
    end.

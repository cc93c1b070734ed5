%% SPDX-License-Identifier: Apache-2.0
%% The state of the owner's half of a strong scope (weft_names_strong_owner), for the modules that
%% work on a part of it.

-define(HOLDINGS, weft_names_strong_holdings).
-define(REQUESTS, weft_names_strong_requests).
-define(REMOVAL, weft_names_strong_removal).
%% Clocks may begin far below 0.
-define(LONG_AGO_MS, -(1 bsl 58)).

-type env() :: #{now_ms := integer(), self := node(), scope := term(),
                 incarnation := non_neg_integer(),
                 up := #{node() => term()}, places := #{non_neg_integer() => [node()]},
                 options := weft_names_strong_options:options()}.
%% `places': the nodes with the replicas of each partition.

-record(part, {count = 0 :: non_neg_integer(),
               lease = 0 :: non_neg_integer(),
               until_ms = ?LONG_AGO_MS :: integer(),
               renewed_ms = ?LONG_AGO_MS :: integer(),
               %% The renewal in progress: its number and when it was sent.
               renewal = none :: none | {integer(), Ms :: integer()}}).

-record(owner, {parts = #{} :: #{non_neg_integer() => #part{}},
                routes = weft_names_strong_route:new() :: weft_names_strong_route:routes(),
                requests = ?REQUESTS:new() :: ?REQUESTS:requests(),
                holdings = ?HOLDINGS:new() :: ?HOLDINGS:holdings(),
                removals = ?REMOVAL:new() :: ?REMOVAL:removals(),
                cache = weft_names_strong_cache:new() :: weft_names_strong_cache:cache(),
                %% Effects, newest first.
                out = [] :: [term()]}).

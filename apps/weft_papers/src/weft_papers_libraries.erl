%% SPDX-License-Identifier: Apache-2.0
%% @doc Libraries that some figures and commands need, where RabbitMQ's package of Debian and Ubuntu
%% brings them: off the code path. Version 4 of it also has Khepri and what that needs. Elsewhere
%% rebar3 has fetched those that weft depends on.
-module(weft_papers_libraries).

-export([add/0, add/1]).

-define(PLUGINS, "/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins").
%% Only these: other plugins shadow common names.
-define(NAMES, "{prometheus,quantile_estimator,ddskerl,cowboy,cowlib,ranch,"
               "khepri,ra,horus,gen_batch_server,aten,seshat}-*/ebin").

%% @doc Puts those that are installed at the end of the code path, so others come before them.
-spec add() -> ok.
add() -> add(?PLUGINS).

%% @private
-spec add(Plugins :: file:filename()) -> ok.
add(Plugins) -> code:add_pathsz(filelib:wildcard(filename:join(Plugins, ?NAMES))).

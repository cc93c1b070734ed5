%% SPDX-License-Identifier: Apache-2.0
%% @doc Log events of a node under test, kept for a test to read: a logger handler.
-module(weft_hostile_log).

-export([install/0, take/0, log/2]).

-define(TABLE, weft_hostile_log).

%% @doc Keeps all events from level notice on, from now, and forgets those before.
-spec install() -> ok.
install() ->
    case ets:whereis(?TABLE) of
        undefined -> begin_log();
        _ -> true = ets:delete_all_objects(?TABLE), ok
    end.

begin_log() ->
    Installer = self(),
    Ref = make_ref(),
    spawn(fun() ->
                  ?TABLE = ets:new(?TABLE, [named_table, public, ordered_set]),
                  Installer ! Ref,
                  receive stop -> ok end
          end),
    receive Ref -> ok end,
    ok = logger:add_handler(?MODULE, ?MODULE, #{level => notice}).

%% @doc The events since the last call, oldest first: {Level, Report or text, Text}.
-spec take() -> [{logger:level(), term(), string()}].
take() ->
    _ = sys:get_state(weft_refusals),
    Events = ets:tab2list(?TABLE),
    [ets:delete(?TABLE, Key) || {Key, _, _, _} <- Events],
    [{Level, What, Text} || {_, Level, What, Text} <- Events].

%% @private
-spec log(logger:log_event(), logger:handler_config()) -> ok.
log(#{level := Level, msg := Message} = Event, _Config) ->
    What = case Message of
               {report, Report} -> Report;
               _ -> text
           end,
    Formatter = #{single_line => true, template => [msg]},
    Text = unicode:characters_to_list(logger_formatter:format(Event, Formatter)),
    true = ets:insert(?TABLE, {erlang:unique_integer([monotonic]), Level, What, Text}),
    ok.

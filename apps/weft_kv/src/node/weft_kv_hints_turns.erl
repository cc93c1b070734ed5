%% SPDX-License-Identifier: Apache-2.0
%% @doc Of the partitions of this node, at most two at a time bring hints to the same other node, as
%% many as are handed over at a time. The others do so later. A node that does not answer keeps no
%% turn from those that do. A table has who brings them: no process is shared, and one that was
%% killed keeps nobody out.
-module(weft_kv_hints_turns).

-export([new/0, in_turn/2]).

-define(AT_A_TIME, 2).

%% @doc Nobody brings any. The table ends with the calling process.
-spec new() -> ok.
new() ->
    _ = ets:new(?MODULE, [named_table, public]),
    ok.

%% @doc Calls the fun, unless others bring hints to this node.
-spec in_turn(node(), fun(() -> term())) -> ok.
in_turn(Owner, Bring) ->
    case turn(Owner, ?AT_A_TIME) of
        none -> ok;
        Turn ->
            _ = try Bring() after left(Turn) end,
            ok
    end.

turn(_Owner, 0) -> none;
turn(Owner, Number) ->
    Turn = {{Owner, Number}, self()},
    try taken(Turn) of
        true -> Turn;
        false -> turn(Owner, Number - 1)
    catch
        %% The partitions run without the application, too.
        error:badarg -> Turn
    end.

taken({Place, _} = Turn) ->
    case ets:lookup(?MODULE, Place) of
        [] -> ets:insert_new(?MODULE, Turn);
        [{_, Pid} = Before] ->
            not is_process_alive(Pid) andalso ets:delete_object(?MODULE, Before)
                andalso ets:insert_new(?MODULE, Turn)
    end.

left(Turn) ->
    try ets:delete_object(?MODULE, Turn)
    catch
        error:badarg -> true
    end.

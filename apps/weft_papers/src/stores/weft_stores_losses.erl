%% SPDX-License-Identifier: Apache-2.0
%% @doc How many puts that a store has acknowledged are lost when one of its nodes or servers is
%% killed. Clients put new keys, one after the other, and write down on disk what was acknowledged:
%% that stays when their node is killed. Then all of these are asked of those that are left.
%%
%% Not here: what is lost when all of them end, or the host.
-module(weft_stores_losses).

-export([measure/6, clients/0, put/4, lost/4]).
-export([writer/5]).

-define(CLIENTS, 16).
-define(VALUE_BYTES, 1024).
%% Of this time, what takes the puts is killed after the first half.
-define(PUT_MS, 2000).
%% For so long what is not found is asked for again: others may have to find out first.
-define(FIND_MS, 20000).
-define(AGAIN_MS, 100).
-define(CALL_MS, 120000).

%% @doc Clients are on the first node. Before is what they know of the store, After the same of each
%% part of it that is left, of which one is enough to find a key; Reader is a node that is left.
-spec measure(module(), {Before :: term(), After :: [term()]}, Reader :: weft_bench_nodes:role(),
              Dir :: file:filename(), Kill :: fun(() -> ok), weft_bench_nodes:nodes()) ->
          {Acknowledged :: pos_integer(), Lost :: non_neg_integer()}.
measure(Module, {Before, After}, Reader, Dir, Kill, Nodes) ->
    ok = weft_report_file:directory(Dir),
    %% Where its node is killed, the call ends without an answer.
    {Asking, Monitor} = spawn_monitor(fun() ->
                                          call(Nodes, {n, 1}, put, [Module, Before, Dir, ?PUT_MS])
                                      end),
    receive after ?PUT_MS div 2 -> ok end,
    ok = Kill(),
    receive {'DOWN', Monitor, process, Asking, _} -> ok end,
    {Acknowledged, _} = Counts = call(Nodes, Reader, lost, [Module, After, Dir, ?FIND_MS]),
    Acknowledged > 0 orelse error(nothing_acknowledged),
    Counts.

call(Nodes, Role, Function, Arguments) ->
    weft_bench_nodes:call(Nodes, Role, ?MODULE, Function, {Arguments, ?CALL_MS}).

%% @doc How many put at a time.
-spec clients() -> pos_integer().
clients() -> ?CLIENTS.

%% @doc Clients on this node put keys, for so long, or until the first error of each.
-spec put(module(), Store :: term(), Dir :: file:filename(), Ms :: pos_integer()) -> ok.
put(Module, Store, Dir, Ms) ->
    EndMs = erlang:monotonic_time(millisecond) + Ms,
    Running = [spawn_monitor(?MODULE, writer, [Module, Store, Number, Dir, EndMs])
               || Number <- lists:seq(1, ?CLIENTS)],
    lists:foreach(fun({Pid, Monitor}) ->
                      receive {'DOWN', Monitor, process, Pid, _} -> ok end
                  end, Running).

%% @private
-spec writer(module(), Store :: term(), pos_integer(), Dir :: file:filename(),
             EndMs :: integer()) -> ok.
writer(Module, Store, Number, Dir, EndMs) ->
    {ok, File} = file:open(file(Dir, Number), [raw, append, binary]),
    write(Module, Module:connect(Store, Number), {Number, 1}, File, EndMs).

write(Module, Connection, {Number, Count} = Key, File, EndMs) ->
    Request = {put, key(Key), rand:bytes(?VALUE_BYTES)},
    case erlang:monotonic_time(millisecond) < EndMs andalso Module:ask(Request, Connection) of
        ok ->
            ok = file:write(File, <<Count:32>>),
            write(Module, Connection, {Number, Count + 1}, File, EndMs);
        _OverOrFailed ->
            ok
    end.

%% @doc How much was acknowledged, and how much of that this node finds in none of these.
-spec lost(module(), Stores :: [term()], Dir :: file:filename(), Ms :: non_neg_integer()) ->
          {Acknowledged :: non_neg_integer(), Lost :: non_neg_integer()}.
lost(Module, Stores, Dir, Ms) ->
    EndMs = erlang:monotonic_time(millisecond) + Ms,
    Keys = acknowledged(Dir),
    Absent = lists:foldl(fun(Store, Left) -> absent(Left, Module, Store, EndMs) end, Keys, Stores),
    {length(Keys), length(Absent)}.

absent(Keys, Module, Store, EndMs) ->
    {_, Absent} = lists:foldl(fun(Key, {Connection, Before}) ->
                                  case found(Key, Module, Store, Connection, EndMs) of
                                      {true, Same} -> {Same, Before};
                                      {false, Next} -> {Next, [Key | Before]}
                                  end
                              end, {Module:connect(Store, 1), []}, Keys),
    Absent.

acknowledged(Dir) ->
    [key({Number, Count}) || Number <- lists:seq(1, ?CLIENTS),
                             {ok, Written} <- [file:read_file(file(Dir, Number))],
                             <<Count:32>> <= Written].

%% Whoever has failed may have closed the connection.
found(Key, Module, Store, Connection, EndMs) ->
    case Module:ask({get, Key}, Connection) of
        ok ->
            {true, Connection};
        {error, Reason} ->
            Next = case Reason of
                       not_found -> Connection;
                       _ -> Module:connect(Store, 1)
                   end,
            case erlang:monotonic_time(millisecond) < EndMs of
                true -> receive after ?AGAIN_MS -> found(Key, Module, Store, Next, EndMs) end;
                false -> {false, Next}
            end
    end.

key({Number, Count}) -> iolist_to_binary(io_lib:format("put ~b by ~b", [Count, Number])).

file(Dir, Number) -> filename:join(Dir, integer_to_list(Number)).

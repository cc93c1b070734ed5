%% SPDX-License-Identifier: Apache-2.0
%% @doc A subscriber on a node of a suite: keeps what it gets, for the suite to ask.
-module(weft_broadcast_listener).

-export([start/1, got/0, missed/0, send/3]).

%% @doc Subscribes to the scope, as the one listener of this node.
-spec start(weft_broadcast:scope()) -> ok.
start(Scope) ->
    Caller = self(),
    Pid = spawn(fun() ->
                        true = register(?MODULE, self()),
                        Caller ! {self(), weft:subscribe(Scope)},
                        listen([], [])
                end),
    receive {Pid, Result} -> Result end.

listen(Got, Missed) ->
    receive
        {weft_broadcast, _Scope, From, {N, _}} -> listen([{From, N} | Got], Missed);
        {weft_broadcast_missed, _Scope, What, Count} -> listen(Got, [{What, Count} | Missed]);
        {got, From, Ref} -> From ! {Ref, Got}, listen(Got, Missed);
        {missed, From, Ref} -> From ! {Ref, Missed}, listen(Got, Missed)
    end.

%% @doc The numbers that came so far, with their sender, sorted; what came twice is in it twice.
-spec got() -> [{node(), integer()}].
got() -> lists:sort(ask(got)).

%% @doc What it was told to have missed.
-spec missed() -> [{mailbox_full | node(), pos_integer()}].
missed() -> ask(missed).

ask(What) -> weft_test_nodes:ask(?MODULE, What).

%% @doc Broadcasts the numbers of a range, each with so many bytes beside it.
-spec send(weft_broadcast:scope(), {integer(), integer()}, non_neg_integer()) -> ok.
send(Scope, {From, To}, Bytes) ->
    [ok = weft:broadcast(Scope, {N, binary:copy(<<N>>, Bytes)}) || N <- lists:seq(From, To)],
    ok.

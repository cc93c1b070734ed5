%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes the links of a node unreliable while it runs, for weft_signal_order_SUITE.
%%
%% A process on the node itself, so that faults come whatever the distribution does. After random
%% pauses it takes one of the links it was given and
%%   break      closes all its connections at once
%%   fin, rst   ends a single one, in order or by reset
%%   cut        closes the link and refuses it for a random time
%% or
%%   pin        pins all processes of the node anew, to one channel or another or none
%% A seed makes the sequence. Every packet is delayed by up to DELAY_MAX_MS on top of that.
-module(weft_signal_faults).

-export([delay/1, start/2, stop/0]).

-type kind() :: break | fin | rst | cut | pin.
-export_type([kind/0]).

-define(DELAY_MAX_MS, 3).
-define(PAUSE_MAX_MS, 80).
-define(CUT_MAX_MS, 250).

%% @doc Delays what this node sends to these nodes.
-spec delay([node()]) -> ok.
delay(Nodes) ->
    lists:foreach(fun(Node) -> ok = weft_fault:delay(Node, 0, ?DELAY_MAX_MS) end, Nodes).

%% @doc Begins. The kinds of faults are given for each neighbour.
-spec start(integer(), #{node() => [kind(), ...]}) -> ok.
start(Seed, Kinds) ->
    Starter = self(),
    Ref = make_ref(),
    _ = spawn(fun() ->
                      true = register(?MODULE, self()),
                      _ = rand:seed(exsss, Seed),
                      Starter ! Ref,
                      disturb(Kinds, #{})
              end),
    receive Ref -> ok end.

%% @doc Ends, with all links healed. Returns how many faults there were, by neighbour and kind.
-spec stop() -> #{{node(), kind()} => pos_integer()}.
stop() ->
    Monitor = monitor(process, ?MODULE),
    ?MODULE ! {stop, self(), Monitor},
    receive
        %% Its name is free for the next one when it has ended.
        {Monitor, Count} -> receive {'DOWN', Monitor, process, _, _} -> Count end;
        {'DOWN', Monitor, process, _, Reason} -> erlang:error({faults_ended, Reason})
    end.

disturb(Kinds, Count) ->
    case stopped_in(rand:uniform(?PAUSE_MAX_MS)) of
        {true, From, Ref} ->
            From ! {Ref, Count};
        false ->
            Neighbour = one_of(maps:keys(Kinds)),
            Kind = one_of(maps:get(Neighbour, Kinds)),
            counted(fault(Kind, Neighbour), {Neighbour, Kind}, Kinds, Count)
    end.

counted({stopped, From, Ref}, What, _, Count) -> From ! {Ref, more(What, Count)};
counted(true, What, Kinds, Count) -> disturb(Kinds, more(What, Count));
counted(false, _, Kinds, Count) -> disturb(Kinds, Count).

more(What, Count) ->
    maps:update_with(What, fun(N) -> N + 1 end, 1, Count).

%% Was there a fault? A link that is down has no connection to end.
fault(break, Neighbour) ->
    weft_fault:break(Neighbour) =:= ok;
fault(cut, Neighbour) ->
    ok = weft_fault:cut(Neighbour),
    Stopped = stopped_in(rand:uniform(?CUT_MAX_MS)),
    ok = weft_fault:heal(Neighbour),
    ok = delay([Neighbour]),
    case Stopped of
        {true, From, Ref} -> {stopped, From, Ref};
        false -> true
    end;
fault(pin, _Neighbour) ->
    [pin(one_of([control, default, bulk, none]), Pid) || Pid <- processes()],
    true;
fault(How, Neighbour) ->
    case sockets(Neighbour) of
        [] -> false;
        Sockets -> end_connection(How, one_of(Sockets))
    end.

%% It may have ended.
pin(none, Pid) -> ok = weft_pins:unpin(Pid);
pin(Channel, Pid) -> _ = weft_pins:pin(Pid, Channel).

end_connection(fin, Socket) ->
    ok =:= gen_tcp:shutdown(Socket, read_write);
end_connection(rst, Socket) ->
    _ = inet:setopts(Socket, [{linger, {true, 0}}]),
    ok =:= gen_tcp:close(Socket).

%% The link's process owns them, and is linked to them.
sockets(Neighbour) ->
    {ok, Link} = weft_links:ensure(Neighbour),
    {links, Linked} = process_info(Link, links),
    [Socket || Socket <- Linked, is_port(Socket)].

stopped_in(PauseMs) ->
    receive {stop, From, Ref} -> {true, From, Ref}
    after PauseMs -> false
    end.

one_of(List) ->
    lists:nth(rand:uniform(length(List)), List).

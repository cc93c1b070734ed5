%% SPDX-License-Identifier: Apache-2.0
%% @doc The checks of the doctor about ports that are configured. Pure.
%%
%% A node listens at the port that its settings give it, at one of a range of the kernel, or at any,
%% for which there is no fact `ports'.
-module(weft_doctor_ports).

-export([too_few/1, in_use/1]).
-export_type([ports/0]).

%% host: on which the node is to run. in_use: those that somebody listens at there, if that is this
%% machine.
-type ports() :: #{host := string(), first := inet:port_number(), last := inet:port_number(),
                   in_use := [inet:port_number()]}.
-type facts() :: #{atom() => term()}.

%% @doc Hosts with more nodes than their range of ports has, and nodes of a host that have one port.
-spec too_few({[{node(), facts()}], Silent :: [term()]}) ->
          [{weft_doctor_checks:severity(), [node()], unicode:chardata()}].
too_few({All, _Silent}) ->
    Ports = [{{Host, First, Last}, Node}
             || {Node, #{ports := #{host := Host, first := First, last := Last}}} <- All],
    [{error, Nodes, io_lib:format("~b nodes on ~ts have ~ts", [length(Nodes), Host,
                                                              named(First, Last)])}
     || {Host, First, Last} = Place <- lists:usort([Place || {Place, _} <- Ports]),
        Nodes <- [[Node || {P, Node} <- Ports, P =:= Place]],
        length(Nodes) > Last - First + 1].

%% @doc A port of its own that is taken, or a range without a free one.
-spec in_use(facts()) -> [{weft_doctor_checks:severity(), unicode:chardata()}].
in_use(#{ports := #{first := First, last := Last, in_use := InUse}})
  when length(InUse) =:= Last - First + 1 ->
    [{warning, [named(First, Last), " in use on this machine"]}];
in_use(#{}) ->
    [].

named(Port, Port) -> io_lib:format("port ~b", [Port]);
named(First, Last) -> io_lib:format("the ports ~b to ~b", [First, Last]).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Puts what several nodes recorded on one clock and joins it: the profile, which all pictures
%% and numbers are made of. Pure. Times of a profile are nanoseconds since the first event of all.
-module(weft_profile_recording).

-export([profile/1, name/2, short/1, ms/1]).
-export_type([part/0, profile/0, side/0]).

%% What was fetched from a node, with its clock.
-type part() :: #{node := node(), clock := weft_profile_clock:estimate(),
                  events := [weft_profile_tracer:event()], info := weft_profile_tracer:info()}.
-type side() :: #{node := node(), error := non_neg_integer(), from := integer(), to := integer(),
                  windows := [weft_profile_tracer:window()],
                  sampled := false | {Ms :: pos_integer(), EveryMs :: pos_integer()},
                  ended := weft_profile_tracer:ended(), events := non_neg_integer(),
                  lost := non_neg_integer(), otp := string(), schedulers := pos_integer(),
                  names := #{pid() | port() => binary()}, history := weft_profile_events:history(),
                  messages := [weft_profile_tracer:event()],
                  samples := weft_profile_sampler:samples() | #{}}.
%% sampled: so many milliseconds of each so many were traced. ways: by which nodes messages go from
%% one node to another one, as far as that is known.
-type profile() :: #{nodes := [side()], flows := [weft_profile_flows:flow()],
                     counts := weft_profile_flows:counts(), to := integer(),
                     ways := #{{node(), node()} => [node()]}}.

-define(FLOWS_MAX, 50000).

%% @doc The profile. Of at least one node.
-spec profile([part(), ...]) -> profile().
profile(Parts) ->
    Begin = lists:min([weft_profile_clock:here(From, Clock)
                       || #{clock := Clock, info := #{from_ns := From}} <- Parts]),
    Sides = [side(Part, Begin) || Part <- Parts],
    {Flows, Counts} = weft_profile_flows:pair([Side#{events := Messages}
                                               || #{messages := Messages} = Side <- Sides],
                                              ?FLOWS_MAX),
    #{nodes => Sides, flows => Flows, counts => Counts, ways => #{},
      to => lists:max([To || #{to := To} <- Sides])}.

side(#{node := Node, clock := Clock, events := Events, info := Info}, Begin) ->
    Shift = fun(Ns) -> weft_profile_clock:here(Ns, Clock) - Begin end,
    Shifted = [setelement(1, Event, Shift(element(1, Event))) || Event <- Events],
    #{from_ns := FromNs, to_ns := ToNs, names := Names, samples := Samples,
      windows := Given} = Info,
    Windows = [{Number, Shift(Start), Shift(End)} || {Number, Start, End} <- Given],
    {From, To} = {Shift(FromNs), Shift(ToNs)},
    #{began := Began} = History = weft_profile_events:windows(Shifted, Windows),
    (maps:with([ended, events, lost, otp, schedulers], Info))
        #{node => Node, windows => Windows, sampled => sampled(Info),
          error => maps:get(error, Clock), from => From, to => To,
          history => History, names => maps:merge(maps:map(fun began/2, Began), Names),
          messages => [Event || Event <- Shifted,
                                element(2, Event) =:= send orelse element(2, Event) =:= 'receive'],
          samples => case Samples of
                         #{queues := Queues} ->
                             Samples#{queues := [{Shift(Ns), Runnable, Ports}
                                                 || {Ns, Runnable, Ports} <- Queues]};
                         #{} -> #{}
                     end}.

sampled(#{window_ms := Ms, every_ms := EveryMs}) when Ms < EveryMs -> {Ms, EveryMs};
sampled(_AllOfTheTime) -> false.

began(_Pid, {M, F, A}) -> unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [M, F, A])).

%% @doc A process or a port in words: its number, and its name if it has one.
-spec name(pid() | port(), side()) -> binary().
name(Who, #{names := Names}) ->
    iolist_to_binary(case Names of
                         #{Who := Name} -> [Name, " ", number(Who)];
                         #{} -> number(Who)
                     end).

%% The first number says where it is, which differs from node to node.
number(Pid) when is_pid(Pid) ->
    [_ | Numbers] = string:lexemes(pid_to_list(Pid), ".<>"),
    ["<", lists:join(".", ["0" | Numbers]), ">"];
number(Port) ->
    [Kind, _ | Numbers] = string:lexemes(erlang:port_to_list(Port), ".<>"),
    [Kind, "<", lists:join(".", ["0" | Numbers]), ">"].

%% @doc A node in a word.
-spec short(node()) -> binary().
short(Node) -> hd(string:split(atom_to_binary(Node), "@")).

%% @doc Nanoseconds in milliseconds.
-spec ms(integer()) -> float().
ms(Ns) -> Ns / 1000000.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Makes of the events of a node what happened: slices of time in which a process or a port ran
%% on a scheduler, garbage collections, and how often processes changed the scheduler. Pure.
%%
%% A port runs by itself, or a process calls it: then it runs within the slice of the process.
%%
%% What is returned holds whatever events come in: the slices of a lane never overlap, nor do the
%% collections and calls of a slice, which are in it. A lane is a scheduler, or one of the dirty
%% ones, which trace messages do not tell apart: they are put on as many lanes as are needed at one
%% time. A process that runs when the recording begins or ends has a slice to that end.
-module(weft_profile_events).

-export([windows/2, history/3]).
-export_type([history/0, slice/0, lane/0]).

-type lane() :: {scheduler | dirty, pos_integer()}.
%% What runs: processes, and ports with the command that they run.
-type runner() :: pid() | port().
-type at() :: mfa() | Command :: atom() | 0.
%% A garbage collection, or a call to a port.
-type inner() :: {From :: integer(), To :: integer(), minor | major | {port(), Command :: atom()}}.
-type slice() :: #{pid := runner(), lane := lane(), from := integer(), to := integer(),
                   mfa := at(), inside := [inner()]}.
%% slices: sorted by lane, then by time. gcs: all of them, those outside of slices too. began: what
%% processes began with that were started meanwhile. dropped: events that fit to nothing.
-type history() :: #{slices := [slice()], gcs := [{pid(), integer(), integer(), minor | major}],
                     migrations := #{pid() => pos_integer()}, began := #{pid() => mfa()},
                     dropped := non_neg_integer()}.

-record(h, {from :: integer(), to :: integer(),
            %% What runs: since when, where, what it does, and its collections.
            running = #{} :: #{runner() => {integer(), non_neg_integer(), at(), [inner()]}},
            collecting = #{} :: #{pid() => {integer(), minor | major}},
            last = #{} :: #{runner() => non_neg_integer()},
            slices = [] :: [slice()], gcs = [] :: list(), migrations = #{} :: map(),
            began = #{} :: map(), dropped = 0 :: non_neg_integer()}).

%% @doc What happened in each window: between two of them nobody looked, so what runs at the end of
%% one is not known to run until the next one. The events are sorted by time.
-spec windows([weft_profile_tracer:event()], [weft_profile_tracer:window()]) -> history().
windows(Events, Windows) ->
    Histories = in_windows(Events, lists:keysort(1, Windows)),
    All = fun(Key) -> lists:append([maps:get(Key, History) || History <- Histories]) end,
    #{slices => sorted(All(slices)), gcs => All(gcs),
      migrations => lists:foldl(fun(#{migrations := Migrations}, Sums) ->
                                        maps:fold(fun added/3, Sums, Migrations)
                                end, #{}, Histories),
      began => lists:foldl(fun(#{began := Began}, Acc) -> maps:merge(Acc, Began) end, #{},
                           Histories),
      dropped => lists:sum([Dropped || #{dropped := Dropped} <- Histories])}.

%% What came a little before or after belongs to the window beside it.
in_windows(_Events, []) ->
    [];
in_windows(Events, [{_, From, To}]) ->
    [history(Events, From, To)];
in_windows(Events, [{_, From, To} | [{_, Next, _} | _] = Windows]) ->
    {Of, Later} = lists:splitwith(fun(Event) -> element(1, Event) < Next end, Events),
    [history(Of, From, To) | in_windows(Later, Windows)].

added(Pid, Count, Sums) -> Sums#{Pid => Count + maps:get(Pid, Sums, 0)}.

%% @doc What happened between From and To. The events are sorted by time; those outside count as if
%% they were at the end they are beyond.
-spec history([weft_profile_tracer:event()], From :: integer(), To :: integer()) -> history().
history(Events, From, To) when From =< To ->
    Read = lists:foldl(fun event/2, #h{from = From, to = To}, Events),
    #h{slices = Slices} = H = maps:fold(fun still_runs/3, Read, Read#h.running),
    #{slices => laned(Slices), gcs => lists:keysort(2, H#h.gcs), migrations => H#h.migrations,
      began => H#h.began, dropped => H#h.dropped}.

event({Ns, in, Pid, Scheduler, Mfa}, H) ->
    in(within(Ns, H), Pid, Scheduler, Mfa, H);
event({Ns, out, Pid, Scheduler, Mfa}, H) ->
    out(within(Ns, H), Pid, Scheduler, Mfa, H);
event({Ns, gc_start, Pid, _Scheduler, Kind}, #h{collecting = Collecting} = H) ->
    H#h{collecting = Collecting#{Pid => {within(Ns, H), Kind}}};
event({Ns, gc_end, Pid, _Scheduler, _Kind}, #h{collecting = Collecting} = H) ->
    case maps:take(Pid, Collecting) of
        {{Start, Kind}, Rest} -> gc(Pid, Start, within(Ns, H), Kind, H#h{collecting = Rest});
        error -> dropped(H)
    end;
event({_Ns, spawned, Pid, _Scheduler, Mfa}, #h{began = Began, last = Last} = H) ->
    H#h{began = Began#{Pid => Mfa}, last = Last#{Pid => 0}};
event(_Message, H) ->
    H.

within(Ns, #h{from = From, to = To}) -> max(From, min(To, Ns)).

dropped(#h{dropped = Dropped} = H) -> H#h{dropped = Dropped + 1}.

%% Without its end, the slice before it can only have ended here.
in(Ns, Pid, Scheduler, Mfa, #h{running = Running} = H) ->
    Ended = case is_map_key(Pid, Running) of
                true -> dropped(out(Ns, Pid, 0, 0, H));
                false -> H
            end,
    migrated(Pid, Scheduler,
             Ended#h{running = (Ended#h.running)#{Pid => {Ns, Scheduler, Mfa, []}}}).

%% Dirty schedulers do not count: a process comes back from there. A port runs where it is called.
migrated(_Pid, 0, H) ->
    H;
migrated(Port, Scheduler, #h{last = Last} = H) when is_port(Port) ->
    H#h{last = Last#{Port => Scheduler}};
migrated(Pid, Scheduler, #h{last = Last, migrations = Migrations} = H) ->
    Now = H#h{last = Last#{Pid => Scheduler}},
    case maps:get(Pid, Last, 0) of
        Other when Other =/= 0, Other =/= Scheduler ->
            Now#h{migrations = Migrations#{Pid => maps:get(Pid, Migrations, 0) + 1}};
        _ -> Now
    end.

%% What had not begun, and was not there before, ran when the recording began.
out(Ns, Pid, Scheduler, Mfa, #h{running = Running, last = Last} = H) ->
    case maps:take(Pid, Running) of
        {{From, On, Began, Gcs}, Rest} ->
            slice(Pid, On, From, Ns, Began, Gcs, H#h{running = Rest});
        error when is_map_key(Pid, Last) ->
            dropped(H);
        error ->
            slice(Pid, Scheduler, H#h.from, Ns, Mfa, [],
                  H#h{last = Last#{Pid => Scheduler}})
    end.

slice(Pid, Scheduler, From, To, Mfa, Gcs, #h{slices = Slices} = H) ->
    H#h{slices = [#{pid => Pid, lane => {scheduler, Scheduler}, from => From, to => max(From, To),
                    mfa => Mfa, inside => Gcs} | Slices]}.

gc(Pid, From, To, Kind, #h{running = Running, gcs = Gcs} = H) ->
    All = H#h{gcs = [{Pid, From, To, Kind} | Gcs]},
    case Running of
        #{Pid := {Since, On, Mfa, Own}} ->
            All#h{running = Running#{Pid := {Since, On, Mfa, [{From, To, Kind} | Own]}}};
        #{} -> All
    end.

still_runs(Pid, {From, On, Mfa, Gcs}, H) ->
    slice(Pid, On, From, H#h.to, Mfa, Gcs, H).

%% --- lanes ------------------------------------------------------------------------------------

laned(Slices) ->
    ByLane = lists:foldl(fun(#{lane := Lane} = Slice, Acc) ->
                                 Acc#{Lane => [Slice | maps:get(Lane, Acc, [])]}
                         end, #{}, Slices),
    Lanes = lists:append([lane(Lane, in_time(Of)) || {Lane, Of} <- maps:to_list(ByLane)]),
    [Slice#{inside := inside(Slice)} || Slice <- sorted(Lanes)].

sorted(Slices) ->
    lists:sort(fun(#{lane := A, from := F}, #{lane := B, from := G}) -> {A, F} =< {B, G} end,
               Slices).

in_time(Slices) ->
    lists:sort(fun(#{from := A, to := To}, #{from := B, to := End}) -> {A, To} =< {B, End} end,
               Slices).

lane({scheduler, 0}, Slices) -> several(Slices, []);
lane(_Lane, Slices) -> one(Slices).

%% A scheduler runs one process at a time: where times say otherwise, the later slice is cut. What
%% is left of it within the first one is a call, or it is hidden.
one([#{to := End} = Slice, #{from := From, to := To} = Next | Rest]) when From < End ->
    if
        To > End -> [Slice | one([Next#{from := End} | Rest])];
        true -> one([with_call(Next, Slice) | Rest])
    end;
one([Slice | Rest]) ->
    [Slice | one(Rest)];
one([]) ->
    [].

with_call(#{pid := Port, from := From, to := To, mfa := Command}, #{inside := Inside} = Slice)
  when is_port(Port), Command =/= 0 ->
    Slice#{inside := [{From, To, {Port, Command}} | Inside]};
with_call(_Hidden, Slice) ->
    Slice.

%% Free: {end of its last slice, lane}.
several([], _Free) ->
    [];
several([#{from := From, to := To} = Slice | Rest], Free) ->
    Number = case lists:sort([N || {End, N} <- Free, End =< From]) of
                 [First | _] -> First;
                 [] -> length(Free) + 1
             end,
    [Slice#{lane := {dirty, Number}}
     | several(Rest, lists:keystore(Number, 2, Free, {To, Number}))].

%% One after the other, each within the slice.
inside(#{from := From, to := To, inside := Given}) ->
    {Inside, _} = lists:foldl(fun({Start, End, What}, {Acc, After}) ->
                                      cut(max(After, Start), min(To, End), What, Acc, After)
                              end, {[], From}, lists:sort(Given)),
    lists:reverse(Inside).

cut(Start, End, What, Acc, _After) when Start =< End -> {[{Start, End, What} | Acc], End};
cut(_Start, _End, _Nothing, Acc, After) -> {Acc, After}.

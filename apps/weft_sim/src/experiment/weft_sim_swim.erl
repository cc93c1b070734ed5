%% SPDX-License-Identifier: Apache-2.0
%% @doc How good `weft_swim_core' is, measured: false positives of plain SWIM and of Lifeguard, time
%% to detect crashes, time to form a cluster, bytes per node. `print/1' shows all beside published
%% figures and says what misses its bar.
%%
%% False positives by the method of the Lifeguard paper (Dadgar, Phillips, Currey 2018):
%% of 128 members some are blocked for D ms, free for I ms, and so on for two minutes; they neither
%% send nor receive meanwhile, but their timers run. Counted is each time that a member calls a
%% member failed that never was blocked: at all members, and at those that never were blocked.
%%
%% The network is `weft_sim_datagrams' without loss, all options have their defaults.
-module(weft_sim_swim).

-export([print/1, false_positives/4, cluster/3]).
-export_type([anomaly/0, figures/0]).

-type anomaly() :: #{blocked := pos_integer(), blocked_ms := pos_integer(),
                     free_ms := pos_integer()}.
-type spread() :: #{mean := float(), p99 := non_neg_integer(), max := non_neg_integer()}.
-type figures() :: #{formed_ms := non_neg_integer() | never,
                     first_ms := [non_neg_integer()], last_ms := [non_neg_integer()],
                     missed := non_neg_integer(), wrong := non_neg_integer(),
                     forming := {Sent :: spread(), Received :: spread()},
                     quiet := {spread(), spread()}, crash := {spread(), spread()}}.

-define(ALL, [health, suspicion, buddy]).
-define(MEMBERS, 128).
-define(BEGIN_MS, 20000).
-define(END_MS, 140000).
%% All members start within this time.
-define(START_MS, 5000).
-define(CRASHES, 10).
-define(FEWER_MIN, 20).

%% @doc Measures and prints. The answer is what misses its bar, in words.
-spec print(quick | full) -> [string()].
print(Size) ->
    io:format("~nSWIM: failure detection without all-to-all ticks (datagrams of 1 to 5 ms)~n"),
    print_false_positives(Size) ++ print_cluster(Size).

%% --- false positives --------------------------------------------------------------------------

anomalies(quick) ->
    [#{blocked => 16, blocked_ms => 16384, free_ms => 64}];
anomalies(full) ->
    [#{blocked => Count, blocked_ms => BlockedMs, free_ms => 64}
     || Count <- [4, 16, 32], BlockedMs <- [8192, 16384, 32768]].

parts(quick) -> [[], ?ALL];
parts(full) -> [[], [health], [suspicion], [buddy], ?ALL].

print_false_positives(Size) ->
    Anomalies = anomalies(Size),
    io:format("~nFalse positives, ~b members, some blocked for D ms and free for I ms, 120 s each "
              "(C, D, I: ~ts)~n~-32s ~12s ~12s~n",
              [?MEMBERS, lists:join("; ", [show(Anomaly) || Anomaly <- Anomalies]),
               "", "at all", "at healthy"]),
    Rows = [{Parts, sum([false_positives(Parts, Anomaly, ?MEMBERS, 1) || Anomaly <- Anomalies])}
            || Parts <- parts(Size)],
    lists:foreach(fun({Parts, {All, Healthy}}) ->
                      io:format("~-32s ~12b ~12b~n", [name(Parts), All, Healthy])
                  end, Rows),
    [{[], Plain} | _] = Rows,
    {?ALL, Full} = lists:last(Rows),
    {Fewer, FewerHealthy} = {times(element(1, Plain), element(1, Full)),
                             times(element(2, Plain), element(2, Full))},
    io:format("~-32s ~11.1fx ~11.1fx~n", ["fewer with Lifeguard", Fewer, FewerHealthy]),
    io:format("published: fewer by \"more than 50x\" (Lifeguard, arXiv:1707.00788v1, abstract)~n"),
    [flat("Lifeguard has only ~.1f times fewer false positives than plain SWIM, not ~b",
          [Fewer, ?FEWER_MIN]) || Fewer < ?FEWER_MIN].

show(#{blocked := Count, blocked_ms := BlockedMs, free_ms := FreeMs}) ->
    io_lib:format("~b, ~b, ~b", [Count, BlockedMs, FreeMs]).

name([]) -> "plain SWIM";
name(?ALL) -> "SWIM with Lifeguard";
name([Part]) -> "SWIM with " ++ atom_to_list(Part) ++ " only".

sum(Pairs) ->
    lists:foldl(fun({A, B}, {SumA, SumB}) -> {SumA + A, SumB + B} end, {0, 0}, Pairs).

times(Many, Few) -> Many / max(1, Few).

%% @doc False positives at all members and at those that were never blocked, with these parts of
%% Lifeguard ([] is plain SWIM).
-spec false_positives(Lifeguard :: [atom()], anomaly(), Members :: pos_integer(),
                      Seed :: integer()) -> {AtAll :: non_neg_integer(),
                                             AtHealthy :: non_neg_integer()}.
false_positives(Lifeguard, #{blocked := Count} = Anomaly, Members, Seed) ->
    _ = rand:seed(exsss, Seed),
    Names = names(Members),
    Sick = pick(Count, tl(Names)),
    Started = start(Names, 1000, world(hd(Names), #{lifeguard => Lifeguard}, Seed)),
    Planned = lists:foldl(fun(Node, W) -> block(?BEGIN_MS, Node, Anomaly, W) end, Started, Sick),
    World = weft_sim_datagrams:run_until(?END_MS + 20000, Planned),
    Wrong = [At || {AtMs, At, {member, Node, failed}} <- weft_sim_datagrams:notices(World),
                   AtMs >= ?BEGIN_MS, not lists:member(Node, Sick)],
    {length(Wrong), length([At || At <- Wrong, not lists:member(At, Sick)])}.

block(AtMs, Node, #{blocked_ms := BlockedMs, free_ms := FreeMs} = Anomaly, World)
  when AtMs < ?END_MS ->
    EndMs = min(?END_MS, AtMs + BlockedMs),
    block(AtMs + BlockedMs + FreeMs, Node, Anomaly,
          weft_sim_datagrams:schedule(EndMs, {resume, Node},
                                      weft_sim_datagrams:schedule(AtMs, {block, Node}, World)));
block(_AtMs, _Node, _Anomaly, World) ->
    World.

%% --- forming, crashes, bytes ------------------------------------------------------------------

print_cluster(Size) ->
    Count = case Size of quick -> 200; full -> 1000 end,
    Rows = [{Lifeguard, cluster(Lifeguard, Count, 1)} || Lifeguard <- [[], ?ALL]],
    io:format("~n~b members start within ~b s; when all is quiet ~b crash at once~n~-32s ~14s "
              "~27s ~27s~n", [Count, ?START_MS div 1000, ?CRASHES, "", "all know all",
                              "crash known to one (s)", "crash known to all (s)"]),
    lists:foreach(fun({Lifeguard, #{formed_ms := FormedMs, first_ms := First, last_ms := Last}}) ->
                      io:format("~-32s ~12ts s ~27ts ~27ts~n",
                                [name(Lifeguard), seconds(FormedMs), range(First), range(Last)])
                  end, Rows),
    io:format("published: 2,000 members of memberlist know each other after 95 s on average "
              "(Rapid, USENIX ATC 2018)~n"),
    {?ALL, Figures} = lists:last(Rows),
    print_bytes(Count, Figures),
    misses(Figures).

seconds(never) -> "never";
seconds(Ms) -> io_lib:format("~.1f", [Ms / 1000]).

range([]) -> "never";
range(Times) ->
    Sorted = lists:sort(Times),
    io_lib:format("~ts .. ~ts, median ~ts",
                  [seconds(hd(Sorted)), seconds(lists:last(Sorted)),
                   seconds(lists:nth((length(Sorted) + 1) div 2, Sorted))]).

print_bytes(Count, Figures) ->
    io:format("~nKB/s of a node, received/sent, with ~b members~n~-32s ~15s ~15s ~15s~n",
              [Count, "", "mean", "p99", "largest"]),
    lists:foreach(fun({Title, Key}) ->
                      {Sent, Received} = map_get(Key, Figures),
                      io:format("~-32s ~15ts ~15ts ~15ts~n",
                                [Title | [io_lib:format("~.2f/~.2f",
                                                        [map_get(What, Received) / 1000,
                                                         map_get(What, Sent) / 1000])
                                          || What <- [mean, p99, max]]])
                  end, [{"while forming", forming}, {"quiet", quiet}, {"10 crashes, 60 s", crash}]),
    io:format("published for memberlist, 1,000 processes, 10 crashes: 0.54/0.64 5.61/6.40 "
              "7.36/8.04~n(Rapid, USENIX ATC 2018, table of bandwidths)~n").

misses(#{formed_ms := FormedMs, missed := Missed, wrong := Wrong}) ->
    ["not all members knew each other in time" || FormedMs =:= never]
        ++ [flat("~b times a crash was not noticed", [Missed]) || Missed > 0]
        ++ [flat("~b times a healthy member was called failed", [Wrong]) || Wrong > 0].

%% @doc Forms a cluster, lets it be quiet, crashes some members, and measures.
-spec cluster(Lifeguard :: [atom()], Members :: pos_integer(), Seed :: integer()) -> figures().
cluster(Lifeguard, Members, Seed) ->
    _ = rand:seed(exsss, Seed),
    Names = names(Members),
    World0 = start(Names, ?START_MS, world(hd(Names), #{lifeguard => Lifeguard}, Seed)),
    {FormedMs, World1} = until_formed(1000, 90000, Members, World0),
    QuietMs = weft_sim_datagrams:now_ms(World1) div 1000 * 1000 + 30000,
    CrashMs = QuietMs + 30000,
    Victims = pick(?CRASHES, tl(Names)),
    World2 = lists:foldl(fun(Node, W) -> weft_sim_datagrams:schedule(CrashMs, {crash, Node}, W) end,
                         World1, Victims),
    World = weft_sim_datagrams:run_until(CrashMs + 100000, World2),
    Failed = [{AtMs - CrashMs, At, Node}
              || {AtMs, At, {member, Node, failed}} <- weft_sim_datagrams:notices(World)],
    Bytes = fun(FromMs, ToMs) -> traffic(FromMs, ToMs, World) end,
    (detection(Victims, Failed, Members))#{
      formed_ms => FormedMs, forming => Bytes(0, weft_sim_datagrams:now_ms(World1)),
      quiet => Bytes(QuietMs, CrashMs), crash => Bytes(CrashMs, CrashMs + 60000)}.

until_formed(AtMs, LastMs, _Members, World) when AtMs > LastMs ->
    {never, World};
until_formed(AtMs, LastMs, Members, World0) ->
    World = weft_sim_datagrams:run_until(AtMs, World0),
    Names = weft_sim_datagrams:nodes_in([running], World),
    case length(Names) =:= Members
        andalso lists:all(fun(Name) -> knows(Members, Name, World) end, Names) of
        true -> {AtMs, World};
        false -> until_formed(AtMs + 100, LastMs, Members, World)
    end.

knows(Members, Name, World) ->
    length(weft_swim_core:living(weft_sim_datagrams:core(Name, World))) =:= Members - 1.

detection(Victims, Failed, Members) ->
    Times = [[Ms || {Ms, _, Node} <- Failed, Node =:= Victim] || Victim <- Victims],
    Knowing = Members - length(Victims),
    #{first_ms => [lists:min(Ms) || [_ | _] = Ms <- Times],
      last_ms => [lists:max(Ms) || Ms <- Times, length(Ms) >= Knowing],
      missed => lists:sum([max(0, Knowing - length(Ms)) || Ms <- Times]),
      wrong => length([Node || {_, _, Node} <- Failed, not lists:member(Node, Victims)])}.

%% The spread over all nodes and seconds.
traffic(FromMs, ToMs, World) ->
    Samples = lists:append([Row || {Second, Row} <- weft_sim_datagrams:traffic(World),
                                   Second * 1000 > FromMs, Second * 1000 =< ToMs]),
    {spread([Sent || {Sent, _} <- Samples]), spread([Received || {_, Received} <- Samples])}.

spread(Samples) ->
    Sorted = lists:sort(Samples),
    Count = length(Sorted),
    #{mean => lists:sum(Sorted) / Count, p99 => lists:nth(max(1, Count * 99 div 100), Sorted),
      max => lists:last(Sorted)}.

%% --- parts ------------------------------------------------------------------------------------

world(Seed, Options, RandomSeed) ->
    weft_sim_datagrams:new(#{seed => RandomSeed, core => weft_swim_core,
                             options => fun(_Node) -> Options#{seeds => [Seed], links => false}
                                        end}).

start(Names, WithinMs, World) ->
    lists:foldl(fun(Name, W) ->
                    weft_sim_datagrams:schedule(rand:uniform(WithinMs), {start, Name}, W)
                end, World, Names).

%% As long as real ones.
names(Count) ->
    [list_to_atom(lists:flatten(io_lib:format("app-~5..0b@host-~4..0b.example.net", [N, N div 4])))
     || N <- lists:seq(1, Count)].

pick(Count, List) ->
    lists:sort(lists:sublist([X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])],
                             Count)).

flat(Format, Arguments) ->
    lists:flatten(io_lib:format(Format, Arguments)).

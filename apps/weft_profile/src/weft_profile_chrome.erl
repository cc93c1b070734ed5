%% SPDX-License-Identifier: Apache-2.0
%% @doc A profile as Chrome trace JSON, which Perfetto and speedscope open. Written piece by piece,
%% and no longer than it may be. Pure but for the function that writes.
%%
%% A process of the trace is a node. Its threads are its schedulers, with what ran on them,
%% processes and ports, and when garbage was collected meanwhile or a port called; and each process
%% that sent a message to another node or got one, with these messages: short slices that the arrows
%% begin and end at. A node that was traced in windows has a thread with them: outside of these
%% nothing is known. A gateway has a thread with the moments at which messages of others passed,
%% which the arrows go by. Counters are the run queues and the open ports. Within a thread events
%% are in the order of time, and a slice that begins in another one ends in it. Times are in
%% microseconds with three decimals: viewers are told that these count.
-module(weft_profile_chrome).

-export([write/3]).

-type write() :: fun((iodata()) -> ok).

%% The longest slice of a message, in nanoseconds: nobody knows how long it took.
-define(MESSAGE_NS, 1000).
%% Numbers of threads are different on all nodes, as some viewers want it.
-define(THREADS, 100000).
-define(DIRTY, 1000).
-define(WINDOWS, 1999).
-define(PROCESSES, 2000).

%% @doc Writes the profile. What does not fit into so many bytes is left out, slices of schedulers
%% first; how many events were left out is told.
-spec write(weft_profile_recording:profile(), write(), MaxBytes :: pos_integer()) ->
          #{bytes := pos_integer(), left_out := non_neg_integer()}.
write(#{nodes := Sides, flows := Flows}, Write, MaxBytes) ->
    Numbered = lists:zip(lists:seq(1, length(Sides)), Sides),
    First = ["{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n",
             "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":",
             string(atom_to_binary(node_of(hd(Sides)))), "}}"],
    ok = Write(First),
    State = #{write => Write, left => MaxBytes - iolist_size(First), bytes => iolist_size(First),
              out => 0},
    Groups = lists:append([named(Number, Side) || {Number, Side} <- tl(Numbered)]
                          ++ [traced(Number, Side) || {Number, Side} <- Numbered]
                          %% In one piece, so that no arrow is there in half.
                          ++ [[messages(Numbered, moments(Flows))]]
                          ++ [counters(Number, Side) || {Number, Side} <- Numbered]
                          ++ [slices(Number, Side) || {Number, Side} <- Numbered]),
    #{bytes := Bytes, out := Out} = lists:foldl(fun group/2, State, Groups),
    Last = "\n]}\n",
    ok = Write(Last),
    #{bytes => Bytes + length(Last), left_out => Out}.

node_of(#{node := Node}) -> Node.

%% What belongs together is written as a whole or not at all.
group(Events, #{write := Write, left := Left, bytes := Bytes, out := Out} = State) ->
    Text = [[",\n", event(Event)] || Event <- Events],
    case iolist_size(Text) of
        Size when Size =< Left ->
            ok = Write(Text),
            State#{left := Left - Size, bytes := Bytes + Size};
        _ ->
            State#{left := 0, out := Out + length(Events)}
    end.

named(Number, #{node := Node}) ->
    [[#{name => <<"process_name">>, ph => <<"M">>, pid => Number,
        args => #{name => atom_to_binary(Node)}}]].

traced(_Number, #{sampled := false}) ->
    [];
traced(Number, #{sampled := {Ms, EveryMs}, windows := Windows}) ->
    Thread = Number * ?THREADS + ?WINDOWS,
    Name = io_lib:format("traced, ~b ms of each ~b ms", [Ms, EveryMs]),
    [[thread_name(Number, Thread, Name)
      | [#{name => <<"traced">>, cat => <<"traced">>, ph => <<"X">>, pid => Number, tid => Thread,
           ts => {ns, From}, dur => {ns, To - From}} || {_, From, To} <- Windows]]].

thread_name(Number, Thread, Name) ->
    #{name => <<"thread_name">>, ph => <<"M">>, pid => Number, tid => Thread,
      args => #{name => Name}}.

%% --- schedulers -------------------------------------------------------------------------------

slices(Number, #{history := #{slices := Slices}} = Side) ->
    Lanes = lists:usort([Lane || #{lane := Lane} <- Slices]),
    [[thread_name(Number, thread(Number, Lane), lane_name(Lane)) || Lane <- Lanes]
     | [slice(Number, Slice, Side) || Slice <- Slices]].

thread(Number, {scheduler, N}) -> Number * ?THREADS + N;
thread(Number, {dirty, N}) -> Number * ?THREADS + ?DIRTY + N.

lane_name({scheduler, N}) -> <<"scheduler ", (integer_to_binary(N))/binary>>;
lane_name({dirty, N}) -> <<"dirty scheduler ", (integer_to_binary(N))/binary>>.

slice(Number, #{pid := Who, lane := Lane, mfa := Mfa, inside := Inside} = Slice, Side) ->
    #{from := From, to := To} = Slice,
    Of = #{ph => <<"X">>, pid => Number, tid => thread(Number, Lane)},
    [(ran(Who, Mfa, Of, Side))#{ts => {ns, From}, dur => {ns, To - From}}
     | [(inner(What, Of, Side))#{ts => {ns, Start}, dur => {ns, End - Start}}
        || {Start, End, What} <- Inside]].

ran(Who, Mfa, Of, Side) ->
    Of#{name => weft_profile_recording:name(Who, Side), args => #{at => function(Mfa)},
        cat => case is_port(Who) of true -> <<"port">>; false -> <<"run">> end}.

inner({Port, Command}, Of, Side) -> ran(Port, Command, Of, Side);
inner(Kind, Of, _Side) -> Of#{name => <<"gc ", (atom_to_binary(Kind))/binary>>, cat => <<"gc">>}.

function({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~ts:~ts/~b", [M, F, A]));
function(0) -> <<"?">>;
function(Command) -> atom_to_binary(Command).

counters(Number, #{samples := #{queues := Queues}}) ->
    [[#{name => Name, ph => <<"C">>, pid => Number, tid => Number * ?THREADS, ts => {ns, Ns},
        args => #{Of => Value}}
      || {Name, Of, Value} <- [{<<"run queue">>, waiting, Waiting}, {<<"ports">>, open, Ports}]]
     || {Ns, Waiting, Ports} <- Queues];
counters(_Number, #{samples := #{}}) ->
    [].

%% --- messages ---------------------------------------------------------------------------------

%% All moments of messages, by node: {process, time, which way, flow}. Viewers sort by time, and
%% take a step for one without a begin, or find no slice at it, where two have the same. So each is
%% a nanosecond after the one before in its thread, and in its flow, at least.
moments(Flows) ->
    Moments = [Moment || Flow <- Flows, Moment <- moments_of(Flow)],
    {ByNode, _Last} = lists:foldl(fun placed/2, {#{}, #{}}, lists:sort(Moments)),
    ByNode.

moments_of(#{id := Id, from_node := A, from := From, sent := Sent, to_node := B, to := To,
             received := Received} = Flow) ->
    Hops = maps:get(hops, Flow, []),
    [{Sent, 0, Id, A, From, out, Flow}, {Received, length(Hops) + 1, Id, B, To, in, Flow}
     | [{Ns, N, Id, Node, relays, through, Flow}
        || {N, {Node, Ns}} <- lists:zip(lists:seq(1, length(Hops)), Hops)]].

placed({Ns, _, Id, Node, Who, Way, Flow}, {ByNode, Last}) ->
    At = lists:max([Ns | [Before + 1 || Key <- [Id, {Node, Who}], #{Key := Before} <- [Last]]]),
    {ByNode#{Node => [{Who, At, Way, Flow} | maps:get(Node, ByNode, [])]},
     Last#{Id => At, {Node, Who} => At}}.

messages(Numbered, Moments) ->
    lists:append([messages(Number, Side, maps:get(Node, Moments, []))
                  || {Number, #{node := Node} = Side} <- Numbered]).

messages(Number, Side, Ends) ->
    Pids = lists:usort([Pid || {Pid, _, _, _} <- Ends]),
    Threads = maps:from_list(lists:zip(Pids, lists:seq(1, length(Pids)))),
    [thread_name(Number, process_thread(Number, Pid, Threads),
                 process_name(Pid, Side)) || Pid <- Pids]
        ++ lists:append(message_events(Number, Threads, lists:sort(Ends))).

process_name(relays, _Side) -> <<"passes on (estimated)">>;
process_name(Pid, Side) -> weft_profile_recording:name(Pid, Side).

process_thread(Number, Pid, Threads) ->
    Number * ?THREADS + ?PROCESSES + maps:get(Pid, Threads).

message_events(_Number, _Threads, []) ->
    [];
message_events(Number, Threads, [{Pid, Ns, Way, Flow} | Rest]) ->
    Ends = case Rest of
               [{Pid, Next, _, _} | _] -> min(Ns + ?MESSAGE_NS, Next);
               _ -> Ns + ?MESSAGE_NS
           end,
    Of = #{pid => Number, tid => process_thread(Number, Pid, Threads), ts => {ns, Ns}},
    #{id := Id, kind := Kind} = Flow,
    Arrow = Of#{name => <<"message">>, cat => <<"message">>, id => Id},
    [[Of#{name => [verb(Way), " ", atom_to_binary(Kind)], ph => <<"X">>, cat => <<"message">>,
          dur => {ns, Ends - Ns}, args => other_end(Way, Flow)},
      case Way of
          out -> Arrow#{ph => <<"s">>};
          through -> Arrow#{ph => <<"t">>};
          in -> Arrow#{ph => <<"f">>, bp => <<"e">>}
      end]
     | message_events(Number, Threads, Rest)].

verb(out) -> "send";
verb(through) -> "pass on";
verb(in) -> "receive".

other_end(out, #{to_node := Node}) -> #{to => atom_to_binary(Node)};
other_end(through, Flow) -> maps:merge(other_end(out, Flow), other_end(in, Flow));
other_end(in, #{from_node := Node}) -> #{from => atom_to_binary(Node)}.

%% --- JSON -------------------------------------------------------------------------------------

event(Event) ->
    [${, lists:join($,, [[$", atom_to_binary(Key), "\":", value(Value)]
                         || {Key, Value} <- lists:sort(maps:to_list(Event))]), $}].

value(Number) when is_integer(Number) -> integer_to_binary(Number);
value({ns, Ns}) when Ns < 0 -> [$-, value({ns, -Ns})];
value({ns, Ns}) ->
    %% The thousand keeps the zeros in front, and is cut off.
    <<_, Decimals/binary>> = integer_to_binary(1000 + Ns rem 1000),
    [integer_to_binary(Ns div 1000), $., Decimals];
value(Map) when is_map(Map) -> event(Map);
value(Text) -> string(Text).

string(Text) ->
    [$", [escaped(Char) || Char <- unicode:characters_to_list(Text)], $"].

escaped($") -> <<"\\\"">>;
escaped($\\) -> <<"\\\\">>;
escaped(Control) when Control < 32 -> io_lib:format("\\u~4.16.0b", [Control]);
escaped(Char) -> <<Char/utf8>>.

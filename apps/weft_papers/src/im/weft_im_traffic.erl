%% SPDX-License-Identifier: Apache-2.0
%% @doc The people of a node of clients: logs them in, lets them talk as their scripts say
%% (`weft_im_script'), and keeps the books of what was said, heard and acknowledged, of its own and
%% with no trust in the clients. Half as many conversations as clients are alive at any time; when
%% one is over, its first speaker begins the next one.
%%
%% It is told by its region: `talk', to begin; `mark', what is heard counts from now on; `finish',
%% to fall silent, which is answered by `{silent, self()}' when all is acknowledged; `report', to
%% tell the books.
-module(weft_im_traffic).

-export([init/4, name/1, add/2, empty/0]).
-export_type([books/0]).

%% Counts of messages; `heard_marked' those heard between mark and finish, in `marked_us'; latencies
%% are those of messages that were said after the mark. `doubled'
%% and `wrong' ought to be 0: heard again, or not what the script says. `unsaid' has for each
%% message that was given up the servers of both who talked.
-type books() :: #{said := non_neg_integer(), heard := non_neg_integer(),
                   delivered := non_neg_integer(), given_up := non_neg_integer(),
                   doubled := non_neg_integer(), wrong := non_neg_integer(),
                   conversations := non_neg_integer(), logged_out := [term()],
                   unsaid := [[Server :: pos_integer()]],
                   heard_marked := non_neg_integer(), marked_us := non_neg_integer(),
                   latencies := weft_load_histogram:snapshot()}.
%% `first' and `step': the clients are number First, First + Step, ... up to `count'.
-type settings() :: #{first := pos_integer(), step := pos_integer(), count := pos_integer(),
                      seed := integer(), scale := number(), _ => _}.

-record(talk, {script :: weft_im_script:script(), side :: a | b, client :: pid(),
               heard = 0 :: non_neg_integer(), flying = 0 :: non_neg_integer()}).

-record(traffic, {service :: weft_im_plan:service(), settings :: settings(), region :: pid(),
                  clients = #{} :: #{pid() => pos_integer()},
                  talks = #{} :: #{{a | b, weft_im_session:conversation()} => #talk{}},
                  over = #{} :: #{{a | b, weft_im_session:conversation()} => true},
                  begun = #{} :: #{pos_integer() => non_neg_integer()},
                  state = talking :: talking | falling_silent | silent,
                  latencies = weft_load_histogram:new() :: weft_load_histogram:histogram(),
                  mark = none :: none | {Us :: integer(), Heard :: non_neg_integer()},
                  books = empty() :: books()}).

-define(COUNTS, [said, heard, delivered, given_up, doubled, wrong, conversations, heard_marked]).

-spec empty() -> books().
empty() ->
    (maps:from_list([{Key, 0} || Key <- ?COUNTS]))
        #{logged_out => [], unsaid => [], marked_us => 0,
          latencies => weft_load_histogram:snapshot(weft_load_histogram:new())}.

%% @doc Of two nodes together; the time is the longer one.
-spec add(books(), books()) -> books().
add(#{latencies := Latencies1, marked_us := Us1} = Books1,
    #{latencies := Latencies2, marked_us := Us2} = Books2) ->
    Sums = maps:from_list([{Key, map_get(Key, Books1) + map_get(Key, Books2)} || Key <- ?COUNTS]),
    Lists = maps:from_list([{Key, map_get(Key, Books1) ++ map_get(Key, Books2)}
                            || Key <- [logged_out, unsaid]]),
    maps:merge(Sums, Lists#{latencies => weft_load_histogram:merge([Latencies1, Latencies2]),
                            marked_us => max(Us1, Us2)}).

%% @doc The name of a client.
-spec name(pos_integer()) -> binary().
name(Number) -> <<"tc", (integer_to_binary(Number))/binary>>.

%% @private
-spec init(weft_im_plan:service(), settings(), Region :: pid(), LoginMs :: pos_integer()) ->
          no_return().
init(Service, #{first := First, step := Step, count := Count} = Settings, Region, LoginMs) ->
    Clients = maps:from_list([{weft_im_client:start_link(Service, name(Number)), Number}
                              || Number <- lists:seq(First, Count, Step)]),
    Traffic = #traffic{service = Service, settings = Settings, region = Region,
                       clients = Clients},
    ok = all_in(Clients, erlang:monotonic_time(millisecond) + LoginMs),
    Region ! {ready, self()},
    loop(Traffic).

all_in(Clients, _Deadline) when map_size(Clients) =:= 0 ->
    ok;
all_in(Clients, Deadline) ->
    receive
        {im, Client, logged_in} -> all_in(maps:remove(Client, Clients), Deadline);
        {im, Client, {logged_out, Why}} -> exit({no_login, map_get(Client, Clients), Why})
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
        exit({no_login, lists:sublist(maps:values(Clients), 5)})
    end.

loop(Traffic) ->
    receive
        Message -> loop(calmed(handle(Message, Traffic)))
    end.

handle(talk, #traffic{clients = Clients} = Traffic) ->
    Half = lists:sublist(lists:sort(fun({_, N}, {_, M}) -> N =< M end, maps:to_list(Clients)),
                         max(1, map_size(Clients) div 2)),
    lists:foldl(fun({Client, Number}, Acc) -> converse(Client, Number, Acc) end, Traffic, Half);
handle(mark, #traffic{books = #{heard := Heard}} = Traffic) ->
    Traffic#traffic{mark = {now_us(), Heard}};
handle(finish, #traffic{books = Books, mark = {MarkUs, Before}} = Traffic) ->
    #{heard := Heard} = Books,
    Traffic#traffic{state = falling_silent, books = Books#{heard_marked := Heard - Before,
                                                           marked_us := now_us() - MarkUs}};
handle(report, #traffic{region = Region, books = Books, latencies = Latencies} = Traffic) ->
    Region ! {books, self(), Books#{latencies := weft_load_histogram:snapshot(Latencies)}},
    Traffic;
handle({im, Client, Event}, Traffic) ->
    event(Event, Client, Traffic);
handle({say, Key, Index}, #traffic{state = talking} = Traffic) ->
    say(Key, Index, Traffic);
handle({again, Number}, #traffic{state = talking, clients = Clients} = Traffic) ->
    case [Client || {Client, N} <- maps:to_list(Clients), N =:= Number] of
        [Client] -> converse(Client, Number, Traffic);
        [] -> Traffic
    end;
handle(_Late, Traffic) ->
    Traffic.

converse(Client, Number, #traffic{settings = Settings, begun = Begun} = Traffic) ->
    #{seed := Seed, scale := Scale, count := Count} = Settings,
    K = maps:get(Number, Begun, 0),
    Conversation = {name(Number), name(weft_im_script:partner(Seed, Number, K, Count)), K},
    Talk = #talk{script = weft_im_script:new(Seed, Conversation, Scale), side = a,
                 client = Client},
    After = put_talk({a, Conversation}, Talk, Traffic#traffic{begun = Begun#{Number => K + 1}}),
    say({a, Conversation}, 1, count(conversations, After)).

say({_, Conversation} = Key, Index, #traffic{talks = Talks} = Traffic) ->
    case Talks of
        #{Key := #talk{script = Script, client = Client} = Talk} ->
            {Text, _} = weft_im_script:line(Index, Script),
            ok = weft_im_client:say(Client, Conversation, Text),
            count(said, put_talk(Key, Talk#talk{flying = Index}, Traffic));
        #{} -> Traffic
    end.

put_talk(Key, Talk, #traffic{talks = Talks} = Traffic) ->
    Traffic#traffic{talks = Talks#{Key => Talk}}.

count(Key, #traffic{books = Books} = Traffic) ->
    Traffic#traffic{books = Books#{Key := map_get(Key, Books) + 1}}.

%% ---- what clients tell ----

event({heard, Conversation, Number, Text}, Client, Traffic) ->
    Key = {side(Conversation, Client, Traffic), Conversation},
    heard(Key, Number, Text, known(Key, Client, Traffic));
event({delivered, Conversation, Number, LatencyUs}, Client, Traffic) ->
    ok = timed(LatencyUs, Traffic),
    Key = {side(Conversation, Client, Traffic), Conversation},
    delivered(Key, Number, count(delivered, Traffic));
event({given_up, Conversation, _Why}, Client, Traffic) ->
    given_up({side(Conversation, Client, Traffic), Conversation}, Traffic);
event({logged_out, Why}, Client, #traffic{clients = Clients, talks = Talks} = Traffic) ->
    #traffic{books = #{logged_out := Out} = Books} = Traffic,
    {Number, Others} = maps:take(Client, Clients),
    Left = Traffic#traffic{clients = Others, books = Books#{logged_out := [{Number, Why} | Out]}},
    lists:foldl(fun given_up/2, Left, [Key || {Key, #talk{client = Of}} <- maps:to_list(Talks),
                                              Of =:= Client]);
event(logged_in, _Client, Traffic) ->
    Traffic.

%% What was said before the mark has no part in it, however late it is acknowledged. The latency is
%% half of the time since it was said.
timed(LatencyUs, #traffic{mark = {MarkUs, _}, latencies = Latencies}) ->
    case now_us() - 2 * LatencyUs >= MarkUs of
        true -> weft_load_histogram:record(LatencyUs, Latencies);
        false -> ok
    end;
timed(_LatencyUs, #traffic{mark = none}) ->
    ok.

side({A, _, _}, Client, #traffic{clients = Clients}) ->
    case name(map_get(Client, Clients)) of
        A -> a;
        _ -> b
    end.

%% Who is spoken to learns of the conversation by its first message.
known({b, Conversation} = Key, Client, #traffic{talks = Talks, over = Over} = Traffic)
  when not is_map_key(Key, Talks), not is_map_key(Key, Over) ->
    #traffic{settings = #{seed := Seed, scale := Scale}} = Traffic,
    put_talk(Key, #talk{script = weft_im_script:new(Seed, Conversation, Scale), side = b,
                        client = Client}, Traffic);
known(_Key, _Client, Traffic) ->
    Traffic.

heard({Side, _} = Key, Number, Text, #traffic{talks = Talks} = Traffic) ->
    Index = weft_im_script:index(other(Side), Number),
    case Talks of
        #{Key := #talk{heard = Last}} when Index =< Last -> count(doubled, Traffic);
        #{Key := #talk{script = Script} = Talk} ->
            Right = case weft_im_script:line(Index, Script) of
                        {Text, _} -> Traffic;
                        _ -> count(wrong, Traffic)
                    end,
            answer(Key, Index, Talk#talk{heard = Index}, count(heard, Right));
        #{} -> count(doubled, Traffic)
    end.

other(a) -> b;
other(b) -> a.

answer(Key, Index, #talk{script = Script} = Talk, Traffic) ->
    case weft_im_script:steps(Script) of
        Index -> over(Key, Talk, Traffic);
        _ ->
            {_, TypingMs} = weft_im_script:line(Index + 1, Script),
            _ = erlang:send_after(TypingMs, self(), {say, Key, Index + 1}),
            put_talk(Key, Talk, Traffic)
    end.

delivered({Side, _} = Key, Number, #traffic{talks = Talks} = Traffic) ->
    Index = weft_im_script:index(Side, Number),
    case Talks of
        #{Key := #talk{flying = Index, script = Script} = Talk} ->
            case weft_im_script:steps(Script) of
                Index -> over(Key, Talk, Traffic);
                _ -> put_talk(Key, Talk#talk{flying = 0}, Traffic)
            end;
        #{} -> Traffic
    end.

%% Whoever began it begins the next one.
over({Side, Conversation} = Key, #talk{client = Client}, Traffic) ->
    ok = weft_im_client:done(Client, Conversation),
    #traffic{talks = Talks, clients = Clients, over = Over} = Traffic,
    _ = [self() ! {again, map_get(Client, Clients)} || Side =:= a, is_map_key(Client, Clients)],
    Traffic#traffic{talks = maps:remove(Key, Talks), over = Over#{Key => true}}.

given_up({Side, Conversation} = Key, #traffic{talks = Talks, over = Over} = Traffic) ->
    #traffic{settings = #{seed := Seed, scale := Scale}} = Traffic,
    case maps:take(Key, Talks) of
        {#talk{flying = Flying, client = Client}, Rest} ->
            [erlang:send_after(weft_im_script:pause_ms(Seed, Conversation, Scale), self(),
                               {again, Number})
             || Side =:= a, #{Client := Number} <- [Traffic#traffic.clients]],
            Left = Traffic#traffic{talks = Rest, over = Over#{Key => true}},
            case Flying of
                0 -> Left;
                _ -> unsaid(Conversation, count(given_up, Left))
            end;
        error -> Traffic
    end.

unsaid({A, B, _}, #traffic{service = Service, books = #{unsaid := Unsaid} = Books} = Traffic) ->
    Servers = [weft_im_plan:server_of(Name, Service) || Name <- [A, B]],
    Traffic#traffic{books = Books#{unsaid := [Servers | Unsaid]}}.

calmed(#traffic{state = falling_silent, talks = Talks, region = Region} = Traffic) ->
    case [Index || #talk{flying = Index} <- maps:values(Talks), Index > 0] of
        [] ->
            Region ! {silent, self()},
            Traffic#traffic{state = silent};
        _ -> Traffic
    end;
calmed(Traffic) ->
    Traffic.

now_us() -> erlang:monotonic_time(microsecond).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Users of strong names on a real node: processes that register, look up, give back and take
%% away names at random, and write down what they ask and are told, in files that survive the node.
%%
%% Times are those of the machine's own monotonic clock, the same for all nodes of a machine. The
%% records are events of `weft_sim_name_history'.
-module(weft_names_strong_users).

-export([start/4, stop/0, events/1, now_us/0]).

-define(TIMEOUT_MS, 1500).

%% @doc Starts Count users of Names, who write to files in Dir.
-spec start(weft_names_strong:handle(), Names :: [term()], Dir :: file:filename(),
            Count :: pos_integer()) -> ok.
start(Handle, Names, Dir, Count) ->
    lists:foreach(fun(N) ->
        spawn(fun() ->
                  true = register(user(N), self()),
                  File = filename:join(Dir, lists:concat([node(), "-", os:getpid(), "-", N])),
                  {ok, Out} = file:open(File, [write, raw, binary]),
                  loop(#{handle => Handle, names => Names, out => Out, user => N, next => 1,
                         leases => #{}, held => []})
              end)
    end, lists:seq(1, Count)).

user(N) -> list_to_atom("user_" ++ integer_to_list(N)).

%% @doc The users ask no more after what they are at, which is waited for. They keep what they have:
%% those on other nodes still look.
-spec stop() -> ok.
stop() ->
    Users = [Pid || N <- lists:seq(1, 9), Pid <- [whereis(user(N))], is_pid(Pid)],
    lists:foreach(fun(Pid) -> Pid ! {stop, self()} end, Users),
    lists:foreach(fun(Pid) -> receive {stopped, Pid} -> ok end end, Users).

%% @doc What all users of all nodes wrote in Dir, as `weft_sim_name_history' has it.
-spec events(Dir :: file:filename()) -> [{Us :: integer(), node(), term()}].
events(Dir) ->
    lists:keysort(1, lists:append([read(File) || File <- filelib:wildcard(Dir ++ "/*")])).

read(File) ->
    {ok, Bytes} = file:read_file(File),
    records(Bytes).

%% The last one may be cut short by the end of the node.
records(<<Size:32, Record:Size/binary, Rest/binary>>) -> [binary_to_term(Record) | records(Rest)];
records(_) -> [].

%% @doc The machine's clock.
-spec now_us() -> integer().
now_us() -> os:perf_counter(microsecond).

%% --- a user -----------------------------------------------------------------------------------

loop(State0) ->
    PauseMs = rand:uniform(60),
    receive
        {stop, From} ->
            From ! {stopped, self()},
            receive after infinity -> ok end;
        {lost, Us, Name, Pid} ->
            ok = note(Us, {lost, Name, Pid}, State0),
            loop(dropped(Pid, State0))
    after PauseMs ->
        State = leases(State0),
        Kinds = [register, register, register, whereis, whereis, unregister, update, die, remove],
        loop(act(pick(Kinds), pick(maps:get(names, State)), State))
    end.

act(register, Name, #{handle := Handle} = State) ->
    Pid = holder(),
    Reply = asked({register, Name, Pid}, fun() ->
        weft_names_strong:acquire(Handle, Name, Pid, #{on_lost => tell, timeout_ms => ?TIMEOUT_MS})
    end, State),
    case Reply of
        {{ok, Token}, Next} -> Next#{held := [{Pid, Name, Token} | maps:get(held, Next)]};
        {_, Next} -> Next
    end;
act(whereis, Name, #{handle := Handle} = State) ->
    {_, Next} = asked({whereis, Name}, fun() ->
                                           weft_names_strong:read(Handle, Name, ?TIMEOUT_MS)
                                       end, State),
    Next;
act(remove, Name, #{handle := Handle} = State) ->
    {_, Next} = asked({remove, Name}, fun() -> weft_names_strong:unregister(Handle, Name) end,
                      State),
    Next;
act(_Kind, _Name, #{held := []} = State) ->
    State;
act(unregister, _Name, #{held := Held, handle := Handle} = State) ->
    {Pid, Name, Token} = pick(Held),
    {_, Next} = asked({unregister, Name, Pid, Token},
                      fun() -> weft_names_strong:release(Handle, Name, {Pid, Token}) end, State),
    dropped(Pid, Next);
act(update, _Name, #{held := Held, handle := Handle} = State) ->
    {Pid, Name, Token} = pick(Held),
    New = holder(),
    case asked({update, Name, Pid, New, Token},
               fun() -> weft_names_strong:update(Handle, Name, {New, Token}, undefined) end,
               State) of
        {{ok, NewToken}, #{held := Rest} = Next} ->
            Next#{held := [{New, Name, NewToken} | lists:keydelete(Pid, 1, Rest)]};
        {_, Next} -> dropped(Pid, Next)
    end;
act(die, _Name, #{held := Held, next := N} = State) ->
    {Pid, Name, Token} = pick(Held),
    ok = note(now_us(), {call, id(State), {unregister, Name, Pid, Token}}, State),
    exit(Pid, kill),
    dropped(Pid, State#{next := N + 1}).

asked(Command, Fun, #{next := N} = State) ->
    Id = id(State),
    ok = note(now_us(), {call, Id, Command}, State),
    Reply = Fun(),
    Next = leases(State#{next := N + 1}),
    ok = note(now_us(), {return, Id, Reply}, Next),
    {Reply, Next}.

id(#{user := User, next := N}) -> {os:getpid(), User, N}.

note(Us, Event, #{out := Out}) ->
    Record = term_to_binary({Us, node(), Event}),
    file:write(Out, <<(byte_size(Record)):32, Record/binary>>).

dropped(Pid, #{held := Held} = State) ->
    exit(Pid, kill),
    State#{held := lists:keydelete(Pid, 1, Held)}.

%% When the leases end, in the machine's time; not later than it is.
leases(#{handle := Handle, leases := Known} = State) ->
    Us = now_us(),
    NowMs = erlang:monotonic_time(millisecond),
    Rows = maps:from_list([{P, UntilMs} || {{lease, P}, UntilMs} <- ets:tab2list(Handle)]),
    _ = [note(Us, {lease, P, {(Us - 1000 + (UntilMs - NowMs) * 1000) / 1000}}, State)
         || {P, UntilMs} <- maps:to_list(Rows), maps:get(P, Known, none) =/= UntilMs],
    State#{leases := Rows}.

%% Has a name, and tells its user when that is over.
holder() ->
    User = self(),
    spawn(fun() ->
              Monitor = monitor(process, User),
              receive
                  {weft_names_lost, _Scope, Name, _Token} -> User ! {lost, now_us(), Name, self()};
                  {'DOWN', Monitor, process, User, _} -> ok
              end
          end).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% SPDX-License-Identifier: Apache-2.0
%% @doc What the kernel does for nodes, counted from outside by `perf' of Linux: system calls, and
%% where processor time goes. It counts nothing if there is no `perf', or if it may not (it needs
%% root, or kernel.perf_event_paranoid at most -1). Cache misses are counted where the processor
%% tells them; virtual machines mostly do not.
-module(weft_bench_perf).

-export([possible/0, counted/3, sampled/3]).
-export([counts/1, parts/2]).

-define(BEGIN_MS, 60000).
-define(END_MS, 120000).
-define(FREQUENCY_HZ, 997).
-define(ALL, "raw_syscalls:sys_enter").
-define(CALLS, ["writev", "sendmsg", "sendto", "write", "recvfrom", "recvmsg", "read", "readv",
                "epoll_wait", "epoll_ctl", "futex", "timerfd_settime", "ppoll", "select",
                "sched_yield", "munmap", "madvise", "mmap"]).
-define(PROCESSOR, ["instructions", "cache-misses"]).
%% Symbols of code that copies bytes, in the kernel and in the C library.
-define(COPIES, "rep_movs|copy_user|copy_to_iter|copy_from_iter|memcpy|memmove").

%% @doc Can it count? If not, why.
-spec possible() -> ok | {error, string()}.
possible() ->
    case os:find_executable("perf") of
        false ->
            {error, "there is no command perf (Debian package linux-perf)"};
        _ ->
            case os:cmd("perf stat -e " ++ ?ALL ++ " true > /dev/null 2>&1; printf $?") of
                "0" -> ok;
                _ -> {error, "perf may not count system calls here: it needs root"}
            end
    end.

%% @doc What the function returns, and system calls of these processes of the operating system
%% meanwhile; instructions and cache misses if the processor tells. File is for what perf writes.
-spec counted([OsPid :: string()], File :: file:filename(), fun(() -> Result)) ->
          {Result, [weft_bench_counts:count()]}.
counted(OsPids, File, Function) ->
    Known = string:lexemes(os:cmd("ls /sys/kernel/tracing/events/syscalls 2> /dev/null"), "\n"),
    Events = [?ALL | ["syscalls:sys_enter_" ++ Call
                      || Call <- ?CALLS, lists:member("sys_enter_" ++ Call, Known)]]
        ++ ?PROCESSOR,
    Result = during(["stat -x, -o ", File, " -e ", lists:join(",", Events)], OsPids, Function),
    {ok, Text} = file:read_file(File),
    {Result, counts(Text)}.

%% @doc What the function returns, and microseconds of processor time of these processes meanwhile,
%% by part: kernel, emulator (with the C library) and Erlang code, and how much of the first two was
%% copying. By samples, so small parts are not exact.
-spec sampled([OsPid :: string()], File :: file:filename(), fun(() -> Result)) ->
          {Result, [weft_bench_counts:count()]}.
sampled(OsPids, File, Function) ->
    Result = during(["record -q -e cpu-clock -F ", integer_to_list(?FREQUENCY_HZ), " -o ", File],
                    OsPids, Function),
    Text = os:cmd("perf report -q --stdio -n -g none --sort dso,symbol -t ';' -i " ++ File
                  ++ " 2> /dev/null"),
    _ = file:delete(File),
    {Result, parts(unicode:characters_to_binary(Text), ?FREQUENCY_HZ)}.

%% perf runs a program, and counts as long as that runs: it says that it has begun, and waits for a
%% line.
during(Command, OsPids, Function) ->
    Line = lists:flatten(["exec perf ", Command, " -p ", lists:join(",", OsPids),
                          " -- sh -c 'echo begun; read line'"]),
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", Line]}, exit_status, binary, stderr_to_stdout]),
    ok = begun(Port, <<>>),
    Result = Function(),
    true = port_command(Port, "\n"),
    ok = ended(Port),
    Result.

begun(Port, Said) ->
    receive
        {Port, {data, Data}} ->
            All = <<Said/binary, Data/binary>>,
            case binary:match(All, <<"begun">>) of
                nomatch -> begun(Port, All);
                _ -> ok
            end;
        {Port, {exit_status, Status}} -> error({perf, Status, Said})
    after ?BEGIN_MS -> error({perf_does_not_begin, Said})
    end.

ended(Port) ->
    receive
        {Port, {exit_status, _}} -> ok;
        {Port, {data, _}} -> ended(Port)
    after ?END_MS -> error(perf_does_not_end)
    end.

%% @doc What is in lines of `perf stat -x,': value, unit, event, and more. What is not supported is
%% left out.
-spec counts(binary()) -> [weft_bench_counts:count()].
counts(Text) ->
    Counts = [Count || Line <- binary:split(Text, <<"\n">>, [global]),
                       [Value, _Unit, Event | _] <- [binary:split(Line, <<",">>, [global])],
                       Count <- count(Event, string:to_integer(Value))],
    Named = lists:sum([Count || {system_calls, Of, Count} <- Counts, Of =/= <<"all">>]),
    Counts ++ [{system_calls, <<"others">>, All - Named}
               || {system_calls, <<"all">>, All} <- Counts].

count(_Event, {_, Rest}) when Rest =/= <<>> -> [];
count(<<?ALL>>, {Count, _}) -> [{system_calls, <<"all">>, Count}];
count(<<"syscalls:sys_enter_", Call/binary>>, {Count, _}) when Count > 0 ->
    [{system_calls, Call, Count}];
count(<<"instructions", _/binary>>, {Count, _}) -> [{instructions, <<"all">>, Count}];
count(<<"cache-misses", _/binary>>, {Count, _}) -> [{cache_misses, <<"all">>, Count}];
count(_Event, _Count) -> [].

%% @doc What is in lines of `perf report -t ;' with shares, numbers of samples, objects and symbols.
-spec parts(binary(), FrequencyHz :: pos_integer()) -> [weft_bench_counts:count()].
parts(Text, FrequencyHz) ->
    Samples = [{part(string:trim(Object), Symbol), binary_to_integer(string:trim(Count))}
               || Line <- binary:split(Text, <<"\n">>, [global]),
                  [_Share, Count, Object, Symbol | _] <- [binary:split(Line, <<";">>, [global])]],
    Sums = lists:foldl(fun({Part, Count}, Sums) ->
                           maps:update_with(Part, fun(Sum) -> Sum + Count end, Count, Sums)
                       end, #{}, Samples),
    [{processor_us_of, Part, Count * 1.0e6 / FrequencyHz}
     || {Part, Count} <- lists:sort(maps:to_list(Sums))].

part(<<"[kernel", _/binary>>, Symbol) -> copying(Symbol, <<"kernel">>);
part(<<"beam", _/binary>>, Symbol) -> copying(Symbol, <<"emulator">>);
part(<<"lib", _/binary>>, Symbol) -> copying(Symbol, <<"emulator">>);
part(<<"ld-", _/binary>>, Symbol) -> copying(Symbol, <<"emulator">>);
part(<<"[vdso]">>, Symbol) -> copying(Symbol, <<"emulator">>);
part(_Generated, _Symbol) -> <<"Erlang code">>.

copying(Symbol, Part) ->
    case re:run(Symbol, ?COPIES) of
        nomatch -> Part;
        {match, _} -> <<Part/binary, ", copying">>
    end.

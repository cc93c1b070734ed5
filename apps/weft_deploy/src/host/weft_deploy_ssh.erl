%% SPDX-License-Identifier: Apache-2.0
%% @doc A host that is reached by ssh (see `weft_deploy_host'), with OTP's own client.
%%
%% Keys are in one directory: that of the user (`id_ed25519' or another kind), and `known_hosts'
%% with the keys of the hosts. A host that is not in it, or has another key, is refused. Passwords
%% are not asked for. A script is the input of a shell; files go by SFTP.
%%
%% sshd starts the shell of the user in a process group of its own. That shell becomes one that says
%% the group, and has another one run the script: so a script that takes too long can be ended. What
%% the profile of the user has said before is not what the script says.
-module(weft_deploy_ssh).
-behaviour(weft_deploy_host).

-export([open/2, close/1, run/3, put/3]).

-define(CONNECT_MS, 15000).
-define(SHELL_MS, 60000).
-define(CHUNK_MS, 60000).
-define(OUTPUT_MAX, 16000000).
%% One that ends by a signal ends OTP's connection, too.
-define(SHELL, "exec sh -c 'trap \"exit 143\" TERM; echo; echo weft_group $$; sh -s; exit $?'").
-define(GROUP, "\nweft_group ([0-9]+)\n").

%% @doc Connects, and checks the key of the host.
-spec open(string(), #{keys := string(), user := string(), port := inet:port_number(), _ => _}) ->
          {ok, pid()} | {error, iodata()}.
open(Host, #{keys := Keys, user := User, port := Port}) ->
    {ok, _} = application:ensure_all_started(ssh),
    case filelib:is_dir(Keys) of
        true ->
            Options = [{user, User} || User =/= ""]
                ++ [{user_dir, Keys}, {silently_accept_hosts, false}, {user_interaction, false},
                    {save_accepted_host, false}, {auth_methods, "publickey"},
                    {connect_timeout, ?CONNECT_MS}],
            connected(ssh:connect(Host, Port, Options, ?CONNECT_MS), Host, Keys);
        false ->
            {error, ["there is no directory of keys ", Keys]}
    end.

connected({ok, Connection}, _Host, _Keys) ->
    {ok, Connection};
connected({error, Reason}, Host, Keys) ->
    Text = case Reason of
               _ when is_list(Reason) -> Reason;
               _ when is_atom(Reason) -> inet:format_error(Reason);
               _ -> io_lib:format("~0tP", [Reason, 10])
           end,
    %% What it would ask a user is whether the key of the host is right.
    case re:run(Text, "(Key exchange failed|Service not available|is not allowed)",
                [{capture, none}]) of
        nomatch -> {error, ["ssh: ", Text]};
        match -> {error, ["ssh: ", Text, ". The key of ", Host, " is to be in ", Keys,
                          "/known_hosts"]}
    end.

-spec close(pid()) -> ok.
close(Connection) -> ssh:close(Connection).

%% The time of the script begins when its shell has.
-spec run(pid(), iodata(), timeout()) -> {ok, non_neg_integer(), binary()} | {error, iodata()}.
run(Connection, Script, TimeoutMs) ->
    channel(Connection,
            fun(Channel) ->
                case begun(Connection, Channel) of
                    {ok, Group, Output} ->
                        ok_or_ended(given(Connection, Channel, Script, TimeoutMs, Output), Group,
                                    Connection, Channel);
                    NotBegun ->
                        NotBegun
                end
            end).

%% An account without a shell says why.
begun(Connection, Channel) ->
    case executed(Connection, Channel, ?SHELL) of
        ok ->
            IsSaid = fun(Output) -> group(Output) =/= none end,
            case collect(Connection, Channel, IsSaid, deadline(?SHELL_MS), none, <<>>) of
                {enough, Output} ->
                    {Group, Behind} = group(Output),
                    {ok, Group, Behind};
                {late, _} ->
                    {error, "ssh: the shell of the host did not begin in time"};
                Ended ->
                    Ended
            end;
        Error ->
            Error
    end.

%% With what is behind it.
group(Output) ->
    case re:run(Output, ?GROUP) of
        {match, [{At, Bytes}, Group]} ->
            <<_:(At + Bytes)/binary, Behind/binary>> = Output,
            {binary_to_list(binary:part(Output, Group)), Behind};
        nomatch -> none
    end.

ok_or_ended({late, _}, Group, Connection, Channel) -> ended(Group, Connection, Channel);
ok_or_ended(Result, _Group, _Connection, _Channel) -> Result.

%% What the script has started in another group, as a node of the deployment is, goes on.
ended(Group, Connection, Channel) ->
    Kill = fun(Other) ->
               case executed(Connection, Other, "kill -TERM -" ++ Group) of
                   ok -> collect(Connection, Other, fun never/1, deadline(?CONNECT_MS), none, <<>>);
                   Error -> Error
               end
           end,
    case channel(Connection, Kill) of
        {ok, _, _} ->
            %% So that nothing of it comes later.
            _ = collect(Connection, Channel, fun never/1, deadline(?CONNECT_MS), none, <<>>),
            {error, "a command took too long"};
        _ ->
            {error, "ssh: no answer in time"}
    end.

channel(Connection, Fun) ->
    case ssh_connection:session_channel(Connection, ?CONNECT_MS) of
        {ok, Channel} ->
            Monitor = monitor(process, Connection),
            Result = Fun(Channel),
            true = demonitor(Monitor, [flush]),
            ok = ssh_connection:close(Connection, Channel),
            Result;
        {error, Reason} ->
            {error, io_lib:format("ssh: no channel: ~0tP", [Reason, 10])}
    end.

executed(Connection, Channel, Command) ->
    case ssh_connection:exec(Connection, Channel, Command, ?CONNECT_MS) of
        success -> ok;
        Other -> {error, io_lib:format("ssh: the host runs no shell: ~0tP", [Other, 10])}
    end.

given(Connection, Channel, Input, TimeoutMs, Output) ->
    case ssh_connection:send(Connection, Channel, Input, ?CHUNK_MS) of
        ok ->
            _ = ssh_connection:send_eof(Connection, Channel),
            collect(Connection, Channel, fun never/1, deadline(TimeoutMs), none, Output);
        {error, Reason} ->
            {error, io_lib:format("ssh: ~0tP", [Reason, 10])}
    end.

never(_Output) -> false.

deadline(TimeoutMs) -> erlang:monotonic_time(millisecond) + TimeoutMs.

%% The connection may end without a word to this channel, and a host without a word to anybody,
%% hence the deadline.
collect(Connection, Channel, IsEnough, Deadline, Status, Output) ->
    Left = max(0, Deadline - erlang:monotonic_time(millisecond)),
    receive
        {ssh_cm, Connection, {data, Channel, _Kind, Data}} ->
            ok = ssh_connection:adjust_window(Connection, Channel, byte_size(Data)),
            More = case byte_size(Output) < ?OUTPUT_MAX of
                       true -> <<Output/binary, Data/binary>>;
                       false -> Output
                   end,
            case IsEnough(More) of
                true -> {enough, More};
                false -> collect(Connection, Channel, IsEnough, Deadline, Status, More)
            end;
        {ssh_cm, Connection, {exit_status, Channel, Exit}} ->
            collect(Connection, Channel, IsEnough, Deadline, Exit, Output);
        {ssh_cm, Connection, {closed, Channel}} when is_integer(Status) ->
            {ok, Status, Output};
        {ssh_cm, Connection, {closed, Channel}} ->
            {error, "ssh: the connection was lost"};
        {'DOWN', _Monitor, process, Connection, _Reason} ->
            {error, "ssh: the connection was lost"};
        {ssh_cm, Connection, EofOrSignal} when element(2, EofOrSignal) =:= Channel ->
            collect(Connection, Channel, IsEnough, Deadline, Status, Output)
    after Left ->
        {late, Output}
    end.

-spec put(pid(), string(), binary()) -> ok | {error, iodata()}.
put(Connection, File, Content) ->
    case ssh_sftp:start_channel(Connection, [{timeout, ?CONNECT_MS}]) of
        {ok, Channel} ->
            Result = ssh_sftp:write_file(Channel, File, Content, ?CHUNK_MS),
            ok = ssh_sftp:stop_channel(Channel),
            case Result of
                ok -> ok;
                {error, Reason} -> {error, io_lib:format("sftp: ~ts: ~0tP", [File, Reason, 10])}
            end;
        {error, Reason} ->
            {error, io_lib:format("sftp: ~0tP", [Reason, 10])}
    end.

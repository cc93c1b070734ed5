%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: group leaders, io requests and files over nodes.
-module(weft_conformance_io).

-include("weft_conformance.hrl").

-export([output_of_a_far_process_arrives_at_our_group_leader/1,
         output_in_erpc_arrives_at_our_group_leader/1, io_request_to_a_far_group_leader/1,
         reading_from_a_far_group_leader/1, much_output_keeps_its_order/1,
         file_written_and_read_by_rpc/1, far_file_device_used_from_here/1]).

output_of_a_far_process_arrives_at_our_group_leader(#{b := B}) ->
    Print = fun() ->
                    {Pid, Monitor} = spawn_monitor(B, io, format, ["~p ~ts", [x, "ü"]]),
                    ?expect({'DOWN', Monitor, process, Pid, normal})
            end,
    "x ü" = captured(Print).

output_in_erpc_arrives_at_our_group_leader(#{b := B}) ->
    "hello" = captured(fun() -> ok = erpc:call(B, io, put_chars, ["hello"]) end),
    "world" = captured(fun() -> ok = rpc:call(B, io, put_chars, ["world"]) end).

io_request_to_a_far_group_leader(#{b := B}) ->
    Device = far_string_device(B, "first line\nsecond line\n"),
    "first line\n" = io:get_line(Device, ""),
    "second line\n" = io:get_line(Device, ""),
    eof = io:get_line(Device, "").

reading_from_a_far_group_leader(#{b := B}) ->
    Device = far_string_device(B, "{term, [1,2]}.\n"),
    group_leader(Device, self()),
    {ok, {term, [1, 2]}} = io:read("").

much_output_keeps_its_order(#{b := B}) ->
    Lines = [integer_to_list(N) ++ "\n" || N <- lists:seq(1, 500)],
    Captured = captured(fun() -> erpc:call(B, fun() -> [io:put_chars(L) || L <- Lines] end) end),
    true = Captured =:= lists:append(Lines).

file_written_and_read_by_rpc(#{b := B}) ->
    Name = file_name(),
    Bytes = rand:bytes(200_000),
    ok = rpc:call(B, file, write_file, [Name, Bytes]),
    {ok, Bytes} = rpc:call(B, file, read_file, [Name]),
    ok = rpc:call(B, file, delete, [Name]),
    {error, enoent} = rpc:call(B, file, read_file, [Name]).

%% A file opened there is a process there; opened by a process that lives as long as we do.
far_file_device_used_from_here(#{b := B}) ->
    Name = file_name(),
    Holder = weft_puppet:start(B),
    {ok, Device} = weft_puppet:do(Holder, fun() -> file:open(Name, [write, read]) end),
    B = node(Device),
    ok = io:format(Device, "~w.~n", [{some, term}]),
    {ok, 0} = file:position(Device, bof),
    {ok, {some, term}} = io:read(Device, ""),
    ok = file:write(Device, "tail"),
    ok = file:close(Device),
    {ok, <<"{some,term}.\ntail">>} = rpc:call(B, file, read_file, [Name]),
    ok = rpc:call(B, file, delete, [Name]).

%% What Fun prints. Our group leader is replaced by a process that keeps the characters.
captured(Fun) ->
    Before = group_leader(),
    Near = self(),
    Leader = spawn_link(fun() -> keep_output(Near, []) end),
    group_leader(Leader, self()),
    Fun(),
    group_leader(Before, self()),
    Leader ! {give, self()},
    ?expect({output, Leader, Text}, Text).

keep_output(Owner, Text) ->
    receive
        {io_request, From, Ref, Request} ->
            From ! {io_reply, Ref, ok},
            keep_output(Owner, Text ++ characters(Request));
        {give, Owner} ->
            Owner ! {output, self(), Text}
    end.

characters({put_chars, Encoding, Text}) ->
    unicode:characters_to_list(Text, Encoding);
characters({put_chars, Encoding, Module, Function, Arguments}) ->
    unicode:characters_to_list(apply(Module, Function, Arguments), Encoding).

%% An io device on Node with this text to read: an open file that has no name any more.
far_string_device(Node, Text) ->
    Holder = weft_puppet:start(Node),
    Name = file_name(),
    {ok, Device} = weft_puppet:do(Holder, fun() ->
        ok = file:write_file(Name, Text),
        Opened = file:open(Name, [read]),
        ok = file:delete(Name),
        Opened
    end),
    Device.

%% Nodes share the file system of the machine; the name is unique on it.
file_name() ->
    {ok, Here} = file:get_cwd(),
    filename:join(Here, lists:concat(["conformance_", os:getpid(), "_",
                                      erlang:unique_integer([positive])])).

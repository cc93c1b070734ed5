%% SPDX-License-Identifier: Apache-2.0
%% Receivers on the own node, without the application.
-module(weft_channel_local_tests).

-include_lib("eunit/include/eunit.hrl").

-define(MS, 30000).

%% As with `!': programs that talk to a port get channels by `weft migrate' too.
a_port_gets_its_messages_test() ->
    Channel = #{name => ?MODULE, policy => block, monotonic => undefined, parallelism => 1,
                block_ms => 1000},
    ok = persistent_term:put({weft_channels, ?MODULE}, Channel),
    Port = open_port({spawn, "cat"}, [binary]),
    try talk(Port)
    after
        true = port_close(Port),
        persistent_term:erase({weft_channels, ?MODULE})
    end.

talk(Port) ->
    [begin
         ?assertEqual(ok, weft:send(Port, {self(), {command, <<"x">>}}, Options)),
         ?assertEqual(<<"x">>, receive {Port, {data, Data}} -> Data after ?MS -> nothing end)
     end || Options <- [?MODULE, #{channel => ?MODULE, ack => true}]],
    ?assertError({bad_destination, {"a", b}}, weft:send({"a", b}, x, ?MODULE)).

%% SPDX-License-Identifier: Apache-2.0
%% @doc Checks the address of a listener in a configuration. What is wrong is said with the name
%% that the value has there.
-module(weft_http_address).

-export([ip/2, port/2]).

%% @doc An address as inet has it.
-spec ip(Name :: string(), term()) -> {ok, inet:ip_address()} | {error, Text :: string()}.
ip(Name, Value) ->
    case is_tuple(Value) andalso inet:ntoa(Value) =/= {error, einval} of
        true -> {ok, Value};
        false -> {error, text("~ts is ~0tp: make it an address as a tuple, such as {127,0,0,1}, or "
                              "{0,0,0,0} for all", [Name, Value])}
    end.

%% @doc A port; 0 is one.
-spec port(Name :: string(), term()) -> {ok, inet:port_number()} | {error, Text :: string()}.
port(_Name, Value) when is_integer(Value), Value >= 0, Value =< 65535 ->
    {ok, Value};
port(Name, Value) ->
    {error, text("~ts is ~0tp: make it an integer from 0 to 65535", [Name, Value])}.

text(Format, Arguments) -> lists:flatten(io_lib:format(Format, Arguments)).

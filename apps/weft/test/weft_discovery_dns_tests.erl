%% SPDX-License-Identifier: Apache-2.0
%% @doc Discovery by DNS against a name server of a few lines.
-module(weft_discovery_dns_tests).

-include_lib("eunit/include/eunit.hrl").

addresses_become_hosts_test() ->
    with_server(#{{"app.test", a} => [{10, 0, 0, 1}, {10, 0, 0, 2}]}, fun(Options) ->
        ?assertEqual({ok, ['app@10.0.0.1', 'app@10.0.0.2']},
                     discover(Options#{name => "app.test", type => a}))
    end).

addresses_of_ipv6_too_test() ->
    with_server(#{{"app.test", aaaa} => [{16#fd00, 0, 0, 0, 0, 0, 0, 7}]}, fun(Options) ->
        ?assertEqual({ok, ['app@fd00::7']}, discover(Options#{name => "app.test", type => aaaa}))
    end).

targets_of_srv_records_become_hosts_test() ->
    Records = [{0, 50, 4370, "web-0.web.test"}, {0, 50, 4370, "web-1.web.test"}],
    with_server(#{{"web.test", srv} => Records}, fun(Options) ->
        ?assertEqual({ok, ['app@web-0.web.test', 'app@web-1.web.test']},
                     discover(Options#{name => "web.test", type => srv}))
    end).

an_alias_before_the_addresses_is_left_out_test() ->
    with_server(#{{"app.test", a} => [{cname, "real.test"}, {10, 0, 0, 1}]}, fun(Options) ->
        ?assertEqual({ok, ['app@10.0.0.1']}, discover(Options#{name => "app.test", type => a}))
    end).

no_records_are_an_empty_answer_test() ->
    with_server(#{{"app.test", a} => []}, fun(Options) ->
        ?assertEqual({ok, []}, discover(Options#{name => "app.test", type => a}))
    end).

an_unknown_name_is_an_error_test() ->
    with_server(#{}, fun(Options) ->
        ?assertEqual({error, nxdomain}, discover(Options#{name => "nobody.test", type => a}))
    end).

a_server_that_does_not_answer_is_an_error_test() ->
    {ok, Silent} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Silent),
    ?assertEqual({error, timeout},
                 discover((options(Port))#{name => "app.test", type => a, timeout_ms => 100})),
    gen_udp:close(Silent).

a_headless_service_is_a_name_of_the_dns_test() ->
    Records = [{0, 50, 0, "web-0.web.prod.svc.cluster.local"}],
    with_server(#{{"web.prod.svc.cluster.local", srv} => Records,
                  {"web.prod.svc.cluster.local", a} => [{10, 42, 0, 7}]}, fun(Options) ->
        Service = Options#{service => "web", namespace => "prod", domain => "cluster.local"},
        ?assertEqual({ok, ['app@web-0.web.prod.svc.cluster.local']},
                     weft_discovery_kubernetes:discover(Service#{by => hostname})),
        ?assertEqual({ok, ['app@10.42.0.7']},
                     weft_discovery_kubernetes:discover(Service#{by => ip}))
    end).

%% --- parts ------------------------------------------------------------------------------------

discover(Options) -> weft_discovery_dns:discover(Options).

options(Port) ->
    #{node => "app", nameservers => [{{127, 0, 0, 1}, Port}], timeout_ms => 5000}.

with_server(Zone, Fun) ->
    {ok, Socket} = gen_udp:open(0, [binary, {ip, {127, 0, 0, 1}}, {active, false}]),
    {ok, Port} = inet:port(Socket),
    Server = spawn_link(fun() -> serve(Socket, Zone) end),
    ok = gen_udp:controlling_process(Socket, Server),
    try
        Fun(options(Port))
    after
        unlink(Server),
        exit(Server, kill)
    end.

serve(Socket, Zone) ->
    {ok, {Ip, Port, Query}} = gen_udp:recv(Socket, 0),
    ok = gen_udp:send(Socket, Ip, Port, answer(Query, Zone)),
    serve(Socket, Zone).

%% Header and question as they came, then the records (RFC 1035).
answer(<<Id:16, _Flags:16, 1:16, _:48, Question/binary>>, Zone) ->
    {Name, <<Type:16, 1:16, _/binary>>} = name(Question, []),
    QuestionBytes = byte_size(Question) - byte_size(rest(Question)),
    <<Asked:QuestionBytes/binary, _/binary>> = Question,
    {Code, Records} = case maps:find({Name, type(Type)}, Zone) of
                          {ok, Found} -> {0, Found};
                          error -> {3, []}
                      end,
    Encoded = [record(Type, Record) || Record <- Records],
    iolist_to_binary([<<Id:16, 1:1, 0:4, 1:1, 0:1, 1:1, 1:1, 0:3, Code:4, 1:16,
                        (length(Records)):16, 0:32>>, Asked, Encoded]).

name(<<0, Rest/binary>>, Labels) -> {lists:flatten(lists:join(".", lists:reverse(Labels))), Rest};
name(<<N, Label:N/binary, Rest/binary>>, Labels) -> name(Rest, [binary_to_list(Label) | Labels]).

%% What follows the question: nothing, or an option record.
rest(Question) ->
    {_, <<_Type:16, _Class:16, Rest/binary>>} = name(Question, []),
    Rest.

type(1) -> a;
type(28) -> aaaa;
type(33) -> srv.

%% The name is that of the question (a pointer to it).
record(Type, Data) ->
    {RecordType, Bytes} = data(Type, Data),
    [<<16#c00c:16, RecordType:16, 1:16, 0:32, (iolist_size(Bytes)):16>>, Bytes].

data(_, {cname, Target}) -> {5, encoded(Target)};
data(1, {A, B, C, D}) -> {1, <<A, B, C, D>>};
data(28, Address) -> {28, [<<Part:16>> || Part <- tuple_to_list(Address)]};
data(33, {Priority, Weight, Port, Target}) ->
    {33, [<<Priority:16, Weight:16, Port:16>>, encoded(Target)]}.

encoded(Name) ->
    [[[length(Label), Label] || Label <- string:lexemes(Name, ".")], 0].

%% SPDX-License-Identifier: Apache-2.0
%% @doc What is made of a profile: the trace, the numbers, the page, the flame graph.
-module(weft_profile_pictures_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include_lib("xmerl/include/xmerl.hrl").

profile() -> weft_profile_recording:profile(weft_profile_sample:parts(7)).

trace(Profile, MaxBytes) ->
    Self = self(),
    Told = weft_profile_chrome:write(Profile, fun(Text) -> Self ! {text, Text}, ok end, MaxBytes),
    {Told, iolist_to_binary(texts())}.

texts() -> receive {text, Text} -> [Text | texts()] after 0 -> [] end.

the_trace_is_a_trace_test_() ->
    {timeout, 120, ?_assert(proper:quickcheck(prop_trace(), [{to_file, user}, quiet,
                                                             {numtests, 30}]))}.

prop_trace() ->
    ?FORALL(Seed, proper_types:integer(),
            begin
                #{flows := Flows} = Profile =
                    by_others(weft_profile_recording:profile(weft_profile_sample:parts(Seed))),
                {#{bytes := Bytes, left_out := 0}, Text} = trace(Profile, 10000000),
                #{flows := Count, slices := Slices, steps := Steps} =
                    weft_profile_trace_check:check(Text),
                Bytes =:= byte_size(Text) andalso Count =:= length(Flows)
                    andalso Slices > 2 * Count
                    andalso Steps =:= lists:sum([length(Hops) || #{hops := Hops} <- Flows])
            end).

%% All messages pass each other node at once, and some are sent together.
by_others(#{nodes := Sides, flows := Flows} = Profile) ->
    Nodes = [Node || #{node := Node} <- Sides],
    Profile#{flows := [begin
                           #{from_node := A, to_node := B} = Flow,
                           Ns = Sent - Id rem 2 * (Sent rem 1000000),
                           Flow#{sent := Ns, received := max(Ns, Received),
                                 hops => [{Node, Ns} || Node <- Nodes -- [A, B]]}
                       end || #{id := Id, sent := Sent, received := Received} = Flow <- Flows]}.

ports_are_in_the_trace_test() ->
    {_, Text} = trace(profile(), 10000000),
    #{all := Events} = weft_profile_trace_check:check(Text),
    ?assertEqual(["?", "command"],
                 lists:usort([At || #{"cat" := "port", "args" := #{"at" := At},
                                      "name" := "tcp_inet of server #Port<0.7>"} <- Events])).

a_trace_is_no_longer_than_it_may_be_test() ->
    {#{left_out := 0}, All} = trace(profile(), 10000000),
    {#{left_out := LeftOut, bytes := Bytes}, Part} = trace(profile(), byte_size(All) div 2),
    ?assert(LeftOut > 0),
    ?assertEqual(Bytes, byte_size(Part)),
    ?assert(Bytes =< byte_size(All) div 2 + 10),
    #{flows := Flows} = weft_profile_trace_check:check(Part),
    ?assertEqual(length(maps:get(flows, profile())), Flows),
    {_, Nothing} = trace(profile(), 1),
    #{flows := 0, slices := 0} = weft_profile_trace_check:check(Nothing).

the_checker_can_fail_test() ->
    X = fun(Ts, Dur) ->
                ["{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":", Ts, ",\"dur\":", Dur, "}"]
        end,
    Check = fun(Events) ->
                    weft_profile_trace_check:check(
                      ["{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", lists:join(",", Events),
                       "]}"])
            end,
    #{slices := 2} = Check([X("1.000", "5.000"), X("2.000", "4.000")]),
    [?assertError(_, Check(Bad))
     || Bad <- [[X("1.000", "5.000"), X("2.000", "5.000")],
                [X("2.000", "1.000"), X("1.000", "1.000")],
                ["{\"ph\":\"s\",\"pid\":1,\"tid\":1,\"ts\":1.000,\"id\":1}"], ["{"]]].

numbers_test() ->
    #{nodes := Nodes, running := [First | _], ports := Ports, waiting := Waiting, gc := Gc,
      messages := Messages, talks := Talks, ms := Ms} = weft_profile_summary:summary(profile()),
    ?assert(Ms >= 100),
    [?assertMatch(#{ended := time, dropped := 0, migrations := 0, queue_max := 2}, Node)
     || Node <- Nodes],
    %% Twenty slices of 900 ns.
    ?assertMatch(#{running_ms := 0.018, slices := 20}, First),
    ?assertEqual(length(Nodes), length(Ports)),
    [?assertMatch(#{port := <<"tcp_inet of server #Port<0.7>">>, running_ms := 0.003, slices := 10,
                    called := 5}, Row) || Row <- Ports],
    [?assertMatch(#{waiting_ms := 40.0, seen := 4}, Row) || Row <- Waiting],
    [?assertMatch(#{minor := 20, major := 0, gc_ms := 0.0004}, Row) || Row <- Gc],
    [?assert(P50 =< P99 andalso P99 =< Max)
     || #{p50_us := P50, p99_us := P99, max_us := Max} <- Messages],
    [?assertEqual(length(maps:get(flows, profile())), lists:sum([Count || #{count := Count} <- Of]))
     || Of <- [Messages, Talks]].

concurrency_keeps_the_sum_test() ->
    #{nodes := Sides, to := To} = profile(),
    [begin
         Points = weft_profile_summary:concurrency(Side, To, 37),
         Ran = lists:sum([End - From || #{from := From, to := End} <- Slices]),
         ?assertEqual(37, length(Points)),
         ?assert(abs(lists:sum([R || {_, R, _} <- Points]) * To / 37 - Ran) < 100)
     end || #{history := #{slices := Slices}} = Side <- Sides].

a_process_is_named_as_on_its_node_test() ->
    Pid = list_to_pid("<0.101.0>"),
    Name = fun weft_profile_recording:name/2,
    ?assertEqual(<<"x <0.101.0>">>, Name(Pid, #{names => #{Pid => <<"x">>}})),
    ?assertEqual(<<"<0.101.0>">>, Name(Pid, #{names => #{}})).

%% Well-formed, which browsers do not insist on; entities and the doctype are those of HTML.
xml(Text) ->
    Plain = re:replace(unicode:characters_to_binary(Text), "<!DOCTYPE html>|<meta[^>]*>", "",
                       [global, {return, list}, unicode]),
    {Xml, ""} = xmerl_scan:string(binary_to_list(unicode:characters_to_binary(Plain)),
                                  [{quiet, true}]),
    Xml.

count(Path, Xml) -> length(xmerl_xpath:string(Path, Xml)).

the_page_shows_all_test() ->
    #{nodes := Sides} = Profile = profile(),
    [First, Second | _] = [Node || #{node := Node} <- Sides],
    Ways = #{{First, Second} => [First, gateway@host, Second]},
    Page = xml(weft_profile_page:page(Profile#{ways := Ways}, ["flame.svg"])),
    ?assertEqual(1, count("//a[@href='flame.svg']", Page)),
    ?assertEqual(length(Sides) + 3, count("//svg", Page)),
    ?assertEqual(7, count("//table", Page)),
    #{messages := Pairs} = weft_profile_summary:summary(Profile),
    %% One process of each node sends and receives.
    ?assertEqual(length(Pairs), count("//path[@class='talk']", Page)),
    ?assert(count("//polyline[@class='flow']", Page) > 20),
    ?assert(count("//rect[@class='run']", Page) > 20),
    ?assertEqual(0, count("//p[@class='warning']", Page)).

%% Of what is rounded to a thousand, too.
a_time_has_a_unit_that_fits_test() ->
    #{flows := [#{sent := Sent} = Flow | _]} = Profile = profile(),
    [?assertMatch({match, _},
                  re:run(unicode:characters_to_binary(
                           weft_profile_timeline:picture([Flow#{received := Sent + Ns}], around,
                                                         Profile)),
                         [": ", Text, "</title>"]), Text)
     || {Ns, Text} <- [{999949, "999.9 us"}, {999950, "1.00 ms"}, {-999950, "-1.00 ms"}]].

a_limit_is_told_first_test() ->
    #{nodes := [Side | Rest]} = Profile = profile(),
    [?assertEqual(1, count("//p[@class='warning']",
                           xml(weft_profile_page:page(
                                 Profile#{nodes := [Side#{ended := Limit} | Rest]}, []))))
     || Limit <- [events, rate, bytes, waiting, stopped]].

a_page_without_anything_test() ->
    Empty = [Part#{events := [], info := Info#{samples := #{}}}
             || #{info := Info} = Part <- weft_profile_sample:parts(3)],
    Page = xml(weft_profile_page:page(weft_profile_recording:profile(Empty), [])),
    ?assertEqual(length(Empty), count("//svg", Page)).

the_flame_graph_is_as_wide_as_what_was_seen_test() ->
    Xml = xml(weft_profile_flame:picture([{[<<"n">>, <<"m:f/1">>, <<"m:<g>/2">>], 3},
                                          {[<<"n">>, <<"m:f/1">>], 1}])),
    Widths = [list_to_float(W) || #xmlAttribute{value = W}
                                      <- xmerl_xpath:string("//g/rect/@width", Xml)],
    ?assertEqual([1200.0, 1200.0, 900.0], Widths).

stacks_of_all_nodes_are_one_graph_test() ->
    Folded = weft_profile_flame:folded(profile()),
    ?assert(length(Folded) >= 4),
    ?assertMatch({[_, <<"m:f/1">> | _], _}, hd(Folded)),
    ?assertEqual(0, count("//g", xml(weft_profile_flame:picture([])))).

the_nearest_messages_are_found_test() ->
    Flows = [#{sent => Ns} || Ns <- [10, 100, 101, 102, 300]],
    ?assertEqual([#{sent => Ns} || Ns <- [100, 101, 102]],
                 weft_profile_timeline:busiest(Flows, 3)),
    ?assertEqual(Flows, weft_profile_timeline:busiest(Flows, 5)),
    ?assertEqual(3, length(weft_profile_timeline:spread(Flows, 3))).

messages_are_known_by_what_they_are_test() ->
    Ref = make_ref(),
    Key = fun weft_profile_switch:message_key/1,
    Kind = fun weft_profile_switch:message_kind/1,
    ?assertEqual(Key({reply, Ref}), Key({reply, Ref})),
    ?assertNotEqual(Key({reply, Ref}), Key({reply, make_ref()})),
    ?assertEqual([get, set, reply, reply, hello, other, message],
                 [Kind(Message) || Message <- [{'$gen_call', {self(), Ref}, {get, key}},
                                               {'$gen_cast', set}, {Ref, ok}, {[alias | Ref], ok},
                                               hello, {other, 1}, "text"]]).

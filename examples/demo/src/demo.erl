%% SPDX-License-Identifier: Apache-2.0
%% @doc The main demonstration: the chat example, unchanged, on twelve nodes in three groups that
%% are joined by gateways only, while a gateway is killed and a link is cut; and the same on stock
%% distribution. Called by `bin/demo'.
%%
%% Ends with exit code 0 only if weft kept its promises (`demo_report:broken_promises/1').
-module(demo).

-export([main/1, clean/1]).

%% Two gateways between neighbouring groups, so that one can be lost. No room lives on a gateway
%% (see the conversation).
-define(GROUPS, #{harbour => [n01, n02, n03, n04],
                  hill => [n03, n04, n05, n06, n07, n08],
                  mill => [n06, n08, n09, n10, n11, n12]}).
-define(GATEWAYS, #{first => [n03, n04], second => [n06, n08]}).
-define(FAULTS, [{12000, kill}, {22000, cut}, {25000, heal}]).

%% @doc Arguments: the conversation file and a directory for logs and results.
-spec main([string()]) -> no_return().
main([File, Root]) ->
    ok = clean([Root]),
    Plan = #{root => Root, groups => ?GROUPS, gateways => ?GATEWAYS, faults => ?FAULTS,
             file => filename:absname(File), script => script(File)},
    io:format("The chat of examples/chat, 12 nodes, 36 users, 7 rooms; in the middle a gateway is "
              "killed~nand a link is cut for 3 s. Takes about two minutes.~n"),
    Weft = #{victim := Victim, link := Link} = run(weft, Plan),
    Stock = run(stock, Plan#{victim => Victim, link => Link}),
    halt(report(Weft, Stock, Root)).

script(File) ->
    case chat_script:read(File) of
        {ok, Script} -> Script;
        {error, Reason} -> stop(chat_script:format_error(Reason))
    end.

run(Carrier, Plan) ->
    try demo_run:run(Carrier, Plan) of
        {ok, Result} -> Result;
        {error, Text} -> stop([atom_to_list(Carrier), ": ", Text])
    catch
        Class:Reason:Stack ->
            stop(io_lib:format("~ts: ~ts ~0tP at ~0tP", [Carrier, Class, Reason, 20, Stack, 30]))
    end.

-spec stop(unicode:chardata()) -> no_return().
stop(Text) ->
    io:format(standard_error, "demo: ~ts~n", [Text]),
    halt(2).

report(Weft, Stock, Root) ->
    Table = unicode:characters_to_binary(demo_report:text(Weft, Stock)),
    ok = file:write_file(filename:join(Root, "table.txt"), Table),
    ok = file:write_file(filename:join(Root, "result.json"),
                         [weft_json:encode(demo_report:json(Weft, Stock)), $\n]),
    ok = file:write_file(filename:join(Root, "picture.svg"),
                         demo_picture:svg([{Carrier, Samples} || #{carrier := Carrier,
                                                                   samples := Samples}
                                                                     <- [Weft, Stock]],
                                          faults(?FAULTS))),
    io:format("~n~ts~n", [Table]),
    case demo_report:broken_promises(Weft) of
        [] ->
            io:format("All held. The data are in ~ts~n", [Root]),
            0;
        Broken ->
            io:format("BROKEN on weft:~n~ts", [[["  ", Text, $\n] || Text <- Broken]]),
            1
    end.

faults(Faults) ->
    lists:join(", ", [io_lib:format("~b s: ~ts", [AtMs div 1000, words(Fault)])
                      || {AtMs, Fault} <- Faults]).

words(kill) -> "gateway killed";
words(cut) -> "link cut";
words(heal) -> "link healed".

%% @doc Stops what a demo that was interrupted has left in that directory.
-spec clean([file:filename()]) -> ok.
clean([Root]) ->
    lists:foreach(fun(Name) ->
                          case weft_local:find(Root, Name) of
                              {ok, Cluster} -> weft_local:down(Cluster);
                              {error, _} -> ok
                          end
                  end, weft_local_files:list(Root)).

%% SPDX-License-Identifier: Apache-2.0
%% @doc What may be broken from a browser: the faults, as it says them and as `weft_chaos' knows
%% them. Each but the kill has an end, which the nodes keep by themselves.
%%
%% `kill_node', `pause_node' with `node'; `cut_link', `break_link', `heal_link' with `from' and
%% `to'. Cuts and pauses last for `for_ms', at most ten minutes and one minute.
-module(weft_dashboard_chaos).

-export([fault/2, break/2, text/1]).
-export_type([fault/0]).

-type fault() :: {crash, node()} | {pause, node(), ForMs :: pos_integer()}
               | {cut, node(), node(), ForMs :: pos_integer()} | {break, node(), node()}
               | {heal, node(), node()}.

-define(PAUSE_MS, 10000).
-define(PAUSE_MAX_MS, 60000).
-define(CUT_MS, 60000).
-define(CUT_MAX_MS, 600000).
%% The node asks back, for which it takes up to half of this.
-define(ASK_MS, 4000).

%% @doc The fault that an action of a browser means.
-spec fault(#{binary() => weft_json:json()}, fun((binary()) -> {ok, node()} | error)) ->
          {ok, fault()} | {error, binary()}.
fault(#{<<"action">> := Action} = Said, Find) ->
    Nodes = [case Said of
                 #{Key := Text} when is_binary(Text) -> Find(Text);
                 #{} -> error
             end || Key <- keys(Action)],
    case {keys(Action), [Node || {ok, Node} <- Nodes]} of
        {[], _} -> unknown();
        {[_], [Node]} -> of_node(Action, Node, Said);
        {[_, _], [From, To]} when From =/= To -> of_link(Action, From, To, Said);
        {_, _} -> {error, <<"say in node, or in from and to, nodes of the model">>}
    end;
fault(_Said, _Find) ->
    unknown().

unknown() ->
    {error, <<"say action: kill_node, pause_node, cut_link, break_link or heal_link">>}.

keys(Action) when Action =:= <<"kill_node">>; Action =:= <<"pause_node">> -> [<<"node">>];
keys(Action) when Action =:= <<"cut_link">>; Action =:= <<"break_link">>;
                  Action =:= <<"heal_link">> -> [<<"from">>, <<"to">>];
keys(_Unknown) -> [].

of_node(<<"kill_node">>, Node, _Said) -> {ok, {crash, Node}};
of_node(<<"pause_node">>, Node, Said) ->
    for_ms(Said, ?PAUSE_MS, ?PAUSE_MAX_MS, fun(ForMs) -> {pause, Node, ForMs} end).

of_link(<<"cut_link">>, From, To, Said) ->
    for_ms(Said, ?CUT_MS, ?CUT_MAX_MS, fun(ForMs) -> {cut, From, To, ForMs} end);
of_link(<<"break_link">>, From, To, _Said) ->
    {ok, {break, From, To}};
of_link(<<"heal_link">>, From, To, _Said) ->
    {ok, {heal, From, To}}.

for_ms(Said, DefaultMs, MaxMs, Fault) ->
    case maps:get(<<"for_ms">>, Said, DefaultMs) of
        ForMs when is_integer(ForMs), ForMs > 0, ForMs =< MaxMs ->
            {ok, Fault(ForMs)};
        _Other ->
            {error, iolist_to_binary(io_lib:format("for_ms is from 1 to ~b", [MaxMs]))}
    end.

%% @doc A fault in words.
-spec text(fault()) -> unicode:chardata().
text({crash, Node}) -> io_lib:format("killed ~ts", [Node]);
text({pause, Node, ForMs}) -> io_lib:format("paused ~ts for ~b ms", [Node, ForMs]);
text({cut, A, B, ForMs}) -> io_lib:format("cut the link of ~ts and ~ts for ~b ms", [A, B, ForMs]);
text({break, A, B}) -> io_lib:format("broke the link of ~ts and ~ts", [A, B]);
text({heal, A, B}) -> io_lib:format("healed the link of ~ts and ~ts", [A, B]).

%% @doc Does it: by `weft_chaos' on the nodes, which have to allow it, or by the function given.
-spec break(fault(), true | fun((fault()) -> ok | {error, iodata()})) -> ok | {error, iodata()}.
break(Fault, true) ->
    {Answers, Silent} = weft_ask:all(ends(Fault), fun(Node) -> ask(Node, Fault) end, ?ASK_MS),
    case [Text || {_, {error, Text}} <- Answers] of
        [] when Answers =/= [] -> ok;
        [] -> {error, ["no answer from ", lists:join(", ", [atom_to_list(N) || N <- Silent])]};
        [Text | _] -> {error, Text}
    end;
break(Fault, Break) ->
    Break(Fault).

%% A node that is gone needs no fault.
ends({_, Node}) -> [Node];
ends({pause, Node, _}) -> [Node];
ends({_, A, B}) -> [A, B];
ends({cut, A, B, _}) -> [A, B].

%% This process ends with its time. So a node that stands still meanwhile knows, when it goes on,
%% that it is too late (`weft_chaos_agent').
ask(Node, Fault) -> asked(Node, [Fault, self()]).

asked(Node, [Fault | _] = Arguments) ->
    try erpc:call(Node, weft_chaos_agent, do, Arguments, ?ASK_MS) of
        {ok, _} -> ok;
        {error, Text} -> {error, [atom_to_list(Node), ": ", Text]}
    catch
        %% The version before does what it is asked for whenever it can.
        error:{exception, undef, [{weft_chaos_agent, do, [_, _], _} | _]} -> asked(Node, [Fault]);
        error:{exception, undef, _} -> {error, [atom_to_list(Node), " has no weft_chaos"]}
    end.

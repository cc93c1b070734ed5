%% SPDX-License-Identifier: Apache-2.0
%% @doc The Instant Messenger for a person at a terminal.
%%
%% ```
%% bin/im NAME [NODE]
%% @@bob               is bob there?
%% @@bob hello         writes to bob
%% and again          writes to bob, too
%% /quit              leaves; so does the end of the input
%% '''
-module(weft_im_terminal).

-export([run/1, command/1]).
-export_type([command/0]).

-type command() :: {who, binary()} | {say, To :: binary() | last, Text :: binary()} | quit
                 | nothing | {error, string()}.

-record(terminal, {service :: weft_im_plan:service(), client :: pid(), name :: binary(),
                   number :: integer(), last = none :: none | binary(),
                   talks = #{} :: #{Other :: binary() => weft_im_session:conversation()}}).

-define(ASK_MS, 10000).
-define(LEAVE_MS, 10000).
-define(AGAIN_MS, 20).
-define(TEXT_MAX, 4000).

%% @doc Logs in at that node, or at the service of this host; ends the emulator. Exit status: 0, 1
%% if there is no service or it does not let one in, 2 if that is no name.
-spec run(#{name := string(), node => string()}) -> no_return().
run(#{name := Name} = Given) ->
    ok = io:setopts([{encoding, unicode}]),
    [_, Host] = string:split(atom_to_list(node()), "@"),
    case weft_im_client:name(Name) of
        {ok, Known} -> talk(Known, list_to_atom(maps:get(node, Given, "im@" ++ Host)));
        {error, Text} -> stop(2, Text)
    end.

-spec stop(0..2, unicode:chardata()) -> no_return().
stop(0, Text) ->
    io:format("~ts~n", [Text]),
    halt(0);
stop(Status, Text) ->
    io:format(standard_error, "~ts~n", [Text]),
    halt(Status).

-spec talk(binary(), node()) -> no_return().
talk(Name, Node) ->
    case plan(Node) of
        {ok, Service} ->
            Client = weft_im_client:start_link(Service, Name),
            Self = self(),
            receive
                {im, Client, logged_in} ->
                    io:format("hello ~ts; write \"@name text\", and /quit to leave~n", [Name]),
                    _ = spawn_link(fun() -> read(Self) end),
                    loop(#terminal{service = Service, client = Client, name = Name,
                                   number = os:system_time(microsecond)});
                {im, Client, {logged_out, Why}} -> stop(1, logged_out(Why))
            end;
        none ->
            stop(1, ["there is no service at ", atom_to_list(Node), "; bin/im serve starts one"])
    end.

plan(Node) ->
    try
        erpc:call(Node, weft_im_service, plan, [], ?ASK_MS)
    catch
        error:{erpc, _} -> none
    end.

read(Terminal) ->
    case io:get_line("") of
        Line when is_list(Line); is_binary(Line) ->
            Terminal ! {line, Line},
            read(Terminal);
        _EofOrError ->
            Terminal ! {line, "/quit"}
    end.

loop(Terminal) ->
    receive
        {line, Line} -> loop(obey(command(Line), Terminal));
        {im, _, Event} -> loop(show(Event, Terminal))
    end.

%% @doc What a line means.
-spec command(unicode:chardata()) -> command().
command(Line) ->
    case unicode:characters_to_binary(Line) of
        Text when is_binary(Text) -> meant(string:trim(Text));
        _NotUnicode -> {error, "that is no text"}
    end.

meant(<<>>) -> nothing;
meant(<<"/quit">>) -> quit;
meant(<<"/", _/binary>>) -> {error, "there is /quit, and @name text"};
meant(Line) when byte_size(Line) > ?TEXT_MAX ->
    {error, io_lib:format("that is longer than ~b bytes", [?TEXT_MAX])};
meant(<<"@", Rest/binary>>) -> addressed(string:split(Rest, " "));
meant(Line) -> {say, last, Line}.

addressed([Name | Rest]) ->
    case {weft_im_client:name(Name), Rest} of
        {{ok, To}, []} -> {who, To};
        {{ok, To}, [Text]} -> {say, To, string:trim(Text)};
        {{error, Why}, _} -> {error, Why}
    end.

obey(nothing, Terminal) ->
    Terminal;
obey({error, Text}, Terminal) ->
    io:format("~ts~n", [Text]),
    Terminal;
obey({who, Name}, #terminal{service = Service} = Terminal) ->
    io:format("~ts ~ts~n", [Name, case found(Name, Service) of
                                      {ok, _} -> "is here";
                                      none -> "is not here";
                                      no_answer -> "may be here or not: no answer"
                                  end]),
    Terminal;
obey({say, last, _Text}, #terminal{last = none} = Terminal) ->
    obey({error, "to whom? write @name text"}, Terminal);
obey({say, last, Text}, #terminal{last = To} = Terminal) ->
    obey({say, To, Text}, Terminal);
obey({say, Name, _Text}, #terminal{name = Name} = Terminal) ->
    obey({error, "that is you"}, Terminal);
obey({say, To, Text}, #terminal{client = Client, name = Name, number = Number} = Terminal) ->
    Conversation = maps:get(To, Terminal#terminal.talks, {Name, To, Number}),
    ok = weft_im_client:say(Client, Conversation, Text),
    known(To, Conversation, Terminal#terminal{last = To});
obey(quit, #terminal{client = Client, name = Name, service = Service}) ->
    Monitor = monitor(process, Client),
    ok = weft_im_client:leave(Client),
    receive {'DOWN', Monitor, process, _, _} -> ok after ?LEAVE_MS -> ok end,
    ok = left(Name, Service, erlang:monotonic_time(millisecond) + ?LEAVE_MS),
    stop(0, "bye").

found(Name, Service) ->
    weft_im_database:find(Service, {client_db, weft_im_plan:server_of(Name, Service)}, Name, main).

%% The same name can log in again at once.
left(Name, Service, DeadlineMs) ->
    case found(Name, Service) of
        {ok, _} ->
            case erlang:monotonic_time(millisecond) < DeadlineMs of
                true -> receive after ?AGAIN_MS -> left(Name, Service, DeadlineMs) end;
                false -> ok
            end;
        _ -> ok
    end.

known(Other, Conversation, #terminal{talks = Talks} = Terminal) ->
    Terminal#terminal{talks = Talks#{Other => Conversation}}.

show({heard, Conversation, _Number, Text}, Terminal) ->
    Other = other(Conversation, Terminal),
    io:format("~ts: ~ts~n", [Other, Text]),
    known(Other, Conversation, Terminal);
show({delivered, Conversation, _Number, _LatencyUs}, Terminal) ->
    io:format("(~ts has it)~n", [other(Conversation, Terminal)]),
    Terminal;
show({given_up, Conversation, Why}, #terminal{talks = Talks} = Terminal) ->
    Other = other(Conversation, Terminal),
    io:format("not delivered to ~ts: ~ts~n", [Other, given_up(Why)]),
    Terminal#terminal{talks = maps:remove(Other, Talks), number = os:system_time(microsecond)};
show({logged_out, Why}, _Terminal) ->
    stop(1, logged_out(Why));
show(logged_in, Terminal) ->
    Terminal.

other({Name, Other, _}, #terminal{name = Name}) -> Other;
other({Other, _, _}, _Terminal) -> Other.

given_up({no_client, _}) -> "nobody with this name is logged in";
given_up(no_answer) -> "no answer";
given_up(too_much) -> "too much at once".

logged_out(client_already_logged_in) -> "somebody with this name is logged in already";
logged_out({server_lost, _}) -> "the server of this name is lost";
logged_out(no_answer) -> "the service does not answer".

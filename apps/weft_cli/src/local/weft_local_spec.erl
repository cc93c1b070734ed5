%% SPDX-License-Identifier: Apache-2.0
%% @doc What a local cluster shall look like: nodes, topology, settings. Pure.
%%
%% Made from the options of `weft up' or from a file of the same keys as Erlang terms (`of_file/1'),
%% with short node names (n01 stands for n01@127.0.0.1), and checked as far as that is possible
%% before a node runs: by the checks of `weft_config' and `weft_topology', those that each node
%% makes at its start.
%%
%% Keys: name, nodes (a number or names), topology (full_mesh, line, ring, star, groups, static,
%% client_server, peer_to_peer, none, or a term for {weft, topology}), groups, links, servers (of
%% client_server; all other nodes are clients), paths, settings (keys of {weft, ..}), epmd_port,
%% carrier (weft, or stock: the carrier of OTP, to compare with).
-module(weft_local_spec).

-export([new/1, of_file/1, groups/1, links/1, servers/1, topology_of/2, neighbours/2, short/1,
         full/1]).
-export_type([spec/0, input/0]).

-define(HOST, "127.0.0.1").
-define(NODES_MAX, 500).
-define(DEFAULT_NODES, 3).

-type input() :: #{atom() => term()}.
-type spec() :: #{name := string(), nodes := [node()], topology := term() | undefined,
                  partial := boolean(), settings := [{atom(), term()}],
                  paths := [file:filename()], epmd_port => inet:port_number(),
                  carrier := weft | stock}.

-define(SERVERS, 2).

-define(KEYS, [name, nodes, topology, groups, links, servers, lanes, circuits, transport, settings,
               paths, epmd_port, carrier]).

%% @doc Completes and checks. The error says what to change.
-spec new(input()) -> {ok, spec()} | {error, iolist()}.
new(Input) ->
    try {ok, spec(Input)}
    catch throw:{bad_spec, Text} -> {error, Text}
    end.

%% @doc Turns what file:consult/1 read into input.
-spec of_file([term()]) -> {ok, input()} | {error, iolist()}.
of_file(Terms) ->
    case {[Term || Term <- Terms, not is_known(Term)], twice([Key || {Key, _} <- Terms])} of
        {[], []} -> {ok, maps:from_list(Terms)};
        {[], [Key | _]} ->
            {error, io_lib:format("~0tp is there twice: remove one", [Key])};
        {[Other | _], _} ->
            {error, io_lib:format("~0tp is no setting of a cluster: write {Key, Value}. with one "
                                  "of the keys ~ts", [Other, words(?KEYS)])}
    end.

twice(Items) -> Items -- lists:usort(Items).

is_known({Key, _}) -> lists:member(Key, ?KEYS);
is_known(_) -> false.

spec(Input) ->
    Carrier = carrier(maps:get(carrier, Input, weft)),
    Shape = shape(Input),
    Nodes = some(node_list(maps:get(nodes, Input, undefined), Shape)),
    Topology = topology(Shape, Nodes),
    Settings = settings(Input, Topology),
    Spec = #{name => name(maps:get(name, Input, "local")), nodes => Nodes, topology => Topology,
             settings => Settings, paths => paths(maps:get(paths, Input, [])), carrier => Carrier,
             partial => check_topology(Topology, Nodes)},
    maps:merge(Spec, epmd_port(Input)).

carrier(Carrier) when Carrier =:= weft; Carrier =:= stock -> Carrier;
carrier(Other) -> bad("carrier is ~0tp: write weft or stock", [Other]).

paths(Paths) ->
    [case io_lib:char_list(Path) andalso Path =/= "" of
         true -> Path;
         false -> bad("paths is ~0tp: write a list of directories, each between quotes", [Paths])
     end || Path <- proper("paths", Paths, "[\"ebin\", ...]")].

proper(What, List, Example) ->
    try length(List) of
        _ -> List
    catch
        error:badarg -> bad("~ts is ~0tp: write a list ~ts", [What, List, Example])
    end.

epmd_port(#{epmd_port := Port}) when is_integer(Port), Port > 0, Port < 65536 ->
    #{epmd_port => Port};
epmd_port(#{epmd_port := Port}) ->
    bad("the port of epmd is ~0tp: write a number from 1 to 65535", [Port]);
epmd_port(#{}) ->
    #{}.

name(Name) when is_atom(Name) -> name(atom_to_list(Name));
name(Name) ->
    case io_lib:char_list(Name) andalso is_word(Name) of
        true -> Name;
        false -> bad("the name ~0tp must be letters, digits, - and _, 64 at most", [Name])
    end.

is_word(Text) ->
    re:run(Text, "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$", [unicode, {capture, none}, dollar_endonly])
        =:= match.

%% --- shape: the topology before nodes are known -----------------------------------------------

shape(#{groups := Groups} = Input) ->
    one_shape(groups, Input, {groups, expand_groups(Groups)});
shape(#{links := Links} = Input) ->
    one_shape(static, Input, {static, #{links => expand_links(Links)}});
shape(#{servers := Servers} = Input) ->
    one_shape(client_server, Input, {client_server, #{servers => expand_servers(Servers)}});
shape(Input) ->
    case maps:get(topology, Input, full_mesh) of
        {client_server, #{role := _}} ->
            bad("topology client_server of a whole cluster has no role: nodes that are not among "
                "its servers are clients", []);
        {client_server, #{servers := Servers} = Options} ->
            {client_server, Options#{servers => expand_servers(Servers)}};
        {groups, Groups} -> {groups, expand_groups(Groups)};
        {static, #{links := Links} = Options} ->
            {static, Options#{links => expand_links(Links)}};
        groups -> bad("topology groups needs groups: --groups 'a=n01,n02;b=n02,n03'", []);
        static -> bad("topology static needs links: --links n01-n02,n02-n03", []);
        Shape -> Shape
    end.

one_shape(Kind, Input, Shape) ->
    case maps:get(topology, Input, Kind) of
        Kind -> Shape;
        Other -> bad("~0tp and topology ~0tp exclude each other", [Kind, Other])
    end.

expand_groups(Groups) when is_map(Groups) ->
    maps:map(fun(Name, Members) ->
                     [full(Node) || Node <- proper(io_lib:format("group ~0tp", [Name]), Members,
                                                   "of nodes")]
             end, Groups);
expand_groups(Other) ->
    bad("groups is ~0tp: write a map #{Group => [Node, ...]}", [Other]).

expand_servers(Servers) -> [full(Server) || Server <- proper("servers", Servers, "of nodes")].

expand_links(Links) ->
    [case Link of
         {A, B} -> {full(A), full(B)};
         Other -> bad("link ~0tp: write {NodeA, NodeB}", [Other])
     end || Link <- proper("links", Links, "[{NodeA, NodeB}, ...]")].

%% --- nodes ------------------------------------------------------------------------------------

node_list(undefined, {groups, Groups}) -> lists:usort(lists:append(maps:values(Groups)));
node_list(undefined, {static, #{links := Links}}) ->
    lists:usort(lists:append([[A, B] || {A, B} <- Links]));
node_list(undefined, _Shape) -> numbered(?DEFAULT_NODES);
node_list(Count, _Shape) when is_integer(Count), Count >= 1, Count =< ?NODES_MAX -> numbered(Count);
node_list([_ | _] = Names, _Shape) when length(Names) =< ?NODES_MAX ->
    [full(Name) || Name <- Names];
node_list(Other, _Shape) ->
    bad("nodes is ~0tp: write a number from 1 to ~b, or a list of names", [Other, ?NODES_MAX]).

some([]) ->
    bad("this is a cluster without nodes: write some, like a=n01,n02", []);
some(Nodes) when length(Nodes) > ?NODES_MAX ->
    bad("these are ~b nodes, there may be ~b", [length(Nodes), ?NODES_MAX]);
some(Nodes) ->
    case twice(Nodes) of
        [] -> Nodes;
        [Node | _] -> bad("~ts is twice among the nodes: remove one", [short(Node)])
    end.

numbered(Count) ->
    Digits = max(2, length(integer_to_list(Count))),
    [full(lists:flatten(io_lib:format("n~*..0b", [Digits, Number])))
     || Number <- lists:seq(1, Count)].

%% @doc The node of a short name; a full name stays.
-spec full(atom() | string()) -> node().
full(Name) when is_atom(Name) -> full(atom_to_list(Name));
full(Name) ->
    case io_lib:char_list(Name) andalso string:split(Name, "@") of
        [Short] -> list_to_atom(checked(Short) ++ "@" ++ ?HOST);
        [Short, ?HOST] -> list_to_atom(checked(Short) ++ "@" ++ ?HOST);
        _ -> bad("~0tp is no node of a local cluster: write a name like n01", [Name])
    end.

%% A sign in it is rather one that stands between names.
checked(Short) ->
    case re:run(Short, "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$",
                [unicode, {capture, none}, dollar_endonly]) of
        match -> Short;
        nomatch -> bad("~0tp is no node of a local cluster: write a name like n01, of letters, "
                       "digits, - and _, 64 at most~ts", [Short, between_groups(Short)])
    end.

between_groups(Short) ->
    case lists:member($=, Short) of
        true -> "; between groups stands a semicolon: 'a=n01,n02;b=n02..n04'";
        false -> ""
    end.

%% @doc The part of a node name before the `@'.
-spec short(node()) -> string().
short(Node) ->
    hd(string:split(atom_to_list(Node), "@")).

%% --- topology ---------------------------------------------------------------------------------

topology(none, _Nodes) -> undefined;
topology(full_mesh, [First | _]) -> {full_mesh, #{seeds => [First]}};
topology(line, [_] = Nodes) -> topology(full_mesh, Nodes);
topology(line, Nodes) -> static(lists:zip(lists:droplast(Nodes), tl(Nodes)));
topology(ring, [A, _, _ | _] = Nodes) -> static(lists:zip(Nodes, tl(Nodes) ++ [A]));
topology(star, [Hub, Leaf | Leaves]) -> static([{Hub, Node} || Node <- [Leaf | Leaves]]);
topology(Shape, Nodes) when Shape =:= ring; Shape =:= star ->
    bad("topology ~ts needs more than ~b nodes", [Shape, length(Nodes)]);
topology(client_server, Nodes) when length(Nodes) > ?SERVERS ->
    {client_server, #{servers => lists:sublist(Nodes, ?SERVERS)}};
topology(client_server, Nodes) ->
    bad("topology client_server has ~b servers if --servers names no others, and needs more than "
        "~b nodes", [?SERVERS, length(Nodes)]);
topology(peer_to_peer, [First | _]) -> {peer_to_peer, #{seeds => [First]}};
topology({_, Options} = Term, _Nodes) when is_map(Options) -> Term;
topology(Other, _Nodes) ->
    bad("~0tp is no topology: there are full_mesh, line, ring, star, groups (with --groups), "
        "static (with --links), client_server, peer_to_peer and none", [Other]).

static(Links) ->
    {static, #{links => Links}}.

%% Whether some pair of nodes has no link of its own.
check_topology(undefined, _Nodes) ->
    false;
check_topology(Term, Nodes) ->
    [case weft_topology:validate(Node, topology_of(Node, Term)) of
         ok -> ok;
         {error, Text} -> bad("~ts: ~ts", [short(Node), Text])
     end || Node <- Nodes],
    strangers(Term, Nodes),
    lists:any(fun(Node) ->
                  {ok, Module, Options} = weft_topology:parse(topology_of(Node, Term)),
                  Module:partial(Node, Options)
              end, Nodes).

%% @doc The topology as that node has it: of client_server its role is part of it, and links are
%% what clients want.
-spec topology_of(node(), Topology :: term()) -> term().
topology_of(Node, {client_server, #{servers := Servers} = Options}) ->
    case lists:member(Node, Servers) of
        true -> {client_server, (maps:remove(links, Options))#{role => server}};
        false -> {client_server, Options#{role => client}}
    end;
topology_of(_Node, Topology) ->
    Topology.

strangers({client_server, #{servers := Servers}}, Nodes) ->
    no_strangers(Servers -- Nodes);
strangers(Term, Nodes) ->
    no_strangers(lists:usort(lists:append([neighbours(Node, Term) || Node <- Nodes])) -- Nodes).

no_strangers(Strangers) ->
    case Strangers of
        [] -> ok;
        [Stranger | _] -> bad("the topology names ~ts, which is not among the nodes",
                              [short(Stranger)])
    end.

%% @doc The neighbours that a configured topology gives to a node; [] where it leaves it open.
-spec neighbours(node(), Topology :: term()) -> [node()].
neighbours(Node, {groups, Groups}) ->
    Mine = [Members || Members <- maps:values(Groups), lists:member(Node, Members)],
    lists:delete(Node, lists:usort(lists:append(Mine)));
neighbours(Node, {static, #{links := Links}}) ->
    lists:usort([B || {A, B} <- Links, A =:= Node] ++ [A || {A, B} <- Links, B =:= Node]);
neighbours(_Node, _Topology) ->
    [].

%% --- settings ---------------------------------------------------------------------------------

settings(Input, Topology) ->
    Given = [{Key, Value} || {Key, Value} <- maps:to_list(maps:with([lanes, circuits, transport],
                                                                    Input))]
        ++ proper("settings", maps:get(settings, Input, []), "[{Key, Value}, ...]"),
    once([key(Setting) || Setting <- [{topology, Topology} || Topology =/= undefined] ++ Given]),
    Settings = [{topology, Topology} || Topology =/= undefined]
        ++ [{faults, true} || not is_given(faults, Given)]
        ++ Given,
    case weft_config:check(Settings) of
        ok -> Settings;
        %% Who reads it knows that it is of weft.
        {error, "weft: " ++ Text} -> bad("~ts", [Text]);
        {error, Text} -> bad("~ts", [Text])
    end.

key({Key, _Value}) -> Key;
key(Other) -> bad("~0tp is no setting: write {Key, Value}", [Other]).

once(Keys) ->
    case twice(Keys) of
        [] -> ok;
        [topology | _] -> bad("the topology of a cluster is no setting: leave out one of them", []);
        [Key | _] -> bad("~0tp is given twice: leave one of them out", [Key])
    end.

%% By itself, or in the map `tuning'.
is_given(Key, Given) ->
    lists:keymember(Key, 1, Given) orelse is_tuned(Key, lists:keyfind(tuning, 1, Given)).

is_tuned(Key, {tuning, Tuning}) when is_map(Tuning) -> is_map_key(Key, Tuning);
is_tuned(_Key, _) -> false.

%% --- what is written on a command line --------------------------------------------------------

%% @doc Reads `a=n01,n02;b=n02..n04'.
-spec groups(string()) -> {ok, #{atom() => [string()]}} | {error, iolist()}.
groups(Text) ->
    Groups = [string:split(Part, "=") || Part <- string:lexemes(Text, "; ")],
    case {Groups =/= [] andalso lists:all(fun is_group/1, Groups), twice([hd(G) || G <- Groups])} of
        {true, []} ->
            {ok, maps:from_list([{list_to_atom(Name), lists:append([range(N) || N <- names(Nodes)])}
                                 || [Name, Nodes] <- Groups])};
        {true, [Name | _]} ->
            {error, ["the group ", Name, " is there twice: write its nodes behind one name"]};
        {false, _} ->
            {error, ["groups are '", Text, "': write 'a=n01,n02;b=n02..n04'"]}
    end.

is_group([Name, _]) -> Name =/= "" andalso length(Name) =< 255;
is_group(_) -> false.

%% @doc Reads `n01-n02,n02-n03'.
-spec links(string()) -> {ok, [{string(), string()}]} | {error, iolist()}.
links(Text) ->
    Links = [string:split(Part, "-") || Part <- names(Text)],
    case Links =/= [] andalso lists:all(fun(L) -> length(L) =:= 2 end, Links) of
        true -> {ok, [{A, B} || [A, B] <- Links]};
        false -> {error, ["links are '", Text, "': write n01-n02,n02-n03"]}
    end.

%% @doc Reads `n01,n02' or `n01..n03'.
-spec servers(string()) -> {ok, [string()]} | {error, iolist()}.
servers(Text) ->
    case lists:append([range(Name) || Name <- names(Text)]) of
        [] -> {error, ["servers are '", Text, "': write n01,n02"]};
        Names -> {ok, Names}
    end.

names(Text) -> string:lexemes(Text, ", ").

%% n02..n04 is n02, n03, n04. What is no range is no name either, so it is an error later.
range(Text) ->
    case re:run(Text, "^(.*?)([0-9]+)\\.\\.\\1([0-9]+)$",
                [unicode, {capture, [1, 2, 3], list}, dollar_endonly]) of
        {match, [Prefix, First, Last]} ->
            case {list_to_integer(First), list_to_integer(Last)} of
                {From, To} when From =< To ->
                    [Prefix ++ padded(Number, length(First))
                     || Number <- lists:seq(From, min(To, From + ?NODES_MAX))];
                _Backwards -> [Text]
            end;
        nomatch -> [Text]
    end.

%% n8..n10 is n8, n9, n10, and n08..n10 is n08, n09, n10.
padded(Number, Width) ->
    lists:flatten(string:pad(integer_to_list(Number), Width, leading, $0)).

words(Atoms) -> lists:join(", ", [atom_to_list(Atom) || Atom <- Atoms]).

-spec bad(io:format(), [term()]) -> no_return().
bad(Format, Args) -> throw({bad_spec, io_lib:format(Format, Args)}).

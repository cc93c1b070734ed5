%% SPDX-License-Identifier: Apache-2.0
%% @doc What can be said of nodes before they run: the facts for the doctor that their configuration
%% and this machine tell, as `weft_doctor_facts' tells those of a node that runs.
%%
%% Nothing is started or changed. Hosts are looked up from here. Files, limits and ports are looked
%% at only for nodes that are to run on this machine.
-module(weft_doctor_configured).

-export([answers/1]).
-export_type([configured/0]).

%% config: what sys.config has. words: those of the command line, as of vm.args. members: all nodes
%% that are known to come. cookie: in a file of this machine that the node gets it from.
-type configured() :: #{node := node(), config := [{App :: atom(), [{atom(), term()}]}],
                        words := [string()], members := [node()], is_here := boolean(),
                        cookie => file:filename()}.

%% What the emulator itself has open, about.
-define(OWN_FILES, 30).
-define(PORT_LIMIT, 65536).
%% Of a larger range it is not looked at which ports are in use.
-define(RANGE_MAX, 1000).

%% @doc The facts of these nodes, as if they had been asked.
-spec answers([configured(), ...]) -> weft_doctor_checks:answers().
answers(Nodes) ->
    All = lists:usort(lists:append([[Node | Members] || #{node := Node, members := Members}
                                                            <- Nodes])),
    [#{config := Config} | _] = Nodes,
    Family = weft_config:of_env(family, proplists:get_value(weft, Config, [])),
    {ok, Own} = inet:gethostname(),
    %% Its own name may be that of the loopback address (Debian has it so).
    Hosts = maps:map(fun(Host, #{is_loopback := true} = Told) ->
                             Told#{is_loopback := hd(string:split(Host, ".")) =/= Own};
                        (_Host, Told) -> Told
                     end, weft_doctor_facts:hosts(All, Family)),
    maps:from_list([{Node, {ok, (facts(Configured))#{hosts => Hosts}}}
                    || #{node := Node} = Configured <- Nodes]).

%% With settings that weft refuses, nothing else is certain.
facts(#{node := Node, words := Words} = Configured) ->
    Weft = env(weft, Configured),
    Cookie = cookie(Configured, Words),
    case checked(Node, Weft) of
        ok -> maps:merge(Cookie, facts(Configured, fun(Key) -> weft_config:of_env(Key, Weft) end));
        {error, Text} -> Cookie#{failed => [], settings_error => unicode:characters_to_list(Text)};
        unknown -> Cookie#{failed => [{topology, "its module is not on the code path here"}]}
    end.

checked(Node, Weft) ->
    Topology = weft_config:of_env(topology, Weft),
    case weft_config:check(Weft) of
        ok when Topology =:= undefined -> ok;
        ok -> valid(Node, Topology);
        Error -> Error
    end.

%% A program of its own, and a broker, need code that the nodes have.
valid(_Node, {pubsub, _}) ->
    unknown;
valid(Node, Topology) ->
    case weft_topology:validate(Node, Topology) of
        {error, _} = Error -> case is_own(Topology) of true -> unknown; false -> Error end;
        ok -> ok
    end.

is_own({Module, Options}) when is_atom(Module), is_map(Options) ->
    not lists:member(Module, [full_mesh, static, groups, client_server, peer_to_peer])
        andalso code:ensure_loaded(Module) =/= {module, Module};
is_own(_Other) ->
    false.

facts(#{node := Node, words := Words, members := Members, is_here := IsHere} = Configured, Read) ->
    Kernel = env(kernel, Configured),
    Base = #{failed => [], lanes => Read(lanes),
             net_ticktime_s => proplists:get_value(net_ticktime, Kernel, 60),
             settings => maps:from_list([{Key, Read(Key)} || Key <- weft_doctor_facts:settings()])},
    lists:foldl(fun maps:merge/2, Base,
                [topology(Node, Members, Read, {Kernel, Words}),
                 carrier(Words, Read(topology)),
                 listens(Node, Read(ports), Kernel, IsHere),
                 on_this_machine(IsHere, Words, Read, Node, Members)]).

%% Words of the command line count more than files: `-kernel KEY VALUE'.
env(App, #{config := Config, words := Words}) ->
    given("-" ++ atom_to_list(App), Words) ++ proplists:get_value(App, Config, []).

given(Flag, [Flag, Key, Value | Words]) ->
    case term(Value) of
        {ok, Term} -> [{list_to_atom(Key), Term} | given(Flag, Words)];
        error -> given(Flag, Words)
    end;
given(Flag, [_ | Words]) -> given(Flag, Words);
given(_Flag, []) -> [].

term(Text) ->
    case erl_scan:string(Text ++ ".") of
        {ok, Tokens, _} ->
            case erl_parse:parse_term(Tokens) of
                {ok, Term} -> {ok, Term};
                {error, _} -> error
            end;
        {error, _, _} -> error
    end.

%% --- topology, settings -------------------------------------------------------------------------

topology(Node, Members, Read, Flags) ->
    case Read(topology) of
        undefined ->
            #{topology => undefined};
        Topology ->
            {ok, Module, Options} = weft_topology:parse(Topology),
            IsPartial = Module:partial(Node, Options),
            #{topology => weft_doctor_facts:comparable(weft_topology:without_secrets(Topology)),
              is_partial => IsPartial, members => Members, circuits => Read(circuits),
              boot => boot(IsPartial, Flags, Read(circuits))}
    end.

boot(false, _Flags, _Circuits) ->
    ok;
boot(true, {Kernel, Words}, Circuits) ->
    IsOff = value("-connect_all", Words) =:= "false",
    ConnectsAll = proplists:get_value(connect_all, Kernel, not IsOff),
    Prevents = proplists:get_value(prevent_overlapping_partitions, Kernel, true),
    case weft_overlay:partial_checks(ConnectsAll, Prevents, Circuits) of
        ok -> ok;
        {error, Text} -> {error, unicode:characters_to_list(Text)}
    end.

value(Flag, [Flag, Value | _]) -> Value;
value(Flag, [_ | Words]) -> value(Flag, Words);
value(_Flag, []) -> none.

%% Which applications are started is not in these files.
carrier([], _Topology) -> #{};
carrier(_Words, undefined) -> #{};
carrier(Words, _Topology) ->
    #{carrier => case value("-proto_dist", Words) of "weft" -> weft; _ -> stock end}.

%% --- cookie, ports ------------------------------------------------------------------------------

cookie(Configured, Words) ->
    case {value("-setcookie", Words), Configured} of
        {none, #{cookie := File}} ->
            Facts = #{cookie_file => #{file => File, mode => weft_doctor_facts:mode(File)}},
            case file:read_file(File) of
                {ok, Text} -> Facts#{cookie => weft_doctor_facts:cookie(string:trim(Text))};
                {error, _} -> Facts
            end;
        {none, _} -> #{};
        {Cookie, _} ->
            #{cookie => weft_doctor_facts:cookie(unicode:characters_to_binary(Cookie)),
              cookie_told => true}
    end.

listens(Node, Fixed, Kernel, IsHere) ->
    Name = hd(string:split(atom_to_list(Node), "@")),
    case {Fixed, proplists:get_value(inet_dist_listen_min, Kernel, none)} of
        {#{Name := Port}, _} -> ports(Node, Port, Port, IsHere);
        {_, First} when is_integer(First) ->
            ports(Node, First, proplists:get_value(inet_dist_listen_max, Kernel, First), IsHere);
        _ -> #{}
    end.

ports(Node, First, Last, IsHere) when is_integer(Last), Last >= First ->
    InUse = [Port || IsHere, Last - First < ?RANGE_MAX, Port <- lists:seq(First, Last),
                     is_in_use(Port)],
    #{ports => #{host => weft_doctor_checks:host(Node), first => First, last => Last,
                 in_use => InUse}};
ports(_Node, _First, _Last, _IsHere) ->
    #{}.

is_in_use(Port) ->
    case gen_tcp:listen(Port, [{reuseaddr, true}]) of
        {ok, Socket} -> gen_tcp:close(Socket) =/= ok;
        {error, Reason} -> Reason =:= eaddrinuse
    end.

%% --- this machine -------------------------------------------------------------------------------

on_this_machine(false, _Words, _Read, _Node, _Members) ->
    #{};
on_this_machine(true, Words, Read, Node, Members) ->
    Neighbours = case Read(topology) of
                     {groups, Groups} when is_map(Groups) ->
                         lists:usort(lists:append([Nodes || Nodes <- maps:values(Groups),
                                                            lists:member(Node, Nodes)]));
                     _ -> Members
                 end -- [Node],
    maps:merge(#{certificates => weft_doctor_facts:certificates(Read(transport),
                                                                Read(tls_options))},
               limits(length(Neighbours) * Read(lanes), Words)).

%% That of who asks: a service may get another one.
limits(Lanes, Words) ->
    PortsMax = case string:to_integer(case value("+Q", Words) of none -> ""; Text -> Text end) of
                   {Max, _} when is_integer(Max) -> Max;
                   {error, _} -> ?PORT_LIMIT
               end,
    case string:to_integer(os:cmd("ulimit -n")) of
        {FilesMax, _} when is_integer(FilesMax) ->
            #{limits => #{ports => ?OWN_FILES + Lanes, ports_max => PortsMax,
                          descriptors_max => FilesMax}};
        {error, _Unlimited} -> #{}
    end.

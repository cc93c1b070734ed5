%% SPDX-License-Identifier: Apache-2.0
%% @doc The nodes that a deployment shall have: name, host, flags, configuration. Pure.
%%
%% The id of a node stands for what it is made from: two nodes with the same id differ in their
%% names and hosts only. Who else there is does not belong to it, so that scaling changes nobody:
%% seeds and groups of a node that runs already are not written anew, weft keeps them up to date.
-module(weft_deploy_nodes).

-export([desired/3, id/3, version/1]).
-export_type([desired/0, facts/0]).

%% unknown: its code is not there.
-type desired() :: #{node := string(), host := string(), family := atom(), version := string(),
                     id := string() | unknown, words := [iodata()],
                     environment := [{string(), iodata()}], config := iodata(),
                     start := [atom()], health := mfa() | none, groups := [atom()]}.
%% What the file does not say. cores: of hosts; those that were not reached are not there. placed:
%% nodes that are there, or are remembered on hosts that were not reached.
-type facts() :: #{counts := #{atom() => non_neg_integer()}, versions := #{atom() => string()},
                   cores := #{string() => pos_integer()}, placed := #{string() => string()},
                   dir := string(), erl := string()}.

%% @doc All nodes of the deployment. A family whose hosts are all out of reach gets no new ones.
-spec desired(weft_deploy_spec:spec(), [string()], facts()) -> [desired()].
desired(#{families := Families, topology := Topology} = Spec, Lost, Facts) ->
    Placed = lists:append([placed(Family, Spec, Lost, Facts) || Family <- Families]),
    Members = [{list_to_atom(Node), Groups} || {Node, _, #{groups := Groups}} <- Placed],
    Shape = shape(Topology, Members),
    {Nodes, _} = lists:mapfoldl(fun({Node, Host, Family}, Texts) ->
                                    node(Node, Host, Family, {Shape, Texts}, Spec, Facts)
                                end, #{}, Placed),
    Nodes.

placed(#{name := Name, hosts := Own} = Family, #{hosts := All}, Lost,
       #{counts := Counts, cores := Cores, placed := Placed}) ->
    Names = [atom_to_list(Name) ++ integer_to_list(Number)
             || Number <- lists:seq(1, map_get(Name, Counts))],
    Hosts = [{Host, case Given of observed -> maps:get(Host, Cores, 1); _ -> Given end}
             || #{host := Host, cores := Given} <- All, Own =:= all orelse lists:member(Host, Own)],
    Kept = [{Node, map_get(Node, Placed)}
            || Node <- Names, is_map_key(Node, Placed),
               lists:keymember(map_get(Node, Placed), 1, Hosts)],
    Reached = [Host || {Name_, _} = Host <- Hosts, not lists:member(Name_, Lost)],
    New = case Reached of
              [] -> Kept;
              _ -> Kept ++ elsewhere(Names, Reached, Placed, Kept)
          end,
    [{Node ++ "@" ++ Host, Host, Family} || Node <- Names, {Node_, Host} <- New, Node_ =:= Node].

elsewhere(Names, Reached, Placed, Kept) ->
    Here = [Name || Name <- Names,
                    not lists:keymember(Name, 1, Kept)
                        orelse lists:keymember(proplists:get_value(Name, Kept), 1, Reached)],
    [Pair || {Name, _} = Pair <- weft_deploy_place:place(Here, Reached, Placed),
             not lists:keymember(Name, 1, Kept)].

%% --- the topology of all ------------------------------------------------------------------------

shape(full_mesh, [{First, _} | Others]) ->
    {full_mesh, #{seeds => [First | [Node || {Node, _} <- lists:sublist(Others, 2)]]}};
shape(groups, [_ | _] = Members) ->
    Names = lists:usort(lists:append([Groups || {_, Groups} <- Members])),
    {groups, maps:from_list([{Name, [Node || {Node, Own} <- Members, lists:member(Name, Own)]}
                             || Name <- Names])};
shape(Shape, _Members) when Shape =:= none; Shape =:= full_mesh; Shape =:= groups -> none;
shape(Topology, _Members) -> Topology.

node(Node, Host, #{name := Family} = F, {Shape, Texts0}, Spec, #{versions := Versions} = Facts) ->
    {Version, Id} = case Versions of
                        #{Family := Known} -> {Known, id(F, Spec, Known)};
                        #{} -> {"", unknown}
                    end,
    #{env := Env, settings := Settings, start := Start, health := Health, groups := Groups} = F,
    #{erl := Erl, dir := Dir} = Facts,
    IsPartial = is_partial(list_to_atom(Node), Shape),
    {Config, Texts} = config({Host, Env, Settings, IsPartial}, Shape, Spec, Texts0),
    {#{node => Node, host => Host, family => Family, version => Version,
       id => Id, start => Start, health => Health, groups => Groups,
       words => [Erl, "-noinput" | words(Node, Host, F, IsPartial, Settings, Spec)],
       environment => [{"ERL_LIBS", [Dir, "/releases/", Version, "/lib"]},
                       {"ERL_EPMD_PORT", integer_to_list(maps:get(epmd_port, Spec))}
                       | [{"ERL_EPMD_ADDRESS", Host} || is_loopback(Host)]],
       config => Config}, Texts}.

%% Many nodes have the same one, in which all nodes are named: it is written once.
config(Key, _Shape, _Spec, Texts) when is_map_key(Key, Texts) ->
    {map_get(Key, Texts), Texts};
config({Host, Env, Settings, IsPartial} = Key, Shape, Spec, Texts) ->
    Text = unicode:characters_to_binary(
             io_lib:format("%% coding: utf-8~n~tp.~n",
                           [configuration(Host, Env, Settings, Shape, IsPartial, Spec)])),
    {Text, Texts#{Key => Text}}.

is_partial(_Node, none) ->
    false;
is_partial(Node, Shape) ->
    case weft_topology:parse(Shape) of
        {ok, Module, Options} -> Module:partial(Node, Options);
        {error, _} -> false
    end.

is_loopback(Host) -> lists:prefix("127.", Host).

words(Node, Host, #{flags := Flags, start := Start}, IsPartial, Settings,
      #{carrier := Carrier}) ->
    [case lists:member($., Host) of true -> "-name"; false -> "-sname" end, Node,
     "-config", "sys"]
        ++ lists:append([["-proto_dist", "weft"] || Carrier =:= weft])
        ++ lists:append([["-connect_all", "false"]
                         || IsPartial,
                            proplists:get_value(circuits, Settings, hidden) =:= hidden])
        ++ Flags ++ ["-eval", start([weft || Carrier =:= weft] ++ Start)].

%% A node whose applications do not start ends, and says why in its log.
start(Applications) ->
    io_lib:format("[case application:ensure_all_started(A) of {ok, _} -> ok; {error, R} -> "
                  "io:format(\"~~ts does not start: ~~tp~~n\", [A, R]), halt(1) end "
                  "|| A <- ~0tp].", [Applications]).

configuration(Host, Env, Settings, Shape, IsPartial, #{carrier := Carrier}) ->
    Kernel = [{inet_dist_use_interface, {127, 0, 0, 1}} || Host =:= "127.0.0.1"]
        ++ [{prevent_overlapping_partitions, false} || IsPartial],
    Own = proplists:get_value(kernel, Env, []),
    [{kernel, Own ++ [Pair || {Key, _} = Pair <- Kernel, not lists:keymember(Key, 1, Own)]}
     | [{weft, Settings ++ [{topology, Shape} || Shape =/= none]} || Carrier =:= weft]]
        ++ lists:keydelete(kernel, 1, Env).

%% @doc What stands for the version and the configuration of a family; it begins with the version.
-spec id(weft_deploy_spec:family(), weft_deploy_spec:spec(), Version :: string()) -> string().
id(Family, #{carrier := Carrier, epmd_port := Port, topology := Topology, erl := Erl}, Version) ->
    Made = {[map_get(Key, Family) || Key <- [name, flags, settings, env, start, groups]], Carrier,
            Port,
            Topology},
    Whole = case Erl of default -> Made; _ -> {Made, Erl} end,
    Text = io_lib:format("~tw", [in_order(Whole)]),
    Hash = crypto:hash(sha256, unicode:characters_to_binary(Text)),
    Version ++ "-" ++ hex(binary:part(Hash, 0, 4)).

%% In what order a map is printed depends on the atoms that this emulator has made before.
in_order(Map) when is_map(Map) ->
    {map, lists:sort([in_order(Pair) || Pair <- maps:to_list(Map)])};
in_order(Tuple) when is_tuple(Tuple) -> list_to_tuple(in_order(tuple_to_list(Tuple)));
in_order([Head | Tail]) -> [in_order(Head) | in_order(Tail)];
in_order(Other) -> Other.

%% @doc The version that an id begins with.
-spec version(Id :: string()) -> Version :: string().
version(Id) -> hd(string:split(Id, "-", trailing)).

hex(Bytes) -> string:lowercase(binary_to_list(binary:encode_hex(Bytes))).

%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `s_group' of SD Erlang (a patched OTP 17 to 19) on stock OTP: groups of nodes
%% with names of their own. Thin: everything is in `weft_group' and `weft_names'.
%%
%% Results and errors are those of the original; where they differ, docs/guide/sd_erlang.md says how
%% and why. If the application `sd_erlang' does not run, all answer `{error, s_group_not_runnig}'.
-module(s_group).

-export([start/0, stop/0, sync/0, info/0, monitor_nodes/1]).
-export([new_s_group/1, new_s_group/2, delete_s_group/1, add_nodes/2, remove_nodes/2,
         s_groups/0, own_s_groups/0, own_nodes/0, own_nodes/1]).
-export([register_name/3, register_name_external/3, re_register_name/3, unregister_name/2,
         registered_names/1, whereis_name/2, whereis_name/3, send/3, send/4]).
-export([add_attributes/1, add_attributes/2, remove_attributes/1, remove_attributes/2,
         registered_attributes/0, choose_nodes/1]).

-type group() :: term().
-type name() :: term().
-type not_running() :: {error, s_group_not_runnig}.

-define(IF_RUNNING(Expression),
        case whereis(s_group) of
            undefined -> {error, s_group_not_runnig};
            _ -> Expression
        end).
%% The attribute of the node under which the attributes of this module are kept.
-define(ATTRIBUTES, s_group_attributes).
-define(ASK_MS, 5000).

-spec start() -> ok | {error, term()}.
start() ->
    case application:ensure_all_started(sd_erlang) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-spec stop() -> ok | {error, term()}.
stop() -> application:stop(sd_erlang).

%% @doc Reads the configuration again. Groups and members that are new in it come, and find each
%% other by themselves. It takes nobody out (remove_nodes/2 does), and undoes nothing that was
%% changed at run time: info/0 names in `sync_error' the groups that are unlike the configuration.
-spec sync() -> ok | {error, term()}.
sync() ->
    ?IF_RUNNING(case sd_erlang_config:groups() of
                    {ok, Groups} -> configured(weft_group:configure(Groups), Groups);
                    {error, Text} -> {error, Text}
                end).

configured(ok, Groups) -> sd_erlang_server:configured(Groups);
configured({error, Reason}, _Groups) -> {error, Reason}.

%% The configured groups whose nodes are others than those of the configuration; a text if that can
%% not be read.
unlike_configured() ->
    case sd_erlang_config:groups() of
        {ok, Groups} ->
            [Name || {Name, Nodes} <- lists:sort(maps:to_list(Groups)),
                     weft_group:members(Name) =/= {ok, Nodes}];
        {error, Text} ->
            Text
    end.

-spec info() -> [{atom(), term()}] | not_running().
info() ->
    ?IF_RUNNING(info_of(weft_group:own(), weft_group:own_nodes() -- [node()])).

info_of(Own, Fellows) ->
    Here = nodes(connected),
    [{state, case map_size(Own) of 0 -> no_conf; _ -> synced end},
     {own_group_names, lists:sort(maps:keys(Own))},
     {own_group_nodes, weft_group:own_nodes()},
     {synced_nodes, [Node || Node <- Fellows, lists:member(Node, Here)]},
     {sync_error, unlike_configured()},
     {no_contact, [Node || Node <- Fellows, not lists:member(Node, Here)]},
     {own_s_groups, lists:sort(maps:to_list(Own))},
     {other_groups, lists:sort(maps:to_list(maps:without(maps:keys(Own), weft_group:groups())))},
     {monitoring, sd_erlang_server:monitoring()},
     {attributes, registered_attributes()}].

%% @doc The caller gets `{nodeup, Node}' and `{nodedown, Node}' of the nodes in its groups; on a
%% free node of all.
-spec monitor_nodes(boolean()) -> ok | {error, not_boolean} | not_running().
monitor_nodes(IsOn) when is_boolean(IsOn) ->
    ?IF_RUNNING(sd_erlang_server:monitor_nodes(self(), IsOn));
monitor_nodes(_Other) ->
    {error, not_boolean}.

%% --- groups -----------------------------------------------------------------------------------

%% @doc A group with a name that is made up: an atom, so not for many thousands of groups.
-spec new_s_group([node()]) -> {ok, group(), [node()]} | {error, term()}.
new_s_group(Nodes) ->
    Name = binary_to_atom(<<"s_group_", (binary:encode_hex(rand:bytes(15)))/binary>>),
    new_s_group(Name, Nodes).

%% @doc The nodes of the result are those that know of it by now; the others are in the group as
%% well and learn of it when they come.
-spec new_s_group(group(), [node()]) ->
          {ok, group(), [node()]} | {error, reserved_s_group_name | remote_s_group
                                            | s_group_name_is_in_use | term()}.
new_s_group(undefined, _Nodes) -> {error, reserved_s_group_name};
new_s_group(Name, []) -> {ok, Name, []};
new_s_group(Name, Nodes) ->
    ?IF_RUNNING(case weft_group:create(Name, Nodes) of
                    {ok, #{members := Members, unreachable := Silent}} ->
                        {ok, Name, Members -- Silent};
                    {error, reserved_name} -> {error, reserved_s_group_name};
                    {error, self_not_in_list} -> {error, remote_s_group};
                    {error, {name_in_use, _}} -> {error, s_group_name_is_in_use};
                    {error, Reason} -> {error, Reason}
                end).

-spec delete_s_group(group()) -> ok | {error, {string(), group()} | term()}.
delete_s_group(Name) ->
    ?IF_RUNNING(case weft_group:delete(Name) of
                    {ok, _} -> ok;
                    {error, Reason} when Reason =:= unknown_group; Reason =:= not_a_member ->
                        {error, {"remote_s_group", Name}};
                    {error, Reason} -> {error, Reason}
                end).

%% @doc The nodes of the result are those that were none before and know of it by now.
-spec add_nodes(group(), [node()]) ->
          {ok, group(), [node()]} | {error, node_does_not_belong_to_the_s_group | term()}.
add_nodes(Name, Nodes) ->
    ?IF_RUNNING(add(Name, lists:usort(Nodes) -- [node()])).

add(Name, []) -> {ok, Name, []};
add(Name, Nodes) ->
    Before = own_nodes(Name),
    case {Nodes -- Before, weft_group:add(Name, Nodes)} of
        {_, {error, Reason}} when Reason =:= unknown_group; Reason =:= not_a_member ->
            {error, node_does_not_belong_to_the_s_group};
        {_, {error, Reason}} -> {error, Reason};
        {[], {ok, _}} -> {ok, Name, Nodes};
        {New, {ok, #{unreachable := Silent}}} -> {ok, Name, New -- Silent}
    end.

-spec remove_nodes(group(), [node()]) -> ok | {error, string() | {string(), group()} | term()}.
remove_nodes(_Name, []) -> ok;
remove_nodes(Name, Nodes) ->
    ?IF_RUNNING(case {lists:member(node(), Nodes), weft_group:members(Name)} of
                    {true, _} -> {error, "cannot_remove_itself"};
                    {false, {ok, Members}} ->
                        remove(Name, [Node || Node <- lists:usort(Nodes),
                                              lists:member(Node, Members)], Members);
                    {false, {error, unknown_group}} -> not_mine(Name)
                end).

remove(Name, Nodes, Members) ->
    case lists:member(node(), Members) of
        false -> not_mine(Name);
        true when Nodes =:= [] -> ok;
        true ->
            case weft_group:remove(Name, Nodes) of
                {ok, _} -> ok;
                {error, Reason} when Reason =:= unknown_group; Reason =:= not_a_member ->
                    not_mine(Name);
                {error, Reason} -> {error, Reason}
            end
    end.

not_mine(Name) -> {error, {"node_does_not_belong_to_s_group", Name}}.

%% @doc The names of the groups of this node and of all others; `undefined' on a free node.
-spec s_groups() -> {Own :: [group()], Others :: [group()]} | undefined | not_running().
s_groups() ->
    ?IF_RUNNING(case lists:sort(maps:keys(weft_group:own())) of
                    [] -> undefined;
                    Own -> {Own, lists:sort(maps:keys(weft_group:groups())) -- Own}
                end).

-spec own_s_groups() -> [{group(), [node()]}] | not_running().
own_s_groups() ->
    ?IF_RUNNING(lists:sort(maps:to_list(weft_group:own()))).

%% @doc All nodes that share a group with this one, itself included; on a free node the free nodes
%% that are connected.
-spec own_nodes() -> [node()] | not_running().
own_nodes() ->
    ?IF_RUNNING(case weft_group:is_free() of
                    true -> free_nodes();
                    false -> weft_group:own_nodes()
                end).

-spec own_nodes(group()) -> [node()] | not_running().
own_nodes(undefined) ->
    ?IF_RUNNING(case weft_group:is_free() of
                    true -> free_nodes();
                    false -> []
                end);
own_nodes(Name) ->
    ?IF_RUNNING(maps:get(Name, weft_group:own(), [])).

free_nodes() ->
    lists:usort([node() | sd_erlang_nodes:connected()])
        -- lists:append(maps:values(weft_group:groups())).

%% --- names ------------------------------------------------------------------------------------

-spec register_name(group(), name(), pid()) ->
          yes | {no, name_or_pid_already_registered | cannot_register_in_remote_group | term()}
        | not_running().
register_name(Group, Name, Pid) when is_pid(Pid) ->
    ?IF_RUNNING(case sd_erlang_names:scope(Group) of
                    {ok, Scope} -> registered(weft_names:register({Scope, Name}, Pid),
                                              name_or_pid_already_registered);
                    {error, remote_group} -> {no, cannot_register_in_remote_group}
                end).

registered(ok, _) -> yes;
registered({error, {What, _}}, Refused) when What =:= taken; What =:= pid_registered ->
    {no, Refused};
registered({error, Reason}, _) -> {no, Reason}.

%% @doc The same as register_name/3.
-spec register_name_external(group(), name(), pid()) -> yes | {no, term()} | not_running().
register_name_external(Group, Name, Pid) -> register_name(Group, Name, Pid).

-spec re_register_name(group(), name(), pid()) ->
          yes | {no, pid_is_already_registered | cannot_re_register_in_remote_group | term()}
        | not_running().
re_register_name(Group, Name, Pid) when is_pid(Pid) ->
    ?IF_RUNNING(case sd_erlang_names:scope(Group) of
                    {ok, Scope} -> registered(weft_names:re_register({Scope, Name}, Pid),
                                              pid_is_already_registered);
                    {error, remote_group} -> {no, cannot_re_register_in_remote_group}
                end).

-spec unregister_name(group(), name()) ->
          ok | {no, cannot_unregister_from_remote_group} | not_running().
unregister_name(Group, Name) ->
    ?IF_RUNNING(case sd_erlang_names:scope(Group) of
                    {ok, Scope} -> weft_names:unregister_name({Scope, Name});
                    {error, remote_group} -> {no, cannot_unregister_from_remote_group}
                end).

%% @doc The names in a group (`{s_group, Group}', also `{group, Group}'), or all that a node knows
%% (`{node, Node}').
-spec registered_names({s_group | group, group()} | {node, node()}) ->
          [{group(), name()}] | {error, no_information_about_remote_group} | not_running().
registered_names({node, Node}) ->
    ?IF_RUNNING(sd_erlang_names:names_at(Node));
registered_names({Kind, Group}) when Kind =:= s_group; Kind =:= group ->
    ?IF_RUNNING(case sd_erlang_names:names(Group) of
                    {ok, Names} -> [{Group, Name} || Name <- Names];
                    {error, unknown_group} -> {error, no_information_about_remote_group}
                end).

-spec whereis_name(group(), name()) -> pid() | undefined | not_running().
whereis_name(Group, Name) ->
    ?IF_RUNNING(sd_erlang_names:whereis_name(Group, Name)).

%% @doc As a certain node knows it.
-spec whereis_name(node(), group(), name()) -> pid() | undefined | not_running().
whereis_name(Node, Group, Name) ->
    ?IF_RUNNING(sd_erlang_names:whereis_name_at(Node, Group, Name)).

%% @doc `badarg' is a result, no exception.
-spec send(group(), name(), Msg :: term()) ->
          pid() | {badarg, {group(), name(), term()}} | not_running().
send(Group, Name, Msg) ->
    sent(whereis_name(Group, Name), {Group, Name, Msg}).

-spec send(node(), group(), name(), Msg :: term()) ->
          pid() | {badarg, {group(), name(), term()}} | not_running().
send(Node, Group, Name, Msg) ->
    sent(whereis_name(Node, Group, Name), {Group, Name, Msg}).

sent(Pid, {_, _, Msg}) when is_pid(Pid) ->
    Pid ! Msg,
    Pid;
sent(undefined, What) -> {badarg, What};
sent({error, Reason}, _What) -> {error, Reason}.

%% --- attributes -------------------------------------------------------------------------------

%% @doc Attributes of this node, any terms, for choose_nodes/1.
-spec add_attributes([term()]) -> ok | {error, term()}.
add_attributes(Attributes) ->
    ?IF_RUNNING(sd_erlang_server:change_list(?ATTRIBUTES, add, Attributes)).

%% @doc Attributes of other nodes. Those that do not answer are named.
-spec add_attributes([node()], [term()]) -> ok | {error, {no_contact, [node()]}}.
add_attributes(Nodes, Attributes) -> on_all(Nodes, add_attributes, [Attributes]).

-spec remove_attributes([term()]) -> ok | {error, term()}.
remove_attributes(Attributes) ->
    ?IF_RUNNING(sd_erlang_server:change_list(?ATTRIBUTES, remove, Attributes)).

-spec remove_attributes([node()], [term()]) -> ok | {error, {no_contact, [node()]}}.
remove_attributes(Nodes, Attributes) -> on_all(Nodes, remove_attributes, [Attributes]).

on_all(Nodes, Function, Args) ->
    {Answers, Silent} =
        weft_ask:all(Nodes, fun(Node) -> erpc:call(Node, ?MODULE, Function, Args, ?ASK_MS) end,
                     ?ASK_MS),
    case Silent ++ [Node || {Node, Answer} <- Answers, Answer =/= ok] of
        [] -> ok;
        NoContact -> {error, {no_contact, lists:sort(NoContact)}}
    end.

%% @doc The attributes of this node.
-spec registered_attributes() -> [term()] | not_running().
registered_attributes() ->
    ?IF_RUNNING(maps:get(?ATTRIBUTES, weft_attributes:read([?ATTRIBUTES]), [])).

%% @doc The nodes for which all conditions hold: being in a group, having an attribute. All nodes if
%% there is no condition.
-spec choose_nodes([{s_group, group()} | {attribute, term()}]) -> [node()] | not_running().
choose_nodes(Conditions) ->
    ?IF_RUNNING(begin
                    All = lists:usort([node() | nodes(connected)]
                                      ++ lists:append(maps:values(weft_group:groups()))),
                    InGroups = lists:foldl(fun in_group/2, All, Conditions),
                    with_attributes([A || {attribute, A} <- Conditions], InGroups)
                end).

in_group({s_group, Group}, Nodes) ->
    Members = maps:get(Group, weft_group:groups(), []),
    [Node || Node <- Nodes, lists:member(Node, Members)];
in_group({attribute, _}, Nodes) ->
    Nodes.

with_attributes([], Nodes) -> Nodes;
with_attributes(Attributes, Nodes) ->
    {Values, _Silent} = weft_place:attributes(Nodes, [?ATTRIBUTES]),
    [Node || Node <- Nodes,
             Attributes -- maps:get(?ATTRIBUTES, maps:get(Node, Values, #{}), []) =:= []].

%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups follow the nodes of a deployment that come, go, or become something else: a member
%% that runs changes them for all.
%%
%% Only such nodes are taken out of a group, and only where others of the file are in it: others
%% that programs have added stay. All of the file are taken in, also those that programs have taken
%% out. A node that is not what the file says, such as after a rollback, belongs to the groups that
%% it was made with.
-module(weft_deploy_groups).

-export([follow/2, configured/2]).

-define(CALLS_MS, 60000).
%% To take nodes in, and to take nodes out.
-define(GROUP_MS, 40000).

%% @doc Those that run already learn who has come and who has gone. What failed, and of which nodes
%% they are to learn again. Of the first deployment all know all others.
-spec follow([Node :: string()], weft_deploy_session:session()) ->
          {Failed :: [{Where :: string(), Why :: string()}], Again :: [Node :: string()]}.
follow([_ | _] = Changed, #{spec := #{topology := groups}, seen := Seen} = Session) ->
    Before = lists:sum([map_size(Nodes) || {ok, #{nodes := Nodes}} <- maps:values(Seen)]),
    case Before > 0 andalso on_all(Changed, as_made(Session), Session) of
        [_ | _] = Failed -> {Failed, Changed};
        _NothingFailed -> {[], []}
    end;
follow(_Changed, _Session) ->
    {[], []}.

on_all(Changed, Nodes, #{seen := Seen} = Session) ->
    Groups = lists:usort(lists:append([Own || #{groups := Own} <- Nodes])),
    Members = [{Group, [list_to_atom(Node) || #{node := Node, groups := Own} <- Nodes,
                                              lists:member(Group, Own)]} || Group <- Groups],
    %% Where none is yet, nobody can be asked.
    Hosts = [Host || #{host := Host, node := Node} <- Nodes,
                     {ok, #{nodes := #{Node := _}}} <- [maps:get(Host, Seen)]],
    lists:append([on_host(Host, Members, {Changed, Nodes}, Session) || Host <- lists:usort(Hosts)]).

on_host(Host, Members, {Changed, Nodes}, Session) ->
    Here = [list_to_atom(Node) || #{node := Node, host := At} <- Nodes, At =:= Host],
    Own = [Group || {_, Some} = Group <- Members, Some -- Here =/= Some],
    {ok, Connection} = weft_deploy_session:connection(Host, Session),
    Request = #{do => groups, nodes => Here, groups => Own,
                changed => [list_to_atom(Node) || Node <- Changed]},
    case weft_deploy_ask:ask(Connection, weft_deploy_session:place(Host, Session), Request,
                             ?CALLS_MS + length(Own) * ?GROUP_MS) of
        {ok, Results} -> [{Node, Why} || {Node, bad, _, Why} <- Results];
        {error, Why} -> [{Host, "groups: " ++ Why}]
    end.

%% The nodes that shall be there, with the groups of what they are.
as_made(#{seen := Seen} = Session) ->
    Desired = weft_deploy_session:desired(Session),
    Others = [{Host, Node} || #{host := Host, node := Node, id := Id} <- Desired,
                              {ok, #{nodes := #{Node := #{id := Own}}}} <- [maps:get(Host, Seen)],
                              Own =/= Id],
    Made = maps:from_list(read(Others, Session)),
    [Wanted#{groups := maps:get(Node, Made, Groups)}
     || #{node := Node, groups := Groups} = Wanted <- Desired].

read(Nodes, #{dir := Dir} = Session) ->
    Results = weft_deploy_session:on(
                lists:usort([Host || {Host, _} <- Nodes]),
                fun(Host, Connection) ->
                    [{Node, weft_deploy_host:script(Connection,
                                                    weft_deploy_shell:configuration(Dir, Node))}
                     || {At, Node} <- Nodes, At =:= Host]
                end, Session),
    [{Node, Groups} || {_Host, Here} <- Results, is_list(Here), {Node, {ok, Text}} <- Here,
                       {ok, Groups} <- [configured(Node, Text)]].

%% @doc The groups of a node, as its `sys.config' has them, of what
%% `weft_deploy_shell:configuration/2' has printed.
-spec configured(Node :: string(), binary()) -> {ok, [atom()]} | error.
configured(Node, Output) ->
    case term(weft_deploy_shell:configured(Output)) of
        {ok, Configuration} ->
            case proplists:get_value(topology, proplists:get_value(weft, Configuration, [])) of
                {groups, Groups} ->
                    {ok, [Group || {Group, Members} <- maps:to_list(Groups),
                                   lists:member(list_to_atom(Node), Members)]};
                _ -> error
            end;
        {error, _} ->
            error
    end.

term(Text) ->
    case erl_scan:string(unicode:characters_to_list(Text)) of
        {ok, Tokens, _} -> erl_parse:parse_term(Tokens);
        {error, Reason, _} -> {error, Reason}
    end.

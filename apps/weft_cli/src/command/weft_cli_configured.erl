%% SPDX-License-Identifier: Apache-2.0
%% @doc Nodes as files describe them, for `weft doctor --config': the file of a deployment, or the
%% sys.config of a release and its vm.args. Nothing is started, and no host is asked.
-module(weft_cli_configured).

-export([read/2, words/1]).

%% @doc What the file says of its nodes. Of a sys.config vm.args names the one node; without it that
%% is `configured', and flags of the command line are not known.
-spec read(File :: file:filename(), VmArgs :: file:filename() | none) ->
          {ok, Name :: string(), [weft_doctor_configured:configured(), ...]} | {error, iodata()}.
read(File, VmArgs) ->
    case {file:consult(File), VmArgs} of
        {{ok, [Terms]}, _} when is_list(Terms) -> release(File, Terms, VmArgs);
        {{ok, [_ | _]}, none} -> deployment(File);
        {{ok, [_ | _]}, _} -> {error, "--vm-args belongs to a sys.config, not to a deployment"};
        {{ok, []}, _} -> {error, [File, " is empty"]};
        {{error, Reason}, _} -> {error, [File, ": ", file:format_error(Reason)]}
    end.

%% --- a release ----------------------------------------------------------------------------------

%% Further files that it names are read by the release only.
release(File, Terms, VmArgs) ->
    case given(VmArgs) of
        {ok, Words} ->
            Config = [{App, Env} || {App, Env} <- Terms, is_atom(App), is_list(Env)],
            Weft = proplists:get_value(weft, Config, []),
            Node = node_of(Words),
            {ok, File, [#{node => Node, config => Config, words => Words, is_here => true,
                          members => members(Node, proplists:get_value(topology, Weft))}]};
        {error, Reason} ->
            {error, [VmArgs, ": ", file:format_error(Reason)]}
    end.

given(none) -> {ok, []};
given(VmArgs) ->
    case file:read_file(VmArgs) of
        {ok, Text} -> {ok, words(unicode:characters_to_list(Text))};
        Error -> Error
    end.

%% @doc The words of a file of arguments, as `erl -args_file' takes them.
-spec words(string()) -> [string()].
words(Text) -> words(Text, none, []).

words([], none, Words) -> lists:reverse(Words);
words([], Word, Words) -> lists:reverse([lists:reverse(Word) | Words]);
words([$# | Rest], none, Words) ->
    words(lists:dropwhile(fun(C) -> C =/= $\n end, Rest), none, Words);
words([$\\, C | Rest], Word, Words) -> words(Rest, [C | begun(Word)], Words);
words([Quote | Rest], Word, Words) when Quote =:= $'; Quote =:= $" ->
    {Quoted, Behind} = lists:splitwith(fun(C) -> C =/= Quote end, Rest),
    words(lists:nthtail(min(1, length(Behind)), Behind), lists:reverse(Quoted, begun(Word)), Words);
words([C | Rest], none, Words) when C =< $\s -> words(Rest, none, Words);
words([C | Rest], Word, Words) when C =< $\s ->
    words(Rest, none, [lists:reverse(Word) | Words]);
words([C | Rest], Word, Words) -> words(Rest, [C | begun(Word)], Words).

begun(none) -> [];
begun(Word) -> Word.

%% The file is that of who calls the command, so its names may become atoms.
node_of([Flag, Name | _]) when Flag =:= "-name"; Flag =:= "-sname" ->
    case lists:member($@, Name) of
        true -> list_to_atom(Name);
        false ->
            {ok, Host} = inet:gethostname(),
            list_to_atom(Name ++ "@" ++ Host)
    end;
node_of([_ | Words]) -> node_of(Words);
node_of([]) -> configured@localhost.

members(Node, {groups, Groups}) when is_map(Groups) ->
    lists:usort([Node | lists:append([Nodes || Nodes <- maps:values(Groups), is_list(Nodes)])]);
members(Node, {full_mesh, #{seeds := Seeds}}) when is_list(Seeds) -> lists:usort([Node | Seeds]);
members(Node, _Other) -> [Node].

%% --- a deployment -------------------------------------------------------------------------------

%% Cores of hosts that are asked for count as one each, which places nodes on all hosts.
deployment(File) ->
    case weft_deploy_session:read(File, ".weft") of
        {ok, #{spec := #{name := Name, provider := Provider, cookie_file := Cookie} = Spec}} ->
            Facts = #{counts => weft_deploy_spec:counts(Spec, #{}), versions => #{}, cores => #{},
                      placed => #{}, dir => "", erl => "erl"},
            Desired = weft_deploy_nodes:desired(Spec, [], Facts),
            Members = [list_to_atom(Node) || #{node := Node} <- Desired],
            deployed(Name, [deployed(Node, Members, Provider, Cookie) || Node <- Desired]);
        {error, _Kind, Text} ->
            {error, Text}
    end.

deployed(Name, []) -> {error, [Name, " has no nodes"]};
deployed(Name, Nodes) -> {ok, Name, Nodes}.

deployed(#{node := Node, config := Config, words := [_Erl | Words]}, Members, Provider, Cookie) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Config)),
    {ok, Terms} = erl_parse:parse_term(Tokens),
    Configured = #{node => list_to_atom(Node), config => Terms, members => Members,
                   words => [lists:flatten(Word) || Word <- Words],
                   is_here => Provider =:= local},
    case Cookie of
        default -> Configured;
        _ -> Configured#{cookie => Cookie}
    end.

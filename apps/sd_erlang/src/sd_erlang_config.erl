%% SPDX-License-Identifier: Apache-2.0
%% @doc Groups as SD Erlang has them in the configuration: the key `s_groups' of the kernel, or, if
%% there is none, `global_groups'.
%%
%% Accepted: `{Name, normal, Nodes}' and `{Name, Nodes}', which means the same. Groups of one name
%% are united. What the original drops without a word (reserved names, the publish type `hidden',
%% other terms) is an error.
-module(sd_erlang_config).

-export([groups/0, parse/1]).

-define(RESERVED, [undefined, no_group]).

%% @doc The configured groups.
-spec groups() -> {ok, #{term() => [node()]}} | {error, string()}.
groups() ->
    case {application:get_env(kernel, s_groups), application:get_env(kernel, global_groups)} of
        {{ok, Groups}, _} -> parse(Groups);
        {undefined, {ok, Groups}} -> parse(Groups);
        {undefined, undefined} -> {ok, #{}}
    end.

%% @doc Groups from the term of a configuration.
-spec parse(term()) -> {ok, #{term() => [node()]}} | {error, string()}.
parse(Definitions) when length(Definitions) >= 0 -> parse(Definitions, #{});
parse(Other) -> wrong(Other, "it is no list of groups").

parse([], Groups) ->
    {ok, Groups};
parse([{Name, Nodes} | Rest], Groups) ->
    parse([{Name, normal, Nodes} | Rest], Groups);
parse([{Name, normal, Nodes} = Definition | Rest], Groups) ->
    case {lists:member(Name, ?RESERVED), weft_value:is_atoms(Nodes)} of
        {true, _} -> wrong(Definition, "the name is reserved");
        {false, false} -> wrong(Definition, "the nodes are no list of names");
        {false, true} -> parse(Rest, Groups#{Name => lists:usort(Nodes ++ maps:get(Name, Groups,
                                                                                   []))})
    end;
parse([{_Name, hidden, _Nodes} = Definition | _], _Groups) ->
    wrong(Definition, "there are no hidden groups, the publish type has to be normal");
parse([Other | _], _Groups) ->
    wrong(Other, "write {Name, normal, [Node, ...]}").

wrong(Term, Why) ->
    {error, lists:flatten(io_lib:format("s_groups (or global_groups) of kernel: ~0tp: ~ts",
                                        [Term, Why]))}.

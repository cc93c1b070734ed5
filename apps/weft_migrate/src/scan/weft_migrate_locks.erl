%% SPDX-License-Identifier: Apache-2.0
%% @doc Places of one lock of `global' that name different nodes. With `global' two such places
%% exclude each other if they have a node in common; `weft_global' keeps a lock on three nodes of a
%% list, so there they may not. Pure.
%%
%% A lock is known by what is locked, if that is written out, and a list of nodes by its text. Two
%% macros or variables of one name count as equal, whatever they are. A call without nodes is for
%% all, as is one with `[node() | nodes()]'.
-module(weft_migrate_locks).

-export([places/1, differing/1]).
-export_type([place/0]).

-type place() :: #{lock := string(), nodes := string(), file := file:filename_all(),
                   line := pos_integer(), column := pos_integer(), inside := string(),
                   text := binary()}.

-define(ALL, "all nodes").

%% @doc The places of locks in a source.
-spec places(weft_migrate_source:source()) -> [place()].
places(#{file := File} = Source) ->
    [#{lock => Lock, nodes => Nodes, file => File, line => Line, column => Column,
       inside => Inside, text => weft_migrate_source:line(Source, Line)}
     || #{node := Node, inside := Inside} <- weft_migrate_tree:sites(Source),
        {ok, #{module := global, function := Function, arguments := Arguments,
               at := {Line, Column}}} <- [weft_migrate_tree:call(Node)],
        {Id, Nodes} <- taken(Function, Arguments),
        {ok, Lock} <- [lock(Id)]].

taken(Function, [Id]) when Function =:= set_lock; Function =:= del_lock -> [{Id, ?ALL}];
taken(Function, [Id, Nodes | _]) when Function =:= set_lock; Function =:= del_lock ->
    [{Id, named(Nodes)}];
taken(trans, [Id, _]) -> [{Id, ?ALL}];
taken(trans, [Id, _, Nodes | _]) -> [{Id, named(Nodes)}];
taken(_, _) -> [].

named(Tree) ->
    case text(Tree) of
        "[node() | nodes()]" -> ?ALL;
        Text -> Text
    end.

lock(Id) ->
    case erl_syntax:type(Id) =:= tuple andalso erl_syntax:tuple_elements(Id) of
        [Resource, _Requester] ->
            case has_variable(Resource) of
                true -> error;
                false -> {ok, text(Resource)}
            end;
        _ -> error
    end.

%% The name of a macro has the form of one.
has_variable(Tree) ->
    case erl_syntax:type(Tree) of
        variable -> true;
        macro ->
            case erl_syntax:macro_arguments(Tree) of
                none -> false;
                Arguments -> lists:any(fun has_variable/1, Arguments)
            end;
        _ -> lists:any(fun has_variable/1, lists:append(erl_syntax:subtrees(Tree)))
    end.

text(Tree) ->
    Text = erl_prettypr:format(Tree, [{paper, 1000}, {ribbon, 1000}]),
    lists:flatten(lists:join(" ", string:lexemes(Text, "\n\t "))).

%% @doc A finding for each place of a lock whose places, in all sources, differ in their nodes. It
%% names another one.
-spec differing([place()]) -> [weft_migrate_scan:finding()].
differing(Places) ->
    [finding(Place, Other)
     || #{lock := Lock, nodes := Nodes} = Place <- Places,
        Other <- lists:sublist([Of || #{lock := Same, nodes := Others} = Of <- Places,
                                      Same =:= Lock, Others =/= Nodes], 1)].

finding(Place, #{nodes := Nodes, file := File, line := Line}) ->
    (maps:without([lock, nodes], Place))
        #{id => global_locks_differ,
          note => lists:flatten(io_lib:format("~ts:~w has ~ts", [File, Line, Nodes]))}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The module `attr' of the RELEASE project: attributes of nodes, and nodes chosen by them.
%% Thin, over `weft_attributes' and `weft_place'.
%%
%% As in the original errors are exceptions and success is `true'. Better than there: a silent node
%% is left out of the answer instead of breaking it, and attributes can be changed by any process,
%% not only by the one that called start/0.
-module(attr).

-export([start/0, start/1, start/2, stop/0]).
-export([insert_attr/2, update_attr/2, delete_attr/1, insert/2, update/2, delete/1]).
-export([request_attrs/2, request_attrs/3, choose_nodes/2, choose_nodes/3]).
-export_type([spec/0, predicate/0]).

-type name() :: atom().
-type function_spec() :: {module(), atom()} | {module(), atom(), [term()]}.
-type spec() :: {automatic | dynamic, function_spec()} | term().
-type predicate() :: {name(), eq | ne | lt | le | gt | ge, term()}
                   | {name(), true | false | yes | no}
                   | {}.

-define(TIMEOUT_MS, 5000).
%% Set while attributes are in use.
-define(RUNNING, {attr, running}).
-define(KEY(Name), {attr, name, Name}).

%% @doc With the built-in attributes only.
-spec start() -> ok | {error, already_running}.
start() -> start_with(sd_erlang_facts:all()).

%% @doc With the built-in attributes and those of a file (one list of `{Name, Spec}'); or with none.
%% Exceptions: `{attr_config_error, Reason}', `{bad_function, Name}' (that of an automatic attribute
%% failed). Nothing is started then.
-spec start(file:filename() | nobuiltins) -> ok | {error, already_running}.
start(nobuiltins) -> start_with([]);
start(File) -> start_with(sd_erlang_facts:all() ++ consult(File)).

%% @doc With the attributes of a file only.
-spec start(file:filename(), nobuiltins) -> ok | {error, already_running}.
start(File, nobuiltins) -> start_with(consult(File)).

start_with(Attributes) ->
    {ok, _} = application:ensure_all_started(weft),
    case weft_attributes:insert(?RUNNING, true) of
        ok ->
            try lists:foreach(fun({Name, Spec}) -> true = done(set(Name, Spec)) end, Attributes)
            catch error:Reason ->
                _ = stop(),
                error(Reason)
            end;
        {error, {attribute_exists, _}} ->
            {error, already_running}
    end.

%% The last of a name counts.
set(Name, Spec) ->
    case weft_attributes:insert(?KEY(Name), Spec) of
        {error, {attribute_exists, _}} -> weft_attributes:update(?KEY(Name), Spec);
        Result -> Result
    end.

consult(File) ->
    case file:consult(File) of
        {ok, [Attributes]} when length(Attributes) >= 0 ->
            case Attributes -- [Pair || {_Name, _Spec} = Pair <- Attributes] of
                [] -> Attributes;
                [Wrong | _] -> error({attr_config_error, {no_attribute, Wrong}})
            end;
        {ok, _} -> error({attr_config_error, not_one_list});
        {error, Reason} -> error({attr_config_error, Reason})
    end.

%% @doc Forgets all attributes.
-spec stop() -> stop | {error, not_running}.
stop() ->
    case weft_attributes:delete(?RUNNING) of
        ok ->
            _ = [weft_attributes:delete(Key) || ?KEY(_) = Key <- weft_attributes:list()],
            stop;
        {error, _} -> {error, not_running}
    end.

-spec insert_attr(name(), spec()) -> true.
insert_attr(Name, Spec) -> insert(Name, Spec).

-spec update_attr(name(), spec()) -> true.
update_attr(Name, Spec) -> update(Name, Spec).

-spec delete_attr(name()) -> true.
delete_attr(Name) -> delete(Name).

%% @doc A new attribute; exception `{attr_exists, Name}'.
-spec insert(name(), spec()) -> true.
insert(Name, Spec) -> done(weft_attributes:insert(?KEY(Name), Spec)).

%% @doc Another value for an attribute; exception `{attr_not_set, Name}'.
-spec update(name(), spec()) -> true.
update(Name, Spec) -> done(weft_attributes:update(?KEY(Name), Spec)).

%% @doc No attribute of that name any more, whether there was one or not.
-spec delete(name()) -> true.
delete(Name) ->
    case weft_attributes:delete(?KEY(Name)) of
        {error, {attribute_not_set, _}} -> true;
        Result -> done(Result)
    end.

done(ok) -> true;
done({error, {attribute_exists, ?KEY(Name)}}) -> error({attr_exists, Name});
done({error, {attribute_not_set, ?KEY(Name)}}) -> error({attr_not_set, Name});
done({error, {bad_function, ?KEY(Name)}}) -> error({bad_function, Name});
done({error, Reason}) -> error(Reason).

%% @doc The values of attributes (`undefined' if a node has no such) on those nodes that answer.
-spec request_attrs([node()], [name()]) -> [{node(), [{name(), term()}]}].
request_attrs(Nodes, Names) -> request_attrs(Nodes, Names, ?TIMEOUT_MS).

-spec request_attrs([node()], [name()], non_neg_integer()) -> [{node(), [{name(), term()}]}].
request_attrs(Nodes, Names, TimeoutMs) ->
    Keys = [?KEY(Name) || Name <- Names],
    {Answers, _Silent} =
        weft_ask:all(Nodes,
                     fun(Node) -> erpc:call(Node, weft_attributes, read, [Keys], TimeoutMs) end,
                     TimeoutMs),
    [{Node, [{Name, maps:get(?KEY(Name), Values, undefined)} || Name <- Names]}
     || {Node, Values} <- Answers].

%% @doc Those of the nodes for which the predicate, or all of a list, hold, in the order given.
-spec choose_nodes([node()], predicate() | [predicate()]) -> [node()].
choose_nodes(Nodes, Predicates) -> choose_nodes(Nodes, Predicates, ?TIMEOUT_MS).

-spec choose_nodes([node()], predicate() | [predicate()], non_neg_integer()) -> [node()].
choose_nodes(Nodes, Predicate, TimeoutMs) when is_tuple(Predicate) ->
    choose_nodes(Nodes, [Predicate], TimeoutMs);
choose_nodes(Nodes, Predicates, TimeoutMs) ->
    Where = [where(Predicate) || Predicate <- Predicates, Predicate =/= {}],
    #{nodes := Chosen} = weft_place:choose_nodes(#{from => Nodes, where => Where,
                                                   timeout_ms => TimeoutMs}),
    [Node || Node <- Nodes, lists:member(Node, Chosen)].

where({Name, Operator, Value}) -> {?KEY(Name), Operator, Value};
where({Name, Value}) when Value =:= true; Value =:= false; Value =:= yes; Value =:= no ->
    {?KEY(Name), eq, Value};
where(Other) -> error({bad_predicate, Other}).

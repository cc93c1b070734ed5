%% SPDX-License-Identifier: Apache-2.0
%% @doc The attributes of this node: what it says of itself, so that others can choose nodes by it.
%%
%% An attribute has a name and a specification: any term (the value), `{automatic, Function}'
%% (evaluated once, when it is set) or `{dynamic, Function}' (evaluated at each read), with Function
%% `{M, F}' or `{M, F, A}'. Those of `weft_node_facts' are built in. Those of the configuration
%% (`attributes') are set at the start. `roles' (a list) and `zone' (a path, see `weft_distance')
%% are attributes with a meaning to `weft_place'.
%%
%% Reads use the table, also those of other nodes by `erpc'. A function that fails or takes long
%% affects only the process that reads or sets. At the start of the node it has five seconds.
-module(weft_attributes).
-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/0, insert/2, update/2, delete/1, list/0, read/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-export_type([name/0, spec/0]).

-define(START_MS, 5000).

-type name() :: term().
-type function_spec() :: {module(), atom()} | {module(), atom(), [term()]}.
-type spec() :: {automatic | dynamic, function_spec()} | term().

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% @doc Sets a new attribute. `bad_function': the function of an automatic one failed.
-spec insert(name(), spec()) ->
          ok | {error, {attribute_exists, name()} | {bad_function, name()} | not_running}.
insert(Name, Spec) -> set(insert, Name, Spec).

%% @doc Sets an attribute that is set already, also a built-in one.
-spec update(name(), spec()) ->
          ok | {error, {attribute_not_set, name()} | {bad_function, name()} | not_running}.
update(Name, Spec) -> set(update, Name, Spec).

-spec delete(name()) -> ok | {error, {attribute_not_set, name()} | not_running}.
delete(Name) -> change({delete, Name}).

%% What can not be set is not evaluated. Here, because nobody else is to wait for a function.
set(How, Name, Spec) ->
    case may_be_set(How, Name) of
        true -> changed(How, Name, row(Spec));
        {error, Reason} -> {error, Reason}
    end.

changed(_How, Name, undefined) -> {error, {bad_function, Name}};
changed(How, Name, Row) -> change({How, Name, Row}).

may_be_set(How, Name) ->
    case {ets:whereis(?MODULE), How} of
        {undefined, _} -> {error, not_running};
        {_, insert} -> not is_set(Name) orelse {error, {attribute_exists, Name}};
        {_, update} -> is_set(Name) orelse {error, {attribute_not_set, Name}}
    end.

row({automatic, Function}) ->
    case evaluate(Function) of
        {ok, Value} -> {value, Value};
        undefined -> undefined
    end;
row({dynamic, Function}) -> {dynamic, Function};
row(Value) -> {value, Value}.

change(Request) ->
    case whereis(?MODULE) of
        undefined -> {error, not_running};
        _ -> gen_server:call(?MODULE, Request, infinity)
    end.

%% @doc The names of all attributes of this node, in term order.
-spec list() -> [name()].
list() ->
    lists:usort([Name || {Name, _} <- table()] ++ weft_node_facts:names()).

%% @doc The values of those of the attributes that exist.
-spec read([name()]) -> #{name() => Value :: term()}.
read(Names) ->
    Table = maps:from_list(table()),
    maps:from_list([{Name, Value} || Name <- Names, {ok, Value} <- [value(Name, Table)]]).

table() ->
    case ets:whereis(?MODULE) of
        undefined -> [];
        Table -> ets:tab2list(Table)
    end.

value(Name, Table) ->
    case Table of
        #{Name := {value, Value}} -> {ok, Value};
        #{Name := {dynamic, Function}} -> evaluate(Function);
        #{} -> weft_node_facts:read(Name)
    end.

evaluate({Module, Function}) -> evaluate({Module, Function, []});
evaluate({Module, Function, Args}) ->
    try {ok, apply(Module, Function, Args)}
    catch
        _:_ -> undefined
    end.

%% @private
-spec init([]) -> {ok, []}.
init([]) ->
    ?MODULE = ets:new(?MODULE, [named_table, protected, {read_concurrency, true}]),
    Configured = weft_config:get(attributes),
    {Rows, _TooLate} = weft_ask:all(maps:keys(Configured),
                                    fun(Name) -> row(maps:get(Name, Configured)) end, ?START_MS),
    true = ets:insert(?MODULE, [{Name, Row} || {Name, {_, _} = Row} <- Rows]),
    ok = told(maps:keys(Configured) -- [Name || {Name, {_, _}} <- Rows]),
    {ok, []}.

told([]) ->
    ok;
told(Missing) ->
    ?LOG_WARNING("weft: this node is without the attributes ~0tp: their functions failed, or took "
                 "longer than ~b ms. Mend them and set the attributes with weft_attributes:insert, "
                 "or start the node again.", [Missing, ?START_MS]).

%% @private
-spec handle_call(term(), gen_server:from(), []) -> {reply, ok | {error, term()}, []}.
handle_call({How, Name, {_, _} = Row}, _From, State) when How =:= insert; How =:= update ->
    {reply, case may_be_set(How, Name) of
                true -> put_row(Name, Row);
                {error, Reason} -> {error, Reason}
            end, State};
handle_call({delete, Name}, _From, State) ->
    {reply, case ets:member(?MODULE, Name) of
                true -> ets:delete(?MODULE, Name), ok;
                false -> {error, {attribute_not_set, Name}}
            end, State};
handle_call(Request, _From, State) ->
    {reply, weft_stray:call(Request), State}.

is_set(Name) ->
    ets:member(?MODULE, Name) orelse lists:member(Name, weft_node_facts:names()).

put_row(Name, Row) ->
    true = ets:insert(?MODULE, {Name, Row}),
    ok.

%% @private
-spec handle_cast(term(), []) -> {noreply, []}.
handle_cast(Request, State) ->
    ok = weft_stray:message(Request),
    {noreply, State}.

%% @private
-spec handle_info(term(), []) -> {noreply, []}.
handle_info(Message, State) ->
    ok = weft_stray:message(Message),
    {noreply, State}.

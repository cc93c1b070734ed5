%% SPDX-License-Identifier: Apache-2.0
%% @doc What runs for a scope of names on one node, of whatever kind: one driver, below a supervisor
%% that owns its table, so that the rows outlive the driver.
-module(weft_names_sup).
-behaviour(supervisor).

-export([child_spec/3, driver/1, hash/1, processes/1]).
-export([start_link/3, init/1]).

%% The longest name with which `_links' is an atom.
-define(NAME_MAX, 249).

%% @doc For the supervisor of the services. Kind is the module of the kind; its start_driver/2
%% starts the driver.
-spec child_spec(Kind :: module(), weft_names:scope(), map()) -> supervisor:child_spec().
child_spec(Kind, Scope, Options) ->
    #{id => {weft_names, Scope}, type => supervisor,
      start => {?MODULE, start_link, [Kind, Scope, maps:remove(kind, Options)]}}.

%% @doc The name of the driver and of its table, and with `_sup' of the supervisor. These are two
%% atoms for each scope that is started on this node (and one more for `weft_node_links'). In place
%% of a scope with a name that is too long for them they have its hash.
-spec driver(weft_names:scope()) -> atom().
driver({group, Group}) -> driver("weft_names_group_", Group);
driver(Scope) -> driver("weft_names_", Scope).

driver(Prefix, Scope) ->
    Name = Prefix ++ atom_to_list(Scope),
    case length(Name) =< ?NAME_MAX of
        true -> list_to_atom(Name);
        false -> list_to_atom(Prefix ++ hash(Scope))
    end.

%% @doc Stands for a term in the name of a process; the same on all nodes.
-spec hash(term()) -> string().
hash(Term) ->
    Hash = erlang:md5(unicode:characters_to_binary(io_lib:format("~tw", [Term]))),
    string:lowercase(binary_to_list(binary:encode_hex(Hash))).

%% @doc The names that the processes of a scope have while it runs.
-spec processes(weft_names:scope()) -> [atom()].
processes(Scope) ->
    Driver = driver(Scope),
    [Driver, supervisor_of(Driver), list_to_atom(atom_to_list(Driver) ++ "_links")].

supervisor_of(Driver) -> list_to_atom(atom_to_list(Driver) ++ "_sup").

%% @private
-spec start_link(Kind :: module(), weft_names:scope(), map()) ->
          {ok, pid()} | {error, term()} | ignore.
start_link(Kind, Scope, Options) ->
    Name = supervisor_of(driver(Scope)),
    weft_supervisor:start_link({local, Name}, ?MODULE, {Kind, Scope, Options}).

%% @private
-spec init({Kind :: module(), weft_names:scope(), map()}) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({Kind, Scope, Options}) ->
    Driver = driver(Scope),
    ok = weft_service_table:new(Driver),
    {ok, {#{intensity => 5, period => 10},
          [#{id => Driver, start => {Kind, start_driver, [Scope, Options]},
             modules => [weft_driver, Kind]}]}}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Every exported function has a -spec, but for the callbacks of the behaviours that its module
%% names: their types are where the behaviour is. (The compiler's warning cannot tell them apart.)
%% The behaviour of a library need not be there when this runs: then callbacks have specs, too.
-module(house_spec).

-export([rules/0, check/1]).

-spec rules() -> [atom()].
rules() ->
    [spec].

-spec check(house_facts:facts()) -> [house:problem()].
check(#{modules := Modules}) ->
    [house:problem(spec, File, Line, atom_to_list(M),
                   io_lib:format("~w/~w is exported: give it a -spec", [Name, Arity]))
     || {M, #{file := File, without_spec := Missing} = Facts} <- lists:sort(maps:to_list(Modules)),
        Callbacks <- [callbacks(Facts, Modules)],
        {Line, {Name, Arity}} <- Missing, not lists:member({Name, Arity}, Callbacks)].

callbacks(#{behaviours := Behaviours}, Modules) ->
    lists:append([callbacks_of(Behaviour, Modules) || Behaviour <- Behaviours]).

callbacks_of(Behaviour, Modules) ->
    case Modules of
        #{Behaviour := #{callbacks := Callbacks}} -> Callbacks;
        #{} ->
            case code:ensure_loaded(Behaviour) of
                {module, Behaviour} -> Behaviour:behaviour_info(callbacks);
                {error, _NotHere} -> []
            end
    end.

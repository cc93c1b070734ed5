%% SPDX-License-Identifier: Apache-2.0
%% @doc More time for tests of EUnit. A test that does not ask for more is ended after 5 s, also if
%% the list that it is in may take longer. On a busy machine that is the end of what computes for a
%% second. What tests ask for is made longer, too. (EUnit of OTP 25 has no factor for that.)
-module(suite_eunit_time).

-export([module/2, longer/2]).

%% For one that does not ask. A test that hangs is found after this time.
-define(TEST_S, 60).

%% @doc The tests of a module, and of its own module of tests, as EUnit finds them; they may take so
%% many times as long as they ask for.
-spec module(module(), Times :: pos_integer()) -> [term()].
module(Module, Times) ->
    Beside = list_to_atom(atom_to_list(Module) ++ "_tests"),
    [{"module '" ++ atom_to_list(M) ++ "'", tests(M, Times)}
     || M <- [Module, Beside], M =:= Module orelse code:which(M) =/= non_existing].

tests(Module, Times) ->
    lists:append([found(lists:reverse(atom_to_list(Function)), {Module, Function}, Times)
                  || {Function, 0} <- Module:module_info(exports)]).

found("tset_" ++ _, {Module, Function}, Times) ->
    [longer({test, Module, Function}, Times)];
found("_tset_" ++ _, {Module, Function}, Times) ->
    [longer({generator, Module, Function}, Times)];
found(_, _, _) ->
    [].

%% @doc The same tests, with more time for each, and so many times as much where they ask for it.
-spec longer(term(), Times :: pos_integer()) -> term().
longer(Tests, Times) when is_list(Tests) ->
    [longer(Test, Times) || Test <- Tests];
longer({timeout, Seconds, Tests}, Times) ->
    {timeout, Times * Seconds, case is_one(Tests) of
                                   true -> Tests;
                                   false -> longer(Tests, Times)
                               end};
longer({with, _, _} = Tests, _Times) ->
    Tests; % functions of what is given, which are made to tests later
longer({generator, Function}, Times) ->
    {generator, fun() -> longer(Function(), Times) end};
longer({generator, Module, Function}, Times) ->
    {generator, fun() -> longer(Module:Function(), Times) end};
longer(Tests, Times) ->
    case is_one(Tests) of
        true -> {timeout, ?TEST_S, Tests};
        false when is_tuple(Tests) -> group(Tests, Times);
        false -> Tests
    end.

%% The last element of what describes a group has its tests, or makes them of what was set up.
group(Group, Times) ->
    Last = tuple_size(Group),
    setelement(Last, Group, made(element(Last, Group), Times)).

made(Tests, Times) when is_function(Tests, 1) ->
    fun(Context) -> longer(Tests(Context), Times) end;
made(Tests, Times) when is_list(Tests) ->
    [made(Test, Times) || Test <- Tests];
made(Tests, Times) ->
    longer(Tests, Times).

is_one(Test) when is_function(Test, 0) -> true;
is_one([Test]) -> is_one(Test);
is_one({Module, Function}) when is_atom(Module), is_atom(Function) -> true;
is_one({test, Module, Function}) when is_atom(Module), is_atom(Function) -> true;
is_one({TitleOrLine, Test}) when not is_atom(TitleOrLine) -> is_one(Test);
is_one(_) -> false.

%% SPDX-License-Identifier: Apache-2.0
%% @doc The table of deliberate bugs keeps up with the sources: each of them can still be put in, at
%% one place, and the tests that should find it are there.
-module(mutants_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TABLES, "test/mutants/bugs/*.config").
-define(DOCUMENT, "docs/internals/simulator.md").

each_bug_fits_its_source_at_one_place_test_() ->
    [{atom_to_list(Name), ?_assertEqual(1, occurrences(Old, File))}
     || {mutant, Name, File, Old, New, _, _} <- mutants(), Old =/= New].

names_are_used_once_test() ->
    Names = [element(2, Mutant) || Mutant <- mutants()],
    ?assertEqual([], Names -- lists:usort(Names)).

the_tests_that_find_it_are_there_test_() ->
    [{atom_to_list(Name), ?_assertNotEqual([], Tests)}
     || {mutant, Name, _, _, _, Tests, _} <- mutants()]
        ++ [{lists:concat([Name, " by ", Module]), ?_assert(is_there(Test, Module))}
            || {mutant, Name, _, _, _, Tests, _} <- mutants(), Test <- Tests,
               Module <- [case Test of {M, _} -> M; M -> M end]].

each_bug_has_a_row_in_the_document_test_() ->
    [{atom_to_list(Name), ?_assertEqual(1, occurrences(lists:concat(["| `", Name, "` |"]),
                                                       ?DOCUMENT))}
     || {mutant, Name, _, _, _, _, _} <- mutants()].

mutants() ->
    lists:append([consulted(Table) || Table <- filelib:wildcard(?TABLES)]).

consulted(Table) ->
    {ok, Mutants} = file:consult(Table),
    Mutants.

occurrences(Text, File) ->
    {ok, Source} = file:read_file(File),
    length(binary:matches(Source, unicode:characters_to_binary(Text))).

is_there(Test, Module) ->
    case lists:append([filelib:wildcard(lists:concat([Dir, "/", Module, ".erl"]))
                       || Dir <- ["apps/*/test", "test/*"]]) of
        [File] ->
            case Test of
                {_, Function} -> occurrences(lists:concat([Function, "() ->"]), File) =:= 1;
                _ -> true
            end;
        _ -> false
    end.

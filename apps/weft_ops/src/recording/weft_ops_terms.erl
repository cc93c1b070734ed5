%% SPDX-License-Identifier: Apache-2.0
%% @doc Terms of recordings as bytes. Pure, but for the atoms that it makes.
%%
%% A term is taken apart into its shape, which is all of it but its integers, and these integers, in
%% order. The samples of a node keep their shape for minutes, so it is written once, and the
%% integers of a sample are written as differences (`weft_ops_chunk').
%%
%% What is read may be of anybody. So this is a format of its own and not that of term_to_binary:
%% there are no funs, no references and nothing that is larger in memory than a few words for each
%% of its bytes. Pids and the like are written as text, and so are numbers that are longer than what
%% is read. Atoms that do not exist yet, such as the names of nodes of another cluster, are made
%% within a budget, and by all that a node reads as long as it runs no more than 20,000: they are
%% never forgotten.
-module(weft_ops_terms).

-export([shape/1, parse/2, fill/2, is_tagged/2, count/1]).
-export_type([shape/0, tree/0]).

-type shape() :: binary().
%% A shape that was read: what is filled with integers.
-type tree() :: integer | {is, term()} | {list | tuple, [tree()]} | {map, [{tree(), tree()}]}.

%% Integers of this size are written as they are.
-define(LARGE, 16#1000000000000000).
-define(DIGITS_MAX, 1024).
-define(TEXT_MIN, 9).
-define(ATOMS_MAX, 20000).

%% @doc The shape of a term, and its integers.
-spec shape(term()) -> {shape(), [integer()]}.
shape(Term) ->
    {Shape, Integers} = shape(Term, {[], []}),
    {iolist_to_binary(lists:reverse(Shape)), lists:reverse(Integers)}.

shape(Integer, {Shape, Integers}) when is_integer(Integer), abs(Integer) < ?LARGE ->
    {[$i | Shape], [Integer | Integers]};
shape(Integer, {Shape, Integers}) when is_integer(Integer) ->
    Digits = integer_to_binary(Integer),
    Tag = case byte_size(Digits) =< ?DIGITS_MAX of true -> $n; false -> $b end,
    {[text(Tag, Digits) | Shape], Integers};
shape(Atom, {Shape, Integers}) when is_atom(Atom) ->
    {[text($a, atom_to_binary(Atom)) | Shape], Integers};
shape(Binary, {Shape, Integers}) when is_binary(Binary) ->
    {[text($b, Binary) | Shape], Integers};
shape(Float, {Shape, Integers}) when is_float(Float) ->
    {[<<$f, Float/float>> | Shape], Integers};
shape(Tuple, Acc) when is_tuple(Tuple) ->
    elements($t, tuple_to_list(Tuple), Acc);
shape(Map, {Shape, Integers}) when is_map(Map) ->
    lists:foldl(fun({Key, Value}, Acc) -> shape(Value, shape(Key, Acc)) end,
                {[<<$m, (map_size(Map)):32>> | Shape], Integers},
                lists:sort(maps:to_list(Map)));
shape(List, {Shape, Integers} = Acc) when is_list(List), length(List) >= 0 ->
    case is_text(List) of
        true -> {[text($s, list_to_binary(List)) | Shape], Integers};
        false -> elements($l, List, Acc)
    end;
shape(Other, Acc) ->
    shape(iolist_to_binary(io_lib:format("~0tp", [Other])), Acc).

elements(Tag, List, {Shape, Integers}) ->
    lists:foldl(fun shape/2, {[<<Tag, (length(List)):32>> | Shape], Integers}, List).

%% Reasons in words are strings. A short list may as well be of numbers that change.
is_text(List) -> length(List) >= ?TEXT_MIN andalso lists:all(fun is_printable/1, List).

is_printable(Char) -> is_integer(Char) andalso Char >= 32 andalso Char =< 126.

text(Tag, Binary) -> <<Tag, (byte_size(Binary)):32, Binary/binary>>.

%% @doc Reads a shape. At most Budget atoms are made; what is left of it is returned.
-spec parse(binary(), Budget :: non_neg_integer()) ->
          {ok, tree(), non_neg_integer()} | {error, Text :: string()}.
parse(Shape, Budget) ->
    try one(Shape, Budget) of
        {Tree, <<>>, Left} -> {ok, Tree, Left};
        {_Tree, _More, _Left} -> {error, "there is more than a term"}
    catch
        throw:Text -> {error, Text};
        error:_ -> {error, "it is no term"}
    end.

one(<<$i, Rest/binary>>, Budget) ->
    {integer, Rest, Budget};
one(<<$n, Size:32, Digits:Size/binary, Rest/binary>>, Budget) when Size =< ?DIGITS_MAX ->
    {{is, binary_to_integer(Digits)}, Rest, Budget};
one(<<$a, Size:32, Name:Size/binary, Rest/binary>>, Budget) ->
    {Atom, Left} = atom(Name, Budget),
    {{is, Atom}, Rest, Left};
one(<<$b, Size:32, Binary:Size/binary, Rest/binary>>, Budget) ->
    {{is, binary:copy(Binary)}, Rest, Budget};
one(<<$s, Size:32, Text:Size/binary, Rest/binary>>, Budget) ->
    {{is, binary_to_list(Text)}, Rest, Budget};
one(<<$f, Float/float, Rest/binary>>, Budget) ->
    {{is, Float}, Rest, Budget};
one(<<$t, Count:32, Rest/binary>>, Budget) when Count =< byte_size(Rest) ->
    {Trees, Left, BudgetLeft} = several(Count, Rest, Budget, []),
    {{tuple, Trees}, Left, BudgetLeft};
one(<<$l, Count:32, Rest/binary>>, Budget) when Count =< byte_size(Rest) ->
    {Trees, Left, BudgetLeft} = several(Count, Rest, Budget, []),
    {{list, Trees}, Left, BudgetLeft};
one(<<$m, Count:32, Rest/binary>>, Budget) when Count =< byte_size(Rest) ->
    {Trees, Left, BudgetLeft} = several(2 * Count, Rest, Budget, []),
    {{map, pairs(Trees)}, Left, BudgetLeft}.

several(0, Rest, Budget, Trees) ->
    {lists:reverse(Trees), Rest, Budget};
several(Count, Shape, Budget, Trees) ->
    {Tree, Rest, Left} = one(Shape, Budget),
    several(Count - 1, Rest, Left, [Tree | Trees]).

pairs([Key, Value | Others]) -> [{Key, Value} | pairs(Others)];
pairs([]) -> [].

atom(Name, Budget) ->
    try {binary_to_existing_atom(Name, utf8), Budget}
    catch error:badarg -> new_atom(Name, Budget)
    end.

new_atom(_Name, 0) -> throw("it has too many names");
new_atom(Name, Budget) ->
    case atomics:sub_get(atoms_left(), 1, 1) >= 0 of
        true -> {binary_to_atom(Name, utf8), Budget - 1};
        false -> throw("this node has made all names that it may for recordings: read it on another"
                       " node, or start this one again")
    end.

%% How many atoms the node may still make; all processes that read count there.
atoms_left() ->
    case persistent_term:get(?MODULE, none) of
        none ->
            New = atomics:new(1, []),
            ok = atomics:put(New, 1, ?ATOMS_MAX),
            ok = persistent_term:put(?MODULE, New),
            persistent_term:get(?MODULE);
        Left ->
            Left
    end.

%% @doc Is it the shape of `{Tag, _}'?
-spec is_tagged(shape(), Tag :: atom()) -> boolean().
is_tagged(Shape, Tag) ->
    Begin = iolist_to_binary([<<$t, 2:32>>, text($a, atom_to_binary(Tag))]),
    binary:longest_common_prefix([Shape, Begin]) =:= byte_size(Begin).

%% @doc How many integers a shape has, and of how many terms it is made: what it takes to fill it,
%% whatever the bytes of its texts. Nothing is made of it. It fails if it is no shape.
-spec count(shape()) -> {Integers :: non_neg_integer(), Terms :: non_neg_integer()}.
count(Shape) -> count(Shape, 0, 0).

count(<<>>, Integers, Terms) ->
    {Integers, Terms};
count(<<$i, Rest/binary>>, Integers, Terms) ->
    count(Rest, Integers + 1, Terms + 1);
count(<<$f, _:64, Rest/binary>>, Integers, Terms) ->
    count(Rest, Integers, Terms + 1);
count(<<Tag, _:32, Rest/binary>>, Integers, Terms) when Tag =:= $t; Tag =:= $l; Tag =:= $m ->
    count(Rest, Integers, Terms + 1);
count(<<Tag, Size:32, _:Size/binary, Rest/binary>>, Integers, Terms)
  when Tag =:= $n; Tag =:= $a; Tag =:= $b; Tag =:= $s ->
    count(Rest, Integers, Terms + 1).

%% @doc The term. There have to be as many integers as the tree has places.
-spec fill(tree(), [integer()]) -> term().
fill(Tree, Integers) ->
    {Term, []} = filled(Tree, Integers),
    Term.

filled(integer, [Integer | Integers]) ->
    {Integer, Integers};
filled({is, Term}, Integers) ->
    {Term, Integers};
filled({list, Trees}, Integers) ->
    lists:mapfoldl(fun filled/2, Integers, Trees);
filled({tuple, Trees}, Integers) ->
    {Terms, Left} = lists:mapfoldl(fun filled/2, Integers, Trees),
    {list_to_tuple(Terms), Left};
filled({map, Pairs}, Integers) ->
    {Terms, Left} = lists:mapfoldl(fun({KeyTree, ValueTree}, Left0) ->
                                       {Key, Left1} = filled(KeyTree, Left0),
                                       {Value, Left2} = filled(ValueTree, Left1),
                                       {{Key, Value}, Left2}
                                   end, Integers, Pairs),
    {maps:from_list(Terms), Left}.

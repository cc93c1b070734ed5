%% SPDX-License-Identifier: Apache-2.0
%% @doc Conformance cases: every kind of term survives the way there and back, and means the same.
-module(weft_conformance_terms).

-include("weft_conformance.hrl").

-export([integers_small_and_big/1, floats_and_minus_zero/1, atoms_utf8_and_of_255_characters/1,
         five_thousand_distinct_atoms/1, tuples_of_1000_elements/1, nested_and_deep_terms/1,
         proper_and_improper_lists/1, strings_of_65535_bytes_and_more/1, bitstrings/1,
         small_and_large_maps/1, map_of_10000_keys/1, nested_maps/1, local_funs/1,
         external_funs/1, references_and_their_order/1, ports/1, pids_keep_their_meaning/1,
         pid_of_a_third_node/1, sub_binaries_and_shared_terms/1, random_terms/1,
         process_bifs_refuse_remote_pids/1, printing_of_remote_pids/1]).
-export([needs/0]).

-define(ATOMS, 5_000).
-define(RANDOM_TERMS, 300).
-define(DEPTH, 4).

needs() ->
    #{pid_of_a_third_node => #{visible => true}}.

integers_small_and_big(#{b := B}) ->
    Powers = [1 bsl N || N <- [0, 7, 8, 15, 16, 26, 27, 28, 31, 32, 58, 59, 60, 63, 64, 127,
                               2039, 2040, 2041, 65_536]],
    same(B, [0 | [Sign * (Power + D) || Sign <- [1, -1], Power <- Powers, D <- [-1, 0, 1]]]).

%% Compared by their bits too, since 0.0 and -0.0 are equal terms before OTP 27.
floats_and_minus_zero(#{b := B}) ->
    Floats = [0.0, -0.0, 1.5, -1.5, 1.0e308, 5.0e-324, 0.1, math:pi(), 1.7976931348623157e308],
    Bits = [<<F/float>> || F <- Floats],
    Bits = [<<F/float>> || F <- there_and_back(B, Floats)],
    Bits = erpc:call(B, fun() -> [<<F/float>> || F <- Floats] end).

atoms_utf8_and_of_255_characters(#{b := B}) ->
    Long = list_to_atom(lists:duplicate(255, $x)),
    Wide = list_to_atom(lists:duplicate(255, 16#1F600)),
    same(B, ['', a, 'two words', 'λ', '漢字', list_to_atom([0, 255, 256]), Long, Wide]),
    255 = erpc:call(B, fun() -> length(atom_to_list(Wide)) end).

%% More atoms than any atom cache holds (2,048), in changing order, in one and in many messages.
five_thousand_distinct_atoms(#{b := B}) ->
    Atom = fun(N) -> list_to_atom("conformance_atom_" ++ integer_to_list(N * N)) end,
    Atoms = [Atom(N) || N <- lists:seq(1, ?ATOMS)],
    same(B, [Atoms]),
    Echo = echo(B),
    [Echo ! {self(), Sent} || Sent <- Atoms ++ lists:reverse(Atoms)],
    [?expect({Echo, Sent}) || Sent <- Atoms ++ lists:reverse(Atoms)].

tuples_of_1000_elements(#{b := B}) ->
    same(B, [{}, {1}, list_to_tuple(lists:seq(1, 255)), list_to_tuple(lists:seq(1, 256)),
             list_to_tuple(lists:duplicate(1_000, {x, "y"}))]).

nested_and_deep_terms(#{b := B}) ->
    same(B, [lists:foldl(fun(N, Inner) -> {N, [Inner]} end, [], lists:seq(1, 10_000)),
             lists:foldl(fun(N, Inner) -> [Inner, N] end, {}, lists:seq(1, 10_000))]).

proper_and_improper_lists(#{b := B}) ->
    same(B, [[], [a], [a | b], [1, 2 | {c}], lists:seq(1, 100_000), [[[]], [] | <<>>],
             lists:seq(1, 1_000) ++ improper]).

strings_of_65535_bytes_and_more(#{b := B}) ->
    same(B, [lists:duplicate(N, $s) || N <- [0, 1, 65_534, 65_535, 65_536, 200_000]]).

bitstrings(#{b := B}) ->
    same(B, [<<1:N>> || N <- lists:seq(0, 70)] ++ [<<5:3>>, <<0:2049>>, <<1:1, 0:(8 * 70_000)>>]).

small_and_large_maps(#{b := B}) ->
    Map = fun(Size) -> maps:from_list([{{key, N}, N} || N <- lists:seq(1, Size)]) end,
    same(B, [Map(Size) || Size <- [0, 1, 31, 32, 33, 64, 1_000]] ++ [#{1 => a, 1.0 => b}]).

map_of_10000_keys(#{b := B}) ->
    Map = maps:from_list([{N, #{n => N, list => [N]}} || N <- lists:seq(1, 10_000)]),
    same(B, [Map]),
    #{n := 7_777} = erpc:call(B, fun() -> maps:get(7_777, Map) end).

nested_maps(#{b := B}) ->
    same(B, [lists:foldl(fun(N, Inner) -> #{N => Inner, Inner => N} end, #{}, lists:seq(1, 10))]).

local_funs(#{b := B}) ->
    Factor = length(nodes(this)) + 6,
    Times = fun(X) -> X * Factor end,
    21 = erpc:call(B, fun() -> Times(3) end),
    [Back] = there_and_back(B, [Times]),
    true = Back =:= Times,
    28 = Back(4),
    {env, [7]} = erlang:fun_info(Back, env),
    Far = erpc:call(B, fun() -> Base = node(), fun() -> {Base, node()} end end),
    {B, Here} = Far(),
    Here = node().

external_funs(#{b := B}) ->
    same(B, [fun erlang:node/0, fun lists:map/2, fun no_such_module:f/255]),
    B = (erpc:call(B, fun() -> fun erpc:call/4 end))(B, erlang, node, []).

references_and_their_order(#{b := B}) ->
    Refs = [make_ref() || _ <- lists:seq(1, 100)],
    same(B, [alias() | Refs]),
    Far = erpc:call(B, fun() -> [make_ref() || _ <- lists:seq(1, 100)] end),
    100 = length(lists:usort(Far)),
    [B] = lists:usort([node(Ref) || Ref <- Far]),
    same(B, Far).

ports(#{b := B}) ->
    same(B, erlang:ports()),
    [Port | _] = erpc:call(B, erlang, ports, []),
    B = node(Port),
    same(B, [Port]),
    ?raises(error, badarg, erlang:port_connect(Port, self())).

pids_keep_their_meaning(#{a := A, b := B}) ->
    Far = weft_puppet:start(B),
    same(B, [self(), Far, {self(), [Far]}]),
    {A, B} = {node(self()), node(Far)},
    Near = self(),
    true = weft_puppet:do(Far, fun() -> Far =:= self() andalso node(Near) =:= A end),
    Text = term_to_binary(Far),
    Far = binary_to_term(Text),
    Far = erpc:call(B, fun() -> binary_to_term(Text) end).

pid_of_a_third_node(#{b := B, c := C}) ->
    Third = weft_puppet:start(C),
    ThirdRef = weft_puppet:do(Third, fun() -> make_ref() end),
    same(B, [Third, ThirdRef]),
    Near = self(),
    Middle = weft_puppet:start(B),
    weft_puppet:do(Middle, fun() -> Third ! {tell, fun() -> Near ! {over_three, node()} end} end),
    ?expect({over_three, C}),
    C = erpc:call(B, fun() -> node(Third) end).

sub_binaries_and_shared_terms(#{b := B}) ->
    Whole = rand:bytes(100_000),
    <<_:1_000/binary, Part:70/binary, Rest/bitstring>> = Whole,
    <<_:3, Odd:1_001/bitstring, _/bitstring>> = Whole,
    Shared = lists:seq(1, 100),
    same(B, [Part, Rest, Odd, {Shared, Shared, Shared}, binary:copy(<<"x">>, 65)]).

%% The seed is in the failure text; set it by the environment variable WEFT_SEED to repeat.
random_terms(#{b := B}) ->
    Seed = case os:getenv("WEFT_SEED") of
               false -> erlang:phash2({os:system_time(), node()});
               Text -> list_to_integer(Text)
           end,
    _ = rand:seed(exsss, Seed),
    [begin
         Term = weft_random_term:term(?DEPTH),
         [Back] = there_and_back(B, [Term]),
         Back =:= Term orelse
             erlang:error({term_changed, #{seed => Seed, number => N, term => Term}})
     end || N <- lists:seq(1, ?RANDOM_TERMS)].

process_bifs_refuse_remote_pids(#{b := B}) ->
    Far = weft_puppet:start(B),
    ?raises(error, badarg, process_info(Far)),
    ?raises(error, badarg, process_info(Far, links)),
    ?raises(error, badarg, is_process_alive(Far)),
    ?raises(error, badarg, suspend_process(Far)),
    ?raises(error, badarg, erlang:garbage_collect(Far)),
    ?raises(error, badarg, register(conformance_not_from_afar, Far)),
    ?raises(error, badarg, erlang:process_flag(Far, save_calls, 1)).

suspend_process(Pid) ->
    erlang:suspend_process(Pid).

printing_of_remote_pids(#{b := B}) ->
    Far = weft_puppet:start(B),
    Text = pid_to_list(Far),
    Far = list_to_pid(Text),
    false = Text =:= weft_puppet:do(Far, fun() -> pid_to_list(Far) end),
    Ref = weft_puppet:do(Far, fun() -> make_ref() end),
    Ref = list_to_ref(ref_to_list(Ref)).

%% ---- there and back ----

same(Node, Terms) ->
    Back = there_and_back(Node, Terms),
    [Sent =:= Got orelse erlang:error({term_changed, #{sent => Sent, got => Got}})
     || {Sent, Got} <- lists:zip(Terms, Back)],
    ok.

there_and_back(Node, Terms) ->
    Echo = echo(Node),
    [begin Echo ! {self(), Term}, ?expect({Echo, Back}, Back) end || Term <- Terms].

echo(Node) ->
    Owner = self(),
    spawn(Node, fun() -> echo_loop(monitor(process, Owner)) end).

echo_loop(Monitor) ->
    receive
        {'DOWN', Monitor, process, _, _} ->
            ok;
        {From, Term} when is_pid(From) ->
            From ! {self(), Term},
            echo_loop(Monitor)
    end.

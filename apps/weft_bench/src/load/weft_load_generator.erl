%% SPDX-License-Identifier: Apache-2.0
%% @doc Keys and values for the operations of a load, as the configuration names them; the names and
%% meanings are those of Basho Bench.
%%
%% A generator is a fun without arguments that its worker calls. Those that count keep their place
%% in the process dictionary of the worker.
-module(weft_load_generator).

-export([keys/2, values/2]).
-export_type([generator/0, context/0]).

-type generator() :: fun(() -> term()).
%% Worker number, from 1, and how many there are.
-type context() :: #{id := pos_integer(), concurrent := pos_integer()}.

%% Ranges are filled up in this share when a Pareto distribution is asked for: the mean lies at a
%% fifth of the range.
-define(PARETO_SHAPE, 1.5).

%% @doc The generator of keys for a worker. Throws `{config, Text}' if there is none of that name.
-spec keys(Spec :: term(), context()) -> generator().
keys({uniform_int, Max}, _) when is_integer(Max), Max > 0 ->
    fun() -> rand:uniform(Max) - 1 end;
keys({uniform_int, Start, Count}, _) when is_integer(Start), is_integer(Count), Count > 0 ->
    fun() -> Start + rand:uniform(Count) - 1 end;
keys({pareto_int, Max}, _) when is_integer(Max), Max > 0 ->
    pareto(trunc(Max * 0.2), ?PARETO_SHAPE);
keys({truncated_pareto_int, Max}, _) when is_integer(Max), Max > 0 ->
    Pareto = pareto(trunc(Max * 0.2), ?PARETO_SHAPE),
    fun() -> truncated(Pareto, Max) end;
keys({sequential_int, Max}, #{id := Id}) when is_integer(Max), Max > 0 ->
    sequence({keys, Id}, 0, Max);
keys({partitioned_sequential_int, Max}, Context) ->
    keys({partitioned_sequential_int, 0, Max}, Context);
keys({partitioned_sequential_int, Start, Count}, #{id := Id, concurrent := Workers})
  when is_integer(Start), is_integer(Count), Count >= Workers ->
    {From, Own} = part(Start, Count, Id, Workers),
    sequence({keys, Id}, From, Own);
keys(uuid_v4, _) ->
    fun() ->
            <<A:48, _:4, B:12, _:2, C:62>> = rand:bytes(16),
            <<A:48, 4:4, B:12, 2:2, C:62>>
    end;
keys({valgen, Spec}, Context) ->
    values(Spec, Context);
keys({function, Module, Function, Arguments}, #{id := Id}) ->
    apply(Module, Function, [Id | Arguments]);
keys(Bin, _) when is_binary(Bin) ->
    fun() -> Bin end;
keys(Wrapped, Context) ->
    wrapped(Wrapped, fun(Spec) -> keys(Spec, Context) end, key_generator).

%% @doc The generator of values for a worker.
-spec values(Spec :: term(), context()) -> generator().
values({fixed_bin, Bytes}, _) when is_integer(Bytes), Bytes >= 0 ->
    Source = source(Bytes),
    fun() -> slice(Bytes, Source) end;
values({fixed_bin, Bytes, Byte}, _) when is_integer(Bytes), Bytes >= 0, Byte >= 0, Byte < 256 ->
    Value = binary:copy(<<Byte>>, Bytes),
    fun() -> Value end;
values({fixed_char, Bytes}, _) when is_integer(Bytes), Bytes >= 0 ->
    fun() -> [$a + rand:uniform(26) - 1 || _ <- lists:seq(1, Bytes)] end;
values({exponential_bin, Min, Mean}, _) when is_integer(Min), Min >= 0, Mean > Min ->
    Source = source(Min + 20 * (Mean - Min)),
    fun() -> slice(Min + min(trunc(exponential(Mean - Min)), 19 * (Mean - Min)), Source) end;
values({uniform_bin, Min, Max}, _) when is_integer(Min), Min >= 0, is_integer(Max), Max >= Min ->
    Source = source(Max),
    fun() -> slice(Min + rand:uniform(Max - Min + 1) - 1, Source) end;
values({uniform_int, _} = Spec, Context) ->
    keys(Spec, Context);
values({function, Module, Function, Arguments}, #{id := Id}) ->
    apply(Module, Function, [Id | Arguments]);
values(Wrapped, Context) ->
    wrapped(Wrapped, fun(Spec) -> values(Spec, Context) end, value_generator).

wrapped({int_to_bin_bigendian, Spec}, Make, _) -> mapped(fun(N) -> <<N:32/big>> end, Make(Spec));
wrapped({int_to_bin_littleendian, Spec}, Make, _) -> mapped(fun(N) -> <<N:32/little>> end,
                                                           Make(Spec));
wrapped({int_to_str, Spec}, Make, _) -> mapped(fun integer_to_list/1, Make(Spec));
wrapped({to_str, Spec}, Make, _) -> mapped(fun to_string/1, Make(Spec));
wrapped({to_binstr, Spec}, Make, _) -> mapped(fun(Term) -> list_to_binary(to_string(Term)) end,
                                             Make(Spec));
wrapped({str_to_bin, Spec}, Make, _) -> mapped(fun list_to_binary/1, Make(Spec));
wrapped({bin_to_str, Spec}, Make, _) -> mapped(fun binary_to_list/1, Make(Spec));
wrapped({base64, Spec}, Make, _) -> mapped(fun base64:encode/1, Make(Spec));
wrapped({crypto_hash, Type, Spec}, Make, _) -> mapped(fun(Bin) -> crypto:hash(Type, Bin) end,
                                                     Make(Spec));
wrapped({concat_binary, Spec1, Spec2}, Make, _) ->
    {One, Other} = {Make(Spec1), Make(Spec2)},
    fun() -> iolist_to_binary([One(), Other()]) end;
wrapped(Other, _Make, Key) ->
    throw({config, io_lib:format("~ts: there is no generator ~0tp", [Key, Other])}).

mapped(Fun, Generator) -> fun() -> Fun(Generator()) end.

to_string(Term) when is_list(Term) -> Term;
to_string(Term) -> lists:flatten(io_lib:format("~p", [Term])).

%% --- sequences --------------------------------------------------------------------------------

sequence(Id, From, Count) ->
    fun() ->
            Next = case get({?MODULE, Id}) of
                       undefined -> 0;
                       At -> At
                   end,
            put({?MODULE, Id}, (Next + 1) rem Count),
            From + Next
    end.

%% The last worker takes what is left over.
part(Start, Count, Id, Workers) ->
    Each = Count div Workers,
    case Id of
        Workers -> {Start + Each * (Id - 1), Count - Each * (Workers - 1)};
        _ -> {Start + Each * (Id - 1), Each}
    end.

%% --- distributions ----------------------------------------------------------------------------

pareto(Mean, Shape) ->
    S = -1 / Shape,
    Scale = Mean * (Shape - 1),
    fun() -> trunc(Scale * (math:pow(1 - rand:uniform(), S) - 1)) end.

truncated(Generator, Max) ->
    case Generator() of
        Value when Value < Max -> Value;
        _ -> truncated(Generator, Max)
    end.

exponential(Mean) -> -math:log(1 - rand:uniform()) * Mean.

%% Random bytes are made once; a value is a part of them from a random place, so that making it
%% costs little beside the operation that is measured.
source(Bytes) -> rand:bytes(2 * Bytes + 1024).

slice(Bytes, Source) ->
    binary:part(Source, rand:uniform(byte_size(Source) - Bytes + 1) - 1, Bytes).

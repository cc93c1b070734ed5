%% SPDX-License-Identifier: Apache-2.0
%% @doc Keys and values for the operations of a load, as the configuration names them; the names and
%% meanings are those of Basho Bench. Keys drawn from a range begin with 1, those counted with 0.
%%
%% A generator is a fun without arguments that its worker calls. Those that count keep their place
%% in the process dictionary of the worker; when all their keys are used they throw
%% `{stop, empty_keygen}', which ends the worker unless the driver catches it.
%%
%% Unlike there, lines of a file are not handed out by one process: of N workers each reads every
%% Nth line, so that a seed gives the same operations again.
-module(weft_load_generator).

-export([keys/2, values/2]).
-export_type([generator/0, context/0]).

-type generator() :: fun(() -> term()).
%% Worker number, from 1, and how many there are.
-type context() :: #{id := pos_integer(), concurrent := pos_integer()}.

%% Ranges are filled up in this share when a Pareto distribution is asked for: the mean lies at a
%% fifth of the range.
-define(PARETO_SHAPE, 1.5).
%% Values of an exponential length are cut at so many times the mean.
-define(LONGEST, 20).
%% What compresses well and what does not alternate in pieces of so many bytes.
-define(PIECE, 4096).

-define(KEYS, "uniform_int, eightytwenty_int, pareto_int, truncated_pareto_int, sequential_int, "
              "partitioned_sequential_int, uuid_v4, file_line_bin, valgen").
-define(VALUES, "fixed_bin, fixed_char, exponential_bin, uniform_bin, uniform_int, "
                "semi_compressible").
-define(BOTH, "function, int_to_bin_bigendian, int_to_bin_littleendian, int_to_str, to_str, "
              "to_binstr, str_to_bin, bin_to_str, base64, crypto_hash, concat_binary").

%% @doc The generator of keys for a worker. Throws `{config, Text}' if there is none of that name.
-spec keys(Spec :: term(), context()) -> generator().
keys({uniform_int, Max}, _) when is_integer(Max), Max > 0 ->
    fun() -> rand:uniform(Max) end;
keys({uniform_int, Start, Count}, _) when is_integer(Start), is_integer(Count), Count > 0 ->
    fun() -> Start + rand:uniform(Count) - 1 end;
keys({eightytwenty_int, Max}, _) when is_integer(Max), Max >= 5 ->
    eighty_twenty(Max div 5, Max);
keys({pareto_int, Max}, _) when is_integer(Max), Max > 0 ->
    pareto(trunc(Max * 0.2), ?PARETO_SHAPE);
keys({truncated_pareto_int, Max}, _) when is_integer(Max), Max > 0 ->
    mapped(fun(Key) -> min(Key, Max) end, pareto(trunc(Max * 0.2), ?PARETO_SHAPE));
keys({sequential_int, Count}, _) when is_integer(Count), Count > 0 ->
    sequence(0, Count);
keys({partitioned_sequential_int, Count}, Context) ->
    keys({partitioned_sequential_int, 0, Count}, Context);
keys({partitioned_sequential_int, Start, Count}, #{id := Id, concurrent := Workers})
  when is_integer(Start), is_integer(Count), Count > 0 ->
    {From, Own} = part(Start, Count, Id, Workers),
    sequence(From, Own);
keys(uuid_v4, _) ->
    fun() ->
            <<A:48, _:4, B:12, _:2, C:62>> = rand:bytes(16),
            <<A:48, 4:4, B:12, 2:2, C:62>>
    end;
keys({file_line_bin, File}, Context) ->
    keys({file_line_bin, File, repeat}, Context);
keys({file_line_bin, File, Repeat}, #{id := Id, concurrent := Workers}) ->
    weft_load_lines:generator(File, Repeat =:= repeat, Id, Workers);
keys({valgen, Spec}, Context) ->
    values(Spec, Context);
keys(Constant, _) when is_binary(Constant); is_list(Constant) ->
    fun() -> Constant end;
keys(Other, Context) ->
    either(Other, Context, fun keys/2, {key_generator, ?KEYS}).

%% @doc The generator of values for a worker.
-spec values(Spec :: term(), context()) -> generator().
values({fixed_bin, Bytes}, _) when is_integer(Bytes), Bytes >= 0 ->
    Source = source(Bytes),
    fun() -> slice(Bytes, Source) end;
values({fixed_bin, Bytes, Byte}, _)
  when is_integer(Bytes), Bytes >= 0, is_integer(Byte), Byte >= 0, Byte < 256 ->
    Value = binary:copy(<<Byte>>, Bytes),
    fun() -> Value end;
values({fixed_char, Bytes}, _) when is_integer(Bytes), Bytes >= 0 ->
    fun() -> printable(Bytes) end;
values({exponential_bin, Min, Mean}, _)
  when is_integer(Min), Min >= 0, is_number(Mean), Mean > 0 ->
    exponential_bin(Min, Mean, source(longest(Min, Mean)));
values({uniform_bin, Min, Max}, _) when is_integer(Min), Min >= 0, is_integer(Max), Max > Min ->
    Source = source(Max),
    fun() -> slice(Min + rand:uniform(Max - Min), Source) end;
values({uniform_int, Max}, _) when is_integer(Max), Max > 0 ->
    fun() -> rand:uniform(Max) end;
values({uniform_int, Min, Max}, _) when is_integer(Min), is_integer(Max), Max > Min ->
    fun() -> Min + rand:uniform(Max - Min + 1) - 1 end;
values({semi_compressible, Min, Mean, Times, Share}, _)
  when is_integer(Min), Min >= 0, is_number(Mean), Mean > 0, is_integer(Times), Times > 0,
       is_number(Share), Share >= 0, Share =< 1 ->
    Source = half_text(Times * longest(Min, Mean)),
    {Usual, Large} = {exponential_bin(Min, Mean, Source),
                      exponential_bin(Times * Min, Times * Mean, Source)},
    fun() ->
            case rand:uniform() < Share of
                true -> Large();
                false -> Usual()
            end
    end;
values(Other, Context) ->
    either(Other, Context, fun values/2, {value_generator, ?VALUES}).

%% What there is for keys and for values.
either({function, Module, Function, Arguments}, #{id := Id}, _Make, {Key, _})
  when is_atom(Module), is_atom(Function), is_list(Arguments) ->
    _ = code:ensure_loaded(Module),
    case erlang:function_exported(Module, Function, length(Arguments) + 1) of
        true -> apply(Module, Function, [Id | Arguments]);
        false -> fail("~ts: there is no function ~ts:~ts/~b",
                      [Key, Module, Function, length(Arguments) + 1])
    end;
either({int_to_bin, _}, _Context, _Make, {Key, _}) ->
    fail("~ts: int_to_bin is gone, as in Basho Bench; there are int_to_bin_bigendian and "
         "int_to_bin_littleendian", [Key]);
either(Spec, Context, Make, Kind) ->
    wrapped(Spec, fun(Inner) -> Make(Inner, Context) end, Kind).

wrapped({int_to_bin_bigendian, Spec}, Make, Kind) ->
    wrapped({{int_to_bin_bigendian, 32}, Spec}, Make, Kind);
wrapped({int_to_bin_littleendian, Spec}, Make, Kind) ->
    wrapped({{int_to_bin_littleendian, 32}, Spec}, Make, Kind);
wrapped({{int_to_bin_bigendian, Bits}, Spec}, Make, _) when is_integer(Bits), Bits > 0 ->
    mapped(fun(N) -> <<N:Bits/big>> end, Make(Spec));
wrapped({{int_to_bin_littleendian, Bits}, Spec}, Make, _) when is_integer(Bits), Bits > 0 ->
    mapped(fun(N) -> <<N:Bits/little>> end, Make(Spec));
wrapped({int_to_str, Spec}, Make, _) ->
    mapped(fun integer_to_list/1, Make(Spec));
wrapped({to_str, Format, Spec}, Make, _) ->
    mapped(fun(Term) -> lists:flatten(io_lib:format(Format, [Term])) end, Make(Spec));
wrapped({to_binstr, Format, Spec}, Make, _) ->
    mapped(fun(Term) -> iolist_to_binary(io_lib:format(Format, [Term])) end, Make(Spec));
wrapped({str_to_bin, Spec}, Make, _) ->
    mapped(fun list_to_binary/1, Make(Spec));
wrapped({bin_to_str, Spec}, Make, _) ->
    mapped(fun binary_to_list/1, Make(Spec));
wrapped({base64, Spec}, Make, _) ->
    mapped(fun base64:encode/1, Make(Spec));
wrapped({{crypto_hash, Type}, Spec}, Make, {Key, _}) ->
    case lists:member(Type, crypto:supports(hashs)) of
        true -> mapped(fun(Bin) -> crypto:hash(Type, Bin) end, Make(Spec));
        false -> fail("~ts: this system has no hash ~0tp", [Key, Type])
    end;
wrapped({concat_binary, Spec1, Spec2}, Make, _) ->
    {One, Other} = {Make(Spec1), Make(Spec2)},
    fun() -> iolist_to_binary([One(), Other()]) end;
wrapped(Other, _Make, {Key, Names}) ->
    fail("~ts: there is no generator ~0tp; there are ~ts, and around others ~ts",
         [Key, Other, Names, ?BOTH]).

-spec fail(io:format(), [term()]) -> no_return().
fail(Format, Arguments) -> throw({config, io_lib:format(Format, Arguments)}).

mapped(Fun, Generator) -> fun() -> Fun(Generator()) end.

%% --- sequences --------------------------------------------------------------------------------

sequence(From, Count) ->
    Place = {?MODULE, make_ref()},
    fun() ->
            case get(Place) of
                undefined when Count > 0 -> put(Place, 1), From;
                Used when is_integer(Used), Used < Count -> put(Place, Used + 1), From + Used;
                _ -> throw({stop, empty_keygen})
            end
    end.

%% The last worker takes what is left over.
part(Start, Count, Id, Workers) ->
    Each = Count div Workers,
    case Id of
        Workers -> {Start + Each * (Id - 1), Count - Each * (Workers - 1)};
        _ -> {Start + Each * (Id - 1), Each}
    end.

%% --- distributions ----------------------------------------------------------------------------

eighty_twenty(Fifth, Max) ->
    fun() ->
            case rand:uniform() < 0.8 of
                true -> rand:uniform(Fifth);
                false -> Fifth + rand:uniform(Max - Fifth)
            end
    end.

pareto(Mean, Shape) ->
    S = -1 / Shape,
    Scale = Mean * (Shape - 1),
    fun() -> trunc(Scale * (math:pow(1 - rand:uniform(), S) - 1)) end.

%% Mean is that of what comes on top of Min.
exponential_bin(Min, Mean, Source) ->
    fun() ->
            More = trunc(-math:log(1 - rand:uniform()) * Mean),
            slice(min(Min + More, longest(Min, Mean)), Source)
    end.

longest(Min, Mean) -> Min + ceil(?LONGEST * Mean).

%% Random bytes are made once; a value is a part of them from a random place, so that making it
%% costs little beside the operation that is measured.
source(Bytes) -> rand:bytes(2 * Bytes + 1024).

%% Half of it is text of few different lines, which compresses well.
half_text(Bytes) ->
    Lines = list_to_tuple([printable(128) || _ <- lists:seq(1, 16)]),
    Text = fun() -> [element(rand:uniform(16), Lines) || _ <- lists:seq(1, ?PIECE div 128)] end,
    iolist_to_binary([[rand:bytes(?PIECE), Text()] || _ <- lists:seq(0, Bytes div (2 * ?PIECE))]).

printable(Bytes) -> << <<(31 + rand:uniform(95))>> || _ <- lists:seq(1, Bytes) >>.

slice(Bytes, Source) ->
    binary:part(Source, rand:uniform(byte_size(Source) - Bytes + 1) - 1, Bytes).

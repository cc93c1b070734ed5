%% SPDX-License-Identifier: Apache-2.0
%% @doc What is wrong with a configuration of DE-Bench, before any node is started: unknown
%% operations, those that a carrier can not do, values of the wrong type. What holds for all loads
%% is checked by `weft_load_config'.
-module(weft_de_bench_config).

-export([problems/3]).

%% @doc Texts for the user.
-spec problems(weft_load_config:config(), weft_bench_variant:variant(),
               #{groups => pos_integer(), _ => _}) -> [string()].
problems(#{operations := Operations, duration_ms := DurationMs, pairs := Pairs}, Variant,
         Options) ->
    Names = [Operation || {_, Operation, _} <- Operations],
    Unknown = Names -- weft_de_bench_driver:operations(),
    unknown(Unknown)
        ++ [Text || Name <- Names -- Unknown, Text <- impossible(Name, Variant)]
        ++ values(Pairs)
        ++ [text("duration: infinity is not for many nodes; give minutes")
            || DurationMs =:= infinity]
        ++ [text("--groups is for --variant weft_groups")
            || is_map_key(groups, Options), Variant =/= weft_groups].

unknown([]) -> [];
unknown(Names) ->
    [text("operations: there are no ~0tp; there are ~0tp",
          [Names, weft_de_bench_driver:operations()])].

impossible(Name, Variant) ->
    case hd(string:lexemes(atom_to_list(Name), "_")) of
        "group" when Variant =/= weft_groups ->
            [text("operations: ~ts needs groups: --variant weft_groups", [Name])];
        "global" ->
            [text("operations: ~ts needs a full mesh: --variant stock_mesh or weft_mesh", [Name])
             || not weft_bench_variant:connects_all(Variant)];
        Word when Word =:= "names"; Word =:= "strong"; Word =:= "channel" ->
            [text("operations: ~ts needs weft: --variant weft_mesh, weft_groups or weft_peers",
                  [Name]) || not weft_bench_variant:is_weft(Variant)];
        _ ->
            []
    end.

values(Pairs) ->
    [text("~ts: a number, 0 or above, not ~0tp", [Key, Value])
     || Key <- [packet_size, delay_remote_function],
        Value <- proplists:get_all_values(Key, Pairs), not (is_integer(Value) andalso Value >= 0)]
        ++ [text("transitive_connection: true or false, not ~0tp", [Value])
            || Value <- proplists:get_all_values(transitive_connection, Pairs),
               not is_boolean(Value)].

text(Text) -> text(Text, []).

text(Format, Arguments) -> weft_bench_error:text(Format, Arguments).

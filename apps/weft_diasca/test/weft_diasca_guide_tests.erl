%% SPDX-License-Identifier: Apache-2.0
%% @doc All that docs/guide/simulation.md shows is done as it stands there.
-module(weft_diasca_guide_tests).

-include_lib("eunit/include/eunit.hrl").

the_guide_does_what_it_says_test_() ->
    {timeout, 60,
     {setup,
      fun() ->
          {ok, Cwd} = file:get_cwd(),
          Blocks = weft_guide:page("simulation.md", "erlang"),
          %% The code path may be relative.
          _ = application:load(weft_diasca),
          {ok, Modules} = application:get_key(weft_diasca, modules),
          ok = code:ensure_modules_loaded(Modules),
          Dir = string:trim(os:cmd("mktemp -d")),
          ok = file:set_cwd(Dir),
          {Cwd, Dir, Blocks}
      end,
      fun({Cwd, Dir, _}) ->
          ok = file:set_cwd(Cwd),
          file:del_dir_r(Dir)
      end,
      fun({_, _, Blocks}) -> ?_test(all_done(Blocks)) end}}.

all_done(Blocks) ->
    Bindings = lists:foldl(fun(Block, B) -> done(Block, B) end, erl_eval:new_bindings(), Blocks),
    ?assert(length(Blocks) >= 5),
    ?assert(lists:keymember('Cold', 1, erl_eval:bindings(Bindings))).

done("-module(" ++ _ = Module, Bindings) ->
    ?assert(length(string:split(Module, "\n", all)) =< 60),
    ok = file:write_file("cold.erl", Module),
    {ok, cold, Binary} = compile:file("cold.erl", [binary, return_errors]),
    {module, cold} = code:load_binary(cold, "cold.erl", Binary),
    Bindings;
done(Text, Bindings) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    each(Tokens, [], Bindings).

each([], [], Bindings) -> Bindings;
each([{dot, _} = Dot | Tokens], Expression, Bindings) ->
    {ok, Parsed} = erl_parse:parse_exprs(lists:reverse([Dot | Expression])),
    {value, _, Next} = erl_eval:exprs(Parsed, Bindings),
    each(Tokens, [], Next);
each([Token | Tokens], Expression, Bindings) ->
    each(Tokens, [Token | Expression], Bindings).

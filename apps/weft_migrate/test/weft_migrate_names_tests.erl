%% SPDX-License-Identifier: Apache-2.0
%% @doc A name or lock of `global', a scope of `pg' or a group of `pg2' moves with all its places,
%% or not at all: which ones stay, in programs of some files. With `partial' the same programs are
%% rewritten, so each case is about this rule.
-module(weft_migrate_names_tests).

-include_lib("eunit/include/eunit.hrl").

-define(STAYS, "global:register_name(a, P), [{global, a}].\n").

%% ---- programs in which names stay ----

%% The first file has what would be rewritten, others have what keeps it.
names_stay_test_() ->
    [{Title, fun() -> stays(Files) end} || {Title, Files} <- staying()].

staying() ->
    Moving = "f(P) -> global:register_name(a, P).\n",
    Of = fun(Name) -> "f(P) -> global:register_name(" ++ Name ++ ", P).\n" end,
    [{"that are looked up, and registered by others",
      [{"a.erl", "f() -> global:whereis_name(a), global:send(b, x).\n"}]},
     {"that are looked up beside another one that is registered",
      [{"a.erl", "f() -> global:whereis_name(b).\n"},
       {"b.erl", "g() -> gen_server:start_link({global, c}, m, [], []), [{global, c}].\n"}]},
     {"by a place of the same name in another file",
      [{"a.erl", Moving}, {"b.erl", "g() -> [{global, a}].\n"}]},
     {"by one that comes first", [{"b.erl", Moving}, {"a.erl", "g() -> [{global, a}].\n"}]},
     {"by a macro in a header", [{"a.erl", Moving}, {"b.hrl", "-define(S, {global, a}).\n"}]},
     {"by the module's name in a macro of the module",
      [{"a.erl", Of("?MODULE")}, {"b.erl", "-module(a).\n-define(S, {global, ?MODULE}).\n"}]},
     {"by a literal one, if any name would move",
      [{"a.erl", Of("P")}, {"b.erl", "g() -> [{global, a}].\n"}]},
     {"all of them, if any name would move and one stays",
      [{"a.erl", Moving ++ "g(N) -> global:send(N, x).\n"}, {"b.erl", "g() -> [{global, b}].\n"}]},
     {"with the functions for all names",
      [{"a.erl", "f() -> global:sync(), global:registered_names().\n"},
       {"b.erl", "g() -> [{global, b}].\n"}]},
     {"that wait for other nodes", [{"a.erl", Moving ++ "g() -> global:sync().\n"}]},
     {"by a name in a file that says what names mean",
      [{"a.erl", Moving}, {"b.erl", "f({global, N}) -> global:whereis_name(N).\n"
                           "g() -> global:whereis_name(a).\n"}]}]
    ++ of_macros(Moving) ++ by_that_name(Moving) ++ by_any_name(Moving).

by_that_name(Moving) ->
    [{"by that name: " ++ Text, [{"a.erl", Moving}, {"b.erl", Text}]}
        || Text <- ["-define(S, {via, global, a}).\n", "g() -> [{via, global, a}].\n",
                    "g() -> proc_lib:init_ack({via, global, a}).\n",
                    "-record(s, {name = {global, a}}).\n",
                    "-record(s, {name = {global, a} :: tuple(), x :: {global, b}}).\n",
                    "-define(G, global).\ng() -> ?G:send(a, x).\n",
                    "-define(G, global).\ng() -> [{?G, a}].\n",
                    "-define(G, global).\ng() -> gen_server:call({via, ?G, a}, x).\n",
                    "g(M) -> M:whereis_name(a).\n", "g() -> (m()):unregister_name(a).\n",
                    "g(M) -> gen_server:call({via, M, a}, x).\n",
                    "g(M) -> apply(M, whereis_name, [a]).\n",
                    "g(M) -> [{M, register_name, [a, self()]}].\n",
                    "g() -> ?REGISTRY:whereis_name(a).\n"]].

by_any_name(Moving) ->
    [{"by any name: " ++ Text, [{"a.erl", Moving}, {"b" ++ Extension, Text}]}
        || {Extension, Text} <-
               [{".erl", "g(N) -> [{global, N}].\n"}, {".erl", "g() -> [{global, ?X}].\n"},
                {".erl", "g() -> [{global, {a, 1}}].\n"}, {".erl", "g() -> [{global, x()}].\n"},
                {".erl", "g() -> [{global, ?MODULE}].\n"}, {".erl", "g() -> [{global, \"b\"}].\n"},
                {".erl", "g() -> [{global, <<\"b\">>}].\n"},
                {".erl", "g(S) -> [{global, S#s.name}].\n"},
                {".erl", "g(M) -> fun M:whereis_name/1.\n"},
                {".erl", "g(M) -> M:registered_names().\n"},
                {".erl", "g(M) -> ) M:whereis_name(b).\n"},
                {".erl", "-define(G, global).\ng() -> ) ?G:send(b, x).\n"},
                {".erl", "g(M, N) -> apply(M, send, [N, x]), [{registry, global}].\n"},
                {".erl", "g(M, N) -> M:whereis_name(b), M:send(N, x).\n"},
                {".erl", "g(F) -> global:F(a).\n"}, {".erl", "g(P) -> apply(global, send, P).\n"},
                {".erl", "g() -> fun global:send/2.\n"}, {".erl", "-import(global, [send/2]).\n"},
                {".erl", "g(F) -> M = global, M:F().\n"},
                {".erl", "g() -> ?check(global:registered_names()).\n"},
                {".erl", "g() -> ) global:send(a, b).\n"}, {".erl", "g() -> ) {global, b}.\n"},
                {".erl", "g() -> \"a\n.\n{global, b}"},
                {".ex", "def f, do: :global.send(:b, 1)\n"}, {".exs", "f({:global, :b})\n"},
                {".ex", "apply(:global, f, [])\n"}, {".ex", "x = {:via, :global, :b}\n"},
                {".ex", "  @registry :global\n"}, {".ex", "alias :global, as: Registry\n"}]].

of_macros(Moving) ->
    [{"that are macros of unknown value",
      [{"a.erl", "f(P) -> global:register_name(?MODULE, P).\n"},
       {"b.erl", "g() -> [{global, a}].\n"}]},
     {"that are macros which may be something else",
      [{"a.erl", Moving},
       {"b.erl", "-module(b).\n-ifdef(X).\n-define(S, ?MODULE).\n-else.\n-define(S, a).\n-endif.\n"
                 "g() -> [{global, ?S}].\n"}]},
     {"that are macros which are defined anew",
      [{"a.erl", Moving},
       {"b.erl", "-module(b).\n-define(S, b).\n-undef(S).\n-include(\"s.hrl\").\n"
                 "g() -> [{global, ?S}].\n"}]},
     {"by a macro that is this name",
      [{"a.erl", Moving},
       {"b.erl", "-module(a).\n-define(S, ?MODULE).\ng() -> [{global, ?S}].\n"}]},
     {"by a macro of a header that is the module",
      [{"a.erl", Moving}, {"b.erl", "g() -> ?G:send(a, x).\n"},
       {"g.hrl", "-define(G, global).\n"}]},
     {"by a macro of a header that may be the module",
      [{"a.erl", Moving}, {"b.erl", "g() -> ?G:send(a, x).\n"},
       {"g.hrl", "-ifdef(X).\n-define(G, global).\n-else.\n-define(G, syn).\n-endif.\n"}]},
     {"by a macro that is passed on",
      [{"a.erl", Moving}, {"b.erl", "-define(G, global).\ng(F, A) -> apply(?G, F, A).\n"}]},
     {"by a script",
      [{"a.erl", Moving}, {"ctl.escript", "#!/usr/bin/env escript\n%%! -sname ctl\n"
                                          "main([N]) -> rpc:call(N, global, send, [a, x]).\n"}]},
     {"by a script without an extension",
      [{"a.erl", Moving}, {"ctl", "#!/usr/local/bin/escript\n"
                                  "main([N]) -> rpc:call(N, global, send, [a, x]).\n"}]},
     {"by a macro that is kept",
      [{"a.erl", Moving}, {"b.erl", "-define(G, global).\ng(F) -> M = ?G, M:F(a).\n"}]}].

stays(Files) ->
    in_files(
      Files,
      fun(Dir) ->
              {ok, _} = weft_migrate:rewrite([Dir], #{write => true}),
              ?assertEqual(Files, read(Dir, Files)),
              {ok, _} = weft_migrate:rewrite([Dir], #{write => true, partial => true}),
              Partial = read(Dir, Files),
              ?assertNotEqual(Files, Partial),
              {ok, _} = weft_migrate:rewrite([Dir], #{write => true, partial => true}),
              ?assertEqual(Partial, read(Dir, Files))
      end).

%% ---- programs in which names move ----

names_move_test_() ->
    Text = "f(P) -> global:register_name(a, P).\n",
    [{"not held by: " ++ Beside,
      fun() ->
              ?assertMatch([{"a.erl", "f(P) -> weft_global:register_name(a, P).\n"} | _],
                           written([{"a.erl", Text}, {"b" ++ Extension, Beside}]))
      end}
     || {Extension, Beside} <-
            [{".erl", "g() -> [{global, b}].\n"}, {".erl", "g() -> ?check(global:set_lock(a)).\n"},
             {".erl", "g() -> apply(global, trans, [a, b]).\n"},
             {".erl", "g() -> fun global:del_lock/1.\n"}, {".erl", "g() -> global:info().\n"},
             {".erl", "-module(b).\ng() -> [{global, ?MODULE}].\n"},
             {".erl", "-module(b).\n-define(SERVER, ?MODULE).\ng() -> [{global, ?SERVER}].\n"},
             {".erl", "-define(name, b).\ng() -> [{global, ?name}].\n"},
             {".erl", "g() -> [{global, true}].\n"}, {".erl", "g() -> ) global:trans(a, b).\n"},
             {".erl", "g() -> ) pg:send(a, b).\n"}, {".erl", "g({global, N}) -> N.\n"},
             {".erl", "f({global, N}) -> global:whereis_name(N).\n"},
             {".ex", "def f, do: :global.trans({:b, self()}, g)\n# :global.send(:a, 1)\n"},
             {".ex", "def f, do: :pg.join(:a, self())\n"}, {".ex", "f(scope: :global)\n"},
             {".ex", "x == :global && y != :global\n"},
             {".erl", "g() -> [{via, syn, a}].\n"},
             {".erl", "f({via, M, N}) -> M:whereis_name(N).\n"},
             {".erl", "f(S) -> {via, M, N} = S, M:send(N, x), [{registry, global}].\n"},
             {".erl", "f(S) -> case S of {via, M, N} -> M:whereis_name(N) end.\n"},
             {".erl", "g(M) -> M:whereis_name(b), M:send(c, a), re:run(a, b, [global]).\n"},
             {".erl", "g(T) -> T:send(a, x), T:sync(), re:run(a, b, [global]).\n"},
             {".erl", "-define(G, syn).\ng() -> ?G:whereis_name(a), [{?G, a}, {via, ?G, a}].\n"},
             {".erl", "g() -> ?MODULE:whereis_name(a).\n"},
             {".erl", "g(M) -> M:whereis_name(a, b), M:start_link(a), [{x, global}].\n"},
             {".erl", "g(M) -> case M of {M, whereis_name, [a]} -> x end.\n"},
             {".ex", "f(global: true)\n"}]].

%% What a header says of a macro does not count where the file says otherwise.
a_macro_is_what_its_file_says_test() ->
    Beside = "-define(G, syn).\ng() -> ?G:send(a, x).\n",
    ?assertMatch([{"a.erl", "f(P) -> weft_global:register_name(a, P).\n"} | _],
                 written([{"a.erl", "f(P) -> global:register_name(a, P).\n"}, {"b.erl", Beside},
                          {"g.hrl", "-define(G, global).\n"}])).

%% ssl and other transports have a function send/2, too.
modules_that_nobody_names_are_no_places_test() ->
    in_files([{"a.erl", "f(M) -> M:get_members(a), M:whereis_name(a), M:trans({a, self()}, b), "
                       "apply(M, get_closest_pid, [a]).\n"}],
             fun(Dir) ->
                     ?assertMatch({ok, #{results := []}}, weft_migrate:rewrite([Dir], #{})),
                     ?assertMatch({ok, #{findings := []}}, weft_migrate:scan([Dir]))
             end).

a_name_by_way_of_global_moves_test() ->
    ?assertEqual([{"a.erl", "f(P) -> weft_global:register_name(a, P).\n"},
                  {"b.erl", "g() -> gen_server:call({via, weft_global, a}, x).\n"}],
                 written([{"a.erl", "f(P) -> global:register_name(a, P).\n"},
                          {"b.erl", "g() -> gen_server:call({via, global, a}, x).\n"}])),
    ?assertEqual([{"a.erl", "f() -> gen_server:start_link({via, weft_global, a}, m, [], []).\n"},
                  {"b.erl", "g() -> weft_global:whereis_name(a).\n"}],
                 written([{"a.erl", "f() -> gen_server:start_link({via, global, a}, m, [], []).\n"},
                          {"b.erl", "g() -> global:whereis_name(a).\n"}])).

names_move_together_if_nothing_stays_test() ->
    ?assertEqual([{"a.erl", "f(N) -> weft_global:whereis_name(N).\n"},
                  {"b.erl", "g() -> gen_server:start_link({via, weft_global, a}, m, [], []).\n"}],
                 written([{"a.erl", "f(N) -> global:whereis_name(N).\n"},
                          {"b.erl", "g() -> gen_server:start_link({global, a}, m, [], []).\n"}])).

old_state_machines_have_names_too_test() ->
    ?assertEqual([{"a.erl", "f() -> gen_fsm:start_link({via, weft_global, a}, m, [], []).\n"}],
                 written([{"a.erl", "f() -> gen_fsm:start_link({global, a}, m, [], []).\n"}])).

only_the_literal_name_that_stays_is_kept_test() ->
    ?assertEqual([{"a.erl", "f(P) -> weft_global:register_name(b, P), " ++ ?STAYS}],
                 written([{"a.erl", "f(P) -> global:register_name(b, P), " ++ ?STAYS}])).

%% As in basho_bench, which starts the process that OTP's pool calls. Not even with `partial'.
names_that_otp_asks_for_stay_test_() ->
    Pool = "f() -> gen_server:start({global, pool_master}, pool, [], []), pool:attach(n).\n",
    [?_assertEqual([{"a.erl", Pool ++ "g(P) -> weft_global:register_name(b, P).\n"}],
                   written([{"a.erl", Pool ++ "g(P) -> global:register_name(b, P).\n"}], Options))
     || Options <- [#{}, #{partial => true}]].

names_locks_and_scopes_are_not_concerned_by_each_other_test() ->
    ?assertEqual([{"a.erl", "f(N) -> weft_global:set_lock(N), weft_pg:join(a, N), "
                            "global:send(N, x), [{global, N}].\n"}],
                 written([{"a.erl", "f(N) -> global:set_lock(N), pg:join(a, N), "
                                    "global:send(N, x), [{global, N}].\n"}])).

other_rules_alone_look_at_no_names_test() ->
    Files = [{"a.erl", "f(N) -> pg:join(a, N), global:send(N, x), [{global, N}].\n"}],
    ?assertEqual([{"a.erl", "f(N) -> weft_pg:join(a, N), global:send(N, x), [{global, N}].\n"}],
                 written(Files, #{only => [pg]})).

%% ---- locks of global ----

locks_stay_test_() ->
    Moving = "f(N) -> global:set_lock({a, self()}, N).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.erl", Text}]) end}
     || Text <- ["g(M) -> M:del_lock({a, self()}).\n",
                 "-define(G, global).\ng(L) -> ?G:del_lock(L).\n",
                 "g(M) -> M:trans({a, self()}, f), [global].\n",
                 "g() -> ?check(global:del_lock({a, self()})).\n",
                 "g(L) -> ?check(global:del_lock(L)).\n", "g() -> fun global:trans/2.\n",
                 "g(A) -> apply(global, set_lock, A).\n", "g(F, A) -> global:F(A).\n",
                 "g() -> ) global:trans({a, self()}, f).\n"]].

locks_stay_by_elixir_test_() ->
    Moving = "f(N) -> global:set_lock({a, self()}, N).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.ex", Text}]) end}
     || Text <- [":global.trans({:b, self()}, fn -> 1 end)\n", ":global.del_lock({:a, self()})\n",
                 "apply(:global, f, [])\n", "registry = :global\n"]].

locks_move_test_() ->
    Text = "f(N) -> global:set_lock({a, self()}, N).\n",
    [{"beside: " ++ Beside,
      fun() -> ?assertMatch([{"a.erl", "f(N) -> weft_global:set_lock({a, self()}, N).\n"} | _],
                            written([{"a.erl", Text}, {"b.erl", Beside}])) end}
     || Beside <- ["g() -> ?check(global:del_lock({b, self()})).\n",
                   "g() -> ?check(global:whereis_name(a)).\n", "g(M) -> M:del_lock({b, self()}).\n",
                   "g(M) -> M:trans({a, self()}, f).\n"]].

%% ---- scopes of pg ----

%% As in MongooseIM: who starts the scope is told the name of the module.
scopes_stay_test_() ->
    Moving = "f() -> pg:join(a, b, self()).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.erl", Text}]) end}
     || Text <- ["g() -> worker_spec(pg, [a]).\n", "g() -> ?check(pg:get_members(a, b)).\n",
                 "g() -> fun pg:join/3.\n", "g() -> ) pg:join(a, b, c).\n",
                 "-define(PG, pg).\ng() -> ?PG:join(a, b, self()).\n",
                 "-define(PG, pg).\ng() -> ) ?PG:join(a, b, c).\n",
                 "g(M) -> ) M:which_local_groups(a).\n",
                 "-define(PG, pg).\ng() -> [{?PG, start_link, [a]}].\n",
                 "-define(PG, pg).\ng() -> worker_spec(?PG, [a]).\n",
                 "-define(PG, pg).\ng() -> fun ?PG:join/3.\n",
                 "g(M) -> M:get_members(a, b).\n", "g(M) -> M:which_local_groups(a).\n",
                 "g(M) -> M:join(a, b, self()), start(#{groups => pg}).\n",
                 "g(N, M) -> rpc:call(N, M, get_members, [a, b]).\n"]].

scopes_stay_by_elixir_test_() ->
    Moving = "f() -> pg:join(a, b, self()).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.ex", Text}]) end}
     || Text <- [":pg.get_members(:b, :c)\n", "%{id: :pg, start: {:pg, :start_link, [:a]}}\n",
                 "@groups :pg\n", "apply(:pg, :join, [:a, :b, self()])\n"]].

scopes_move_test_() ->
    Text = "f() -> pg:join(a, b, self()).\n",
    [{"beside: " ++ Beside,
      fun() -> ?assertMatch([{"a.erl", "f() -> weft_pg:join(a, b, self()).\n"} | _],
                            written([{"a.erl", Text}, {"b.erl", Beside}])) end}
     || Beside <- ["g() -> ?check(pg:get_members(b, b)).\n", "g() -> pg:start_link().\n",
                   "-define(PG, pg).\ng() -> ?PG:join(b, b, self()).\n",
                   "g(M) -> M:get_members(b, b), M:join(b, c).\n", "g(Q) -> Q:join(a, b, c).\n",
                   "-define(Q, q).\ng(M) -> ) M:join(a, b, c), ?Q:get_members(a, b).\n",
                   "g() -> [#{id => pg, start => {pg, start_link, [a]}}].\n",
                   "g() -> ?check(pg:which_groups()).\n"]].

%% Without an argument or written out, it is one scope. Its starts stay: weft's runs already.
the_default_scope_moves_test() ->
    ?assertEqual([{"a.erl", "f(P) -> weft_pg:join(weft_pg, g, [P]), "
                            "weft_pg:leave(weft_pg, g, P).\n"},
                  {"b.erl", "g(P) -> weft_pg:get_members(g), weft_pg:join(pg, P), "
                            "rpc:call(n, weft_pg, join, [weft_pg, g, P]).\n"},
                  {"c.erl", "h() -> pg:start_link(), pg:start(pg), pg:start_link(pg),\n"
                            "  [#{start => {pg, start_link, [pg]}}].\n"}],
                 written([{"a.erl", "f(P) -> pg:join(pg, g, [P]), pg:leave(pg, g, P).\n"},
                          {"b.erl", "g(P) -> pg:get_members(g), pg:join(pg, P), "
                                    "rpc:call(n, pg, join, [pg, g, P]).\n"},
                          {"c.erl", "h() -> pg:start_link(), pg:start(pg), pg:start_link(pg),\n"
                                    "  [#{start => {pg, start_link, [pg]}}].\n"}])).

the_default_scope_stays_test_() ->
    Moving = "f() -> pg:get_members(g).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.erl", Text}]) end}
     || Text <- ["-define(S, pg).\ng(P) -> pg:join(?S, g, [P]).\n",
                 "-define(S, pg).\ng(P) -> rpc:call(n, pg, join, [?S, g, P]).\n",
                 "g(P) -> [{pg, join, [pg, g, P]}].\n", "g(S, P) -> pg:join(S, g, P).\n"]].

%% The value of the variable may be `pg', and weft's scope has another name.
what_may_be_the_default_scope_stays_test_() ->
    Moving = "f(S, P) -> pg:join(S, g, P).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.erl", Text}]) end}
     || Text <- ["g() -> pg:which_groups(pg).\n", "g() -> pg:start_link().\n",
                 "g() -> pg:start(pg).\n", "g() -> [#{start => {pg, start_link, []}}].\n",
                 "g() -> pg:start_link(pg), pg:join(a, b, self()).\n"]].

%% As in RabbitMQ, whose headers name the scopes of its federation and its management.
a_macro_of_a_header_may_be_the_default_scope_test_() ->
    Files = fun(Scope) ->
                    [{"a.erl", "f() -> pg:start_link(), pg:get_members(g).\n"},
                     {"b.erl", "f(P) -> pg:join(?SCOPE, g, P).\n"},
                     {"s.hrl", "-define(SCOPE, " ++ Scope ++ ").\n"}]
            end,
    [fun() -> stays(Files("pg")) end, fun() -> stays(Files("scope()")) end,
     fun() -> stays(Files("shop") ++ [{"c.erl", "f(S) -> pg:which_groups(S).\n"}]) end,
     ?_assertMatch([{"a.erl", "f() -> pg:start_link(), weft_pg:get_members(g).\n"},
                    {"b.erl", "f(P) -> weft_pg:join(?SCOPE, g, P).\n"} | _],
                   written(Files("shop")))].

a_macro_of_a_header_may_be_a_scope_that_stays_test_() ->
    Header = {"s.hrl", "-define(SCOPE, shop).\n"},
    [fun() -> stays([{"a.erl", "f(P) -> pg:join(" ++ Moving ++ ", g, P).\n"},
                     {"b.erl", "g() -> ?check(pg:which_groups(" ++ Left ++ ")).\n"}, Header])
     end || {Moving, Left} <- [{"?SCOPE", "shop"}, {"shop", "?SCOPE"}]].

what_may_be_the_default_scope_has_a_reason_test_() ->
    Said = fun(Name, Place) ->
                   Staying = weft_migrate_names:stay([{scopes, Place},
                                                      {scopes, {edited, any, "g", 2}}]),
                   weft_migrate_names:decided({edit, [], []}, [{scopes, Name}], Staying)
           end,
    [[?_assertEqual({hold, "it may be the default scope, which is weft_pg with weft (f:1)"},
                    Said(any, Place))
      | [?_assertEqual({hold, "another place that may be of this scope stays with pg (g:2)"},
                       Said(Name, Place)) || Name <- [{name, pg}, other]]]
     || Place <- [{edited, {name, pg}, "f", 1}, {left, start, "f", 1}]].

%% ---- groups of pg2 ----

%% As in ejabberd, which asks for the closest process of a group.
groups_stay_test_() ->
    Moving = "f(P) -> pg2:create(a), pg2:join(a, P).\n",
    [{"by: " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.erl", Text}]) end}
     || Text <- ["g(G) -> pg2:get_closest_pid(G).\n", "g() -> pg2:get_closest_pid(a).\n",
                 "g() -> pg2:delete(a).\n", "g(G) -> pg2:delete(G).\n", "g() -> pg2:start().\n",
                 "g() -> ?check(pg2:get_members(a)).\n", "g() -> fun pg2:join/2.\n",
                 "g() -> pg2:x().\n", "g() -> ) pg2:join(a, b).\n",
                 "g(M) -> M:get_closest_pid(a).\n", "g(M) -> M:create(a), start(pg2).\n",
                 "-define(PG, pg2).\ng() -> ?PG:delete(a).\n"]]
        ++ [{"by " ++ Text, fun() -> stays([{"a.erl", Moving}, {"b.ex", Text}]) end}
            || Text <- [":pg2.create(:b)\n"]].

%% Nothing of pg2 is left: OTP has not had it since release 24.
groups_move_test_() ->
    Text = "f(P) -> ok = pg2:create(a), pg2:join(a, P).\n",
    [{"beside: " ++ Beside,
      fun() -> ?assertMatch([{"a.erl", "f(P) -> ok = begin _ = a, ok end, weft_pg:join(a, P).\n"}
                             | _],
                            written([{"a.erl", Text}, {"b.erl", Beside}])) end}
     || Beside <- ["g() -> pg2:get_closest_pid(b).\n", "g() -> pg2:delete(b).\n",
                   "g() -> ?check(pg:get_members(a)).\n", "g(G) -> pg2:get_members(G).\n",
                   "g(M) -> M:delete(a).\n"]].

a_second_run_changes_nothing_test() ->
    Files = [{"a.erl", "f(P) -> global:register_name(b, P), " ++ ?STAYS}],
    Once = written(Files),
    ?assertEqual(Once, written(Once)).

%% ---- what is said ----

%% As in RabbitMQ's suite of gen_server2: registered here, asked for in a list.
names_that_are_asked_for_in_a_list_stay_test() ->
    Text = "f(P) ->\n    global:register_name(gfoo, P),\n    global:register_name(gbaz, g()),\n"
        "    gen_server2:mcall([{N, hello} || N <-\n"
        "        [{global, gfoo}, {global, gbar}, {global, gbaz}]]).\n",
    in_files([{"a.erl", Text}],
             fun(Dir) ->
                     {ok, #{results := [#{before := Same, bytes := Same, rewritten := [],
                                          left := Left} = Result]} = Rewritten} =
                         weft_migrate:rewrite([Dir], #{}),
                     Reason = "another place of this name stays with global ("
                         ++ filename:join(Dir, "a.erl") ++ ":5)",
                     ?assertEqual([{2, Reason}, {3, Reason}],
                                  [{Line, Why} || #{line := Line, reason := Why, held := true}
                                                      <- Left]),
                     ?assertEqual(5, length(Left)),
                     ?assertMatch({match, _}, re:run(said(Rewritten), "--partial")),
                     Unheld = [Change || Change <- Left, not is_map_key(held, Change)],
                     ?assertEqual(nomatch,
                                  re:run(said(Rewritten#{results := [Result#{left := Unheld}]}),
                                         "--partial"))
             end).

said(Rewritten) -> unicode:characters_to_binary(weft_migrate_changes:report(Rewritten, false)).

the_place_that_keeps_a_name_is_said_test_() ->
    A = {name, a},
    B = {name, b},
    Edit = {edit, [], []},
    [{Title, ?_assertEqual(Expected, weft_migrate_names:decided(Edit, [{names, Name}],
                                                                stay(Places)))}
     || {Title, Name, Places, Expected} <-
            [{"nothing stays", A, [{edited, A, "f", 1}, {registered, any, "f", 2}], Edit},
             {"nobody registers it", A, [{edited, A, "f", 1}, {registered, B, "f", 2}],
              {hold, "nothing in these files registers it, so who does may stay with global"}},
             {"another name", B, [{left, A, "f", 1}], Edit},
             {"the first of its own", A,
              [{left, any, "f", 1}, {left, A, "g", 2}, {left, A, "h", 3}],
              hold("of this name stays", "g:2")},
             {"any", A, [{left, B, "f", 1}, {left, any, "g", 2}],
              hold("that may be of this name stays", "g:2")},
             {"any that would move", A, [{left, B, "f", 1}, {edited, any, "g", 2}],
              hold("that may be of this name stays", "g:2")},
             {"a literal one for any", any, [{left, B, "f", 1}, {edited, any, "g", 2}],
              hold("that may be of this name stays", "f:1")}]].

stay(Places) -> weft_migrate_names:stay([{names, Place} || Place <- Places]).

a_lock_is_no_name_test() ->
    Edit = {edit, [], []},
    ?assertEqual(Edit, weft_migrate_names:decided(Edit, [], stay([{left, any, "f", 1}]))),
    ?assertEqual(Edit, weft_migrate_names:decided(Edit, [{locks, any}],
                                                  stay([{left, any, "f", 1}]))).

hold(What, At) ->
    {hold, lists:append(["another place ", What, " with global (", At, ")"])}.

what_is_left_anyway_keeps_its_reason_test() ->
    Staying = stay([{left, any, "f", 1}]),
    [?assertEqual(Answer, weft_migrate_names:decided(Answer, [{names, any}], Staying))
     || Answer <- [none, {leave, "why"}]].

a_file_that_cannot_be_read_keeps_all_names_test() ->
    Files = [{"a.erl", "f(P) -> global:register_name(a, P).\n"}],
    in_files(Files,
             fun(Dir) ->
                     ok = file:make_symlink("b.erl", filename:join(Dir, "b.erl")),
                     Paths = [filename:join(Dir, "a.erl"), Dir],
                     {ok, #{failed := [_]}} = weft_migrate:rewrite(Paths, #{write => true}),
                     ?assertEqual(Files, read(Dir, Files))
             end).

%% Two adaptors want to change the same bytes of b.erl.
a_file_that_is_refused_keeps_its_names_test() ->
    Files = [{"a.erl", "f(P) -> global:register_name(a, P), global:register_name(b, P).\n"},
             {"b.erl", "f() -> global:send(a, x), old:join(g, self()).\n"}],
    Adaptors = [{"adaptor" ++ New, "-module(a).\n-migrates(old).\njoin(G, P) -> " ++ New
                 ++ ":join(G, P).\n"} || New <- ["mine", "yours"]],
    in_files(Adaptors ++ Files,
             fun(Dir) ->
                     Options = #{adaptors => [filename:join(Dir, File) || {File, _} <- Adaptors],
                                 write => true},
                     {ok, #{failed := [{_, "two rules" ++ _}]}} =
                         weft_migrate:rewrite([Dir], Options),
                     ?assertEqual([{"a.erl", "f(P) -> global:register_name(a, P), "
                                             "weft_global:register_name(b, P).\n"},
                                   lists:last(Files)],
                                  read(Dir, Files))
             end).

%% ---- files ----

written(Files) -> written(Files, #{}).

written(Files, Options) ->
    in_files(Files, fun(Dir) ->
                            {ok, #{failed := []}} =
                                weft_migrate:rewrite([Dir], Options#{write => true}),
                            read(Dir, Files)
                    end).

in_files(Files, Fun) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    [ok = file:write_file(filename:join(Dir, Name), Text) || {Name, Text} <- Files],
    try Fun(Dir) after file:del_dir_r(Dir) end.

read(Dir, Files) ->
    [begin
         {ok, Bytes} = file:read_file(filename:join(Dir, Name)),
         {Name, binary_to_list(Bytes)}
     end || {Name, _} <- Files].

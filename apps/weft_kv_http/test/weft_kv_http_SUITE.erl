%% SPDX-License-Identifier: Apache-2.0
%% @doc The store by HTTP as its clients have it: a node, and requests over TCP. The commands of the
%% guide are run as they are written there.
-module(weft_kv_http_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([the_guide/1, bytes_and_types_are_kept/1, conditions/1,
         conditions_that_would_not_hold/1, strong_buckets/1,
         siblings_are_shown/1, siblings_are_bounded/1, what_is_over_is_replaced/1,
         long_contexts/1, long_requests_are_answered/1, lists/1, mistakes_have_answers/1,
         hostile_requests_are_refused/1, token_is_needed/1, limits_hold/1,
         one_too_many_is_told/1, wrong_configurations_are_refused/1, stopped_store/1]).

-define(BODY_MS, 1500).
%% The limit of the store, where none is given.
-define(REQUESTS_MAX, 10000).

suite() -> [{timetrap, {minutes, 2}}].

%% The last one stops the store.
all() ->
    [the_guide, bytes_and_types_are_kept, conditions, conditions_that_would_not_hold,
     strong_buckets, siblings_are_shown, siblings_are_bounded, what_is_over_is_replaced,
     long_contexts, long_requests_are_answered, lists, mistakes_have_answers,
     hostile_requests_are_refused, token_is_needed, limits_hold, one_too_many_is_told,
     wrong_configurations_are_refused, stopped_store].

init_per_suite(Config0) ->
    Config = weft_test_nodes:begin_suite(Config0),
    Libraries = [filename:dirname(code:which(Module))
                 || Module <- [cowboy, ranch, cow_http_hd, weft_ring, weft_kv, weft_json,
                               weft_http_host, weft_kv_http_app]],
    Args = lists:append([["-pa", filename:absname(Dir)] || Dir <- Libraries]),
    %% Cases start the listener again.
    Port = weft_test_nodes:free_port(),
    Ref = weft_test_nodes:start(kv_http, #{args => Args}, ?config(place, Config)),
    [ok = call(Ref, application, set_env, [Application, Key, Value])
     || {Application, Key, Value} <-
            [{weft_ring, dir, filename:join(?config(priv_dir, Config), "ring")},
             {weft_ring, partitions, 8}, {weft_ring, vnodes, [weft_kv_vnode]},
             {weft_kv, buckets, #{carts => #{n => 1},
                                  pages => #{n => 1, siblings => false, evict => true,
                                             value_max => 1000}}},
             {weft_kv_http, port, Port}, {weft_kv_http, body_ms, ?BODY_MS}]],
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv_http]),
    ok = call(Ref, weft_ring, create, []),
    Port = call(Ref, weft_kv_http_listener, port, []),
    [{ref, Ref}, {port, Port} | Config].

end_per_suite(Config) -> weft_test_nodes:end_suite(Config).

%% --- cases ------------------------------------------------------------------------------------

%% Each line that begins with a dollar is a command, and what follows is what it prints.
the_guide(Config) ->
    case os:find_executable("curl") of
        false -> {skip, "no curl"};
        _ -> as_the_guide_says(Config)
    end.

as_the_guide_says(Config) ->
    {ok, Guide} = file:read_file(guide(filename:dirname(code:which(?MODULE)))),
    {match, Commands} = re:run(Guide, "^\\$ (curl .*)\\n((?:[^$`].*\\n)*)",
                               [multiline, global, {capture, [1, 2], list}]),
    ?assert(length(Commands) >= 8),
    Port = integer_to_list(?config(port, Config)),
    lists:foreach(fun([Command, Expected]) ->
                          Said = os:cmd(lists:flatten(string:replace(Command, "9480", Port))),
                          ?assertMatch({Command, Said, {match, _}},
                                       {Command, Said, re:run(Said, pattern(Expected))})
                  end, Commands).

%% Three dots in the guide stand for anything.
pattern(Expected) ->
    Quoted = re:replace(string:trim(Expected), "[][{}()*+?.\\\\^$|]", "\\\\&",
                        [global, {return, list}]),
    "^\\s*" ++ lists:flatten(string:replace(Quoted, "\\.\\.\\.", ".*", all)) ++ "\\s*$".

bytes_and_types_are_kept(Config) ->
    Bytes = list_to_binary(lists:seq(0, 255)),
    [begin
         Path = "/buckets/pages/keys/" ++ Key,
         {204, _, <<>>} = put(Path, [{"content-type", "image/x-any; a=\"b\""}], Bytes, Config),
         ?assertMatch({200, #{"content-type" := "image/x-any; a=\"b\"",
                              "x-content-type-options" := "nosniff"}, Bytes}, get(Path, Config)),
         ?assertMatch({200, _, <<>>}, request(head, Path, [], Config))
     end || Key <- ["plain", "a%2Fb", "%00%FF", "%2E%2E", "caf%C3%A9",
                lists:append(lists:duplicate(4096, "%FE"))]],
    ?assertEqual({ok, Bytes}, element_of(call(?config(ref, Config), weft_kv, get,
                                              [pages, <<"a/b">>]))).

element_of({ok, Value, _Context}) -> {ok, Value}.

conditions(Config) ->
    Path = "/buckets/carts/keys/conditions",
    {201, #{"etag" := First}, _} = put(Path, [{"if-none-match", "*"}], <<"1">>, Config),
    {412, _, _} = put(Path, [{"if-none-match", "*"}], <<"2">>, Config),
    {428, _, _} = put(Path, [], <<"2">>, Config),
    {200, #{"etag" := First}, <<"1">>} = get(Path, Config),
    {304, #{"etag" := First}, <<>>} = request(get, Path, [{"if-none-match", First}], Config),
    {304, _, <<>>} = request(get, Path, [{"if-none-match", "\"x\", W/" ++ First}], Config),
    {204, #{"etag" := Second}, _} = put(Path, [{"if-match", First}], <<"2">>, Config),
    ?assertNotEqual(First, Second),
    {412, _, _} = put(Path, [{"if-match", First}], <<"3">>, Config),
    {412, _, _} = put(Path, [{"if-match", "W/" ++ Second}], <<"3">>, Config),
    {412, _, _} = request(delete, Path, [{"if-match", First}], Config),
    {200, _, <<"2">>} = request(get, Path, [{"if-none-match", First}], Config),
    {204, _, _} = put(Path, [{"if-match", "*"}], <<"3">>, Config),
    {204, _, _} = request(delete, Path, [], Config),
    {404, _, _} = get(Path, Config),
    {404, _, _} = request(delete, Path, [], Config),
    {412, _, _} = put(Path, [{"if-match", "*"}], <<"4">>, Config).

%% Where the later of two values stays, whatever its writer has seen.
conditions_that_would_not_hold(Config) ->
    Path = "/buckets/pages/keys/conditions",
    {204, _, _} = put(Path, [], <<"1">>, Config),
    {200, #{"etag" := Tag}, <<"1">>} = get(Path, Config),
    [?assertMatch({Header, 400, {ok, #{<<"error">> := <<"no_conditions">>}}},
                  {Header, Status, weft_json:decode(Json)})
     || Header <- [{"if-match", Tag}, {"if-match", "*"}, {"if-match", "\"other\""},
                   {"if-none-match", "*"}],
        {Status, _, Json} <- [put(Path, [Header], <<"2">>, Config),
                              request(delete, Path, [Header], Config)]],
    {304, _, <<>>} = request(get, Path, [{"if-none-match", Tag}], Config),
    {200, _, <<"1">>} = request(get, Path, [{"if-match", Tag}], Config),
    {204, _, _} = put(Path, [], <<"2">>, Config),
    {204, _, _} = request(delete, Path, [], Config),
    {404, _, _} = get(Path, Config).

%% The ETag is one of the value, and a condition holds when the write takes effect.
strong_buckets(Config) ->
    Ref = ?config(ref, Config),
    {ok, Buckets} = call(Ref, application, get_env, [weft_kv, buckets]),
    Strong = #{consistency => strong, voters => [weft_test_nodes:name(Ref)], n => 1,
               partitions => 1, dir => filename:join(?config(priv_dir, Config), "strong")},
    ok = call(Ref, application, stop, [weft_kv_http]),
    ok = call(Ref, application, stop, [weft_kv]),
    ok = call(Ref, application, set_env, [weft_kv, buckets, Buckets#{accounts => Strong}]),
    {ok, _} = call(Ref, application, ensure_all_started, [weft_kv_http]),
    Again = lists:keystore(port, 1, Config, {port, call(Ref, weft_kv_http_listener, port, [])}),
    strong_conditions("/buckets/accounts/keys/ann", Again),
    strong_conflicts("/buckets/accounts/keys/ben", Again),
    ok = restarted(Ref, {port, ?config(port, Config)}).

strong_conditions(Path, Config) ->
    weft_test_nodes:until(fun() -> element(1, get(Path, Config)) =:= 404 end),
    {201, #{"etag" := First}, _} = put(Path, [{"if-none-match", "*"}], <<"1">>, Config),
    {412, _, _} = put(Path, [{"if-none-match", "*"}], <<"2">>, Config),
    {200, #{"etag" := First, "weft-context" := ""}, <<"1">>} = get(Path, Config),
    {204, #{"etag" := Second}, _} = put(Path, [{"if-match", First}, {"weft-context", ""}],
                                        <<"2">>, Config),
    {412, _, _} = put(Path, [{"if-match", First}], <<"3">>, Config),
    {412, _, _} = request(delete, Path, [{"if-match", First}], Config),
    {200, #{"etag" := Second}, <<"2">>} = get(Path, Config),
    {204, _, _} = request(delete, Path, [{"if-match", Second}], Config),
    {404, _, _} = get(Path, Config),
    {404, _, _} = request(delete, Path, [], Config),
    {400, _, _} = get("/buckets/accounts/keys", Config).

%% A value that came in between is no reason to refuse what it does not contradict.
strong_conflicts(Path, Config) ->
    At = fun(Requests) ->
             Asked = [spawn_monitor(fun() -> exit({status, element(1, Request())}) end)
                      || Request <- Requests],
             [receive {'DOWN', Ref, process, _, {status, Status}} -> Status end
              || {_, Ref} <- Asked]
         end,
    Put = fun(Headers) -> fun() -> put(Path, Headers, unique(), Config) end end,
    Delete = fun() -> request(delete, Path, [], Config) end,
    Once = At(lists:duplicate(6, Put([{"if-none-match", "*"}]))),
    ?assertEqual([201, 412, 412, 412, 412, 412], lists:sort(Once)),
    [?assertEqual([204], lists:usort(At(lists:duplicate(6, Put(Headers)))))
     || Headers <- [[], [{"if-match", "*"}], [{"if-none-match", "\"other\""}]],
        _ <- lists:seq(1, 5)],
    [begin
         {204, _, _} = put(Path, [], <<"1">>, Config),
         Statuses = At(lists:append(lists:duplicate(3, [Put([]), Delete]))),
         ?assertEqual([], Statuses -- (lists:duplicate(6, 204) ++ lists:duplicate(3, 404)))
     end || _ <- lists:seq(1, 5)].

unique() -> integer_to_binary(erlang:unique_integer([positive])).

%% Nothing is lost of two writes with the same context, and both go with a third one.
siblings_are_shown(Config) ->
    Path = "/buckets/carts/keys/siblings",
    {201, #{"weft-context" := Context}, _} = put(Path, [], <<"0">>, Config),
    [{204, _, _}, {204, #{"etag" := Own}, _}] =
        [put(Path, [{"weft-context", Context}], Value, Config) || Value <- [<<"one">>, <<255>>]],
    {300, #{"weft-context" := Both, "etag" := Tag}, Json} = get(Path, Config),
    {ok, #{<<"siblings">> := Siblings}} = weft_json:decode(Json),
    ?assertMatch([#{<<"value">> := <<"one">>}], [S || #{<<"value">> := _} = S <- Siblings]),
    ?assertMatch([#{<<"value_base64">> := <<"/w==">>}], Siblings -- [S || #{<<"value">> := _} = S
                                                                             <- Siblings]),
    {304, _, _} = request(get, Path, [{"if-none-match", Tag}], Config),
    %% Who has put the second one has not seen the first one.
    {412, _, _} = put(Path, [{"if-match", Own}], <<"two">>, Config),
    {204, #{"etag" := Two}, _} =
        put(Path, [{"weft-context", Both}, {"if-match", Tag}], <<"two">>, Config),
    {200, #{"etag" := Two}, <<"two">>} = get(Path, Config).

%% Each of these has seen the first one only.
siblings_are_bounded(Config) ->
    Path = "/buckets/carts/keys/bounded",
    {201, #{"weft-context" := Context}, _} = put(Path, [], <<"0">>, Config),
    Put = fun(N) -> put(Path, [{"weft-context", Context}], integer_to_binary(N), Config) end,
    [{204, _, _} = Put(N) || N <- lists:seq(1, 100)],
    {409, _, Json} = Put(101),
    ?assertMatch({ok, #{<<"error">> := <<"too_many_siblings">>}}, weft_json:decode(Json)),
    {300, #{"weft-context" := All}, _} = get(Path, Config),
    {204, _, _} = put(Path, [{"weft-context", All}], <<"all">>, Config),
    {200, _, <<"all">>} = get(Path, Config).

%% Nobody has seen that, so nobody could say that it is replaced.
what_is_over_is_replaced(Config) ->
    Path = "/buckets/carts/keys/over",
    Written = [begin
                   {Status, _, _} = put(Path ++ "?ttl_ms=1", [], integer_to_binary(N), Config),
                   weft_test_nodes:until(fun() -> element(1, get(Path, Config)) =:= 404 end),
                   Status
               end || N <- lists:seq(1, 101)],
    ?assertEqual([201], lists:usort(Written)),
    {201, _, _} = put(Path, [{"if-none-match", "*"}], <<"here">>, Config),
    {200, _, <<"here">>} = get(Path, Config).

%% Many processes have written the key.
long_contexts(Config) ->
    Path = "/buckets/carts/keys/long",
    Known = maps:from_list([{<<"node@host/1/", (integer_to_binary(N))/binary>>, N}
                            || N <- lists:seq(1, 500)]),
    Context = call(?config(ref, Config), weft_kv_object, context,
                   [{carts, <<"long">>}, {Known, #{}}]),
    Text = binary_to_list(call(?config(ref, Config), weft_octets, base64url, [Context])),
    ?assert(length(Text) > 16384),
    {204, #{"weft-context" := Longer}, _} = put(Path, [{"weft-context", Text}], <<"1">>, Config),
    {204, _, _} = put(Path, [{"weft-context", Longer}], <<"2">>, Config),
    {200, _, <<"2">>} = get(Path, Config).

%% Its client sends nothing meanwhile. It waits for a partition that stands still.
long_requests_are_answered(Config) ->
    Ref = ?config(ref, Config),
    {201, _, _} = put("/buckets/carts/keys/slow", [], <<"1">>, Config),
    {ok, Partition} = call(Ref, weft_ring, partition, [{<<"carts">>, <<"slow">>}]),
    {ok, Name} = call(Ref, weft_vnode_names, name, [weft_kv_vnode, Partition]),
    ok = call(Ref, sys, suspend, [Name]),
    {503, _, Json} = get("/buckets/carts/keys/slow?timeout_ms=31000", Config),
    ok = call(Ref, sys, resume, [Name]),
    ?assertMatch({ok, #{<<"error">> := <<"timeout">>}}, weft_json:decode(Json)),
    {200, _, <<"1">>} = get("/buckets/carts/keys/slow", Config).

lists(Config) ->
    Keys = [lists:concat(["list", N]) || N <- lists:seq(1, 25)],
    [{_, _, _} = put("/buckets/pages/keys/" ++ Key, [], <<"v">>, Config) || Key <- Keys],
    Found = listed("/buckets/pages/keys?limit=7", "", Config),
    ?assertEqual(length(Found), length(lists:usort(Found))),
    ?assertEqual([], [list_to_binary(Key) || Key <- Keys] -- Found).

listed(Path, After, Config) ->
    {200, _, Json} = get(Path ++ After, Config),
    {ok, #{<<"keys">> := Keys, <<"next">> := Next}} = weft_json:decode(Json),
    ?assert(length(Keys) =< 7),
    Keys ++ case Next of
                null -> [];
                _ -> listed(Path, "&after=" ++ binary_to_list(Next), Config)
            end.

mistakes_have_answers(Config) ->
    [begin
         {Status, #{"content-type" := "application/json"}, Json} = get(Path, Config),
         {ok, Said} = weft_json:decode(Json),
         ?assertMatch({Path, #{<<"error">> := Word, <<"message">> := _, <<"where">> := _,
                               <<"do">> := _}}, {Path, Said}),
         ?assertEqual({Path, Expected}, {Path, Status})
     end || {Path, Expected, Word} <-
                [{"/", 404, <<"no_path">>}, {"/buckets/cards", 404, <<"unknown_bucket">>},
                 {"/buckets/carts/keys/a/b", 404, <<"no_path">>},
                 {"/buckets/carts/keys/", 400, <<"bad_key">>},
                 {"/buckets/carts/keys/%zz", 400, <<"bad_path">>},
                 {"/buckets/carts/keys/" ++ lists:duplicate(4097, $k), 400, <<"bad_key">>},
                 {"/buckets/carts/keys/k?r=9", 400, <<"bad_option">>},
                 {"/buckets/carts/keys/k?r=x", 400, <<"bad_query">>},
                 {"/buckets/carts/keys/k?x=1", 400, <<"bad_query">>},
                 {"/buckets/carts/keys?after=AAAA", 400, <<"bad_cursor">>},
                 {"/buckets/carts/keys?limit=1001", 400, <<"bad_query">>}]],
    {400, _, _} = put("/buckets/carts/keys/k", [{"weft-context", "AAAA"}], <<"v">>, Config),
    {_, #{"weft-context" := Other}, _} = put("/buckets/carts/keys/other", [], <<"v">>, Config),
    {400, _, _} = put("/buckets/carts/keys/k", [{"weft-context", Other}], <<"v">>, Config),
    {400, _, _} = put("/buckets/carts/keys/k", [{"if-match", "?"}], <<"v">>, Config),
    {405, #{"allow" := "GET, HEAD, PUT, DELETE"}, _} =
        request(options, "/buckets/carts/keys/k", [], Config),
    {405, _, _} = request(delete, "/buckets/carts", [], Config).

hostile_requests_are_refused(Config) ->
    Path = "/buckets/carts/keys/k",
    [?assertMatch({Headers, {403, _, _}}, {Headers, request(get, Path, Headers, Config)})
     || Headers <- [[{"host", "evil.example"}], [{"origin", "http://evil.example"}],
                    [{"origin", "null"}], [{"sec-fetch-site", "cross-site"}],
                    [{"sec-fetch-site", "same-site"}]]],
    Own = "http://127.0.0.1:" ++ integer_to_list(?config(port, Config)),
    ?assertMatch({404, _, _}, request(get, Path, [{"origin", Own}], Config)),
    Before = call(?config(ref, Config), erlang, system_info, [atom_count]),
    [{404, _, _} = get(lists:concat(["/buckets/made_up_", N, "/keys/k"]), Config)
     || N <- lists:seq(1, 50)],
    ?assert(call(?config(ref, Config), erlang, system_info, [atom_count]) < Before + 40),
    [?assertMatch({_, {match, _}},
                  {Text, re:run(raw(Text, Config), "^(HTTP/1.1 4[0-9][0-9] |$)")})
     || Text <- ["nonsense\r\n\r\n", "GET /buckets HTTP/1.1\r\n\r\n",
                 "GET http:// HTTP/1.1\r\nhost: localhost\r\n\r\n",
                 "PUT " ++ Path ++ " HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n"]].

token_is_needed(Config) ->
    Ref = ?config(ref, Config),
    ok = restarted(Ref, {token, "sixteen-letters-."}),
    Again = lists:keystore(port, 1, Config, {port, call(Ref, weft_kv_http_listener, port, [])}),
    Bearer = fun(Token) -> [{"authorization", "Bearer " ++ Token}] end,
    {401, #{"www-authenticate" := "Bearer"}, _} = get("/buckets", Again),
    {401, _, _} = request(get, "/buckets", Bearer("sixteen-letters-,"), Again),
    {200, _, _} = request(get, "/buckets", Bearer("sixteen-letters-."), Again),
    ok = restarted(Ref, {token, none}),
    ok = restarted(Ref, {port, none}),
    {error, econnrefused} = gen_tcp:connect("127.0.0.1", ?config(port, Again), []),
    ok = restarted(Ref, {port, ?config(port, Config)}).

restarted(Ref, {Key, Value}) ->
    ok = call(Ref, application, stop, [weft_kv_http]),
    ok = call(Ref, application, set_env, [weft_kv_http, Key, Value]),
    call(Ref, application, start, [weft_kv_http]).

limits_hold(Config) ->
    Path = "/buckets/pages/keys/large",
    {204, _, _} = put(Path, [], binary:copy(<<"x">>, 1000), Config),
    {413, _, _} = put(Path, [], binary:copy(<<"x">>, 1001), Config),
    Head = "PUT " ++ Path ++ " HTTP/1.1\r\nhost: localhost\r\n",
    %% Nobody said how long it is.
    Chunk = "200\r\n" ++ lists:duplicate(512, $x) ++ "\r\n",
    ?assertMatch("HTTP/1.1 413" ++ _, raw([Head, "transfer-encoding: chunked\r\n\r\n",
                                           Chunk, Chunk, "0\r\n\r\n"], Config)),
    ?assertMatch("HTTP/1.1 408" ++ _, raw([Head, "content-length: 10\r\n\r\nxxx"], Config)),
    Ref = ?config(ref, Config),
    ok = call(Ref, code, add_pathsz, [[filename:dirname(code:which(Module))
                                       || Module <- [weft_kv_test_requests, weft_test_nodes]]]),
    Occupied = call(Ref, weft_kv_test_requests, occupied, [?REQUESTS_MAX]),
    {503, #{"retry-after" := "1"}, _} = get(Path, Config),
    ok = call(Ref, weft_kv_test_requests, freed, [Occupied]),
    {200, _, _} = get(Path, Config).

%% Two requests whose values do not come have all the room, until they end: by themselves, or
%% because their clients are gone.
one_too_many_is_told(Config) ->
    Ref = ?config(ref, Config),
    %% Long enough to be seen on a busy machine.
    ok = call(Ref, application, set_env, [weft_kv_http, body_ms, 5000]),
    ok = restarted(Ref, {connections_max, 2}),
    Path = "/buckets/pages/keys/k",
    lists:foreach(fun(IsClosed) ->
                      Sockets = [slow(Path, Config), slow(Path, Config)],
                      Answer = fun() -> get(Path, Config) end,
                      {503, #{"retry-after" := "1", "connection" := "close"}, Json} = Answer(),
                      ?assertMatch({ok, #{<<"error">> := <<"busy">>}}, weft_json:decode(Json)),
                      [ok = gen_tcp:close(Socket) || Socket <- Sockets, IsClosed],
                      weft_test_nodes:until(fun() -> element(1, Answer()) =:= 404 end),
                      [ok = gen_tcp:close(Socket) || Socket <- Sockets, not IsClosed]
                  end, [true, false]),
    ok = call(Ref, application, set_env, [weft_kv_http, body_ms, ?BODY_MS]),
    ok = restarted(Ref, {connections_max, 256}).

%% The one that is asked for its value was let in. For a moment others may be counted that are over.
slow(Path, Config) ->
    {ok, Socket} = connected(Config),
    ok = gen_tcp:send(Socket, ["PUT ", Path, " HTTP/1.1\r\nhost: localhost\r\n",
                               "content-length: 10\r\nexpect: 100-continue\r\n\r\n"]),
    case gen_tcp:recv(Socket, 0, 20000) of
        {ok, <<"HTTP/1.1 100 ", _/binary>>} ->
            ok = gen_tcp:send(Socket, "xxx"),
            Socket;
        {ok, <<"HTTP/1.1 503 ", _/binary>>} ->
            ok = gen_tcp:close(Socket),
            slow(Path, Config)
    end.

wrong_configurations_are_refused(_Config) ->
    [?assertMatch({_, {error, _}, {match, _}},
                  {Env, weft_kv_http_config:parse(Env),
                   re:run(element(2, weft_kv_http_config:parse(Env)), Said)})
     || {Env, Said} <- [{[{port, 70000}], "port is 70000: make it"},
                        {[{ip, {0, 0, 0, 0}}], "0.0.0.0 without a token"},
                        {[{token, "short"}], "too short"}, {[{hosts, ["a b"]}], "list of names"},
                        {[{hosts, ["a" | b]}], "list of names"},
                        {[{body_ms, 0}], "at least 1"}, {[{prt, 1}], "prt is unknown"}]].

stopped_store(Config) ->
    ok = call(?config(ref, Config), application, stop, [weft_kv]),
    {503, #{"retry-after" := "5"}, Json} = get("/buckets/carts/keys/k", Config),
    ?assertMatch({ok, #{<<"error">> := <<"not_running">>}}, weft_json:decode(Json)).

%% --- requests ---------------------------------------------------------------------------------

get(Path, Config) -> request(get, Path, [], Config).

put(Path, Headers, Body, Config) -> request(put, Path, Headers, Body, Config).

request(Method, Path, Headers, Config) -> request(Method, Path, Headers, none, Config).

request(Method, Path, Headers, Body, Config) ->
    {ok, Socket} = connected(Config),
    Length = case Body of
                 none -> [];
                 _ -> ["content-length: ", integer_to_list(byte_size(Body)), "\r\n"]
             end,
    Host = case lists:keymember("host", 1, Headers) of
               true -> [];
               false -> ["host: 127.0.0.1:", integer_to_list(?config(port, Config)), "\r\n"]
           end,
    ok = gen_tcp:send(Socket, [string:uppercase(atom_to_list(Method)), " ", Path, " HTTP/1.1\r\n",
                               Host, Length, "connection: close\r\n",
                               [[Name, ": ", Value, "\r\n"] || {Name, Value} <- Headers], "\r\n",
                               [Body || Body =/= none]]),
    parsed(received(Socket, <<>>)).

connected(Config) ->
    gen_tcp:connect("127.0.0.1", ?config(port, Config), [binary, {active, false}]).

raw(Text, Config) ->
    {ok, Socket} = connected(Config),
    ok = gen_tcp:send(Socket, Text),
    {ok, Bytes} = case gen_tcp:recv(Socket, 0, 10000) of
                      {error, closed} -> {ok, <<>>};
                      Received -> Received
                  end,
    ok = gen_tcp:close(Socket),
    binary_to_list(Bytes).

received(Socket, Bytes) ->
    case gen_tcp:recv(Socket, 0, 60000) of
        {ok, More} -> received(Socket, <<Bytes/binary, More/binary>>);
        {error, closed} -> Bytes
    end.

parsed(Bytes) ->
    [Head, Body] = binary:split(Bytes, <<"\r\n\r\n">>),
    [<<"HTTP/1.1 ", Status:3/binary, _/binary>> | Lines] = binary:split(Head, <<"\r\n">>, [global]),
    Headers = [list_to_tuple(string:split(binary_to_list(Line), ": ")) || Line <- Lines],
    {binary_to_integer(Status), maps:from_list(Headers), Body}.

call(Ref, Module, Function, Arguments) ->
    weft_test_nodes:call(Ref, Module, Function, Arguments, 20000).

guide(Dir) ->
    File = filename:join(Dir, "docs/guide/kv_http.md"),
    case filelib:is_regular(File) of
        true -> File;
        false when Dir =/= "/" -> guide(filename:dirname(Dir))
    end.

%% SPDX-License-Identifier: Apache-2.0
%% @doc Files that documents show: configurations and others of Erlang terms, arguments of the VM,
%% and Elixir. What reads such a file has to accept it.
-module(weft_snippets_terms).

-export([config/2, terms/2, args/1, run_conf/1, elixir/1]).

%% @doc A sys.config, one entry of it, or keys of one application (weft's own, if none is named).
-spec config(string(), App :: [string()]) -> [string()].
config(Text, Of) ->
    case terms_of(Text) of
        {ok, [Config]} when is_list(Config), Of =:= [] ->
            lists:append([accepted(App, Environment) || {App, Environment} <- Config]);
        {ok, [{_, [{_, _} | _]} = Entry]} when Of =:= [] ->
            accepted(element(1, Entry), element(2, Entry));
        {ok, Keys} ->
            App = list_to_atom(hd(Of ++ ["weft"])),
            lists:append([accepted(App, [Key]) || Key <- Keys]);
        {error, Reason} ->
            [Reason]
    end.

accepted(App, Environment) ->
    case check(App, Environment) of
        ok -> [];
        {ok, _} -> [];
        {error, Reason} -> [io_lib:format("~ts: ~0tp", [App, Reason])]
    end.

check(weft, Environment) -> weft_config:check(Environment);
check(weft_crdt, Environment) -> weft_crdt_app:config(Environment);
check(weft_dashboard, Environment) -> weft_dashboard_config:parse(Environment);
check(weft_kv, Environment) -> weft_kv_app:config(Environment);
check(weft_kv_http, Environment) -> weft_kv_http_config:parse(Environment);
check(weft_ops, Environment) -> weft_ops_config:parse(Environment);
check(weft_ring, Environment) -> weft_ring_app:config(Environment);
check(weft_chaos, [{enabled, Enabled}]) when is_boolean(Enabled) -> ok;
check(_Other, Environment) -> {error, {nothing_checks_it, Environment}}.

%% @doc A file of terms, each with a dot.
-spec terms(string(), What :: string()) -> [string()].
terms(Text, What) ->
    case terms_of(Text) of
        {ok, Terms} ->
            case read(What, Terms, Text) of
                {ok, _} -> [];
                {error, Reason} -> [io_lib:format("~ts: ~tp", [What, Reason])]
            end;
        {error, Reason} ->
            [Reason]
    end.

read("cluster", Terms, _) ->
    case weft_local_spec:of_file(Terms) of
        {ok, Input} -> weft_local_spec:new(Input);
        Error -> Error
    end;
read("deploy", Terms, _) -> weft_deploy_spec:new(Terms);
%% What a deployment may say beside its families.
read("hosts", Terms, _) -> weft_deploy_spec:new([{name, x}, {family, a, #{count => 1}} | Terms]);
read("load", _, Text) -> in_a_file(Text, fun weft_load_config:read/1);
read("de_bench", _, Text) ->
    in_a_file(Text, fun(File) -> weft_load_config:read(File, [{driver, weft_de_bench_driver},
                                                              {mode, max}]) end);
read("app", [{application, _, [_ | _]}] = App, _) -> {ok, App};
read("rebar", [{deps, _} | _] = Config, _) -> {ok, Config};
read(_, Terms, _) -> {error, {nothing_reads_it, Terms}}.

%% Terms with and without dots: each ends where the next one begins.
terms_of(Text) ->
    case erl_scan:string(Text) of
        {ok, Tokens, _} -> parsed(split(Tokens, 0, []), []);
        {error, {_, Module, Reason}, _} -> {error, Module:format_error(Reason)}
    end.

parsed([], Terms) -> {ok, lists:reverse(Terms)};
parsed([Tokens | Rest], Terms) ->
    case erl_parse:parse_term(Tokens ++ [{dot, 1}]) of
        {ok, Term} -> parsed(Rest, [Term | Terms]);
        {error, {Line, Module, Reason}} ->
            {error, io_lib:format("line ~0p: ~ts", [Line, Module:format_error(Reason)])}
    end.

split([], 0, []) -> [];
split([], _, Tokens) -> [lists:reverse(Tokens)];
split([{dot, _} | Rest], 0, []) -> split(Rest, 0, []);
split([{Close, _} = Token | Rest], 1, Tokens) when Close =:= '}'; Close =:= ']' ->
    [lists:reverse([Token | Tokens]) | split(Rest, 0, [])];
split([Token | Rest], Depth, Tokens) ->
    split(Rest, Depth + deeper(element(1, Token)), [Token | Tokens]).

deeper(Open) when Open =:= '{'; Open =:= '['; Open =:= '<<'; Open =:= '(' -> 1;
deeper(Close) when Close =:= '}'; Close =:= ']'; Close =:= '>>'; Close =:= ')' -> -1;
deeper(_) -> 0.

%% @doc A vm.args: an option in each line, and the carrier is one that there is.
-spec args(string()) -> [string()].
args(Text) ->
    Lines = [Line || Line <- string:lexemes(Text, "\n"), string:trim(Line) =/= ""],
    [["no option: ", Line] || [Sign | _] = Line <- Lines, not lists:member(Sign, "-+#")]
        ++ [["no such module: ", Module ++ Ending]
            || Line <- Lines, {Option, Ending} <- [{"-proto_dist", "_dist"}, {"-epmd_module", ""}],
               [Given, Module] <- [string:lexemes(Line, " ")], Given =:= Option,
               code:which(list_to_atom(Module ++ Ending)) =:= non_existing].

%% @doc A configuration of BenchErl.
-spec run_conf(string()) -> [string()].
run_conf(Text) ->
    case in_a_file(Text, fun weft_bencherl_config:read/1) of
        {ok, #{ignored := []}} -> [];
        {ok, #{ignored := Ignored}} -> [io_lib:format("ignored: ~0tp", [Ignored])];
        {error, Reason} -> [Reason]
    end.

%% @doc Elixir, if it is there, with FULL=1: each block takes an emulator of its own.
-spec elixir(string()) -> [string()].
elixir(Text) ->
    case os:getenv("FULL") =/= false andalso os:find_executable("elixir") of
        false -> [];
        _ ->
            in_a_file(Text, fun(File) ->
                                    read_by(os:cmd("elixir -e 'Code.string_to_quoted!("
                                                   "File.read!(\"" ++ File ++ "\")); IO.puts :ok'"))
                            end)
    end.

read_by("ok\n") -> [];
read_by(Said) -> [Said].

in_a_file(Text, Read) ->
    File = string:trim(os:cmd("mktemp")),
    ok = file:write_file(File, unicode:characters_to_binary(Text)),
    try Read(File) after file:delete(File) end.

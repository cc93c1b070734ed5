%% SPDX-License-Identifier: Apache-2.0
%% @doc House checks: the style of this code base, written as a test.
%%
%% Each rule is a function from facts (source text or compiled abstract code) to problems, in a
%% module named for what it looks at:
%%   house_text    what a line or a header must look like        (source text)
%%   house_shape   how long a clause may be                      (tokens)
%%   house_purity  what a `*_core' must not reach                (compiled code)
%%   house_layers  who may call whom                             (compiled code, .app.src)
%%   house_circles no circular dependencies between modules      (compiled code)
%%   house_spec    what must have a -spec                        (compiled code)
%%   house_folders how large a folder is, and its README         (names of files, READMEs)
%%   house_links   where links of documents lead                 (source text)
%% Here is only the plumbing: collect the files, run the rules, subtract what house.config permits,
%% print the rest as `file:line: rule: what to do'.
-module(house).

-export([run/2, rules/0, permit/2, problem/5]).
-export_type([problem/0, permission/0]).

%% `subject' names what a permission in house.config is for; `value' is what a permission limits: a
%% size, or 1 per place.
-type problem() :: #{rule := atom(), file := string(), line := non_neg_integer(),
                     subject := string(), value := pos_integer(), text := iodata()}.
-type permission() :: {permit, Rule :: atom(), Subject :: string(), Limit :: pos_integer(),
                       Reason :: string()}.

%% @doc Runs all rules over the checkout in `Root' whose compiled applications are in `LibDir'
%% (`<build>/default/lib'). Prints the problems. Answers the rules without and with problems.
-spec run(file:filename(), file:filename()) -> {Kept :: [atom()], Broken :: [atom()]}.
run(Root, LibDir) ->
    {ok, Config} = file:consult(filename:join(Root, "test/house/house.config")),
    Problems = permit(problems(Root, LibDir, Config),
                      [P || P <- Config, element(1, P) =:= permit]),
    lists:foreach(fun print/1, Problems),
    Broken = lists:usort([Rule || #{rule := Rule} <- Problems]),
    {rules() -- Broken, Broken}.

%% @doc All rules.
-spec rules() -> [atom()].
rules() ->
    [ratchet | house_text:rules()] ++ house_shape:rules() ++ house_purity:rules()
        ++ house_layers:rules() ++ house_circles:rules() ++ house_spec:rules()
        ++ house_folders:rules() ++ house_links:rules().

%% @doc A problem at one place. It counts 1 against a permission for `Subject'.
-spec problem(atom(), string(), non_neg_integer(), string(), iodata()) -> problem().
problem(Rule, File, Line, Subject, Text) ->
    #{rule => Rule, file => File, line => Line, subject => Subject, value => 1, text => Text}.

%% @doc Leaves out what is permitted. A permission that is larger than needed is itself a problem,
%% so that the list can only shrink.
-spec permit([problem()], [permission()]) -> [problem()].
permit(Problems, Permissions) ->
    Used = lists:foldl(
        fun(#{rule := R, subject := S, value := V}, Sums) ->
            maps:update_with({R, S}, fun(Sum) -> Sum + V end, V, Sums)
        end, #{}, Problems),
    Limits = maps:from_list([{{R, S}, Limit} || {permit, R, S, Limit, _} <- Permissions]),
    IsPermitted = fun(#{rule := R, subject := S}) ->
        maps:get({R, S}, Used) =< maps:get({R, S}, Limits, 0)
    end,
    [P || P <- Problems, not IsPermitted(P)] ++ slack(Limits, Used).

slack(Limits, Used) ->
    [problem(ratchet, "test/house/house.config", 0, Subject,
             io_lib:format("permits ~w ~w for ~s, ~w are used: lower the number",
                           [Limit, Rule, Subject, maps:get({Rule, Subject}, Used, 0)]))
     || {{Rule, Subject}, Limit} <- lists:sort(maps:to_list(Limits)),
        maps:get({Rule, Subject}, Used, 0) < Limit].

problems(Root, LibDir, Config) ->
    Sources = [{File, read(Root, File)} || File <- files(Root)],
    Facts = house_facts:read(Root, LibDir),
    [P || {File, Text} <- Sources,
          P <- house_text:check(File, Text) ++ house_shape:check(File, Text)
                   ++ house_links:check(Root, File, Text)]
        ++ house_purity:check(Facts)
        ++ house_layers:check(Facts, Config)
        ++ house_circles:check(Facts)
        ++ house_spec:check(Facts)
        ++ house_folders:check(Sources).

files(Root) ->
    Patterns = ["{apps,examples,test}/**/*.{erl,hrl,src,escript,config,sh}", "bin/*", ".ci/run",
                "Makefile", "rebar.config*", "*.md", "{docs,apps,examples}/**/*.md",
                ".github/workflows/*.yml"],
    lists:usort([File || Pattern <- Patterns, File <- filelib:wildcard(Pattern, Root),
                         filelib:is_regular(filename:join(Root, File)),
                         not lists:member("_build", filename:split(File))]).

read(Root, File) ->
    {ok, Text} = file:read_file(filename:join(Root, File)),
    Text.

print(#{rule := Rule, file := File, line := Line, text := Text}) ->
    io:format("~ts:~w: ~w: ~ts~n", [File, Line, Rule, Text]).

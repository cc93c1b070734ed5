%% SPDX-License-Identifier: Apache-2.0
%% @doc One of OTP's suites as `weft migrate' leaves it, to be run with weft started on all nodes:
%% its calls of pg and of global are those of weft_pg and weft_global. Each place is rewritten by
%% itself (--partial), as a suite asks for names that nobody registers, too. Places that the rules
%% leave because they are in a macro of the suite are changed here, by their words: that is the part
%% which is done by hand.
-module(weft_otp_migrated).

-export([source/4, boot/2]).

%% What weft_otp_build needs beside the suites.
-define(BESIDE, ["lib/common_test", "lib/kernel/examples"]).
%% The word global beside a function that weft_global has, in a call or in arguments of one.
-define(BY_HAND, "(?<![a-z_{])global(?=(:|, )(register_name|re_register_name|unregister_name"
                 "|whereis_name|send|registered_names|sync|set_lock|del_lock|trans)\\b)").

%% @doc A tree below Work with the directory of the suite from Source, the suite in it rewritten.
%% Answers it, and how many places the rules rewrote and left, and words were changed by hand.
-spec source(Suite :: string(), Dir :: string(), Source :: file:filename(),
             Work :: file:filename()) ->
          {file:filename(), {Rewritten :: non_neg_integer(), Left :: non_neg_integer(),
                             ByHand :: non_neg_integer()}}.
source(Suite, Dir, Source, Work) ->
    Root = filename:join(Work, Suite),
    _ = file:del_dir_r(Root),
    [linked(Source, Root, Place) || Place <- ?BESIDE],
    ok = filelib:ensure_path(filename:join(Root, Dir)),
    [{ok, _} = file:copy(File, filename:join([Root, Dir, filename:basename(File)]))
     || File <- filelib:wildcard(filename:join([Source, Dir, "*.[eh]rl"]))],
    File = filename:join([Root, Dir, Suite ++ "_SUITE.erl"]),
    {ok, #{results := [#{rewritten := Rewritten, left := Left}], failed := []}} =
        weft_migrate:rewrite([File], #{only => [global, pg], partial => true, write => true}),
    {Root, {length(Rewritten), length(Left), by_hand(File)}}.

linked(Source, Root, Place) ->
    ok = filelib:ensure_dir(filename:join(Root, Place)),
    ok = file:make_symlink(filename:join(Source, Place), filename:join(Root, Place)).

by_hand(File) ->
    {ok, Text} = file:read_file(File),
    Parts = re:split(Text, ?BY_HAND, [group]),
    ok = file:write_file(File, re:replace(Text, ?BY_HAND, "weft_global", [global])),
    length(Parts) - 1.

%% @doc A script with which a node has weft running when it is up, as a release has: its name
%% without the extension. SASL is in it, as where OTP runs its suites.
-spec boot(Work :: file:filename(), Weft :: file:filename()) -> file:filename().
boot(Work, Weft) ->
    Boot = filename:join(Work, "weft"),
    true = code:add_pathz(Weft),
    Release = {release, {"weft", "suites"}, {erts, erlang:system_info(version)},
               [{App, version(App)} || App <- needed([weft, sasl], [])]},
    ok = filelib:ensure_dir(Boot),
    ok = file:write_file(Boot ++ ".rel", io_lib:format("~tp.~n", [Release])),
    ok = systools:make_script(Boot, [local, {path, [Weft]}, {outdir, Work}]),
    Boot.

needed([], Found) ->
    Found;
needed([App | Apps], Found) ->
    case lists:member(App, Found) of
        true ->
            needed(Apps, Found);
        false ->
            _ = application:load(App),
            {ok, Wanted} = application:get_key(App, applications),
            needed(Apps ++ Wanted, [App | Found])
    end.

version(App) ->
    {ok, Version} = application:get_key(App, vsn),
    Version.

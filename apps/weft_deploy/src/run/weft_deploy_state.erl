%% SPDX-License-Identifier: Apache-2.0
%% @doc What the command remembers of a deployment between two runs, in a directory of its own. Each
%% host has a copy of it (`weft_deploy_shell:remember/3'), so that a command knows also what another
%% directory or another machine has done: that with the greatest revision counts.
%%
%% Only what hosts can not say: numbers of nodes that were changed by `scale', what was rolled back,
%% which nodes an upgrade has changed and not seen to be healthy, of which nodes others could not be
%% told in which groups they are, and where nodes of a host were while it does not answer. What runs
%% is asked each time. Files are replaced as a whole. The cookie
%% is in a file of its own, which others can not read.
-module(weft_deploy_state).

-export([load/1, save/2, text/1, parse/1, cookie/2, lock/1, unlock/1]).
-export_type([state/0]).

-type state() :: #{scaled := #{atom() => {non_neg_integer(), non_neg_integer()}},
                   bad := [string()], placed := #{string() => string()},
                   %% Not in files of earlier versions.
                   unproven => [Node :: string()], ungrouped => [Node :: string()],
                   %% Greater each time; 0: nothing was ever saved.
                   revision => non_neg_integer()}.

%% More that were rolled back than these are forgotten, the oldest first.
-define(BAD_MAX, 100).

%% @doc What was saved; a file that can not be read is an error, not an empty state.
-spec load(Dir :: string()) -> {ok, state()} | {error, string()}.
load(Dir) ->
    File = file(Dir),
    case file:consult(File) of
        {error, enoent} -> {ok, #{scaled => #{}, bad => [], placed => #{}, revision => 0}};
        {error, Reason} -> {error, lists:flatten([File, ": ", file:format_error(Reason)])};
        {ok, Terms} ->
            case state(Terms) of
                error -> {error, File ++ " is no state of a deployment: move it away"};
                Ok -> Ok
            end
    end.

file(Dir) -> filename:join(Dir, "state").

%% Those of earlier versions have no revision.
state([{1, #{scaled := _, bad := _, placed := _} = State}]) ->
    {ok, maps:merge(#{revision => 1}, State)};
state(_Other) ->
    error.

%% @doc What text/1 has made.
-spec parse(binary()) -> {ok, state()} | error.
parse(Text) ->
    try
        {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
        {ok, Term} = erl_parse:parse_term(Tokens),
        state([Term])
    catch error:_ -> error
    end.

%% @doc What is written of it; the first line has the revision.
-spec text(state()) -> binary().
text(#{revision := Revision} = State) ->
    unicode:characters_to_binary(io_lib:format("%% ~b~n%% coding: utf-8~n~tp.~n",
                                               [Revision, {1, State}])).

%% @doc Saves it with a revision of its own, which is greater than that of what was saved before.
-spec save(Dir :: string(), state()) -> {ok, state()} | {error, string()}.
save(Dir, #{bad := Bad} = State) ->
    case load(Dir) of
        {ok, #{revision := Before}} ->
            New = State#{bad := lists:sublist(Bad, ?BAD_MAX),
                         revision => 1 + max(Before, maps:get(revision, State, 0))},
            case write(file(Dir), text(New), 8#600) of
                ok -> {ok, New};
                Error -> Error
            end;
        Error ->
            Error
    end.

write(File, Content, Mode) ->
    Written = case filelib:ensure_dir(File) of
                  ok -> weft_deploy_private:write(File, Content, Mode);
                  NoDirectory -> NoDirectory
              end,
    case Written of
        ok -> ok;
        {error, Reason} -> {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% @doc The cookie of the deployment: that in the file, or one that is made when there is none.
-spec cookie(Dir :: string(), File :: string() | default) ->
          {ok, binary()} | {error, string()}.
cookie(Dir, default) ->
    File = filename:join(Dir, "cookie"),
    case file:read_file(File) of
        {ok, _} -> cookie(Dir, File);
        {error, enoent} ->
            Cookie = binary:encode_hex(crypto:strong_rand_bytes(20)),
            case write(File, Cookie, 8#400) of
                ok -> {ok, Cookie};
                Error -> Error
            end;
        {error, _} -> cookie(Dir, File)
    end;
cookie(_Dir, File) ->
    case file:read_file(File) of
        {ok, Text} ->
            Cookie = string:trim(Text),
            case re:run(Cookie, "^[!-~]{8,250}$", [{capture, none}, dollar_endonly]) of
                match -> {ok, Cookie};
                nomatch -> {error, "the cookie in " ++ File ++ " is to be one word of 8 to 250 "
                                   "characters"}
            end;
        {error, Reason} -> {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% @doc One command at a time changes a deployment. A lock whose process has ended is taken over.
-spec lock(Dir :: string()) -> ok | {error, string()}.
lock(Dir) ->
    File = filename:join(Dir, "lock"),
    case filelib:ensure_dir(File) of
        ok -> lock(File, 3);
        {error, Reason} -> {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

lock(File, Tries) ->
    case {file:write_file(File, os:getpid(), [exclusive]), Tries} of
        {ok, _} -> ok;
        {{error, eexist}, 0} -> busy(File, <<"?">>);
        {{error, eexist}, _} -> held(File, file:read_file(File), Tries);
        {{error, Reason}, _} -> {error, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% One that is empty is being written. One that is gone was given back just now.
held(File, {ok, <<>>}, _Tries) ->
    busy(File, <<"?">>);
held(File, {ok, OsPid}, Tries) ->
    case runs(string:trim(OsPid)) of
        true -> busy(File, OsPid);
        false ->
            %% If it could not be taken away, it is there still when it is asked for again.
            _ = take_away(File, OsPid),
            lock(File, Tries - 1)
    end;
held(File, {error, _}, Tries) ->
    lock(File, Tries - 1).

%% By now it may be that of another command which has taken the old one away before; then it is put
%% back.
take_away(File, Ended) ->
    Aside = lists:concat([File, ".", os:getpid(), ".", erlang:unique_integer([positive])]),
    case file:rename(File, Aside) =:= ok andalso file:read_file(Aside) of
        false -> ok;
        {ok, Ended} -> file:delete(Aside);
        _ -> _ = file:make_link(Aside, File), file:delete(Aside)
    end.

busy(File, OsPid) ->
    {error, lists:flatten(io_lib:format("another weft deploy (process ~ts) works on this: wait "
                                        "for it, or remove ~ts if there is none",
                                        [OsPid, File]))}.

runs(OsPid) ->
    re:run(OsPid, "^[0-9]+$", [{capture, none}, dollar_endonly]) =:= match
        andalso (filelib:is_dir("/proc/" ++ binary_to_list(OsPid))
                 orelse string:trim(os:cmd("kill -0 " ++ binary_to_list(OsPid)
                                           ++ " 2>/dev/null && echo yes")) =:= "yes").

-spec unlock(Dir :: string()) -> ok.
unlock(Dir) ->
    _ = file:delete(filename:join(Dir, "lock")),
    ok.

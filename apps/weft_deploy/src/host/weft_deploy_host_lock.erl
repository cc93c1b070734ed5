%% SPDX-License-Identifier: Apache-2.0
%% @doc The lock of a deployment on its hosts: who works on it from another machine is seen there.
%%
%% Commands of one machine and one directory of what is remembered exclude each other before
%% (`weft_deploy_state'). So a lock with the same holder is of a command that has ended, and is
%% taken over. That of another holder stays until that one gives it back, or it is broken.
%%
%% The lock is the file `lock' in the directory of the host: a line with the holder, and one for
%% people. It is made as a link to a file that is complete, so there is no moment without a holder.
-module(weft_deploy_host_lock).

-export([holder/1, take/3, give_back/2, taken/1]).
-export_type([how/0]).

%% make: the directory is made if it is not there; without it there is nothing to lock. break: the
%% lock of another holder is taken away.
-type how() :: #{make := boolean(), break := boolean()}.

%% @doc Who this command is, for a directory of what is remembered.
-spec holder(Root :: string()) -> string().
holder(Root) ->
    {ok, Machine} = inet:gethostname(),
    Machine ++ ":" ++ filename:absname(Root).

%% @doc A script that takes the lock, or says who has it, for taken/1.
-spec take(Dir :: string(), Holder :: string(), how()) -> unicode:chardata().
take(Dir, Holder, #{make := IsMade, break := IsBroken}) ->
    Q = fun weft_deploy_shell:quote/1,
    About = [Holder, " (process ", os:getpid(), "), since ",
             calendar:system_time_to_rfc3339(erlang:system_time(second))],
    ["umask 077\n",
     case IsMade of
         true -> ["mkdir -p ", Q(Dir), " || exit 1\n"];
         false -> ["[ -d ", Q(Dir), " ] || exit 0\n"]
     end,
     "cd ", Q(Dir), " || exit 1\nn=lock.$$; h=", Q(Holder), "\n"
     "printf '%s\\n%s\\n' \"$h\" ", Q(About), " > \"$n\" || exit 1\n"
     "if ! ln \"$n\" lock 2>/dev/null; then i=; a=\n"
     "  { read -r i && read -r a; } < lock || :\n"
     "  if [ \"$i\" = \"$h\" ] || [ ", atom_to_list(IsBroken), " = true ]; then mv -f \"$n\" lock\n"
     "  else printf 'locked\\t%s\\n' \"${a:-somebody}\"; fi; fi\n"
     "rm -f \"$n\"\nexit 0\n"].

%% @doc Who has the lock, by what the script has printed.
-spec taken(Output :: binary()) -> ok | {held, By :: binary()}.
taken(Output) ->
    case [By || Line <- binary:split(Output, <<"\n">>, [global]),
                [<<"locked">>, By] <- [binary:split(Line, <<"\t">>)]] of
        [] -> ok;
        [By | _] -> {held, By}
    end.

%% @doc A script that gives the lock back, if it is of this holder still.
-spec give_back(Dir :: string(), Holder :: string()) -> unicode:chardata().
give_back(Dir, Holder) ->
    ["cd ", weft_deploy_shell:quote(Dir), " 2>/dev/null || exit 0\n"
     "i=; [ -f lock ] && read -r i < lock\n"
     "[ \"$i\" = ", weft_deploy_shell:quote(Holder), " ] && rm -f lock\nexit 0\n"].

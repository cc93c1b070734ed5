%% SPDX-License-Identifier: Apache-2.0
%% @doc One run of the command: the file, what is remembered, the hosts, and what is there now.
%%
%% Everything about hosts is asked anew in each run. So a command that was ended half-way is
%% repeated, and goes on where it was. What is remembered is taken from who has the newest of it:
%% the directory here, or a host.
-module(weft_deploy_session).

-export([read/2, open/4, close/1, look/1, desired/1, facts/1, plan/2, connection/2, place/2,
         place_all/2, save/2, on/3, progress/2, hide/2]).
-export_type([session/0, progress/0, locking/0, needs/0]).

-type progress() :: fun((Line :: unicode:chardata()) -> term()).
%% A command that changes something has the lock before it looks at anything.
%% breaking: also if a command of another machine has it.
-type locking() :: locked | breaking | unlocked.
%% code: the command is about what nodes are made of, so the code of all families has to be there.
-type needs() :: code | nothing.
%% adopts: nodes that are there belong to the deployment also if nothing is remembered of them.
-type read() :: #{spec := weft_deploy_spec:spec(), root := string(), adopts => boolean()}.
-type session() :: #{spec := weft_deploy_spec:spec(), root := string(), dir := string(),
                     erl := string(), state := weft_deploy_state:state(), cookie := binary(),
                     versions := #{atom() => string()}, unbuilt := [string()],
                     %% Who has locked the hosts.
                     holder := string() | none,
                     own_code := weft_deploy_artifact:files(),
                     hosts := #{string() => {ok, weft_deploy_host:connection()}
                                          | {error, string()}},
                     seen := weft_deploy_plan:seen(), progress := progress(),
                     started_ms := integer()}.

%% @doc Reads the file, and nothing else. `root' is the directory of what is remembered.
-spec read(File :: string(), Root :: string()) -> {ok, read()} | {error, usage, string()}.
read(File, Root) ->
    case file:consult(File) of
        {ok, Terms} ->
            case weft_deploy_spec:new(Terms) of
                {ok, #{name := Name} = Spec} ->
                    {ok, #{spec => relative(Spec, filename:dirname(File)),
                           root => filename:absname(filename:join([Root, "deploy", Name]))}};
                {error, Text} ->
                    {error, usage, File ++ ": " ++ Text}
            end;
        {error, Reason} ->
            {error, usage, lists:flatten([File, ": ", file:format_error(Reason)])}
    end.

%% Files are named as seen from the file that names them.
relative(#{families := Families, cookie_file := Cookie, provider := Provider} = Spec, Base) ->
    At = fun(Name) when is_atom(Name) -> Name;
            (Name) -> filename:absname(Name, filename:absname(Base))
         end,
    Spec#{cookie_file := At(Cookie),
          provider := case Provider of
                          {ssh, #{keys := Keys} = Ssh} -> {ssh, Ssh#{keys := At(Keys)}};
                          local -> local
                      end,
          families := [F#{release := At(Release), paths := [At(Path) || Path <- Paths]}
                       || #{release := Release, paths := Paths} = F <- Families]}.

%% @doc Opens the hosts and looks at them. Only what the file or this machine has wrong is an error
%% here; a host that does not answer is not. `unbuilt': why families have no version, if none is
%% needed.
-spec open(read(), locking(), needs(), progress()) ->
          {ok, session()} | {error, usage | failed, string()}.
open(#{spec := #{dir := Given, erl := Erl, cookie_file := CookieFile} = Spec, root := Own} = Read,
     Locking, Needs, Progress) ->
    Session = #{spec => Spec, root => Own, progress => Progress, started_ms => now_ms(),
                dir => case Given of default -> filename:join(Own, "host"); _ -> Given end,
                erl => erl(Erl, Spec), hosts => #{}, seen => #{}, holder => none},
    case weft_deploy_state:load(Own) of
        {ok, State} ->
            Code = own_code(Spec),
            case {cookie(Locking, Own, CookieFile), versions(Spec, Code)} of
                {{error, Text}, _} ->
                    {error, usage, Text};
                {_, {_, [Text | _]}} when Needs =:= code ->
                    {error, usage, Text};
                {{ok, Cookie}, {Versions, Unbuilt}} ->
                    IsAsked = Needs =:= code andalso not maps:get(adopts, Read, false),
                    looked(hold(connected(Session#{state => State, cookie => Cookie,
                                                   versions => Versions, unbuilt => Unbuilt,
                                                   own_code => Code}), Locking, Needs),
                           IsAsked andalso Locking)
            end;
        {error, Text} ->
            {error, failed, Text}
    end.

looked({ok, Session}, Locking) ->
    Looked = look(Session),
    case newest(Looked) of
        {ok, Known} ->
            case unknown(Locking, Known) of
                no -> {ok, Known};
                Text -> closed(Known, Text)
            end;
        {error, Text} ->
            closed(Looked, Text)
    end;
looked({error, Text}, _Locking) ->
    {error, failed, Text}.

closed(Session, Text) ->
    ok = close(Session),
    {error, failed, lists:flatten(io_lib:format("~ts", [Text]))}.

%% A command of another directory, or on another machine, may have been the last one. Of two copies
%% of the same revision the one here counts.
newest(#{state := #{revision := Own}, seen := Seen, dir := Dir} = Session) ->
    Copies = [{Revision, Host} || {Host, {ok, #{revision := Revision}}} <- maps:to_list(Seen)],
    case lists:max([{0, none} | Copies]) of
        {Revision, Host} when Revision > Own ->
            {ok, Connection} = connection(Host, Session),
            case weft_deploy_host:script(Connection, weft_deploy_shell:remembered(Dir)) of
                {ok, Text} -> taken(weft_deploy_state:parse(Text), Host, Session);
                {error, Why} -> {error, [Host, ": ", Why]}
            end;
        _ ->
            {ok, Session}
    end.

taken({ok, State}, _Host, Session) ->
    {ok, Session#{state := State}};
taken(error, Host, #{dir := Dir}) ->
    {error, [Host, ": ", Dir, "/state is no state of a deployment: move it away"]}.

%% Why this command can not go on, if it is about what is to be there and nothing is remembered. Who
%% does not know of numbers that were changed takes nodes for ones that shall not be there. Who does
%% not know where nodes are starts them twice, if their host is silent.
unknown(Locking, #{state := #{revision := 0}, seen := Seen, root := Root,
                   spec := #{name := Name}}) when Locking =/= false ->
    Hosts = lists:sort(maps:to_list(Seen)),
    Others = ["Work in the directory where they were started, or copy the file state to ", Root,
              " from there. If "],
    case {[Host || {Host, {ok, #{nodes := Nodes}}} <- Hosts, map_size(Nodes) > 0],
          [{Host, Why} || Locking =/= unlocked, {Host, {error, Why}} <- Hosts]} of
        {[Host | _], _} ->
            [Host, " has nodes of ", Name, ", and nothing is remembered of them, neither there nor "
             "in ", Root, ": what was scaled or rolled back is not known. ", Others, "that is "
             "lost, repeat the command with --adopt: then the file alone counts"];
        {[], [{Host, Why} | _]} ->
            [Host, " does not answer: ", Why, ". It may have nodes of ", Name, ", and nothing is "
             "remembered of them in ", Root, ". ", Others, "there are none, repeat the command "
             "with --adopt"];
        {[], []} ->
            no
    end;
unknown(_Locking, _Session) ->
    no.

%% Two machines do not see each other's commands, but both see the hosts. What one host refuses is
%% given back on the others.
hold(Session, unlocked, _Needs) ->
    {ok, Session};
hold(#{root := Root, dir := Dir, spec := #{hosts := Hosts}} = Session, Locking, Needs) ->
    Holder = weft_deploy_host_lock:holder(Root),
    How = #{make => Needs =:= code, break => Locking =:= breaking},
    Results = on([Host || #{host := Host} <- Hosts],
                 fun(_Host, Connection) ->
                     case weft_deploy_host:script(Connection,
                                                  weft_deploy_host_lock:take(Dir, Holder, How)) of
                         {ok, Output} -> weft_deploy_host_lock:taken(Output);
                         Error -> Error
                     end
                 end, Session),
    Held = Session#{holder := Holder},
    case [{Host, By} || {Host, {held, By}} <- Results] of
        [] -> {ok, without([Failed || {_, {error, _}} = Failed <- Results], Held)};
        [{Host, By} | _] ->
            ok = close(Held),
            {error, lists:flatten(io_lib:format(
                                    "~ts: another weft deploy works on this, ~ts: wait for it. If "
                                    "it has ended, repeat the command with --break-lock",
                                    [Host, By]))}
    end.

%% A host that can not be locked, such as one whose disk is full, is one that does not answer.
without(Failed, #{hosts := Hosts} = Session) ->
    Unlocked = maps:from_list([{Host, {error, "it can not be locked: " ++ Why}}
                               || {Host, {error, Why}} <- Failed,
                                  {ok, _} <- [connection(Host, Session)]]),
    ok = close(Session#{hosts := maps:with(maps:keys(Unlocked), Hosts)}),
    Session#{hosts := maps:merge(Hosts, Unlocked)}.

%% Who only looks needs no cookie, and makes none.
cookie(unlocked, _Own, default) -> {ok, <<>>};
cookie(_Locking, Own, File) -> weft_deploy_state:cookie(Own, File).

erl(default, #{provider := local}) -> filename:join([code:root_dir(), "bin", "erl"]);
erl(default, _Spec) -> "erl";
erl(Erl, _Spec) -> Erl.

own_code(#{families := Families}) ->
    case [Family || #{release := none} = Family <- Families] of
        [] -> [];
        _ -> weft_deploy_artifact:own_code()
    end.

versions(#{families := Families}, Code) ->
    Each = [{Name, weft_deploy_artifact:version(Family, Code)}
            || #{name := Name} = Family <- Families],
    {maps:from_list([{Name, Version} || {Name, {ok, Version}} <- Each]),
     [Text || {_Name, {error, Text}} <- Each]}.

connected(#{spec := #{provider := Provider, hosts := Hosts, parallel := Parallel},
            dir := Dir} = Session) ->
    Names = [Host || #{host := Host} <- Hosts],
    Results = weft_deploy_parallel:map(Parallel,
                                       fun(Host) ->
                                           weft_deploy_host:open(Provider, Host, #{dir => Dir})
                                       end, Names),
    Session#{hosts := maps:from_list(lists:zip(Names, Results))}.

%% @doc Asks all hosts what is there.
-spec look(session()) -> session().
look(#{dir := Dir, spec := #{hosts := Hosts, name := Name}} = Session) ->
    Names = [Host || #{host := Host} <- Hosts],
    Seen = on(Names,
              fun(Host, Connection) ->
                  case weft_deploy_host:script(Connection, weft_deploy_shell:observe(Dir)) of
                      {ok, Output} ->
                          owned(weft_deploy_shell:parse(Output), {Dir, Name}, Names -- [Host]);
                      Error ->
                          Error
                  end
              end, Session),
    Session#{seen := maps:from_list(Seen)}.

%% In the directory of another deployment all its nodes would be ones that shall not be there. So
%% would those of another host, which has the same directory, or is the same machine.
owned(#{deployment := Other}, {Dir, Name}, _Others) when Other =/= Name ->
    {error, lists:concat([Dir, " is the directory of the deployment ", Other,
                          ": write another one in {dir, \"DIRECTORY\"}"])};
owned(#{nodes := Nodes} = Seen, {Dir, _Name}, Others) ->
    case [Node || Node <- lists:sort(maps:keys(Nodes)), lists:member(host(Node), Others)] of
        [] -> {ok, Seen};
        [Node | _] -> {error, lists:concat([Dir, " has ", Node, ": each host needs a directory of "
                                            "its own, and one name"])}
    end.

host(Node) -> lists:last(string:split(Node, "@")).

%% @doc Fun on each of these hosts, some at a time; for a host that can not be reached, why not.
-spec on([string()], fun((string(), weft_deploy_host:connection()) -> Result), session()) ->
          [{string(), Result | {error, string()}}].
on(Hosts, Fun, #{spec := #{parallel := Parallel}} = Session) ->
    Each = fun(Host) ->
               case connection(Host, Session) of
                   {ok, Connection} -> Fun(Host, Connection);
                   Error -> Error
               end
           end,
    lists:zip(Hosts, weft_deploy_parallel:map(Parallel, Each, Hosts)).

-spec connection(string(), session()) -> {ok, weft_deploy_host:connection()} | {error, string()}.
connection(Host, #{hosts := Hosts}) -> map_get(Host, Hosts).

-spec close(session()) -> ok.
close(#{hosts := Hosts, dir := Dir, holder := Holder} = Session) ->
    _ = [on(maps:keys(Hosts),
            fun(_Host, Connection) ->
                weft_deploy_host:script(Connection, weft_deploy_host_lock:give_back(Dir, Holder))
            end, Session)
         || Holder =/= none],
    lists:foreach(fun({_, {ok, Connection}}) -> weft_deploy_host:close(Connection);
                     (_) -> ok
                  end, maps:to_list(Hosts)).

%% @doc The nodes that shall be there.
-spec desired(session()) -> [weft_deploy_nodes:desired()].
desired(#{spec := Spec, seen := Seen} = Session) ->
    weft_deploy_nodes:desired(Spec, [Host || {Host, {error, _}} <- maps:to_list(Seen)],
                              facts(Session)).

%% @doc What the file does not say.
-spec facts(session()) -> weft_deploy_nodes:facts().
facts(#{spec := Spec, seen := Seen, versions := Versions, dir := Dir, erl := Erl,
        state := #{scaled := Scaled, placed := Remembered}}) ->
    Lost = [Host || {Host, {error, _}} <- maps:to_list(Seen)],
    Cores = maps:from_list([{Host, Cores}
                            || {Host, {ok, #{cores := Cores}}} <- maps:to_list(Seen)]),
    Placed = maps:merge(maps:filter(fun(_Name, Host) -> lists:member(Host, Lost) end, Remembered),
                        placed(Seen)),
    #{counts => weft_deploy_spec:counts(Spec, Scaled), versions => Versions, cores => Cores,
      placed => Placed, dir => Dir, erl => Erl}.

placed(Seen) ->
    maps:from_list([{hd(string:split(Node, "@")), Host}
                    || {Host, {ok, #{nodes := Nodes}}} <- maps:to_list(Seen),
                       Node <- maps:keys(Nodes)]).

%% @doc What `apply' would do.
-spec plan(session(), Again :: boolean()) -> weft_deploy_plan:plan().
plan(#{seen := Seen, state := #{bad := Bad} = State} = Session, Again) ->
    weft_deploy_plan:new(desired(Session), Seen, Bad, maps:get(unproven, State, []), Again).

%% @doc How `weft_deploy_ask' reaches that host.
-spec place(string(), session()) -> weft_deploy_ask:place().
place(Host, #{dir := Dir, erl := Erl, spec := #{epmd_port := Port, carrier := Carrier}}) ->
    #{dir => Dir, erl => Erl, epmd_port => Port, host => Host, carrier => Carrier}.

%% @doc Remembers where nodes are about to be started: they may be there if the host is lost soon.
-spec place_all([weft_deploy_nodes:desired()], session()) -> {ok, session()} | {error, string()}.
place_all(Nodes, #{state := #{placed := Placed} = State, seen := Seen} = Session) ->
    New = maps:from_list([{hd(string:split(Node, "@")), Host}
                          || #{node := Node, host := Host} <- Nodes]),
    All = maps:merge(maps:merge(Placed, placed(Seen)), New),
    %% The new ones are not there yet.
    case save(State#{placed := All}, Session#{seen := #{}}) of
        {ok, #{state := Saved}} -> {ok, Session#{state := Saved}};
        Error -> Error
    end.

%% @doc Remembers something, and where nodes are now, here and on the hosts. What hosts that answer
%% do not have is nowhere.
-spec save(weft_deploy_state:state(), session()) -> {ok, session()} | {error, string()}.
save(State, #{root := Root, seen := Seen, spec := #{families := Families}} = Session) ->
    Counts = maps:from_list([{Name, Count} || #{name := Name, count := Count} <- Families]),
    %% A number that was changed in the file counts also when it is changed back.
    Scaled = maps:filter(fun(Name, {InFile, _}) -> maps:get(Name, Counts, none) =:= InFile end,
                         maps:get(scaled, State)),
    Elsewhere = maps:filter(fun(_Name, Host) ->
                                element(1, maps:get(Host, Seen, {unknown})) =/= ok
                            end, maps:get(placed, State)),
    New = State#{placed := maps:merge(Elsewhere, placed(Seen)), scaled := Scaled},
    case weft_deploy_state:save(Root, New) of
        {ok, Saved} ->
            ok = copied(Saved, Session),
            {ok, Session#{state := Saved}};
        Error ->
            Error
    end.

%% A host that does not answer now gets what is saved the next time.
copied(State, #{hosts := Hosts, dir := Dir, spec := #{name := Name}} = Session) ->
    Script = weft_deploy_shell:remember(Dir, Name, weft_deploy_state:text(State)),
    Results = on([Host || {Host, {ok, _}} <- lists:sort(maps:to_list(Hosts))],
                 fun(_Host, Connection) -> weft_deploy_host:script(Connection, Script) end,
                 Session),
    lists:foreach(fun({Host, {error, Why}}) ->
                          progress([Host, ": what is remembered was not written there: ", Why],
                                   Session);
                     (_) -> ok
                  end, Results).

%% @doc Tells how things go, with the time since the start.
-spec progress(iodata(), session()) -> ok.
progress(Text, #{progress := Progress, started_ms := Started} = Session) ->
    Line = io_lib:format("~7.1f s  ~ts", [(now_ms() - Started) / 1000, Text]),
    _ = Progress(hide(lists:flatten(Line), Session)),
    ok.

%% @doc An answer without the cookie and without passwords: what a node has logged may have them.
-spec hide(Answer, session()) -> Answer.
hide(Answer, #{cookie := Cookie, spec := #{families := Families, topology := Topology}}) ->
    weft_deploy_secrets:hide(Answer, [{cookie, Cookie} || Cookie =/= <<>>]
                                         ++ weft_deploy_secrets:in({Families, Topology})).

now_ms() -> erlang:monotonic_time(millisecond).

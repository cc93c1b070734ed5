%% SPDX-License-Identifier: Apache-2.0
%% @doc The process of one replica: runs `weft_kv_strong_acceptor_core' on a file (`weft_kv_log').
%% What waits in its queue is written and synced together, and then answered. While nothing can be
%% written, nothing is answered but errors. What is too much is refused; if a disk hangs, it loses
%% its name for a while (`weft_kv_strong_stalled').
%%
%% Other nodes call it with `{vote, 2, Configuration, {Members, Message}}' and `{introduce, 2,
%% Configuration, {Node, Identity}}'. Who has another configuration of the bucket is refused. If it
%% has lost its file, a process beside it (`weft_kv_strong_rejoin') gets it filled, with
%% `{fill, Step}'.
-module(weft_kv_strong_acceptor).
-behaviour(gen_server).

-export([start_link/3, status/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-define(INTRODUCE_MS, 300).
-define(ASK_MS, 5000).
-define(HELD_MAX, 200).
%% A file is written anew when it is larger, and twice to three times as large as after the last
%% time, each replica in its turn.
-define(REWRITE_BYTES, 1000000).
-define(REJOIN_MS, 1000).
%% The lock looks at its file every 5 s, or has ended by then, and with it all of this.
-define(HELD_AGAIN_MS, 50).
-define(HELD_TRIES, 200).

-record(replica, {name :: atom(),
                  bucket :: atom(),
                  partition :: non_neg_integer(),
                  options :: weft_kv_strong_bucket:options(),
                  configuration :: term(),
                  core = none :: none | weft_kv_strong_acceptor_core:state(),
                  log :: weft_kv_log:log(),
                  %% The process that gets it filled.
                  rejoin = none :: none | reference(),
                  is_behind = false :: boolean(),
                  turn :: float(),
                  rewritten_bytes = 0 :: non_neg_integer()}).

-spec start_link(atom(), non_neg_integer(), weft_kv_strong_bucket:options()) ->
          {ok, pid()} | {error, term()}.
start_link(Bucket, Partition, Options) ->
    gen_server:start_link({local, weft_kv_strong_bucket:name(Bucket, Partition)}, ?MODULE,
                          {Bucket, Partition, Options}, []).

%% @doc What the replica of a partition on this node is.
-spec status(atom(), non_neg_integer()) ->
          weft_kv_strong_acceptor_core:status() | {error, not_running}.
status(Bucket, Partition) ->
    try gen_server:call(weft_kv_strong_bucket:name(Bucket, Partition), status)
    catch exit:{noproc, _} -> {error, not_running}
    end.

%% @private
init({Bucket, Partition, Options}) ->
    weft_redact:run(fun() -> opened(Bucket, Partition, Options) end).

opened(Bucket, Partition, Options) ->
    Dir = weft_kv_strong_bucket:dir(Bucket, Options),
    case log(Dir, Partition, ?HELD_TRIES) of
        {ok, Log, Entries} ->
            Configuration = weft_kv_strong_bucket:configuration(Bucket, Options),
            begun(Entries =:= [], weft_kv_strong_acceptor_core:init(
                    #{identity => crypto:strong_rand_bytes(16),
                      configuration => {node(), Configuration},
                      self => node(),
                      others => weft_kv_strong_bucket:replicas(Partition, Options) -- [node()],
                      keys_max => map_get(keys_max, Options),
                      existing => map_get(existing, Options),
                      damaged => weft_kv_log:damaged(Dir, Partition)}, Entries),
                  #replica{name = weft_kv_strong_bucket:name(Bucket, Partition),
                           bucket = Bucket, partition = Partition, options = Options,
                           configuration = Configuration, log = Log,
                           turn = weft_kv_strong_bucket:turn(Partition, node(), Options)});
        {error, Reason} -> {stop, Reason}
    end.

%% A node that stood still has to look whether the directory is still its own.
log(Dir, Partition, Tries) ->
    case weft_kv_log:open(Dir, Partition, weft_kv_strong) of
        {error, {directory_not_held, _}} when Tries > 0 ->
            receive after ?HELD_AGAIN_MS -> log(Dir, Partition, Tries - 1) end;
        Result -> Result
    end.

%% A file of another node is refused, too: two replicas in one file would be none.
begun(_IsNew, {error, {other_configuration, Other}},
      #replica{configuration = Mine, log = Log}) ->
    ok = weft_kv_log:close(Log),
    {stop, {strong_buckets_stay_as_they_were, #{was => Other, is => {node(), Mine}}}};
begun(_IsNew, {error, unknown_entries}, #replica{log = Log}) ->
    ok = weft_kv_log:close(Log),
    {stop, {written_by_another_version, weft_kv_log:file(Log)}};
begun(IsNew, {ok, Core, Effects}, Replica0) ->
    Replica = performed(Effects, Replica0#replica{core = Core}),
    case weft_kv_log:commit(Replica#replica.log) of
        {ok, Committed} ->
            self() ! introduce,
            ok = warned(case {IsNew, weft_kv_strong_acceptor_core:status(Core)} of
                            {false, voting} -> voting;
                            _ -> founding
                        end, Replica),
            {ok, candidate(Replica#replica{log = Committed})};
        {error, Reason, Failed} ->
            ok = weft_kv_log:close(Failed),
            {stop, Reason}
    end.

%% @private
handle_call(Request, From, Replica) ->
    weft_redact:run(fun() -> called(Request, From, Replica) end).

called({What, 2, Configuration, Question}, From,
            #replica{configuration = Configuration} = Replica)
  when What =:= vote; What =:= introduce ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    case Waiting > weft_kv_strong_stalled:queue_max() of
        true -> {reply, {error, overload}, settled(Replica)};
        false -> answered(asked({What, Question}, From), {What, Question}, caught_up(Replica))
    end;
called({_What, 2, _Other, _Question}, _From, #replica{configuration = Mine} = Replica) ->
    {reply, {error, {other_configuration, Mine}}, settled(Replica)};
called({fill, Step}, {Pid, _} = From, Replica) when node(Pid) =:= node() ->
    {noreply, event({fill, From, Step}, Replica)};
called(status, _From, #replica{core = Core} = Replica) ->
    {reply, weft_kv_strong_acceptor_core:status(Core), settled(Replica)};
called(Request, _From, Replica) ->
    {reply, weft_stray:call(Request), settled(Replica)}.

answered(stray, Question, {_, Replica}) ->
    {reply, weft_stray:call(Question), settled(Replica)};
answered(_Event, _Question, {{error, Reason}, Replica}) ->
    {reply, {error, {failed, Reason}}, Replica};
answered(Event, _Question, {ok, Replica}) ->
    {noreply, event(Event, Replica)}.

%% What could not be written has to be, before there is more of it. So a full disk fills no memory.
caught_up(#replica{is_behind = false} = Replica) ->
    {ok, Replica};
caught_up(#replica{log = Log0} = Replica) ->
    case weft_kv_log:commit(Log0) of
        {ok, Log} -> {ok, Replica#replica{log = Log, is_behind = false}};
        {error, Reason, Log} -> {{error, Reason}, Replica#replica{log = Log}}
    end.

%% What is none of these was sent by a later version.
asked({introduce, {Node, Identity}}, From) when is_binary(Identity) ->
    {introduce, From, Node, Identity};
asked({vote, {{Epoch, Replaced} = Members, Message}}, From)
  when is_integer(Epoch), is_map(Replaced) ->
    case is_known(Message) of
        true -> {vote, From, Members, Message};
        false -> stray
    end;
asked(_Other, _From) -> stray.

is_known({read, Key}) -> is_binary(Key);
is_known({keys, After, Max}) -> is_binary(After) andalso is_integer(Max) andalso Max > 0;
is_known({registers, After}) -> After =:= first orelse is_binary(After);
is_known({prepare, Key, {_, _, _}}) -> is_binary(Key);
is_known({accept, Key, {_, _, _}, {_, _, _}}) -> is_binary(Key);
is_known(_Other) -> false.

%% @private
handle_cast(Request, Replica) ->
    ok = weft_stray:message(Request),
    {noreply, settled(Replica)}.

%% @private
handle_info(Message, Replica) ->
    weft_redact:run(fun() -> told(Message, Replica) end).

told(introduce, #replica{core = Core} = Replica) ->
    _ = weft_kv_strong_acceptor_core:status(Core) =:= founding
        andalso erlang:send_after(?INTRODUCE_MS, self(), introduce),
    {noreply, event(introduce, Replica)};
told({introduced, Node, Answer}, Replica) when Answer =:= welcome; Answer =:= forgotten ->
    {noreply, written(event({introduced, Node, Answer}, Replica))};
told({introduced, _Node, {error, _Reason}}, Replica) ->
    {noreply, settled(Replica)};
told({'DOWN', Ref, process, _, normal}, #replica{rejoin = Ref} = Replica) ->
    {noreply, settled(Replica#replica{rejoin = none})};
told({'DOWN', Ref, process, _, Reason}, #replica{rejoin = Ref, name = Name} = Replica) ->
    logger:warning("weft_kv: ~ts is not filled, and tries again: ~0tp", [Name, Reason]),
    _ = erlang:send_after(?REJOIN_MS, self(), rejoin),
    {noreply, settled(Replica)};
told(rejoin, Replica) ->
    {noreply, written(candidate(Replica#replica{rejoin = none}))};
%% It stood still. What waited then was before this.
told(take_name, #replica{name = Name} = Replica) ->
    true = register(Name, self()),
    logger:notice("weft_kv: ~ts goes on, and is asked again", [Name]),
    {noreply, settled(Replica)};
told(Message, Replica) ->
    ok = weft_stray:message(Message),
    {noreply, settled(Replica)}.

%% @private
terminate(_Reason, #replica{log = Log}) ->
    weft_kv_log:close(Log).

%% What users have stored is not for logs.
%% @private
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(#{state := #replica{name = Name}} = Status) -> weft_redact:status(Status, Name);
format_status(Status) -> weft_redact:status(Status, not_shown).

warned(Before, #replica{core = Core, name = Name}) ->
    Status = weft_kv_strong_acceptor_core:status(Core),
    ok = weft_kv_stats:replica(Status),
    case Status of
        forgotten when Before =/= forgotten ->
            logger:error("weft_kv: ~ts has lost what it had on disk. It does not vote until the "
                         "others have filled it, which a majority of its replicas can do", [Name]);
        voting when Before =:= forgotten ->
            logger:notice("weft_kv: ~ts was filled by the others, and votes again", [Name]);
        voting when Before =:= founding ->
            logger:notice("weft_kv: ~ts begins, without data. If this bucket had data before, all "
                          "its replicas have lost it: stop, and import a backup. The option "
                          "existing keeps that from happening", [Name]);
        _ -> ok
    end.

%% --- events -----------------------------------------------------------------------------------

event(Event, #replica{core = Core0} = Replica) ->
    {Core, Effects} = weft_kv_strong_acceptor_core:handle(Event, Core0),
    Done = settled(performed(Effects, Replica#replica{core = Core})),
    changed(weft_kv_strong_acceptor_core:status(Core0), weft_kv_strong_acceptor_core:status(Core),
            Done).

changed(Same, Same, Replica) ->
    Replica;
changed(Before, _Status, Replica) ->
    ok = warned(Before, Replica),
    candidate(Replica).

%% What it was before is forgotten, and it asks the others for what it has to know.
candidate(#replica{core = Core, rejoin = none, bucket = Bucket, partition = Partition,
                   options = Options} = Replica) ->
    case {weft_kv_strong_acceptor_core:status(Core),
          weft_kv_strong_acceptor_core:candidate(Core)} of
        {forgotten, none} ->
            candidate(written(event({candidate, crypto:strong_rand_bytes(16)}, Replica)));
        {forgotten, {ok, Identity}} ->
            Ref = weft_kv_strong_rejoin:start(Bucket, Partition, Options, Identity),
            Replica#replica{rejoin = Ref};
        _ -> Replica
    end;
candidate(Replica) ->
    Replica.

performed(Effects, Replica) -> lists:foldl(fun effect/2, Replica, Effects).

effect({append, Entry}, #replica{log = Log} = Replica) ->
    Replica#replica{log = weft_kv_log:append(Entry, Log)};
effect({reply, From, Reply}, Replica) ->
    ok = gen_server:reply(From, Reply),
    Replica;
effect({introduce, Node, Identity}, Replica) ->
    #replica{name = Name, configuration = Configuration} = Replica,
    Self = self(),
    Request = {introduce, 2, Configuration, {node(), Identity}},
    _ = spawn(fun() ->
                  Self ! {introduced, Node,
                          weft_kv_strong_request:call({Name, Node}, Request, ?ASK_MS)}
              end),
    Replica.

%% Nobody waits for what an introduction has shown. After an error it waits for the next commit.
written(#replica{log = Log0} = Replica) ->
    case weft_kv_log:commit(Log0) of
        {ok, Log} -> Replica#replica{log = Log};
        {error, _Reason, Log} -> Replica#replica{log = Log}
    end.

%% Answers wait until nothing more waits to be written with them.
settled(#replica{core = Core} = Replica) ->
    {message_queue_len, Waiting} = process_info(self(), message_queue_len),
    case weft_kv_strong_acceptor_core:held(Core) of
        0 -> Replica;
        Held when Waiting > 0, Held < ?HELD_MAX -> Replica;
        _ -> committed(Replica)
    end.

committed(#replica{log = Log0, core = Core0} = Replica) ->
    {Event, Log} = case weft_kv_log:commit(Log0) of
                       {ok, Done} -> {committed, Done};
                       {error, Reason, Kept} -> {{not_committed, Reason}, Kept}
                   end,
    {Core, Effects} = weft_kv_strong_acceptor_core:handle(Event, Core0),
    rewritten(Event, performed(Effects, Replica#replica{log = Log, core = Core,
                                                        is_behind = Event =/= committed})).

%% If there is no room for that, it goes on with the old file until that is twice as large.
rewritten(committed, #replica{log = Log0, core = Core} = Replica) ->
    case weft_kv_log:bytes(Log0) > rewrite_bytes(Replica) of
        false -> Replica;
        true ->
            Log = case weft_kv_log:rewrite(weft_kv_strong_acceptor_core:entries(Core), Log0) of
                      {ok, New} -> New;
                      {error, Reason, Old} ->
                          logger:warning("weft_kv: ~0tp", [Reason]),
                          Old
                  end,
            Replica#replica{log = Log, rewritten_bytes = weft_kv_log:bytes(Log)}
    end;
rewritten(_NotCommitted, Replica) ->
    Replica.

rewrite_bytes(#replica{turn = Turn, rewritten_bytes = Before}) ->
    max((1 + Turn) * ?REWRITE_BYTES, (2 + Turn) * Before).

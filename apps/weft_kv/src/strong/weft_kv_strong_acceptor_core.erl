%% SPDX-License-Identifier: Apache-2.0
%% @doc A replica of one partition of a strong bucket: what it has promised and accepted for each
%% key, and whether it may vote at all. Pure. The other half is `weft_kv_strong_proposer_core'.
%%
%% Each key is a register of its own: Paxos for one value that is replaced by the next one
%% (CASPaxos,
%% Rystsov 2018), so there is no leader and no log. A *ballot* `{Counter, Id}' belongs to one
%% attempt
%% of one request.
%% <ul>
%% <li>`{read, Key}' is answered with what was accepted last, `{state, Ballot, State}'.</li>
%% <li>`{prepare, Key, Ballot}': from now on nothing below this ballot is accepted. The answer is
%%     `{promise, Accepted, State}'.</li>
%% <li>`{accept, Key, Ballot, State}': it is accepted unless a higher ballot was promised.</li>
%% <li>`{keys, After, Max}' is answered with keys behind that one, `{keys, Keys, IsLast}': those
%%     that were promised or accepted, in their order.</li>
%% <li>What can not be promised or accepted any more is answered with `{refused, Promised}'.</li>
%% </ul>
%% No answer leaves before all that it says is on disk: answers are held until the event
%% `committed'.
%% That goes for what was only read, too.
%%
%% A replica that forgot must not vote: what it has promised and accepted may be what a majority
%% counted on. So each replica draws an identity when its file is made, and votes when all others
%% have written that identity down. They never take another one. A replica whose file is lost has
%% another identity and is told so (`forgotten'). As a consequence all replicas have to be there
%% once
%% before the first vote. One whose file was damaged is `forgotten' from the start. The file says
%% so, and it stays so whatever becomes of the others and of the file that was put aside. If all
%% files of a partition are lost, nobody is left who could tell: the replicas begin anew, unless
%% they were told that there was a file (`existing').
%%
%% Events: `{vote, Ref, Message}', `{introduce, Ref, Node, Identity}', `{introduced, Node, welcome |
%% forgotten}', `introduce' (time to introduce itself again), `committed', `{not_committed,
%% Reason}'.
%% Effects: `{append, Entry}', `{reply, Ref, Reply}', `{introduce, Node, Identity}'.
-module(weft_kv_strong_acceptor_core).

-export([init/2, handle/2, status/1, entries/1, is_holding/1, held/1]).
-export_type([state/0, ballot/0, message/0, reply/0, entry/0, status/0, identity/0, content/0]).

-type ballot() :: {Counter :: non_neg_integer(), Id :: binary()}.
-type content() :: {Writes :: non_neg_integer(), Last :: [binary()], binary() | not_found}.
%% How many writes there were, the ids of the last ones, and the value.
-type identity() :: binary().
-type status() :: founding | voting | forgotten.
-type message() :: {read, binary()} | {keys, After :: binary(), Max :: pos_integer()}
                 | {prepare, binary(), ballot()}
                 | {accept, binary(), ballot(), content()}.
-type reply() :: {state, ballot(), content()} | {keys, [binary()], IsLast :: boolean()}
               | {promise, ballot(), content()} | accepted
               | {refused, ballot()} | {error, founding | forgotten | full | {failed, term()}}.
-type entry() :: {identity, identity(), Configuration :: term()} | {known, node(), identity()}
               | founded | forgotten | {promised, binary(), ballot()}
               | {accepted, binary(), ballot(), content()}.

-record(acceptor, {identity :: identity(),
                   configuration :: term(),
                   others :: [node()],
                   status :: status(),
                   known = #{} :: #{node() => identity()},
                   welcome = [] :: [node()],
                   keys_max :: pos_integer(),
                   registers = #{} :: #{binary() => {ballot(), ballot(), content()}},
                   held = [] :: [{term(), term()}]}).
-opaque state() :: #acceptor{}.

-define(NONE, {0, <<>>}).
-define(NOTHING, {?NONE, ?NONE, {0, [], not_found}}).

%% @doc A replica with the entries of its file, in their order. Options: `identity' (of a new file),
%% `others' (the nodes of the other replicas), `configuration' (of the bucket; it can not be changed
%% later), `keys_max', `damaged' (the file has lost entries), `existing' (there was a file before).
-spec init(#{identity := identity(), others := [node()], configuration := term(),
             keys_max := pos_integer(), damaged := boolean(), existing := boolean()},
           [entry()]) ->
          {ok, state(), [term()]} | {error, {other_configuration, term()}}.
init(#{identity := Fresh, others := Others, configuration := Configuration, keys_max := Max,
       damaged := Damaged, existing := Existing}, Entries) ->
    New = #acceptor{identity = Fresh, configuration = Configuration, others = Others,
                    status = founding, keys_max = Max},
    State = lists:foldl(fun replay/2, New, Entries),
    case State of
        #acceptor{configuration = Other} when Other =/= Configuration ->
            {error, {other_configuration, Other}};
        #acceptor{status = forgotten} -> {ok, State, []};
        _ when Damaged -> {ok, State#acceptor{status = forgotten}, [{append, forgotten}]};
        _ when Entries =:= [], Existing ->
            {ok, State#acceptor{status = forgotten},
             [{append, {identity, Fresh, Configuration}}, {append, forgotten}]};
        _ when Entries =:= [] ->
            {Begun, Effects} = introduced(State),
            {ok, Begun, [{append, {identity, Fresh, Configuration}} | Effects]};
        _ ->
            {ok, State, []}
    end.

replay({identity, Identity, Configuration}, State) ->
    State#acceptor{identity = Identity, configuration = Configuration};
replay({known, Node, Identity}, #acceptor{known = Known} = State) ->
    State#acceptor{known = Known#{Node => Identity}};
replay(founded, State) ->
    State#acceptor{status = voting};
replay(forgotten, State) ->
    State#acceptor{status = forgotten};
replay({promised, Key, Ballot}, #acceptor{registers = Registers} = State) ->
    {_, Accepted, Content} = maps:get(Key, Registers, ?NOTHING),
    State#acceptor{registers = Registers#{Key => {Ballot, Accepted, Content}}};
replay({accepted, Key, Ballot, Content}, #acceptor{registers = Registers} = State) ->
    State#acceptor{registers = Registers#{Key => {Ballot, Ballot, Content}}}.

%% @doc May it vote?
-spec status(state()) -> status().
status(#acceptor{status = Status}) -> Status.

%% @doc A file with these entries says all that the present one says.
-spec entries(state()) -> [entry()].
entries(#acceptor{identity = Identity, configuration = Configuration, known = Known,
                  status = Status, registers = Registers}) ->
    [{identity, Identity, Configuration}]
        ++ [{known, Node, Its} || {Node, Its} <- lists:sort(maps:to_list(Known))]
        ++ [founded || Status =:= voting] ++ [forgotten || Status =:= forgotten]
        ++ lists:append([register_entries(Key, Register)
                         || {Key, Register} <- lists:sort(maps:to_list(Registers))]).

register_entries(Key, {Promised, Accepted, Content}) ->
    [{accepted, Key, Accepted, Content} || Accepted =/= ?NONE]
        ++ [{promised, Key, Promised} || Promised =/= Accepted].

%% @doc Do answers wait for the disk?
-spec is_holding(state()) -> boolean().
is_holding(#acceptor{held = Held}) -> Held =/= [].

%% @doc How many.
-spec held(state()) -> non_neg_integer().
held(#acceptor{held = Held}) -> length(Held).

%% @doc See above.
-spec handle(term(), state()) -> {state(), [term()]}.
handle({vote, Ref, Message}, #acceptor{status = voting} = State) ->
    vote(Ref, Message, State);
handle({vote, Ref, _Message}, #acceptor{status = Status} = State) ->
    {State, [{reply, Ref, {error, Status}}]};
handle({introduce, Ref, Node, Identity}, #acceptor{known = Known, others = Others} = State) ->
    case {lists:member(Node, Others), Known} of
        {true, #{Node := Identity}} -> hold(Ref, welcome, State);
        {true, #{Node := _Another}} -> hold(Ref, forgotten, State);
        {true, #{}} ->
            change(Ref, welcome, {known, Node, Identity}, State);
        {false, _} -> {State, [{reply, Ref, {error, no_replica}}]}
    end;
handle(introduce, #acceptor{status = founding, others = Others, identity = Identity,
                            welcome = Welcome} = State) ->
    {State, [{introduce, Node, Identity} || Node <- Others -- Welcome]};
handle(introduce, State) ->
    {State, []};
handle({introduced, Node, welcome}, #acceptor{status = founding, welcome = Welcome} = State) ->
    introduced(State#acceptor{welcome = lists:usort([Node | Welcome])});
handle({introduced, _Node, forgotten}, #acceptor{status = founding} = State) ->
    {State#acceptor{status = forgotten}, [{append, forgotten}]};
handle({introduced, _Node, _Late}, State) ->
    {State, []};
handle(committed, #acceptor{held = Held} = State) ->
    {State#acceptor{held = []}, [{reply, Ref, Reply} || {Ref, Reply} <- lists:reverse(Held)]};
handle({not_committed, Reason}, #acceptor{held = Held} = State) ->
    {State#acceptor{held = []}, [{reply, Ref, {error, {failed, Reason}}}
                                 || {Ref, _} <- lists:reverse(Held)]}.

introduced(#acceptor{welcome = Welcome, others = Others} = State) ->
    case Others -- Welcome of
        [] -> {State#acceptor{status = voting}, [{append, founded}]};
        _ -> {State, []}
    end.

%% --- votes ------------------------------------------------------------------------------------

vote(Ref, {read, Key}, #acceptor{registers = Registers} = State) ->
    {_, Accepted, Content} = maps:get(Key, Registers, ?NOTHING),
    hold(Ref, {state, Accepted, Content}, State);
vote(Ref, {keys, After, Max}, #acceptor{registers = Registers} = State) ->
    Keys = lists:sort([Key || Key <- maps:keys(Registers), Key > After]),
    Page = lists:sublist(Keys, Max),
    hold(Ref, {keys, Page, length(Page) =:= length(Keys)}, State);
vote(Ref, Message, #acceptor{registers = Registers, keys_max = Max} = State)
  when map_size(Registers) >= Max, not is_map_key(element(2, Message), Registers) ->
    {State, [{reply, Ref, {error, full}}]};
vote(Ref, {prepare, Key, Ballot}, #acceptor{registers = Registers} = State) ->
    case maps:get(Key, Registers, ?NOTHING) of
        {Promised, _, _} when Ballot < Promised ->
            hold(Ref, {refused, Promised}, State);
        {_, Accepted, Content} ->
            change(Ref, {promise, Accepted, Content}, {promised, Key, Ballot}, State)
    end;
vote(Ref, {accept, Key, Ballot, Content}, #acceptor{registers = Registers} = State) ->
    case maps:get(Key, Registers, ?NOTHING) of
        {Promised, _, _} when Ballot < Promised ->
            hold(Ref, {refused, Promised}, State);
        _ ->
            change(Ref, accepted, {accepted, Key, Ballot, Content}, State)
    end.

change(Ref, Reply, Entry, State) ->
    {Next, Effects} = hold(Ref, Reply, replay(Entry, State)),
    {Next, [{append, Entry} | Effects]}.

hold(Ref, Reply, #acceptor{held = Held} = State) ->
    {State#acceptor{held = [{Ref, Reply} | Held]}, []}.

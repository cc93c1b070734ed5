%% SPDX-License-Identifier: Apache-2.0
%% @doc A replica of one partition of a strong bucket: what it has promised and accepted for each
%% key, and whether it may vote at all. Pure. The other half is `weft_kv_strong_proposer_core'.
%%
%% Each key is a register of its own: Paxos for one value that is replaced by the next one
%% (CASPaxos, Rystsov 2018), so there is no leader and no log. A *ballot* `{Epoch, Counter, Id}'
%% belongs to one attempt of one request.
%% <ul>
%% <li>`{read, Key}' is answered with what was accepted last, `{state, Ballot, State}'.</li>
%% <li>`{prepare, Key, Ballot}': from now on nothing below this ballot is accepted. The answer is
%%     `{promise, Accepted, State}'.</li>
%% <li>`{accept, Key, Ballot, State}': it is accepted unless a higher ballot was promised.</li>
%% <li>`{keys, After, Max}' is answered with keys behind that one, `{keys, Keys, IsLast}': those
%%     that were promised or accepted, in their order.</li>
%% <li>`{registers, After}' is answered with what was accepted for keys behind that one,
%%     `{registers, [{Key, Ballot, State}], IsLast}', for a replica that has to be filled.</li>
%% <li>What can not be promised or accepted any more is answered with `{refused, Promised}'.</li>
%% </ul>
%% A key that was only promised is remembered like others: its promise may still be counted on.
%%
%% No answer leaves before all that it says is on disk: answers are held until the event
%% `committed'. That goes for what was only read, too.
%%
%% A replica that forgot must not vote: what it has promised and accepted may be what a majority
%% counted on. So each replica draws an identity when its file is made, and votes when all others
%% have written that identity down. They never take another one. A replica whose file is lost has
%% another identity and is told so (`forgotten'). As a consequence all replicas have to be there
%% once before the first vote. One whose file was damaged is `forgotten' from the start. If all
%% files of a partition are lost, nobody is left who could tell: the replicas begin anew, unless
%% they were told that there was a file (`existing').
%%
%% One that is `forgotten' becomes a *candidate*, with a new identity and nothing else. It votes
%% when the others have chosen members with that identity and have filled it, which
%% `weft_kv_strong_rejoin_core' sees to. Members are those of an epoch (`weft_kv_strong_members').
%% A vote is for the members of one epoch: a replica that knows later ones refuses it and names
%% them, and one that knows earlier ones only takes the later ones for its own. From then on nothing
%% can be done in the earlier epoch with its help, as its ballots are below those of the later one.
%%
%% Events: `{vote, Ref, Members, Message}', `{introduce, Ref, Node, Identity}', `{introduced, Node,
%% welcome | forgotten}', `introduce' (time to introduce itself again), `{candidate, Identity}'
%% (that nobody has had), `{fill, Ref, Step}' (of the candidate: `{members, Members}', `{registers,
%% Epoch, Registers}', `{filled, Epoch}'), `committed', `{not_committed, Reason}'.
%% Effects: `{append, Entry}', `{reply, Ref, Reply}', `{introduce, Node, Identity}'.
-module(weft_kv_strong_acceptor_core).

-export([init/2, handle/2, status/1, candidate/1, entries/1, is_holding/1, held/1]).
-export_type([state/0, ballot/0, message/0, reply/0, entry/0, status/0, identity/0, content/0,
              register/0]).

-type ballot() :: {weft_kv_strong_members:epoch(), Counter :: non_neg_integer(), Id :: binary()}.
-type content() :: {Writes :: non_neg_integer(), Last :: [binary()],
                    binary() | not_found | weft_kv_strong_members:members()}.
%% How many writes there were, the ids of the last ones, and the value.
-type register() :: {Key :: binary(), ballot(), content()}.
-type identity() :: binary().
-type status() :: founding | voting | forgotten.
-type message() :: {read, binary()} | {keys, After :: binary(), Max :: pos_integer()}
                 | {registers, After :: first | binary()}
                 | {prepare, binary(), ballot()}
                 | {accept, binary(), ballot(), content()}.
-type reply() :: {state, ballot(), content()} | {keys, [binary()], IsLast :: boolean()}
               | {registers, [register()], IsLast :: boolean()}
               | {promise, ballot(), content()} | accepted
               | {refused, ballot()}
               | {error, founding | forgotten | full | {failed, term()}
                       | {members, weft_kv_strong_members:members()}}.
-type entry() :: {identity, identity(), Configuration :: term()} | {known, node(), identity()}
               | founded | forgotten | {candidate, identity(), Damaged :: [file:filename()]}
               | {members, weft_kv_strong_members:members()}
               | {promised, binary(), ballot()} | {accepted, binary(), ballot(), content()}.

-define(NONE, {0, 0, <<>>}).
-define(NOTHING, {?NONE, ?NONE, {0, [], not_found}}).
-define(FOUNDERS, {0, #{}}).
%% Of an answer with registers, unless one alone is larger.
-define(PAGE_BYTES, 1000000).

-record(acceptor, {identity :: identity(),
                   configuration :: term(),
                   self :: node(),
                   others :: [node()],
                   status :: status(),
                   is_candidate = false :: boolean(),
                   %% Files that were put aside, and those of them that a candidate has made good.
                   damaged :: [file:filename()],
                   mended = [] :: [file:filename()],
                   members = ?FOUNDERS :: weft_kv_strong_members:members(),
                   known = #{} :: #{node() => identity()},
                   welcome = [] :: [node()],
                   keys_max :: pos_integer(),
                   registers = #{} :: #{binary() => {ballot(), ballot(), content()}},
                   %% Their keys: who asks for a page of them does not pay for all.
                   keys = gb_sets:new() :: gb_sets:set(binary()),
                   held = [] :: [{term(), term()}]}).
-opaque state() :: #acceptor{}.

%% @doc A replica with the entries of its file, in their order. Options: `identity' (of a new file),
%% `self' and `others' (the nodes of all replicas), `configuration' (of the bucket; it can not be
%% changed later), `keys_max', `damaged' (files of this replica that were put aside, as they have
%% lost entries), `existing' (there was a file before).
-spec init(#{identity := identity(), self := node(), others := [node()], configuration := term(),
             keys_max := pos_integer(), damaged := [file:filename()], existing := boolean()},
           [entry()]) ->
          {ok, state(), [term()]} | {error, {other_configuration, term()} | unknown_entries}.
init(#{identity := Fresh, self := Self, others := Others, configuration := Configuration,
       keys_max := Max, damaged := Damaged} = Options, Entries) ->
    New = #acceptor{identity = Fresh, configuration = Configuration, self = Self, others = Others,
                    status = founding, damaged = Damaged, keys_max = Max},
    case lists:all(fun is_known/1, Entries) of
        true -> resumed(lists:foldl(fun replay/2, New, Entries), Entries, Options);
        false -> {error, unknown_entries}
    end.

resumed(#acceptor{configuration = Other}, _Entries, #{configuration := Mine})
  when Other =/= Mine ->
    {error, {other_configuration, Other}};
resumed(#acceptor{mended = Mended, damaged = Damaged} = State, Entries, #{existing := Existing}) ->
    {Begun, Written} = begun(Entries, Existing, Damaged -- Mended, State),
    {ok, Begun, Written}.

%% Another version may have written others. What they promise is not known then.
is_known({identity, Identity, _Configuration}) -> is_binary(Identity);
is_known({known, Node, Identity}) -> is_atom(Node) andalso is_binary(Identity);
is_known(founded) -> true;
is_known(forgotten) -> true;
is_known({candidate, Identity, Damaged}) -> is_binary(Identity) andalso is_list(Damaged);
is_known({members, {Epoch, Replaced}}) -> is_integer(Epoch) andalso is_map(Replaced);
is_known({promised, Key, {_Epoch, _Counter, _Id}}) -> is_binary(Key);
is_known({accepted, Key, {_Epoch, _Counter, _Id}, {_, _, _}}) -> is_binary(Key);
is_known(_Other) -> false.

begun(_Entries, _Existing, [_ | _], State) ->
    {replay(forgotten, State), [{append, forgotten}]};
begun([_ | _], _Existing, [], State) ->
    {State, []};
begun([], true, [], State) ->
    {replay(forgotten, State), [first(State), {append, forgotten}]};
begun([], _Existing, [], State) ->
    {Begun, Effects} = introduced(State),
    {Begun, [first(State) | Effects]}.

first(#acceptor{identity = Identity, configuration = Configuration}) ->
    {append, {identity, Identity, Configuration}}.

replay({identity, Identity, Configuration}, State) ->
    State#acceptor{identity = Identity, configuration = Configuration};
replay({known, Node, Identity}, #acceptor{known = Known} = State) ->
    State#acceptor{known = Known#{Node => Identity}};
replay(founded, State) ->
    State#acceptor{status = voting, is_candidate = false};
replay(forgotten, State) ->
    State#acceptor{status = forgotten, is_candidate = false};
%% It has nothing but what it will be filled with.
replay({candidate, Identity, Damaged}, State) ->
    State#acceptor{status = forgotten, is_candidate = true, identity = Identity,
                   mended = Damaged, registers = #{}, keys = gb_sets:new()};
replay({members, Members}, State) ->
    State#acceptor{members = Members};
replay({promised, Key, Ballot}, #acceptor{registers = Registers} = State) ->
    {_, Accepted, Content} = maps:get(Key, Registers, ?NOTHING),
    registered(Key, {Ballot, Accepted, Content}, State);
replay({accepted, Key, Ballot, Content}, State) ->
    registered(Key, {Ballot, Ballot, Content}, State).

registered(Key, Register, #acceptor{registers = Registers, keys = Keys} = State) ->
    State#acceptor{registers = Registers#{Key => Register},
                   keys = case Registers of
                              #{Key := _} -> Keys;
                              #{} -> gb_sets:insert(Key, Keys)
                          end}.

%% @doc May it vote?
-spec status(state()) -> status().
status(#acceptor{status = Status}) -> Status.

%% @doc The identity with which it wants to vote again, if it is a candidate.
-spec candidate(state()) -> {ok, identity()} | none.
candidate(#acceptor{is_candidate = true, identity = Identity}) -> {ok, Identity};
candidate(#acceptor{}) -> none.

%% @doc A file with these entries says all that the present one says.
-spec entries(state()) -> [entry()].
entries(#acceptor{identity = Identity, configuration = Configuration, known = Known,
                  mended = Mended, is_candidate = IsCandidate, members = Members,
                  status = Status, registers = Registers}) ->
    [{identity, Identity, Configuration}]
        ++ [{candidate, Identity, Mended} || IsCandidate orelse Mended =/= []]
        ++ [{members, Members} || Members =/= ?FOUNDERS]
        ++ [{known, Node, Its} || {Node, Its} <- lists:sort(maps:to_list(Known))]
        ++ [founded || Status =:= voting]
        ++ [forgotten || Status =:= forgotten, not IsCandidate]
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
handle({vote, Ref, Members, Message}, #acceptor{status = voting, members = Mine} = State) ->
    case weft_kv_strong_members:compare(Members, Mine) of
        same -> vote(Ref, Message, State);
        earlier -> hold(Ref, {error, {members, Mine}}, State);
        later -> adopted(Ref, Members, Message, State)
    end;
handle({vote, Ref, _Members, _Message}, #acceptor{status = Status} = State) ->
    {State, [{reply, Ref, {error, Status}}]};
handle({introduce, Ref, Node, Identity}, #acceptor{known = Known, others = Others} = State) ->
    case {lists:member(Node, Others), Known} of
        {true, #{Node := Identity}} -> hold(Ref, welcome, State);
        {true, #{Node := _Another}} -> hold(Ref, forgotten, State);
        {true, #{}} -> met(Ref, Node, Identity, State);
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
    {replay(forgotten, State), [{append, forgotten}]};
handle({introduced, _Node, _Late}, State) ->
    {State, []};
handle({candidate, Identity}, #acceptor{status = forgotten, is_candidate = false,
                                        damaged = Damaged} = State) ->
    Entry = {candidate, Identity, Damaged},
    {replay(Entry, State), [{append, Entry}]};
handle({fill, Ref, Step}, #acceptor{is_candidate = true} = State) ->
    filled(Ref, Step, State);
handle({fill, Ref, _Step}, State) ->
    {State, [{reply, Ref, {error, no_candidate}}]};
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

%% Who has replaced others, or was replaced, can not tell a founder from one that has lost its file.
met(Ref, Node, Identity, #acceptor{status = Status, members = ?FOUNDERS} = State)
  when Status =/= forgotten ->
    change(Ref, welcome, {known, Node, Identity}, State);
met(Ref, _Node, _Identity, State) ->
    hold(Ref, forgotten, State).

%% --- members ----------------------------------------------------------------------------------

%% Another may be in its place, if its file was away for a while.
adopted(Ref, Members, Message, #acceptor{self = Self, identity = Identity} = State0) ->
    State = replay({members, Members}, State0),
    case weft_kv_strong_members:is_replaced(Self, Identity, Members) of
        false ->
            {Next, Effects} = vote(Ref, Message, State),
            {Next, [{append, {members, Members}} | Effects]};
        true ->
            {Next, Effects} = change(Ref, {error, forgotten}, forgotten, State),
            {Next, [{append, {members, Members}} | Effects]}
    end.

filled(Ref, {members, Members}, State) ->
    change(Ref, ok, {members, Members}, State);
filled(Ref, {registers, Epoch, Registers}, #acceptor{members = {Epoch, _}} = State0) ->
    New = [{accepted, Key, Ballot, Content}
           || {Key, Ballot, Content} <- Registers, Ballot > accepted(Key, State0)],
    {State, Effects} = hold(Ref, ok, lists:foldl(fun replay/2, State0, New)),
    {State, [{append, Entry} || Entry <- New] ++ Effects};
filled(Ref, {filled, Epoch}, #acceptor{members = {Epoch, _}} = State) ->
    change(Ref, ok, founded, State);
filled(Ref, _OfAnotherEpoch, State) ->
    {State, [{reply, Ref, {error, other_members}}]}.

accepted(Key, #acceptor{registers = Registers}) ->
    {_, Accepted, _} = maps:get(Key, Registers, ?NOTHING),
    Accepted.

%% --- votes ------------------------------------------------------------------------------------

vote(Ref, {read, Key}, #acceptor{registers = Registers} = State) ->
    {_, Accepted, Content} = maps:get(Key, Registers, ?NOTHING),
    hold(Ref, {state, Accepted, Content}, State);
vote(Ref, {keys, After, Max}, State) ->
    {Page, IsLast} = keys(behind(After, State), Max, []),
    hold(Ref, {keys, Page, IsLast}, State);
vote(Ref, {registers, After}, #acceptor{registers = Registers} = State) ->
    {Page, IsLast} = page(accepted_next(behind(After, State), Registers), Registers, ?PAGE_BYTES,
                          []),
    hold(Ref, {registers, Page, IsLast}, State);
vote(Ref, Message, State) ->
    case is_full(element(2, Message), State) of
        true -> {State, [{reply, Ref, {error, full}}]};
        false -> written(Ref, Message, State)
    end.

%% For the members there is always room: a full replica can be lost, too.
is_full(Key, #acceptor{registers = Registers, keys_max = Max}) ->
    map_size(Registers) >= Max andalso not is_map_key(Key, Registers)
        andalso Key =/= weft_kv_strong_members:key().

%% What it was asked before is not written once more: that would cost the sync for which who asks
%% again is waiting.
written(Ref, {prepare, Key, Ballot}, #acceptor{registers = Registers} = State) ->
    case maps:get(Key, Registers, ?NOTHING) of
        {Promised, _, _} when Ballot < Promised ->
            hold(Ref, {refused, Promised}, State);
        {Ballot, Accepted, Content} ->
            hold(Ref, {promise, Accepted, Content}, State);
        {_, Accepted, Content} ->
            change(Ref, {promise, Accepted, Content}, {promised, Key, Ballot}, State)
    end;
written(Ref, {accept, Key, Ballot, Content}, #acceptor{registers = Registers} = State) ->
    case maps:get(Key, Registers, ?NOTHING) of
        {Ballot, Ballot, Content} ->
            hold(Ref, accepted, State);
        {Promised, _, _} when Ballot < Promised ->
            hold(Ref, {refused, Promised}, State);
        _ ->
            change(Ref, accepted, {accepted, Key, Ballot, Content}, State)
    end.

%% --- pages ------------------------------------------------------------------------------------

behind(first, #acceptor{keys = Keys}) -> gb_sets:iterator(Keys);
behind(After, #acceptor{keys = Keys}) -> gb_sets:iterator_from(<<After/binary, 0>>, Keys).

keys(Iterator, Left, Page) ->
    case gb_sets:next(Iterator) of
        none -> {lists:reverse(Page), true};
        {_Key, _} when Left =:= 0 -> {lists:reverse(Page), false};
        {Key, Next} -> keys(Next, Left - 1, [Key | Page])
    end.

page(none, _Registers, _Left, Page) ->
    {lists:reverse(Page), true};
page({_Register, _Next}, _Registers, Left, [_ | _] = Page) when Left =< 0 ->
    {lists:reverse(Page), false};
page({Register, Next}, Registers, Left, Page) ->
    page(accepted_next(Next, Registers), Registers, Left - erlang:external_size(Register),
         [Register | Page]).

%% What was only promised has nothing to fill a replica with.
accepted_next(Iterator, Registers) ->
    case gb_sets:next(Iterator) of
        none -> none;
        {Key, Next} ->
            case Registers of
                #{Key := {_, ?NONE, _}} -> accepted_next(Next, Registers);
                #{Key := {_, Accepted, Content}} -> {{Key, Accepted, Content}, Next}
            end
    end.

%% --- changes ----------------------------------------------------------------------------------

change(Ref, Reply, Entry, State) ->
    {Next, Effects} = hold(Ref, Reply, replay(Entry, State)),
    {Next, [{append, Entry} | Effects]}.

hold(Ref, Reply, #acceptor{held = Held} = State) ->
    {State#acceptor{held = [{Ref, Reply} | Held]}, []}.

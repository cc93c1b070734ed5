%% SPDX-License-Identifier: Apache-2.0
%% @doc Retires actors that have ended: former runs of the members, and all runs of nodes that are
%% gone for good. A part of `weft_crdt_core', which carries out its actions.
%%
%% It needs a *strict view*: all members have to answer, and hold the same of these actors. As those
%% have ended, and nobody else has anything of them, that stays so whatever happens then, and each
%% store can fold it for itself at any time. So agreement is needed about one thing only: that no
%% two different tables follow the same table.
%%
%% The node that is asked sends `{prepare, N, Table, View}' to all others. A store refuses with a
%% reason (`{refuse, N, Reason}'), or promises with the hash of what it holds (`{promise, N,
%% Hash}'). If all hashes are the same, `{commit, N}' follows; else `{abort, N}'. Who has promised N
%% takes over the table, and answers `{committed, N}'; the first of these answers lets the asking
%% node do the same. From then on the table spreads with what stores say to each other anyway.
%%
%% A promise holds for one attempt. It is given back at any time (the link ends, nothing comes, an
%% abort), because a commit without it is ignored. No number is promised again after that: numbers
%% grow, and those of a link end with the link. Two attempts do not both succeed: the nodes that
%% make them are in each other's view, and one that makes an attempt promises nothing. If the
%% asking node ends after it has sent a commit, either somebody has taken it over, and refuses all
%% other tables of that epoch, or nobody has.
%%
%% `{hello, Actor, Members}' tells neighbours the run of a store, so that all know that an older one
%% has ended: its link has, and with it what was on its way. Members are those that the sender knows
%% or, on a new link, nobody: `{hello, Actor, Hash}' later asks who knows other members to say so,
%% as not all members are neighbours all the time.
-module(weft_crdt_retirement).

-export([new/2, hello/1, greeting/3, is_heard/2, down/2, start/5, timer/2, message/5, retired/2]).
-export([is_message/1, stamped/2, judge/5, verdict/5]).
-export_type([retirement/0, action/0]).

-define(ANSWER_MS, 5000).
-define(PROMISE_MS, 15000).

-type table() :: weft_crdt_retired:table().
-type view() :: #{node() => weft_crdt_retired:incarnation()}.
-type action() :: {to, node(), Msg :: term()} | {reply, Ref :: term(), term()}
                | {after_ms, pos_integer(), term()}
                | {retire, table(), weft_crdt_entries:hash()}
                | {met, view()}.

-record(attempt, {
    n :: pos_integer(),
    ref :: term(),
    table :: table(),
    hash :: weft_crdt_entries:hash(),
    %% How many actors.
    count :: non_neg_integer(),
    %% All others of the view, and who has not promised, or not committed yet.
    others :: [node()],
    missing :: [node()],
    phase = prepare :: prepare | commit}).

-record(promise, {
    to :: node(),
    n :: pos_integer(),
    table :: table(),
    hash :: weft_crdt_entries:hash()}).

-record(retirement, {
    self :: node(),
    run :: weft_crdt_retired:incarnation(),
    %% The runs of the neighbours that have said it.
    heard = #{} :: view(),
    n = 0 :: non_neg_integer(),
    attempt = none :: none | #attempt{},
    promise = none :: none | #promise{},
    %% The last number of each neighbour on its link.
    last = #{} :: #{node() => pos_integer()}}).

-opaque retirement() :: #retirement{}.

-spec new(node(), weft_crdt_retired:incarnation()) -> retirement().
new(Self, Run) -> #retirement{self = Self, run = Run}.

%% @doc What a new neighbour hears.
-spec hello(retirement()) -> term().
hello(R) -> hello(#{}, R).

hello(Known, #retirement{self = Self, run = Run}) -> {hello, {Self, Run}, Known}.

%% @doc What a neighbour hears again, now and then. It says hello itself if it knows other members,
%% or if it was not heard yet.
-spec greeting(node(), weft_crdt_entries:entries(), retirement()) -> term().
greeting(To, Entries, #retirement{heard = Heard} = R) ->
    hello(case Heard of
              #{To := _} -> members_hash(Entries, R);
              #{} -> -1
          end, R).

%% @doc Whether a neighbour has said hello.
-spec is_heard(node(), retirement()) -> boolean().
is_heard(Node, #retirement{heard = Heard}) -> is_map_key(Node, Heard).

%% With this node, so that two that know each other and the same others have the same.
members_hash(Entries, #retirement{self = Self, run = Run}) ->
    erlang:phash2((weft_crdt_entries:members(Entries))#{Self => Run}).

%% @doc Whether a message is one of this module, or brings a table.
-spec is_message(term()) -> boolean().
is_message(Msg) when is_tuple(Msg), tuple_size(Msg) > 1 ->
    lists:member(element(1, Msg), [hello, prepare, promise, refuse, commit, committed, abort,
                                   retired]);
is_message(_) -> false.

%% @doc A message as it is sent.
-spec stamped(Msg :: term(), weft_crdt_entries:entries()) -> tuple().
stamped(Msg, Entries) ->
    Stamp = weft_crdt_entries:stamp(Entries),
    case Stamp =:= {0, 0} andalso not is_message(Msg) of
        true -> {weft_crdt, 1, Msg};
        false -> {weft_crdt, 2, Stamp, Msg}
    end.

%% @doc What to do with a message of a store whose table has that stamp. `take'; `tell' or `ask' for
%% the later table, and whether to take the message as well: what a store says that has fewer tables
%% merges, but comparing it would find all keys different.
-spec judge(node(), weft_crdt_retired:stamp(), Msg :: term(), weft_crdt_entries:entries(),
            retirement()) ->
          take | {tell | ask, IsTaken :: boolean()} | {refuse, Reason :: term()}.
judge(From, {Epoch, _} = Stamp, Msg, Entries, #retirement{heard = Heard}) ->
    {Own, _} = Here = weft_crdt_entries:stamp(Entries),
    IsOurs = is_message(Msg),
    IsHello = IsOurs andalso element(1, Msg) =:= hello,
    IsChange = is_tuple(Msg) andalso tuple_size(Msg) > 1
        andalso lists:member(element(1, Msg), [deltas, ack, serve]),
    if
        Stamp =:= Here -> take;
        Epoch =:= Own -> {refuse, {other_retired, Epoch}};
        IsOurs, not IsHello -> take;
        Epoch > Own -> {ask, IsHello};
        IsHello -> {tell, true};
        not is_map_key(From, Heard) -> {refuse, {unknown_version, older}};
        IsChange -> take;
        true -> {tell, false}
    end.

%% @doc What to do with a table that a neighbour has. A store whose own runs were retired without it
%% may have what nobody else has, and would lose it. One that was asked, and has lost the end of its
%% file since, had nothing that the others did not have.
-spec verdict(table() | term(), weft_crdt_entries:hash() | term(), IsDurable :: boolean(),
              weft_crdt_entries:entries(), retirement()) ->
          retire | known | malformed | {bar, Reason :: atom()}.
verdict(Table, Hash, IsDurable, Entries, #retirement{self = Self, run = Run}) ->
    Before = weft_crdt_entries:table(Entries),
    IsValid = weft_crdt_retired:is_valid(Table),
    IsNew = IsValid andalso weft_crdt_retired:epoch(Table) > weft_crdt_retired:epoch(Before),
    case {IsValid, IsNew andalso weft_crdt_retired:extends(Table, Before)} of
        {false, _} -> malformed;
        {true, false} when IsNew -> {bar, other_retired};
        {true, false} -> known;
        {true, true} ->
            case weft_crdt_retired:is_retired({Self, Run}, Table)
                orelse (IsDurable andalso was_gone(Self, Table, Entries)
                        andalso weft_crdt_entries:ended(Table, Entries) =/= Hash) of
                true -> {bar, retired};
                false -> retire
            end
    end.

was_gone(Self, Table, Entries) ->
    lists:any(fun({Node, _} = Actor) when Node =:= Self -> weft_crdt_retired:is_gone(Actor, Table);
                 (_) -> false
              end, weft_crdt_entries:actors(Entries)).

%% @doc The link to a neighbour has ended.
-spec down(node(), retirement()) -> {retirement(), [action()]}.
down(Node, #retirement{heard = Heard, last = Last} = R0) ->
    R = released(Node, any, R0#retirement{heard = maps:remove(Node, Heard),
                                          last = maps:remove(Node, Last)}),
    case R of
        #retirement{attempt = #attempt{phase = prepare, others = Others}} ->
            case lists:member(Node, Others) of
                true -> failed({absent, [Node]}, R);
                false -> {R, []}
            end;
        #retirement{} -> {R, []}
    end.

released(Node, N, #retirement{promise = #promise{to = Node, n = Promised}} = R)
  when N =:= any; N =:= Promised ->
    R#retirement{promise = none};
released(_, _, R) -> R.

%% @doc Retires former runs of all members, and these nodes, which are gone.
-spec start(Gone :: [node()] | term(), Ref :: term(), Neighbours :: [node()],
            weft_crdt_entries:entries(), retirement()) -> {retirement(), [action()]}.
start(Gone, Ref, Neighbours, Entries, R) ->
    case weft_value:is_atoms(Gone) andalso not_ready(Gone, Neighbours, Entries, R) of
        false -> {R, [{reply, Ref, {error, {bad_nodes, Gone}}}]};
        {error, Reason} -> {R, [{reply, Ref, {error, Reason}}]};
        ready -> attempt(Gone, Ref, Entries, R)
    end.

not_ready(Gone, Neighbours, Entries, #retirement{self = Self, heard = Heard} = R) ->
    Silent = Neighbours -- maps:keys(Heard),
    Full = weft_crdt_entries:is_full(Entries),
    Here = [Node || Node <- Gone, lists:member(Node, [Self | Neighbours])],
    Absent = lists:usort([Node || {Node, _} <- known(Entries)])
        -- [Self | maps:keys(Heard) ++ Gone],
    case R of
        #retirement{attempt = #attempt{}} -> {error, {busy, Self}};
        #retirement{promise = #promise{to = Other}} -> {error, {busy, Other}};
        _ when Full =/= false -> {error, {too_many_members, element(2, Full)}};
        _ when Silent =/= [] -> {error, {no_answer, lists:sort(Silent)}};
        _ when Here =/= [] -> {error, {present, Here}};
        _ when Absent =/= [] -> {error, {absent, Absent}};
        _ -> ready
    end.

%% All runs of which there is something to know.
known(Entries) ->
    [Actor || {Node, _} = Actor <- weft_crdt_entries:actors(Entries), is_atom(Node)]
        ++ maps:to_list(weft_crdt_entries:members(Entries)).

attempt(Gone, Ref, Entries, #retirement{self = Self, run = Run, heard = Heard} = R) ->
    View = Heard#{Self => Run},
    Ended = [Actor || {Node, Incarnation} = Actor <- known(Entries), is_integer(Incarnation),
                      lists:member(Node, Gone) orelse Incarnation < maps:get(Node, View, 0)],
    Last = maps:map(fun(_, Runs) -> lists:max(Runs) end,
                    maps:groups_from_list(fun({Node, _}) -> Node end, fun({_, I}) -> I end, Ended)),
    case weft_crdt_retired:next(Last, Gone, weft_crdt_entries:table(Entries)) of
        _ when Ended =:= [] -> {R, [{reply, Ref, {ok, 0}}]};
        {ok, Table} -> prepare(Table, View, Ref, length(lists:usort(Ended)), Entries, R);
        {error, Reason} -> {R, [{reply, Ref, {error, Reason}}]}
    end.

prepare(Table, View, Ref, Count, Entries, #retirement{self = Self, n = Before} = R) ->
    N = Before + 1,
    Others = maps:keys(maps:remove(Self, View)),
    Attempt = #attempt{n = N, ref = Ref, table = Table, count = Count, others = Others,
                       hash = weft_crdt_entries:ended(Table, Entries), missing = Others},
    {Begun, More} = decided(R#retirement{n = N, attempt = Attempt}),
    {Begun, [{to, Node, {prepare, N, Table, View}} || Node <- Others]
            ++ [{after_ms, ?ANSWER_MS, {retirement, {attempt, N}}} | More]}.

decided(#retirement{attempt = #attempt{others = [], table = Table, hash = Hash}} = R) ->
    {R, [{retire, Table, Hash}]};
decided(#retirement{attempt = #attempt{n = N, missing = [], others = Others} = Attempt} = R) ->
    {R#retirement{attempt = Attempt#attempt{phase = commit, missing = Others}},
     [{to, Node, {commit, N}} || Node <- Others]};
decided(R) -> {R, []}.

failed(Reason, #retirement{attempt = #attempt{n = N, ref = Ref, others = Others}} = R) ->
    {R#retirement{attempt = none},
     [{reply, Ref, {error, Reason}} | [{to, Node, {abort, N}} || Node <- Others]]}.

%% @doc Whoever has not answered in time, and a promise that nobody has asked for in time.
-spec timer({attempt, pos_integer()} | {promise, node(), pos_integer()}, retirement()) ->
          {retirement(), [action()]}.
timer({attempt, N}, #retirement{attempt = #attempt{n = N, missing = Missing}} = R) ->
    failed({no_answer, lists:sort(Missing)}, R);
timer({promise, Node, N}, R) -> {released(Node, N, R), []};
timer(_, R) -> {R, []}.

%% @doc The store has a new table, and this is what it says to those that it knows.
-spec retired(table(), retirement()) -> {retirement(), [action()]}.
retired(Table, #retirement{attempt = #attempt{ref = Ref, table = Own, count = Count}} = R) ->
    {R#retirement{attempt = none, promise = none},
     [{reply, Ref, case Own of
                       Table -> {ok, Count};
                       _ -> {error, {busy, R#retirement.self}}
                   end}]};
retired(_, R) -> {R#retirement{promise = none}, []}.

%% @doc A message of a neighbour.
-spec message(node(), term(), Neighbours :: [node()], weft_crdt_entries:entries(), retirement()) ->
          {weft_crdt_entries:entries(), retirement(), [action()]} | malformed.
message(From, {hello, {From, Run}, Known}, _, Entries0, #retirement{heard = Heard} = R)
  when is_integer(Run) ->
    Met = R#retirement{heard = Heard#{From => Run}},
    Named = case is_map(Known) of
                true -> (maps:remove(R#retirement.self, Known))#{From => Run};
                false when is_integer(Known) -> #{From => Run};
                false -> malformed
            end,
    case weft_crdt_entries:meet(Named, Entries0) of
        {malformed, _} -> malformed;
        {Is, Entries} ->
            Same = members_hash(Entries, Met),
            {Entries, Met, [{met, New} || {new, New} <- [Is]]
                 ++ [{to, From, hello(weft_crdt_entries:members(Entries), Met)}
                     || is_integer(Known), Known =/= Same]}
    end;
message(From, {prepare, N, Table, View}, Neighbours, Entries, R)
  when is_integer(N), N > 0, is_map(View) ->
    case weft_crdt_retired:is_valid(Table) of
        true -> prepared(From, N, Table, View, Neighbours, Entries, R);
        false -> malformed
    end;
message(From, Msg, _, Entries, R0) ->
    case answered(From, Msg, R0) of
        {R, Actions} -> {Entries, R, Actions};
        malformed -> malformed
    end.

prepared(From, N, Table, View, Neighbours, Entries, #retirement{last = Last} = R) ->
    case maps:get(From, Last, 0) < N of
        true ->
            Noted = released(From, any, R#retirement{last = Last#{From => N}}),
            case refusal(Table, View, Neighbours, Entries, Noted) of
                none -> promised(From, N, Table, Entries, Noted);
                Reason -> {Entries, Noted, [{to, From, {refuse, N, Reason}}]}
            end;
        %% It was doubled, and perhaps given up meanwhile.
        false -> {Entries, R, []}
    end.

promised(From, N, Table, Entries, R) ->
    Hash = weft_crdt_entries:ended(Table, Entries),
    {Entries, R#retirement{promise = #promise{to = From, n = N, table = Table, hash = Hash}},
     [{to, From, {promise, N, Hash}}, {after_ms, ?PROMISE_MS, {retirement, {promise, From, N}}}]}.

%% What speaks against it here: another attempt, or a run of somebody that the view does not have.
refusal(_, _, _, _, #retirement{self = Self, attempt = #attempt{}}) -> {busy, Self};
refusal(_, _, _, _, #retirement{promise = #promise{to = Other}}) -> {busy, Other};
refusal(Table, View, Neighbours, Entries, #retirement{self = Self, run = Run, heard = Heard}) ->
    Here = Heard#{Self => Run},
    Before = weft_crdt_entries:table(Entries),
    Follows = weft_crdt_retired:epoch(Table) =:= weft_crdt_retired:epoch(Before) + 1
        andalso weft_crdt_retired:extends(Table, Before),
    Live = [Actor || Actor <- maps:to_list(Here) ++ maps:to_list(View),
                     weft_crdt_retired:is_retired(Actor, Table)],
    Others = [Node || {Node, Incarnation} <- maps:to_list(Here),
                      maps:get(Node, View, Incarnation) =/= Incarnation],
    Absent = lists:usort([Node || {Node, _} = Actor <- known(Entries) ++ maps:to_list(Here),
                                  not is_map_key(Node, View),
                                  not weft_crdt_retired:is_retired(Actor, Table)]),
    case {Follows, Neighbours -- maps:keys(Heard)} of
        {false, _} -> {behind, [Self]};
        {true, [_ | _] = Silent} -> {no_answer, lists:sort(Silent)};
        _ when Live =/= [] -> {present, lists:usort([Node || {Node, _} <- Live])};
        _ when Others =/= [] -> {changed, lists:sort(Others)};
        _ when Absent =/= []; not is_map_key(Self, View) -> {absent, Absent};
        _ -> none
    end.

answered(From, {promise, N, Hash}, #retirement{attempt = #attempt{n = N, phase = prepare,
                                                                  hash = Hash} = Attempt} = R) ->
    Missing = lists:delete(From, Attempt#attempt.missing),
    decided(R#retirement{attempt = Attempt#attempt{missing = Missing}});
answered(From, {promise, N, _}, #retirement{attempt = #attempt{n = N, phase = prepare}} = R) ->
    failed({behind, [From]}, R);
answered(_, {refuse, N, Reason}, #retirement{attempt = #attempt{n = N, phase = prepare}} = R) ->
    failed(Reason, R);
answered(From, {commit, N}, #retirement{promise = #promise{to = From, n = N, table = Table,
                                                           hash = Hash}} = R) ->
    {R, [{retire, Table, Hash}, {to, From, {committed, N}}]};
answered(_, {committed, N}, #retirement{attempt = #attempt{n = N, phase = commit, table = Table,
                                                           hash = Hash}} = R) ->
    {R, [{retire, Table, Hash}]};
answered(From, {abort, N}, R) -> {released(From, N, R), []};
answered(_, {Kind, N}, R) when Kind =:= commit; Kind =:= committed ->
    case is_integer(N) of true -> {R, []}; false -> malformed end;
answered(_, {Kind, _, _}, R) when Kind =:= promise; Kind =:= refuse -> {R, []};
answered(_, _, _) -> malformed.

%% SPDX-License-Identifier: Apache-2.0
%% @doc One request to the replicas of a key: who is asked, when there is an answer, and what is
%% repaired. Pure.
%%
%% A read asks all replicas. When `r' of them have answered, `pr' of these as owners, the answer is
%% what they know together. When the others have answered too, those that did not know all of it
%% get it (read repair). A replica that may have forgotten what it had (`weft_kv_recall') says so:
%% what it has is heard, but it counts for `r' only if all that were asked have answered, and for
%% `pr' if these are all owners of the key. Then there is no more to be known.
%%
%% A write first goes to one replica, which gives it a dot. The object that results goes to the
%% others, which merge it with theirs. The answer comes when `w' replicas have it, `pw' of them as
%% owners, on `nodes' different nodes. If the first replica refuses or does not answer, the next one
%% is asked: then the value may be there twice, as siblings with the same bytes. Who replaces or
%% deletes one of them may not know of the other one, which then comes back. So if the first one
%% answers late, its dot is taken back. An object from elsewhere (`merge') goes the same way, and
%% gets no dot.
%%
%% A replica with too many siblings ends a write: others have them, too, or will have them.
%%
%% If there can not be enough answers any more, the error says so at once. After an error a write
%% may still have reached some replicas, and then it is found later.
%%
%% Events: `{reply, Place, {ok, Object} | {incomplete, Object} | {error, Reason}}' (the second only
%% to a `read'), `{timer, Timer}'.
%% Effects: `{ask, Place, read | {write, Value, Seen} | {merge, Object}}', `{answer, {ok, Object} |
%% {error, Reason}}', `{after_ms, Ms, Timer}', `done' (there is nothing more to come). Repairs are
%% merges whose reply nobody waits for: `{repair, Place, Object}'. `{suspect, Place}': it was to
%% give a dot and did not answer; whoever writes next may ask others before it.
-module(weft_kv_coordinator_core).

-export([init/3, handle/2, again/1, is_moved/1, may_be_twice/1]).
-export_type([state/0, request/0, place/0, error/0]).

-type place() :: {Partition :: non_neg_integer(), node(), primary | fallback}.
-type request() :: read | {write, weft_kv_object:value(), weft_kv_object:vector()}
                 | {merge, weft_kv_object:object()}.
-type error() :: {too_few, #{needed := map(), answered := non_neg_integer(),
                             failed := [{node(), term()}]}}
               | {too_many_siblings, Max :: pos_integer()}
               | timeout.

-record(coordinator, {
    kind :: read | write,
    request :: request(),
    options :: weft_kv_bucket:options(),
    places :: [place()],
    %% Who has not answered yet, of those that were asked.
    open :: [place()],
    %% Who may give the write its dot, if those before can not.
    spare = [] :: [place()],
    %% Who was asked for one and did not answer in time, and what they have answered since.
    late = [] :: [place()],
    twice = [] :: [weft_kv_object:object()],
    answered = [] :: [{place(), weft_kv_object:object()}],
    %% Those of them that may have forgotten something.
    incomplete = [] :: [place()],
    failed = [] :: [{place(), term()}],
    object = none :: none | weft_kv_object:object(),
    told = false :: boolean()}).

-opaque state() :: #coordinator{}.

%% @doc Begins, with the replicas in the order of preference.
-spec init(request(), [place()], weft_kv_bucket:options()) -> {state(), [term()]}.
init(Request, Places, #{timeout_ms := TimeoutMs} = Options) ->
    Kind = case Request of read -> read; _ -> write end,
    State = #coordinator{kind = Kind, request = Request, options = Options, places = Places,
                         open = []},
    case is_possible(Places, State) of
        false -> told(too_few(State), State);
        true when Kind =:= read ->
            {State#coordinator{open = Places},
             [{ask, Place, read} || Place <- Places] ++ [{after_ms, TimeoutMs, deadline}]};
        true ->
            %% Owners first: what only others have has to be moved later.
            {Owners, Others} = lists:partition(fun is_primary/1, Places),
            {Next, Effects} = first(State#coordinator{spare = Owners ++ Others}),
            {Next, Effects ++ [{after_ms, TimeoutMs, deadline}]}
    end.

%% @doc See above.
-spec handle(term(), state()) -> {state(), [term()]}.
handle({reply, Place, Reply}, #coordinator{open = Open, late = Late} = State) ->
    case lists:member(Place, Open) of
        true -> reply(Place, Reply, State#coordinator{open = lists:delete(Place, Open)});
        false ->
            case lists:member(Place, Late) of
                true -> late(Reply, State#coordinator{late = lists:delete(Place, Late)});
                false -> {State, []}
            end
    end;
handle({timer, deadline}, #coordinator{told = false} = State0) ->
    {State, Effects} = answer({error, timeout}, State0),
    {State, Effects ++ repairs(State) ++ [done]};
handle({timer, deadline}, State) ->
    {State#coordinator{open = []}, repairs(State) ++ [done]};
%% The one that was to give the dot does not answer.
handle({timer, {first, Place}}, #coordinator{object = none, open = Open} = State) ->
    case lists:member(Place, Open) of
        true ->
            {Next, Effects} = reply(Place, {error, timeout}, without_answer(Place, State)),
            {Next, [{suspect, Place} | Effects]};
        false -> {State, []}
    end;
handle({timer, _Outdated}, State) ->
    {State, []}.

%% @doc What may be asked once more after an error, so that both together do no more than one of
%% them.
%% A write that has its dot keeps it: then the object is merged, which may be done twice. One of
%% which nobody can have made anything begins anew. `none': a replica may have given it a dot of
%% which nothing was heard. A second one would bring the value back beside what has replaced it
%% meanwhile.
%% `moved': nothing has failed but that other nodes have the partitions by now.
-spec again(state()) -> {ok | moved, request()} | none.
again(#coordinator{failed = Failed} = State) ->
    case repeatable(State) of
        none -> none;
        Request ->
            case Failed =/= [] andalso lists:all(fun({_, Reason}) -> is_moved(Reason) end,
                                                 Failed) of
                true -> {moved, Request};
                false -> {ok, Request}
            end
    end.

repeatable(#coordinator{kind = read}) ->
    read;
repeatable(#coordinator{object = none, request = {merge, _} = Request}) ->
    Request;
repeatable(#coordinator{object = none, open = [], failed = Failed, request = Request}) ->
    case lists:all(fun({_, Reason}) -> has_done_nothing(Reason) end, Failed) of
        true -> Request;
        false -> none
    end;
repeatable(#coordinator{object = none}) ->
    none;
repeatable(#coordinator{object = Object}) ->
    {merge, Object}.

%% @doc After the answer: is one waited for that may have given the write another dot, and would say
%% so? Whoever gives up waiting (as with `{timer, deadline}') can not take that back.
-spec may_be_twice(state()) -> boolean().
may_be_twice(#coordinator{late = Late}) -> Late =/= [].

%% @doc Does a replica fail like this because another node has the partition by now? (A process that
%% was not killed ends when that is so. What it was asked at last may have been done before.)
-spec is_moved(Reason :: term()) -> boolean().
is_moved({unknown, Ended}) -> Ended =:= normal orelse Ended =:= noproc;
is_moved(Reason) -> Reason =:= moved orelse Reason =:= not_owner.

has_done_nothing(Reason) ->
    lists:member(Reason, [moved, not_owner, overload, no_vnode, no_ring, full, not_written]).

%% --- answers of replicas ----------------------------------------------------------------------

reply(Place, {error, Reason}, #coordinator{failed = Failed} = State0) ->
    State = State0#coordinator{failed = [{Place, Reason} | Failed]},
    case {State, Reason} of
        {#coordinator{kind = write, object = none, told = false}, {too_many_siblings, _}} ->
            told(crowded(Reason, Failed, State), State);
        {#coordinator{kind = write, object = none, told = false}, _} -> first(State);
        _ -> checked(State)
    end;
reply(Place, {ok, Object}, #coordinator{kind = write, object = none} = State0) ->
    #coordinator{places = Places, failed = Failed} = State0,
    %% Those that could not be the first are not asked again.
    Others = [P || P <- Places, P =/= Place, not is_gone(P, Failed)],
    {State1, Once} = once(State0#coordinator{object = Object, open = Others, spare = [],
                                             answered = [{Place, Object}]}),
    {State, More} = checked(State1),
    Effects = Once ++ More,
    {State, [{ask, P, {merge, Object}} || P <- Others] ++ Effects};
reply(Place, {incomplete, Object}, #coordinator{incomplete = Incomplete} = State) ->
    reply(Place, {ok, Object}, State#coordinator{incomplete = [Place | Incomplete]});
reply(Place, {ok, Object}, #coordinator{answered = Answered} = State) ->
    checked(State#coordinator{answered = [{Place, Object} | Answered]}).

%% Those that were asked before may have done it.
crowded(Reason, Before, State) ->
    case lists:all(fun({_, Other}) -> has_done_nothing(Other) end, Before) of
        true -> {error, Reason};
        false -> too_few(State)
    end.

is_gone(Place, Failed) -> lists:keymember(Place, 1, Failed).

without_answer(Place, #coordinator{request = {write, _, _}, late = Late} = State) ->
    State#coordinator{open = [], late = [Place | Late]};
without_answer(_Place, State) ->
    State#coordinator{open = []}.

late({error, _}, State) ->
    finished_if_told([], State);
late({ok, Object}, #coordinator{twice = Twice} = State0) ->
    {State, Effects} = once(State0#coordinator{twice = [Object | Twice]}),
    finished_if_told(Effects, State).

finished_if_told(Effects, #coordinator{told = false} = State) ->
    {State, Effects};
finished_if_told(Effects, State0) ->
    {State, More} = finished(State0),
    {State, Effects ++ More}.

%% Repairs after which the write is there once. Others may have heard of the second one by now.
once(#coordinator{object = Object, twice = [_ | _] = Twice, request = {write, Value, _},
                  places = Places} = State) when Object =/= none ->
    {State#coordinator{twice = []},
     [{repair, Place, Both} || Late <- Twice,
                               {ok, Both} <- [weft_kv_object:once(Value, Late, Object)],
                               Place <- Places]};
once(State) ->
    {State, []}.

first(#coordinator{spare = [Place | Spare], request = Request, options = Options} = State) ->
    #{timeout_ms := TimeoutMs} = Options,
    {State#coordinator{spare = Spare, open = [Place]},
     [{ask, Place, Request}, {after_ms, max(1, TimeoutMs div 4), {first, Place}}]};
first(#coordinator{spare = []} = State) ->
    told(too_few(State), State).

checked(#coordinator{told = false, answered = Answered, open = Open} = State) ->
    Got = [Place || {Place, _} <- Answered],
    case {is_enough(Got, State), is_possible(Got ++ Open, State)} of
        {true, _} ->
            {Next, Effects} = answer({ok, together(State)}, State),
            {Last, More} = finished(Next),
            {Last, Effects ++ More};
        {false, true} -> {State, []};
        {false, false} -> told(too_few(State), State)
    end;
checked(State) ->
    finished(State).

finished(#coordinator{open = [], late = Late, object = Object} = State)
  when Late =:= []; Object =:= none ->
    {State, repairs(State) ++ [done]};
finished(State) ->
    {State, []}.

is_enough(Places, State) -> is_possible(Places, State).

is_possible(Places, #coordinator{kind = read, options = #{r := R, pr := PR, n := N}} = State) ->
    #coordinator{places = All, incomplete = Incomplete} = State,
    {Answers, Owners} = weft_kv_recall:counting(Places, Incomplete, All, N),
    length(Answers) >= R andalso primaries(Owners) >= PR;
is_possible(Places, #coordinator{kind = write, options = #{w := W, pw := PW, nodes := Nodes}}) ->
    length(Places) >= W andalso primaries(Places) >= PW
        andalso length(lists:usort([Node || {_, Node, _} <- Places])) >= Nodes.

primaries(Places) -> length(lists:filter(fun is_primary/1, Places)).

is_primary({_, _, Role}) -> Role =:= primary.

%% --- the answer -------------------------------------------------------------------------------

answer(Answer, State) ->
    {State#coordinator{told = true}, [{answer, Answer}]}.

told(Error, State0) ->
    {State, Effects} = answer(Error, State0),
    {Last, More} = finished(State),
    {Last, Effects ++ More}.

too_few(#coordinator{kind = Kind, options = Options, answered = Answered, failed = Failed,
                     incomplete = Incomplete}) ->
    Needed = case Kind of
                 read -> maps:with([r, pr], Options);
                 write -> maps:with([w, pw, nodes], Options)
             end,
    {error, {too_few, #{needed => Needed, answered => length(Answered) - length(Incomplete),
                        failed => [{Node, Reason} || {{_, Node, _}, Reason} <- Failed]
                            ++ [{Node, incomplete} || {_, Node, _} <- Incomplete]}}}.

together(#coordinator{kind = write, object = Object}) ->
    Object;
together(#coordinator{answered = Answered, options = #{siblings := Siblings}}) ->
    lists:foldl(fun({_, Object}, Sum) -> weft_kv_object:merge(Object, Sum, Siblings) end,
                weft_kv_object:new(), Answered).

repairs(#coordinator{kind = write}) ->
    [];
repairs(#coordinator{answered = Answered} = State) ->
    All = together(State),
    [{repair, Place, All} || {Place, Object} <- Answered, Object =/= All].

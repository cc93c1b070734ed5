%% SPDX-License-Identifier: Apache-2.0
%% @doc How a replica that has lost its file votes again. Pure. The replica itself is a candidate in
%% `weft_kv_strong_acceptor_core'.
%%
%% First the members choose those of the next epoch, with the identity of the candidate in the place
%% of the one that was lost. That is a compare-and-set of a register of its own, so that two
%% candidates come one after the other. Then a majority of the partition's nodes is asked, without
%% the candidate, for all that they have accepted. Each takes over the new members before it
%% answers, and does nothing more in an earlier epoch. So what a majority has accepted before is
%% among the answers. If there are other members meanwhile, all begins anew.
%%
%% Between two pages of what it is told it rests, so that requests come between them. While no
%% majority votes, the candidate tries again, more and more seldom.
%%
%% Events: `{registered, Result}' (of a request for the register), `{reply, Node, Tag, Reply}',
%% `{stored, ok | {error, Reason}}' (of the last step), `{timer, Timer}'.
%% Effects: `{register, Request}', `{ask, Node, Tag, Members, Message}', `{fill, Step}' (for the
%% candidate), `{after_ms, Ms, Timer}', `done' (the last one).
-module(weft_kv_strong_rejoin_core).

-export([init/1, handle/2]).
-export_type([state/0]).

-record(rejoin, {self :: node(),
                 identity :: weft_kv_strong_acceptor_core:identity(),
                 others :: [node()],
                 needed :: pos_integer(),
                 timeout_ms :: pos_integer(),
                 pause_ms :: pos_integer(),
                 rest_ms :: non_neg_integer(),
                 phase = choosing :: choosing | joining | asking | filling | resting | finishing
                                   | waiting | done,
                 %% Those that were found, or are to be chosen.
                 members :: weft_kv_strong_members:members(),
                 %% Nodes that are to be asked, and the last key of the first one.
                 left = [] :: [node()],
                 last = first :: first | binary(),
                 complete = 0 :: non_neg_integer(),
                 tag = 0 :: non_neg_integer(),
                 tries = 0 :: non_neg_integer()}).
-opaque state() :: #rejoin{}.

-define(PAUSE_DOUBLINGS, 5).

%% @doc Begins. Options: `self', `identity' (of the candidate), `others' (the nodes of the other
%% replicas), `timeout_ms' (for one answer), `pause_ms' (the first one between two tries), `rest_ms'
%% (between two pages).
-spec init(#{self := node(), identity := weft_kv_strong_acceptor_core:identity(),
             others := [node()], timeout_ms := pos_integer(), pause_ms := pos_integer(),
             rest_ms := non_neg_integer()}) ->
          {state(), [term()]}.
init(#{self := Self, identity := Identity, others := Others, timeout_ms := TimeoutMs,
       pause_ms := PauseMs, rest_ms := RestMs}) ->
    chosen_before(#rejoin{self = Self, identity = Identity, others = Others,
                          needed = (length(Others) + 1) div 2 + 1, timeout_ms = TimeoutMs,
                          pause_ms = PauseMs, rest_ms = RestMs,
                          members = weft_kv_strong_members:founders()}).

%% @doc See above.
-spec handle(term(), state()) -> {state(), [term()]}.
handle({registered, Result}, #rejoin{phase = choosing} = State) ->
    registered(Result, State);
handle({stored, ok}, #rejoin{phase = joining, others = Others} = State) ->
    page(State#rejoin{left = Others, last = first, complete = 0});
handle({stored, ok}, #rejoin{phase = filling, complete = Needed, needed = Needed} = State) ->
    page(State);
handle({stored, ok}, #rejoin{phase = filling, tag = Before, rest_ms = RestMs} = State) ->
    Tag = Before + 1,
    {State#rejoin{phase = resting, tag = Tag}, [{after_ms, RestMs, {rest, Tag}}]};
handle({timer, {rest, Tag}}, #rejoin{phase = resting, tag = Tag} = State) ->
    page(State);
handle({stored, ok}, #rejoin{phase = finishing} = State) ->
    {State#rejoin{phase = done}, [done]};
handle({stored, {error, _}}, #rejoin{phase = Phase} = State)
  when Phase =:= joining; Phase =:= filling; Phase =:= finishing ->
    later(State);
handle({reply, Node, Tag, Reply}, #rejoin{phase = asking, tag = Tag, left = [Node | _]} = State) ->
    replied(Reply, State);
handle({timer, {asked, Tag}}, #rejoin{phase = asking, tag = Tag} = State) ->
    replied({error, timeout}, State);
handle({timer, {wait, Tag}}, #rejoin{phase = waiting, tag = Tag} = State) ->
    chosen_before(State);
handle(_Late, State) ->
    {State, []}.

chosen_before(State) ->
    {State#rejoin{phase = choosing}, [{register, get}]}.

registered({ok, Found}, State) ->
    choose(Found, State);
registered({error, {conflict, Found}}, State) ->
    choose(Found, State);
registered(ok, #rejoin{members = Members} = State) ->
    join(Members, State);
registered({error, _}, State) ->
    later(State).

choose(Found, #rejoin{self = Self, identity = Identity} = State) ->
    Members = case Found of
                  not_found -> weft_kv_strong_members:founders();
                  _ -> Found
              end,
    case weft_kv_strong_members:has(Self, Identity, Members) of
        true -> join(Members, State);
        false ->
            Next = weft_kv_strong_members:replace(Self, Identity, Members),
            {State#rejoin{members = Next}, [{register, {cas, Found, Next}}]}
    end.

join(Members, State) ->
    {State#rejoin{phase = joining, members = Members}, [{fill, {members, Members}}]}.

%% The next registers, of the first node that is left.
page(#rejoin{complete = Needed, needed = Needed, members = Members} = State) ->
    {State#rejoin{phase = finishing}, [{fill, {filled, weft_kv_strong_members:epoch(Members)}}]};
page(#rejoin{left = []} = State) ->
    later(State);
page(#rejoin{left = [Node | _], last = Last, members = Members, tag = Before,
             timeout_ms = Ms} = State) ->
    Tag = Before + 1,
    {State#rejoin{phase = asking, tag = Tag},
     [{ask, Node, Tag, Members, {registers, Last}}, {after_ms, Ms, {asked, Tag}}]}.

replied({registers, Registers, IsLast}, #rejoin{members = Members} = State) ->
    {(read(Registers, IsLast, State))#rejoin{phase = filling},
     [{fill, {registers, weft_kv_strong_members:epoch(Members), Registers}}]};
replied({error, {members, _Later}}, State) ->
    chosen_before(State);
replied(_Error, #rejoin{left = [_ | Left]} = State) ->
    page(State#rejoin{left = Left, last = first}).

read(_Registers, true, #rejoin{left = [_ | Left], complete = Complete} = State) ->
    State#rejoin{left = Left, last = first, complete = Complete + 1};
read(Registers, false, State) ->
    {Last, _, _} = lists:last(Registers),
    State#rejoin{last = Last}.

later(#rejoin{tries = Tries, tag = Before, pause_ms = PauseMs} = State) ->
    Tag = Before + 1,
    {State#rejoin{phase = waiting, tag = Tag, tries = Tries + 1},
     [{after_ms, PauseMs bsl min(Tries, ?PAUSE_DOUBLINGS), {wait, Tag}}]}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc A ring as one node knows it: registers that any two nodes can merge, in any order and as
%% often as they like, with the same outcome. Of two values of a register the greater one stays.
%%
%% There are four kinds of registers:
%% <ul>
%% <li>`{member, Node}': `{Version, Status, Location}'. A node is `joining' (it has asked),
%%     `member', `leaving' (it still owns something) or `gone'.</li>
%% <li>`plan': `{Version, Members, Owners}', who shall own what. It is only what is wanted: two
%%     plans committed at the same time do no harm, as the one with the higher version is
%%     followed.</li>
%% <li>`{owner, Partition}': `{Generation, Epoch, Node}', who does own it. This is a baton: only the
%%     owner writes the next epoch, with the name of the next owner, when that has all data. So
%%     there are no two values of one epoch. If an owner is removed by force, its partitions get a
%%     higher generation (a version), and what the removed node still writes is lost.</li>
%% <li>`horizon': `{Version}'. Members with a version up to this one were forgotten, as they were
%%     gone (`forget/2'). An old ring that has them so, or in an earlier status, does not bring them
%%     back.</li>
%% </ul>
%% A version is `{Counter, Author}', with a counter higher than all that the author has seen.
%% Partitions are numbers from 0. Not here: who tells whom (`weft_ring_core').
-module(weft_ring_table).

-export([create/4, empty/1, id/1, size/1, n_val/1, merge/2, with/2, difference/2, registers/1,
         hash/1, members/2, member/2, is_out/2, set_member/4, witnesses/2, forget/2,
         owner/2, owners/1, planned/1, planned_members/1,
         transfers/2, holder/2, is_promised/2, takes/2, owned/2, give/4, has_written/3,
         seize/3, is_seized/2, set_plan/4, needs_plan/1, orphans/1, menders/1, version/1]).
-export_type([ring/0, id/0, registers/0, status/0, version/0, baton/0, transfer/0]).

-type version() :: {Counter :: non_neg_integer(), Author :: node()}.
-type status() :: joining | member | leaving | gone.
-type id() :: {Creator :: node(), Incarnation :: non_neg_integer(), Size :: pos_integer(),
               NVal :: pos_integer()}.
-type registers() :: #{term() => tuple()}.
-type baton() :: {Generation :: version(), Epoch :: non_neg_integer()}.
-type transfer() :: {Partition :: non_neg_integer(), baton(), To :: node()}.
-type ring() :: {id(), registers()}.

%% @doc A ring with one member, which owns all.
-spec create({node(), non_neg_integer()}, term(), pos_integer(), pos_integer()) -> ring().
create({Node, Incarnation}, Location, Size, NVal) ->
    Version = {1, Node},
    Owners = [{{owner, P}, {{0, Node}, 0, Node}} || P <- lists:seq(0, Size - 1)],
    {{Node, Incarnation, Size, NVal},
     maps:from_list([{{member, Node}, {Version, member, Location}},
                     {plan, {Version, [{Node, Location}], erlang:make_tuple(Size, Node)}}
                     | Owners])}.

%% @doc A ring of which nothing is known yet.
-spec empty(id()) -> ring().
empty(Id) -> {Id, #{}}.

%% @doc What tells this ring from others, for ever.
-spec id(ring()) -> id().
id({Id, _}) -> Id.

%% @doc The number of partitions.
-spec size(ring()) -> pos_integer().
size({{_, _, Size, _}, _}) -> Size.

%% @doc How many partitions in a row have distinct owners.
-spec n_val(ring()) -> pos_integer().
n_val({{_, _, _, NVal}, _}) -> NVal.

%% @doc All registers.
-spec registers(ring()) -> registers().
registers({_, Registers}) -> Registers.

%% --- merging ----------------------------------------------------------------------------------

%% @doc What both know.
-spec merge(ring(), ring()) -> {ok, ring()} | {error, other_ring}.
merge({Id, _} = Ring, {Id, Registers}) -> {ok, with(Registers, Ring)};
merge(_, _) -> {error, other_ring}.

%% @doc The ring, with these registers merged into it.
-spec with(registers(), ring()) -> ring().
with(More, {Id, Registers}) ->
    {Id, remembered(maps:fold(fun(Key, Value, Acc) ->
                                  Acc#{Key => greater(Value, maps:get(Key, Acc, Value))}
                              end, Registers, More))}.

greater(A, B) when A >= B -> A;
greater(_, B) -> B.

%% What is behind the horizon counts for nothing, on whichever side of a merge it was.
remembered(#{horizon := {Horizon}} = Registers) ->
    maps:filter(fun({member, _}, {Version, _, _}) -> Version > Horizon;
                   (_, _) -> true
                end, Registers);
remembered(Registers) ->
    Registers.

%% @doc Registers of the first ring that are greater than those of the second.
-spec difference(ring(), ring()) -> registers().
difference({_, New}, {_, Old}) ->
    maps:filter(fun(Key, Value) ->
                    case Old of
                        #{Key := Known} -> Value > Known;
                        #{} -> true
                    end
                end, New).

%% @doc Equal for equal rings.
-spec hash(ring()) -> non_neg_integer().
hash({Id, Registers}) ->
    erlang:phash2({Id, lists:sort(maps:to_list(Registers))}).

%% @doc A version higher than all of this ring, for this author.
-spec version({node(), ring()}) -> version().
version({Author, {_, Registers}}) ->
    {1 + maps:fold(fun({owner, _}, _, Acc) -> Acc;
                      (_, Value, Acc) -> max(element(1, element(1, Value)), Acc)
                   end, 0, Registers), Author}.

%% --- members and plan -------------------------------------------------------------------------

%% @doc The nodes with one of these statuses, with their locations.
-spec members([status()], ring()) -> [{node(), Location :: term()}].
members(Statuses, {_, Registers}) ->
    lists:sort([{Node, Location}
                || {{member, Node}, {_, Status, Location}} <- maps:to_list(Registers),
                   lists:member(Status, Statuses)]).

%% @doc What a node is in this ring.
-spec member(node(), ring()) -> status() | none.
member(Node, {_, Registers}) ->
    case Registers of
        #{{member, Node} := {_, Status, _}} -> Status;
        #{} -> none
    end.

%% @doc Is a node in the ring no more? One that was forgotten is as one that never was.
-spec is_out(node(), ring()) -> boolean().
is_out(Node, Ring) -> lists:member(member(Node, Ring), [gone, none]).

%% @doc A node has another status from now on. It keeps its location if it is `keep'.
-spec set_member(node(), status(), {keep | {location, term()}, version()}, ring()) -> ring().
set_member(Node, Status, {Location, Version}, {Id, Registers}) ->
    Where = case {Location, Registers} of
                {{location, New}, _} -> New;
                {keep, #{{member, Node} := {_, _, Old}}} -> Old
            end,
    {Id, Registers#{{member, Node} => {Version, Status, Where}}}.

%% @doc Who has to have this ring before nodes that are gone may be forgotten: all that are in it,
%% members first. Nobody if no more than Max are gone, or if something has yet to move or to be
%% planned.
-spec witnesses(Max :: non_neg_integer(), ring()) -> [node()].
witnesses(Max, Ring) ->
    case length(members([gone], Ring)) > Max
        andalso not needs_plan(Ring) andalso owners(Ring) =:= planned(Ring) of
        true -> [Node || {Node, _} <- members([member], Ring) ++ members([joining, leaving], Ring)];
        false -> []
    end.

%% @doc The ring with no more than Keep of the nodes that are gone: those that went last.
%%
%% What its witnesses change when they have this ring has a higher version than all in it, and so
%% than the horizon. Nodes that are not gone get a version between the two, which no author has: it
%% is the same whoever does this with this ring.
-spec forget(Keep :: non_neg_integer(), ring()) -> ring().
forget(Keep, {Id, Registers} = Ring) ->
    Gone = lists:sort([Version || {{member, _}, {Version, gone, _}} <- maps:to_list(Registers)]),
    Horizon = lists:nth(length(Gone) - Keep, Gone),
    After = version({'', Ring}),
    Known = maps:map(fun({member, _}, {Version, Status, Location})
                           when Version =< Horizon, Status =/= gone -> {After, Status, Location};
                        (_, Value) -> Value
                     end, Registers),
    {Id, remembered(Known#{horizon => {Horizon}})}.

%% @doc The owners that there shall be, in the order of the partitions; none in a ring of which the
%% plan is not known.
-spec planned(ring()) -> [node()].
planned({_, #{plan := {_, _, Owners}}}) -> tuple_to_list(Owners);
planned(_) -> [].

%% @doc For whom the plan was made.
-spec planned_members(ring()) -> [{node(), Location :: term()}].
planned_members({_, #{plan := {_, Members, _}}}) -> Members;
planned_members(_) -> [].

%% @doc The ring with a new plan.
-spec set_plan(version(), [{node(), term()}], [node()], ring()) -> ring().
set_plan(Version, Members, Owners, {Id, Registers}) ->
    {Id, Registers#{plan => {Version, Members, list_to_tuple(Owners)}}}.

%% @doc Was the plan made for other members than there are? So it is after two commits at once.
-spec needs_plan(ring()) -> boolean().
needs_plan(Ring) ->
    Members = members([member], Ring),
    Members =/= [] andalso planned_members(Ring) =/= Members.

%% --- owners -----------------------------------------------------------------------------------

%% @doc Who owns a partition.
-spec owner(non_neg_integer(), ring()) -> node() | none.
owner(Partition, {_, Registers}) ->
    case Registers of
        #{{owner, Partition} := {_, _, Node}} -> Node;
        #{} -> none
    end.

%% @doc The owners in the order of the partitions.
-spec owners(ring()) -> [node() | none].
owners(Ring) ->
    [owner(P, Ring) || P <- lists:seq(0, ?MODULE:size(Ring) - 1)].

%% @doc What a node owns.
-spec owned(node(), ring()) -> [non_neg_integer()].
owned(Node, Ring) ->
    [P || {P, Owner} <- numbered(owners(Ring)), Owner =:= Node].

%% @doc What a node owns and shall hand to others, each with its baton. Of two commits at the same
%% time one may plan for a node that leaves by the other: it gets nothing more. Nor does one that
%% was forgotten, whatever an old ring planned.
-spec transfers(node(), ring()) -> [transfer()].
transfers(Node, Ring) ->
    [{P, Baton, To} || {P, To} <- numbered(planned(Ring)), To =/= Node,
                       {Baton, Owner} <- [holder(P, Ring)], Owner =:= Node,
                       lists:member(member(To, Ring), [joining, member])].

%% @doc The owner of a partition, with its baton.
-spec holder(non_neg_integer(), ring()) -> {baton(), node() | none}.
holder(Partition, {_, Registers}) ->
    {Generation, Epoch, Owner} = maps:get({owner, Partition}, Registers, {{0, none}, 0, none}),
    {{Generation, Epoch}, Owner}.

%% @doc May the owner still hand its baton on like this, as far as is known?
-spec is_promised(transfer(), ring()) -> boolean().
is_promised({Partition, Baton, _To}, Ring) ->
    {Known, _} = holder(Partition, Ring),
    Known =< Baton.

%% @doc May a node get partitions? One that leaves may not.
-spec takes(node(), ring()) -> boolean().
takes(Node, Ring) ->
    not lists:member(member(Node, Ring), [leaving, gone]).

%% @doc The owner of a partition, which holds this baton, hands it on.
-spec give(non_neg_integer(), baton(), node(), ring()) -> ring().
give(Partition, {Generation, Epoch}, To, {Id, Registers}) ->
    {Id, Registers#{{owner, Partition} => {Generation, Epoch + 1, To}}}.

%% @doc Has a node that is in the new ring written all that only it could write? If a partition that
%% it owned before has a later epoch, it has handed it on, and has forgotten that since.
-spec has_written(node(), Before :: ring(), New :: ring()) -> boolean().
has_written(Node, Before, New) ->
    is_out(Node, New) orelse lists:all(fun(P) ->
                                           {{Generation, Epoch}, _} = holder(P, Before),
                                           {{Now, Later}, _} = holder(P, New),
                                           Now =/= Generation orelse Later =:= Epoch
                                       end, owned(Node, Before)).

%% @doc Partitions whose owner is not in the ring. So it is when it was removed, or when somebody
%% handed it something while it left. One that was forgotten comes back with what it has taken from
%% others while it was cut off.
-spec orphans(ring()) -> [non_neg_integer()].
orphans(Ring) ->
    [P || planned(Ring) =/= [], {P, Owner} <- numbered(owners(Ring)), is_out(Owner, Ring)].

%% @doc Who has to change the ring so that each partition finds its owner, in the order of their
%% turns; nobody if all is well.
-spec menders(ring()) -> [node()].
menders(Ring) ->
    case {members([member], Ring), members([leaving], Ring)} of
        {[], Leaving} -> [Node || {Node, _} <- Leaving];
        {Members, _} ->
            %% Each node asks this at each look, so it is not to take longer for each member.
            case needs_plan(Ring) orelse orphans(Ring) =/= [] of
                true -> [Node || {Node, _} <- Members];
                false -> []
            end
    end.

%% @doc These partitions belong at once to whom the plan wants for them, whatever their owners say.
-spec seize([non_neg_integer()], version(), ring()) -> ring().
seize(Partitions, {Counter, Author}, {Id, Registers} = Ring) ->
    Planned = list_to_tuple(planned(Ring)),
    Seized = [{{owner, P}, {{max(Counter, Before + 1), Author}, 0, element(P + 1, Planned)}}
              || P <- Partitions, #{{owner, P} := {{Before, _}, _, _}} <- [Registers]],
    {Id, maps:merge(Registers, maps:from_list(Seized))}.

%% @doc Has its owner got it by force, and not handed it on since?
-spec is_seized(non_neg_integer(), ring()) -> boolean().
is_seized(Partition, Ring) ->
    case holder(Partition, Ring) of
        %% A ring begins with 0.
        {{{Counter, _}, 0}, _} -> Counter > 0;
        _ -> false
    end.

numbered([]) -> [];
numbered(List) -> lists:zip(lists:seq(0, length(List) - 1), List).

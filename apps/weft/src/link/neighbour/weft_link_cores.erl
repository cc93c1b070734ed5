%% SPDX-License-Identifier: Apache-2.0
%% @doc How the cores of two neighbours talk over one link: which cores listen here, and which there
%% are on the other side.
%%
%% A local core gets {weft_link, up, Node, Info} once the link is up and the peer has a core of the
%% same name, then messages, then {weft_link, down, Node, Reason}. Each side announces its cores by
%% an empty message for each, when the link comes up or when a core starts. A second announcement
%% means that the core of the peer has started anew; the local core gets a down and an up. A message
%% of one zero byte withdraws the announcement: the core is there no more.
%%
%% If one core decides which nodes are neighbours (the admitting core, see
%% `weft_links:admitting/1'), the other cores do not use a link before it has agreed with its peer
%% to be neighbours. Until then the link is not up for them.
%%
%% All messages go by one lane, in order. When it is lost while others are up, what was under way on
%% it is lost, too. Then each side announces its cores again, by another lane, and the local cores
%% get a down and an up.
-module(weft_link_cores).

-export([new/3, has_any/1, is_neighbour/1, is_used/1, is_neighbour_anyway/1,
         subscribe/4, unsubscribe/3, agree/3, admitting/3,
         link_up/2, link_down/2, moved/3, failed/2, control/4]).
-export_type([cores/0, incarnation/0]).

-type incarnation() :: non_neg_integer().
-record(cores, {node :: weft_links:key(),
                local :: [{weft_links:core(), pid()}],
                admitting :: weft_links:core() | none,
                is_agreed = false :: boolean(),
                there = [] :: [binary()]}).
-opaque cores() :: #cores{}.
%% A lane, and the peer's incarnation, if the link is up.
-type up() :: {weft_lane:lane(), incarnation()} | down.

-define(GONE, <<0>>).

-spec new(weft_links:key(), [{weft_links:core(), pid()}], weft_links:core() | none) -> cores().
new(Node, Local, Admitting) ->
    #cores{node = Node, local = Local, admitting = Admitting}.

%% @doc Does any core listen here?
-spec has_any(cores()) -> boolean().
has_any(#cores{local = Local}) -> Local =/= [].

%% @doc May all cores use the link once it is up?
-spec is_neighbour(cores()) -> boolean().
is_neighbour(#cores{admitting = Admitting, is_agreed = IsAgreed}) ->
    Admitting =:= none orelse IsAgreed.

%% @doc Is this node's overlay to use the link?
-spec is_used(cores()) -> boolean().
is_used(#cores{local = Local} = Cores) -> Local =/= [] andalso is_neighbour(Cores).

%% @doc The same, and was there no admitting core that had to agree?
-spec is_neighbour_anyway(cores()) -> boolean().
is_neighbour_anyway(#cores{local = Local, admitting = Admitting}) ->
    Local =/= [] andalso Admitting =:= none.

is_open(Core, #cores{admitting = Admitting} = Cores) ->
    Core =:= Admitting orelse is_neighbour(Cores).

%% @doc A local core has started, perhaps again. If it is the admitting core, what it agreed to
%% before is no longer valid.
-spec subscribe(weft_links:core(), pid(), up(), cores()) -> cores().
subscribe(Core, Pid, Up, #cores{admitting = Core, is_agreed = true} = Cores) ->
    subscribe(Core, Pid, Up, agree(false, Up, Cores));
subscribe(Core, Pid, Up, #cores{local = Local} = Cores) ->
    _ = is_open(Core, Cores) andalso open({Core, Pid}, Up, Cores),
    Cores#cores{local = lists:keystore(Core, 1, Local, {Core, Pid})}.

open(_Local, down, _Cores) ->
    ok;
open({Core, Pid}, {Lane, Incarnation}, Cores) ->
    say_here(Lane, Core),
    _ = is_there(Core, Cores) andalso (Pid ! up(Incarnation, Cores)),
    ok.

close(_Local, down, _Cores) ->
    ok;
close({Core, Pid}, {Lane, _Incarnation}, Cores) ->
    say(Lane, Core, ?GONE),
    _ = is_there(Core, Cores) andalso (Pid ! down(parted, Cores)),
    ok.

is_there(Core, #cores{there = There}) -> lists:member(atom_to_binary(Core), There).

%% @doc The admitting core accepts the peer as a neighbour now, or no longer does.
-spec agree(boolean(), up(), cores()) -> cores().
agree(IsAgreed, Up, Cores) ->
    changed(Up, Cores, Cores#cores{is_agreed = IsAgreed}).

%% @doc Another core admits neighbours from now on, or none. On a link that is up this changes
%% nothing, until the new one says otherwise.
-spec admitting(weft_links:core() | none, up(), cores()) -> cores().
admitting(Admitting, Up, Cores) ->
    changed(Up, Cores, Cores#cores{admitting = Admitting,
                                   is_agreed = Up =/= down andalso is_neighbour(Cores)}).

changed(Up, Before, #cores{local = Local} = After) ->
    lists:foreach(fun({Core, _} = One) ->
                          case {is_open(Core, Before), is_open(Core, After)} of
                              {false, true} -> open(One, Up, After);
                              {true, false} -> close(One, Up, After);
                              _ -> ok
                          end
                  end, Local),
    After.

%% @doc The process of a local core has ended: the peer is told that the core is gone. If it was
%% the admitting core, what it agreed to is no longer valid.
-spec unsubscribe(pid(), up(), cores()) -> cores().
unsubscribe(Pid, Up, #cores{local = Local} = Cores) ->
    case lists:keytake(Pid, 2, Local) of
        {value, {Core, Pid}, Rest} -> taken_back(Core, Up, Cores#cores{local = Rest});
        false -> Cores
    end.

taken_back(_Core, down, Cores) ->
    Cores;
taken_back(Core, {Lane, _Incarnation}, Cores) ->
    _ = is_open(Core, Cores) andalso say(Lane, Core, ?GONE),
    Cores.

%% @doc The link came up.
-spec link_up(weft_lane:lane(), cores()) -> ok.
link_up(Lane, Cores) ->
    weft_counters:add(links_up),
    lists:foreach(fun({Core, _}) -> say_here(Lane, Core) end, open_cores(Cores)).

open_cores(#cores{local = Local} = Cores) ->
    [One || {Core, _} = One <- Local, is_open(Core, Cores)].

say_here(Lane, Core) ->
    say(Lane, Core, <<>>).

say(Lane, Core, What) ->
    Name = atom_to_binary(Core),
    _ = weft_lane:send(Lane, weft_wire:control(Name, What), byte_size(Name) + 3),
    ok.

%% @doc The link went down, and what was agreed is no longer valid.
-spec link_down(Reason :: term(), cores()) -> cores().
link_down(Reason, Cores) ->
    weft_counters:add(links_down),
    failed(Reason, Cores),
    Cores#cores{there = [], is_agreed = false}.

%% @doc The lane that messages went by is lost, for that reason, and what was under way on it, too.
%% They go by another one from now on, and the cores of both ends begin anew, as on a new link.
-spec moved(Reason :: term(), up(), cores()) -> ok.
moved(Reason, {Lane, _Incarnation} = Up, #cores{local = Local} = Cores) ->
    lists:foreach(fun({Core, Pid} = One) ->
                          case is_open(Core, Cores) of
                              true ->
                                  _ = is_there(Core, Cores) andalso (Pid ! down(Reason, Cores)),
                                  open(One, Up, Cores);
                              false ->
                                  say(Lane, Core, ?GONE)
                          end
                  end, Local).

%% @doc An attempt to bring the link up failed.
-spec failed(Reason :: term(), cores()) -> ok.
failed(_Reason, #cores{node = {anonymous, _}}) ->
    ok;
failed(Reason, Cores) ->
    lists:foreach(fun({_, Pid}) -> Pid ! down(Reason, Cores) end, open_cores(Cores)).

%% @doc A control message came from the peer. It knows the cookie; a term it sends is trusted as far
%% as the distribution trusts it.
-spec control(Core :: binary(), Payload :: binary(), incarnation(), cores()) ->
          {ok, cores()} | malformed.
control(Core, <<>>, Incarnation, #cores{there = There} = Cores) ->
    Again = lists:member(Core, There),
    _ = [begin
             _ = Again andalso (Pid ! down(core_restarted, Cores)),
             Pid ! up(Incarnation, Cores)
         end || Pid <- listener(Core, Cores)],
    {ok, Cores#cores{there = [Core | lists:delete(Core, There)]}};
control(Core, ?GONE, _Incarnation, #cores{there = There} = Cores) ->
    _ = [Pid ! down(parted, Cores) || lists:member(Core, There), Pid <- listener(Core, Cores)],
    {ok, Cores#cores{there = lists:delete(Core, There)}};
control(Core, Payload, _Incarnation, #cores{node = Node} = Cores) ->
    case listener(Core, Cores) of
        [Pid] ->
            try binary_to_term(Payload) of
                Message -> Pid ! {weft_link, message, Node, Message}, {ok, Cores}
            catch
                error:badarg -> malformed
            end;
        [] ->
            {ok, Cores}
    end.

%% The local core of that name, if it uses the link.
listener(Name, Cores) ->
    [Pid || {Core, Pid} <- open_cores(Cores), atom_to_binary(Core) =:= Name].

up(Incarnation, #cores{node = Node}) ->
    {weft_link, up, Node, #{incarnation => Incarnation}}.

down(Reason, #cores{node = Node}) ->
    {weft_link, down, Node, Reason}.

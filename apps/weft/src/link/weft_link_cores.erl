%% SPDX-License-Identifier: Apache-2.0
%% @doc The conversation of cores over one link: who of us listens, who is there on the other side.
%%
%% A local core hears {weft_link, up, Node, Info} once the link is up and the peer has a core of the
%% same name, then messages, then {weft_link, down, Node, Reason}. Each side says what cores it has
%% by an empty message, when the link comes up or when a core starts; hearing it again means that
%% the core over there has started anew, which is a down and an up.
-module(weft_link_cores).

-export([new/2, any/1, subscribe/4, unsubscribe/2, link_up/2, link_down/2, failed/2, control/4]).
-export_type([cores/0, incarnation/0]).

-type incarnation() :: non_neg_integer().
-record(cores, {node :: weft_links:key(),
                local :: [{weft_links:core(), pid()}],
                there = [] :: [binary()]}).
-opaque cores() :: #cores{}.

-spec new(weft_links:key(), [{weft_links:core(), pid()}]) -> cores().
new(Node, Local) ->
    #cores{node = Node, local = Local}.

%% @doc Does anybody here listen, that is: does this node have an overlay?
-spec any(cores()) -> boolean().
any(#cores{local = Local}) -> Local =/= [].

%% @doc A local core has started, perhaps again. Up is a lane and the peer's incarnation if the link
%% is up.
-spec subscribe(weft_links:core(), pid(), {weft_lane:lane(), incarnation()} | down, cores()) ->
          cores().
subscribe(Core, Pid, Up, #cores{local = Local, there = There} = Cores) ->
    Name = atom_to_binary(Core),
    _ = case Up of
            {Lane, Incarnation} ->
                say_here(Lane, Name),
                lists:member(Name, There) andalso (Pid ! up(Incarnation, Cores));
            down ->
                false
        end,
    Cores#cores{local = lists:keystore(Core, 1, Local, {Core, Pid})}.

-spec unsubscribe(pid(), cores()) -> cores().
unsubscribe(Pid, #cores{local = Local} = Cores) ->
    Cores#cores{local = lists:keydelete(Pid, 2, Local)}.

%% @doc The link came up.
-spec link_up(weft_lane:lane(), cores()) -> ok.
link_up(Lane, #cores{local = Local}) ->
    lists:foreach(fun({Core, _}) -> say_here(Lane, atom_to_binary(Core)) end, Local).

say_here(Lane, Name) ->
    _ = weft_lane:send(Lane, weft_wire:control(Name, <<>>), byte_size(Name) + 2),
    ok.

%% @doc The link went down.
-spec link_down(Reason :: term(), cores()) -> cores().
link_down(Reason, Cores) ->
    failed(Reason, Cores),
    Cores#cores{there = []}.

%% @doc An attempt to bring the link up failed.
-spec failed(Reason :: term(), cores()) -> ok.
failed(_Reason, #cores{node = {anonymous, _}}) ->
    ok;
failed(Reason, #cores{local = Local} = Cores) ->
    lists:foreach(fun({_, Pid}) -> Pid ! down(Reason, Cores) end, Local).

%% @doc A control message came from the peer. It knows the cookie; a term it sends is trusted as far
%% as the distribution trusts it.
-spec control(Core :: binary(), Payload :: binary(), incarnation(), cores()) ->
          {ok, cores()} | malformed.
control(Core, <<>>, Incarnation, #cores{local = Local, there = There} = Cores) ->
    Again = lists:member(Core, There),
    _ = [begin
             _ = Again andalso (Pid ! down(core_restarted, Cores)),
             Pid ! up(Incarnation, Cores)
         end || {Name, Pid} <- Local, atom_to_binary(Name) =:= Core],
    {ok, Cores#cores{there = [Core | lists:delete(Core, There)]}};
control(Core, Payload, _Incarnation, #cores{node = Node, local = Local} = Cores) ->
    case [Pid || {Name, Pid} <- Local, atom_to_binary(Name) =:= Core] of
        [Pid | _] ->
            try binary_to_term(Payload) of
                Message -> Pid ! {weft_link, message, Node, Message}, {ok, Cores}
            catch
                error:badarg -> malformed
            end;
        [] ->
            {ok, Cores}
    end.

up(Incarnation, #cores{node = Node}) ->
    {weft_link, up, Node, #{incarnation => Incarnation}}.

down(Reason, #cores{node = Node}) ->
    {weft_link, down, Node, Reason}.

%% SPDX-License-Identifier: Apache-2.0
%% @doc What distributed Erlang promises, as a list of cases which know no carrier.
%%
%% A case is an exported function of arity 1 in one of the modules below. It gets the context of
%% weft_cluster:context/1 and runs on node `a'; `b' is the far node, and they are connected. It
%% fails by an exception and its value is ignored.
%% What a case needs besides a connected pair says the module's needs/0:
%%   own      => true           nodes of its own, because it breaks or reconfigures them
%%   whole    => true           with `own': leaves them as they were, so the next one can have them
%%   ends_b   => true           with `own': leaves them as they were, but for b, which has ended
%%   visible  => true           a and b see each other in nodes(); says nothing for carriers whose
%%                              connections are visible anyway, else circuits are made visible
%%   third    => true           a third node c, connected with both
%%   args     => [string()]     more arguments of erl for each node
%%   time_ms  => pos_integer()  more than the usual time
%% Non-goals: speed; behaviour of weft that stock distribution does not have.
-module(weft_conformance).

-export([modules/0, cases/1, needs/1, not_given/2, run/2]).

-define(TIME_MS, 30_000).

-type kind() :: shared | visible | own.
-type part() :: kind() | quick | crossing.
-export_type([kind/0, part/0]).

%% @doc The modules with cases, in the order they run.
-spec modules() -> [module()].
modules() ->
    [weft_conformance_send, weft_conformance_link, weft_conformance_monitor,
     weft_conformance_spawn, weft_conformance_rpc, weft_conformance_gen,
     weft_conformance_supervisor, weft_conformance_io, weft_conformance_terms,
     weft_conformance_bulk, weft_conformance_order, weft_conformance_code,
     weft_conformance_net_kernel, weft_conformance_visibility, weft_conformance_global,
     weft_conformance_pg, weft_conformance_mnesia, weft_conformance_node_loss,
     weft_conformance_ticks, weft_conformance_admission].

%% Shared cases of which the outcome depends on the way between the nodes, not on them alone.
crossing() ->
    [weft_conformance_send, weft_conformance_link, weft_conformance_monitor, weft_conformance_bulk,
     weft_conformance_order, weft_conformance_node_loss, weft_conformance_admission].

%% These take longer than all others, and `weft_first_message_SUITE' has messages of 60 MB.
bulky() -> [binary_of_100_mb].

%% @doc The names of all cases which run on a pair of this kind.
-spec cases(part()) -> [atom()].
cases(crossing) ->
    [Case || Module <- crossing(), Case <- cases_of(Module), kind(needs(Module, Case)) =:= shared]
        -- [a_thousand_messages_of_mixed_sizes_between_16_pairs | bulky()];
cases(quick) ->
    cases(shared) -- bulky();
cases(Kind) ->
    [Case || Module <- modules(), Case <- cases_of(Module), kind(needs(Module, Case)) =:= Kind].

%% @doc What a case needs, see the module's head; `time_ms' is always there.
-spec needs(atom()) -> map().
needs(Case) ->
    needs(module_of(Case), Case).

%% @doc Why a carrier cannot give what a case asks for. The whole list of such cases.
-spec not_given(weft_cluster:carrier(), atom()) -> {true, Reason :: string()} | false.
not_given(pubsub, nodelay_is_set_and_read) ->
    {true, "a lane through a broker has no socket of its own, so no options of one: enotsup"};
not_given(_Carrier, _Case) ->
    false.

%% @doc Runs a case on this node.
-spec run(atom(), map()) -> passed | {failed, string()}.
run(Case, Context) ->
    Module = module_of(Case),
    try
        connect(Context),
        Module:Case(Context)
    of
        _ -> passed
    catch
        Class:Reason:Stack ->
            {failed, lists:flatten(io_lib:format("~s on ~p:~n~p:~p~n~p",
                                                 [Case, node(), Class, Reason, Stack]))}
    end.

%% A case may have left the nodes unconnected.
connect(#{b := B}) ->
    weft_expect:until(fun() -> net_kernel:connect_node(B) =:= true end).

kind(#{own := true}) -> own;
kind(#{visible := true}) -> visible;
kind(#{}) -> shared.

needs(Module, Case) ->
    All = case erlang:function_exported(Module, needs, 0) of
              true -> Module:needs();
              false -> #{}
          end,
    maps:merge(#{time_ms => ?TIME_MS}, maps:get(Case, All, #{})).

module_of(Case) ->
    case [Module || Module <- modules(), lists:member(Case, cases_of(Module))] of
        [Module] -> Module;
        Other -> erlang:error({case_must_be_in_one_module, Case, Other})
    end.

cases_of(Module) ->
    lists:sort([Name || {Name, 1} <- Module:module_info(exports), Name =/= module_info]).

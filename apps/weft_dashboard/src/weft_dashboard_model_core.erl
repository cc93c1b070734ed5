%% SPDX-License-Identifier: Apache-2.0
%% @doc The model of the cluster that browsers get, made of what was seen of its nodes. Pure.
%%
%% It is a JSON object of objects, with strings for keys, so that what has changed is a small merge
%% patch. For the same reason no value in it is null: a key whose value is not known is left out.
%% README.md of this application has the whole shape. Links and traffic have keys of two nodes: as
%% the first one sees it.
-module(weft_dashboard_model_core).

-export([model/2, pack/1, unpack/1, nodes/1, alarm_ids/1, text/1]).
-export_type([model/0, packed/0, seen/0, meta/0]).

-type model() :: #{binary() => weft_json:json()}.
-opaque packed() :: binary().
%% What agents said (`weft_ops_picture'), and the groups. Alarms that know it have at_ms, the system
%% time at which they were raised.
-type seen() :: #{nodes := #{node() => weft_ops_sample:sample() | silent},
                  agents := #{weft_ops_agents:duty() => node() | none},
                  alarms := [weft_ops_alarms_core:alarm()],
                  groups := #{weft_group:name() => [node()]}, _ => _}.
-type meta() :: #{node := node(), at_ms := integer(), source := live | recording}.

%% @doc The model of what was seen, by which node, and when.
-spec model(seen(), meta()) -> model().
model(#{nodes := Nodes, agents := Agents, alarms := Alarms, groups := Groups},
      #{node := Node, at_ms := AtMs, source := Source}) ->
    Samples = [Sample || #{} = Sample <- maps:values(Nodes)],
    #{<<"at_ms">> => AtMs, <<"node">> => text(Node), <<"source">> => text(Source),
      <<"nodes">> => keyed([{text(Name), node_of(Name, Sample, Groups)}
                            || {Name, Sample} <- maps:to_list(Nodes)]),
      <<"links">> => pairs(links, fun link/1, Samples),
      <<"traffic">> => pairs(peers, fun traffic/1, Samples),
      <<"groups">> => keyed([{text(Name), group(Name, Members, Groups)}
                             || {Name, Members} <- maps:to_list(Groups)]),
      <<"alarms">> => keyed([{alarm_id(Alarm), alarm(Alarm)} || Alarm <- Alarms]),
      <<"agents">> => keyed([{duty(Duty), text(Agent)} || {Duty, Agent} <- maps:to_list(Agents)])}.

%% @doc A model as one binary, which processes share and do not copy: each browser keeps one.
-spec pack(model()) -> packed().
pack(Model) -> term_to_binary(Model).

-spec unpack(packed()) -> model().
unpack(Packed) -> binary_to_term(Packed).

%% @doc The nodes of a model, by the text that they have in it.
-spec nodes(seen()) -> #{binary() => node()}.
nodes(#{nodes := Nodes}) -> keyed([{text(Node), Node} || Node <- maps:keys(Nodes)]).

%% @doc The alarms of a model, by the text that they have in it.
-spec alarm_ids(seen()) -> #{binary() => weft_ops_alarms_core:id()}.
alarm_ids(#{alarms := Alarms}) -> keyed([{alarm_id(Alarm), Id} || #{id := Id} = Alarm <- Alarms]).

%% --- nodes ------------------------------------------------------------------------------------

node_of(Node, silent, Groups) ->
    #{<<"state">> => <<"silent">>, <<"groups">> => groups_of(Node, Groups)};
node_of(_Node, #{groups := Groups, peers := Peers, links := Links, machine := Machine,
                 unreachable := Unreachable} = Sample, _) ->
    #{memory_bytes := MemoryBytes, processes := Processes, run_queue := RunQueue,
      wake_up_us := WakeUpUs} = Machine,
    #{<<"state">> => <<"up">>, <<"groups">> => texts(Groups),
      <<"uptime_ms">> => maps:get(uptime_ms, Sample), <<"memory_bytes">> => MemoryBytes,
      <<"processes">> => Processes, <<"run_queue">> => RunQueue, <<"wake_up_us">> => WakeUpUs,
      <<"relayed_bytes">> => maps:get(relayed_bytes, Sample),
      <<"relayed_circuits">> => maps:get(relayed_circuits, Sample),
      <<"unreachable">> => texts(Unreachable),
      <<"bytes_out">> => sum(bytes_out, Peers), <<"bytes_in">> => sum(bytes_in, Peers),
      <<"queued_bytes">> => sum(queued_bytes, Peers) + sum(queued_bytes, Links),
      <<"suspended">> => sum(suspended, Peers),
      <<"at_ms">> => maps:get(at_ms, Sample), <<"period_ms">> => maps:get(period_ms, Sample)}.

groups_of(Node, Groups) ->
    texts([Name || {Name, Members} <- maps:to_list(Groups), lists:member(Node, Members)]).

sum(Key, Rows) -> lists:sum([maps:get(Key, Row) || Row <- Rows]).

group(Name, Members, Groups) ->
    Others = lists:append(maps:values(maps:remove(Name, Groups))),
    #{<<"members">> => texts(Members),
      <<"gateways">> => texts([Node || Node <- Members, lists:member(Node, Others)])}.

%% --- links, traffic ---------------------------------------------------------------------------

pairs(Key, Fun, Samples) ->
    keyed([{<<(text(Node))/binary, " ", (text(Peer))/binary>>, Fun(Row)}
           || #{node := Node, Key := Rows} <- Samples, #{node := Peer} = Row <- Rows]).

link(#{state := State, rtt_us := RttUs, queued_bytes := QueuedBytes, lanes := Lanes, ups := Ups,
       last_error := LastError}) ->
    known(#{<<"state">> => text(State), <<"rtt_us">> => RttUs, <<"queued_bytes">> => QueuedBytes,
            <<"lanes">> => Lanes, <<"ups">> => Ups, <<"last_error">> => text(LastError)}).

traffic(#{via := Via, state := State} = Peer) ->
    Numbers = [bytes_out, bytes_in, queued_bytes, suspended, resumes],
    known(keyed([{text(Key), maps:get(Key, Peer)} || Key <- Numbers]
                ++ [{<<"reroutes">>, maps:get(reroutes, Peer, 0)},
                    {<<"via">>, case Via of undefined -> undefined; _ -> text(Via) end},
                    {<<"state">>, text(State)}])).

known(Map) -> maps:filter(fun(_, Value) -> Value =/= undefined end, Map).

%% --- alarms, agents ---------------------------------------------------------------------------

alarm_id(#{id := {Kind, Node, Node}}) ->
    <<(text(Kind))/binary, " ", (text(Node))/binary>>;
alarm_id(#{id := {Kind, Node, About}}) ->
    <<(text(Kind))/binary, " ", (text(Node))/binary, " ", (text(About))/binary>>.

alarm(#{id := {Kind, Node, About}, severity := Severity, text := Text} = Alarm) ->
    known(#{<<"kind">> => text(Kind), <<"node">> => text(Node), <<"about">> => text(About),
            <<"severity">> => text(Severity), <<"text">> => Text,
            <<"at_ms">> => maps:get(at_ms, Alarm, undefined),
            <<"acknowledged">> => case Alarm of
                                      #{acknowledged := #{comment := Comment}} -> Comment;
                                      #{} -> undefined
                                  end}).

duty({Kind, Name}) -> <<(text(Kind))/binary, " ", (text(Name))/binary>>.

%% --- words ------------------------------------------------------------------------------------

texts(Terms) -> [text(Term) || Term <- lists:sort(Terms)].

%% @doc A name as it is in a model. That of a group is any term.
-spec text(term()) -> binary().
text(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text(Binary) when is_binary(Binary) -> Binary;
text(Term) ->
    Format = case io_lib:printable_unicode_list(Term) of true -> "~ts"; false -> "~0tp" end,
    unicode:characters_to_binary(io_lib:format(Format, [Term])).

keyed(Pairs) -> maps:from_list(Pairs).

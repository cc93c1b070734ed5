%% SPDX-License-Identifier: Apache-2.0
%% @doc Why a finding of the doctor matters, and what to do about it, in a sentence or two each.
%% There is one text for each check. What was found, and where, is said by the check itself.
-module(weft_doctor_advice).

-export([about/1]).

%% @doc The words for what a check has found.
-spec about(weft_doctor_checks:check()) -> {Why :: string(), Advice :: string()}.
about(answers) ->
    {"What this node would say is not known, and others may wait for it.",
     "Look at its log and its machine, and start it again if it has stopped. Where it runs, "
     "compare name, cookie and epmd, and what a firewall lets through."};
about(settings) ->
    {"With these settings the node does not start.",
     "Correct what is named (docs/guide/tuning.md)."};
about(ports) ->
    {"A node that finds no free port does not start.",
     "Make the range larger: inet_dist_listen_min and inet_dist_listen_max of the kernel, or give "
     "each node on the host a port of its own."};
about(port_use) ->
    {"A node that finds no free port does not start.",
     "Nothing, if it is this node that runs. Otherwise end what has the port, or take another "
     "one."};
about(cookie_told) ->
    {"Every user of the machine sees the command lines of processes, and who has the cookie runs "
     "any code on every node.",
     "Leave -setcookie out of vm.args, and put the cookie into .erlang.cookie in the home "
     "directory of the node, with mode 400."};
about(start) ->
    {"Without carrier and application the node has no links, routes or circuits of its own.",
     "Add -proto_dist weft to vm.args, and weft to the applications of the release."};
about(kernel_flags) ->
    {"`global' and the topology work against each other: nodes are connected or disconnected that "
     "should not be.",
     "Set the flags on every node and restart them one by one."};
about(paths) ->
    {"Messages to these nodes wait, and end in a nodedown.",
     "Ask weft:why(Node) there for the last error. Look for links that are down, gateways that "
     "are missing, and nodes with another topology."};
about(cuts) ->
    {"What went over this link takes a longer way, or waits if there is none.",
     "End the cut: weft heal A B, or weft_fault:heal(Node) on both nodes."};
about(links) ->
    {"What went over this link takes a longer way, or waits if there is none.",
     "Ask weft:why(Node) on one of the two. Both need the same cookie and cluster_name, and one "
     "must be able to reach the port of the other."};
about(resuming) ->
    {"Nothing is lost yet, but processes wait; without a path a nodedown will follow.",
     "Look again in a second. If it stays, one of the links or gateways on the way is gone."};
about(lanes) ->
    {"Less is sent at a time, and a lost packet holds up more of it.",
     "Look again in some seconds: lanes are dialled one after the other. If it stays, look for "
     "refused connections in the logs of both nodes."};
about(suspended) ->
    {"They go on when the other node has taken what was sent; that is how a sender is slowed "
     "down. It is a fault only if it stays.",
     "Find out whether the other node or the network is too slow, or send bulk data over a "
     "channel."};
about(configuration) ->
    {"Nodes that are configured differently act differently in the same situation.",
     "Give all nodes the same configuration, unless an upgrade is just under way."};
about(ticktime) ->
    {"The node with the shorter time gives up connections on which the other one sends no ticks "
     "that soon.",
     "Set {kernel, [{net_ticktime, Seconds}]} to the same value on all nodes."};
about(versions) ->
    {"Nodes understand those of the version before and after theirs, so that a cluster can be "
     "upgraded node by node.",
     "Finish the upgrade; do not skip a version in it."};
about(otp) ->
    {"OTP promises that nodes two releases apart understand each other.",
     "Finish the upgrade. More than two releases apart test what your programs send."};
about(clocks) ->
    {"Times of different nodes can not be compared: in logs, in leases of programs, and where the "
     "last write wins.",
     "Let all machines keep their time by NTP."};
about(schedulers) ->
    {"Everything on this node is late, also keepalives: others may take it for dead.",
     "Find what uses the processors (observer, or statistics(scheduler_wall_time)), and whether "
     "the machine has as many as the node thinks."};
about(limits) ->
    {"Connections will be refused when the limit is reached.",
     "Raise ulimit -n, or +Q in vm.args; or choose a topology with fewer neighbours."};
about(listener) ->
    {"Nodes that are not linked to this one yet can not find it.",
     "Look whether epmd runs, and restart the node if epmd was restarted without knowing it. With "
     "fixed ports compare ports in {weft, tuning} on all nodes."};
about(names) ->
    {"From there the nodes on this host can not be called, or another machine answers.",
     "Correct DNS or /etc/hosts on the machine that is named."};
about(cookie) ->
    {"Who guesses the cookie runs any code on every node.",
     "Choose a random cookie of at least 20 characters."};
about(cookie_file) ->
    {"Who reads the cookie runs any code on every node.",
     "chmod 400 that file. If others had access to it, change the cookie."};
about(certificates) ->
    {"When a certificate has expired no new connection is made, so sessions can not resume.",
     "Put a new certificate in its place, and restart the nodes one by one."};
about(full_mesh) ->
    {"Each node watches all others, so the work grows with the square of the nodes.",
     "Consider groups or peer_to_peer, or the detector swim (docs/guide/topologies.md)."};
about(global) ->
    {"Each registration in `global' locks all nodes that it knows, one registration at a time.",
     "Use weft_names for names, and weft_global for locks (docs/guide/names.md)."};
about(no_weft) ->
    {"Nothing can be said about what it sees.",
     "Nothing, if it is to be so; or give it the same version of weft as the others."};
about(incomplete) ->
    {"The check that needs it was left out on this node.",
     "Look whether the node is just starting or stopping, and examine it again."}.

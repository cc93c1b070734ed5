%% SPDX-License-Identifier: Apache-2.0
%% @doc What does not scale, or stands in the way of another topology: why, at what cost, and what
%% to do. N is the number of nodes. Pure.
-module(weft_migrate_catalogue).

-export([all/0, entry/1]).
-export_type([id/0, entry/0]).

-type id() :: atom().
%% A warning gets worse with each node, or assumes that all nodes are connected; a note may.
-type entry() :: #{id := id(), level := warning | note, title := string(), why := string(),
                   cost := string(), todo := string()}.

-spec entry(id()) -> entry().
entry(Id) ->
    [Entry] = [Entry || #{id := Of} = Entry <- all(), Of =:= Id],
    Entry.

-spec all() -> [entry()].
all() ->
    names() ++ groups() ++ calls() ++ membership() ++ others().

names() ->
    [warning(global_names, "names of global",
             "Registering a name takes a lock on all nodes and tells all of them, one after the "
             "other; nodes that are not connected to all others disagree.",
             "3 requests to each of N nodes for one name; looking up is local",
             "weft_global has the same functions, see docs/guide/names.md"),
     warning(global_locks, "locks of global",
             "A lock without a list of nodes is taken on every node, and who waits for it asks all "
             "of them again and again.",
             "2 requests to each of N nodes for one lock, more while it is contended",
             "weft_global has the same functions, and three nodes keep a lock"),
     note(global_locks_some, "a lock of global on some nodes",
          "A lock is taken on each node of the list, one after the other.",
          "2 requests to each node of the list for one lock",
          "as it is it is exact; weft_global keeps it on three of these nodes"),
     warning(global_locks_differ, "one lock of global, different nodes",
             "Another place of this lock names other nodes, or may. With global the two exclude "
             "each other if they have a node in common; weft_global keeps a lock on three nodes of "
             "the list, so there they may not.",
             "none; but two processes may have the lock at once",
             "name the same nodes at all places of the lock, before it is rewritten"),
     warning(global_via, "{global, Name}",
             "The process is registered and found by global.",
             "that of registering a name with global",
             "{via, weft_global, Name}"),
     warning(global_dynamic, "global by way of a value",
             "global is called, or may be, by way of a fun, apply, a module that is computed, or "
             "module, function and arguments.",
             "that of names or locks of global",
             "change it by hand to weft_global")].

groups() ->
    [note(pg, "pg", "Each process that joins is told to all nodes that are directly connected; "
          "nodes behind a gateway, and hidden ones, see nothing of it.",
          "1 message to each of N nodes for one join or leave",
          "weft_pg has the same functions, and works on every topology"),
     note(pg_dynamic, "pg by way of a value",
          "pg is called, or may be, by way of a fun, apply, a module that is computed, or module, "
          "function and arguments.",
          "that of pg", "change it by hand to weft_pg"),
     warning(pg2, "pg2", "It takes a lock of global for each change, and OTP has had no pg2 since "
             "release 24.",
             "5 requests to each of N nodes for one join or leave",
             "weft_pg, where groups need not be created"),
     warning(global_group, "global_group",
             "Each node is in one group, and groups share nothing.", "a full mesh in each group",
             "weft_group, whose groups overlap, see docs/guide/groups.md"),
     warning(s_group, "s_group of SD Erlang", "It needs a patched OTP 17 to 19.",
             "none on that OTP",
             "weft_group; or the application sd_erlang, which runs it as it is")].

calls() ->
    [warning(call_all, "a call to all nodes",
             "It asks every node and waits for the slowest one; whoever is not connected is left "
             "out, or gets connected.",
             "1 request to each of N nodes, and as many answers, for one call",
             "ask the nodes of a group (weft_group:members/1), or subscribe (weft_broadcast)"),
     note(call_many, "a call to many nodes",
          "It asks every node of a list and waits for the slowest one.",
          "1 request and 1 answer for each node of the list",
          "keep the list short: the nodes of a group, not all"),
     warning(nodes_loop, "a loop over nodes()",
             "What is done for each node takes longer with each node, and nodes() has only those "
             "that are visible and connected.",
             "N times the body of the loop",
             "weft_group:send/3 or weft_broadcast for messages, weft_group:members/1 for a list"),
     note(large_message, "a large message",
          "A whole table or file goes to another process as one message; on a connection of two "
          "nodes the messages of others wait behind it.",
          "the size of the table or file",
          "a channel for large messages, docs/guide/channels.md; or send it in parts")].

membership() ->
    [note(nodes_membership, "nodes() as membership",
          "nodes() has the nodes that are connected now. On a full mesh those are all; elsewhere "
          "members can be missing, and with weft's hidden circuits they are.",
          "none; but what it decides may be wrong",
          "weft:members/0 or weft_group:members/1, or the setting that makes circuits visible"),
     note(monitor_nodes, "net_kernel:monitor_nodes",
          "A process hears of every node that comes or goes, and what it does then it does N times "
          "when a network comes back.",
          "N messages to this process for one failure of the network",
          "weft_group:monitor_nodes/2 for the nodes of a group"),
     warning(world, "net_adm:world", "It connects this node to all others.",
             "N connections of this node", "discovery and a topology; docs/guide/topologies.md")].

others() ->
    [warning(elixir_global, ":global in Elixir",
             "Registering a name or taking a lock with :global asks all nodes.",
             "3 requests to each of N nodes for one name",
             ":weft_global has the same functions; {:via, :weft_global, name} for {:global, name}"),
     note(elixir_pg, ":pg in Elixir",
          "Each process that joins is told to all nodes that are directly connected.",
          "1 message to each of N nodes for one join or leave",
          ":weft_pg has the same functions"),
     note(elixir_nodes, "Node.list in Elixir",
          "Node.list has the nodes that are connected now, and a loop over it gets longer with "
          "each of them.",
          "N times what is done for each node",
          ":weft.members/0 or :weft_group.members/1"),
     warning(elixir_calls, "a call to all nodes in Elixir",
             "It asks every node and waits for the slowest one.",
             "1 request to each of N nodes, and as many answers, for one call",
             "ask the nodes of a group (:weft_group.members/1)"),
     note(unread, "not read",
          "This part of the file is not in the form of Erlang without its macros, so only the "
          "words in it were looked at.", "unknown", "look at it by hand")].

warning(Id, Title, Why, Cost, Todo) -> entry(Id, warning, Title, Why, Cost, Todo).
note(Id, Title, Why, Cost, Todo) -> entry(Id, note, Title, Why, Cost, Todo).

entry(Id, Level, Title, Why, Cost, Todo) ->
    #{id => Id, level => Level, title => Title, why => Why, cost => Cost, todo => Todo}.

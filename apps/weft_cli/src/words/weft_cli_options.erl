%% SPDX-License-Identifier: Apache-2.0
%% @doc Options of the commands of `weft': those that several have, and those of `weft kv'. The
%% commands are in `weft_cli_commands'. Pure.
-module(weft_cli_options).

-export([common/0, deployed/0, any_node/1, agents/0, kv/0, kv_archive/0]).

%% @doc Which local cluster it is about, and how to answer.
-spec common() -> [weft_argparse:argument()].
common() ->
    [#{name => name, long => "-name", type => string, value => "NAME",
       help => "the cluster (default: local, or the only one that is up)"},
     #{name => dir, long => "-dir", type => string, value => "DIR",
       help => "where clusters are (default .weft)"},
     #{name => json, long => "-json", type => boolean, help => "answer in JSON"}].

%% @doc The same, or a deployment.
-spec deployed() -> [weft_argparse:argument()].
deployed() ->
    [#{name => cluster, long => "-cluster", type => string, value => "FILE",
       help => "the nodes of a deployment: the file of weft deploy"} | common()].

%% @doc A node of any cluster.
-spec any_node(Help :: string()) -> [weft_argparse:argument()].
any_node(Help) ->
    [#{name => node, long => "-node", type => string, value => "NODE", help => Help},
     #{name => cookie_file, long => "-cookie-file", type => string,
       value => "FILE", help => "with its cookie (default ~/.erlang.cookie)"}].

%% @doc Whose agents are asked.
-spec agents() -> [weft_argparse:argument()].
agents() -> any_node("NODE@HOST of any cluster, on which weft_ops runs") ++ deployed().

%% @doc What is read and written.
-spec kv() -> [weft_argparse:argument()].
kv() ->
    [#{name => context, long => "-context", type => string, value => "CONTEXT",
       help => "of put and delete: replaces what was read with it"},
     #{name => file, long => "-file", short => $f, type => string, value => "FILE",
       help => "of put: the value is what is in this file"},
     #{name => content_type, long => "-content-type", type => string, value => "TYPE",
       help => "of put: kept with the value, for clients of HTTP"},
     #{name => ttl_ms, long => "-ttl-ms", type => {integer, [{min, 1}]}, value => "COUNT",
       help => "of put: the value is there for so long"},
     #{name => out, long => "-out", short => $o, type => string, value => "FILE",
       help => "of get: write the value to this file"},
     #{name => encoded, long => "-encoded", type => boolean,
       help => "%XX in KEY is the byte of that number"},
     #{name => limit, long => "-limit", type => {integer, [{min, 1}, {max, 10000}]},
       value => "COUNT", default => 100, help => "of list: so many keys at most (default 100)"},
     #{name => 'after', long => "-after", type => string, value => "CURSOR",
       help => "of list: go on where the list before has ended"}].

%% @doc What is saved and restored.
-spec kv_archive() -> [weft_argparse:argument()].
kv_archive() ->
    [#{name => bucket, long => "-bucket", type => string, value => "NAME,...",
       help => "of export and import: these buckets only"},
     #{name => into, long => "-into", type => string, value => "NAME",
       help => "of import: the one bucket goes into this one"},
     #{name => check, long => "-check", type => boolean,
       help => "of import: only read the file, and say whether it is whole"},
     #{name => overwrite, long => "-overwrite", type => boolean,
       help => "of import: values of strong buckets replace those that are there"},
     #{name => keep, long => "-keep", type => {integer, [{min, 1}]}, value => "COUNT",
       help => "of backup: so many stay, the new one among them; earlier ones are deleted"}].


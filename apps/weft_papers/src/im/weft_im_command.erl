%% SPDX-License-Identifier: Apache-2.0
%% @doc The words of `bin/im': who logs in, or that this machine serves. What then happens is in
%% `weft_im_terminal' and `weft_im_service'; which emulator runs it says the script.
-module(weft_im_command).

-export([run/1, command/0]).

%% @doc From the command line; ends the emulator. Exit status: 0, 1 if it does not work, 2 if the
%% words are wrong.
-spec run([string()]) -> no_return().
run(Words) -> halt(weft_argparse:run(Words, command(), "bin/im")).

%% @doc What the words are read with.
-spec command() -> weft_argparse:command().
command() ->
    #{handler => {weft_im_terminal, run},
      help => "the Instant Messenger of the benchmarks, for people",
      details => ["Logs in, and reads lines:",
                  "",
                  "  @bob               is bob there?",
                  "  @bob hello         writes to bob",
                  "  and again          writes to bob, too",
                  "  /quit              leaves; so does the end of the input",
                  "",
                  "Nodes need the same cookie, as always. It runs what was compiled last."],
      arguments => [#{name => name, help => "who logs in"},
                    #{name => node, required => false,
                      help => "where the service is (default im@<this host>)"}],
      commands => #{"serve" => serve()}}.

serve() ->
    #{handler => {weft_im_service, run},
      help => "a service on this machine, until it is interrupted",
      arguments => [#{name => servers, long => "-servers", type => {integer, [{min, 2}, {max, 99}]},
                      default => 3, value => "COUNT", help => "how many servers (default 3)"}]}.

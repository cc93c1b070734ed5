# SPDX-License-Identifier: Apache-2.0
# The node of the tests is on weft: ERL_FLAGS="-proto_dist weft -connect_all false" mix test
unless {:ok, [['weft']]} == :init.get_argument(:proto_dist) do
  Mix.raise(~s(start the tests with ERL_FLAGS="-proto_dist weft -connect_all false"))
end

Logger.configure(level: :info)
{_, 0} = System.cmd("epmd", ["-daemon"])
{:ok, _} = Node.start(:"rooms_#{System.pid()}@127.0.0.1")
ExUnit.start()

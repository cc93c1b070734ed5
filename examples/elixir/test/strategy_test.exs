# SPDX-License-Identifier: Apache-2.0
defmodule Rooms.StrategyTest do
  use ExUnit.Case
  import Rooms.Cluster, only: [until: 1]

  setup do
    file = Path.join(System.tmp_dir!(), "nodes_#{System.pid()}_#{System.unique_integer([:positive])}")
    # Nodes that know nobody have no topology.
    Application.delete_env(:weft, :topology)
    {:ok, _} = Application.ensure_all_started(:weft)

    on_exit(fn ->
      File.rm(file)
      :ok = Application.stop(:weft)
    end)

    %{nodes: file, peers: for(name <- ["one", "two"], do: Rooms.Cluster.bare(name))}
  end

  test "it connects to what the file names, and to what is added to it", context do
    [one, two] = for {_, name} <- context.peers, do: name
    start(context.nodes)
    File.write!(context.nodes, "#{one}\n#{node()}\n")
    until(fn -> one in Node.list() end)
    refute two in Node.list()
    File.write!(context.nodes, "#{one} #{two}\n")
    until(fn -> two in Node.list() end)
    # An empty list takes nobody away.
    File.write!(context.nodes, "")
    pid = :erpc.call(two, :erlang, :self, [])
    assert node(pid) == two
    assert Enum.sort([one, two]) == Enum.sort(Node.list() -- [node()])
  end

  test "without a source it does not start" do
    assert_raise KeyError, fn -> Rooms.Strategy.start_link([%{args("none") | config: []}]) end
  end

  # By libcluster, if it is on the code path.
  defp start(file) do
    if Code.ensure_loaded?(Cluster.Supervisor) do
      topologies = [rooms: [strategy: Rooms.Strategy] ++ Map.to_list(args(file))]
      start_supervised!({Cluster.Supervisor, [topologies, [name: Rooms.ClusterSupervisor]]})
    else
      start_supervised!({Rooms.Strategy, [Map.put(args(file), :topology, :rooms)]})
    end
  end

  defp args(file) do
    %{
      connect: {:weft_discovery, :connect, []},
      list_nodes: {:weft_discovery, :list, []},
      config: [source: :weft_discovery_file, options: %{path: file}, interval_ms: 100]
    }
  end
end

# SPDX-License-Identifier: Apache-2.0
defmodule Rooms.Strategy do
  @moduledoc """
  A strategy for libcluster that finds nodes by a source of weft's discovery:

      config :libcluster, topologies: [rooms: [
        strategy: Rooms.Strategy,
        config: [source: :weft_discovery_file, options: %{path: "nodes.txt"}, interval_ms: 5_000],
        connect: {:weft_discovery, :connect, []},
        list_nodes: {:weft_discovery, :list, []}]]

  It asks the source again and again, and connects to the nodes that are new. It disconnects nobody:
  weft's topology decides which nodes are members. It has the functions of the behaviour
  `Cluster.Strategy` and needs nothing of libcluster itself, so it can be started by any supervisor.
  """
  use GenServer
  require Logger

  @interval_ms 5_000

  def child_spec([%{topology: topology}] = args) do
    %{id: {__MODULE__, topology}, start: {__MODULE__, :start_link, [args]}}
  end

  def start_link([%{connect: {_, _, _}, list_nodes: {_, _, _}, config: config} = state]) do
    Keyword.fetch!(config, :source)
    GenServer.start_link(__MODULE__, state)
  end

  @impl GenServer
  def init(state), do: {:ok, state, {:continue, :look}}

  @impl GenServer
  def handle_continue(:look, state), do: look(state)

  @impl GenServer
  def handle_info(:look, state), do: look(state)
  def handle_info(_other, state), do: {:noreply, state}

  defp look(%{config: config} = state) do
    options = config |> Keyword.get(:options, %{}) |> Map.new()

    # An error of the source connects and disconnects nobody.
    case :weft_discovery_source.discover(config[:source], options) do
      {:ok, nodes} -> connect(nodes, state)
      {:ok, nodes, wrong} -> warn(wrong, state) && connect(nodes, state)
      {:error, reason} -> warn(reason, state)
    end

    Process.send_after(self(), :look, Keyword.get(config, :interval_ms, @interval_ms))
    {:noreply, state}
  end

  defp connect(nodes, %{connect: {module, function, args}, list_nodes: {list, list_fun, list_args}}) do
    for node <- nodes -- apply(list, list_fun, list_args), do: apply(module, function, args ++ [node])
  end

  defp warn(reason, %{topology: topology}) do
    Logger.warning("#{topology}: #{inspect(reason)}") == :ok
  end
end

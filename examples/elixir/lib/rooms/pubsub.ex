# SPDX-License-Identifier: Apache-2.0
if Code.ensure_loaded?(Phoenix.PubSub) do
  defmodule Rooms.PubSub do
    @moduledoc """
    An adapter for Phoenix.PubSub over weft's broadcast:

        {Phoenix.PubSub, name: MyApp.PubSub, adapter: Rooms.PubSub}

    The default adapter sends a copy to each node of the cluster, from the node that broadcasts. With
    this one a message travels along weft's spanning tree, over any topology, and a node that was cut
    off for a short time gets what it missed. Messages are not ordered. A broadcast that is too
    large, or that finds the queue full, returns `{:error, reason}`.
    """
    use GenServer
    @behaviour Phoenix.PubSub.Adapter

    @impl Phoenix.PubSub.Adapter
    def node_name(_adapter), do: node()

    @impl Phoenix.PubSub.Adapter
    def child_spec(options) do
      adapter = Keyword.fetch!(options, :adapter_name)
      pubsub = Keyword.fetch!(options, :name)
      %{id: adapter, start: {__MODULE__, :start_link, [adapter, pubsub]}}
    end

    @impl Phoenix.PubSub.Adapter
    def broadcast(adapter, topic, message, dispatcher) do
      :weft.broadcast({__MODULE__, adapter}, {node(), topic, message, dispatcher})
    end

    @impl Phoenix.PubSub.Adapter
    def direct_broadcast(adapter, node_name, topic, message, dispatcher) do
      send({adapter, node_name}, {:direct, topic, message, dispatcher})
      :ok
    end

    def start_link(adapter, pubsub) do
      GenServer.start_link(__MODULE__, {adapter, pubsub}, name: adapter)
    end

    @impl GenServer
    def init({adapter, pubsub}) do
      :ok = :weft.subscribe({__MODULE__, adapter})
      {:ok, pubsub}
    end

    # Phoenix.PubSub itself tells the subscribers of the node that broadcasts.
    @impl GenServer
    def handle_info({:weft_broadcast, _scope, _node, {from, _, _, _}}, pubsub)
        when from == node() do
      {:noreply, pubsub}
    end

    def handle_info({:weft_broadcast, _scope, _node, {_, topic, message, dispatcher}}, pubsub) do
      Phoenix.PubSub.local_broadcast(pubsub, topic, message, dispatcher)
      {:noreply, pubsub}
    end

    def handle_info({:direct, topic, message, dispatcher}, pubsub) do
      Phoenix.PubSub.local_broadcast(pubsub, topic, message, dispatcher)
      {:noreply, pubsub}
    end

    # It was cut off for too long, or its mailbox was full: what is lost is lost.
    def handle_info(_other, pubsub), do: {:noreply, pubsub}
  end
end

# SPDX-License-Identifier: Apache-2.0
if Code.ensure_loaded?(Phoenix.PubSub) do
  defmodule Rooms.Listener do
    @moduledoc "A subscriber on another node: tells the test what it gets."
    alias Phoenix.PubSub

    def run(test) do
      {:ok, _} = Application.ensure_all_started(:phoenix_pubsub)
      children = [{PubSub, name: Rooms.Events, adapter: Rooms.PubSub}]
      {:ok, _} = Supervisor.start_link(children, strategy: :one_for_one)
      :ok = PubSub.subscribe(Rooms.Events, "weather")
      send(test, {self(), :listening})
      pass_on(test)
    end

    defp pass_on(test) do
      receive do
        message -> send(test, {self(), message})
      end

      pass_on(test)
    end
  end
end

# SPDX-License-Identifier: Apache-2.0
if Code.ensure_loaded?(Phoenix.PubSub) do
  defmodule Rooms.PubSubTest do
    use ExUnit.Case
    alias Phoenix.PubSub

    @wait_ms 20_000

    setup_all do
      Rooms.Cluster.start()
    end

    test "each subscriber gets a broadcast once, and one node a direct one", %{third: third} do
      start_supervised!({PubSub, name: Rooms.Events, adapter: Rooms.PubSub})
      :ok = PubSub.subscribe(Rooms.Events, "weather")
      listener = Node.spawn_link(third, Rooms.Listener, :run, [self()])
      assert_receive {^listener, :listening}, @wait_ms

      for weather <- [:rain, :snow] do
        :ok = PubSub.broadcast(Rooms.Events, "weather", weather)
        assert_receive ^weather, @wait_ms
        assert_receive {^listener, ^weather}, @wait_ms
      end

      :ok = PubSub.direct_broadcast(third, Rooms.Events, "weather", :fog)
      assert_receive {^listener, :fog}, @wait_ms
      refute_received _
    end
  end
end

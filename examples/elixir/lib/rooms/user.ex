# SPDX-License-Identifier: Apache-2.0
defmodule Rooms.User do
  @moduledoc "Someone in the rooms: remembers what it heard, and is found by its name from any node."
  use GenServer

  # A user that has heard more forgets the oldest.
  @heard_max 100

  @doc "Starts a user on this node. A name can be taken once in the cluster."
  @spec start(String.t()) :: DynamicSupervisor.on_start_child()
  def start(name), do: DynamicSupervisor.start_child(Rooms.Users, {__MODULE__, name})

  @doc "The user enters a room."
  @spec enter(String.t(), Rooms.room()) :: :ok
  def enter(name, room), do: GenServer.call(via(name), {:enter, room})

  @doc "What the user has heard, the newest first."
  @spec heard(String.t()) :: [{Rooms.room(), String.t()}]
  def heard(name), do: GenServer.call(via(name), :heard)

  @doc "Where the user is, or nil."
  @spec whereis(String.t()) :: pid | nil
  def whereis(name), do: GenServer.whereis(via(name))

  @doc false
  def start_link(name), do: GenServer.start_link(__MODULE__, [], name: via(name))

  @impl true
  def init([]), do: {:ok, []}

  @impl true
  def handle_call({:enter, room}, _from, heard), do: {:reply, Rooms.join(room), heard}
  def handle_call(:heard, _from, heard), do: {:reply, heard, heard}

  @impl true
  def handle_info({:said, room, text}, heard) do
    {:noreply, Enum.take([{room, text} | heard], @heard_max)}
  end

  defp via(name), do: {:via, :weft_names, {:cluster, {__MODULE__, name}}}
end

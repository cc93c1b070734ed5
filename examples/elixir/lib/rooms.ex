# SPDX-License-Identifier: Apache-2.0
defmodule Rooms do
  @moduledoc """
  Chat rooms over a cluster. A room is a process group (`:weft_pg`, with the functions of `:pg`), which
  needs no process of its own and no room server: whoever says something sends it to all members. A
  user has a name (`:weft_names`) under which any node finds its process.

  Nothing in here knows how nodes are connected.
  """

  @type room :: term

  @doc "The calling process hears from now on what is said in the room."
  @spec join(room) :: :ok
  def join(room), do: :weft_pg.join({__MODULE__, room}, self())

  @doc "The calling process leaves the room. A process that ends leaves by itself."
  @spec leave(room) :: :ok | :not_joined
  def leave(room), do: :weft_pg.leave({__MODULE__, room}, self())

  @doc "The processes in the room, on all nodes."
  @spec members(room) :: [pid]
  def members(room), do: :weft_pg.get_members({__MODULE__, room})

  @doc "Every member gets `{:said, room, text}`."
  @spec say(room, String.t()) :: :ok
  def say(room, text) do
    for member <- members(room), do: send(member, {:said, room, text})
    :ok
  end
end

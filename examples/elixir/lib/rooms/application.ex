# SPDX-License-Identifier: Apache-2.0
defmodule Rooms.Application do
  @moduledoc "The processes of a node: users are started by `Rooms.User.start/1`."
  use Application

  @impl true
  def start(_type, _args) do
    children = [{DynamicSupervisor, name: Rooms.Users}]
    Supervisor.start_link(children, strategy: :one_for_one)
  end
end

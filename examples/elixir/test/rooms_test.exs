# SPDX-License-Identifier: Apache-2.0
defmodule RoomsTest do
  use ExUnit.Case
  import Rooms.Cluster, only: [until: 1]
  alias Rooms.User

  setup_all do
    Rooms.Cluster.start()
  end

  test "the ends have no link", %{second: second, third: third} do
    assert [{^second, _cost}] = :weft.neighbours()
    assert [{^second, _cost}] = :erpc.call(third, :weft, :neighbours, [])
  end

  test "a user is found by name from another node, and its name is free when it ends", context do
    {:ok, pid} = :erpc.call(context.third, User, :start, ["cleo"])
    until(fn -> User.whereis("cleo") == pid end)
    assert {:error, {:already_started, ^pid}} = User.start("cleo")
    Process.exit(pid, :kill)
    until(fn -> User.whereis("cleo") != pid end)
  end

  test "what is said is heard on all nodes, once", context do
    {:ok, _} = User.start("ann")
    {:ok, _} = :erpc.call(context.third, User, :start, ["dora"])
    until(fn -> is_pid(User.whereis("dora")) end)
    for name <- ["ann", "dora"], do: :ok = User.enter(name, :garden)
    until(fn -> length(Rooms.members(:garden)) == 2 end)
    :ok = Rooms.say(:garden, "hello")
    :ok = Rooms.say(:garden, "goodbye")

    for name <- ["ann", "dora"] do
      until(fn -> User.heard(name) == [{:garden, "goodbye"}, {:garden, "hello"}] end)
    end
  end
end

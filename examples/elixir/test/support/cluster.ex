# SPDX-License-Identifier: Apache-2.0
defmodule Rooms.Cluster do
  @moduledoc """
  Three nodes in a row: this one is linked with the second one, and the second one with the third.
  The first and the last have no connection of their own. Or nodes that know nobody.
  """
  import ExUnit.Callbacks, only: [on_exit: 1]

  @wait_ms 20_000

  @doc "For `setup_all`: the names of the second and the third node."
  def start do
    [second, third] = names = for name <- ["second", "third"], do: :"#{name}_#{node()}"
    groups = {:groups, %{left: [node(), second], right: [second, third]}}
    peers = for name <- names, do: peer(name, groups)
    Application.put_env(:weft, :topology, groups)
    {:ok, _} = Application.ensure_all_started(:rooms)
    until(fn -> Node.ping(third) == :pong end)

    on_exit(fn ->
      # The last one first: the other one knows then, and can tell, that it has ended.
      for peer <- Enum.reverse(peers), do: :peer.stop(peer)
      for app <- [:rooms, :weft], do: :ok = Application.stop(app)
    end)

    %{second: second, third: third}
  end

  @doc "Waits until the condition is true."
  def until(condition, left_ms \\ @wait_ms) do
    cond do
      condition.() -> :ok
      left_ms <= 0 -> raise "it has not become true in #{@wait_ms} ms"
      true -> Process.sleep(10) && until(condition, left_ms - 10)
    end
  end

  @doc "A node that runs nothing but weft's carrier, until the test ends: how to control it, its name."
  def bare(short) do
    {peer, _name} = started = boot(:"#{short}_#{node()}")
    on_exit(fn -> :peer.stop(peer) end)
    started
  end

  defp peer(name, groups) do
    {peer, ^name} = boot(name)

    for {app, key, value} <- [{:weft, :topology, groups}, {:logger, :level, :info}] do
      :ok = :peer.call(peer, Application, :put_env, [app, key, value])
    end

    {:ok, _} = :peer.call(peer, Application, :ensure_all_started, [:rooms])
    peer
  end

  # A node with the code of this project, controlled over its standard input and output. It has the
  # carrier from ERL_FLAGS, as this node.
  defp boot(name) do
    [short, host] = name |> Atom.to_string() |> String.split("@") |> Enum.map(&to_charlist/1)
    cookie = Node.get_cookie() |> Atom.to_charlist()
    paths = Enum.flat_map(:code.get_path(), &['-pa', &1])

    {:ok, peer, ^name} =
      :peer.start(%{
        name: short,
        host: host,
        longnames: true,
        connection: :standard_io,
        args: ['-setcookie', cookie | paths]
      })

    {peer, name}
  end
end

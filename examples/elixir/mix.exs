# SPDX-License-Identifier: Apache-2.0
defmodule Rooms.MixProject do
  use Mix.Project

  def project do
    [
      app: :rooms,
      version: "0.1.0",
      elixir: "~> 1.14",
      elixirc_paths: ["lib"] ++ if(Mix.env() == :test, do: ["test/support"], else: []),
      deps: [weft() | pubsub()],
      # The tests make their node a node before they start the application.
      aliases: [test: "test --no-start"],
      releases: [rooms: [applications: [weft: :permanent]]]
    ]
  end

  def application do
    [mod: {Rooms.Application, []}, extra_applications: [:logger]]
  end

  # In a project outside of this repository:
  #   {:weft, git: "<this repository>", branch: "main", sparse: "apps/weft", manager: :rebar3}
  defp weft, do: {:weft, path: "../../apps/weft", manager: :rebar3}

  # Only the adapter for Phoenix.PubSub needs it. A checkout can take the place of the package:
  # PHOENIX_PUBSUB=../phoenix_pubsub mix test
  defp pubsub do
    case System.get_env("PHOENIX_PUBSUB") do
      nil -> []
      path -> [{:phoenix_pubsub, path: path}]
    end
  end
end

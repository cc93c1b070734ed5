import Config

# ROOMS_GROUPS="left=a@h1,b@h2;right=b@h2,c@h3": who is linked with whom. Without it a node is linked
# with each node that the code names.
if text = System.get_env("ROOMS_GROUPS") do
  groups =
    for group <- String.split(text, ";", trim: true), into: %{} do
      [name, members] = String.split(group, "=")
      {String.to_atom(name), members |> String.split(",") |> Enum.map(&String.to_atom/1)}
    end

  config :weft, topology: {:groups, groups}
end

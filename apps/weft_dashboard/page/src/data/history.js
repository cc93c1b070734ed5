// SPDX-License-Identifier: Apache-2.0
// What was shown of each node in the last minutes, for its charts: the server keeps none of it.

const POINTS_MAX = 300;
const NODES_MAX = 2000;
const KEYS = ["bytes_out", "bytes_in", "memory_bytes", "run_queue", "wake_up_us"];

const byNode = new Map();

// Takes a sample of each node that has a newer one than before.
export function remember(cluster) {
  for (const node of cluster.nodes) {
    if (node.state !== "up") continue;
    if (!byNode.has(node.name) && byNode.size >= NODES_MAX) continue;
    const points = byNode.get(node.name) ?? [];
    if (points.length > 0 && points.at(-1).at_ms >= node.at_ms) continue;
    points.push({ at_ms: node.at_ms, values: KEYS.map((key) => valueOf(node, key)) });
    if (points.length > POINTS_MAX) points.shift();
    byNode.set(node.name, points);
  }
  for (const name of byNode.keys()) if (!cluster.byName.has(name)) byNode.delete(name);
}

const valueOf = (node, key) =>
  key.startsWith("bytes_") ? (node[key] * 1000) / node.period_ms : node[key];

// Columns for a chart: times in seconds, and the values of the keys.
export function columns(name, keys) {
  const points = byNode.get(name) ?? [];
  return [
    points.map((point) => point.at_ms / 1000),
    ...keys.map((key) => points.map((point) => point.values[KEYS.indexOf(key)])),
  ];
}

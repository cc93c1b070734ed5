// SPDX-License-Identifier: Apache-2.0
// What was shown of each node in the last minutes, for its charts: the server keeps none of it.
// A node has a ring of numbers, all of it from the start, so that a page that is open for long does
// not grow.

const POINTS_MAX = 300;
const NODES_MAX = 2000;
const KEYS = ["at_ms", "bytes_out", "bytes_in", "memory_bytes", "run_queue"];
const WIDTH = KEYS.length;

const byNode = new Map();

// Takes a sample of each node that has a newer one than before.
export function remember(cluster) {
  for (const node of cluster.nodes) if (node.state === "up") add(node);
  for (const name of byNode.keys()) if (!cluster.byName.has(name)) byNode.delete(name);
}

function add(node) {
  let ring = byNode.get(node.name);
  if (ring === undefined) {
    if (byNode.size >= NODES_MAX) return;
    ring = { numbers: new Float64Array(POINTS_MAX * WIDTH), count: 0, lastMs: -Infinity };
    byNode.set(node.name, ring);
  }
  if (node.at_ms <= ring.lastMs) return;
  const at = (ring.count % POINTS_MAX) * WIDTH;
  KEYS.forEach((key, i) => {
    ring.numbers[at + i] = valueOf(node, key);
  });
  ring.count += 1;
  ring.lastMs = node.at_ms;
}

const valueOf = (node, key) =>
  key.startsWith("bytes_") ? (node[key] * 1000) / node.period_ms : node[key];

// Columns for a chart: times in seconds, and the values of the keys, the oldest first.
export function columns(name, keys) {
  const ring = byNode.get(name) ?? { numbers: [], count: 0 };
  const first = Math.max(0, ring.count - POINTS_MAX);
  const column = (key, scale) => {
    const values = [];
    for (let i = first; i < ring.count; i++)
      values.push(ring.numbers[(i % POINTS_MAX) * WIDTH + KEYS.indexOf(key)] * scale);
    return values;
  };
  return [column("at_ms", 0.001), ...keys.map((key) => column(key, 1))];
}

// SPDX-License-Identifier: Apache-2.0
// What the graph has to show: bodies (nodes, and groups that are collapsed to a box) and what is
// between them. Nodes in one group only are inside its box when it is collapsed; gateways stay.
// What is hidden is in no scene.

import { pairKey } from "../data/cluster.js";

const LABELS_MAX = 50;

export function sceneOf(cluster, { isCollapsed, isHidden, isFound, withCircuits, withIdle }) {
  const places = new Map(cluster.groups.map((group, i) => [group.name, i]));
  const bodies = [];
  const bodyOf = new Map();
  for (const group of cluster.groups) {
    if (!isCollapsed(group.name)) continue;
    const inside = group.members.filter((name) =>
      isAlone(cluster.byName.get(name)) && !isHidden(cluster.byName.get(name)));
    if (inside.length === 0) continue;
    const body = { id: `group ${group.name}`, group, inside, places: [places.get(group.name)] };
    bodies.push(body);
    for (const name of inside) bodyOf.set(name, body);
  }
  for (const node of cluster.nodes) {
    if (bodyOf.has(node.name) || isHidden(node)) continue;
    const inGroups = node.groups.filter((name) => places.has(name));
    const body = { id: node.name, node, places: inGroups.map((name) => places.get(name)) };
    bodies.push(body);
    bodyOf.set(node.name, body);
  }
  const size = sizeOf(bodies.length);
  for (const body of bodies) body.r = body.node ? size.r : 22 + 3 * Math.sqrt(body.inside.length);
  const found = new Set(cluster.nodes.filter(isFound).map(({ name }) => bodyOf.get(name)));
  return {
    cluster, bodies, bodyOf, size, found, withCircuits, withIdle,
    hasLabels: bodies.length <= LABELS_MAX,
  };
}

const isAlone = (node) => node !== undefined && node.groups.length === 1;

const sizeOf = (count) =>
  count <= LABELS_MAX ? { r: 11, gap: 64 } : count <= 200 ? { r: 7, gap: 30 } : { r: 5, gap: 18 };

// Links between bodies. Those of several nodes in a box are one.
export function edgesOf(scene) {
  scene.edges ??= edgesBetween(scene);
  return scene.edges;
}

function edgesBetween({ cluster, bodyOf }) {
  const edges = new Map();
  for (const link of cluster.links.values()) {
    const [a, b] = [bodyOf.get(link.a), bodyOf.get(link.b)];
    if (a === undefined || b === undefined || a === b) continue;
    const key = pairKey(a.id, b.id);
    const edge = edges.get(key) ?? { a, b, isUp: true, rate: 0 };
    edge.isUp = edge.isUp && link.isUp;
    edge.rate += cluster.loads.get(link.key) ?? 0;
    edges.set(key, edge);
  }
  return [...edges.values()];
}

// Circuits as rows of bodies, the busiest first. Those that end up in one box are left out.
export function circuitsOf(scene, { max, of }) {
  const key = of ?? "";
  if (scene.circuits?.key !== key) scene.circuits = { key, rows: circuitRows(scene, max, of) };
  return scene.circuits.rows;
}

function circuitRows({ cluster, bodyOf }, max, of) {
  const all = [...cluster.sessions.values()].filter(
    (session) =>
      session.isCircuit && (of === undefined || session.a === of || session.b === of),
  );
  all.sort((x, y) => y.rate - x.rate || (pairKey(x.a, x.b) < pairKey(y.a, y.b) ? -1 : 1));
  const circuits = [];
  for (const session of all.slice(0, max)) {
    const row = [];
    for (const name of session.way.nodes) {
      const body = bodyOf.get(name);
      if (body !== undefined && body !== row.at(-1)) row.push(body);
    }
    if (row.length > 1) circuits.push({ session, row, rate: session.rate });
  }
  return circuits;
}

// What the places of the bodies depend on. As long as it is the same the picture stays.
export function shapeOf(scene) {
  return JSON.stringify([
    scene.bodies.map((body) => [body.id, body.places, body.inside?.length]),
    tiesOf(scene).map((tie) => [tie.source.id, tie.target.id]),
  ]);
}

// Nodes in no group are placed by their links.
export function tiesOf(scene) {
  if (scene.bodies.every(({ places }) => places.length > 0)) return [];
  const name = ({ source, target }) => pairKey(source.id, target.id);
  return edgesOf(scene)
    .filter(({ a, b, isUp }) => isUp && (a.places.length === 0 || b.places.length === 0))
    .map(({ a, b }) => (a.id < b.id ? { source: a, target: b } : { source: b, target: a }))
    .sort((x, y) => (name(x) < name(y) ? -1 : 1));
}

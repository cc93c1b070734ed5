// SPDX-License-Identifier: Apache-2.0
// What the matrix shows: rows of nodes (or of groups), and for each pair that something is known of
// a cell with all its measures. A cell of two groups sums up, or takes the worst of, its pairs.

import { between, mean, pairKey } from "../data/cluster.js";
import { each } from "../parts/task.js";

export const MEASURES = {
  rate: "bytes a second",
  rtt_us: "round trip",
  queued_bytes: "queue",
  resumes: "resumes",
  reroutes: "re-routes",
  hops: "hops",
};

// Names of groups may have spaces in them.
export const cellKey = (from, to) => `${from}\n${to}`;

// In steps, each of which is short. Worked out once for a cluster, as it is shown again whenever
// something is chosen.
export function* gridOf(cluster, byGroups) {
  const kind = byGroups ? "groups" : "nodes";
  cluster.grids ??= {};
  cluster.grids[kind] ??= yield* gridBy(cluster, byGroups);
  return cluster.grids[kind];
}

function* gridBy(cluster, byGroups) {
  const cells = yield* cellsOf(cluster);
  if (!byGroups) {
    const rows = cluster.nodes.map((node) => ({ id: node.name, text: node.short }));
    return { rows, cells, at: index(rows) };
  }
  const ids = [...new Set(cluster.nodes.flatMap(groupsOf))].sort();
  const rows = ids.map((id) => ({ id, text: id }));
  return { rows, cells: yield* summed(cells, cluster), at: index(rows) };
}

const groupsOf = (node) => (node?.groups.length > 0 ? node.groups : ["in no group"]);

// As weft_ops:traffic() counts: within a group if both nodes are in one, else from the first group
// of the one to the first group of the other.
function groupsBetween(cell, cluster) {
  const [ofFrom, ofTo] = [cell.from, cell.to].map((name) => groupsOf(cluster.byName.get(name)));
  const common = ofFrom.find((group) => ofTo.includes(group));
  return { from: common ?? ofFrom[0], to: common ?? ofTo[0] };
}

const index = (rows) => new Map(rows.map(({ id }, i) => [id, i]));

const saidBy = (node, pair) => (node === pair.a ? pair.ab : pair.ba);

function* cellsOf(cluster) {
  const cells = new Map();
  const cell = (from, to) => {
    const key = cellKey(from, to);
    if (!cells.has(key)) cells.set(key, { from, to });
    return cells.get(key);
  };
  yield* each(cluster.sessions.values(), (session) => {
    for (const [from, to] of [[session.a, session.b], [session.b, session.a]])
      Object.assign(cell(from, to), {
        rate: from === session.a ? session.rate_ab : session.rate_ba,
        queued_bytes: saidBy(from, session)?.queued_bytes ?? 0,
        resumes: session.resumes,
        reroutes: session.reroutes,
        hops: session.way.gap < 0 ? session.way.nodes.length - 1 : undefined,
        rtt_us: wayRtt(cluster, session),
        between: from === session.a ? between(session.way) : between(session.way).reverse(),
        state: session.state,
      });
  });
  yield* each(cluster.links.values(), (link) => {
    for (const [from, to] of [[link.a, link.b], [link.b, link.a]]) {
      const known = cell(from, to);
      known.rtt_us = link.rtt_us ?? known.rtt_us;
      known.hops ??= link.isUp ? 1 : undefined;
      known.queued_bytes = (known.queued_bytes ?? 0) + (saidBy(from, link)?.queued_bytes ?? 0);
      known.link = link.state;
      known.last_error = (saidBy(from, link) ?? saidBy(to, link))?.last_error;
    }
  });
  return cells;
}

// Of the links of the way, if all of them are known.
function wayRtt(cluster, { way }) {
  if (way.gap >= 0) return undefined;
  let all = 0;
  for (let i = 1; i < way.nodes.length; i++) {
    const us = cluster.links.get(pairKey(way.nodes[i - 1], way.nodes[i]))?.rtt_us;
    if (us === undefined) return undefined;
    all += us;
  }
  return all;
}

function* summed(cells, cluster) {
  const groups = new Map();
  yield* each(cells.values(), (cell) => {
    const { from, to } = groupsBetween(cell, cluster);
    const key = cellKey(from, to);
    if (!groups.has(key)) groups.set(key, { from, to, parts: [] });
    groups.get(key).parts.push(cell);
  });
  const all = new Map();
  yield* each(groups, ([key, { from, to, parts }]) => {
    const known = (measure) => parts.map((part) => part[measure]).filter((x) => x !== undefined);
    const total = (measure) => known(measure).reduce((a, b) => a + b, 0);
    all.set(key, {
      from, to, pairs: parts.length, rate: total("rate"), queued_bytes: total("queued_bytes"),
      resumes: total("resumes"), reroutes: total("reroutes"),
      hops: mean(known("hops")), rtt_us: mean(known("rtt_us")),
      down: parts.filter((part) => part.link === "down").length,
      last_error: parts.find(({ last_error: error }) => (error ?? "none") !== "none")?.last_error,
    });
  });
  return all;
}

// What is drawn of a measure, in steps, once for a grid: off, which says how far a cell is from the
// mean of all, in standard deviations; shades, a Map of each to the places of its cells, which are
// their rows and columns, one after the other; and down, the places of cells with a link that is.
export function* pictureOf(grid, measure) {
  grid.pictures ??= {};
  grid.pictures[measure] ??= yield* picture(grid, measure);
  return grid.pictures[measure];
}

function* picture({ cells, at }, measure) {
  const off = deviations(cells, measure);
  const shades = new Map();
  const down = [];
  yield;
  yield* each(cells.values(), (cell) => {
    const [row, column] = [at.get(cell.from), at.get(cell.to)];
    if (row === undefined || column === undefined) return;
    const percent = shade(off.of(cell));
    if (!shades.has(percent)) shades.set(percent, []);
    shades.get(percent).push(row, column);
    if (cell.link === "down" || cell.down > 0) down.push(row, column);
  });
  return { off, shades, down };
}

function deviations(cells, measure) {
  const values = [...cells.values()].map((cell) => cell[measure]).filter((x) => x !== undefined);
  const middle = mean(values) ?? 0;
  const spread = Math.sqrt(mean(values.map((value) => (value - middle) ** 2)) ?? 0);
  return {
    middle,
    spread,
    of(cell) {
      if (cell[measure] === undefined) return undefined;
      return spread === 0 ? 0 : (cell[measure] - middle) / spread;
    },
  };
}

// In percent of the strongest colour, which begins at two standard deviations; below the mean it is
// negative.
const shade = (off) =>
  off === undefined ? undefined : Math.round(Math.max(-1, Math.min(1, off / 2)) * 100);
